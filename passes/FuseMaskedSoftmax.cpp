//===- FuseMaskedSoftmax.cpp - Attention that stores no scores ------------===//
#include "passes/KernelFusion.h"
#include "passes/Levels.h"
#include "passes/Passes.h"

using namespace mlir;
using namespace kvc;

namespace kvc {
#define GEN_PASS_DEF_FUSEMASKEDSOFTMAX
#include "passes/Passes.h.inc"
} // namespace kvc

namespace {

class FuseMaskedSoftmaxPass
    : public kvc::impl::FuseMaskedSoftmaxBase<FuseMaskedSoftmaxPass> {
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

/// Nothing between the two lone ops of one block writes the cache.
static bool cacheStays(Operation *from, Operation *to) {
  for (Operation *op = from->getNextNode(); op != to; op = op->getNextNode()) {
    auto effects = getEffectsRecursively(op);
    if (!effects)
      return false;
    for (const MemoryEffects::EffectInstance &effect : *effects)
      if (isa<MemoryEffects::Write>(effect.getEffect()) &&
          isa<CacheResource>(effect.getResource()))
        return false;
  }
  return true;
}

void FuseMaskedSoftmaxPass::fuse(ProgramOp program) {
  IRRewriter rewriter(&getContext());
  llvm::SmallVector<ContextOp> contexts;
  program.walk([&](ContextOp context) { contexts.push_back(context); });
  for (ContextOp context : contexts) {
    auto softmax = context.getWeights().getDefiningOp<MaskedSoftmaxOp>();
    auto scores =
        softmax ? softmax.getInput().getDefiningOp<ScoresOp>() : ScoresOp();
    if (!scores || !softmax->hasOneUse() || !scores->hasOneUse() ||
        scores->getBlock() != context->getBlock() ||
        scores.getCacheAttr() != context.getCacheAttr() ||
        scores.getLayer() != context.getLayer() ||
        scores.getQuery().getType() != context.getType() ||
        isa<KernelOp>(context->getParentOp()) || !cacheStays(scores, context))
      continue;
    rewriter.setInsertionPoint(context);
    // A matrix unit's operands are of one type: where queries are rounded for
    // it, so are the weights.
    auto round = scores.getQuery().getDefiningOp<RoundOp>();
    auto attention = AttentionOp::create(
        rewriter, context.getLoc(), context.getType(), scores.getQuery(),
        context.getCacheAttr(), context.getLayer(), context.getBatch(),
        scores.getScaleAttr(), round ? round.getElementAttr() : TypeAttr());
    rewriter.replaceOp(context, attention);
    rewriter.eraseOp(softmax);
    rewriter.eraseOp(scores);
    fuseIntoKernel(rewriter, attention.getOperation());
    ++numFused;
  }
}
