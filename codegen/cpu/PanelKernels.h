//===- PanelKernels.h - Rows of activations times one panel ---------------===//
#ifndef KVC_CODEGEN_CPU_PANELKERNELS_H
#define KVC_CODEGEN_CPU_PANELKERNELS_H

#include "codegen/cpu/Emitter.h"
#include "codegen/formats/Packing.h"

#include "mlir/IR/BuiltinOps.h"

#include <map>

namespace kvc::cpu {

/// What activations a panel is multiplied with.
enum class Activations {
  F32, // f32[K]; codes are dequantised in registers
  Q8   // a Q8Row
};

/// Emits, once each, the functions that multiply `rows` rows of activations
/// with `count` consecutive packed panels:
///
///   panel(w, x, xStride, out, outStride)
///   out[r * outStride + p * lanes + lane] = sum over k of x[r][k] *
///   w[p][k][lane]
///
/// with f32 results and strides in bytes. One accumulator an output, k
/// ascending: a result does not depend on how many rows or panels share a call.
class PanelKernels {
public:
  PanelKernels(mlir::ModuleOp module, const CpuTarget &target)
      : module(module), target(target) {}

  /// The function for panels of `layout`, which fixes format and K.
  mlir::func::FuncOp get(const PackedLayout &layout, Activations activations,
                         int rows, int count);

  /// How many panels of a unit one call should take: one row of f32 has a
  /// single chain of sums a panel, too few to hide a multiplication's latency.
  static int panelsAtOnce(const PackedLayout &layout, Activations activations,
                          int rows);

private:
  mlir::ModuleOp module;
  const CpuTarget &target;
  std::map<std::string, mlir::func::FuncOp> functions;
};

/// The element type of a plain format.
Type plainElement(Emitter &e, Format format);

/// 2^(exponent - 128) as f32, of i32 exponents from 0 to 255, scalar or lanes.
Value powerOfTwo(Emitter &e, Value exponent);

/// The header of a packed block in registers, and what it says of its
/// sub-blocks.
class PanelBlock {
public:
  /// `block` points at the block's first byte.
  PanelBlock(Emitter &e, const PackedLayout &layout, Value block);

  /// The scale of sub-block `sub` (an i64 value) as f32 lanes.
  Value scale(Value sub);
  /// Its minimum, null for formats without one.
  Value minimum(Value sub);
  /// Codes of group `group` of the 32 values that start at 32 * `chunk`, in the
  /// bytes of a register: unsigned, T(q) + zero().
  Value codes(Value chunk, int group);
  /// What is subtracted from a code for its integer.
  int zero() const { return bias; }
  /// The largest code.
  int maxCode() const { return largest; }

private:
  Value plane(int64_t offset, int bits, Value chunk, int group);
  Emitter &e;
  const PackedLayout &layout;
  const FormatInfo &info;
  Value block, d, m;
  int bias, largest;
  llvm::SmallVector<uint8_t> table;
};

} // namespace kvc::cpu

#endif // KVC_CODEGEN_CPU_PANELKERNELS_H
