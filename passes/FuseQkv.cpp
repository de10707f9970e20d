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
  // Linears of one input and one layer.
  llvm::MapVector<std::pair<Value, Value>, llvm::SmallVector<LinearOp>> groups;
  program.walk([&](LinearOp linear) {
    if (attentionPart(linear.getOutputs().front()) != AttentionPart::None)
      groups[{resolve(linear.getInput()), linear.getLayer()}].push_back(linear);
  });
  for (auto &[key, linears] : groups) {
    if (linears.size() < 2)
      continue;
    // Queries, keys, values, wherever the projections stand.
    llvm::SmallVector<LinearOp> ordered;
    for (AttentionPart part :
         {AttentionPart::Query, AttentionPart::Key, AttentionPart::Value})
      for (LinearOp linear : linears)
        if (attentionPart(linear.getOutputs().front()) == part)
          ordered.push_back(linear);
    if (fuseLinears(rewriter, ordered))
      ++numFused;
  }
}
