//===- Emitter.cpp - Short names for the IR that kernels are made of ------===//
#include "codegen/nvptx/Emitter.h"

using namespace mlir;
using namespace kvc;
using namespace kvc::nvptx;

Emitter::Emitter(OpBuilder builder, Location loc, const NvptxTarget &target)
    : BasicEmitter(builder, loc), target(target),
      global(LLVM::LLVMPointerType::get(b.getContext(), 1)),
      shared(LLVM::LLVMPointerType::get(b.getContext(), 3)) {}

Value Emitter::unused(Type type) {
  return LLVM::PoisonOp::create(b, loc, type);
}

//===----------------------------------------------------------------------===//
// Arithmetic
//===----------------------------------------------------------------------===//

Value Emitter::maxf(Value x, Value y) {
  return arith::MaxNumFOp::create(b, loc, x, y);
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

Value Emitter::bitcast(Value x, Type type) {
  return x.getType() == type ? x
                             : Value(LLVM::BitcastOp::create(b, loc, type, x));
}
Value Emitter::i64Of(Value x) { return sext(x, i64); }

Value Emitter::pack(Type element, Value low, Value high) {
  auto unrounded = [&](Value x) {
    auto found = rounded.find(x);
    bool same =
        found != rounded.end() && found->second.stored.getType() == element;
    return same ? found->second.original : x;
  };
  low = unrounded(low);
  high = unrounded(high);
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
  Value stored = narrow(element, x);
  Value result = widen(stored);
  rounded[result] = {x, stored};
  return result;
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
  auto found = rounded.find(x);
  if (found != rounded.end() && found->second.stored.getType() == element)
    return found->second.stored;
  return arith::TruncFOp::create(b, loc, element, x);
}
