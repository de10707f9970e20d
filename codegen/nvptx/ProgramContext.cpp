//===- ProgramContext.cpp - What the emitters of one program share --------===//
#include "codegen/nvptx/ProgramContext.h"

#include "llvm/ADT/StringExtras.h"

using namespace mlir;
using namespace kvc;
using namespace kvc::nvptx;

//===----------------------------------------------------------------------===//
// Models
//===----------------------------------------------------------------------===//

ModelContext::ModelContext(ModuleOp module, ModelOp model,
                           const NvptxTarget &target)
    : module(module), model(model), target(target), ropes(model) {}

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
      /*isConstant=*/true, LLVM::Linkage::Internal, ptxName(name),
      DenseElementsAttr::get(type, values), /*alignment=*/8, /*addrSpace=*/4);
  return global;
}

LLVM::GlobalOp ModelContext::sharedArray() {
  LLVM::GlobalOp &global = globals["kvc_shared"];
  if (global)
    return global;
  OpBuilder builder = OpBuilder::atBlockBegin(module.getBody());
  global = LLVM::GlobalOp::create(
      builder, module.getLoc(),
      LLVM::LLVMArrayType::get(builder.getI8Type(), 0), /*isConstant=*/false,
      LLVM::Linkage::External, "kvc_shared", Attribute(), /*alignment=*/128,
      /*addrSpace=*/3);
  return global;
}

std::string kvc::nvptx::ptxName(StringRef name) {
  std::string result;
  for (char character : name)
    result += llvm::isAlnum(character) ? character : '_';
  return result;
}

//===----------------------------------------------------------------------===//
// Kernels
//===----------------------------------------------------------------------===//

/// Begins the function and returns a builder in front of its return.
static OpBuilder beginFunction(ModelContext &model, StringRef name,
                               Location loc, int threads, int blocksPerSm) {
  OpBuilder builder = OpBuilder::atBlockEnd(model.module.getBody());
  MLIRContext *context = builder.getContext();
  Type ptr = LLVM::LLVMPointerType::get(context);
  Type i64 = builder.getI64Type();
  SmallVector<Type> types(7, ptr);
  types.append(3, i64);
  types.append(7, ptr);
  types.push_back(i64);
  types.append(3, ptr);
  types.push_back(builder.getI32Type());
  auto function = LLVM::LLVMFuncOp::create(
      builder, loc, name,
      LLVM::LLVMFunctionType::get(LLVM::LLVMVoidType::get(context), types));
  function->setAttr(NVVM::NVVMDialect::getKernelFuncAttrName(),
                    builder.getUnitAttr());
  function->setAttr(NVVM::NVVMDialect::getReqntidAttrName(),
                    builder.getDenseI32ArrayAttr({threads, 1, 1}));
  if (blocksPerSm)
    function->setAttr(NVVM::NVVMDialect::getMinctasmAttrName(),
                      builder.getI32IntegerAttr(blocksPerSm));
  Block *entry = function.addEntryBlock(builder);
  builder.setInsertionPointToEnd(entry);
  auto end = LLVM::ReturnOp::create(builder, loc, ValueRange());
  builder.setInsertionPoint(end);
  return builder;
}

KernelContext::KernelContext(ModelContext &model, ProgramOp program,
                             StringRef name, Location loc, int threads,
                             int blocksPerSm)
    : model(model), program(program), name(name.str()), threads(threads),
      e(beginFunction(model, name, loc, threads, blocksPerSm), loc,
        model.target) {
  e.threads = threads;
  ValueRange arguments = e.b.getInsertionBlock()->getArguments();
  unsigned next = 0;
  auto pointer = [&] {
    return LLVM::AddrSpaceCastOp::create(e.b, e.loc, e.global,
                                         arguments[next++])
        .getResult();
  };
  weights = pointer();
  kv = pointer();
  rowsArena = pointer();
  outputsArena = pointer();
  logits = pointer();
  scratch = pointer();
  counters = pointer();
  maxRows = arguments[next++];
  maxOutputs = arguments[next++];
  maxSplits = arguments[next++];
  step = pointer();
  tokens = pointer();
  positions = pointer();
  rowSequences = pointer();
  outputRows = pointer();
  rowTiles = pointer();
  pages = pointer();
  pagesStride = arguments[next++];
  rope = pointer();
  chosen = pointer();
  sampling = pointer();
  layer = arguments[next++];
}

Value KernelContext::stepField(int index) {
  return e.trunc(e.load(e.i64, e.at(step, 8 * index), 8), e.i32);
}

Value KernelContext::entry(Value array, Value index) {
  return e.load(e.i32, e.at(array, e.mul(e.i64Of(index), 4)), 4);
}

Extent KernelContext::extentOf(Type type) {
  auto encoding = cast<RankedTensorType>(type).getEncoding();
  return isa<OutputsAttr>(encoding) ? Extent::Outputs : Extent::Rows;
}

Value KernelContext::extent(Type type) {
  return extentOf(type) == Extent::Outputs ? outputs() : rows();
}

Value KernelContext::ropeAngles(RopeOp op, Value row) {
  Value floats =
      e.add(e.mul(row, model.ropes.floatsPerRow()), model.ropes.offsetOf(op));
  return e.at(rope, e.mul(e.i64Of(floats), 4));
}

Type KernelContext::element(SlotAttr slot) {
  StringRef name = stringifySlotElement(slot.getElement());
  return name == "bf16" ? e.bf16 : name == "f16" ? e.f16 : e.f32;
}

Value KernelContext::slotBase(SlotAttr slot) {
  auto arena = [&](Value base, Value capacity) {
    return e.at(base, e.mul(capacity, slot.getOffset()));
  };
  switch (slot.getSpace()) {
  case Space::Rows:
    return arena(rowsArena, maxRows);
  case Space::Outputs:
    return arena(outputsArena, maxOutputs);
  case Space::Logits:
    return logits;
  case Space::Worker:
    break;
  }
  llvm_unreachable("a stage lies in shared memory");
}

Value KernelContext::slotRow(SlotAttr slot, Value row) {
  return e.at(slotBase(slot), e.mul(e.i64Of(row), slot.getStride()));
}

Value KernelContext::weight(FlatSymbolRefAttr symbol) {
  WeightOp weight = lookupWeight(program, symbol);
  ArrayRef<int64_t> offsets = *weight.getOffsets();
  if (offsets.size() == 1)
    return e.at(weights, offsets[0]);
  // Layers of one format lie at equal distances: no table, no load.
  int64_t stride = offsets[1] - offsets[0];
  bool even = true;
  for (size_t index = 1; index < offsets.size(); ++index)
    even &= offsets[index] - offsets[index - 1] == stride;
  if (even)
    return e.at(e.at(weights, e.mul(e.i64Of(layer), stride)), offsets[0]);
  LLVM::GlobalOp table =
      model.constants(("offsets_" + weight.getSymName()).str(), offsets);
  return e.at(weights, e.tableEntry(table, layer));
}

Value KernelContext::pageNumber(Value sequence, Value pageIndex) {
  // The sequence's row first: it does not change where the index does.
  Value row = e.at(pages, e.mul(e.mul(e.i64Of(sequence), pagesStride), 4));
  return e.load(e.i32, e.at(row, e.mul(e.i64Of(pageIndex), 4)), 4);
}

Value KernelContext::page(CacheType cache, Value sequence, Value pageIndex) {
  Value number = pageNumber(sequence, pageIndex);
  return e.at(kv, e.mul(e.i64Of(number), cache.getPageBytes()));
}

Value KernelContext::headPlane(CacheType cache, Value page, bool value,
                               Value kvHead) {
  // [layer][K|V][kv_head][page x head_dim]
  int64_t plane = cache.getPage() * cache.getHeadDim() *
                  (cache.getType().getIntOrFloatBitWidth() / 8);
  Value index = e.add(
      e.mul(e.add(e.mul(layer, 2), value ? 1 : 0), cache.getKvHeads()), kvHead);
  return e.at(page, e.mul(e.i64Of(index), plane));
}

Value KernelContext::sharedMemory(int64_t offset) {
  Value base = LLVM::AddressOfOp::create(e.b, e.loc, e.shared,
                                         model.sharedArray().getSymNameAttr());
  return e.at(base, offset);
}

//===----------------------------------------------------------------------===//
// Dispatches
//===----------------------------------------------------------------------===//

DispatchContext::DispatchContext(ModelContext &model, ProgramOp program,
                                 DispatchOp dispatch)
    : model(model), program(program), dispatch(dispatch) {}

KernelContext DispatchContext::begin(StringRef suffix, int threads,
                                     int blocksPerSm) {
  std::string name =
      ptxName(llvm::formatv("{0}_{1}_{2}{3}", program.getSymName(),
                            dispatch.getId(), dispatch.getName(), suffix)
                  .str());
  return KernelContext(model, program, name, dispatch.getLoc(), threads,
                       blocksPerSm);
}

Launch &DispatchContext::launch(const KernelContext &kernel,
                                ArrayRef<int64_t> layers) {
  Entry &entry = entries.emplace_back();
  entry.launch.kernel = kernel.name;
  entry.launch.id = dispatch.getId();
  entry.launch.threads = kernel.threads;
  entry.layers.append(layers.begin(), layers.end());
  return entry.launch;
}
