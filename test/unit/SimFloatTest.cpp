// f32 and f64 instructions of the simulator against the host's arithmetic in
// the same rounding mode, and against long double for the approximations.
#include "test/unit/SimFixture.h"

#include <cfenv>
#include <cmath>
#include <functional>

using namespace kvc::sim;

namespace {

struct RoundingName {
  const char *Name;
  int Mode;
};
const RoundingName Roundings[] = {{".rn", FE_TONEAREST},
                                  {".rz", FE_TOWARDZERO},
                                  {".rm", FE_DOWNWARD},
                                  {".rp", FE_UPWARD}};

uint64_t canonicalNan(uint64_t bits) {
  return (bits & 0x7FFFFFFF) > 0x7F800000 ? 0x7FFFFFFF : bits;
}

float flushed(float value) {
  return std::fpclassify(value) == FP_SUBNORMAL ? std::copysign(0.0F, value)
                                                : value;
}

float clamped(float value) {
  if (std::isnan(value) || std::signbit(value))
    return 0;
  return value > 1 ? 1 : value;
}

using Function = std::function<float(const float *)>;

/// op{.rnd}{.ftz}{.sat}.f32 on all pairs or triples of edges and random bits.
void checkArithmetic(const std::string &op, unsigned operands,
                     const Function &compute, bool saturates) {
  std::vector<Values> values =
      tuples(operands,
             operands == 3 ? Values(EdgesF32.begin(), EdgesF32.begin() + 23)
                           : EdgesF32,
             2000, 32, 7);
  std::vector<Input> inputs;
  std::string list = "o0";
  for (unsigned n = 0; n != operands; ++n) {
    inputs.push_back({32, values[n]});
    list += ", i" + std::to_string(n);
  }
  for (const RoundingName &rounding : Roundings)
    for (bool ftz : {false, true})
      for (bool sat : {false, true}) {
        if (sat && !saturates)
          continue;
        std::string text = op + rounding.Name + (ftz ? ".ftz" : "") +
                           (sat ? ".sat" : "") + ".f32";
        Values got = evaluate1(text + " " + list + ";", inputs);
        expectAll(text, inputs, got, [&](size_t i) {
          volatile float operand[3] = {0, 0, 0};
          for (unsigned n = 0; n != operands; ++n) {
            operand[n] = asFloat(values[n][i]);
            if (ftz)
              operand[n] = flushed(operand[n]);
          }
          float copy[3] = {operand[0], operand[1], operand[2]};
          std::fesetround(rounding.Mode);
          volatile float result = compute(copy);
          std::fesetround(FE_TONEAREST);
          float final = result;
          if (ftz)
            final = flushed(final);
          if (sat)
            final = clamped(final);
          return canonicalNan(bits32(final));
        });
      }
}

float hostAdd(const float *v) {
  volatile float a = v[0], b = v[1], r = a + b;
  return r;
}
float hostSub(const float *v) {
  volatile float a = v[0], b = v[1], r = a - b;
  return r;
}
float hostMul(const float *v) {
  volatile float a = v[0], b = v[1], r = a * b;
  return r;
}
float hostDiv(const float *v) {
  volatile float a = v[0], b = v[1], r = a / b;
  return r;
}
float hostRcp(const float *v) {
  volatile float a = 1, b = v[0], r = a / b;
  return r;
}
float hostSqrt(const float *v) {
  volatile float a = v[0], r = std::sqrt(a);
  return r;
}
float hostFma(const float *v) {
  volatile float a = v[0], b = v[1], c = v[2], r = std::fma(a, b, c);
  return r;
}

TEST(SimFloat, Add) { checkArithmetic("add", 2, hostAdd, true); }
TEST(SimFloat, Sub) { checkArithmetic("sub", 2, hostSub, true); }
TEST(SimFloat, Mul) { checkArithmetic("mul", 2, hostMul, true); }
TEST(SimFloat, Fma) { checkArithmetic("fma", 3, hostFma, true); }
TEST(SimFloat, Mad) { checkArithmetic("mad", 3, hostFma, true); }
TEST(SimFloat, Div) { checkArithmetic("div", 2, hostDiv, false); }
TEST(SimFloat, Rcp) { checkArithmetic("rcp", 1, hostRcp, false); }
TEST(SimFloat, Sqrt) { checkArithmetic("sqrt", 1, hostSqrt, false); }

TEST(SimFloat, DefaultRoundingIsNearest) {
  std::vector<Values> v = tuples(2, EdgesF32, 500, 32, 3);
  std::vector<Input> inputs = {{32, v[0]}, {32, v[1]}};
  using Host = float (*)(const float *);
  for (auto [op, host] : std::vector<std::pair<const char *, Host>>{
           {"add.f32", hostAdd}, {"sub.f32", hostSub}, {"mul.f32", hostMul}}) {
    Values got = evaluate1(std::string(op) + " o0, i0, i1;", inputs);
    expectAll(op, inputs, got, [&, compute = host](size_t i) {
      float operands[] = {asFloat(v[0][i]), asFloat(v[1][i])};
      return canonicalNan(bits32(compute(operands)));
    });
  }
}

TEST(SimFloat, NegAbs) {
  Values v = tuples(1, EdgesF32, 500, 32, 4)[0];
  std::vector<Input> inputs = {{32, v}};
  auto expect = [&](const std::string &op, bool ftz, bool negate) {
    Values got = evaluate1(op + " o0, i0;", inputs);
    expectAll(op, inputs, got, [&](size_t i) -> uint64_t {
      uint64_t bits = v[i];
      if (ftz && (bits & 0x7F800000) == 0)
        bits &= 0x80000000;
      bits = negate ? bits ^ 0x80000000 : bits & 0x7FFFFFFF;
      // A NaN's payload and sign are not specified: only that it is one.
      if (std::isnan(asFloat(bits)))
        return std::isnan(asFloat(got[i])) ? got[i] : bits;
      return bits;
    });
  };
  expect("neg.f32", false, true);
  expect("neg.ftz.f32", true, true);
  expect("abs.f32", false, false);
  expect("abs.ftz.f32", true, false);
}

TEST(SimFloat, MinMax) {
  std::vector<Values> v = tuples(2, EdgesF32, 1000, 32, 5);
  std::vector<Input> inputs = {{32, v[0]}, {32, v[1]}};
  for (bool larger : {false, true})
    for (bool ftz : {false, true})
      for (bool nan : {false, true})
        for (bool xorsign : {false, true}) {
          std::string op = std::string(larger ? "max" : "min") +
                           (ftz ? ".ftz" : "") + (nan ? ".NaN" : "") +
                           (xorsign ? ".xorsign.abs" : "") + ".f32";
          Values got = evaluate1(op + " o0, i0, i1;", inputs);
          expectAll(op, inputs, got, [&](size_t i) -> uint64_t {
            float a = asFloat(v[0][i]), b = asFloat(v[1][i]);
            if (ftz) {
              a = flushed(a);
              b = flushed(b);
            }
            bool sign = std::signbit(a) != std::signbit(b);
            if (xorsign) {
              a = std::fabs(a);
              b = std::fabs(b);
            }
            if ((std::isnan(a) && std::isnan(b)) ||
                (nan && (std::isnan(a) || std::isnan(b))))
              return 0x7FFFFFFF;
            float result;
            if (std::isnan(a))
              result = b;
            else if (std::isnan(b))
              result = a;
            else if (a == b)
              result = std::signbit(a) == larger ? b : a;
            else
              result = (a > b) == larger ? a : b;
            return bits32(xorsign ? std::copysign(result, sign ? -1.0F : 1.0F)
                                  : result);
          });
        }
}

/// The distance between two finite floats in units of the last place.
int64_t distance(float a, float b) {
  auto key = [](float value) {
    auto bits = int32_t(bits32(value));
    return int64_t(bits < 0 ? int32_t(0x80000000u) - bits : bits);
  };
  return std::abs(key(a) - key(b));
}

/// An approximation's special values come out exactly, others within `ulps` of
/// the long double function or, where that is more, `absolute`.
void checkApproximation(const std::string &op,
                        const std::function<long double(long double)> &exact,
                        int64_t ulps, bool ftz, double absolute = 0,
                        double limit = INFINITY) {
  Values v = tuples(1, EdgesF32, 3000, 32, 6)[0];
  std::mt19937_64 random(8);
  for (int i = 0; i != 2000; ++i) // where exponents are ordinary
    v.push_back(bits32(std::ldexp(float(random() >> 40) * 0x1p-23F - 1,
                                  int(random() % 16) - 8)));
  std::vector<Input> inputs = {{32, v}};
  Values got = evaluate1(op + " o0, i0;", inputs);
  expectAll(op, inputs, got, [&](size_t i) -> uint64_t {
    float a = asFloat(v[i]);
    if (ftz)
      a = flushed(a);
    if (std::isfinite(a) && std::fabs(a) > limit)
      return got[i];
    long double want = exact(a);
    float rounded = float(want);
    if (ftz)
      rounded = flushed(rounded);
    float result = asFloat(got[i]);
    if (std::isnan(rounded))
      return 0x7FFFFFFF;
    if (std::isinf(rounded) || rounded == 0 || std::isinf(result))
      return bits32(rounded);
    if (distance(result, rounded) <= ulps ||
        std::fabs((long double)result - want) <= absolute)
      return got[i];
    return bits32(rounded);
  });
}

TEST(SimFloat, Ex2) {
  auto exact = [](long double x) { return std::exp2(x); };
  checkApproximation("ex2.approx.f32", exact, 2, false);
  checkApproximation("ex2.approx.ftz.f32", exact, 2, true);
}

TEST(SimFloat, Lg2) {
  auto exact = [](long double x) { return std::log2(x); };
  checkApproximation("lg2.approx.f32", exact, 1, false, 0x1p-22);
  checkApproximation("lg2.approx.ftz.f32", exact, 1, true, 0x1p-22);
}

TEST(SimFloat, ApproximateRoots) {
  auto root = [](long double x) { return std::sqrt(x); };
  auto inverse = [](long double x) { return 1 / std::sqrt(x); };
  auto reciprocal = [](long double x) { return 1 / x; };
  for (bool ftz : {false, true}) {
    std::string end = ftz ? ".approx.ftz.f32" : ".approx.f32";
    checkApproximation("sqrt" + end, root, 1, ftz);
    checkApproximation("rsqrt" + end, inverse, 1, ftz);
    checkApproximation("rcp" + end, reciprocal, 1, ftz);
  }
}

TEST(SimFloat, SinCosTanh) {
  auto sine = [](long double x) {
    return std::isinf(x) ? (long double)NAN : std::sin(x);
  };
  auto cosine = [](long double x) {
    return std::isinf(x) ? (long double)NAN : std::cos(x);
  };
  // The ISA bounds the error in [-pi, pi] only.
  checkApproximation("sin.approx.f32", sine, 1, true, 0x1p-20, 3.15);
  checkApproximation("cos.approx.f32", cosine, 1, true, 0x1p-20, 3.15);
  checkApproximation("sin.approx.ftz.f32", sine, 1, true, 0x1p-20, 3.15);
  checkApproximation("cos.approx.ftz.f32", cosine, 1, true, 0x1p-20, 3.15);
  auto tangent = [](long double x) { return std::tanh(x); };
  checkApproximation("tanh.approx.f32", tangent, 1 << 13, false);
}

TEST(SimFloat, ApproximateDivision) {
  std::vector<Values> v = tuples(2, EdgesF32, 3000, 32, 9);
  std::vector<Input> inputs = {{32, v[0]}, {32, v[1]}};
  for (const char *op : {"div.approx.f32", "div.approx.ftz.f32", "div.full.f32",
                         "div.full.ftz.f32"}) {
    bool ftz = std::strstr(op, "ftz"), full = std::strstr(op, "full");
    Values got = evaluate1(std::string(op) + " o0, i0, i1;", inputs);
    expectAll(op, inputs, got, [&](size_t i) -> uint64_t {
      float a = asFloat(v[0][i]), b = asFloat(v[1][i]);
      if (ftz) {
        a = flushed(a);
        b = flushed(b);
      }
      float quotient = a / b;
      // The ISA: 0 for 2^126 < |b| < 2^128, NaN where a is infinite as well.
      if (!full && std::fabs(b) > 0x1p126F && std::isfinite(b))
        quotient = std::isinf(a) ? NAN : std::copysign(1.0F, b) * a * 0.0F;
      if (ftz)
        quotient = flushed(quotient);
      uint64_t want = canonicalNan(bits32(quotient));
      if (std::isfinite(quotient) && quotient != 0 &&
          distance(asFloat(got[i]), quotient) <= 2)
        return got[i];
      return want;
    });
  }
}

TEST(SimFloat, Double) {
  std::vector<Values> v = tuples(2, EdgesF64, 2000, 64, 10);
  std::vector<Input> inputs = {{64, v[0]}, {64, v[1]}};
  auto same = [](double a, uint64_t got) {
    return std::isnan(a) && std::isnan(asDouble(got)) ? got : bits64(a);
  };
  for (const RoundingName &rounding : Roundings) {
    for (const char *op : {"add", "sub", "mul", "div", "fma", "sqrt", "rcp"}) {
      std::string name = op, text = name + rounding.Name + ".f64";
      bool one = name == "sqrt" || name == "rcp";
      std::string list = one             ? " o0, i0;"
                         : name == "fma" ? " o0, i0, i1, i1;"
                                         : " o0, i0, i1;";
      Values got = evaluate1(text + list, inputs, 64);
      expectAll(text, inputs, got, [&](size_t i) {
        volatile double a = asDouble(v[0][i]), b = asDouble(v[1][i]), r = 0;
        std::fesetround(rounding.Mode);
        if (name == "add")
          r = a + b;
        else if (name == "sub")
          r = a - b;
        else if (name == "mul")
          r = a * b;
        else if (name == "div")
          r = a / b;
        else if (name == "fma")
          r = std::fma(a, b, b);
        else if (name == "sqrt")
          r = std::sqrt(a);
        else
          r = 1 / a;
        std::fesetround(FE_TONEAREST);
        return same(r, got[i]);
      });
    }
  }
  for (const char *op : {"neg.f64", "abs.f64"}) {
    Values got = evaluate1(std::string(op) + " o0, i0;", inputs, 64);
    expectAll(op, inputs, got, [&](size_t i) {
      double a = asDouble(v[0][i]);
      return same(op[0] == 'n' ? -a : std::fabs(a), got[i]);
    });
  }
  for (const char *op : {"min.f64", "max.f64"}) {
    Values got = evaluate1(std::string(op) + " o0, i0, i1;", inputs, 64);
    bool larger = op[1] == 'a';
    expectAll(op, inputs, got, [&](size_t i) {
      double a = asDouble(v[0][i]), b = asDouble(v[1][i]);
      double r = larger ? std::fmax(a, b) : std::fmin(a, b);
      if (a == b)
        r = std::signbit(a) == larger ? b : a;
      return same(r, got[i]);
    });
  }
}

/// The 14 comparisons of floats, from their definition.
bool compares(const std::string &name, double a, double b) {
  bool unordered = std::isnan(a) || std::isnan(b);
  if (name == "num")
    return !unordered;
  if (name == "nan")
    return unordered;
  std::string base = name;
  if (base.size() == 3) {
    if (unordered)
      return true;
    base.pop_back();
  }
  if (unordered)
    return false;
  return base == "eq"   ? a == b
         : base == "ne" ? a != b
         : base == "lt" ? a < b
         : base == "le" ? a <= b
         : base == "gt" ? a > b
                        : a >= b;
}
const char *const FloatComparisons[] = {"eq",  "ne",  "lt",  "le",  "gt",
                                        "ge",  "equ", "neu", "ltu", "leu",
                                        "gtu", "geu", "num", "nan"};

TEST(SimFloat, Setp) {
  std::vector<Values> v = tuples(2, EdgesF32, 500, 32, 11);
  std::vector<Input> inputs = {{32, v[0]}, {32, v[1]}};
  for (const char *name : FloatComparisons)
    for (bool ftz : {false, true}) {
      std::string op =
          std::string("setp.") + name + (ftz ? ".ftz" : "") + ".f32";
      Values got =
          evaluate1(op + " p0, i0, i1; selp.b32 o0, 1, 0, p0;", inputs);
      expectAll(op, inputs, got, [&](size_t i) -> uint64_t {
        float a = asFloat(v[0][i]), b = asFloat(v[1][i]);
        return compares(name, ftz ? flushed(a) : a, ftz ? flushed(b) : b);
      });
    }
}

TEST(SimFloat, SetpDoubleAndCombined) {
  std::vector<Values> v = tuples(2, EdgesF64, 500, 64, 12);
  std::vector<Input> inputs = {{64, v[0]}, {64, v[1]}};
  for (const char *name : FloatComparisons) {
    std::string op = std::string("setp.") + name + ".f64";
    Values got = evaluate1(op + " p0, i0, i1; selp.b32 o0, 1, 0, p0;", inputs);
    expectAll(op, inputs, got, [&](size_t i) -> uint64_t {
      return compares(name, asDouble(v[0][i]), asDouble(v[1][i]));
    });
  }
  // Both destinations, with the combining predicate and its negation.
  for (const char *combine : {"and", "or", "xor"}) {
    std::string op = std::string("setp.lt.") + combine + ".f64";
    std::vector<Values> got =
        evaluate("and.b32 t0, index, 1; setp.ne.s32 p1, t0, 0;" + op +
                     " p0|p2, i0, i1, p1; selp.b32 o0, 1, 0, p0; selp.b32 o1, "
                     "1, 0, p2;" +
                     op + " p0, i0, i1, !p1; selp.b32 o2, 1, 0, p0;",
                 inputs, {32, 32, 32});
    auto combined = [&](bool a, bool b) {
      return combine[0] == 'a' ? a && b : combine[0] == 'o' ? a || b : a != b;
    };
    auto less = [&](size_t i) { return asDouble(v[0][i]) < asDouble(v[1][i]); };
    expectAll(op, inputs, got[0],
              [&](size_t i) -> uint64_t { return combined(less(i), i & 1); });
    // The second destination combines the negated comparison.
    expectAll(op + " second", inputs, got[1],
              [&](size_t i) -> uint64_t { return combined(!less(i), i & 1); });
    expectAll(op + " negated", inputs, got[2], [&](size_t i) -> uint64_t {
      return combined(less(i), !(i & 1));
    });
  }
}

TEST(SimFloat, SelectByPredicateAndSign) {
  std::vector<Values> v = tuples(2, EdgesF32, 100, 32, 13);
  std::vector<Input> inputs = {{32, v[0]}, {32, v[1]}};
  Values got =
      evaluate1("setp.lt.f32 p0, i0, i1; selp.f32 o0, i0, i1, p0;", inputs);
  expectAll("selp", inputs, got, [&](size_t i) {
    return asFloat(v[0][i]) < asFloat(v[1][i]) ? v[0][i] : v[1][i];
  });
}

TEST(SimFloat, Copysign) {
  std::vector<Values> v = tuples(2, EdgesF32, 100, 32, 14);
  std::vector<Input> inputs = {{32, v[0]}, {32, v[1]}};
  // The sign is the first operand's.
  Values got = evaluate1("copysign.f32 o0, i0, i1;", inputs);
  expectAll("copysign", inputs, got, [&](size_t i) {
    return (v[0][i] & 0x80000000) | (v[1][i] & 0x7FFFFFFF);
  });
}

} // namespace
