//===- Emitter.h - Short names for the IR that kernels are made of --------===//
//
// Kernels are written in func, scf, arith, math, vector and llvm (pointers,
// loads, stores). Integers are i64, so that addresses need no casts; vectors
// have one dimension and a register's width.
//
//===----------------------------------------------------------------------===//
#ifndef KVC_CODEGEN_CPU_EMITTER_H
#define KVC_CODEGEN_CPU_EMITTER_H

#include "codegen/BasicEmitter.h"
#include "codegen/cpu/CpuTarget.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"

namespace kvc::cpu {

class Emitter : public BasicEmitter {
public:
  Emitter(mlir::OpBuilder builder, mlir::Location loc, const CpuTarget &target);

  const CpuTarget &target;
  const int lanes;

  // Types of registers: `lanes` elements, four bytes each.
  mlir::VectorType vec(Type element) const { return vec(element, lanes); }
  using BasicEmitter::vec;

  // Constants.
  Value c(int64_t value) { return integer(value, i64); }
  Value splatReal(double value);
  Value broadcast(Value scalar);

  // Arithmetic on f32, scalar or vector.
  Value maxf(Value x, Value y); // y where the two do not compare
  Value sqrt(Value x);
  Value roundEven(Value x);
  Value toInt(Value x, Type type); // f32 -> signed integers
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
