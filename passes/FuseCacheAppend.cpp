//===- FuseCacheAppend.cpp - K and V go from the tile to their page -------===//
#include "passes/KernelFusion.h"
#include "passes/Levels.h"
#include "passes/Passes.h"

using namespace mlir;
using namespace kvc;

namespace kvc {
#define GEN_PASS_DEF_FUSECACHEAPPEND
#include "passes/Passes.h.inc"
} // namespace kvc

namespace {

class FuseCacheAppendPass
    : public kvc::impl::FuseCacheAppendBase<FuseCacheAppendPass> {
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

void FuseCacheAppendPass::fuse(ProgramOp program) {
  IRRewriter rewriter(&getContext());
  llvm::SmallVector<RopeOp> ropes;
  program.walk([&](RopeOp rope) { ropes.push_back(rope); });
  for (RopeOp rope : ropes) {
    auto linear = resolve(rope.getInput()).getDefiningOp<LinearOp>();
    if (linear && kernelOf(linear) != kernelOf(rope) &&
        fuseIntoKernel(rewriter, {linear, rope}))
      ++numFused;
  }
  llvm::SmallVector<CacheAppendOp> appends;
  program.walk([&](CacheAppendOp append) { appends.push_back(append); });
  for (CacheAppendOp append : appends) {
    Operation *key = resolve(append.getKey()).getDefiningOp();
    Operation *value = resolve(append.getValue()).getDefiningOp();
    // Both must come from the tile of one linear.
    if (!key || !value || kernelOf(key) != kernelOf(value) ||
        kernelOf(key) == kernelOf(append))
      continue;
    auto kernel = dyn_cast<KernelOp>(kernelOf(key));
    Operation *anchor = kernel ? kernel.getAnchor() : key;
    if (isa_and_present<LinearOp>(anchor) &&
        fuseIntoKernel(rewriter, {key, append}))
      ++numFused;
  }
}
