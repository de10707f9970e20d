// Instructions by which the lanes of a warp exchange values.
#include "runtime/sim/Ops.h"

#include <algorithm>

namespace kvc::sim {

/// The lanes an instruction names in its membermask (Op[slot]) have to be here.
/// `members` is that mask.
static bool gathered(Warp &warp, const Inst &inst, uint32_t mask, unsigned slot,
                     uint32_t &members) {
  const uint32_t *named = warp.reg<uint32_t>(inst.Op[slot]);
  members = named[firstLane(mask)];
  for (uint32_t rest = mask; rest; rest &= rest - 1) {
    uint32_t lane = firstLane(rest);
    if (!(named[lane] >> lane & 1)) {
      warp.fail(inst, lane,
                "the membermask " + hex(named[lane]) +
                    " has to name the lane that executes the instruction");
      return false;
    }
    if (named[lane] != members) {
      warp.fail(inst, lane,
                "the membermask is " + hex(named[lane]) + " here and " +
                    hex(members) + " in lane " +
                    std::to_string(firstLane(mask)) +
                    ": lanes that meet have to name the same mask");
      return false;
    }
  }
  if (members & ~warp.Alive & warp.Initial) {
    warp.fail(inst, firstLane(members & ~warp.Alive & warp.Initial),
              "this lane has exited, but the membermask " + hex(members) +
                  " names it");
    return false;
  }
  if (!warp.converged(inst, mask, members))
    return false;
  members &= warp.Alive;
  return true;
}

namespace {

enum Shuffle : uint8_t { Up, Down, Bfly, Idx };

} // namespace

/// Op: d, p or NoSlot, a, b, c, membermask.
static void runShuffle(Warp &warp, const Inst &inst, uint32_t mask) {
  uint32_t members = 0;
  if (!gathered(warp, inst, mask, 5, members))
    return;
  const uint32_t *a = warp.reg<uint32_t>(inst.Op[2]);
  const uint32_t *b = warp.reg<uint32_t>(inst.Op[3]);
  const uint32_t *c = warp.reg<uint32_t>(inst.Op[4]);
  uint32_t result[Lanes] = {};
  uint32_t inside = 0;
  for (uint32_t rest = mask; rest; rest &= rest - 1) {
    uint32_t lane = firstLane(rest);
    uint32_t by = b[lane] & 31, clamp = c[lane] & 31,
             segment = c[lane] >> 8 & 31;
    int32_t most = int32_t((lane & segment) | (clamp & ~segment));
    int32_t from = 0;
    bool valid = false;
    switch (inst.Kind) {
    case Up:
      from = int32_t(lane) - int32_t(by);
      valid = from >= most;
      break;
    case Down:
      from = int32_t(lane + by);
      valid = from <= most;
      break;
    case Bfly:
      from = int32_t(lane ^ by);
      valid = from <= most;
      break;
    default:
      from = int32_t((lane & segment) | (by & ~segment));
      valid = from <= most;
      break;
    }
    if (!valid)
      from = int32_t(lane);
    if (!(members >> from & 1)) {
      warp.fail(inst, lane,
                "lane " + std::to_string(from) +
                    " is read, which does not execute the instruction with " +
                    "this lane (they are " + hex(members) + ")");
      return;
    }
    result[lane] = a[from];
    inside |= uint32_t(valid) << lane;
  }
  commit(warp, inst.Op[0], result, mask);
  if (inst.Op[1] != NoSlot)
    commitPredicate(warp, inst.Op[1], inside, mask);
}

namespace {

enum Vote : uint8_t { All, Any, Uni, Ballot };

} // namespace

/// Op: d, predicate, membermask.
static void runVote(Warp &warp, const Inst &inst, uint32_t mask) {
  uint32_t members = 0;
  if (!gathered(warp, inst, mask, 2, members))
    return;
  uint32_t votes = warp.predicate(inst.Op[1]) & members;
  if (inst.Kind == Ballot) {
    uint32_t result[Lanes];
    std::fill_n(result, Lanes, votes);
    commit(warp, inst.Op[0], result, mask);
    return;
  }
  bool outcome = inst.Kind == All   ? votes == members
                 : inst.Kind == Any ? votes != 0
                                    : votes == members || votes == 0;
  commitPredicate(warp, inst.Op[0], outcome ? FullMask : 0, mask);
}

/// Op: d, p or NoSlot, a, membermask. Kind: 1 is .all.
template <class T>
static void runMatch(Warp &warp, const Inst &inst, uint32_t mask) {
  uint32_t members = 0;
  if (!gathered(warp, inst, mask, 3, members))
    return;
  const T *a = warp.reg<T>(inst.Op[2]);
  uint32_t result[Lanes] = {};
  uint32_t same = 0;
  forLanes(mask, [&](uint32_t lane) {
    uint32_t equal = 0;
    forLanes(members, [&](uint32_t other) {
      equal |= uint32_t(a[lane] == a[other]) << other;
    });
    if (inst.Kind)
      equal = equal == members ? members : 0;
    result[lane] = equal;
    same |= uint32_t(equal != 0) << lane;
  });
  commit(warp, inst.Op[0], result, mask);
  if (inst.Op[1] != NoSlot)
    commitPredicate(warp, inst.Op[1], same, mask);
}

namespace {

enum Reduce : uint8_t { RAdd, RMin, RMax, RAnd, ROr, RXor };

} // namespace

/// Op: d, a, membermask. Target: whether the values are signed.
static void runRedux(Warp &warp, const Inst &inst, uint32_t mask) {
  uint32_t members = 0;
  if (!gathered(warp, inst, mask, 2, members))
    return;
  const uint32_t *a = warp.reg<uint32_t>(inst.Op[1]);
  uint32_t sum = a[firstLane(members)];
  // Flipping the sign bit orders signed values as unsigned ones.
  uint32_t flip = inst.Target ? 0x80000000 : 0;
  forLanes(members & (members - 1), [&](uint32_t lane) {
    switch (inst.Kind) {
    case RAdd:
      sum += a[lane];
      break;
    case RMin:
      sum = std::min(sum ^ flip, a[lane] ^ flip) ^ flip;
      break;
    case RMax:
      sum = std::max(sum ^ flip, a[lane] ^ flip) ^ flip;
      break;
    case RAnd:
      sum &= a[lane];
      break;
    case ROr:
      sum |= a[lane];
      break;
    default:
      sum ^= a[lane];
    }
  });
  uint32_t result[Lanes];
  std::fill_n(result, Lanes, sum);
  commit(warp, inst.Op[0], result, mask);
}

static void runActiveMask(Warp &warp, const Inst &inst, uint32_t mask) {
  uint32_t result[Lanes];
  std::fill_n(result, Lanes, mask);
  commit(warp, inst.Op[0], result, mask);
}

/// Op: d, p, membermask.
static void runElect(Warp &warp, const Inst &inst, uint32_t mask) {
  uint32_t members = 0;
  if (!gathered(warp, inst, mask, 2, members))
    return;
  uint32_t leader = firstLane(members);
  uint32_t result[Lanes];
  std::fill_n(result, Lanes, leader);
  commit(warp, inst.Op[0], result, mask);
  commitPredicate(warp, inst.Op[1], 1u << leader, mask);
}

static void runWarpBarrier(Warp &warp, const Inst &inst, uint32_t mask) {
  uint32_t members = 0;
  if (!gathered(warp, inst, mask, 0, members))
    return;
  if (warp.Block->Checks)
    warp.Block->Checker.warpSync(warp.Index, members);
}

static bool takeSync(Decoder &d) {
  return d.take("sync") || d.fail(".sync is missing");
}

bool decodeShuffle(Decoder &d) {
  if (!takeSync(d))
    return false;
  if (d.take("up"))
    d.I.Kind = Up;
  else if (d.take("down"))
    d.I.Kind = Down;
  else if (d.take("bfly"))
    d.I.Kind = Bfly;
  else if (d.take("idx"))
    d.I.Kind = Idx;
  else
    return d.fail("the mode is missing");
  if (d.takeType() != Type::B32 || !d.expect(5))
    return false;
  const Operand &to = d.operand(0);
  Operand plain = to;
  plain.Second = {};
  unsigned bytes = 0;
  d.I.Op[0] = d.dstWide(plain, Type::B32, bytes);
  if (d.ok() && bytes != 4)
    return d.fail("the destination has 32 bits");
  d.I.Op[1] = to.Second.empty() ? NoSlot : d.dstPredicate(to.Second);
  for (unsigned k = 1; k != 5; ++k)
    d.I.Op[1 + k] = d.src(k, Type::B32);
  d.I.Run = runShuffle;
  return true;
}

bool decodeVote(Decoder &d) {
  if (!takeSync(d))
    return false;
  if (d.take("all"))
    d.I.Kind = All;
  else if (d.take("any"))
    d.I.Kind = Any;
  else if (d.take("uni"))
    d.I.Kind = Uni;
  else if (d.take("ballot"))
    d.I.Kind = Ballot;
  else
    return d.fail("the mode is missing");
  if (d.takeType() != (d.I.Kind == Ballot ? Type::B32 : Type::Pred) ||
      !d.expect(3))
    return false;
  d.I.Op[1] = d.srcPredicate(d.operand(1));
  d.I.Op[2] = d.src(2, Type::B32);
  d.I.Op[0] =
      d.I.Kind == Ballot ? d.dst(0, Type::B32) : d.dstPredicate(d.operand(0));
  d.I.Run = runVote;
  return true;
}

bool decodeMatch(Decoder &d) {
  bool all = d.take("all"), any = !all && d.take("any");
  if (!takeSync(d) || all == any)
    return d.fail("the mode is missing");
  Type type = d.takeType();
  if ((type != Type::B32 && type != Type::B64) || !d.expect(3))
    return false;
  d.I.Kind = all;
  const Operand &to = d.operand(0);
  if (any && !to.Second.empty())
    return d.fail(".any has no predicate");
  Operand plain = to;
  plain.Second = {};
  unsigned bytes = 0;
  d.I.Op[0] = d.dstWide(plain, Type::B32, bytes);
  if (d.ok() && bytes != 4)
    return d.fail("the destination has 32 bits");
  d.I.Op[1] = to.Second.empty() ? NoSlot : d.dstPredicate(to.Second);
  d.I.Op[2] = d.src(1, type);
  d.I.Op[3] = d.src(2, Type::B32);
  d.I.Run = type == Type::B32 ? runMatch<uint32_t> : runMatch<uint64_t>;
  return true;
}

bool decodeRedux(Decoder &d) {
  if (!takeSync(d))
    return false;
  static constexpr std::pair<const char *, uint8_t> names[] = {
      {"add", RAdd}, {"min", RMin}, {"max", RMax},
      {"and", RAnd}, {"or", ROr},   {"xor", RXor}};
  bool found = false;
  for (auto [name, op] : names)
    if (!found && d.take(name)) {
      d.I.Kind = op;
      found = true;
    }
  Type type = d.takeType();
  bool bits = d.I.Kind >= RAnd;
  if (!found ||
      (bits ? type != Type::B32 : type != Type::U32 && type != Type::S32))
    return d.fail("the operation does not exist for this type");
  if (!d.expect(3))
    return false;
  d.I.Target = type == Type::S32;
  d.I.Op[0] = d.dst(0, type);
  d.I.Op[1] = d.src(1, type);
  d.I.Op[2] = d.src(2, Type::B32);
  d.I.Run = runRedux;
  return true;
}

bool decodeActiveMask(Decoder &d) {
  if (d.takeType() != Type::B32 || !d.expect(1))
    return false;
  d.I.Op[0] = d.dst(0, Type::B32);
  d.I.Run = runActiveMask;
  return true;
}

bool decodeElect(Decoder &d) {
  if (!takeSync(d) || !d.expect(2))
    return false;
  const Operand &to = d.operand(0);
  Operand plain = to;
  plain.Second = {};
  if (plain.Text == "_")
    plain.Is = Operand::Sink;
  unsigned bytes = 0;
  d.I.Op[0] = d.dstWide(plain, Type::B32, bytes);
  d.I.Op[1] = d.dstPredicate(to.Second);
  d.I.Op[2] = d.src(1, Type::B32);
  d.I.Run = runElect;
  return true;
}

/// bar.warp.sync
bool decodeWarpBarrier(Decoder &d) {
  if (!takeSync(d) || !d.expect(1))
    return false;
  d.I.Op[0] = d.src(0, Type::B32);
  d.I.Run = runWarpBarrier;
  return true;
}

} // namespace kvc::sim
