//===- Emitter.h - Short names for the IR that kernels are made of --------===//
//
// Kernels are written in func, scf, arith, math, vector and llvm (pointers,
// loads, stores). Integers are i64, so that addresses need no casts; vectors
// have one dimension and a register's width.
//
//===----------------------------------------------------------------------===//
#ifndef KVC_CODEGEN_CPU_EMITTER_H
#define KVC_CODEGEN_CPU_EMITTER_H

#include "codegen/cpu/CpuTarget.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "mlir/IR/Builders.h"

namespace kvc::cpu {

using mlir::Type;
using mlir::Value;
using mlir::ValueRange;

class Emitter {
public:
  Emitter(mlir::OpBuilder builder, mlir::Location loc, const CpuTarget &target);

  mlir::OpBuilder b;
  mlir::Location loc;
  const CpuTarget &target;
  const int lanes;
  const Type i8, i16, i32, i64, f16, f32, ptr;

  // Types of registers: `lanes` elements, four bytes each.
  mlir::VectorType vec(Type element) const { return vec(element, lanes); }
  mlir::VectorType vec(Type element, int64_t n) const {
    return mlir::VectorType::get({n}, element);
  }

  // Constants.
  Value c(int64_t value) { return integer(value, i64); }
  Value integer(int64_t value, Type type);
  Value real(double value);
  /// All elements of `type` (scalar or vector) are `value`.
  Value splatInt(int64_t value, Type type);
  Value splatReal(double value);
  Value broadcast(Value scalar);

  // Arithmetic on i64, or elementwise on integer vectors.
  Value add(Value x, Value y);
  Value add(Value x, int64_t y) { return y ? add(x, c(y)) : x; }
  Value sub(Value x, Value y);
  Value mul(Value x, Value y);
  Value mul(Value x, int64_t y) { return y == 1 ? x : mul(x, c(y)); }
  Value div(Value x, int64_t y);    // unsigned
  Value rem(Value x, int64_t y);    // unsigned
  Value min(Value x, Value y);      // signed
  Value max(Value x, Value y);      // signed
  Value less(Value x, Value y);     // signed, i1
  Value shr(Value x, int64_t bits); // logical, any integer vector
  Value shl(Value x, int64_t bits);
  Value bitAnd(Value x, int64_t mask);
  Value bitOr(Value x, Value y);
  Value bitXor(Value x, int64_t mask);

  // Arithmetic on f32, scalar or vector, without any fast-math flag.
  Value addf(Value x, Value y);
  Value subf(Value x, Value y);
  Value mulf(Value x, Value y);
  Value divf(Value x, Value y);
  Value maxf(Value x, Value y);
  Value negf(Value x);
  Value absf(Value x);
  Value sqrt(Value x);
  Value fma(Value x, Value y, Value z); // x * y + z, rounded once
  Value roundEven(Value x);
  Value select(Value condition, Value x, Value y);
  Value toFloat(Value x);          // signed i32 -> f32
  Value toInt(Value x, Type type); // f32 -> signed integers
  Value sext(Value x, Type type);
  Value zext(Value x, Type type);
  Value trunc(Value x, Type type);
  Value bitcast(Value x, Type type);

  // exp, and what is made of it: accurate to 2 units in the last place of f32
  // over the range where the result is normal, 0 below it.
  Value exp(Value x);
  Value silu(Value x);
  Value gelu(Value x);
  Value geluTanh(Value x);
  Value softCap(Value x, double cap);

  // Folds a vector's lanes with a fixed tree of shuffles: halves onto halves.
  enum class Fold { Add, Max };
  Value horizontal(Value vector, Fold fold);
  Value iota(Type element); // 0, 1, ..., lanes-1 as integers
  Value shuffle(Value x, Value y, llvm::ArrayRef<int64_t> mask);
  Value extract(Value vector, int64_t lane);
  Value slice(Value vector, int64_t first, int64_t count);
  Value concat(llvm::ArrayRef<Value> parts);

  // Memory. Offsets are bytes; alignments are bytes too.
  Value at(Value pointer, Value bytes);
  Value at(Value pointer, int64_t bytes);
  Value load(Type type, Value pointer, int align);
  void store(Value value, Value pointer, int align);
  Value loadMasked(mlir::VectorType type, Value pointer, Value mask, int align);
  void storeMasked(Value value, Value pointer, Value mask, int align);
  /// The first `count` of `lanes` lanes.
  Value tailMask(int64_t count);
  void prefetch(Value pointer);
  /// `bytes` on the stack, 64-byte aligned, allocated once in the function's
  /// entry block.
  Value stack(int64_t bytes);

  // f32 vectors from and to stored elements (f32, f16 or bf16).
  Value loadFloats(Type element, Value pointer, int align);
  Value widen(Value stored);                // vector or scalar of f16/bf16 bits
  Value narrow(Value floats, Type element); // rounds to nearest even

  // Control.
  void loop(Value low, Value high, int64_t step,
            llvm::function_ref<void(Value)> body);
  llvm::SmallVector<Value>
  loop(Value low, Value high, int64_t step, ValueRange inits,
       llvm::function_ref<llvm::SmallVector<Value>(Value, ValueRange)> body);
  void ifThen(Value condition, llvm::function_ref<void()> body);

  /// Runs `body(offset, mask)` over `count` f32 columns, a register at a time;
  /// the mask is null for whole registers.
  void forColumns(int64_t count, llvm::function_ref<void(Value, Value)> body);
  /// f32 columns of a row, `offset` elements from `row`.
  Value loadColumns(Value row, Value offset, Value mask);
  void storeColumns(Value value, Value row, Value offset, Value mask);

  /// For each row, the sum over `groups` groups of four codes and four
  /// activations in each 32-bit lane: sum (code - zero) * x. code(group) is a
  /// register of unsigned bytes not above `maxCode`, x(row, group) one of
  /// signed bytes within +-127, xSums[row] the i32 sum of the row's
  /// activations.
  llvm::SmallVector<Value>
  codeDots(int groups, llvm::function_ref<Value(int)> code,
           llvm::ArrayRef<Value> xSums,
           llvm::function_ref<Value(size_t row, int group)> x, int maxCode,
           int zero);
  /// table[code] for bytes below 16, in every byte of a register; the table's
  /// values are bytes.
  Value lookup16(Value codes, llvm::ArrayRef<uint8_t> table);

private:
  Value call(llvm::StringRef intrinsic, Type result, ValueRange operands);
  /// Calls an intrinsic of nativeBits on registers of any multiple of it.
  /// `name` gives the intrinsic of a width.
  Value callNative(llvm::function_ref<std::string(int bits)> name,
                   mlir::VectorType result, ValueRange operands);
  Value expUnbounded(Value x);
};

} // namespace kvc::cpu

#endif // KVC_CODEGEN_CPU_EMITTER_H
