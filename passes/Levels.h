//===- Levels.h - Which level of the design a model is at -----------------===//
#ifndef KVC_PASSES_LEVELS_H
#define KVC_PASSES_LEVELS_H

#include "dialect/KvcDialect.h"

namespace kvc {

/// Begins an error of one line at the op, naming it: `emitOpError` would print
/// all of it, which for a model is pages.
mlir::InFlightDiagnostic ruleError(mlir::Operation *op);

/// Succeeds if the model's functions are programs of values (L2 or L3), which
/// is what `pass` works on; otherwise says so.
mlir::LogicalResult requireProgramsOfValues(ModelOp model,
                                            llvm::StringRef pass);

/// Succeeds if the model's functions are programs of slots that are not yet
/// scheduled: what kvc-plan-memory leaves.
mlir::LogicalResult requirePlannedPrograms(ModelOp model, llvm::StringRef pass);

} // namespace kvc

#endif // KVC_PASSES_LEVELS_H
