//===- EmitterDevice.cpp - Memory, threads and matrices -------------------===//
#include "codegen/nvptx/Emitter.h"

using namespace mlir;
using namespace kvc;
using namespace kvc::nvptx;

//===----------------------------------------------------------------------===//
// Instructions by name
//===----------------------------------------------------------------------===//

Value Emitter::intrinsic(StringRef name, Type result, ValueRange operands) {
  return LLVM::CallIntrinsicOp::create(b, loc, result, b.getStringAttr(name),
                                       operands)
      .getResults();
}

static char constraint(Type type) {
  if (isa<LLVM::LLVMPointerType>(type))
    return cast<LLVM::LLVMPointerType>(type).getAddressSpace() == 3 ? 'r' : 'l';
  if (type.isF32())
    return 'f';
  return type.getIntOrFloatBitWidth() == 64   ? 'l'
         : type.getIntOrFloatBitWidth() == 1  ? 'b'
         : type.getIntOrFloatBitWidth() == 16 ? 'h'
                                              : 'r';
}

Values Emitter::inlinePtx(StringRef text, ArrayRef<Type> types,
                          ValueRange operands, bool pure) {
  std::string constraints;
  for (Type type : types)
    constraints +=
        std::string(constraints.empty() ? "=" : ",=") + constraint(type);
  for (Value operand : operands)
    constraints += std::string(constraints.empty() ? "" : ",") +
                   constraint(operand.getType());
  Type result;
  if (types.size() == 1)
    result = types[0];
  else if (types.size() > 1)
    result = LLVM::LLVMStructType::getLiteral(b.getContext(), types);
  auto op = LLVM::InlineAsmOp::create(
      b, loc, result ? TypeRange(result) : TypeRange(), operands, text,
      constraints, /*has_side_effects=*/!pure, /*is_align_stack=*/false,
      LLVM::tailcallkind::TailCallKind::None,
      LLVM::AsmDialectAttr::get(b.getContext(), LLVM::AsmDialect::AD_ATT),
      ArrayAttr());
  if (types.size() == 1)
    return {op.getResult(0)};
  Values results;
  for (size_t index = 0; index < types.size(); ++index)
    results.push_back(LLVM::ExtractValueOp::create(
        b, loc, op.getResult(0), static_cast<int64_t>(index)));
  return results;
}

//===----------------------------------------------------------------------===//
// Memory
//===----------------------------------------------------------------------===//

static unsigned spaceOf(Value pointer) {
  return cast<LLVM::LLVMPointerType>(pointer.getType()).getAddressSpace();
}

Value Emitter::widenOffset(Value pointer, Value bytes) {
  // Addresses of shared memory have 32 bits.
  return spaceOf(pointer) == 3 ? bytes : i64Of(bytes);
}
Value Emitter::at(Value pointer, Value bytes) {
  return LLVM::GEPOp::create(b, loc, pointer.getType(), i8, pointer,
                             ValueRange{widenOffset(pointer, bytes)});
}
Value Emitter::at(Value pointer, int64_t bytes) {
  if (bytes == 0)
    return pointer;
  return at(pointer, spaceOf(pointer) == 3 ? c(bytes) : c64(bytes));
}
Value Emitter::extract(Value vector, int64_t lane) {
  return LLVM::ExtractElementOp::create(b, loc, vector, c(lane));
}
Values Emitter::loadWords(Value pointer, int words) {
  if (words == 1)
    return {load(i32, pointer, 4)};
  Value vector = load(vec(i32, words), pointer, 4 * words);
  Values result;
  for (int word = 0; word < words; ++word)
    result.push_back(extract(vector, word));
  return result;
}
void Emitter::storeWords(ValueRange words, Value pointer) {
  int count = static_cast<int>(words.size());
  if (count == 1)
    return store(words[0], pointer, 4);
  Value vector = LLVM::PoisonOp::create(b, loc, vec(words[0].getType(), count));
  for (int word = 0; word < count; ++word)
    vector =
        LLVM::InsertElementOp::create(b, loc, vector, words[word], c(word));
  store(vector, pointer, 4 * count);
}
Values Emitter::loadWeights(Value pointer, int64_t bytes, int words,
                            Value predicate) {
  int count = std::max(1, words);
  std::string text = predicate ? "@$" + std::to_string(count + 1) + " " : "";
  text += "ld.global.nc.L1::no_allocate.";
  if (words > 1)
    text += "v" + std::to_string(words) + ".";
  text += words ? "b32 " : "b16 ";
  std::string list;
  for (int word = 0; word < count; ++word)
    list += (word ? ", $" : "$") + std::to_string(word);
  text += words > 1 ? "{" + list + "}" : list;
  text += ", [$" + std::to_string(count);
  if (bytes)
    text += "+" + std::to_string(bytes);
  text += "];";
  Values operands = {pointer};
  if (predicate)
    operands.push_back(predicate);
  Values result = inlinePtx(text, SmallVector<Type>(count, words ? i32 : i16),
                            operands, /*pure=*/false);
  if (words == 0)
    result[0] = zext(result[0], i32);
  return result;
}
Value Emitter::opaque(Value pointer) {
  return inlinePtx(spaceOf(pointer) == 3 ? "mov.b32 $0, $1;"
                                         : "mov.b64 $0, $1;",
                   pointer.getType(), pointer, /*pure=*/false)[0];
}
Value Emitter::tableEntry(LLVM::GlobalOp table, Value index) {
  Value base = LLVM::AddressOfOp::create(
      b, loc, LLVM::LLVMPointerType::get(b.getContext(), table.getAddrSpace()),
      table.getSymNameAttr());
  return load(i64, at(base, mul(index, 8)), 8);
}

//===----------------------------------------------------------------------===//
// Threads
//===----------------------------------------------------------------------===//

Value Emitter::tid() { return NVVM::ThreadIdXOp::create(b, loc, i32); }
Value Emitter::ctaid(int dimension) {
  if (dimension == 0)
    return NVVM::BlockIdXOp::create(b, loc, i32);
  if (dimension == 1)
    return NVVM::BlockIdYOp::create(b, loc, i32);
  return NVVM::BlockIdZOp::create(b, loc, i32);
}
Value Emitter::nctaid(int dimension) {
  if (dimension == 0)
    return NVVM::GridDimXOp::create(b, loc, i32);
  if (dimension == 1)
    return NVVM::GridDimYOp::create(b, loc, i32);
  return NVVM::GridDimZOp::create(b, loc, i32);
}
Value Emitter::lane() { return bitAnd(tid(), 31); }
Value Emitter::warp() {
  if (threads == 32)
    return c(0);
  Value number = shuffleFrom(shr(tid(), 5), c(0));
  Value inRange = arith::CmpIOp::create(b, loc, arith::CmpIPredicate::ult,
                                        number, c(threads / 32));
  LLVM::AssumeOp::create(b, loc, inRange);
  return number;
}

void Emitter::barrier() { NVVM::BarrierOp::create(b, loc); }
void Emitter::syncWarp() { NVVM::SyncWarpOp::create(b, loc, c(-1)); }

static Value shuffle(Emitter &e, NVVM::ShflKind kind, Value x, Value which) {
  return NVVM::ShflOp::create(e.b, e.loc, x.getType(), e.c(-1), x, which,
                              e.c(31), kind, UnitAttr());
}
Value Emitter::shuffleXor(Value x, int mask) {
  return shuffle(*this, NVVM::ShflKind::bfly, x, c(mask));
}
Value Emitter::shuffleFrom(Value x, Value lane) {
  return shuffle(*this, NVVM::ShflKind::idx, x, lane);
}
Value Emitter::sumLanes(Value x, int width) {
  for (int mask = width / 2; mask; mask /= 2)
    x = addf(x, shuffleXor(x, mask));
  return x;
}
Value Emitter::maxLanes(Value x, int width) {
  for (int mask = width / 2; mask; mask /= 2)
    x = maxf(x, shuffleXor(x, mask));
  return x;
}

void Emitter::waitForPrevious() {
  if (target.programmaticLaunch())
    NVVM::GriddepcontrolOp::create(b, loc, NVVM::GridDepActionKind::wait);
}
void Emitter::launchNext() {
  if (target.programmaticLaunch())
    NVVM::GriddepcontrolOp::create(b, loc,
                                   NVVM::GridDepActionKind::launch_dependents);
}
void Emitter::fence() {
  // An atomicrmw's own ordering is dropped by the NVPTX back end.
  LLVM::FenceOp::create(b, loc, LLVM::AtomicOrdering::acq_rel, "device");
}
Value Emitter::atomicAdd(Value pointer, Value x) {
  return LLVM::AtomicRMWOp::create(b, loc, LLVM::AtomicBinOp::add, pointer, x,
                                   LLVM::AtomicOrdering::monotonic, "device",
                                   /*alignment=*/4);
}

//===----------------------------------------------------------------------===//
// Copies and matrices
//===----------------------------------------------------------------------===//

void Emitter::copyAsync(Value to, Value from, int bytes, Value given) {
  // Past the first-level cache where the size allows it.
  auto cache = bytes == 16 ? NVVM::LoadCacheModifierKind::CG
                           : NVVM::LoadCacheModifierKind::CA;
  NVVM::CpAsyncOp::create(b, loc, to, from, static_cast<uint32_t>(bytes), cache,
                          given);
}
void Emitter::commitCopies() { NVVM::CpAsyncCommitGroupOp::create(b, loc); }
void Emitter::waitCopies(int pending) {
  NVVM::CpAsyncWaitGroupOp::create(b, loc, static_cast<uint32_t>(pending));
}

static Values unpackStruct(Emitter &e, Value value, int64_t count) {
  Values result;
  for (int64_t index = 0; index < count; ++index)
    result.push_back(LLVM::ExtractValueOp::create(e.b, e.loc, value, index));
  return result;
}

Values Emitter::ldmatrix(Value row, int count, bool transposed) {
  Type result = i32;
  if (count > 1)
    result = LLVM::LLVMStructType::getLiteral(b.getContext(),
                                              SmallVector<Type>(count, i32));
  Value matrices = NVVM::LdMatrixOp::create(
      b, loc, result, row, static_cast<uint32_t>(count),
      transposed ? NVVM::MMALayout::col : NVVM::MMALayout::row,
      NVVM::LdStMatrixShapeAttr::get(b.getContext(), 8, 8),
      NVVM::LdStMatrixEltType::B16);
  if (count == 1)
    return {matrices};
  return unpackStruct(*this, matrices, count);
}

Values Emitter::ldmatrix4(Value row, int64_t offset) {
  if (offset == 0)
    return ldmatrix(row, 4);
  std::string text = "ldmatrix.sync.aligned.m8n8.x4.shared.b16 {$0, $1, $2, "
                     "$3}, [$4+" +
                     std::to_string(offset) + "];";
  return inlinePtx(text, SmallVector<Type>(4, i32), row, /*pure=*/false);
}

Values Emitter::mma(Type element, ValueRange a, ValueRange bs,
                    ValueRange sums) {
  Values as(a), bits(bs);
  std::optional<std::array<NVVM::MMATypes, 2>> types;
  if (element.isBF16()) {
    types = {NVVM::MMATypes::bf16, NVVM::MMATypes::bf16};
  } else {
    for (Value &word : as)
      word = bitcast(word, vec(f16, 2));
    for (Value &word : bits)
      word = bitcast(word, vec(f16, 2));
    types = {NVVM::MMATypes::f16, NVVM::MMATypes::f16};
  }
  Type result =
      LLVM::LLVMStructType::getLiteral(b.getContext(), {f32, f32, f32, f32});
  Value d = NVVM::MmaOp::create(
      b, loc, result, as, bits, sums, ArrayRef<int64_t>{16, 8, 16},
      std::nullopt, std::nullopt, types,
      std::array<NVVM::MMALayout, 2>{NVVM::MMALayout::row,
                                     NVVM::MMALayout::col});
  return unpackStruct(*this, d, 4);
}

Value Emitter::permute(Value low, Value high, Value selector) {
  return NVVM::PermuteOp::create(b, loc, i32, low, high, selector,
                                 NVVM::PermuteMode::DEFAULT);
}
Value Emitter::fmaPair(Value x, Value y, Value z) {
  Type pair = vec(bf16, 2);
  return bitcast(
      intrinsic("llvm.nvvm.fma.rn.bf16x2", pair,
                {bitcast(x, pair), bitcast(y, pair), bitcast(z, pair)}),
      i32);
}
