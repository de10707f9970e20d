//===- Emitter.cpp - Short names for the IR that kernels are made of ------===//
#include "codegen/cpu/Emitter.h"

using namespace mlir;
using namespace kvc;
using namespace kvc::cpu;

Emitter::Emitter(OpBuilder builder, Location loc, const CpuTarget &target)
    : BasicEmitter(builder, loc), target(target), lanes(target.lanes) {}

//===----------------------------------------------------------------------===//
// Constants
//===----------------------------------------------------------------------===//

Value Emitter::splatReal(double value) {
  return arith::ConstantOp::create(
      b, loc, DenseElementsAttr::get(vec(f32), static_cast<float>(value)));
}
Value Emitter::broadcast(Value scalar) {
  return vector::BroadcastOp::create(b, loc, vec(scalar.getType()), scalar);
}

//===----------------------------------------------------------------------===//
// Arithmetic
//===----------------------------------------------------------------------===//

Value Emitter::maxf(Value x, Value y) {
  // The hardware's maximum: y where the two do not compare.
  return select(arith::CmpFOp::create(b, loc, arith::CmpFPredicate::OGT, x, y),
                x, y);
}
Value Emitter::sqrt(Value x) { return math::SqrtOp::create(b, loc, x); }
Value Emitter::roundEven(Value x) {
  return math::RoundEvenOp::create(b, loc, x);
}
Value Emitter::toInt(Value x, Type type) {
  return arith::FPToSIOp::create(b, loc, withElement(x.getType(), type), x);
}
Value Emitter::bitcast(Value x, Type type) {
  if (x.getType() == type)
    return x;
  if (isa<VectorType>(type))
    return vector::BitCastOp::create(b, loc, cast<VectorType>(type), x);
  return arith::BitcastOp::create(b, loc, type, x);
}

//===----------------------------------------------------------------------===//
// Functions of one variable
//===----------------------------------------------------------------------===//

Value Emitter::expUnbounded(Value x) {
  // exp(x) = 2^n * exp(r) with n = round(x / ln 2) and |r| <= ln(2)/2; ln 2 in
  // two parts keeps r exact. The degree-6 Taylor polynomial's remainder is at
  // most r^7/5040 < 1.3e-7.
  Value n = roundEven(mulf(x, splatReal(1.44269504088896340736)));
  Value r = fma(n, splatReal(-0.693145751953125), x);
  r = fma(n, splatReal(-1.42860682030941723212e-6), r);
  static constexpr double Coefficients[] = {
      1.0 / 720, 1.0 / 120, 1.0 / 24, 1.0 / 6, 0.5, 1.0, 1.0};
  Value p = splatReal(Coefficients[0]);
  for (double coefficient : llvm::ArrayRef<double>(Coefficients).drop_front())
    p = fma(p, r, splatReal(coefficient));
  // 2^n by the exponent's bits: n is within -126 .. 127 here.
  Value bits = shl(add(toInt(n, i32), integer(127, vec(i32))), 23);
  return mulf(p, bitcast(bits, vec(f32)));
}

Value Emitter::exp(Value x) {
  Value low = splatReal(-87.0), high = splatReal(88.0);
  Value tooLow =
      arith::CmpFOp::create(b, loc, arith::CmpFPredicate::OLT, x, low);
  // A NaN has to stay one: ordered minimum and maximum would hide it.
  Value clamped = select(tooLow, low, x);
  Value tooHigh =
      arith::CmpFOp::create(b, loc, arith::CmpFPredicate::OGT, x, high);
  clamped = select(tooHigh, high, clamped);
  Value result = expUnbounded(clamped);
  result = select(tooLow, splatReal(0.0), result);
  Value infinity = splatReal(std::numeric_limits<float>::infinity());
  result = select(tooHigh, infinity, result);
  Value isNan = arith::CmpFOp::create(b, loc, arith::CmpFPredicate::UNO, x, x);
  return select(isNan, x, result);
}

Value Emitter::silu(Value x) {
  return divf(x, addf(splatReal(1.0), exp(negf(x))));
}

Value Emitter::geluTanh(Value x) {
  // x/2 (1 + tanh u) = x / (1 + exp(-2u)).
  Value cube = mulf(mulf(x, x), x);
  Value u = fma(cube, splatReal(0.044715), x);
  Value scaled = mulf(u, splatReal(-2.0 * 0.79788456080286535588));
  return divf(x, addf(splatReal(1.0), exp(scaled)));
}

Value Emitter::softCap(Value x, double cap) {
  // tanh u = 1 - 2 / (1 + exp 2u): absolute error of a few roundings of 1,
  // times cap; at both ends exp becomes infinite or zero, and tanh 1 or -1.
  Value power = exp(mulf(x, splatReal(2.0 / cap)));
  Value part = divf(splatReal(-2.0 * cap), addf(splatReal(1.0), power));
  return addf(splatReal(cap), part);
}

Value Emitter::gelu(Value x) {
  // Phi(x) = 1/2 erfc(-x / sqrt 2), by Abramowitz and Stegun's 7.1.26 for
  // erfc of the magnitude: absolute error below 1.5e-7.
  Value z = mulf(absf(x), splatReal(0.70710678118654752440));
  Value t = divf(splatReal(1.0), fma(splatReal(0.3275911), z, splatReal(1.0)));
  static constexpr double Coefficients[] = {
      1.061405429, -1.453152027, 1.421413741, -0.284496736, 0.254829592};
  Value p = splatReal(Coefficients[0]);
  for (double coefficient : llvm::ArrayRef<double>(Coefficients).drop_front())
    p = fma(p, t, splatReal(coefficient));
  Value tail = mulf(mulf(mulf(p, t), exp(negf(mulf(z, z)))), splatReal(0.5));
  Value negative = arith::CmpFOp::create(b, loc, arith::CmpFPredicate::OLT, x,
                                         splatReal(0.0));
  Value phi = select(negative, tail, subf(splatReal(1.0), tail));
  return mulf(x, phi);
}

//===----------------------------------------------------------------------===//
// Lanes
//===----------------------------------------------------------------------===//

Value Emitter::shuffle(Value x, Value y, ArrayRef<int64_t> mask) {
  return vector::ShuffleOp::create(b, loc, x, y, mask);
}

Value Emitter::extract(Value vector, int64_t lane) {
  return vector::ExtractOp::create(b, loc, vector, lane);
}

Value Emitter::slice(Value vector, int64_t first, int64_t count) {
  return vector::ExtractStridedSliceOp::create(
      b, loc, vector, ArrayRef<int64_t>{first}, ArrayRef<int64_t>{count},
      ArrayRef<int64_t>{1});
}

Value Emitter::concat(ArrayRef<Value> parts) {
  if (parts.size() == 1)
    return parts[0];
  size_t half = parts.size() / 2;
  Value low = concat(parts.take_front(half));
  Value high = concat(parts.drop_front(half));
  int64_t total = cast<VectorType>(low.getType()).getDimSize(0) +
                  cast<VectorType>(high.getType()).getDimSize(0);
  return shuffle(low, high, llvm::to_vector(llvm::seq<int64_t>(0, total)));
}

Value Emitter::horizontal(Value vector, Fold fold) {
  for (int64_t width = cast<VectorType>(vector.getType()).getDimSize(0);
       width > 1; width /= 2) {
    Value low = slice(vector, 0, width / 2);
    Value high = slice(vector, width / 2, width / 2);
    vector = fold == Fold::Add ? addf(low, high) : maxf(low, high);
  }
  return extract(vector, 0);
}

Value Emitter::iota(Type element) {
  SmallVector<Attribute> values;
  for (int64_t lane = 0; lane < lanes; ++lane)
    values.push_back(b.getIntegerAttr(element, lane));
  return arith::ConstantOp::create(
      b, loc, DenseElementsAttr::get(vec(element), values));
}

//===----------------------------------------------------------------------===//
// Memory
//===----------------------------------------------------------------------===//

Value Emitter::at(Value pointer, Value bytes) {
  return LLVM::GEPOp::create(b, loc, ptr, i8, pointer, ValueRange{bytes});
}
Value Emitter::at(Value pointer, int64_t bytes) {
  return bytes ? at(pointer, c(bytes)) : pointer;
}
Value Emitter::loadMasked(VectorType type, Value pointer, Value mask,
                          int align) {
  Value zero = arith::ConstantOp::create(b, loc, b.getZeroAttr(type));
  return LLVM::MaskedLoadOp::create(b, loc, type, pointer, mask, zero, align);
}
void Emitter::storeMasked(Value value, Value pointer, Value mask, int align) {
  LLVM::MaskedStoreOp::create(b, loc, value, pointer, mask, align);
}
Value Emitter::tailMask(int64_t count) {
  SmallVector<bool> bits;
  for (int64_t lane = 0; lane < lanes; ++lane)
    bits.push_back(lane < count);
  return arith::ConstantOp::create(
      b, loc, DenseElementsAttr::get(vec(b.getI1Type()), bits));
}
void Emitter::prefetch(Value pointer) {
  LLVM::Prefetch::create(b, loc, pointer, /*rw=*/0, /*hint=*/3, /*cache=*/1);
}
Value Emitter::stack(int64_t bytes) {
  auto function =
      b.getInsertionBlock()->getParentOp()->getParentOfType<func::FuncOp>();
  if (!function)
    function = cast<func::FuncOp>(b.getInsertionBlock()->getParentOp());
  OpBuilder::InsertionGuard guard(b);
  b.setInsertionPointToStart(&function.getBody().front());
  return LLVM::AllocaOp::create(b, loc, ptr, i8, c(bytes), /*alignment=*/64);
}

Value Emitter::widen(Value stored) {
  Type type = stored.getType();
  Type element = getElementTypeOrSelf(type);
  if (element.isF32())
    return stored;
  if (element.isF16())
    return arith::ExtFOp::create(b, loc, withElement(type, f32), stored);
  // bf16 is the upper half of an f32; as integers it needs no support of the
  // target's.
  Value bits = zext(bitcast(stored, withElement(type, i16)), i32);
  return bitcast(shl(bits, 16), withElement(type, f32));
}

Value Emitter::narrow(Value floats, Type element) {
  Type type = floats.getType();
  if (element.isF32())
    return floats;
  if (element.isF16())
    return arith::TruncFOp::create(b, loc, withElement(type, f16), floats);
  // Round to nearest, ties to even, on the bits. A NaN keeps its upper half,
  // made quiet so that the carry cannot turn it into an infinity.
  Type words = withElement(type, i32);
  Value bits = bitcast(floats, words);
  Value odd = bitAnd(shr(bits, 16), 1);
  Value rounded = add(bits, add(odd, integer(0x7fff, words)));
  Value isNan =
      arith::CmpFOp::create(b, loc, arith::CmpFPredicate::UNO, floats, floats);
  Value quiet = bitOr(bits, integer(0x400000, words));
  Value upper = trunc(shr(select(isNan, quiet, rounded), 16), i16);
  return bitcast(upper, withElement(type, element));
}

Value Emitter::loadFloats(Type element, Value pointer, int align) {
  return widen(load(vec(element), pointer, align));
}

//===----------------------------------------------------------------------===//
// Control
//===----------------------------------------------------------------------===//

void Emitter::forColumns(int64_t count,
                         llvm::function_ref<void(Value, Value)> body) {
  int64_t whole = count / lanes * lanes;
  // A few registers are written out; a loop would cost more than it saves.
  if (whole <= 4 * lanes) {
    for (int64_t offset = 0; offset < whole; offset += lanes)
      body(c(offset), {});
  } else {
    loop(c(0), c(whole), lanes, [&](Value offset) { body(offset, {}); });
  }
  if (whole < count)
    body(c(whole), tailMask(count - whole));
}

Value Emitter::loadColumns(Value row, Value offset, Value mask) {
  Value pointer = at(row, mul(offset, 4));
  return mask ? loadMasked(vec(f32), pointer, mask, 4)
              : load(vec(f32), pointer, 4);
}

void Emitter::storeColumns(Value value, Value row, Value offset, Value mask) {
  Value pointer = at(row, mul(offset, 4));
  if (mask)
    storeMasked(value, pointer, mask, 4);
  else
    store(value, pointer, 4);
}
