//===- KernelFusion.h - The one way ops become a kernel -------------------===//
//
// Every fusion pass finds the ops it wants together and leaves the rest to
// this: wrapping lone ops, merging kernels, keeping the order of effects, and
// the rules a kernel obeys.
//
// A kernel is prologue ops, at most one anchor, epilogue ops. The prologue runs
// on whole rows of the anchor's input, by every worker for itself, so nothing
// but the anchor may use what it makes. The epilogue runs on a tile of the
// anchor's output columns (whole heads, where heads are a dimension), so it
// may hold only ops that need no other columns:
//
//   anchor     prologue                          epilogue
//   linear     select_rows add rms_norm          add mul activation soft_cap
//   rope
//              layer_norm quantize round         cache_append quantize round
//   attention  (none)                            quantize round
//   (none)     one op of any kind, or a chain of add mul activation
//              soft_cap select_rows rms_norm layer_norm quantize round on
//              whole rows
//
// A quantize in an epilogue needs tiles of whole blocks: heads of a multiple
// of 32 values. Slot ops (read, write, stage) may stand in any kernel.
#ifndef KVC_PASSES_KERNELFUSION_H
#define KVC_PASSES_KERNELFUSION_H

#include "dialect/KvcDialect.h"

#include "mlir/IR/PatternMatch.h"

#include <string>

namespace kvc {

/// What `value` is, seen through kernels: a kernel's result is the value that
/// the kernel yields for it.
mlir::Value resolve(mlir::Value value);

/// The ops that use what `value` is, seen through kernels' results. `value` is
/// not a kernel's result.
llvm::SmallVector<mlir::Operation *> usersOf(mlir::Value value);

/// The kernel around `op`, or `op` itself where there is none.
mlir::Operation *kernelOf(mlir::Operation *op);

/// A quantize or a round; false for null.
bool isRounding(mlir::Operation *op);

/// What a value, perhaps rotated or rounded, is to an attention: not a part of
/// one, its queries, the keys or the values of its cache.
enum class AttentionPart { None, Query, Key, Value };
AttentionPart attentionPart(mlir::Value value);

/// Why `ops`, in order and without terminators, cannot be the body of a kernel;
/// empty if they can. Operands are seen through kernels, so ops that are not
/// together yet may be asked about.
std::string kernelError(llvm::ArrayRef<mlir::Operation *> ops);

/// Puts `ops`, with all that is in their kernels, into one kernel, named by
/// what it does. Null, and nothing changed, where the rules or the order of
/// effects forbid it.
KernelOp fuseIntoKernel(mlir::RewriterBase &rewriter,
                        llvm::ArrayRef<mlir::Operation *> ops);

/// Makes one linear, a segment each, of several with the same input, together
/// in one kernel. Null, and nothing changed, where that is forbidden.
LinearOp fuseLinears(mlir::RewriterBase &rewriter,
                     llvm::ArrayRef<LinearOp> linears);

/// Makes a kernel of each op of the program that is in none, and drops what
/// kernels return without need. Ops that compute nothing anybody uses go.
void wrapLoneOps(mlir::RewriterBase &rewriter, ProgramOp program);

} // namespace kvc

#endif // KVC_PASSES_KERNELFUSION_H
