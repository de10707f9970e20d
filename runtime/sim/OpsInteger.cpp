// Integer arithmetic. Floating types of the same mnemonics are in OpsFloat.cpp.
#include "runtime/sim/Ops.h"

#include <algorithm>
#include <type_traits>

namespace kvc::sim {

bool sameType(Decoder &d, Type type, unsigned sources) {
  if (!d.expect(sources + 1))
    return false;
  d.I.Op[0] = d.dst(0, type);
  for (unsigned k = 1; k <= sources; ++k)
    d.I.Op[k] = d.src(k, type);
  return d.ok();
}

/// Unsigned and at least 32 bits: arithmetic that wraps, for any T.
template <class T>
using Wide = std::conditional_t<sizeof(T) == 8, uint64_t, uint32_t>;

namespace {

struct Add {
  template <class T> static T run(T a, T b) {
    return T(Wide<T>(a) + Wide<T>(b));
  }
};
struct Sub {
  template <class T> static T run(T a, T b) {
    return T(Wide<T>(a) - Wide<T>(b));
  }
};
struct MulLow {
  template <class T> static T run(T a, T b) {
    return T(Wide<T>(a) * Wide<T>(b));
  }
};
struct MulHigh {
  template <class T> static T run(T a, T b) {
    return T(
        mulHi(uint64_t(a), uint64_t(b), 8 * sizeof(T), std::is_signed_v<T>));
  }
};
template <class D> struct MulWide {
  template <class T> static D run(T a, T b) { return D(D(a) * D(b)); }
};
struct MadLow {
  template <class T> static T run(T a, T b, T c) {
    return Add::run(MulLow::run(a, b), c);
  }
};
struct MadHigh {
  template <class T> static T run(T a, T b, T c) {
    return Add::run(MulHigh::run(a, b), c);
  }
};
struct MadHighSat {
  static int32_t run(int32_t a, int32_t b, int32_t c) {
    int64_t sum = int64_t(MulHigh::run(a, b)) + c;
    return int32_t(std::clamp<int64_t>(sum, INT32_MIN, INT32_MAX));
  }
};
template <class D> struct MadWide {
  template <class T> static D run(T a, T b, D c) {
    return Add::run(MulWide<D>::run(a, b), c);
  }
};
template <bool Subtract> struct AddSat {
  static int32_t run(int32_t a, int32_t b) {
    int64_t sum = Subtract ? int64_t(a) - b : int64_t(a) + b;
    return int32_t(std::clamp<int64_t>(sum, INT32_MIN, INT32_MAX));
  }
};
/// Two 16-bit integers side by side.
template <class Op, class T> struct Pairs {
  static uint32_t run(uint32_t a, uint32_t b) {
    T low = Op::run(T(a), T(b)), high = Op::run(T(a >> 16), T(b >> 16));
    return uint32_t(uint16_t(high)) << 16 | uint16_t(low);
  }
};
struct Div {
  template <class T> static T run(T a, T b) {
    return T(
        divide(uint64_t(a), uint64_t(b), 8 * sizeof(T), std::is_signed_v<T>));
  }
};
struct Rem {
  template <class T> static T run(T a, T b) {
    return T(remainder(uint64_t(a), uint64_t(b), 8 * sizeof(T),
                       std::is_signed_v<T>));
  }
};
struct Min {
  template <class T> static T run(T a, T b) { return b < a ? b : a; }
};
struct Max {
  template <class T> static T run(T a, T b) { return a < b ? b : a; }
};
struct MinRelu {
  template <class T> static T run(T a, T b) {
    return Max::run(Min::run(a, b), T(0));
  }
};
struct MaxRelu {
  template <class T> static T run(T a, T b) {
    return Max::run(Max::run(a, b), T(0));
  }
};
struct Neg {
  template <class T> static T run(T a) { return T(0 - Wide<T>(a)); }
};
struct Abs {
  template <class T> static T run(T a) { return a < 0 ? Neg::run(a) : a; }
};
struct Sad {
  template <class T> static T run(T a, T b, T c) {
    return Add::run(a < b ? Sub::run(b, a) : Sub::run(a, b), c);
  }
};
template <bool High, bool Signed> struct Mul24 {
  static uint32_t run(uint32_t a, uint32_t b) {
    return mul24(a, b, Signed, High);
  }
};
template <bool High, bool Signed> struct Mad24 {
  static uint32_t run(uint32_t a, uint32_t b, uint32_t c) {
    return mul24(a, b, Signed, High) + c;
  }
};
template <bool ASigned, bool BSigned> struct Dp4a {
  static uint32_t run(uint32_t a, uint32_t b, uint32_t c) {
    return dp4a(a, b, c, ASigned, BSigned);
  }
};
template <bool ASigned, bool BSigned, bool High> struct Dp2a {
  static uint32_t run(uint32_t a, uint32_t b, uint32_t c) {
    return dp2a(a, b, c, ASigned, BSigned, High);
  }
};

} // namespace

/// .cc and addc, subc, madc: Kind has bit 0 for "writes the carry", bit 1 for
/// "reads it". The condition code is the predicate in Op[4].
template <class T, bool Subtract>
static void runCarry(Warp &warp, const Inst &inst, uint32_t mask) {
  const T *a = warp.reg<T>(inst.Op[1]);
  const T *b = warp.reg<T>(inst.Op[2]);
  uint32_t &carry = warp.predicate(inst.Op[4]);
  T *d = warp.reg<T>(inst.Op[0]);
  forLanes(mask, [&](uint32_t lane) {
    T in = inst.Kind & 2 ? carry >> lane & 1 : 0;
    T partial = 0, sum = 0;
    bool out = false;
    if (Subtract) {
      out = __builtin_sub_overflow(a[lane], b[lane], &partial);
      out |= __builtin_sub_overflow(partial, in, &sum);
    } else {
      out = __builtin_add_overflow(a[lane], b[lane], &partial);
      out |= __builtin_add_overflow(partial, in, &sum);
    }
    d[lane] = sum;
    if (inst.Kind & 1)
      carry = (carry & ~(1u << lane)) | uint32_t(out) << lane;
  });
}

template <class T, bool High>
static void runMadCarry(Warp &warp, const Inst &inst, uint32_t mask) {
  const T *a = warp.reg<T>(inst.Op[1]);
  const T *b = warp.reg<T>(inst.Op[2]);
  const T *c = warp.reg<T>(inst.Op[3]);
  uint32_t &carry = warp.predicate(inst.Op[4]);
  using U = std::make_unsigned_t<T>;
  U *d = warp.reg<U>(inst.Op[0]);
  forLanes(mask, [&](uint32_t lane) {
    U in = inst.Kind & 2 ? carry >> lane & 1 : 0;
    U product = High ? U(MulHigh::run(a[lane], b[lane]))
                     : U(MulLow::run(a[lane], b[lane]));
    U partial = 0, sum = 0;
    bool out = __builtin_add_overflow(product, U(c[lane]), &partial);
    out |= __builtin_add_overflow(partial, in, &sum);
    d[lane] = sum;
    if (inst.Kind & 1)
      carry = (carry & ~(1u << lane)) | uint32_t(out) << lane;
  });
}

static bool decodeCarryOf(Decoder &d, Type type, bool reads, bool writes) {
  if (!sameType(d, type, 2))
    return false;
  d.I.Op[4] = d.Function.condition();
  d.I.Kind = uint8_t(reads << 1 | uint8_t(writes));
  bool subtract = d.base().substr(0, 3) == "sub";
  if (bytesOf(type) == 4)
    d.I.Run = subtract ? runCarry<uint32_t, true> : runCarry<uint32_t, false>;
  else if (bytesOf(type) == 8)
    d.I.Run = subtract ? runCarry<uint64_t, true> : runCarry<uint64_t, false>;
  return true;
}

static bool decodeMadCarry(Decoder &d, bool reads) {
  bool high = d.take("hi"), low = d.take("lo");
  bool writes = d.take("cc");
  Type type = d.takeType();
  if (!high && !low)
    return d.fail(".lo or .hi is missing");
  if (!sameType(d, type, 3))
    return false;
  d.I.Op[4] = d.Function.condition();
  d.I.Kind = uint8_t(reads << 1 | uint8_t(writes));
  switch (type) {
  case Type::U32:
    d.I.Run = high ? runMadCarry<uint32_t, true> : runMadCarry<uint32_t, false>;
    break;
  case Type::S32:
    d.I.Run = high ? runMadCarry<int32_t, true> : runMadCarry<int32_t, false>;
    break;
  case Type::U64:
    d.I.Run = high ? runMadCarry<uint64_t, true> : runMadCarry<uint64_t, false>;
    break;
  case Type::S64:
    d.I.Run = high ? runMadCarry<int64_t, true> : runMadCarry<int64_t, false>;
    break;
  default:
    break;
  }
  return true;
}

static bool isPlainInteger(Type type) {
  return isInteger(type) && !(type >= Type::B8 && type <= Type::B128);
}

template <bool Multiply> static Handler wideBy(Type type) {
  switch (type) {
  case Type::U16:
    if constexpr (Multiply)
      return binary<MulWide<uint32_t>, uint32_t, uint16_t, uint16_t>;
    else
      return ternary<MadWide<uint32_t>, uint32_t, uint16_t, uint16_t, uint32_t>;
  case Type::S16:
    if constexpr (Multiply)
      return binary<MulWide<int32_t>, int32_t, int16_t, int16_t>;
    else
      return ternary<MadWide<int32_t>, int32_t, int16_t, int16_t, int32_t>;
  case Type::U32:
    if constexpr (Multiply)
      return binary<MulWide<uint64_t>, uint64_t, uint32_t, uint32_t>;
    else
      return ternary<MadWide<uint64_t>, uint64_t, uint32_t, uint32_t, uint64_t>;
  case Type::S32:
    if constexpr (Multiply)
      return binary<MulWide<int64_t>, int64_t, int32_t, int32_t>;
    else
      return ternary<MadWide<int64_t>, int64_t, int32_t, int32_t, int64_t>;
  default:
    return nullptr;
  }
}

static Type twice(Type type) {
  switch (type) {
  case Type::U16:
    return Type::U32;
  case Type::S16:
    return Type::S32;
  case Type::U32:
    return Type::U64;
  case Type::S32:
    return Type::S64;
  default:
    return Type::None;
  }
}

bool decodeAddSub(Decoder &d) {
  bool subtract = d.base() == "sub";
  bool writes = d.take("cc");
  bool saturate = d.has("s32") && d.take("sat");
  Type type = d.takeType();
  if (isFloating(type))
    return decodeFloatArithmetic(d, type);
  if (writes)
    return decodeCarryOf(d, type, false, true);
  if (!sameType(d, type, 2))
    return false;
  if (saturate)
    d.I.Run = subtract ? binary<AddSat<true>, int32_t, int32_t, int32_t>
                       : binary<AddSat<false>, int32_t, int32_t, int32_t>;
  else if ((type == Type::U16x2 || type == Type::S16x2) && !subtract)
    d.I.Run = binary<Pairs<Add, uint16_t>, uint32_t, uint32_t, uint32_t>;
  else if (isPlainInteger(type))
    d.I.Run = subtract ? binaryBy<Sub>(type) : binaryBy<Add>(type);
  return true;
}

bool decodeCarry(Decoder &d) {
  bool writes = d.base() != "madc" && d.take("cc");
  if (d.base() == "madc")
    return decodeMadCarry(d, true);
  return decodeCarryOf(d, d.takeType(), true, writes);
}

bool decodeMul(Decoder &d) {
  bool low = d.take("lo"), high = d.take("hi"), wide = d.take("wide");
  Type type = d.takeType();
  if (isFloating(type))
    return decodeFloatArithmetic(d, type);
  if (low + high + wide != 1)
    return d.fail("one of .lo, .hi and .wide is needed");
  if (wide) {
    d.I.Run = wideBy<true>(type);
    if (!d.I.Run || !d.expect(3))
      return false;
    d.I.Op[0] = d.dst(0, twice(type));
    d.I.Op[1] = d.src(1, type);
    d.I.Op[2] = d.src(2, type);
    return true;
  }
  if (isPlainInteger(type))
    d.I.Run = high ? binaryBy<MulHigh>(type) : binaryBy<MulLow>(type);
  return sameType(d, type, 2);
}

bool decodeMad(Decoder &d) {
  if (d.has("cc"))
    return decodeMadCarry(d, false);
  if (d.has("f32") || d.has("f64"))
    return decodeFma(d);
  bool low = d.take("lo"), high = d.take("hi"), wide = d.take("wide");
  bool saturate = high && d.has("s32") && d.take("sat");
  Type type = d.takeType();
  if (low + high + wide != 1)
    return d.fail("one of .lo, .hi and .wide is needed");
  if (wide) {
    d.I.Run = wideBy<false>(type);
    if (!d.I.Run || !d.expect(4))
      return false;
    d.I.Op[0] = d.dst(0, twice(type));
    d.I.Op[1] = d.src(1, type);
    d.I.Op[2] = d.src(2, type);
    d.I.Op[3] = d.src(3, twice(type));
    return true;
  }
  if (saturate)
    d.I.Run = ternary<MadHighSat, int32_t, int32_t, int32_t, int32_t>;
  else if (isPlainInteger(type))
    d.I.Run = high ? ternaryBy<MadHigh>(type) : ternaryBy<MadLow>(type);
  return sameType(d, type, 3);
}

bool decodeMul24(Decoder &d) {
  bool high = d.take("hi"), low = d.take("lo");
  Type type = d.takeType();
  if (high == low || (type != Type::U32 && type != Type::S32))
    return false;
  bool isSign = isSigned(type);
  bool mad = d.base() == "mad24";
  using U = uint32_t;
  if (!mad)
    d.I.Run = high     ? isSign ? binary<Mul24<true, true>, U, U, U>
                                : binary<Mul24<true, false>, U, U, U>
              : isSign ? binary<Mul24<false, true>, U, U, U>
                       : binary<Mul24<false, false>, U, U, U>;
  else
    d.I.Run = high     ? isSign ? ternary<Mad24<true, true>, U, U, U, U>
                                : ternary<Mad24<true, false>, U, U, U, U>
              : isSign ? ternary<Mad24<false, true>, U, U, U, U>
                       : ternary<Mad24<false, false>, U, U, U, U>;
  return sameType(d, type, mad ? 3 : 2);
}

bool decodeDivRem(Decoder &d) {
  Type type = d.takeType();
  if (isFloating(type))
    return d.base() == "div" && decodeFloatDiv(d, type);
  if (isPlainInteger(type))
    d.I.Run = d.base() == "div" ? binaryBy<Div>(type) : binaryBy<Rem>(type);
  return sameType(d, type, 2);
}

bool decodeMinMax(Decoder &d) {
  Type type = d.takeType();
  if (isFloating(type))
    return decodeFloatMinMax(d, type);
  bool max = d.base() == "max";
  bool relu = d.take("relu");
  using U = uint32_t;
  if (type == Type::S32 && relu)
    d.I.Run = max ? binary<MaxRelu, int32_t, int32_t, int32_t>
                  : binary<MinRelu, int32_t, int32_t, int32_t>;
  else if (type == Type::S16x2)
    d.I.Run = max    ? relu ? binary<Pairs<MaxRelu, int16_t>, U, U, U>
                            : binary<Pairs<Max, int16_t>, U, U, U>
              : relu ? binary<Pairs<MinRelu, int16_t>, U, U, U>
                     : binary<Pairs<Min, int16_t>, U, U, U>;
  else if (type == Type::U16x2 && !relu)
    d.I.Run = max ? binary<Pairs<Max, uint16_t>, U, U, U>
                  : binary<Pairs<Min, uint16_t>, U, U, U>;
  else if (isPlainInteger(type) && !relu)
    d.I.Run = max ? binaryBy<Max>(type) : binaryBy<Min>(type);
  return sameType(d, type, 2);
}

bool decodeAbsNeg(Decoder &d) {
  Type type = d.takeType();
  if (isFloating(type))
    return decodeFloatAbsNeg(d, type);
  if (isSigned(type))
    d.I.Run = d.base() == "abs" ? unaryBy<Abs>(type) : unaryBy<Neg>(type);
  return sameType(d, type, 1);
}

bool decodeSad(Decoder &d) {
  Type type = d.takeType();
  if (isPlainInteger(type))
    d.I.Run = ternaryBy<Sad>(type);
  return sameType(d, type, 3);
}

bool decodeDot(Decoder &d) {
  bool two = d.base() == "dp2a";
  bool high = two && d.take("hi"), low = two && d.take("lo");
  if (two && high == low)
    return d.fail(".lo or .hi is missing");
  Type a = d.takeType(), b = d.takeType();
  if ((a != Type::S32 && a != Type::U32) || (b != Type::S32 && b != Type::U32))
    return false;
  bool as = isSigned(a), bs = isSigned(b);
  using U = uint32_t;
  if (!two)
    d.I.Run = as   ? bs ? ternary<Dp4a<true, true>, U, U, U, U>
                        : ternary<Dp4a<true, false>, U, U, U, U>
              : bs ? ternary<Dp4a<false, true>, U, U, U, U>
                   : ternary<Dp4a<false, false>, U, U, U, U>;
  else if (high)
    d.I.Run = as   ? bs ? ternary<Dp2a<true, true, true>, U, U, U, U>
                        : ternary<Dp2a<true, false, true>, U, U, U, U>
              : bs ? ternary<Dp2a<false, true, true>, U, U, U, U>
                   : ternary<Dp2a<false, false, true>, U, U, U, U>;
  else
    d.I.Run = as   ? bs ? ternary<Dp2a<true, true, false>, U, U, U, U>
                        : ternary<Dp2a<true, false, false>, U, U, U, U>
              : bs ? ternary<Dp2a<false, true, false>, U, U, U, U>
                   : ternary<Dp2a<false, false, false>, U, U, U, U>;
  return sameType(d, Type::B32, 3);
}

} // namespace kvc::sim
