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

#include "codegen/BasicEmitter.h"
#include "codegen/nvptx/NvptxTarget.h"

#include "mlir/Dialect/LLVMIR/NVVMDialect.h"

namespace kvc::nvptx {

class Emitter : public BasicEmitter {
public:
  Emitter(mlir::OpBuilder builder, mlir::Location loc,
          const NvptxTarget &target);

  const NvptxTarget &target;
  const Type global, shared; // pointers: address spaces 1 and 3
  int threads = 0;           // of a block

  // Constants.
  Value c(int64_t value) { return integer(value, i32); }
  Value c64(int64_t value) { return integer(value, i64); }
  /// Stands where control flow joins and nobody reads what comes this way.
  Value unused(Type type);

  // On i1.
  Value notI1(Value x) { return bitXor(x, 1); }
  Value both(Value x, Value y) { return bitAnd(x, y); }

  // On f32. The back end contracts nothing; divf is div.rn: slow and exact.
  Value maxf(Value x, Value y); // NaN only where both are
  Value ex2(Value x);           // 2^x, approximate
  Value lg2(Value x);           // approximate
  Value rcp(Value x);           // approximate
  Value rsqrt(Value x);         // approximate
  Value exp(Value x);           // by ex2
  Value silu(Value x);
  Value gelu(Value x);
  Value geluTanh(Value x);
  Value softCap(Value x, double cap);
  Value activation(ActivationKind kind, Value x);
  /// What an op makes of a value by itself: activation, soft_cap, round.
  Value mapped(mlir::Operation *op, Value x);

  // Conversions.
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

  Value intrinsic(llvm::StringRef name, Type result, ValueRange operands);
  /// One instruction of text; results of `types`, the constraints after `=`
  /// and operands' follow from the types.
  Values inlinePtx(llvm::StringRef text, llvm::ArrayRef<Type> types,
                   ValueRange operands, bool pure);

private:
  Value widenOffset(Value pointer, Value bytes);

  // What round() made: to round it again the same way would change nothing.
  struct Rounded {
    Value original, stored;
  };
  llvm::DenseMap<Value, Rounded> rounded;
};

} // namespace kvc::nvptx

#endif // KVC_CODEGEN_NVPTX_EMITTER_H
