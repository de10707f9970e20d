//===- Levels.cpp - Which level of the design a model is at ---------------===//
#include "passes/Levels.h"

using namespace mlir;
using namespace kvc;

InFlightDiagnostic kvc::ruleError(Operation *op) {
  return emitError(op->getLoc()) << "'" << op->getName() << "' op ";
}

static LogicalResult requirePrograms(ModelOp model, llvm::StringRef pass) {
  for (auto forward : model.getOps<ForwardOp>())
    return ruleError(forward) << "is not split into programs: " << pass
                              << " comes after kvc-split-phases";
  if (model.getOps<ProgramOp>().empty())
    return ruleError(model) << "has no kvc.program for " << pass;
  return success();
}

LogicalResult kvc::requireProgramsOfValues(ModelOp model,
                                           llvm::StringRef pass) {
  if (failed(requirePrograms(model, pass)))
    return failure();
  for (auto program : model.getOps<ProgramOp>())
    if (program.getResultTypes().empty())
      return ruleError(program) << "has its memory planned already: " << pass
                                << " comes before kvc-plan-memory";
  return success();
}

LogicalResult kvc::requirePlannedPrograms(ModelOp model, llvm::StringRef pass) {
  if (failed(requirePrograms(model, pass)))
    return failure();
  for (auto program : model.getOps<ProgramOp>()) {
    if (!program.getResultTypes().empty())
      return ruleError(program) << "has no memory plan: " << pass
                                << " comes after kvc-plan-memory";
    WalkResult scheduled = program.walk([](Operation *op) {
      return isa<DispatchOp, BarrierOp>(op) ? WalkResult::interrupt()
                                            : WalkResult::advance();
    });
    if (scheduled.wasInterrupted())
      return ruleError(program)
             << "is scheduled already: " << pass << " runs once";
  }
  return success();
}
