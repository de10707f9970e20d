//===- SplitPhases.cpp - One forward function becomes two programs --------===//
#include "passes/Levels.h"
#include "passes/Passes.h"

#include "mlir/IR/IRMapping.h"

using namespace mlir;
using namespace kvc;

namespace kvc {
#define GEN_PASS_DEF_SPLITPHASES
#include "passes/Passes.h.inc"
} // namespace kvc

namespace {

class SplitPhasesPass : public kvc::impl::SplitPhasesBase<SplitPhasesPass> {
public:
  void runOnOperation() override {
    if (failed(split(getOperation())))
      signalPassFailure();
  }

private:
  static LogicalResult split(ModelOp model) {
    auto forwards = llvm::to_vector(model.getOps<ForwardOp>());
    if (!model.getOps<ProgramOp>().empty())
      return ruleError(*model.getOps<ProgramOp>().begin())
             << "stands where kvc-split-phases needs a kvc.forward: "
                "the model is split already";
    if (forwards.size() != 1)
      return ruleError(model)
             << "has " << forwards.size()
             << " kvc.forward functions, kvc-split-phases needs one";
    ForwardOp forward = forwards.front();
    OpBuilder builder(forward);
    for (Phase phase : {Phase::Prefill, Phase::Decode}) {
      llvm::StringRef name = stringifyPhase(phase);
      if (model.lookupSymbol(name))
        return ruleError(forward)
               << "becomes @" << name << ", a name that is taken";
      auto program = ProgramOp::create(
          builder, forward.getLoc(), name, forward.getFunctionType(), phase,
          /*rows_bytes=*/{}, /*outputs_bytes=*/{}, /*worker_bytes=*/{},
          forward.getArgAttrsAttr(), forward.getResAttrsAttr());
      IRMapping mapping;
      forward.getBody().cloneInto(&program.getBody(), mapping);
    }
    forward.erase();
    return success();
  }
};

} // namespace
