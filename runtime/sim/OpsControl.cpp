// Branches, exits and barriers.
#include "runtime/sim/Ops.h"

namespace kvc::sim {

/// The running group goes to its part's targets: `taken` to `target`, the rest
/// to the next instruction.
static void branch(Warp &warp, uint32_t taken, uint32_t target) {
  if (taken == warp.Active) {
    warp.Next = target;
    if (!warp.Others.empty())
      warp.Raised = Event::Regroup;
    return;
  }
  warp.Others.push_back({target, taken, false});
  warp.Active &= ~taken;
  warp.Raised = Event::Regroup;
}

static void runBranch(Warp &warp, const Inst &inst, uint32_t mask) {
  branch(warp, mask, inst.Target);
}

static void runUniformBranch(Warp &warp, const Inst &inst, uint32_t mask) {
  if (mask != warp.Active) {
    warp.fail(inst, firstLane(warp.Active & ~mask),
              ".uni: this lane does not branch, others do");
    return;
  }
  branch(warp, mask, inst.Target);
}

/// Op[0] is the index; Target the table.
static void runBranchIndexed(Warp &warp, const Inst &inst, uint32_t mask) {
  const uint32_t *index = warp.reg<uint32_t>(inst.Op[0]);
  const std::vector<uint32_t> &targets =
      warp.Block->Run->Entry->Tables[inst.Target];
  uint32_t rest = mask;
  while (rest) {
    uint32_t lane = firstLane(rest), which = index[lane];
    if (which >= targets.size()) {
      warp.fail(inst, lane,
                "the index " + std::to_string(which) + " of " +
                    std::to_string(targets.size()) + " targets");
      return;
    }
    uint32_t same = 0;
    forLanes(rest, [&](uint32_t other) {
      same |= uint32_t(index[other] == which) << other;
    });
    rest &= ~same;
    branch(warp, same, targets[which]);
  }
}

static void runExit(Warp &warp, const Inst &inst, uint32_t mask) {
  Cta &cta = *warp.Block;
  if (cta.Checks && cta.Checker.copiesPending()) {
    Finding found;
    if (!cta.Checker.exit(warp.Index, mask, found)) {
      warp.fail(inst, found);
      return;
    }
  }
  warp.Alive &= ~mask;
  warp.Active &= ~mask;
  warp.Raised = Event::Exit;
}

static void runTrap(Warp &warp, const Inst &inst, uint32_t mask) {
  warp.fail(inst, firstLane(mask), "the kernel stops itself here");
}

/// A register that has to hold the same value in all lanes.
static bool uniform(Warp &warp, const Inst &inst, uint32_t slot,
                    uint32_t &value) {
  const uint32_t *lanes = warp.reg<uint32_t>(slot);
  value = lanes[firstLane(warp.Initial)];
  bool same = true;
  forLanes(warp.Initial, [&](uint32_t lane) { same &= lanes[lane] == value; });
  if (!same)
    warp.fail(inst, Lanes, "a barrier operand that differs within the warp");
  return same;
}

// Kind of a barrier: 0 or the reduction, see Cta::release. Op: d, barrier,
// threads or NoSlot, predicate. Target: 1 waits, 0 only arrives.
static void runBarrier(Warp &warp, const Inst &inst, uint32_t mask) {
  if (!warp.aligned(inst, mask))
    return;
  uint32_t id = 0, threads = 0;
  if (!uniform(warp, inst, inst.Op[1], id) ||
      (inst.Op[2] != NoSlot && !uniform(warp, inst, inst.Op[2], threads)))
    return;
  if (id >= 16) {
    warp.fail(inst, Lanes, "barrier " + std::to_string(id) + ": there are 16");
    return;
  }
  Cta &cta = *warp.Block;
  if (inst.Op[2] != NoSlot &&
      (threads == 0 || threads % Lanes || threads / Lanes > cta.warps())) {
    warp.fail(inst, Lanes,
              std::to_string(threads) +
                  " threads at a barrier: a multiple of 32, at most the CTA's");
    return;
  }
  if (inst.Kind) {
    uint32_t votes = warp.predicate(inst.Op[3]) & warp.Initial;
    Barrier &barrier = cta.Barriers[id];
    barrier.True += uint32_t(__builtin_popcount(votes));
    barrier.AllTrue &= votes == warp.Initial;
  }
  cta.arrive(warp, inst, id, threads / Lanes, inst.Target != 0);
}

static void runGridWait(Warp &warp, const Inst &, uint32_t) {
  warp.GridWaited = true;
}

static void runYield(Warp &warp, const Inst &, uint32_t) {
  warp.Raised = Event::Yield;
}

static void runNothing(Warp &, const Inst &, uint32_t) {}

bool decodeBranch(Decoder &d) {
  bool uni = d.take("uni");
  if (!d.expect(1))
    return false;
  const Operand &to = d.operand(0);
  if (to.Is != Operand::Name || to.Offset)
    return d.fail("a label was expected");
  d.Function.branchTo(d.Function.Into.Code.size(), to.Text, d.Source.Line);
  d.I.Run = uni ? runUniformBranch : runBranch;
  return true;
}

bool decodeBranchIndexed(Decoder &d) {
  d.take("uni");
  if (!d.take("idx"))
    return d.fail("only brx.idx is known");
  if (!d.expect(2))
    return false;
  d.I.Op[0] = d.src(0, Type::U32);
  const std::vector<std::string> *targets =
      d.Function.findTargets(d.operand(1).Text);
  if (!targets)
    return d.fail("no .branchtargets are called '" +
                  std::string(d.operand(1).Text) + "'");
  Kernel &kernel = d.Function.Into;
  d.I.Target = uint32_t(kernel.Tables.size());
  kernel.Tables.emplace_back(targets->size());
  for (size_t which = 0; which != targets->size(); ++which)
    d.Function.branchTo(d.I.Target, (*targets)[which], d.Source.Line,
                        int(which));
  d.I.Run = runBranchIndexed;
  return true;
}

bool decodeExit(Decoder &d) {
  d.take("uni");
  d.I.Run = runExit;
  return d.expect(0);
}

bool decodeTrap(Decoder &d) {
  d.I.Run = runTrap;
  return d.expect(0);
}

bool decodeWarpBarrier(Decoder &d);

/// bar, barrier: .sync, .arrive, .red.
bool decodeBarrier(Decoder &d) {
  if (d.base() == "bar" && d.take("warp"))
    return decodeWarpBarrier(d);
  d.take("cta");
  d.take("aligned");
  bool sync = d.take("sync"), arrive = d.take("arrive"), red = d.take("red");
  if (sync + arrive + red != 1)
    return d.fail("one of .sync, .arrive and .red is needed");
  d.I.Target = !arrive;
  d.I.Op[2] = NoSlot;
  size_t first = 0;
  if (red) {
    d.I.Kind = d.take("and") ? 1 : d.take("or") ? 2 : d.take("popc") ? 3 : 0;
    Type type = d.takeType();
    if (d.I.Kind == 0 || type != (d.I.Kind == 3 ? Type::U32 : Type::Pred))
      return d.fail("one of .and.pred, .or.pred and .popc.u32 is needed");
    if (!d.expect(3, 4))
      return false;
    d.I.Op[3] = d.srcPredicate(d.operand(d.operands() - 1));
    d.I.Op[0] = d.I.Kind == 3 ? d.dst(0, type) : d.dstPredicate(d.operand(0));
    first = 1;
  } else if (!d.expect(arrive ? 2 : 1, 2)) {
    return false;
  }
  d.I.Op[1] = d.src(first, Type::U32);
  if (d.operands() - (red ? 2 : 0) == 2)
    d.I.Op[2] = d.src(first + 1, Type::U32);
  d.I.Run = runBarrier;
  return true;
}

bool decodeGridControl(Decoder &d) {
  bool wait = d.take("wait");
  if (!wait && !d.take("launch_dependents"))
    return d.fail("one of .wait and .launch_dependents is needed");
  if (wait)
    d.Function.Into.GridWait = true;
  d.I.Run = wait ? runGridWait : runNothing;
  return d.expect(0);
}

bool decodeNanosleep(Decoder &d) {
  if (d.takeType() != Type::U32 || !d.expect(1))
    return false;
  d.src(0, Type::U32);
  d.I.Run = runYield;
  return true;
}

/// Hints to the hardware that nothing depends on.
bool decodeNothing(Decoder &d) {
  if (d.base() == "setmaxnreg") {
    bool known = d.take("inc") || d.take("dec");
    if (!known || !d.take("sync") || !d.take("aligned") ||
        d.takeType() != Type::U32 || !d.expect(1))
      return false;
    d.immediate(0);
  } else { // pmevent
    d.take("mask");
    if (!d.expect(1))
      return false;
    d.immediate(0);
  }
  d.I.Run = runNothing;
  return true;
}

} // namespace kvc::sim
