// cp.async and mbarrier.
#include "runtime/sim/Ops.h"

namespace kvc::sim {

/// Sizes are 16 almost always: no call then.
static void copyBytes(uint8_t *to, const uint8_t *from, uint32_t bytes) {
  if (bytes == 16)
    std::memcpy(to, from, 16);
  else
    std::memcpy(to, from, bytes);
}

/// Reads `bytes` (any number) of each lane's source: pieces that are powers of
/// two, the largest first, so that each is aligned if the source is.
static bool readSource(Warp &warp, const Inst &inst, uint32_t mask,
                       const uint64_t *source, uint32_t bytes,
                       uint8_t (*data)[16]) {
  uint64_t address[Lanes];
  uint8_t *host[Lanes];
  for (uint32_t done = 0, piece = 16; done != bytes; piece /= 2) {
    if (bytes - done < piece)
      continue;
    forLanes(mask, [&](uint32_t lane) { address[lane] = source[lane] + done; });
    if (!access(warp, inst, mask, Space::Global, address, piece, Mode::Read,
                host))
      return false;
    forLanes(mask, [&](uint32_t lane) {
      copyBytes(data[lane] + done, host[lane], piece);
    });
    done += piece;
  }
  return true;
}

/// Bytes: the size. Op[8]: destination (Offset), Op[9]: source (Target is its
/// offset), Op[0]: the source's size or NoSlot, Op[1]: ignore it or NoSlot.
static void runCopy(Warp &warp, const Inst &inst, uint32_t mask) {
  uint64_t to[Lanes], source[Lanes];
  addresses(warp, inst, 8, to);
  const uint64_t *base = warp.reg<uint64_t>(inst.Op[9]);
  uint32_t sizes[Lanes];
  for (uint32_t lane = 0; lane != Lanes; ++lane) {
    source[lane] = base[lane] + uint64_t(int64_t(int32_t(inst.Target)));
    sizes[lane] = inst.Bytes;
  }
  if (inst.Op[0] != NoSlot)
    std::memcpy(sizes, warp.reg<uint32_t>(inst.Op[0]), sizeof(sizes));
  uint32_t ignored = inst.Op[1] == NoSlot ? 0 : warp.predicate(inst.Op[1]);
  forLanes(mask & ignored, [&](uint32_t lane) { sizes[lane] = 0; });

  uint8_t data[Lanes][16] = {};
  for (uint32_t rest = mask; rest;) {
    uint32_t size = sizes[firstLane(rest)], same = 0;
    forLanes(rest, [&](uint32_t lane) {
      same |= uint32_t(sizes[lane] == size) << lane;
    });
    rest &= ~same;
    if (size > inst.Bytes) {
      warp.fail(inst, firstLane(same),
                "a source of " + std::to_string(size) +
                    " bytes for a copy of " + std::to_string(inst.Bytes));
      return;
    }
    forLanes(size ? same : 0, [&](uint32_t lane) {
      if (source[lane] % inst.Bytes && warp.Raised == Event::None)
        warp.fail(inst, lane,
                  "the source " + hex(source[lane]) +
                      " has to be a multiple of " + std::to_string(inst.Bytes));
    });
    if (warp.Raised != Event::None ||
        (size && !readSource(warp, inst, same, source, size, data)))
      return;
  }
  uint8_t *host[Lanes];
  if (!access(warp, inst, mask, Space::Shared, to, inst.Bytes, Mode::Copy,
              host))
    return;
  Cta &cta = *warp.Block;
  if (cta.Checks) {
    Request request{warp.Index, mask, inst.Bytes, cta.index(inst), to};
    Finding found;
    if (!cta.Checker.copy(request, source, sizes, found)) {
      warp.fail(inst, found);
      return;
    }
  }
  forLanes(mask, [&](uint32_t lane) {
    copyBytes(host[lane], data[lane], inst.Bytes);
  });
}

static void runCommit(Warp &warp, const Inst &, uint32_t mask) {
  if (warp.Block->Checks)
    warp.Block->Checker.commit(warp.Index, mask);
}
/// Target: groups that may still be under way.
static void runWaitGroup(Warp &warp, const Inst &inst, uint32_t mask) {
  if (warp.Block->Checks)
    warp.Block->Checker.waitGroup(warp.Index, mask, inst.Target);
}
static void runWaitAll(Warp &warp, const Inst &, uint32_t mask) {
  if (warp.Block->Checks)
    warp.Block->Checker.waitAll(warp.Index, mask);
}

namespace {

/// An mbarrier's 64 bits as this simulator lays them out (the ISA says that
/// they are opaque): bytes still expected, arrivals still expected, arrivals of
/// a phase, and the phase's parity.
struct Phase {
  int32_t Bytes = 0;     // 22 bits
  uint32_t Pending = 0;  // 20 bits
  uint32_t Expected = 0; // 20 bits
  uint32_t Parity = 0;

  static Phase of(uint64_t bits) {
    Phase phase;
    phase.Bytes = int32_t(uint32_t(bits & 0x3FFFFF) << 10) >> 10;
    phase.Pending = uint32_t(bits >> 22 & 0xFFFFF);
    phase.Expected = uint32_t(bits >> 42 & 0xFFFFF);
    phase.Parity = uint32_t(bits >> 63);
    return phase;
  }
  uint64_t bits() const {
    return (uint32_t(Bytes) & 0x3FFFFF) | uint64_t(Pending) << 22 |
           uint64_t(Expected) << 42 | uint64_t(Parity) << 63;
  }
};

enum Step : uint8_t { Init, Inval, Arrive, ArriveTx, ExpectTx, Test, Try };

} // namespace

static bool object(Warp &warp, const Inst &inst, uint32_t mask, Mode mode,
                   uint8_t **host, uint64_t *address) {
  addresses(warp, inst, 8, address);
  return access(warp, inst, mask, inst.Where, address, 8, mode, host);
}

/// Op: state or NoSlot, count or bytes.
static void runMbarrier(Warp &warp, const Inst &inst, uint32_t mask) {
  uint8_t *host[Lanes];
  uint64_t address[Lanes];
  bool init = inst.Kind == Init;
  if (!object(warp, inst, mask, init ? Mode::Write : Mode::Atomic, host,
              address))
    return;
  const uint32_t *count =
      inst.Op[1] == NoSlot ? nullptr : warp.reg<uint32_t>(inst.Op[1]);
  for (uint32_t rest = mask; rest; rest &= rest - 1) {
    uint32_t lane = firstLane(rest);
    uint64_t bits = 0;
    std::memcpy(&bits, host[lane], sizeof(bits));
    uint64_t before = bits;
    Phase phase = Phase::of(bits);
    uint32_t value = count ? count[lane] : 1;
    if (init) {
      if (value == 0 || value > 0xFFFFF) {
        warp.fail(inst, lane,
                  "a count of " + std::to_string(value) +
                      ": 1 to 1048575 arrivals");
        return;
      }
      phase = {0, value, value, 0};
    } else if (inst.Kind == Inval) {
      phase = {};
    } else {
      uint32_t arrivals = inst.Kind == ExpectTx   ? 0
                          : inst.Kind == ArriveTx ? 1
                                                  : value;
      if (arrivals > phase.Pending) {
        warp.fail(inst, lane,
                  std::to_string(arrivals) + " arrivals where the phase " +
                      "waits for " + std::to_string(phase.Pending));
        return;
      }
      if (inst.Kind != Arrive)
        phase.Bytes += int32_t(value);
      phase.Pending -= arrivals;
      warp.Block->noteArrival(address[lane], warp.Index);
      if (phase.Pending == 0 && phase.Bytes == 0) {
        phase.Parity ^= 1;
        phase.Pending = phase.Expected;
      }
    }
    bits = phase.bits();
    std::memcpy(host[lane], &bits, sizeof(bits));
    if (inst.Op[0] != NoSlot)
      warp.reg<uint64_t>(inst.Op[0])[lane] = before;
  }
}

/// Op: p, state or parity. Target: 1 is .parity.
static void runMbarrierWait(Warp &warp, const Inst &inst, uint32_t mask) {
  uint8_t *host[Lanes];
  uint64_t address[Lanes];
  if (!object(warp, inst, mask, Mode::Atomic, host, address))
    return;
  uint32_t done = 0;
  forLanes(mask, [&](uint32_t lane) {
    uint64_t bits = 0;
    std::memcpy(&bits, host[lane], sizeof(bits));
    uint32_t parity =
        inst.Target ? warp.reg<uint32_t>(inst.Op[1])[lane] & 1
                    : Phase::of(warp.reg<uint64_t>(inst.Op[1])[lane]).Parity;
    if (Phase::of(bits).Parity == parity)
      return;
    done |= 1u << lane;
    warp.Block->noteWait(address[lane], warp.Index);
  });
  commitPredicate(warp, inst.Op[0], done, mask);
  if (done != mask)
    warp.Raised = Event::Yield;
}

bool decodeCopyAsync(Decoder &d) {
  if (!d.take("async"))
    return d.fail("only cp.async is known");
  if (d.take("commit_group")) {
    d.I.Run = runCommit;
    return d.expect(0);
  }
  if (d.take("wait_all")) {
    d.I.Run = runWaitAll;
    return d.expect(0);
  }
  if (d.take("wait_group")) {
    if (!d.expect(1))
      return false;
    int64_t pending = d.immediate(0);
    if (pending < 0 || pending > INT32_MAX)
      return d.fail("a negative number of groups");
    d.I.Target = uint32_t(pending);
    d.I.Run = runWaitGroup;
    return true;
  }
  bool first = d.take("ca"), bypass = !first && d.take("cg");
  if (!first && !bypass)
    return d.fail(".ca or .cg is missing");
  if ((!d.take("shared") && !d.take("shared::cta")) || !d.take("global"))
    return d.fail("only .shared.global is known");
  bool hint = d.take("L2::cache_hint");
  for (const char *name : {"L2::64B", "L2::128B", "L2::256B"})
    d.take(name);
  if (!d.expect(3 + hint, 4 + hint))
    return false;
  int64_t bytes = d.immediate(2);
  if (bytes != 16 && (!first || (bytes != 4 && bytes != 8)))
    return d.fail("a size of " + std::to_string(bytes) +
                  (first ? ": 4, 8 or 16" : ": .cg copies 16"));
  d.I.Op[0] = d.I.Op[1] = NoSlot;
  if (d.operands() == 4u + hint) {
    const Operand &size = d.operand(3);
    Register *reg = size.Is == Operand::Name ? d.find(size.Text) : nullptr;
    if (reg && reg->Is == Type::Pred)
      d.I.Op[1] = d.srcPredicate(size);
    else
      d.I.Op[0] = d.src(size, Type::U32);
  }
  if (hint)
    d.src(d.operands() - 1, Type::B64);
  d.address(1, 9, Space::Global);
  if (d.I.Offset != int32_t(d.I.Offset))
    return d.fail("the source's offset has 32 bits");
  d.I.Target = uint32_t(int32_t(d.I.Offset));
  d.address(0, 8, Space::Shared);
  d.I.Bytes = uint8_t(bytes);
  d.I.Run = runCopy;
  return true;
}

bool decodeMbarrier(Decoder &d) {
  static constexpr std::pair<const char *, uint8_t> names[] = {
      {"init", Init},          {"inval", Inval},    {"arrive", Arrive},
      {"expect_tx", ExpectTx}, {"test_wait", Test}, {"try_wait", Try}};
  bool found = false;
  for (auto [name, step] : names)
    if (!found && d.take(name)) {
      d.I.Kind = step;
      found = true;
    }
  if (!found)
    return d.fail("this operation is not known");
  if (d.I.Kind == Arrive && d.take("expect_tx"))
    d.I.Kind = ArriveTx;
  bool parity = d.I.Kind >= Test && d.take("parity");
  for (const char *name : {"release", "acquire", "relaxed"})
    d.take(name);
  Space space = d.takeSpace();
  d.takeScope();
  if (d.takeType() != Type::B64)
    return d.fail(".b64 is missing");
  if (space != Space::Shared && space != Space::Generic)
    return d.fail("the space has to be shared");
  d.I.Op[0] = d.I.Op[1] = NoSlot;
  if (d.I.Kind >= Test) {
    if (!d.expect(3, d.I.Kind == Try ? 4 : 3))
      return false;
    d.I.Op[0] = d.dstPredicate(d.operand(0));
    d.address(1, 8, space);
    d.I.Op[1] = d.src(2, parity ? Type::U32 : Type::B64);
    if (d.operands() == 4)
      d.src(3, Type::U32);
    d.I.Target = parity;
    d.I.Run = runMbarrierWait;
    return true;
  }
  bool arrive = d.I.Kind == Arrive || d.I.Kind == ArriveTx;
  if (!d.expect(1 + arrive + (d.I.Kind != Inval && d.I.Kind != Arrive),
                1 + arrive + (d.I.Kind != Inval)))
    return false;
  if (arrive && d.operand(0).Is != Operand::Sink)
    d.I.Op[0] = d.dst(0, Type::B64);
  d.address(arrive, 8, space);
  if (d.operands() == 2u + arrive)
    d.I.Op[1] = d.src(1 + arrive, Type::U32);
  d.I.Run = runMbarrier;
  return true;
}

} // namespace kvc::sim
