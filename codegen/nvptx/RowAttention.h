//===- RowAttention.h - Attention that stores its scores ------------------===//
#ifndef KVC_CODEGEN_NVPTX_ROWATTENTION_H
#define KVC_CODEGEN_NVPTX_ROWATTENTION_H

#include "codegen/nvptx/ProgramContext.h"

namespace kvc::nvptx {

/// A dispatch of one scores, masked_softmax or context: plain kernels, so that
/// unfused programs run. `op` reads slots and its result is written to one.
mlir::LogicalResult emitRowAttention(DispatchContext &context,
                                     mlir::Operation *op);

} // namespace kvc::nvptx

#endif // KVC_CODEGEN_NVPTX_ROWATTENTION_H
