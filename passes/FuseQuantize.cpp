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

/// An op whose kernel can round what it makes: an attention, a norm, or an
/// activation on the tile of its linear.
static bool canRound(Operation *producer) {
  if (isa_and_present<AttentionOp, RmsNormOp, LayerNormOp>(producer))
    return true;
  if (!isa_and_present<MulOp, ActivationOp>(producer))
    return false;
  auto kernel = dyn_cast<KernelOp>(kernelOf(producer));
  return kernel && isa_and_present<LinearOp>(kernel.getAnchor());
}

void FuseQuantizePass::fuse(ProgramOp program) {
  IRRewriter rewriter(&getContext());
  llvm::SmallVector<QuantizeOp> quantizes;
  program.walk([&](QuantizeOp op) { quantizes.push_back(op); });
  for (QuantizeOp quantize : quantizes) {
    if (isa<KernelOp>(quantize->getParentOp()))
      continue;
    Operation *producer = resolve(quantize.getInput()).getDefiningOp();
    if (canRound(producer) && fuseIntoKernel(rewriter, {producer, quantize})) {
      ++numFused;
      continue;
    }
    auto type = cast<RankedTensorType>(quantize.getType());
    if (program.getPhase() != Phase::Decode &&
        !isa<OutputsAttr>(type.getEncoding()))
      continue;
    auto users = usersOf(quantize);
    if (users.size() == 1 && isa<LinearOp>(users.front()) &&
        fuseIntoKernel(rewriter, {quantize, users.front()}))
      ++numFused;
  }
}
