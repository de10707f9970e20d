//===- Dispatch.h - One dispatch of the schedule to one function ----------===//
#ifndef KVC_CODEGEN_CPU_DISPATCH_H
#define KVC_CODEGEN_CPU_DISPATCH_H

#include "codegen/cpu/ProgramContext.h"
#include "codegen/cpu/RowEmitter.h"

namespace kvc::cpu {

/// A dispatch without an anchor: workers share the rows.
mlir::LogicalResult emitRows(DispatchContext &context, DispatchOp dispatch);

/// A linear with its prologue and epilogue: workers share the units of output
/// columns.
mlir::LogicalResult emitLinear(DispatchContext &context, DispatchOp dispatch,
                               LinearOp linear);

/// Attention with its epilogue: workers share tiles of rows and kv heads.
mlir::LogicalResult emitAttention(DispatchContext &context, DispatchOp dispatch,
                                  AttentionOp attention);

/// Runs `body(first)` over [0, count) in steps of the largest of `sizes` that
/// still fits; the last size must be 1.
void forTiles(Emitter &e, Value count, llvm::ArrayRef<int> sizes,
              llvm::function_ref<void(Value first, int size)> body);

} // namespace kvc::cpu

#endif // KVC_CODEGEN_CPU_DISPATCH_H
