//===- LinearKernels.h - The kernels of a linear --------------------------===//
#ifndef KVC_CODEGEN_NVPTX_LINEARKERNELS_H
#define KVC_CODEGEN_NVPTX_LINEARKERNELS_H

#include "codegen/nvptx/LinearPlan.h"
#include "codegen/nvptx/PairEpilogue.h"

namespace kvc::nvptx {

/// Tokens that a matrix instruction multiplies with, and a narrow kernel takes.
constexpr int NarrowTokens = 8;

/// Up to 8 tokens: bound by the bytes of the weights. A warp a segment of K;
/// the prologue, where there is one, runs `inKernel` or in a stage's.
mlir::LogicalResult emitNarrowLinear(DispatchContext &context,
                                     const LinearPlan &plan,
                                     const LinearClass &formats,
                                     llvm::StringRef suffix, bool inKernel);
/// Bytes of shared memory that a narrow kernel with its activations there
/// needs.
int64_t narrowSharedBytes(const LinearPlan &plan);

/// Any number of tokens above 8: tiles of weight rows and tokens.
mlir::LogicalResult emitWideLinear(DispatchContext &context,
                                   const LinearPlan &plan,
                                   const LinearClass &formats,
                                   llvm::StringRef suffix);

/// The prologue as a kernel of its own: bf16 rows in scratch.
mlir::LogicalResult emitStage(DispatchContext &context, const LinearPlan &plan,
                              int64_t atLeast);
/// Bytes of a staged row in scratch.
int64_t stageRowBytes(const LinearPlan &plan);

/// Runs the prologue for `count` rows of the plan's extent, `rowOf(i)` the i-th
/// (at most `most`), with all threads of the block: `store(i, column, values)`
/// gets its results, a few columns at a time. `space` is
/// prologueBytes(most) of shared memory.
mlir::LogicalResult
runPrologue(KernelContext &kernel, const LinearPlan &plan, Value count,
            int most, Value space, llvm::function_ref<Value(Value)> rowOf,
            llvm::function_ref<void(Value, Value, ValueRange)> store);
int64_t prologueBytes(const LinearPlan &plan, int most);

} // namespace kvc::nvptx

#endif // KVC_CODEGEN_NVPTX_LINEARKERNELS_H
