// Comparisons and selection.
#include "runtime/sim/Ops.h"

#include <algorithm>
#include <cmath>

namespace kvc::sim {

namespace {

enum Compare : uint8_t {
  Eq,
  Ne,
  Lt,
  Le,
  Gt,
  Ge,
  // Floating: true if an operand is a NaN.
  Equ,
  Neu,
  Ltu,
  Leu,
  Gtu,
  Geu,
  Num,
  Nan,
};
enum Combine : uint8_t { Alone, WithAnd, WithOr, WithXor };

} // namespace

template <uint8_t How, class T> static bool compare(T a, T b) {
  switch (How) {
  case Eq:
    return a == b;
  case Ne:
    // Ordered: false for a NaN, unlike C's.
    return a < b || a > b;
  case Lt:
    return a < b;
  case Le:
    return a <= b;
  case Gt:
    return a > b;
  case Ge:
    return a >= b;
  case Equ:
    return !(a < b || a > b);
  case Neu:
    return !(a == b);
  case Ltu:
    return !(a >= b);
  case Leu:
    return !(a > b);
  case Gtu:
    return !(a <= b);
  case Geu:
    return !(a < b);
  case Num:
    return a == a && b == b;
  default:
    return !(a == a && b == b);
  }
}

static uint32_t bitsOfLanes(const uint8_t (&flags)[Lanes]) {
  uint32_t bits = 0;
  for (uint32_t group = 0; group != Lanes; group += 8) {
    uint64_t eight;
    std::memcpy(&eight, flags + group, sizeof(eight));
    // Gathers the low bit of each of the eight bytes in the top byte.
    bits |= uint32_t((eight * 0x0102040810204080u) >> 56) << group;
  }
  return bits;
}

static uint32_t combine(uint8_t how, uint32_t bits, uint32_t with) {
  return how == WithAnd   ? bits & with
         : how == WithOr  ? bits | with
         : how == WithXor ? bits ^ with
                          : bits;
}

namespace {

/// How lanes' operands are read: widened for the small formats.
template <class T> struct Plain {
  using Raw = T;
  using Value = T;
  static T widen(T a) { return a; }
};
struct Flushed {
  using Raw = uint32_t;
  using Value = float;
  static float widen(uint32_t a) { return floatOf(flush(a)); }
};
template <Half Format> struct Widened {
  using Raw = uint16_t;
  using Value = float;
  static float widen(uint16_t a) { return floatOf(halfToF32(Format, a)); }
};

} // namespace

template <class Read, uint8_t How>
static uint32_t compareLanes(Warp &warp, uint32_t a, uint32_t b) {
  const auto *x = warp.reg<typename Read::Raw>(a);
  const auto *y = warp.reg<typename Read::Raw>(b);
  uint8_t flags[Lanes];
  for (uint32_t lane = 0; lane != Lanes; ++lane)
    flags[lane] = compare<How, typename Read::Value>(Read::widen(x[lane]),
                                                     Read::widen(y[lane]));
  return bitsOfLanes(flags);
}

/// Op: two predicates, a, b, and the predicate to combine with.
template <class Read, uint8_t How>
static void runSetp(Warp &warp, const Inst &inst, uint32_t mask) {
  uint32_t bits = compareLanes<Read, How>(warp, inst.Op[2], inst.Op[3]);
  uint32_t with = inst.Kind == Alone ? 0 : warp.predicate(inst.Op[4]);
  commitPredicate(warp, inst.Op[0], combine(inst.Kind, bits, with), mask);
  if (inst.Op[1] != NoSlot)
    commitPredicate(warp, inst.Op[1], combine(inst.Kind, ~bits, with), mask);
}

/// Target: what a true lane gets.
template <class Read, uint8_t How>
static void runSet(Warp &warp, const Inst &inst, uint32_t mask) {
  uint32_t bits = compareLanes<Read, How>(warp, inst.Op[2], inst.Op[3]);
  uint32_t with = inst.Kind == Alone ? 0 : warp.predicate(inst.Op[4]);
  bits = combine(inst.Kind, bits, with);
  uint32_t result[Lanes];
  for (uint32_t lane = 0; lane != Lanes; ++lane)
    result[lane] = bits >> lane & 1 ? inst.Target : 0;
  commit(warp, inst.Op[0], result, mask);
}

/// Two comparisons, one for each half. Op: two predicates, a, b, with.
template <Half Format, uint8_t How>
static void runSetpPair(Warp &warp, const Inst &inst, uint32_t mask) {
  const uint32_t *a = warp.reg<uint32_t>(inst.Op[2]);
  const uint32_t *b = warp.reg<uint32_t>(inst.Op[3]);
  uint32_t low = 0, high = 0;
  forLanes(mask, [&](uint32_t lane) {
    auto of = [&](uint32_t bits, unsigned shift) {
      return floatOf(halfToF32(Format, uint16_t(bits >> shift)));
    };
    low |= uint32_t(compare<How>(of(a[lane], 0), of(b[lane], 0))) << lane;
    high |= uint32_t(compare<How>(of(a[lane], 16), of(b[lane], 16))) << lane;
  });
  uint32_t with = inst.Kind == Alone ? 0 : warp.predicate(inst.Op[4]);
  commitPredicate(warp, inst.Op[0], combine(inst.Kind, low, with), mask);
  if (inst.Op[1] != NoSlot)
    commitPredicate(warp, inst.Op[1], combine(inst.Kind, high, with), mask);
}

template <class Read, bool Set> static Handler pick(uint8_t how) {
  switch (how) {
#define KVC_SIM_COMPARE(Which)                                                 \
  case Which:                                                                  \
    return Set ? runSet<Read, Which> : runSetp<Read, Which>;
    KVC_SIM_COMPARE(Eq)
    KVC_SIM_COMPARE(Ne)
    KVC_SIM_COMPARE(Lt)
    KVC_SIM_COMPARE(Le)
    KVC_SIM_COMPARE(Gt)
    KVC_SIM_COMPARE(Ge)
#undef KVC_SIM_COMPARE
  default:
    return nullptr;
  }
}

template <class Read, bool Set> static Handler pickFloat(uint8_t how) {
  switch (how) {
#define KVC_SIM_COMPARE(Which)                                                 \
  case Which:                                                                  \
    return Set ? runSet<Read, Which> : runSetp<Read, Which>;
    KVC_SIM_COMPARE(Equ)
    KVC_SIM_COMPARE(Neu)
    KVC_SIM_COMPARE(Ltu)
    KVC_SIM_COMPARE(Leu)
    KVC_SIM_COMPARE(Gtu)
    KVC_SIM_COMPARE(Geu)
    KVC_SIM_COMPARE(Num)
    KVC_SIM_COMPARE(Nan)
#undef KVC_SIM_COMPARE
  default:
    return pick<Read, Set>(how);
  }
}

template <Half Format> static Handler pickPair(uint8_t how) {
  switch (how) {
#define KVC_SIM_COMPARE(Which)                                                 \
  case Which:                                                                  \
    return runSetpPair<Format, Which>;
    KVC_SIM_COMPARE(Eq)
    KVC_SIM_COMPARE(Ne)
    KVC_SIM_COMPARE(Lt)
    KVC_SIM_COMPARE(Le)
    KVC_SIM_COMPARE(Gt)
    KVC_SIM_COMPARE(Ge)
    KVC_SIM_COMPARE(Equ)
    KVC_SIM_COMPARE(Neu)
    KVC_SIM_COMPARE(Ltu)
    KVC_SIM_COMPARE(Leu)
    KVC_SIM_COMPARE(Gtu)
    KVC_SIM_COMPARE(Geu)
    KVC_SIM_COMPARE(Num)
    KVC_SIM_COMPARE(Nan)
#undef KVC_SIM_COMPARE
  default:
    return nullptr;
  }
}

template <bool Set> static Handler pickType(Type type, uint8_t how, bool ftz) {
  bool equality = how == Eq || how == Ne;
  switch (type) {
  case Type::B16:
    return equality ? pick<Plain<uint16_t>, Set>(how) : nullptr;
  case Type::B32:
    return equality ? pick<Plain<uint32_t>, Set>(how) : nullptr;
  case Type::B64:
    return equality ? pick<Plain<uint64_t>, Set>(how) : nullptr;
  case Type::U16:
    return pick<Plain<uint16_t>, Set>(how);
  case Type::U32:
    return pick<Plain<uint32_t>, Set>(how);
  case Type::U64:
    return pick<Plain<uint64_t>, Set>(how);
  case Type::S16:
    return pick<Plain<int16_t>, Set>(how);
  case Type::S32:
    return pick<Plain<int32_t>, Set>(how);
  case Type::S64:
    return pick<Plain<int64_t>, Set>(how);
  case Type::F32:
    return ftz ? pickFloat<Flushed, Set>(how)
               : pickFloat<Plain<float>, Set>(how);
  case Type::F64:
    return pickFloat<Plain<double>, Set>(how);
  case Type::F16:
    return pickFloat<Widened<Half::F16>, Set>(how);
  case Type::BF16:
    return pickFloat<Widened<Half::Bf16>, Set>(how);
  default:
    return nullptr;
  }
}

/// The comparison modifier; unsigned integers have names of their own.
static bool takeCompare(Decoder &d, uint8_t &how) {
  static constexpr std::pair<const char *, uint8_t> names[] = {
      {"eq", Eq},   {"ne", Ne},   {"lt", Lt},   {"le", Le},   {"gt", Gt},
      {"ge", Ge},   {"lo", Lt},   {"ls", Le},   {"hi", Gt},   {"hs", Ge},
      {"equ", Equ}, {"neu", Neu}, {"ltu", Ltu}, {"leu", Leu}, {"gtu", Gtu},
      {"geu", Geu}, {"num", Num}, {"nan", Nan}};
  for (auto [name, value] : names)
    if (d.take(name)) {
      how = value;
      return true;
    }
  return d.fail("the comparison is missing");
}

static uint8_t takeCombine(Decoder &d) {
  return d.take("and")   ? WithAnd
         : d.take("or")  ? WithOr
         : d.take("xor") ? WithXor
                         : Alone;
}

void runNotPredicate(Warp &warp, const Inst &inst, uint32_t mask) {
  commitPredicate(warp, inst.Op[0], ~warp.predicate(inst.Op[1]), mask);
}

bool decodeSetp(Decoder &d) {
  uint8_t how = Eq;
  if (!takeCompare(d, how))
    return false;
  d.I.Kind = takeCombine(d);
  bool ftz = d.take("ftz");
  Type type = d.takeType();
  if (!d.expect(d.I.Kind == Alone ? 3 : 4))
    return false;
  const Operand &to = d.operand(0);
  d.I.Op[2] = d.src(1, type);
  d.I.Op[3] = d.src(2, type);
  if (d.I.Kind != Alone)
    d.I.Op[4] = d.srcPredicate(d.operand(3));
  d.I.Op[0] = d.dstPredicate(to);
  d.I.Op[1] = to.Second.empty() ? NoSlot : d.dstPredicate(to.Second);
  if (type == Type::F16x2 && !ftz)
    d.I.Run = pickPair<Half::F16>(how);
  else if (type == Type::BF16x2 && !ftz)
    d.I.Run = pickPair<Half::Bf16>(how);
  else if (!ftz || type == Type::F32)
    d.I.Run = pickType<false>(type, how, ftz);
  return true;
}

bool decodeSet(Decoder &d) {
  uint8_t how = Eq;
  if (!takeCompare(d, how))
    return false;
  d.I.Kind = takeCombine(d);
  bool ftz = d.take("ftz");
  Type result = d.takeType(), type = d.takeType();
  if (result != Type::U32 && result != Type::S32 && result != Type::F32)
    return false;
  d.I.Target = result == Type::F32 ? bitsOf(1.0f) : FullMask;
  if (!d.expect(d.I.Kind == Alone ? 3 : 4))
    return false;
  d.I.Op[0] = d.dst(0, result);
  d.I.Op[2] = d.src(1, type);
  d.I.Op[3] = d.src(2, type);
  if (d.I.Kind != Alone)
    d.I.Op[4] = d.srcPredicate(d.operand(3));
  if (!ftz || type == Type::F32)
    d.I.Run = pickType<true>(type, how, ftz);
  return true;
}

template <class T>
static void runSelp(Warp &warp, const Inst &inst, uint32_t mask) {
  const T *a = warp.reg<T>(inst.Op[1]);
  const T *b = warp.reg<T>(inst.Op[2]);
  uint32_t which = warp.predicate(inst.Op[3]);
  T result[Lanes];
  for (uint32_t lane = 0; lane != Lanes; ++lane)
    result[lane] = which >> lane & 1 ? a[lane] : b[lane];
  commit(warp, inst.Op[0], result, mask);
}

namespace {

template <class C> struct Slct {
  template <class T> static T run(T a, T b, C c) { return c >= 0 ? a : b; }
};
struct SlctFtz {
  template <class T> static T run(T a, T b, uint32_t c) {
    return floatOf(flush(c)) >= 0 ? a : b;
  }
};

} // namespace

template <class T> static Handler pickSlct(Type by, bool ftz) {
  if (by == Type::S32)
    return ternary<Slct<int32_t>, T, T, T, int32_t>;
  return ftz ? ternary<SlctFtz, T, T, T, uint32_t>
             : ternary<Slct<float>, T, T, T, float>;
}

bool decodeSelp(Decoder &d) {
  Type type = d.takeType();
  if (!d.expect(4))
    return false;
  d.I.Op[3] = d.srcPredicate(d.operand(3));
  d.I.Op[0] = d.dst(0, type);
  d.I.Op[1] = d.src(1, type);
  d.I.Op[2] = d.src(2, type);
  switch (bytesOf(type)) {
  case 2:
    d.I.Run = runSelp<uint16_t>;
    break;
  case 4:
    d.I.Run = runSelp<uint32_t>;
    break;
  case 8:
    d.I.Run = runSelp<uint64_t>;
    break;
  default:
    break;
  }
  return true;
}

bool decodeSlct(Decoder &d) {
  bool ftz = d.take("ftz");
  Type type = d.takeType(), by = d.takeType();
  if ((by != Type::S32 && by != Type::F32) || (ftz && by != Type::F32) ||
      !d.expect(4))
    return false;
  d.I.Op[0] = d.dst(0, type);
  d.I.Op[1] = d.src(1, type);
  d.I.Op[2] = d.src(2, type);
  d.I.Op[3] = d.src(3, by);
  d.I.Run = bytesOf(type) == 2   ? pickSlct<uint16_t>(by, ftz)
            : bytesOf(type) == 4 ? pickSlct<uint32_t>(by, ftz)
            : bytesOf(type) == 8 ? pickSlct<uint64_t>(by, ftz)
                                 : nullptr;
  return true;
}

} // namespace kvc::sim
