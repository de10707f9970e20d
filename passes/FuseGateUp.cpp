//===- FuseGateUp.cpp - Gate and up projection with their activation ------===//
#include "passes/KernelFusion.h"
#include "passes/Levels.h"
#include "passes/Passes.h"

using namespace mlir;
using namespace kvc;

namespace kvc {
#define GEN_PASS_DEF_FUSEGATEUP
#include "passes/Passes.h.inc"
} // namespace kvc

namespace {

class FuseGateUpPass : public kvc::impl::FuseGateUpBase<FuseGateUpPass> {
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
  bool fuseGated(RewriterBase &rewriter, MulOp mul, Value gated, Value plain);
};

} // namespace

/// The linear that makes `value`, null if none does.
static LinearOp linearOf(Value value) {
  return resolve(value).getDefiningOp<LinearOp>();
}

static bool usedOnlyBy(Value value, Operation *user) {
  auto users = usersOf(resolve(value));
  return users.size() == 1 && users.front() == user;
}

/// mul(activation(gate), up): `gated` and `plain` are the operands of `mul`.
bool FuseGateUpPass::fuseGated(RewriterBase &rewriter, MulOp mul, Value gated,
                               Value plain) {
  auto activation = resolve(gated).getDefiningOp<ActivationOp>();
  if (!activation)
    return false;
  LinearOp gate = linearOf(activation.getInput());
  LinearOp up = linearOf(plain);
  if (!gate || !up || !usedOnlyBy(gated, mul) || !usedOnlyBy(plain, mul) ||
      !usedOnlyBy(activation.getInput(), activation) ||
      resolve(gate.getInput()) != resolve(up.getInput()) ||
      gate.getLayer() != up.getLayer())
    return false;
  LinearOp both = gate;
  if (gate != up) {
    if (gate.getNumResults() != 1 || up.getNumResults() != 1)
      return false;
    both = fuseLinears(rewriter, {gate, up});
    if (!both)
      return false;
    ++numFused;
  }
  if (kernelOf(both) != kernelOf(mul) &&
      fuseIntoKernel(rewriter, {both, activation, mul}))
    ++numFused;
  return true;
}

void FuseGateUpPass::fuse(ProgramOp program) {
  IRRewriter rewriter(&getContext());
  llvm::SmallVector<MulOp> muls;
  program.walk([&](MulOp mul) { muls.push_back(mul); });
  for (MulOp mul : muls)
    if (!fuseGated(rewriter, mul, mul.getLhs(), mul.getRhs()))
      fuseGated(rewriter, mul, mul.getRhs(), mul.getLhs());
  // What is left is one projection and a function of its values.
  llvm::SmallVector<Operation *> functions;
  program.walk([&](Operation *op) {
    if (isa<ActivationOp, SoftCapOp>(op))
      functions.push_back(op);
  });
  for (Operation *function : functions) {
    Value input = function->getOperand(0);
    LinearOp linear = linearOf(input);
    if (linear && linear.getNumResults() == 1 && usedOnlyBy(input, function) &&
        kernelOf(linear) != kernelOf(function) &&
        fuseIntoKernel(rewriter, {linear, function}))
      ++numFused;
  }
}
