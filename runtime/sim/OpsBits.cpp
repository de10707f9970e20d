// Logic, shifts and bit fields.
#include "runtime/sim/Ops.h"

#include <type_traits>

namespace kvc::sim {

namespace {

struct And {
  template <class T> static T run(T a, T b) { return a & b; }
};
struct Or {
  template <class T> static T run(T a, T b) { return a | b; }
};
struct Xor {
  template <class T> static T run(T a, T b) { return a ^ b; }
};
struct Not {
  template <class T> static T run(T a) { return T(~a); }
};
struct Cnot {
  template <class T> static T run(T a) { return a == 0; }
};
struct Shl {
  template <class T> static T run(T a, uint32_t n) {
    return n < 8 * sizeof(T) ? T(std::make_unsigned_t<T>(a) << n) : T(0);
  }
};
struct Shr {
  template <class T> static T run(T a, uint32_t n) {
    if constexpr (std::is_signed_v<T>)
      return T(a >> (n < 8 * sizeof(T) ? n : 8 * sizeof(T) - 1));
    else
      return n < 8 * sizeof(T) ? T(a >> n) : T(0);
  }
};
template <bool Left, bool Wrap> struct Shf {
  static uint32_t run(uint32_t a, uint32_t b, uint32_t n) {
    return shf(a, b, n, Left, Wrap);
  }
};
template <PrmtMode Mode> struct Prmt {
  static uint32_t run(uint32_t a, uint32_t b, uint32_t c) {
    return prmt(a, b, c, Mode);
  }
};
struct Bfe {
  template <class T> static T run(T a, uint32_t position, uint32_t length) {
    return T(
        bfe(uint64_t(a), position, length, 8 * sizeof(T), std::is_signed_v<T>));
  }
};
struct Bfind {
  template <class T> static uint32_t run(T a) {
    return bfind(uint64_t(a), 8 * sizeof(T), std::is_signed_v<T>, false);
  }
};
struct BfindShift {
  template <class T> static uint32_t run(T a) {
    return bfind(uint64_t(a), 8 * sizeof(T), std::is_signed_v<T>, true);
  }
};
struct Clz {
  static uint32_t run(uint32_t a) { return a ? __builtin_clz(a) : 32; }
  static uint32_t run(uint64_t a) { return a ? __builtin_clzll(a) : 64; }
};
struct Popc {
  static uint32_t run(uint32_t a) { return __builtin_popcount(a); }
  static uint32_t run(uint64_t a) { return __builtin_popcountll(a); }
};
struct Brev {
  static uint32_t run(uint32_t a) { return brev(a); }
  static uint64_t run(uint64_t a) {
    return uint64_t(brev(uint32_t(a))) << 32 | brev(uint32_t(a >> 32));
  }
};
template <bool Clamp> struct Bmsk {
  static uint32_t run(uint32_t a, uint32_t b) { return bmsk(a, b, Clamp); }
};
template <bool Clamp, bool Signed> struct Szext {
  static uint32_t run(uint32_t a, uint32_t b) {
    return szext(a, b, Signed, Clamp);
  }
};

} // namespace

/// Target is the truth table.
static void runLop3(Warp &warp, const Inst &inst, uint32_t mask) {
  const uint32_t *a = warp.reg<uint32_t>(inst.Op[1]);
  const uint32_t *b = warp.reg<uint32_t>(inst.Op[2]);
  const uint32_t *c = warp.reg<uint32_t>(inst.Op[3]);
  uint32_t result[Lanes] = {};
  for (uint32_t row = 0; row != 8; ++row) {
    if (!(inst.Target >> row & 1))
      continue;
    uint32_t x = row & 4 ? 0 : ~0u, y = row & 2 ? 0 : ~0u,
             z = row & 1 ? 0 : ~0u;
    for (uint32_t lane = 0; lane != Lanes; ++lane)
      result[lane] |= (a[lane] ^ x) & (b[lane] ^ y) & (c[lane] ^ z);
  }
  commit(warp, inst.Op[0], result, mask);
}

template <class T>
static void runBfi(Warp &warp, const Inst &inst, uint32_t mask) {
  const T *a = warp.reg<T>(inst.Op[1]);
  const T *b = warp.reg<T>(inst.Op[2]);
  const uint32_t *position = warp.reg<uint32_t>(inst.Op[3]);
  const uint32_t *length = warp.reg<uint32_t>(inst.Op[4]);
  T *d = warp.reg<T>(inst.Op[0]);
  forLanes(mask, [&](uint32_t lane) {
    d[lane] =
        T(bfi(a[lane], b[lane], position[lane], length[lane], 8 * sizeof(T)));
  });
}

namespace {

enum Logic : uint8_t { LogicAnd, LogicOr, LogicXor, LogicNot };

} // namespace

static void runPredicateLogic(Warp &warp, const Inst &inst, uint32_t mask) {
  uint32_t a = warp.predicate(inst.Op[1]), b = warp.predicate(inst.Op[2]);
  uint32_t bits = inst.Kind == LogicAnd   ? a & b
                  : inst.Kind == LogicOr  ? a | b
                  : inst.Kind == LogicXor ? a ^ b
                                          : ~a;
  commitPredicate(warp, inst.Op[0], bits, mask);
}

static Type asBits(Type type) {
  switch (bytesOf(type)) {
  case 2:
    return Type::B16;
  case 4:
    return Type::B32;
  case 8:
    return Type::B64;
  default:
    return Type::None;
  }
}

static bool isBits(Type type) {
  return type == Type::B16 || type == Type::B32 || type == Type::B64;
}

bool decodeLogic(Decoder &d) {
  Type type = d.takeType();
  std::string_view name = d.base();
  bool one = name == "not" || name == "cnot";
  if (type == Type::Pred && name != "cnot") {
    d.I.Kind = name == "and"   ? LogicAnd
               : name == "or"  ? LogicOr
               : name == "xor" ? LogicXor
                               : LogicNot;
    if (!d.expect(one ? 2 : 3))
      return false;
    d.I.Op[1] = d.srcPredicate(d.operand(1));
    d.I.Op[2] = one ? d.I.Op[1] : d.srcPredicate(d.operand(2));
    d.I.Op[0] = d.dstPredicate(d.operand(0));
    d.I.Run = runPredicateLogic;
    return true;
  }
  if (!isBits(type))
    return false;
  d.I.Run = name == "and"   ? binaryBy<And>(type)
            : name == "or"  ? binaryBy<Or>(type)
            : name == "xor" ? binaryBy<Xor>(type)
            : name == "not" ? unaryBy<Not>(type)
                            : unaryBy<Cnot>(type);
  return sameType(d, type, one ? 1 : 2);
}

bool decodeShift(Decoder &d) {
  Type type = d.takeType();
  bool left = d.base() == "shl";
  if (left && !isBits(type))
    return false;
  d.I.Run = left ? shiftBy<Shl>(type) : shiftBy<Shr>(type);
  if (!d.expect(3))
    return false;
  d.I.Op[0] = d.dst(0, type);
  d.I.Op[1] = d.src(1, type);
  d.I.Op[2] = d.src(2, Type::U32);
  return true;
}

bool decodeFunnel(Decoder &d) {
  bool left = d.take("l"), right = d.take("r");
  bool wrap = d.take("wrap"), clamp = d.take("clamp");
  if (left == right || wrap == clamp || d.takeType() != Type::B32)
    return false;
  using U = uint32_t;
  d.I.Run = left   ? wrap ? ternary<Shf<true, true>, U, U, U, U>
                          : ternary<Shf<true, false>, U, U, U, U>
            : wrap ? ternary<Shf<false, true>, U, U, U, U>
                   : ternary<Shf<false, false>, U, U, U, U>;
  return sameType(d, Type::B32, 3);
}

bool decodeLop3(Decoder &d) {
  if (d.takeType() != Type::B32 || !d.expect(5))
    return false;
  int64_t table = d.immediate(4);
  if (table < 0 || table > 255)
    return d.fail("the table " + std::to_string(table) + " has 8 bits");
  d.I.Target = uint32_t(table);
  d.I.Op[0] = d.dst(0, Type::B32);
  for (unsigned k = 1; k != 4; ++k)
    d.I.Op[k] = d.src(k, Type::B32);
  d.I.Run = runLop3;
  return true;
}

bool decodePrmt(Decoder &d) {
  using U = uint32_t;
  if (d.takeType() != Type::B32)
    return false;
  d.I.Run = ternary<Prmt<PrmtMode::Index>, U, U, U, U>;
  if (d.take("f4e"))
    d.I.Run = ternary<Prmt<PrmtMode::F4e>, U, U, U, U>;
  else if (d.take("b4e"))
    d.I.Run = ternary<Prmt<PrmtMode::B4e>, U, U, U, U>;
  else if (d.take("rc8"))
    d.I.Run = ternary<Prmt<PrmtMode::Rc8>, U, U, U, U>;
  else if (d.take("ecl"))
    d.I.Run = ternary<Prmt<PrmtMode::Ecl>, U, U, U, U>;
  else if (d.take("ecr"))
    d.I.Run = ternary<Prmt<PrmtMode::Ecr>, U, U, U, U>;
  else if (d.take("rc16"))
    d.I.Run = ternary<Prmt<PrmtMode::Rc16>, U, U, U, U>;
  return sameType(d, Type::B32, 3);
}

bool decodeBitField(Decoder &d) {
  Type type = d.takeType();
  bool insert = d.base() == "bfi";
  if (insert) {
    if (!isBits(type) || bytesOf(type) < 4 || !d.expect(5))
      return false;
    d.I.Run = bytesOf(type) == 4 ? runBfi<uint32_t> : runBfi<uint64_t>;
    d.I.Op[0] = d.dst(0, type);
    d.I.Op[1] = d.src(1, type);
    d.I.Op[2] = d.src(2, type);
    d.I.Op[3] = d.src(3, Type::U32);
    d.I.Op[4] = d.src(4, Type::U32);
    return true;
  }
  using U = uint32_t;
  switch (type) {
  case Type::U32:
    d.I.Run = ternary<Bfe, uint32_t, uint32_t, U, U>;
    break;
  case Type::S32:
    d.I.Run = ternary<Bfe, int32_t, int32_t, U, U>;
    break;
  case Type::U64:
    d.I.Run = ternary<Bfe, uint64_t, uint64_t, U, U>;
    break;
  case Type::S64:
    d.I.Run = ternary<Bfe, int64_t, int64_t, U, U>;
    break;
  default:
    return false;
  }
  if (!d.expect(4))
    return false;
  d.I.Op[0] = d.dst(0, type);
  d.I.Op[1] = d.src(1, type);
  d.I.Op[2] = d.src(2, Type::U32);
  d.I.Op[3] = d.src(3, Type::U32);
  return true;
}

bool decodeBitCount(Decoder &d) {
  std::string_view name = d.base();
  bool shift = name == "bfind" && d.take("shiftamt");
  Type type = d.takeType();
  bool wide = bytesOf(type) == 8;
  using U = uint32_t;
  using L = uint64_t;
  Type result = Type::U32;
  if (name == "bfind") {
    switch (type) {
    case Type::U32:
      d.I.Run = shift ? unary<BfindShift, U, U> : unary<Bfind, U, U>;
      break;
    case Type::S32:
      d.I.Run =
          shift ? unary<BfindShift, U, int32_t> : unary<Bfind, U, int32_t>;
      break;
    case Type::U64:
      d.I.Run = shift ? unary<BfindShift, U, L> : unary<Bfind, U, L>;
      break;
    case Type::S64:
      d.I.Run =
          shift ? unary<BfindShift, U, int64_t> : unary<Bfind, U, int64_t>;
      break;
    default:
      return false;
    }
  } else if (!isBits(type) || bytesOf(type) < 4) {
    return false;
  } else if (name == "clz") {
    d.I.Run = wide ? unary<Clz, U, L> : unary<Clz, U, U>;
  } else if (name == "popc") {
    d.I.Run = wide ? unary<Popc, U, L> : unary<Popc, U, U>;
  } else {
    d.I.Run = wide ? unary<Brev, L, L> : unary<Brev, U, U>;
    result = type;
  }
  if (!d.expect(2))
    return false;
  d.I.Op[0] = d.dst(0, result);
  d.I.Op[1] = d.src(1, asBits(type));
  return true;
}

bool decodeMask(Decoder &d) {
  bool wrap = d.take("wrap"), clamp = d.take("clamp");
  Type type = d.takeType();
  if (wrap == clamp)
    return d.fail(".clamp or .wrap is missing");
  using U = uint32_t;
  if (d.base() == "bmsk" && type == Type::B32)
    d.I.Run =
        clamp ? binary<Bmsk<true>, U, U, U> : binary<Bmsk<false>, U, U, U>;
  else if (d.base() == "szext" && type == Type::S32)
    d.I.Run = clamp ? binary<Szext<true, true>, U, U, U>
                    : binary<Szext<false, true>, U, U, U>;
  else if (d.base() == "szext" && type == Type::U32)
    d.I.Run = clamp ? binary<Szext<true, false>, U, U, U>
                    : binary<Szext<false, false>, U, U, U>;
  return sameType(d, type, 2);
}

} // namespace kvc::sim
