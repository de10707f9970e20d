//===- Dispatch.h - One dispatch of the schedule to kernels ---------------===//
//
// Each function writes the kernels of a dispatch and lists their launches
// (DispatchContext::begin and launch). Kernels of one list run one after the
// other; a launch whose `when` does not hold is skipped.
#ifndef KVC_CODEGEN_NVPTX_DISPATCH_H
#define KVC_CODEGEN_NVPTX_DISPATCH_H

#include "codegen/nvptx/ProgramContext.h"

namespace kvc::nvptx {

/// A dispatch without an anchor: blocks share the rows.
mlir::LogicalResult emitRows(DispatchContext &context);

/// A linear with its prologue and epilogue: blocks share tiles of output
/// columns.
mlir::LogicalResult emitLinear(DispatchContext &context, LinearOp linear);

/// Attention with its epilogue: blocks share tiles of rows and kv heads.
mlir::LogicalResult emitAttention(DispatchContext &context,
                                  AttentionOp attention);

/// The kernels that choose tokens from the logits, in model.lists.choose.
mlir::LogicalResult emitChoose(ModelContext &model);

} // namespace kvc::nvptx

#endif // KVC_CODEGEN_NVPTX_DISPATCH_H
