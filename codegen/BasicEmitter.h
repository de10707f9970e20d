//===- BasicEmitter.h - Short names for what all targets' code is made of -===//
//
// Arithmetic, comparisons and control that mean the same in every target's
// code: scf, arith, math and LLVM ops, on scalars or elementwise on vectors. A
// target's own Emitter adds its types, its memory and what only its processor
// has.
//
//===----------------------------------------------------------------------===//
#ifndef KVC_CODEGEN_BASICEMITTER_H
#define KVC_CODEGEN_BASICEMITTER_H

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/IR/Builders.h"

namespace kvc {

using mlir::Type;
using mlir::Value;
using mlir::ValueRange;
using Values = llvm::SmallVector<Value>;

class BasicEmitter {
public:
  BasicEmitter(mlir::OpBuilder builder, mlir::Location loc);

  mlir::OpBuilder b;
  mlir::Location loc;
  const Type i1, i8, i16, i32, i64, f16, bf16, f32;
  const Type ptr;

  mlir::VectorType vec(Type element, int64_t n) const {
    return mlir::VectorType::get({n}, element);
  }

  // Constants. Of a vector type, all elements are `value`; what a type's bits
  // cannot hold is cut off.
  Value integer(int64_t value, Type type);
  Value real(double value);

  // Arithmetic on integers of one type.
  Value add(Value x, Value y);
  Value add(Value x, int64_t y);
  Value sub(Value x, Value y);
  Value mul(Value x, Value y);
  Value mul(Value x, int64_t y);
  Value div(Value x, int64_t y);    // unsigned
  Value rem(Value x, int64_t y);    // unsigned
  Value min(Value x, Value y);      // signed
  Value max(Value x, Value y);      // signed
  Value shr(Value x, int64_t bits); // logical
  Value shl(Value x, int64_t bits);
  Value bitAnd(Value x, Value y);
  Value bitAnd(Value x, int64_t mask);
  Value bitOr(Value x, Value y);
  Value bitOr(Value x, int64_t mask);
  Value bitXor(Value x, Value y);
  Value bitXor(Value x, int64_t mask);

  // Comparisons, i1.
  Value less(Value x, Value y); // signed
  Value less(Value x, int64_t y);
  Value equal(Value x, Value y);
  Value equal(Value x, int64_t y);
  Value select(Value condition, Value x, Value y);

  // Arithmetic on f32, each rounded to nearest: no fast-math flag anywhere.
  Value addf(Value x, Value y);
  Value subf(Value x, Value y);
  Value mulf(Value x, Value y);
  Value divf(Value x, Value y);
  Value negf(Value x);
  Value absf(Value x);
  Value fma(Value x, Value y, Value z); // x * y + z, rounded once
  Value lessf(Value x, Value y);        // ordered

  // Conversions; a vector's elements each. `type` is an element's.
  Value toFloat(Value x); // signed i32 -> f32
  Value sext(Value x, Type type);
  Value zext(Value x, Type type);
  Value trunc(Value x, Type type);

  Value load(Type type, Value pointer, int align);
  void store(Value value, Value pointer, int align);

  // Control.
  void loop(Value low, Value high, Value step,
            llvm::function_ref<void(Value)> body);
  void loop(Value low, Value high, int64_t step,
            llvm::function_ref<void(Value)> body);
  Values loop(Value low, Value high, Value step, ValueRange inits,
              llvm::function_ref<Values(Value, ValueRange)> body);
  Values loop(Value low, Value high, int64_t step, ValueRange inits,
              llvm::function_ref<Values(Value, ValueRange)> body);
  void ifThen(Value condition, llvm::function_ref<void()> body);
  void ifElse(Value condition, llvm::function_ref<void()> then,
              llvm::function_ref<void()> otherwise);
  Values ifElse(Value condition, mlir::TypeRange types,
                llvm::function_ref<Values()> then,
                llvm::function_ref<Values()> otherwise);

protected:
  /// `element`, or a vector of it in the shape of `shape`.
  static Type withElement(Type shape, Type element);
};

} // namespace kvc

#endif // KVC_CODEGEN_BASICEMITTER_H
