//===- PlanMemory.cpp - Values that cross kernels get slots ---------------===//
#include "passes/KernelFusion.h"
#include "passes/Levels.h"
#include "passes/Passes.h"
#include "passes/SlotPlan.h"
#include "passes/TargetInfo.h"

#include "llvm/ADT/SetVector.h"

using namespace mlir;
using namespace kvc;

namespace kvc {
#define GEN_PASS_DEF_PLANMEMORY
#include "passes/Passes.h.inc"
} // namespace kvc

namespace {

class PlanMemoryPass : public kvc::impl::PlanMemoryBase<PlanMemoryPass> {
public:
  void runOnOperation() override {
    ModelOp model = getOperation();
    if (failed(requireProgramsOfValues(model, getArgument())))
      return signalPassFailure();
    for (auto program : llvm::to_vector(model.getOps<ProgramOp>()))
      if (failed(plan(program)))
        return signalPassFailure();
  }

private:
  LogicalResult plan(ProgramOp program);
};

} // namespace

/// A kernel that copies the value of `use` in front of `before`; the use reads
/// the copy.
static void insertCopy(RewriterBase &rewriter, OpOperand &use) {
  Operation *before = use.getOwner();
  rewriter.setInsertionPoint(before);
  auto kernel = KernelOp::create(rewriter, before->getLoc(),
                                 TypeRange(use.get().getType()), "copy");
  rewriter.createBlock(&kernel.getBody());
  YieldOp::create(rewriter, before->getLoc(), use.get());
  use.set(kernel.getResult(0));
}

/// The rules of kernels, and one level of layers: what the rest relies on.
static LogicalResult checkShape(ProgramOp program) {
  WalkResult result = program.walk([](Operation *op) {
    if (!isa_and_present<KvcDialect>(op->getDialect())) {
      ruleError(op) << "is not of the kvc dialect: no kernel can run it";
      return WalkResult::interrupt();
    }
    if (isa<ReadOp, WriteOp, StageOp>(op)) {
      ruleError(op) << "stands in a program of values: kvc-plan-memory makes "
                       "the slots";
      return WalkResult::interrupt();
    }
    if (isa<LayersOp>(op) && !isa<ProgramOp>(op->getParentOp())) {
      ruleError(op) << "stands inside another op: layers are not nested";
      return WalkResult::interrupt();
    }
    auto kernel = dyn_cast<KernelOp>(op);
    if (!kernel)
      return WalkResult::advance();
    llvm::SmallVector<Operation *> ops;
    for (Operation &inner : kernel.getBody().front().without_terminator())
      ops.push_back(&inner);
    std::string error = kernelError(ops);
    if (error.empty())
      return WalkResult::advance();
    ruleError(kernel) << "\"" << kernel.getName()
                      << "\" cannot run as one kernel: " << error;
    return WalkResult::interrupt();
  });
  return failure(result.wasInterrupted());
}

/// Reads what the kernel takes from other kernels at its start.
static void insertReads(RewriterBase &rewriter, KernelOp kernel,
                        const SlotPlan &slots) {
  llvm::SmallSetVector<Value, 4> captured;
  kernel.getBody().walk([&](Operation *op) {
    for (Value operand : op->getOperands())
      if (isExtentTensor(operand.getType()) &&
          operand.getParentRegion() != &kernel.getBody())
        captured.insert(operand);
  });
  rewriter.setInsertionPointToStart(&kernel.getBody().front());
  for (Value value : captured) {
    auto read = ReadOp::create(rewriter, kernel.getLoc(), value.getType(),
                               slots.slotOf(value));
    rewriter.replaceUsesWithIf(value, read, [&](OpOperand &use) {
      return kernel->isProperAncestor(use.getOwner());
    });
  }
}

/// Stages what the prologue hands to the anchor. Returns the worker bytes a row
/// takes, -1 if that is too many.
static int64_t insertStage(RewriterBase &rewriter, ProgramOp program,
                           KernelOp kernel) {
  auto linear = dyn_cast_or_null<LinearOp>(kernel.getAnchor());
  if (!linear)
    return 0;
  Value input = linear.getInput();
  Operation *producer = input.getDefiningOp();
  if (!producer || isa<ReadOp>(producer))
    return 0;
  auto model = program->getParentOfType<ModelOp>();
  SlotElement element = storedElement(model.getTargetAttr(), producer);
  int64_t stride = slotStride(program, input.getType(), element);
  if (stride < 0)
    return -1;
  rewriter.setInsertionPoint(linear);
  auto stage =
      StageOp::create(rewriter, linear.getLoc(), input,
                      SlotAttr::get(rewriter.getContext(), Space::Worker,
                                    /*offset=*/0, stride, element));
  linear.getInputMutable().assign(stage);
  return stride;
}

/// Writes the kernel's results to their slots. Returns whether one of them is
/// the program's, which lies in the logits.
static void insertWrites(RewriterBase &rewriter, KernelOp kernel,
                         const SlotPlan &slots) {
  Operation *yield = kernel.getBody().front().getTerminator();
  rewriter.setInsertionPoint(yield);
  for (auto [inside, result] :
       llvm::zip_equal(yield->getOperands(), kernel.getResults())) {
    if (SlotAttr slot = slots.slotOf(result))
      WriteOp::create(rewriter, kernel.getLoc(), inside, slot);
    bool returned = llvm::any_of(result.getUses(), [](OpOperand &use) {
      return isa<ReturnOp>(use.getOwner());
    });
    if (returned)
      WriteOp::create(rewriter, kernel.getLoc(), inside,
                      SlotAttr::get(rewriter.getContext(), Space::Logits,
                                    /*offset=*/0,
                                    rowElements(result.getType()) * 4,
                                    SlotElement::F32));
  }
  yield->setOperands({});
}

/// Takes the values out of kernels' and layers' signatures.
static void dropValues(RewriterBase &rewriter, ProgramOp program) {
  llvm::SmallVector<Operation *> holders;
  program.walk([&](Operation *op) {
    if (isa<YieldOp, ReturnOp>(op))
      op->setOperands({});
    if (isa<KernelOp, LayersOp>(op))
      holders.push_back(op);
  });
  // Users first: layers stand behind the kernels that feed them.
  for (Operation *op : llvm::reverse(holders)) {
    rewriter.setInsertionPoint(op);
    if (auto layers = dyn_cast<LayersOp>(op)) {
      auto voided = LayersOp::create(rewriter, op->getLoc(), TypeRange(),
                                     layers.getCount(), ValueRange());
      Block &body = layers.getBody().front();
      body.eraseArguments(0, body.getNumArguments() - 1);
      voided.getBody().takeBody(layers.getBody());
      rewriter.eraseOp(op);
      continue;
    }
    auto kernel = cast<KernelOp>(op);
    auto voided =
        KernelOp::create(rewriter, op->getLoc(), TypeRange(), kernel.getName());
    voided.getBody().takeBody(kernel.getBody());
    rewriter.eraseOp(op);
  }
  program.setFunctionType(FunctionType::get(
      program.getContext(), program.getArgumentTypes(), TypeRange()));
}

LogicalResult PlanMemoryPass::plan(ProgramOp program) {
  if (failed(checkShape(program)))
    return failure();
  IRRewriter rewriter(&getContext());
  wrapLoneOps(rewriter, program);
  // The logits are written by the kernel that makes them.
  OpOperand &logits =
      program.getBody().front().getTerminator()->getOpOperand(0);
  if (!logits.get().getDefiningOp<KernelOp>()) {
    insertCopy(rewriter, logits);
    ++numCopies;
  }
  // Each carried value needs two copies at its yield and one at its start, at
  // most.
  unsigned copiesLeft = 0;
  program.walk(
      [&](LayersOp layers) { copiesLeft += 3 * layers.getNumResults(); });
  auto slots = std::make_unique<SlotPlan>(program);
  while (OpOperand *use = slots->joinCarried()) {
    if (copiesLeft-- == 0)
      return ruleError(use->getOwner())
             << "carries values whose slots cannot be told apart";
    insertCopy(rewriter, *use);
    ++numCopies;
    slots = std::make_unique<SlotPlan>(program);
  }
  numInPlace += slots->joinInPlace();
  if (Value large = slots->place())
    return ruleError(program) << "has a value of type " << large.getType()
                              << ", whose rows are too large for an arena";

  int64_t workerBytes = 0;
  llvm::SmallVector<KernelOp> kernels;
  program.walk([&](KernelOp kernel) { kernels.push_back(kernel); });
  for (KernelOp kernel : kernels) {
    insertReads(rewriter, kernel, *slots);
    int64_t staged = insertStage(rewriter, program, kernel);
    if (staged < 0)
      return ruleError(kernel) << "stages rows that are too large for an arena";
    workerBytes = std::max(workerBytes, staged);
  }
  for (KernelOp kernel : kernels)
    insertWrites(rewriter, kernel, *slots);
  dropValues(rewriter, program);
  program.setRowsBytes(slots->arenaBytes(Space::Rows));
  program.setOutputsBytes(slots->arenaBytes(Space::Outputs));
  program.setWorkerBytes(workerBytes);
  return success();
}
