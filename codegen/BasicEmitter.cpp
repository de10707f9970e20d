//===- BasicEmitter.cpp - Short names for what all targets' code is made of
//===//
#include "codegen/BasicEmitter.h"

using namespace mlir;
using namespace kvc;

BasicEmitter::BasicEmitter(OpBuilder builder, Location loc)
    : b(builder), loc(loc), i1(b.getI1Type()), i8(b.getI8Type()),
      i16(b.getI16Type()), i32(b.getI32Type()), i64(b.getI64Type()),
      f16(b.getF16Type()), bf16(b.getBF16Type()), f32(b.getF32Type()),
      ptr(LLVM::LLVMPointerType::get(b.getContext())) {}

//===----------------------------------------------------------------------===//
// Arithmetic
//===----------------------------------------------------------------------===//

Value BasicEmitter::integer(int64_t value, Type type) {
  APInt bits(getElementTypeOrSelf(type).getIntOrFloatBitWidth(),
             static_cast<uint64_t>(value), /*isSigned=*/false,
             /*implicitTrunc=*/true);
  if (auto vector = dyn_cast<VectorType>(type))
    return arith::ConstantOp::create(b, loc,
                                     DenseElementsAttr::get(vector, bits));
  return arith::ConstantOp::create(b, loc, IntegerAttr::get(type, bits));
}
Value BasicEmitter::real(double value) {
  return arith::ConstantOp::create(b, loc, b.getF32FloatAttr(value));
}
Value BasicEmitter::add(Value x, Value y) {
  return arith::AddIOp::create(b, loc, x, y);
}
Value BasicEmitter::add(Value x, int64_t y) {
  return y ? add(x, integer(y, x.getType())) : x;
}
Value BasicEmitter::sub(Value x, Value y) {
  return arith::SubIOp::create(b, loc, x, y);
}
Value BasicEmitter::mul(Value x, Value y) {
  return arith::MulIOp::create(b, loc, x, y);
}
Value BasicEmitter::mul(Value x, int64_t y) {
  return y == 1 ? x : mul(x, integer(y, x.getType()));
}
Value BasicEmitter::div(Value x, int64_t y) {
  return y == 1 ? x
                : Value(arith::DivUIOp::create(b, loc, x,
                                               integer(y, x.getType())));
}
Value BasicEmitter::rem(Value x, int64_t y) {
  return arith::RemUIOp::create(b, loc, x, integer(y, x.getType()));
}
Value BasicEmitter::min(Value x, Value y) {
  return arith::MinSIOp::create(b, loc, x, y);
}
Value BasicEmitter::max(Value x, Value y) {
  return arith::MaxSIOp::create(b, loc, x, y);
}
Value BasicEmitter::shr(Value x, int64_t bits) {
  return bits == 0 ? x
                   : Value(arith::ShRUIOp::create(b, loc, x,
                                                  integer(bits, x.getType())));
}
Value BasicEmitter::shl(Value x, int64_t bits) {
  return bits == 0 ? x
                   : Value(arith::ShLIOp::create(b, loc, x,
                                                 integer(bits, x.getType())));
}
Value BasicEmitter::bitAnd(Value x, int64_t mask) {
  return bitAnd(x, integer(mask, x.getType()));
}
Value BasicEmitter::bitAnd(Value x, Value y) {
  return arith::AndIOp::create(b, loc, x, y);
}
Value BasicEmitter::bitOr(Value x, Value y) {
  return arith::OrIOp::create(b, loc, x, y);
}
Value BasicEmitter::bitOr(Value x, int64_t mask) {
  return bitOr(x, integer(mask, x.getType()));
}
Value BasicEmitter::bitXor(Value x, Value y) {
  return arith::XOrIOp::create(b, loc, x, y);
}
Value BasicEmitter::bitXor(Value x, int64_t mask) {
  return bitXor(x, integer(mask, x.getType()));
}

static Value compare(BasicEmitter &e, arith::CmpIPredicate predicate, Value x,
                     Value y) {
  return arith::CmpIOp::create(e.b, e.loc, predicate, x, y);
}
Value BasicEmitter::less(Value x, Value y) {
  return compare(*this, arith::CmpIPredicate::slt, x, y);
}
Value BasicEmitter::less(Value x, int64_t y) {
  return less(x, integer(y, x.getType()));
}
Value BasicEmitter::equal(Value x, Value y) {
  return compare(*this, arith::CmpIPredicate::eq, x, y);
}
Value BasicEmitter::equal(Value x, int64_t y) {
  return equal(x, integer(y, x.getType()));
}
Value BasicEmitter::select(Value condition, Value x, Value y) {
  return arith::SelectOp::create(b, loc, condition, x, y);
}

Value BasicEmitter::addf(Value x, Value y) {
  return arith::AddFOp::create(b, loc, x, y);
}
Value BasicEmitter::subf(Value x, Value y) {
  return arith::SubFOp::create(b, loc, x, y);
}
Value BasicEmitter::mulf(Value x, Value y) {
  return arith::MulFOp::create(b, loc, x, y);
}
Value BasicEmitter::divf(Value x, Value y) {
  return arith::DivFOp::create(b, loc, x, y);
}
Value BasicEmitter::negf(Value x) { return arith::NegFOp::create(b, loc, x); }
Value BasicEmitter::absf(Value x) { return math::AbsFOp::create(b, loc, x); }
Value BasicEmitter::fma(Value x, Value y, Value z) {
  return math::FmaOp::create(b, loc, x, y, z);
}
Value BasicEmitter::lessf(Value x, Value y) {
  return arith::CmpFOp::create(b, loc, arith::CmpFPredicate::OLT, x, y);
}

//===----------------------------------------------------------------------===//
// Conversions and memory
//===----------------------------------------------------------------------===//

Type BasicEmitter::withElement(Type shape, Type element) {
  auto vector = dyn_cast<VectorType>(shape);
  return vector ? Type(VectorType::get(vector.getShape(), element)) : element;
}
Value BasicEmitter::toFloat(Value x) {
  return arith::SIToFPOp::create(b, loc, withElement(x.getType(), f32), x);
}
Value BasicEmitter::sext(Value x, Type type) {
  Type to = withElement(x.getType(), type);
  return x.getType() == to ? x : Value(arith::ExtSIOp::create(b, loc, to, x));
}
Value BasicEmitter::zext(Value x, Type type) {
  Type to = withElement(x.getType(), type);
  return x.getType() == to ? x : Value(arith::ExtUIOp::create(b, loc, to, x));
}
Value BasicEmitter::trunc(Value x, Type type) {
  Type to = withElement(x.getType(), type);
  return x.getType() == to ? x : Value(arith::TruncIOp::create(b, loc, to, x));
}
Value BasicEmitter::load(Type type, Value pointer, int align) {
  return LLVM::LoadOp::create(b, loc, type, pointer, align);
}
void BasicEmitter::store(Value value, Value pointer, int align) {
  LLVM::StoreOp::create(b, loc, value, pointer, align);
}

//===----------------------------------------------------------------------===//
// Control
//===----------------------------------------------------------------------===//

void BasicEmitter::loop(Value low, Value high, Value step,
                        llvm::function_ref<void(Value)> body) {
  auto op = scf::ForOp::create(b, loc, low, high, step);
  OpBuilder::InsertionGuard guard(b);
  b.setInsertionPoint(op.getBody()->getTerminator());
  body(op.getInductionVar());
}

void BasicEmitter::loop(Value low, Value high, int64_t step,
                        llvm::function_ref<void(Value)> body) {
  loop(low, high, integer(step, low.getType()), body);
}

Values BasicEmitter::loop(Value low, Value high, Value step, ValueRange inits,
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

Values BasicEmitter::loop(Value low, Value high, int64_t step, ValueRange inits,
                          llvm::function_ref<Values(Value, ValueRange)> body) {
  return loop(low, high, integer(step, low.getType()), inits, body);
}

void BasicEmitter::ifThen(Value condition, llvm::function_ref<void()> body) {
  auto op = scf::IfOp::create(b, loc, condition, /*withElseRegion=*/false);
  OpBuilder::InsertionGuard guard(b);
  b.setInsertionPoint(op.thenBlock()->getTerminator());
  body();
}

void BasicEmitter::ifElse(Value condition, llvm::function_ref<void()> then,
                          llvm::function_ref<void()> otherwise) {
  auto op = scf::IfOp::create(b, loc, condition, /*withElseRegion=*/true);
  OpBuilder::InsertionGuard guard(b);
  b.setInsertionPoint(op.thenBlock()->getTerminator());
  then();
  b.setInsertionPoint(op.elseBlock()->getTerminator());
  otherwise();
}

Values BasicEmitter::ifElse(Value condition, TypeRange types,
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
