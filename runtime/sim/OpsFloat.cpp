// Floating arithmetic: f32, f64, f16, bf16 and their pairs.
#include "runtime/sim/Ops.h"

#include <cmath>

namespace kvc::sim {

namespace {

// How a mode is packed into Inst::Kind: the rounding in bits 0..1, then flags.
enum : uint8_t {
  Ftz = 4,
  Sat = 8,
  Relu = 16,
  NanFlag = 32,
  XorSign = 64,
  IsBf16 = 128,
};

} // namespace

static F32Mode modeOf(const Inst &inst) {
  return {Round(inst.Kind & 3), (inst.Kind & Ftz) != 0, (inst.Kind & Sat) != 0};
}
static MinMaxMode minMaxOf(const Inst &inst) {
  return {(inst.Kind & Ftz) != 0, (inst.Kind & NanFlag) != 0,
          (inst.Kind & XorSign) != 0};
}
static HalfMode halfModeOf(const Inst &inst) {
  return {(inst.Kind & Ftz) != 0, (inst.Kind & Sat) != 0,
          (inst.Kind & Relu) != 0};
}
static Half halfOf(const Inst &inst) {
  return inst.Kind & IsBf16 ? Half::Bf16 : Half::F16;
}

using U16 = uint16_t;
using U32 = uint32_t;
using U64 = uint64_t;

namespace {

template <U32 (*F)(U32, U32, F32Mode)> struct F32Binary {
  static U32 run(const Inst &inst, U32 a, U32 b) {
    return F(a, b, modeOf(inst));
  }
};
template <U32 (*F)(U32, F32Mode)> struct F32Unary {
  static U32 run(const Inst &inst, U32 a) { return F(a, modeOf(inst)); }
};
struct F32Fma {
  static U32 run(const Inst &inst, U32 a, U32 b, U32 c) {
    return fmaF32(a, b, c, modeOf(inst));
  }
};
/// fma.relu of f32 does not exist; .sat of f64 neither.
template <double (*F)(double, double, Round)> struct F64Binary {
  static double run(const Inst &inst, double a, double b) {
    return F(a, b, Round(inst.Kind & 3));
  }
};
struct F64Sub {
  static double run(const Inst &inst, double a, double b) {
    // The sign of a NaN is all that subtraction and this could differ in.
    return addF64(a, -b, Round(inst.Kind & 3));
  }
};
struct F64Fma {
  static double run(const Inst &inst, double a, double b, double c) {
    return fmaF64(a, b, c, Round(inst.Kind & 3));
  }
};
struct F64Sqrt {
  static double run(const Inst &inst, double a) {
    return sqrtF64(a, Round(inst.Kind & 3));
  }
};
struct F64Rcp {
  static double run(const Inst &inst, double a) {
    return divF64(1.0, a, Round(inst.Kind & 3));
  }
};
template <U16 (*F)(Half, U16, U16, HalfMode)> struct HalfBinary {
  static U16 run(const Inst &inst, U16 a, U16 b) {
    return F(halfOf(inst), a, b, halfModeOf(inst));
  }
  static U32 run(const Inst &inst, U32 a, U32 b) {
    return pack16(run(inst, U16(a), U16(b)),
                  run(inst, U16(a >> 16), U16(b >> 16)));
  }
};
template <U16 (*F)(Half, U16, U16, MinMaxMode)> struct HalfMinMax {
  static U16 run(const Inst &inst, U16 a, U16 b) {
    return F(halfOf(inst), a, b, minMaxOf(inst));
  }
  static U32 run(const Inst &inst, U32 a, U32 b) {
    return pack16(run(inst, U16(a), U16(b)),
                  run(inst, U16(a >> 16), U16(b >> 16)));
  }
};
struct HalfFma {
  static U16 run(const Inst &inst, U16 a, U16 b, U16 c) {
    return fmaHalf(halfOf(inst), a, b, c, halfModeOf(inst));
  }
  static U32 run(const Inst &inst, U32 a, U32 b, U32 c) {
    return pack16(run(inst, U16(a), U16(b), U16(c)),
                  run(inst, U16(a >> 16), U16(b >> 16), U16(c >> 16)));
  }
};
template <U16 (*F)(const Inst &, U16)> struct HalfUnary {
  static U16 run(const Inst &inst, U16 a) { return F(inst, a); }
  static U32 run(const Inst &inst, U32 a) {
    return pack16(F(inst, U16(a)), F(inst, U16(a >> 16)));
  }
};

} // namespace

static U16 halfAbs(const Inst &inst, U16 a) {
  bool flushed = inst.Kind & Ftz && (a & 0x7C00) == 0;
  return flushed ? 0 : a & 0x7FFF;
}
static U16 halfNeg(const Inst &inst, U16 a) {
  bool flushed = inst.Kind & Ftz && (a & 0x7C00) == 0;
  return (flushed ? a & 0x8000 : a) ^ 0x8000;
}
static U16 halfEx2(const Inst &inst, U16 a) {
  return ex2Half(halfOf(inst), a, (inst.Kind & Ftz) != 0);
}
static U16 halfTanh(const Inst &inst, U16 a) {
  return tanhHalf(halfOf(inst), a);
}

namespace {

template <U32 (*F)(U32, bool)> struct Approx {
  static U32 run(const Inst &inst, U32 a) {
    return F(a, (inst.Kind & Ftz) != 0);
  }
};
template <U32 (*F)(U32, U32, bool)> struct ApproxBinary {
  static U32 run(const Inst &inst, U32 a, U32 b) {
    return F(a, b, (inst.Kind & Ftz) != 0);
  }
};
struct Tanh {
  static U32 run(const Inst &, U32 a) { return tanhApprox(a); }
};
template <U32 (*F)(U32, U32, MinMaxMode)> struct F32MinMax {
  static U32 run(const Inst &inst, U32 a, U32 b) {
    return F(a, b, minMaxOf(inst));
  }
};
/// min and max without modifiers, as vector code: floats compare like their
/// bits as signed integers once negative ones are turned around, -0 below +0.
template <bool Larger> struct F32Extreme {
  static U32 run(U32 a, U32 b) {
    int32_t x = int32_t(a), y = int32_t(b);
    x ^= (x >> 31) & 0x7FFFFFFF;
    y ^= (y >> 31) & 0x7FFFFFFF;
    U32 chosen = (Larger ? x < y : y < x) ? b : a;
    bool aNan = isNanBits(a), bNan = isNanBits(b);
    chosen = bNan ? a : aNan ? b : chosen;
    return aNan && bNan ? CanonicalNan : chosen;
  }
};
struct F64Min {
  static double run(double a, double b) { return minF64(a, b); }
};
struct F64Max {
  static double run(double a, double b) { return maxF64(a, b); }
};
struct F32Abs {
  static U32 run(U32 a) { return a & 0x7FFFFFFF; }
};
struct F32AbsFtz {
  static U32 run(U32 a) { return flush(a) & 0x7FFFFFFF; }
};
struct F32Neg {
  static U32 run(U32 a) { return a ^ 0x80000000; }
};
struct F32NegFtz {
  static U32 run(U32 a) { return flush(a) ^ 0x80000000; }
};
struct F64Abs {
  static U64 run(U64 a) { return a & ~(U64(1) << 63); }
};
struct F64Neg {
  static U64 run(U64 a) { return a ^ U64(1) << 63; }
};
struct Copysign {
  static U32 run(U32 a, U32 b) { return (b & 0x7FFFFFFF) | (a & 0x80000000); }
  static U64 run(U64 a, U64 b) {
    U64 sign = U64(1) << 63;
    return (b & ~sign) | (a & sign);
  }
};

} // namespace

template <void (*F)(const U32 *, const U32 *, U32 *)>
static void runF32Binary(Warp &warp, const Inst &inst, uint32_t mask) {
  U32 result[Lanes];
  F(warp.reg<U32>(inst.Op[1]), warp.reg<U32>(inst.Op[2]), result);
  commit(warp, inst.Op[0], result, mask);
}
static void runF32Fma(Warp &warp, const Inst &inst, uint32_t mask) {
  U32 result[Lanes];
  fmaF32Warp(warp.reg<U32>(inst.Op[1]), warp.reg<U32>(inst.Op[2]),
             warp.reg<U32>(inst.Op[3]), result);
  commit(warp, inst.Op[0], result, mask);
}

static bool isHalf(Type type) {
  return type == Type::F16 || type == Type::BF16 || type == Type::F16x2 ||
         type == Type::BF16x2;
}
static void noteHalf(Decoder &d, Type type) {
  if (type == Type::BF16 || type == Type::BF16x2)
    d.I.Kind |= IsBf16;
}
template <class Op> static Handler halfUnaryBy(Type type) {
  return bytesOf(type) == 2 ? unaryOf<Op, U16, U16> : unaryOf<Op, U32, U32>;
}
template <class Op> static Handler halfBinaryBy(Type type) {
  return bytesOf(type) == 2 ? binaryOf<Op, U16, U16, U16>
                            : binaryOf<Op, U32, U32, U32>;
}

/// The mode modifiers that f32 arithmetic has in common. The default of add,
/// mul and sub is .rn.
static void takeMode(Decoder &d, bool sat) {
  bool found = false;
  d.I.Kind |= uint8_t(d.takeRound(found));
  if (d.take("ftz"))
    d.I.Kind |= Ftz;
  if (sat && d.take("sat"))
    d.I.Kind |= Sat;
}

bool decodeFloatArithmetic(Decoder &d, Type type) {
  std::string_view name = d.base();
  if (isHalf(type)) {
    noteHalf(d, type);
    bool bf16 = (d.I.Kind & IsBf16) != 0;
    d.take("rn");
    if (!bf16 && d.take("ftz"))
      d.I.Kind |= Ftz;
    if (!bf16 && d.take("sat"))
      d.I.Kind |= Sat;
    d.I.Run = name == "add"   ? halfBinaryBy<HalfBinary<addHalf>>(type)
              : name == "sub" ? halfBinaryBy<HalfBinary<subHalf>>(type)
                              : halfBinaryBy<HalfBinary<mulHalf>>(type);
    return sameType(d, type, 2);
  }
  if (type == Type::F64) {
    bool found = false;
    d.I.Kind = uint8_t(d.takeRound(found));
    d.I.Run =
        name == "add"   ? binaryOf<F64Binary<addF64>, double, double, double>
        : name == "sub" ? binaryOf<F64Sub, double, double, double>
                        : binaryOf<F64Binary<mulF64>, double, double, double>;
    return sameType(d, type, 2);
  }
  if (type != Type::F32)
    return false;
  takeMode(d, true);
  if (d.I.Kind == 0)
    d.I.Run = name == "add"   ? runF32Binary<addF32Warp>
              : name == "sub" ? runF32Binary<subF32Warp>
                              : runF32Binary<mulF32Warp>;
  else
    d.I.Run = name == "add"   ? binaryOf<F32Binary<addF32>, U32, U32, U32>
              : name == "sub" ? binaryOf<F32Binary<subF32>, U32, U32, U32>
                              : binaryOf<F32Binary<mulF32>, U32, U32, U32>;
  return sameType(d, type, 2);
}

bool decodeFma(Decoder &d) {
  Type type = d.takeType();
  if (isHalf(type)) {
    noteHalf(d, type);
    bool bf16 = (d.I.Kind & IsBf16) != 0;
    if (!d.take("rn"))
      return d.fail("the rounding is missing");
    if (!bf16 && d.take("ftz"))
      d.I.Kind |= Ftz;
    if (!bf16 && d.take("sat"))
      d.I.Kind |= Sat;
    if (d.take("relu"))
      d.I.Kind |= Relu;
    d.I.Run = bytesOf(type) == 2 ? ternaryOf<HalfFma, U16, U16, U16, U16>
                                 : ternaryOf<HalfFma, U32, U32, U32, U32>;
    return sameType(d, type, 3);
  }
  bool found = false;
  d.I.Kind = uint8_t(d.takeRound(found));
  if (!found)
    return d.fail("the rounding is missing");
  if (type == Type::F64) {
    d.I.Run = ternaryOf<F64Fma, double, double, double, double>;
    return sameType(d, type, 3);
  }
  if (type != Type::F32)
    return false;
  takeMode(d, true);
  d.I.Run = d.I.Kind == 0 ? runF32Fma : ternaryOf<F32Fma, U32, U32, U32, U32>;
  return sameType(d, type, 3);
}

bool decodeFloatDiv(Decoder &d, Type type) {
  if (type == Type::F64) {
    bool found = false;
    d.I.Kind = uint8_t(d.takeRound(found));
    d.I.Run = binaryOf<F64Binary<divF64>, double, double, double>;
    return (found || d.fail("the rounding is missing")) && sameType(d, type, 2);
  }
  if (type != Type::F32)
    return false;
  bool approx = d.take("approx"), full = !approx && d.take("full");
  bool found = false;
  if (!approx && !full)
    d.I.Kind = uint8_t(d.takeRound(found));
  if (!approx && !full && !found)
    return d.fail("the rounding is missing");
  if (d.take("ftz"))
    d.I.Kind |= Ftz;
  d.I.Run = approx ? binaryOf<ApproxBinary<divApprox>, U32, U32, U32>
            : full ? binaryOf<ApproxBinary<divFull>, U32, U32, U32>
                   : binaryOf<F32Binary<divF32>, U32, U32, U32>;
  return sameType(d, type, 2);
}

/// rcp, sqrt and rsqrt, exact or not.
bool decodeRoot(Decoder &d) {
  std::string_view name = d.base();
  Type type = d.takeType();
  bool approx = d.take("approx");
  bool found = false;
  if (!approx)
    d.I.Kind = uint8_t(d.takeRound(found));
  if (!approx && (!found || name == "rsqrt"))
    return d.fail("the rounding is missing");
  if (type == Type::F64) {
    if (approx)
      return false; // the f64 forms are gross approximations of the top half
    d.I.Run = name == "rcp" ? unaryOf<F64Rcp, double, double>
                            : unaryOf<F64Sqrt, double, double>;
    return sameType(d, type, 1);
  }
  if (type != Type::F32)
    return false;
  if (d.take("ftz"))
    d.I.Kind |= Ftz;
  if (approx)
    d.I.Run = name == "rcp"    ? unaryOf<Approx<rcpApprox>, U32, U32>
              : name == "sqrt" ? unaryOf<Approx<sqrtApprox>, U32, U32>
                               : unaryOf<Approx<rsqrtApprox>, U32, U32>;
  else
    d.I.Run = name == "rcp" ? unaryOf<F32Unary<rcpF32>, U32, U32>
                            : unaryOf<F32Unary<sqrtF32>, U32, U32>;
  return sameType(d, type, 1);
}

/// ex2, lg2, sin, cos and tanh.
bool decodeApprox(Decoder &d) {
  std::string_view name = d.base();
  if (!d.take("approx"))
    return d.fail(".approx is missing");
  Type type = d.takeType();
  if (name != "tanh" && d.take("ftz"))
    d.I.Kind |= Ftz;
  if (isHalf(type) && (name == "ex2" || name == "tanh")) {
    noteHalf(d, type);
    if (name == "ex2" && (d.I.Kind & IsBf16) && !(d.I.Kind & Ftz))
      return d.fail("ex2 of bf16 has .ftz");
    d.I.Run = name == "ex2" ? halfUnaryBy<HalfUnary<halfEx2>>(type)
                            : halfUnaryBy<HalfUnary<halfTanh>>(type);
    return sameType(d, type, 1);
  }
  if (type != Type::F32)
    return false;
  d.I.Run = name == "ex2"   ? unaryOf<Approx<ex2Approx>, U32, U32>
            : name == "lg2" ? unaryOf<Approx<lg2Approx>, U32, U32>
            : name == "sin" ? unaryOf<Approx<sinApprox>, U32, U32>
            : name == "cos" ? unaryOf<Approx<cosApprox>, U32, U32>
                            : unaryOf<Tanh, U32, U32>;
  return sameType(d, type, 1);
}

bool decodeFloatMinMax(Decoder &d, Type type) {
  bool max = d.base() == "max";
  if (type == Type::F64) {
    d.I.Run = max ? binary<F64Max, double, double, double>
                  : binary<F64Min, double, double, double>;
    return sameType(d, type, 2);
  }
  noteHalf(d, type);
  if (!(d.I.Kind & IsBf16) && d.take("ftz"))
    d.I.Kind |= Ftz;
  if (d.take("NaN"))
    d.I.Kind |= NanFlag;
  if (d.take("xorsign")) {
    if (!d.take("abs"))
      return d.fail(".abs is missing");
    d.I.Kind |= XorSign;
  }
  if (isHalf(type))
    d.I.Run = max ? halfBinaryBy<HalfMinMax<maxHalf>>(type)
                  : halfBinaryBy<HalfMinMax<minHalf>>(type);
  else if (type == Type::F32 && d.I.Kind == 0)
    d.I.Run = max ? binary<F32Extreme<true>, U32, U32, U32>
                  : binary<F32Extreme<false>, U32, U32, U32>;
  else if (type == Type::F32)
    d.I.Run = max ? binaryOf<F32MinMax<maxF32>, U32, U32, U32>
                  : binaryOf<F32MinMax<minF32>, U32, U32, U32>;
  return sameType(d, type, 2);
}

bool decodeFloatAbsNeg(Decoder &d, Type type) {
  bool abs = d.base() == "abs";
  if (type == Type::F64) {
    d.I.Run = abs ? unary<F64Abs, U64, U64> : unary<F64Neg, U64, U64>;
  } else if (type == Type::F32) {
    if (d.take("ftz"))
      d.I.Run = abs ? unary<F32AbsFtz, U32, U32> : unary<F32NegFtz, U32, U32>;
    else
      d.I.Run = abs ? unary<F32Abs, U32, U32> : unary<F32Neg, U32, U32>;
  } else if (isHalf(type)) {
    noteHalf(d, type);
    if (!(d.I.Kind & IsBf16) && d.take("ftz"))
      d.I.Kind |= Ftz;
    d.I.Run = abs ? halfUnaryBy<HalfUnary<halfAbs>>(type)
                  : halfUnaryBy<HalfUnary<halfNeg>>(type);
  }
  return sameType(d, type, 1);
}

bool decodeCopysign(Decoder &d) {
  Type type = d.takeType();
  if (type == Type::F32)
    d.I.Run = binary<Copysign, U32, U32, U32>;
  else if (type == Type::F64)
    d.I.Run = binary<Copysign, U64, U64, U64>;
  return sameType(d, type, 2);
}

namespace {

enum Test : uint8_t { Finite, Infinite, Number, NotANumber, Normal, Subnormal };

} // namespace

static bool holds(uint8_t test, int kind) {
  switch (test) {
  case Finite:
    return kind != FP_INFINITE && kind != FP_NAN;
  case Infinite:
    return kind == FP_INFINITE;
  case Number:
    return kind != FP_NAN;
  case NotANumber:
    return kind == FP_NAN;
  case Normal:
    return kind == FP_NORMAL;
  default:
    return kind == FP_SUBNORMAL;
  }
}

template <class T>
static void runTestp(Warp &warp, const Inst &inst, uint32_t mask) {
  const T *a = warp.reg<T>(inst.Op[1]);
  uint32_t bits = 0;
  forLanes(mask, [&](uint32_t lane) {
    bits |= uint32_t(holds(inst.Kind, std::fpclassify(a[lane]))) << lane;
  });
  commitPredicate(warp, inst.Op[0], bits, mask);
}

bool decodeTestp(Decoder &d) {
  static constexpr std::pair<const char *, Test> tests[] = {
      {"finite", Finite}, {"infinite", Infinite},
      {"number", Number}, {"notanumber", NotANumber},
      {"normal", Normal}, {"subnormal", Subnormal}};
  bool found = false;
  for (auto [name, test] : tests)
    if (!found && d.take(name)) {
      d.I.Kind = test;
      found = true;
    }
  Type type = d.takeType();
  if (!found || !d.expect(2))
    return d.fail("the property to test is missing");
  d.I.Op[0] = d.dstPredicate(d.operand(0));
  d.I.Op[1] = d.src(1, type);
  if (type == Type::F32)
    d.I.Run = runTestp<float>;
  else if (type == Type::F64)
    d.I.Run = runTestp<double>;
  return true;
}

} // namespace kvc::sim
