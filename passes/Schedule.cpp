//===- Schedule.cpp - Dispatches, and barriers where they depend ----------===//
#include "passes/Levels.h"
#include "passes/Passes.h"

#include "mlir/IR/PatternMatch.h"

using namespace mlir;
using namespace kvc;

namespace kvc {
#define GEN_PASS_DEF_SCHEDULE
#include "passes/Passes.h.inc"
} // namespace kvc

namespace {

/// Bytes a row of an arena, or the whole cache, that a dispatch touches.
struct Access {
  bool cache;
  Space space;
  int64_t begin, end;
  bool writes;

  bool conflicts(const Access &other) const {
    if (!writes && !other.writes)
      return false;
    if (cache || other.cache)
      return cache && other.cache;
    return space == other.space && begin < other.end && other.begin < end;
  }
};

using Accesses = llvm::SmallVector<Access>;

class SchedulePass : public kvc::impl::ScheduleBase<SchedulePass> {
public:
  void runOnOperation() override {
    ModelOp model = getOperation();
    if (failed(requirePlannedPrograms(model, getArgument())))
      return signalPassFailure();
    for (auto program : model.getOps<ProgramOp>())
      if (failed(schedule(program)))
        return signalPassFailure();
  }

private:
  LogicalResult schedule(ProgramOp program);
  void scheduleBlock(Block &block, Accesses &pending);
  void insertBarrier(OpBuilder &builder, Location loc) {
    BarrierOp::create(builder, loc);
    ++numBarriers;
  }
};

} // namespace

static Access accessOf(SlotAttr slot, bool writes) {
  return {false, slot.getSpace(), slot.getOffset(),
          slot.getOffset() + slot.getStride(), writes};
}

/// What the workers share of what `op` touches; a worker's own slots need no
/// barrier.
static Accesses accessesOf(Operation *kernel) {
  Accesses accesses;
  kernel->walk([&](Operation *op) {
    if (auto read = dyn_cast<ReadOp>(op))
      accesses.push_back(accessOf(read.getSlot(), false));
    else if (auto write = dyn_cast<WriteOp>(op))
      accesses.push_back(accessOf(write.getSlot(), true));
    else if (isa<CacheAppendOp>(op))
      accesses.push_back({true, Space::Rows, 0, 0, true});
    else if (isa<ScoresOp, ContextOp, AttentionOp>(op))
      accesses.push_back({true, Space::Rows, 0, 0, false});
  });
  return accesses;
}

static bool conflict(const Accesses &one, const Accesses &other) {
  return llvm::any_of(one, [&](const Access &lhs) {
    return llvm::any_of(other,
                        [&](const Access &rhs) { return lhs.conflicts(rhs); });
  });
}

/// What the ops in front of the block's first barrier touch.
static Accesses accessesBeforeBarrier(Block &block) {
  Accesses accesses;
  for (Operation &op : block) {
    if (isa<BarrierOp>(op))
      break;
    llvm::append_range(accesses, accessesOf(&op));
  }
  return accesses;
}

/// `pending` holds what has been touched since the last barrier, before the
/// block and then behind it.
void SchedulePass::scheduleBlock(Block &block, Accesses &pending) {
  for (Operation &op : llvm::make_early_inc_range(block)) {
    OpBuilder builder(&op);
    if (isa<KernelOp>(op)) {
      Accesses own = accessesOf(&op);
      if (conflict(pending, own)) {
        insertBarrier(builder, op.getLoc());
        pending.clear();
      }
      llvm::append_range(pending, own);
      continue;
    }
    auto layers = dyn_cast<LayersOp>(op);
    if (!layers)
      continue;
    // The body on its own first: its barriers tell what the ops before it
    // may meet.
    Block &body = layers.getBody().front();
    Accesses inside;
    scheduleBlock(body, inside);
    Accesses start = accessesBeforeBarrier(body);
    if (conflict(pending, start)) {
      insertBarrier(builder, op.getLoc());
      pending.clear();
    }
    bool hasBarrier = !body.getOps<BarrierOp>().empty();
    if (layers.getCount() > 1 && conflict(inside, start)) {
      OpBuilder atEnd = OpBuilder::atBlockTerminator(&body);
      insertBarrier(atEnd, body.getTerminator()->getLoc());
      inside.clear();
      hasBarrier = true;
    }
    if (hasBarrier)
      pending.clear();
    llvm::append_range(pending, inside);
  }
}

LogicalResult SchedulePass::schedule(ProgramOp program) {
  WalkResult captured = program.walk([](KernelOp kernel) {
    if (kernel.getNumResults() == 0)
      return WalkResult::advance();
    ruleError(kernel) << "has results: kvc-schedule needs kernels that work on "
                         "slots";
    return WalkResult::interrupt();
  });
  if (captured.wasInterrupted())
    return failure();
  for (Block &block : program.getBody())
    for (Operation &op : block.without_terminator())
      if (!isa<KernelOp, LayersOp>(op))
        return ruleError(&op)
               << "stands outside any kernel: kvc-schedule comes "
                  "after kvc-plan-memory";
  Accesses pending;
  scheduleBlock(program.getBody().front(), pending);
  int64_t id = 0;
  IRRewriter rewriter(&getContext());
  program.walk<WalkOrder::PreOrder>([&](KernelOp kernel) {
    rewriter.setInsertionPoint(kernel);
    auto dispatch =
        DispatchOp::create(rewriter, kernel.getLoc(), kernel.getName(), id++);
    dispatch.getBody().takeBody(kernel.getBody());
    rewriter.eraseOp(kernel);
    ++numDispatches;
    return WalkResult::skip();
  });
  return success();
}
