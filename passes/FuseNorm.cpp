//===- FuseNorm.cpp - A norm as the prologue of its only linear -----------===//
#include "passes/KernelFusion.h"
#include "passes/Levels.h"
#include "passes/Passes.h"

using namespace mlir;
using namespace kvc;

namespace kvc {
#define GEN_PASS_DEF_FUSENORM
#include "passes/Passes.h.inc"
} // namespace kvc

namespace {

class FuseNormPass : public kvc::impl::FuseNormBase<FuseNormPass> {
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

/// The only op that uses `value`; null if there are several or none.
static Operation *onlyUser(Value value) {
  auto users = usersOf(value);
  return users.size() == 1 ? users.front() : nullptr;
}

/// In decode, and for output rows, a step has few rows: each worker may compute
/// them for itself, which saves a barrier.
static bool hasFewRows(ProgramOp program, Value value) {
  auto type = cast<RankedTensorType>(value.getType());
  return program.getPhase() == Phase::Decode ||
         isa<OutputsAttr>(type.getEncoding());
}

void FuseNormPass::fuse(ProgramOp program) {
  IRRewriter rewriter(&getContext());
  llvm::SmallVector<Operation *> norms;
  program.walk([&](Operation *op) {
    if (isa<RmsNormOp, LayerNormOp>(op))
      norms.push_back(op);
  });
  for (Operation *norm : norms) {
    Value result = norm->getResult(0);
    if (!hasFewRows(program, result))
      continue;
    llvm::SmallVector<Operation *> ops = {norm};
    Operation *user = onlyUser(result);
    if (isRounding(user)) {
      ops.push_back(user);
      user = onlyUser(user->getResult(0));
    }
    if (!isa_and_present<LinearOp>(user))
      continue;
    ops.push_back(user);
    bool together = kernelOf(norm) == kernelOf(user);
    if (!together && !fuseIntoKernel(rewriter, ops))
      continue;
    numFused += !together;
    // The selection in front of it costs nothing more there.
    Value input = resolve(norm->getOperand(0));
    auto select = input.getDefiningOp<SelectRowsOp>();
    if (select && onlyUser(input) && kernelOf(select) != kernelOf(norm) &&
        fuseIntoKernel(rewriter, {select, norm}))
      ++numFused;
  }
}
