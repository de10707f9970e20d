//===- CpuTarget.h - What code generation asks of a processor -------------===//
#ifndef KVC_CODEGEN_CPU_CPUTARGET_H
#define KVC_CODEGEN_CPU_CPUTARGET_H

#include "dialect/KvcDialect.h"

#include <string>
#include <vector>

namespace kvc::cpu {

/// How sums of four 8-bit products are formed. All give the same integers.
enum class DotKind {
  Vnni,    // vpdpbusd at the width of a register
  Maddubs, // vpmaddubsw and vpmaddwd (SSSE3, AVX2)
  Generic  // shifts, multiplications and additions of 32-bit elements
};

/// A #kvc.target as the emitters need it.
struct CpuTarget {
  int lanes = 8;        // 32-bit elements of a tile's registers
  int nativeBits = 256; // widest integer registers the instructions have
  DotKind dot = DotKind::Generic;
  bool byteShuffle = false; // pshufb at nativeBits

  /// Reads the target's processor and features through LLVM's tables.
  static mlir::FailureOr<CpuTarget> get(TargetAttr target, std::string &error);

  /// Rows of activations that share an unpacked panel, largest first: a tile's
  /// accumulators have to stay in registers next to the panel's.
  llvm::ArrayRef<int> rowTiles() const;

  /// Queries that share each panel of K and row of V, largest first.
  llvm::ArrayRef<int> queryTiles() const;

  /// Registers of V that `queries` queries' sums leave room for.
  int valueRegisters(int queries) const;
};

/// The features a program made for `target` needs of a processor, as the
/// runtime names them ("avx2", "fma", ...).
mlir::FailureOr<std::vector<std::string>> requiredFeatures(TargetAttr target,
                                                           std::string &error);

} // namespace kvc::cpu

#endif // KVC_CODEGEN_CPU_CPUTARGET_H
