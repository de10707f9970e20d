//===- FuseQuantize.cpp - Roundings where their values are made -----------===//
#include "passes/KernelFusion.h"
#include "passes/Levels.h"
#include "passes/Passes.h"

using namespace mlir;
using namespace kvc;

namespace kvc {
#define GEN_PASS_DEF_FUSEQUANTIZE
#include "passes/Passes.h.inc"
} // namespace kvc

namespace {

class FuseQuantizePass : public kvc::impl::FuseQuantizeBase<FuseQuantizePass> {
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

/// An op whose kernel can round what it makes: an attention, a norm, an
/// activation on the tile of its linear, the queries of an attention.
static bool canRound(Operation *producer, Operation *rounding) {
  if (isa_and_present<AttentionOp, RmsNormOp, LayerNormOp>(producer))
    return true;
  if (!isa_and_present<LinearOp, RopeOp, MulOp, ActivationOp>(producer))
    return false;
  if (isa<LinearOp, RopeOp>(producer) &&
      attentionPart(rounding->getResult(0)) != AttentionPart::Query)
    return false;
  auto kernel = dyn_cast<KernelOp>(kernelOf(producer));
  return kernel && isa_and_present<LinearOp>(kernel.getAnchor());
}

void FuseQuantizePass::fuse(ProgramOp program) {
  IRRewriter rewriter(&getContext());
  llvm::SmallVector<Operation *> roundings;
  program.walk([&](Operation *op) {
    if (isRounding(op))
      roundings.push_back(op);
  });
  for (Operation *rounding : roundings) {
    if (isa<KernelOp>(rounding->getParentOp()))
      continue;
    Operation *producer = resolve(rounding->getOperand(0)).getDefiningOp();
    if (canRound(producer, rounding) &&
        fuseIntoKernel(rewriter, {producer, rounding})) {
      ++numFused;
      continue;
    }
    auto type = cast<RankedTensorType>(rounding->getResult(0).getType());
    if (program.getPhase() != Phase::Decode &&
        !isa<OutputsAttr>(type.getEncoding()))
      continue;
    auto users = usersOf(rounding->getResult(0));
    if (users.size() == 1 && isa<LinearOp>(users.front()) &&
        fuseIntoKernel(rewriter, {rounding, users.front()}))
      ++numFused;
  }
}
