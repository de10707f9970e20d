// mov, cvta and isspacep.
#include "runtime/sim/Ops.h"

#include <algorithm>
#include <chrono>
#include <tuple>

namespace kvc::sim {

namespace {

struct AddWindow {
  static uint64_t run(const Inst &inst, uint64_t a) {
    return a + uint64_t(inst.Offset);
  }
};

} // namespace

static uint64_t windowOf(Space space) {
  return space == Space::Shared  ? SharedWindow
         : space == Space::Local ? LocalWindow
         : space == Space::Param ? ParamWindow
         : space == Space::Const ? ConstWindow
                                 : 0;
}

static void runIsspacep(Warp &warp, const Inst &inst, uint32_t mask) {
  const uint64_t *a = warp.reg<uint64_t>(inst.Op[1]);
  uint32_t bits = 0;
  forLanes(mask, [&](uint32_t lane) {
    bits |= uint32_t(spaceOf(a[lane]) == inst.Where) << lane;
  });
  commitPredicate(warp, inst.Op[0], bits, mask);
}

template <class T>
static void runMove(Warp &warp, const Inst &inst, uint32_t mask) {
  T value[Lanes];
  std::memcpy(value, warp.reg<T>(inst.Op[1]), sizeof(value));
  commit(warp, inst.Op[0], value, mask);
}

namespace {

struct Wide128 {
  uint64_t Half[2];
};

} // namespace

static void runMovePredicate(Warp &warp, const Inst &inst, uint32_t mask) {
  commitPredicate(warp, inst.Op[0], warp.predicate(inst.Op[1]), mask);
}

/// Count elements of Bytes bytes each: Op[0] from the others, or to them.
static void runPackVector(Warp &warp, const Inst &inst, uint32_t mask) {
  uint32_t whole = inst.Bytes * inst.Count;
  forLanes(mask, [&](uint32_t lane) {
    uint8_t *to = warp.File + inst.Op[0] + lane * whole;
    uint8_t value[16];
    for (uint32_t e = 0; e != inst.Count; ++e)
      std::memcpy(value + e * inst.Bytes,
                  warp.File + inst.Op[1 + e] + lane * inst.Bytes, inst.Bytes);
    std::memcpy(to, value, whole);
  });
}
static void runUnpackVector(Warp &warp, const Inst &inst, uint32_t mask) {
  uint32_t whole = inst.Bytes * inst.Count;
  forLanes(mask, [&](uint32_t lane) {
    uint8_t value[16];
    std::memcpy(value, warp.File + inst.Op[inst.Count] + lane * whole, whole);
    for (uint32_t e = 0; e != inst.Count; ++e)
      std::memcpy(warp.File + inst.Op[e] + lane * inst.Bytes,
                  value + e * inst.Bytes, inst.Bytes);
  });
}
static void runPackPair(Warp &warp, const Inst &inst, uint32_t mask) {
  const uint16_t *low = warp.reg<uint16_t>(inst.Op[1]);
  const uint16_t *high = warp.reg<uint16_t>(inst.Op[2]);
  uint32_t result[Lanes];
  for (uint32_t lane = 0; lane != Lanes; ++lane)
    result[lane] = pack16(low[lane], high[lane]);
  commit(warp, inst.Op[0], result, mask);
}

namespace {

enum Clock : uint8_t { Cycles, CyclesHigh, Nanoseconds, NanosecondsHigh };

} // namespace

/// The clock of a simulated warp is the instructions its CTA has executed.
template <class T>
static void runClock(Warp &warp, const Inst &inst, uint32_t mask) {
  uint64_t value = warp.Block->Executed + warp.Pc;
  if (inst.Kind >= Nanoseconds)
    value = uint64_t(std::chrono::duration_cast<std::chrono::nanoseconds>(
                         std::chrono::steady_clock::now().time_since_epoch())
                         .count());
  if (inst.Kind == CyclesHigh || inst.Kind == NanosecondsHigh)
    value >>= 32;
  T result[Lanes];
  std::fill_n(result, Lanes, T(value));
  commit(warp, inst.Op[0], result, mask);
}

/// Registers that change while a CTA runs; false: the operand is none of them.
static bool decodeClock(Decoder &d, Type type) {
  const Operand &from = d.operand(1);
  static constexpr std::tuple<const char *, uint8_t, unsigned> names[] = {
      {"%clock", Cycles, 4},
      {"%clock_hi", CyclesHigh, 4},
      {"%clock64", Cycles, 8},
      {"%globaltimer", Nanoseconds, 8},
      {"%globaltimer_lo", Nanoseconds, 4},
      {"%globaltimer_hi", NanosecondsHigh, 4}};
  for (auto [name, kind, bytes] : names)
    if (from.Is == Operand::Name && from.Text == name) {
      if (bytesOf(type) != bytes)
        return d.fail("the register has " + std::to_string(8 * bytes) +
                      " bits");
      d.I.Kind = kind;
      d.I.Op[0] = d.dst(0, type);
      d.I.Run = bytes == 4 ? runClock<uint32_t> : runClock<uint64_t>;
      return true;
    }
  return false;
}

static Type bitsType(unsigned bytes) {
  return bytes == 2   ? Type::B16
         : bytes == 4 ? Type::B32
         : bytes == 8 ? Type::B64
                      : Type::None;
}

static bool decodeVectorMove(Decoder &d, Type type) {
  bool pack = d.operand(1).Is == Operand::Vector;
  if (pack && d.operand(0).Is == Operand::Vector)
    return d.fail("one operand is a vector, not both");
  std::vector<const Operand *> parts = d.elements(pack ? 1 : 0);
  unsigned count = unsigned(parts.size());
  unsigned bytes = count ? bytesOf(type) / count : 0;
  Type part = bitsType(bytes);
  if ((count != 2 && count != 4) || part == Type::None)
    return d.fail("a vector of " + std::to_string(count) + " elements");
  d.I.Bytes = uint8_t(bytes);
  d.I.Count = uint8_t(count);
  if (pack) {
    for (unsigned e = 0; e != count; ++e)
      d.I.Op[1 + e] = d.src(*parts[e], part);
    d.I.Op[0] = d.dst(0, type);
    d.I.Run = bytes == 2 && count == 2 ? runPackPair : runPackVector;
    return true;
  }
  d.I.Op[count] = d.src(1, type);
  for (unsigned e = 0; e != count; ++e) {
    unsigned wide = 0;
    d.I.Op[e] = d.dstWide(*parts[e], part, wide);
    if (wide != bytes)
      return d.fail("an element of another size");
  }
  d.I.Run = runUnpackVector;
  return true;
}

bool decodeCvta(Decoder &d) {
  bool to = d.take("to");
  Space space = d.takeSpace();
  Type type = d.takeType();
  if (space == Space::Generic)
    return d.fail("the space is missing");
  if (type != Type::U64)
    return d.fail("addresses have 64 bits");
  if (!d.expect(2))
    return false;
  uint64_t window = windowOf(space);
  d.I.Offset = int64_t(to ? 0 - window : window);
  d.I.Op[0] = d.dst(0, type);
  d.I.Op[1] = d.src(1, type);
  d.I.Run = unaryOf<AddWindow, uint64_t, uint64_t>;
  return true;
}

bool decodeIsspacep(Decoder &d) {
  d.I.Where = d.takeSpace();
  if (d.I.Where == Space::Generic)
    return d.fail("the space is missing");
  if (!d.expect(2))
    return false;
  d.I.Op[0] = d.dstPredicate(d.operand(0));
  d.I.Op[1] = d.src(1, Type::U64);
  d.I.Run = runIsspacep;
  return true;
}

bool decodeMov(Decoder &d) {
  Type type = d.takeType();
  if (!d.expect(2))
    return false;
  if (type == Type::Pred) {
    d.I.Op[1] = d.srcPredicate(d.operand(1));
    d.I.Op[0] = d.dstPredicate(d.operand(0));
    d.I.Run = runMovePredicate;
    return true;
  }
  if (d.operand(0).Is == Operand::Vector || d.operand(1).Is == Operand::Vector)
    return decodeVectorMove(d, type);
  if (decodeClock(d, type) || !d.ok())
    return d.ok();
  d.I.Op[0] = d.dst(0, type);
  d.I.Op[1] = d.src(1, type);
  switch (bytesOf(type)) {
  case 2:
    d.I.Run = runMove<uint16_t>;
    break;
  case 4:
    d.I.Run = runMove<uint32_t>;
    break;
  case 8:
    d.I.Run = runMove<uint64_t>;
    break;
  case 16:
    d.I.Run = runMove<Wide128>;
    break;
  default:
    break;
  }
  return true;
}

} // namespace kvc::sim
