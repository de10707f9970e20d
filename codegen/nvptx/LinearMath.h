//===- LinearMath.h - Products of packed tiles with activations -----------===//
#ifndef KVC_CODEGEN_NVPTX_LINEARMATH_H
#define KVC_CODEGEN_NVPTX_LINEARMATH_H

#include "codegen/nvptx/Fragments.h"

namespace kvc::nvptx {

/// Adds block `block` of a part of a tile times the activations of some groups
/// of eight tokens. `activations` has, for each group, the B fragments of the
/// block's two steps (4 registers), `sums` each group's 4 accumulators.
///
/// The order of every sum is that of docs/NVPTX.md: k ascending; elements are
/// multiplied straight into the accumulator, high parts before low ones; codes
/// into a fresh one a sub-block, which its scale then multiplies.
void multiplyBlock(Emitter &e, Fragments &tile, int block,
                   llvm::ArrayRef<Values> activations,
                   llvm::MutableArrayRef<Values> sums);

} // namespace kvc::nvptx

#endif // KVC_CODEGEN_NVPTX_LINEARMATH_H
