//===- ProgramContext.cpp - What the emitters of one program share --------===//
#include "codegen/cpu/ProgramContext.h"

using namespace mlir;
using namespace kvc;
using namespace kvc::cpu;

ModelContext::ModelContext(ModuleOp module, ModelOp model,
                           const CpuTarget &target)
    : module(module), model(model), target(target), panels(module, target),
      ropes(model) {}

LLVM::GlobalOp ModelContext::constants(StringRef name,
                                       ArrayRef<int64_t> values) {
  LLVM::GlobalOp &global = globals[name.str()];
  if (global)
    return global;
  OpBuilder builder = OpBuilder::atBlockBegin(module.getBody());
  auto type = RankedTensorType::get({static_cast<int64_t>(values.size())},
                                    builder.getI64Type());
  global = LLVM::GlobalOp::create(
      builder, module.getLoc(),
      LLVM::LLVMArrayType::get(builder.getI64Type(), values.size()),
      /*isConstant=*/true, LLVM::Linkage::Private, name,
      DenseElementsAttr::get(type, values));
  return global;
}

DispatchContext::DispatchContext(ModelContext &model, Emitter &e,
                                 ProgramOp program, ValueRange arguments)
    : model(model), e(e), program(program), batch(arguments[0]),
      arenas(arguments[1]), worker(arguments[2]), workers(arguments[3]),
      layer(arguments[4]) {}

SmallVector<Type> DispatchContext::argumentTypes(OpBuilder &b) {
  Type ptr = LLVM::LLVMPointerType::get(b.getContext());
  Type i64 = b.getI64Type();
  return {ptr, ptr, i64, i64, i64};
}

Value DispatchContext::field(Value structure, int64_t offset, Type type) {
  return e.load(type, e.at(structure, offset), 8);
}

Value DispatchContext::entry(int64_t arrayField, Value index) {
  Value array = field(batch, arrayField, e.ptr);
  return e.sext(e.load(e.i32, e.at(array, e.mul(index, 4)), 4), e.i64);
}

Value DispatchContext::rowTile(Value tile) {
  Value array = field(batch, offsetof(KvcBatch, row_tiles), e.ptr);
  return e.at(array, e.mul(tile, sizeof(KvcRowTile)));
}

Value DispatchContext::ropeAngles(RopeOp op, Value row) {
  Value table = field(batch, offsetof(KvcBatch, rope), e.ptr);
  Value floats =
      e.add(e.mul(row, model.ropes.floatsPerRow()), model.ropes.offsetOf(op));
  return e.at(table, e.mul(floats, 4));
}

Value DispatchContext::extent(Type type) {
  auto encoding = cast<RankedTensorType>(type).getEncoding();
  return isa<OutputsAttr>(encoding) ? outputs() : rows();
}

Value DispatchContext::slotBase(SlotAttr slot) {
  auto arena = [&](int64_t base, int64_t capacity, Value offset) {
    Value rows = field(arenas, capacity, e.i64);
    return e.at(field(arenas, base, e.ptr), e.mul(offset, rows));
  };
  switch (slot.getSpace()) {
  case Space::Rows:
    return arena(offsetof(KvcArenas, rows_arena), offsetof(KvcArenas, max_rows),
                 e.c(slot.getOffset()));
  case Space::Outputs:
    return arena(offsetof(KvcArenas, outputs_arena),
                 offsetof(KvcArenas, max_outputs), e.c(slot.getOffset()));
  case Space::Worker: {
    int64_t bytes = program.getWorkerBytes().value_or(0);
    return arena(offsetof(KvcArenas, worker_arena),
                 offsetof(KvcArenas, max_rows),
                 e.add(e.mul(worker, bytes), slot.getOffset()));
  }
  case Space::Logits:
    return field(arenas, offsetof(KvcArenas, logits), e.ptr);
  }
  llvm_unreachable("every space has an arena");
}

Value DispatchContext::slotRow(SlotAttr slot, Value row) {
  return e.at(slotBase(slot), e.mul(row, slot.getStride()));
}

Value DispatchContext::weight(FlatSymbolRefAttr symbol) {
  WeightOp weight = lookupWeight(program, symbol);
  ArrayRef<int64_t> offsets = *weight.getOffsets();
  Value base = field(arenas, offsetof(KvcArenas, weights), e.ptr);
  if (offsets.size() == 1)
    return e.at(base, offsets[0]);
  LLVM::GlobalOp table =
      model.constants(("offsets." + weight.getSymName()).str(), offsets);
  Value address =
      LLVM::AddressOfOp::create(e.b, e.loc, e.ptr, table.getSymNameAttr());
  return e.at(base, e.load(e.i64, e.at(address, e.mul(layer, 8)), 8));
}

Value DispatchContext::page(CacheType cache, Value sequence, Value pageIndex) {
  Value table = field(batch, offsetof(KvcBatch, pages), e.ptr);
  Value stride = field(batch, offsetof(KvcBatch, pages_stride), e.i64);
  Value index = e.add(e.mul(sequence, stride), pageIndex);
  Value number = e.sext(e.load(e.i32, e.at(table, e.mul(index, 4)), 4), e.i64);
  Value pages = field(arenas, offsetof(KvcArenas, kv), e.ptr);
  return e.at(pages, e.mul(number, cache.getPageBytes()));
}

Value DispatchContext::headPlane(CacheType cache, Value page, bool value,
                                 Value kvHead) {
  // [layer][K|V][kv_head][page x head_dim]
  int64_t plane = cache.getPage() * cache.getHeadDim() *
                  (cache.getType().getIntOrFloatBitWidth() / 8);
  Value index = e.add(
      e.mul(e.add(e.mul(layer, 2), value ? 1 : 0), cache.getKvHeads()), kvHead);
  return e.at(page, e.mul(index, plane));
}

std::pair<Value, Value> DispatchContext::share(Value count) {
  auto bound = [&](Value part) {
    return arith::DivUIOp::create(e.b, e.loc, e.mul(part, count), workers)
        .getResult();
  };
  return {bound(worker), bound(e.add(worker, 1))};
}
