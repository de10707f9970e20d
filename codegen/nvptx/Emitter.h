//===- Emitter.h - Short names for the IR that kernels are made of --------===//
//
// Kernels are written in scf, arith, math, LLVM (pointers, loads, stores) and
// NVVM. Numbers are i32; only addresses in global memory are 64 bits wide, so
// offsets are widened where they meet a pointer. Pointers carry their space:
// `global` or `shared`.
//
//===----------------------------------------------------------------------===//
#ifndef KVC_CODEGEN_NVPTX_EMITTER_H
#define KVC_CODEGEN_NVPTX_EMITTER_H

#include "codegen/nvptx/NvptxTarget.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/LLVMIR/NVVMDialect.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/IR/Builders.h"

namespace kvc::nvptx {

using mlir::Type;
using mlir::Value;
using mlir::ValueRange;
using Values = llvm::SmallVector<Value>;

class Emitter {
public:
  Emitter(mlir::OpBuilder builder, mlir::Location loc,
          const NvptxTarget &target);

  mlir::OpBuilder b;
  mlir::Location loc;
  const NvptxTarget &target;
  const Type i1, i8, i16, i32, i64, f16, bf16, f32;
  const Type ptr, global, shared; // generic, address spaces 1 and 3

  mlir::VectorType vec(Type element, int64_t n) const {
    return mlir::VectorType::get({n}, element);
  }

  // Constants.
  Value c(int64_t value) { return integer(value, i32); }
  Value c64(int64_t value) { return integer(value, i64); }
  Value integer(int64_t value, Type type);
  Value real(double value);

  // Arithmetic on integers of one type, i32 or i64.
  Value add(Value x, Value y);
  Value add(Value x, int64_t y);
  Value sub(Value x, Value y);
  Value mul(Value x, Value y);
  Value mul(Value x, int64_t y);
  Value div(Value x, int64_t y); // unsigned
  Value rem(Value x, int64_t y); // unsigned
  Value min(Value x, Value y);   // signed
  Value max(Value x, Value y);   // signed
  Value shr(Value x, int64_t bits);
  Value shl(Value x, int64_t bits);
  Value bitAnd(Value x, int64_t mask);
  Value bitAnd(Value x, Value y);
  Value bitOr(Value x, Value y);
  Value bitOr(Value x, int64_t mask);
  Value bitXor(Value x, Value y);
  Value bitXor(Value x, int64_t mask);
  Value notI1(Value x);

  // Comparisons, i1.
  Value less(Value x, Value y); // signed
  Value less(Value x, int64_t y);
  Value equal(Value x, Value y);
  Value equal(Value x, int64_t y);
  Value both(Value x, Value y) { return bitAnd(x, y); }
  Value select(Value condition, Value x, Value y);

  // Arithmetic on f32, each rounded to nearest: no fast-math flag anywhere, and
  // the back end contracts nothing.
  Value addf(Value x, Value y);
  Value subf(Value x, Value y);
  Value mulf(Value x, Value y);
  Value divf(Value x, Value y); // div.rn: slow and exact
  Value maxf(Value x, Value y); // NaN only where both are
  Value negf(Value x);
  Value absf(Value x);
  Value fma(Value x, Value y, Value z); // x * y + z, rounded once
  Value lessf(Value x, Value y);        // ordered
  Value ex2(Value x);                   // 2^x, approximate
  Value lg2(Value x);                   // approximate
  Value rcp(Value x);                   // approximate
  Value rsqrt(Value x);                 // approximate
  Value exp(Value x);                   // by ex2
  Value silu(Value x);
  Value gelu(Value x);
  Value geluTanh(Value x);
  Value softCap(Value x, double cap);
  Value activation(ActivationKind kind, Value x);
  /// What an op makes of a value by itself: activation, soft_cap, round.
  Value mapped(mlir::Operation *op, Value x);

  // Conversions.
  Value toFloat(Value x); // signed i32 -> f32
  Value sext(Value x, Type type);
  Value zext(Value x, Type type);
  Value trunc(Value x, Type type);
  Value bitcast(Value x, Type type);
  Value i64Of(Value x);                            // sign-extends an i32
  Value pack(Type element, Value low, Value high); // two f32 -> i32 of bf16/f16
  Value low(Type element, Value pair);  // of an i32 of two bf16/f16, as f32
  Value high(Type element, Value pair); // its upper half
  /// f32 rounded to bf16 or f16 and back.
  Value round(Type element, Value x);
  /// A scalar f32 from and to its stored form (f32, bf16 or f16).
  Value widen(Value stored);
  Value narrow(Type element, Value x);

  // Memory. `bytes` is an i32 or i64 value or a constant.
  Value at(Value pointer, Value bytes);
  Value at(Value pointer, int64_t bytes);
  Value load(Type type, Value pointer, int align);
  void store(Value value, Value pointer, int align);
  /// `words` (1, 2 or 4) consecutive i32 in one access of 4 * words bytes.
  Values loadWords(Value pointer, int words);
  void storeWords(ValueRange words, Value pointer);
  /// Immutable weights, past the first-level cache. It stays where it is
  /// written: above griddepcontrol.wait, if so. `words` of 0 loads two bytes.
  /// Where `predicate` is given and false, nothing is read and the results mean
  /// nothing.
  Values loadWeights(Value pointer, int64_t bytes, int words,
                     Value predicate = {});
  /// The same pointer, of which the optimiser knows nothing: it shall not make
  /// loop invariants of sums with it, which cost a register each.
  Value opaque(Value pointer);
  Value extract(Value vector, int64_t lane);
  /// A constant i64 array of the module's at `index`.
  Value tableEntry(mlir::LLVM::GlobalOp table, Value index);

  // Where a thread is, i32.
  Value tid(); // x
  Value ctaid(int dimension);
  Value nctaid(int dimension);
  Value lane();
  Value warp(); // the same in all lanes, and known to be so

  // Threads together.
  void barrier(); // of the block
  void syncWarp();
  Value shuffleXor(Value x, int mask);    // i32 or f32
  Value shuffleFrom(Value x, Value lane); // i32 or f32
  /// Butterflies over groups of `width` consecutive lanes: every lane gets the
  /// same bits.
  Value sumLanes(Value x, int width = 32);
  Value maxLanes(Value x, int width = 32);
  void waitForPrevious(); // griddepcontrol.wait, sm_90 and later
  void launchNext();      // griddepcontrol.launch_dependents
  void fence();           // acq_rel, the whole device
  Value atomicAdd(Value pointer, Value x); // relaxed, i32, the whole device

  // Copies and matrices.
  /// `bytes` (4, 8 or 16) from global to shared; where `given` is not null
  /// only its first `given` bytes are read, the rest becomes zero.
  void copyAsync(Value to, Value from, int bytes, Value given = {});
  void commitCopies();
  void waitCopies(int pending);
  /// `count` (1, 2 or 4) 8x8 matrices of 16-bit values.
  Values ldmatrix(Value row, int count, bool transposed = false);
  /// Four of them, `offset` bytes behind `row`: the offset is part of the
  /// instruction, where the operation above would keep an address a matrix.
  Values ldmatrix4(Value row, int64_t offset);
  /// d = a (16x16) * b (16x8) + c, of bf16 or f16 with f32 sums.
  Values mma(Type element, ValueRange a, ValueRange b, ValueRange c);
  /// Bytes of two words by a selector of four nibbles.
  Value permute(Value low, Value high, Value selector);
  /// x * y + z on pairs of bf16, rounded once each.
  Value fmaPair(Value x, Value y, Value z);

  // Control.
  void loop(Value low, Value high, Value step,
            llvm::function_ref<void(Value)> body);
  void loop(Value low, Value high, int64_t step,
            llvm::function_ref<void(Value)> body);
  Values loop(Value low, Value high, Value step, ValueRange inits,
              llvm::function_ref<Values(Value, ValueRange)> body);
  void ifThen(Value condition, llvm::function_ref<void()> body);
  void ifElse(Value condition, llvm::function_ref<void()> then,
              llvm::function_ref<void()> otherwise);
  Values ifElse(Value condition, mlir::TypeRange types,
                llvm::function_ref<Values()> then,
                llvm::function_ref<Values()> otherwise);

  Value intrinsic(llvm::StringRef name, Type result, ValueRange operands);
  /// One instruction of text; results of `types`, the constraints after `=`
  /// and operands' follow from the types.
  Values inlinePtx(llvm::StringRef text, llvm::ArrayRef<Type> types,
                   ValueRange operands, bool pure);

private:
  Value widenOffset(Value pointer, Value bytes);
};

} // namespace kvc::nvptx

#endif // KVC_CODEGEN_NVPTX_EMITTER_H
