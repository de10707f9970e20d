//===- FuseResidual.cpp - The residual sum on the tile of its linear ------===//
#include "passes/KernelFusion.h"
#include "passes/Levels.h"
#include "passes/Passes.h"

using namespace mlir;
using namespace kvc;

namespace kvc {
#define GEN_PASS_DEF_FUSERESIDUAL
#include "passes/Passes.h.inc"
} // namespace kvc

namespace {

class FuseResidualPass : public kvc::impl::FuseResidualBase<FuseResidualPass> {
public:
  void runOnOperation() override {
    ModelOp model = getOperation();
    if (failed(requireProgramsOfValues(model, getArgument())))
      return signalPassFailure();
    for (auto program : model.getOps<ProgramOp>())
      fuse(program);
  }

private:
  void fuse(ProgramOp program);
};

} // namespace

void FuseResidualPass::fuse(ProgramOp program) {
  IRRewriter rewriter(&getContext());
  llvm::SmallVector<AddOp> adds;
  program.walk([&](AddOp add) { adds.push_back(add); });
  for (AddOp add : adds)
    for (Value operand : {add.getRhs(), add.getLhs()}) {
      Value made = resolve(operand);
      auto linear = made.getDefiningOp<LinearOp>();
      if (!linear || linear.getNumResults() != 1 || usersOf(made).size() != 1)
        continue;
      if (kernelOf(linear) == kernelOf(add))
        break;
      if (fuseIntoKernel(rewriter, {linear, add})) {
        ++numFused;
        break;
      }
    }
}
