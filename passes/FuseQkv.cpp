//===- FuseQkv.cpp - The projections of one attention are one linear ------===//
#include "passes/KernelFusion.h"
#include "passes/Levels.h"
#include "passes/Passes.h"

using namespace mlir;
using namespace kvc;

namespace kvc {
#define GEN_PASS_DEF_FUSEQKV
#include "passes/Passes.h.inc"
} // namespace kvc

namespace {

class FuseQkvPass : public kvc::impl::FuseQkvBase<FuseQkvPass> {
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

void FuseQkvPass::fuse(ProgramOp program) {
  IRRewriter rewriter(&getContext());
  // Linears of one input and one layer, in the order of the program.
  llvm::MapVector<std::pair<Value, Value>, llvm::SmallVector<LinearOp>> groups;
  program.walk([&](LinearOp linear) {
    if (llvm::any_of(linear.getOutputs(), feedsAttention))
      groups[{resolve(linear.getInput()), linear.getLayer()}].push_back(linear);
  });
  for (auto &[key, linears] : groups)
    if (linears.size() > 1 && fuseLinears(rewriter, linears))
      ++numFused;
}
