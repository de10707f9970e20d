// cvt.
#include "runtime/sim/Ops.h"

#include <algorithm>
#include <type_traits>

namespace kvc::sim {

namespace {

enum : uint8_t { Ftz = 8, Sat = 16, Relu = 32, SatFinite = 64, Integral = 128 };

} // namespace

static Round roundOf(const Inst &inst) { return Round(inst.Kind & 7); }

static NarrowMode narrowOf(const Inst &inst) {
  return {roundOf(inst), (inst.Kind & Relu) != 0, (inst.Kind & SatFinite) != 0};
}

static uint64_t extended(uint64_t value, Type type) {
  unsigned bits = 8 * bytesOf(type);
  if (bits == 64)
    return value;
  value &= (uint64_t(1) << bits) - 1;
  if (isSigned(type) && value >> (bits - 1))
    value |= ~uint64_t(0) << bits;
  return value;
}

/// cvt.sat between integers: clamps to the destination's range.
static uint64_t clampInteger(uint64_t value, bool fromSigned, Type to) {
  unsigned bits = 8 * bytesOf(to);
  bool negative = fromSigned && value >> 63;
  uint64_t most = isSigned(to) ? (uint64_t(1) << (bits - 1)) - 1
                  : bits == 64 ? ~uint64_t(0)
                               : (uint64_t(1) << bits) - 1;
  if (!negative)
    return std::min(value, most);
  if (!isSigned(to))
    return 0;
  return uint64_t(std::max(int64_t(value), -int64_t(most) - 1));
}

/// A floating source as f32 bits; f64 is handled apart.
static uint32_t widened(uint64_t value, Type from) {
  switch (from) {
  case Type::F16:
    return f16ToF32(uint16_t(value));
  case Type::BF16:
    return bf16ToF32(uint16_t(value));
  default:
    return uint32_t(value);
  }
}

static uint64_t fromInteger(const Inst &inst, Type to, Type from, uint64_t a) {
  a = extended(a, from);
  switch (to) {
  case Type::F32:
    return integerToF32(a, isSigned(from), roundOf(inst));
  case Type::F64:
    return bitsOf(integerToF64(a, isSigned(from), roundOf(inst)));
  case Type::F16:
    return integerToHalf(Half::F16, a, isSigned(from), roundOf(inst));
  case Type::BF16:
    return integerToHalf(Half::Bf16, a, isSigned(from), roundOf(inst));
  default:
    return inst.Kind & Sat ? clampInteger(a, isSigned(from), to)
                           : extended(a, to);
  }
}

static uint64_t fromF64(const Inst &inst, Type to, uint64_t a) {
  double value = doubleOf(a);
  switch (to) {
  case Type::F64:
    value =
        inst.Kind & Integral ? roundToIntegralF64(value, roundOf(inst)) : value;
    if (inst.Kind & Sat)
      value = value > 0 ? std::min(value, 1.0) : 0;
    return bitsOf(value);
  case Type::F32: {
    uint32_t bits = f64ToF32(value, roundOf(inst), (inst.Kind & Ftz) != 0);
    return inst.Kind & Sat ? saturate(bits) : bits;
  }
  case Type::F16:
    return f64ToF16(value, roundOf(inst));
  default:
    return floatToInteger(value, 8 * bytesOf(to), isSigned(to), roundOf(inst),
                          true);
  }
}

static uint64_t fromFloat(const Inst &inst, Type to, Type from, uint64_t a) {
  uint32_t value = widened(a, from);
  bool ftz = (inst.Kind & Ftz) != 0;
  if (ftz && from == Type::F32)
    value = flush(value);
  bool half = to == Type::F16 || to == Type::BF16;
  if (inst.Kind & Integral && isFloating(to))
    value = roundToIntegral(value, roundOf(inst), ftz);
  if (inst.Kind & Sat && isFloating(to))
    value = saturate(value);
  if (half) {
    NarrowMode mode = narrowOf(inst);
    if (inst.Kind & Integral)
      mode.round = Round::Nearest; // exact by now
    return f32ToHalf(to == Type::F16 ? Half::F16 : Half::Bf16, value, mode);
  }
  switch (to) {
  case Type::F32:
    return ftz ? flush(canonical(value)) : canonical(value);
  case Type::F64:
    return bitsOf(double(floatOf(value)));
  case Type::TF32:
    return f32ToTf32(value, narrowOf(inst));
  default:
    return floatToInteger(double(floatOf(value)), 8 * bytesOf(to), isSigned(to),
                          roundOf(inst), false);
  }
}

static uint64_t convertOne(const Inst &inst, uint64_t a) {
  Type to = Type(inst.Target & 0xFF), from = Type(inst.Target >> 8 & 0xFF);
  if (isInteger(from))
    return fromInteger(inst, to, from, a);
  if (from == Type::F64)
    return fromF64(inst, to, a);
  return fromFloat(inst, to, from, a);
}

static uint64_t laneBits(Warp &warp, uint32_t slot, unsigned bytes,
                         uint32_t lane) {
  switch (bytes) {
  case 2:
    return warp.reg<uint16_t>(slot)[lane];
  case 4:
    return warp.reg<uint32_t>(slot)[lane];
  default:
    return warp.reg<uint64_t>(slot)[lane];
  }
}
static void setLaneBits(Warp &warp, uint32_t slot, unsigned bytes,
                        uint32_t lane, uint64_t value) {
  switch (bytes) {
  case 2:
    warp.reg<uint16_t>(slot)[lane] = uint16_t(value);
    break;
  case 4:
    warp.reg<uint32_t>(slot)[lane] = uint32_t(value);
    break;
  default:
    warp.reg<uint64_t>(slot)[lane] = value;
  }
}

/// Any conversion of one value. Bytes and Count are the registers' sizes.
static void runConvert(Warp &warp, const Inst &inst, uint32_t mask) {
  forLanes(mask, [&](uint32_t lane) {
    uint64_t a = laneBits(warp, inst.Op[1], inst.Count, lane);
    setLaneBits(warp, inst.Op[0], inst.Bytes, lane, convertOne(inst, a));
  });
}

/// Two f32 into a pair; the first operand is the upper half.
template <class D, D (*F)(const Inst &, uint32_t high, uint32_t low)>
static void runPack(Warp &warp, const Inst &inst, uint32_t mask) {
  const uint32_t *a = warp.reg<uint32_t>(inst.Op[1]);
  const uint32_t *b = warp.reg<uint32_t>(inst.Op[2]);
  D *d = warp.reg<D>(inst.Op[0]);
  forLanes(mask, [&](uint32_t lane) { d[lane] = F(inst, a[lane], b[lane]); });
}
static uint32_t packF16(const Inst &inst, uint32_t high, uint32_t low) {
  NarrowMode mode = narrowOf(inst);
  return pack16(f32ToF16(low, mode), f32ToF16(high, mode));
}
static uint32_t packBf16(const Inst &inst, uint32_t high, uint32_t low) {
  NarrowMode mode = narrowOf(inst);
  return pack16(f32ToBf16(low, mode), f32ToBf16(high, mode));
}
static uint16_t packE4m3(const Inst &inst, uint32_t high, uint32_t low) {
  bool relu = (inst.Kind & Relu) != 0;
  return pack8(f32ToE4m3(low, relu), f32ToE4m3(high, relu));
}
static uint16_t packE5m2(const Inst &inst, uint32_t high, uint32_t low) {
  bool relu = (inst.Kind & Relu) != 0;
  return pack8(f32ToE5m2(low, relu), f32ToE5m2(high, relu));
}

namespace {

template <bool E4m3> struct Narrow8 { // f16x2 to fp8x2
  static uint16_t run(const Inst &inst, uint32_t a) {
    uint32_t high = f16ToF32(uint16_t(a >> 16)), low = f16ToF32(uint16_t(a));
    return E4m3 ? packE4m3(inst, high, low) : packE5m2(inst, high, low);
  }
};
template <bool E4m3> struct Widen8 { // fp8x2 to f16x2
  static uint32_t run(const Inst &inst, uint16_t a) {
    NarrowMode mode = narrowOf(inst);
    auto half = [&](uint8_t bits) {
      return f32ToF16(E4m3 ? e4m3ToF32(bits) : e5m2ToF32(bits), mode);
    };
    return pack16(half(uint8_t(a)), half(uint8_t(a >> 8)));
  }
};

// The common conversions, as vector code.
template <class From, class To> struct Resize {
  static std::make_unsigned_t<To> run(std::make_unsigned_t<From> a) {
    return std::make_unsigned_t<To>(To(From(a)));
  }
};
struct Bf16ToFloat {
  static uint32_t run(uint16_t a) { return canonical(bf16ToF32(a)); }
};
struct IntToFloat {
  static float run(int32_t a) { return float(a); }
};
struct UnsignedToFloat {
  static float run(uint32_t a) { return float(a); }
};

/// .rn without modifiers.
struct FloatToBf16 {
  static uint16_t run(uint32_t a) {
    uint32_t rounded = (a + 0x7FFF + (a >> 16 & 1)) >> 16;
    return uint16_t(isNanBits(a) ? CanonicalNan16 : rounded);
  }
};
struct PackBf16 {
  static uint32_t run(uint32_t high, uint32_t low) {
    return pack16(FloatToBf16::run(low), FloatToBf16::run(high));
  }
};

} // namespace

/// Registers as wide as the types, 8-bit ones in 16-bit registers aside.
template <class From> static Handler resizeFrom(Type to) {
  using U = std::make_unsigned_t<From>;
  switch (bytesOf(to)) {
  case 2:
    return unary<Resize<From, int16_t>, uint16_t, U>;
  case 4:
    return unary<Resize<From, int32_t>, uint32_t, U>;
  case 8:
    return unary<Resize<From, int64_t>, uint64_t, U>;
  default:
    return nullptr;
  }
}
static Handler fastConvert(Type to, Type from) {
  if (isInteger(to) && isInteger(from))
    switch (from) {
    case Type::U16:
    case Type::B16:
      return resizeFrom<uint16_t>(to);
    case Type::S16:
      return resizeFrom<int16_t>(to);
    case Type::U32:
    case Type::B32:
      return resizeFrom<uint32_t>(to);
    case Type::S32:
      return resizeFrom<int32_t>(to);
    case Type::U64:
    case Type::B64:
      return resizeFrom<uint64_t>(to);
    case Type::S64:
      return resizeFrom<int64_t>(to);
    default:
      return nullptr;
    }
  if (to == Type::F32 && from == Type::BF16)
    return unary<Bf16ToFloat, uint32_t, uint16_t>;
  return nullptr;
}

static bool decodePack(Decoder &d, Type to, Type from) {
  if (from == Type::F32) {
    if (!d.expect(3))
      return false;
    d.I.Op[0] = d.dst(0, to);
    d.I.Op[1] = d.src(1, from);
    d.I.Op[2] = d.src(2, from);
    d.I.Run = to == Type::F16x2 ? runPack<uint32_t, packF16>
              : to == Type::BF16x2 && d.I.Kind == 0
                  ? binary<PackBf16, uint32_t, uint32_t, uint32_t>
              : to == Type::BF16x2 ? runPack<uint32_t, packBf16>
              : to == Type::E4M3x2 ? runPack<uint16_t, packE4m3>
                                   : runPack<uint16_t, packE5m2>;
    return true;
  }
  if (!d.expect(2))
    return false;
  d.I.Op[0] = d.dst(0, to);
  d.I.Op[1] = d.src(1, from);
  if (to == Type::F16x2 && from == Type::E4M3x2)
    d.I.Run = unaryOf<Widen8<true>, uint32_t, uint16_t>;
  else if (to == Type::F16x2 && from == Type::E5M2x2)
    d.I.Run = unaryOf<Widen8<false>, uint32_t, uint16_t>;
  else if (to == Type::E4M3x2 && from == Type::F16x2)
    d.I.Run = unaryOf<Narrow8<true>, uint16_t, uint32_t>;
  else if (to == Type::E5M2x2 && from == Type::F16x2)
    d.I.Run = unaryOf<Narrow8<false>, uint16_t, uint32_t>;
  return true;
}

bool decodeCvt(Decoder &d) {
  bool integral = false, rounded = false;
  Round round = d.takeRound(integral, true);
  if (!integral)
    round = d.takeRound(rounded);
  if (!integral && !rounded && d.take("rna")) {
    round = Round::Away;
    rounded = true;
  }
  d.I.Kind = uint8_t(round);
  if (integral)
    d.I.Kind |= Integral;
  if (d.take("relu"))
    d.I.Kind |= Relu;
  if (d.take("satfinite"))
    d.I.Kind |= SatFinite;
  if (d.take("ftz"))
    d.I.Kind |= Ftz;
  if (d.take("sat"))
    d.I.Kind |= Sat;
  Type to = d.takeType(), from = d.takeType();
  if (!d.ok())
    return false;
  bool pair = to == Type::F16x2 || to == Type::BF16x2 || to == Type::E4M3x2 ||
              to == Type::E5M2x2;
  // Where the result need not be exact, the rounding has to be said.
  bool narrows =
      (isFloating(from) && isFloating(to) && bytesOf(to) < bytesOf(from)) ||
      pair || to == Type::TF32 || (isInteger(from) && isFloating(to));
  if (narrows && !rounded && !integral)
    return d.fail("the rounding is missing");
  if (isFloating(from) && isInteger(to) && !integral)
    return d.fail("the rounding (.rni, .rzi, .rmi, .rpi) is missing");
  if ((d.I.Kind & Sat) && isInteger(from) && isInteger(to)) {
    unsigned more = bytesOf(to), less = bytesOf(from);
    if (isSigned(to) ? more > less || (isSigned(from) && more == less)
                     : !isSigned(from) && more >= less)
      return d.fail(".sat does not exist where every value fits");
  }
  bool tiny = to == Type::E4M3x2 || to == Type::E5M2x2;
  if (tiny && !(d.I.Kind & SatFinite))
    return d.fail(".satfinite is missing");
  if (round == Round::Away && to != Type::TF32)
    return false;
  if (pair)
    return decodePack(d, to, from);
  if (bytesOf(from) == 0 || bytesOf(to) == 0 || from == Type::TF32 ||
      from >= Type::E4M3 || to == Type::E4M3 || to == Type::E5M2 ||
      from == Type::F16x2 || from == Type::BF16x2 || to == Type::B128 ||
      from == Type::B128)
    return false;
  if (!d.expect(2))
    return false;
  unsigned toBytes = 0, fromBytes = 0;
  d.I.Op[0] = d.dstWide(d.operand(0), to, toBytes);
  d.I.Op[1] = d.srcWide(d.operand(1), from, fromBytes);
  d.I.Bytes = uint8_t(toBytes);
  d.I.Count = uint8_t(fromBytes);
  d.I.Target = uint32_t(to) | uint32_t(from) << 8;
  d.I.Run = runConvert;
  bool natural = toBytes == bytesOf(to) && fromBytes == bytesOf(from);
  uint8_t flags = d.I.Kind & (Ftz | Sat | Relu | SatFinite | Integral);
  if (natural && flags == 0)
    if (Handler fast = fastConvert(to, from))
      d.I.Run = fast;
  if (natural && flags == 0 && round == Round::Nearest && to == Type::F32) {
    if (from == Type::S32)
      d.I.Run = unary<IntToFloat, float, int32_t>;
    else if (from == Type::U32)
      d.I.Run = unary<UnsignedToFloat, float, uint32_t>;
  }
  if (natural && d.I.Kind == 0 && to == Type::BF16 && from == Type::F32) {
    d.I.Run = unary<FloatToBf16, uint16_t, uint32_t>;
  }
  return true;
}

} // namespace kvc::sim
