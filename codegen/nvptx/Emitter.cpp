//===- Emitter.cpp - Short names for the IR that kernels are made of ------===//
#include "codegen/nvptx/Emitter.h"

using namespace mlir;
using namespace kvc;
using namespace kvc::nvptx;

Emitter::Emitter(OpBuilder builder, Location loc, const NvptxTarget &target)
    : b(builder), loc(loc), target(target), i1(b.getI1Type()),
      i8(b.getI8Type()), i16(b.getI16Type()), i32(b.getI32Type()),
      i64(b.getI64Type()), f16(b.getF16Type()), bf16(b.getBF16Type()),
      f32(b.getF32Type()), ptr(LLVM::LLVMPointerType::get(b.getContext())),
      global(LLVM::LLVMPointerType::get(b.getContext(), 1)),
      shared(LLVM::LLVMPointerType::get(b.getContext(), 3)) {}

//===----------------------------------------------------------------------===//
// Arithmetic
//===----------------------------------------------------------------------===//

Value Emitter::integer(int64_t value, Type type) {
  return arith::ConstantOp::create(
      b, loc,
      IntegerAttr::get(type, APInt(type.getIntOrFloatBitWidth(),
                                   static_cast<uint64_t>(value),
                                   /*isSigned=*/false,
                                   /*implicitTrunc=*/true)));
}
Value Emitter::real(double value) {
  return arith::ConstantOp::create(b, loc, b.getF32FloatAttr(value));
}
Value Emitter::add(Value x, Value y) {
  return arith::AddIOp::create(b, loc, x, y);
}
Value Emitter::add(Value x, int64_t y) {
  return y ? add(x, integer(y, x.getType())) : x;
}
Value Emitter::sub(Value x, Value y) {
  return arith::SubIOp::create(b, loc, x, y);
}
Value Emitter::mul(Value x, Value y) {
  return arith::MulIOp::create(b, loc, x, y);
}
Value Emitter::mul(Value x, int64_t y) {
  return y == 1 ? x : mul(x, integer(y, x.getType()));
}
Value Emitter::div(Value x, int64_t y) {
  return y == 1 ? x
                : Value(arith::DivUIOp::create(b, loc, x,
                                               integer(y, x.getType())));
}
Value Emitter::rem(Value x, int64_t y) {
  return arith::RemUIOp::create(b, loc, x, integer(y, x.getType()));
}
Value Emitter::min(Value x, Value y) {
  return arith::MinSIOp::create(b, loc, x, y);
}
Value Emitter::max(Value x, Value y) {
  return arith::MaxSIOp::create(b, loc, x, y);
}
Value Emitter::shr(Value x, int64_t bits) {
  return bits == 0 ? x
                   : Value(arith::ShRUIOp::create(b, loc, x,
                                                  integer(bits, x.getType())));
}
Value Emitter::shl(Value x, int64_t bits) {
  return bits == 0 ? x
                   : Value(arith::ShLIOp::create(b, loc, x,
                                                 integer(bits, x.getType())));
}
Value Emitter::bitAnd(Value x, int64_t mask) {
  return bitAnd(x, integer(mask, x.getType()));
}
Value Emitter::bitAnd(Value x, Value y) {
  return arith::AndIOp::create(b, loc, x, y);
}
Value Emitter::bitOr(Value x, Value y) {
  return arith::OrIOp::create(b, loc, x, y);
}
Value Emitter::bitOr(Value x, int64_t mask) {
  return bitOr(x, integer(mask, x.getType()));
}
Value Emitter::bitXor(Value x, Value y) {
  return arith::XOrIOp::create(b, loc, x, y);
}
Value Emitter::bitXor(Value x, int64_t mask) {
  return bitXor(x, integer(mask, x.getType()));
}
Value Emitter::notI1(Value x) { return bitXor(x, 1); }

static Value compare(Emitter &e, arith::CmpIPredicate predicate, Value x,
                     Value y) {
  return arith::CmpIOp::create(e.b, e.loc, predicate, x, y);
}
Value Emitter::less(Value x, Value y) {
  return compare(*this, arith::CmpIPredicate::slt, x, y);
}
Value Emitter::less(Value x, int64_t y) {
  return less(x, integer(y, x.getType()));
}
Value Emitter::equal(Value x, Value y) {
  return compare(*this, arith::CmpIPredicate::eq, x, y);
}
Value Emitter::equal(Value x, int64_t y) {
  return equal(x, integer(y, x.getType()));
}
Value Emitter::select(Value condition, Value x, Value y) {
  return arith::SelectOp::create(b, loc, condition, x, y);
}

Value Emitter::addf(Value x, Value y) {
  return arith::AddFOp::create(b, loc, x, y);
}
Value Emitter::subf(Value x, Value y) {
  return arith::SubFOp::create(b, loc, x, y);
}
Value Emitter::mulf(Value x, Value y) {
  return arith::MulFOp::create(b, loc, x, y);
}
Value Emitter::divf(Value x, Value y) {
  return arith::DivFOp::create(b, loc, x, y);
}
Value Emitter::maxf(Value x, Value y) {
  return arith::MaxNumFOp::create(b, loc, x, y);
}
Value Emitter::negf(Value x) { return arith::NegFOp::create(b, loc, x); }
Value Emitter::absf(Value x) { return math::AbsFOp::create(b, loc, x); }
Value Emitter::fma(Value x, Value y, Value z) {
  return math::FmaOp::create(b, loc, x, y, z);
}
Value Emitter::lessf(Value x, Value y) {
  return arith::CmpFOp::create(b, loc, arith::CmpFPredicate::OLT, x, y);
}

Value Emitter::ex2(Value x) {
  return intrinsic("llvm.nvvm.ex2.approx.ftz.f32", f32, x);
}
Value Emitter::lg2(Value x) {
  return intrinsic("llvm.nvvm.lg2.approx.f", f32, x);
}
Value Emitter::rcp(Value x) {
  return NVVM::RcpApproxFtzF32Op::create(b, loc, f32, x);
}
Value Emitter::rsqrt(Value x) {
  return intrinsic("llvm.nvvm.rsqrt.approx.f", f32, x);
}
Value Emitter::exp(Value x) {
  return ex2(mulf(x, real(1.44269504088896340736)));
}

Value Emitter::silu(Value x) {
  return mulf(x, rcp(addf(real(1.0), exp(negf(x)))));
}

Value Emitter::softCap(Value x, double cap) {
  // tanh u = 1 - 2 / (1 + exp 2u): absolute error of a few roundings of 1,
  // times cap; at both ends exp becomes infinite or zero, and tanh 1 or -1.
  Value power = exp(mulf(x, real(2.0 / cap)));
  return fma(rcp(addf(real(1.0), power)), real(-2.0 * cap), real(cap));
}

Value Emitter::geluTanh(Value x) {
  // x/2 (1 + tanh u) = x / (1 + exp(-2u)).
  Value cube = mulf(mulf(x, x), x);
  Value u = fma(cube, real(0.044715), x);
  Value scaled = mulf(u, real(-2.0 * 0.79788456080286535588));
  return mulf(x, rcp(addf(real(1.0), exp(scaled))));
}

Value Emitter::gelu(Value x) {
  // Phi(x) = 1/2 erfc(-x / sqrt 2), by Abramowitz and Stegun's 7.1.26 for
  // erfc of the magnitude: absolute error below 1.5e-7.
  Value z = mulf(absf(x), real(0.70710678118654752440));
  Value t = rcp(fma(real(0.3275911), z, real(1.0)));
  static constexpr double Coefficients[] = {
      1.061405429, -1.453152027, 1.421413741, -0.284496736, 0.254829592};
  Value p = real(Coefficients[0]);
  for (double coefficient : llvm::ArrayRef<double>(Coefficients).drop_front())
    p = fma(p, t, real(coefficient));
  Value tail = mulf(mulf(mulf(p, t), exp(negf(mulf(z, z)))), real(0.5));
  Value phi = select(lessf(x, real(0.0)), tail, subf(real(1.0), tail));
  return mulf(x, phi);
}

Value Emitter::mapped(Operation *op, Value x) {
  if (auto round = dyn_cast<RoundOp>(op))
    return this->round(round.getElement(), x);
  if (auto cap = dyn_cast<SoftCapOp>(op))
    return softCap(x, cap.getCap().convertToDouble());
  return activation(cast<ActivationOp>(op).getKind(), x);
}

Value Emitter::activation(ActivationKind kind, Value x) {
  switch (kind) {
  case ActivationKind::Silu:
    return silu(x);
  case ActivationKind::Gelu:
    return gelu(x);
  case ActivationKind::GeluTanh:
    return geluTanh(x);
  }
  llvm_unreachable("every kind has a function");
}

//===----------------------------------------------------------------------===//
// Conversions
//===----------------------------------------------------------------------===//

Value Emitter::toFloat(Value x) {
  return arith::SIToFPOp::create(b, loc, f32, x);
}
Value Emitter::sext(Value x, Type type) {
  return x.getType() == type ? x
                             : Value(arith::ExtSIOp::create(b, loc, type, x));
}
Value Emitter::zext(Value x, Type type) {
  return x.getType() == type ? x
                             : Value(arith::ExtUIOp::create(b, loc, type, x));
}
Value Emitter::trunc(Value x, Type type) {
  return x.getType() == type ? x
                             : Value(arith::TruncIOp::create(b, loc, type, x));
}
Value Emitter::bitcast(Value x, Type type) {
  return x.getType() == type ? x
                             : Value(LLVM::BitcastOp::create(b, loc, type, x));
}
Value Emitter::i64Of(Value x) { return sext(x, i64); }

Value Emitter::pack(Type element, Value low, Value high) {
  Type pair = vec(element, 2);
  Value result;
  if (element.isBF16())
    result = NVVM::ConvertF32x2ToBF16x2Op::create(
        b, loc, pair, high, low, Value(), NVVM::FPRoundingMode::RN);
  else
    result = NVVM::ConvertF32x2ToF16x2Op::create(
        b, loc, pair, high, low, Value(), NVVM::FPRoundingMode::RN);
  return bitcast(result, i32);
}
Value Emitter::low(Type element, Value pair) {
  if (element.isBF16())
    return bitcast(shl(pair, 16), f32);
  return widen(bitcast(trunc(pair, i16), f16));
}
Value Emitter::high(Type element, Value pair) {
  if (element.isBF16())
    return bitcast(bitAnd(pair, 0xffff0000), f32);
  return widen(bitcast(trunc(shr(pair, 16), i16), f16));
}
Value Emitter::round(Type element, Value x) {
  if (element.isF32())
    return x;
  return low(element, pack(element, x, real(0.0)));
}
Value Emitter::widen(Value stored) {
  Type element = stored.getType();
  if (element.isF32())
    return stored;
  if (element.isBF16())
    return bitcast(shl(zext(bitcast(stored, i16), i32), 16), f32);
  return arith::ExtFOp::create(b, loc, f32, stored);
}
Value Emitter::narrow(Type element, Value x) {
  if (element.isF32())
    return x;
  return bitcast(trunc(pack(element, x, real(0.0)), i16), element);
}

//===----------------------------------------------------------------------===//
// Control
//===----------------------------------------------------------------------===//

void Emitter::loop(Value low, Value high, Value step,
                   llvm::function_ref<void(Value)> body) {
  auto op = scf::ForOp::create(b, loc, low, high, step);
  OpBuilder::InsertionGuard guard(b);
  b.setInsertionPoint(op.getBody()->getTerminator());
  body(op.getInductionVar());
}

void Emitter::loop(Value low, Value high, int64_t step,
                   llvm::function_ref<void(Value)> body) {
  loop(low, high, integer(step, low.getType()), body);
}

Values Emitter::loop(Value low, Value high, Value step, ValueRange inits,
                     llvm::function_ref<Values(Value, ValueRange)> body) {
  auto op = scf::ForOp::create(b, loc, low, high, step, inits);
  OpBuilder::InsertionGuard guard(b);
  b.setInsertionPointToEnd(op.getBody());
  Values next = body(op.getInductionVar(), op.getRegionIterArgs());
  // Without carried values the builder has made the terminator already.
  if (!inits.empty())
    scf::YieldOp::create(b, loc, next);
  return Values(op.getResults());
}

void Emitter::ifThen(Value condition, llvm::function_ref<void()> body) {
  auto op = scf::IfOp::create(b, loc, condition, /*withElseRegion=*/false);
  OpBuilder::InsertionGuard guard(b);
  b.setInsertionPoint(op.thenBlock()->getTerminator());
  body();
}

void Emitter::ifElse(Value condition, llvm::function_ref<void()> then,
                     llvm::function_ref<void()> otherwise) {
  auto op = scf::IfOp::create(b, loc, condition, /*withElseRegion=*/true);
  OpBuilder::InsertionGuard guard(b);
  b.setInsertionPoint(op.thenBlock()->getTerminator());
  then();
  b.setInsertionPoint(op.elseBlock()->getTerminator());
  otherwise();
}

Values Emitter::ifElse(Value condition, TypeRange types,
                       llvm::function_ref<Values()> then,
                       llvm::function_ref<Values()> otherwise) {
  auto op =
      scf::IfOp::create(b, loc, types, condition, /*withElseRegion=*/true);
  OpBuilder::InsertionGuard guard(b);
  b.setInsertionPointToEnd(op.thenBlock());
  scf::YieldOp::create(b, loc, then());
  b.setInsertionPointToEnd(op.elseBlock());
  scf::YieldOp::create(b, loc, otherwise());
  return Values(op.getResults());
}
