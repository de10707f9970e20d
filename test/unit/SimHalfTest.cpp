// f16 and bf16 arithmetic of the simulator against exact sums in quadruple
// precision, rounded by a search in all of the format's values.
#include "test/unit/SimFixture.h"
#include "test/unit/SimSoftFloat.h"

using namespace kvc::sim;

namespace {

struct Format {
  const char *Name;
  const SmallFloat &Values;
  uint64_t One;
};
const Format Formats[] = {{"f16", f16Format(), 0x3C00},
                          {"bf16", bf16Format(), 0x3F80}};

struct Modifiers {
  bool Ftz = false, Sat = false, Relu = false;
  std::string text() const {
    return std::string(Ftz ? ".ftz" : "") + (Sat ? ".sat" : "") +
           (Relu ? ".relu" : "");
  }
};

uint64_t flush(const Format &format, uint64_t bits) {
  double value = format.Values.decode(uint32_t(bits));
  double normal = format.One == 0x3C00 ? 0x1p-14 : 0x1p-126;
  return std::fabs(value) < normal ? bits & 0x8000 : bits;
}

/// Rounds and applies what the modifiers say.
uint64_t finish(const Format &format, const Exact &exact, Modifiers modifiers) {
  uint64_t bits = exact.Nan ? 0x7FFF : format.Values.encode(exact, 'n');
  if (modifiers.Ftz && !exact.Nan)
    bits = flush(format, bits);
  if (modifiers.Relu && !exact.Nan && bits >> 15)
    bits = 0;
  if (modifiers.Sat) {
    double value = format.Values.decode(uint32_t(bits));
    bits = exact.Nan || bits >> 15 ? 0 : value > 1 ? format.One : bits;
  }
  return bits;
}

using Compute = Exact (*)(Quad, Quad, Quad);

Exact add(Quad a, Quad b, Quad) { return exactSum(a, b); }
Exact sub(Quad a, Quad b, Quad) { return exactSum(a, -b); }
Exact mul(Quad a, Quad b, Quad) {
  Exact exact;
  exact.Sum = a * b;
  exact.Nan = exact.Sum != exact.Sum;
  return exact;
}
Exact fma(Quad a, Quad b, Quad c) { return exactSum(a * b, c); }

/// Scalar and packed forms of `op` ("add.rn") on edges and random operands.
void check(const Format &format, const std::string &op, unsigned operands,
           Compute compute, Modifiers modifiers, const Snippet &snippet = {}) {
  std::vector<Values> v =
      tuples(operands,
             operands == 3 ? Values(EdgesHalf.begin(), EdgesHalf.begin() + 20)
                           : EdgesHalf,
             6000, 16, 60);
  auto expected = [&](size_t i) {
    Quad operand[3] = {0, 0, 0};
    for (unsigned n = 0; n != operands; ++n) {
      uint64_t bits = v[n][i];
      operand[n] = format.Values.decode(
          uint32_t(modifiers.Ftz ? flush(format, bits) : bits));
    }
    return finish(format, compute(operand[0], operand[1], operand[2]),
                  modifiers);
  };
  std::string list = " o0";
  std::vector<Input> inputs, pairs;
  for (unsigned n = 0; n != operands; ++n) {
    list += ", i" + std::to_string(n);
    inputs.push_back({16, v[n]});
    // The upper half is the value of the next thread.
    Values packed(v[n].size());
    for (size_t i = 0; i != packed.size(); ++i)
      packed[i] = v[n][(i + 1) % packed.size()] << 16 | v[n][i];
    pairs.push_back({32, packed});
  }
  std::string name = op + modifiers.text() + "." + format.Name;
  Values got = evaluate1(name + list + ";", inputs, 16, snippet);
  expectAll(name, inputs, got, expected);
  got = evaluate1(name + "x2" + list + ";", pairs, 32, snippet);
  expectAll(name + "x2", pairs, got, [&](size_t i) {
    return expected((i + 1) % v[0].size()) << 16 | expected(i);
  });
}

TEST(SimHalf, Arithmetic) {
  for (const Format &format : Formats) {
    check(format, "add.rn", 2, add, {});
    check(format, "sub.rn", 2, sub, {});
    check(format, "mul.rn", 2, mul, {});
    check(format, "fma.rn", 3, fma, {});
    check(format, "fma.rn", 3, fma, {false, false, true});
  }
  // bf16 has neither .ftz nor .sat.
  for (bool ftz : {false, true})
    for (bool sat : {false, true}) {
      check(Formats[0], "add.rn", 2, add, {ftz, sat, false});
      check(Formats[0], "mul.rn", 2, mul, {ftz, sat, false});
      check(Formats[0], "fma.rn", 3, fma, {ftz, sat, false});
    }
}

TEST(SimHalf, MinMax) {
  std::vector<Values> v = tuples(2, EdgesHalf, 6000, 16, 61);
  std::vector<Input> inputs = {{16, v[0]}, {16, v[1]}};
  for (const Format &format : Formats)
    for (bool larger : {false, true})
      for (bool nan : {false, true}) {
        std::string op = std::string(larger ? "max" : "min") +
                         (nan ? ".NaN." : ".") + format.Name;
        Values got = evaluate1(op + " o0, i0, i1;", inputs, 16);
        expectAll(op, inputs, got, [&](size_t i) -> uint64_t {
          double a = format.Values.decode(uint32_t(v[0][i]));
          double b = format.Values.decode(uint32_t(v[1][i]));
          if ((std::isnan(a) && std::isnan(b)) ||
              (nan && (std::isnan(a) || std::isnan(b))))
            return 0x7FFF;
          bool first = std::isnan(b) ||
                       (!std::isnan(a) && (a == b ? std::signbit(a) != larger
                                                  : (a > b) == larger));
          return first ? v[0][i] : v[1][i];
        });
      }
}

TEST(SimHalf, NegAbs) {
  Values v;
  for (uint64_t code = 0; code != 65536; ++code)
    v.push_back(code);
  std::vector<Input> inputs = {{16, v}};
  for (const Format &format : Formats)
    for (bool negate : {false, true}) {
      std::string op = std::string(negate ? "neg." : "abs.") + format.Name;
      Values got = evaluate1(op + " o0, i0;", inputs, 16);
      expectAll(op, inputs, got, [&](size_t i) -> uint64_t {
        uint64_t bits = negate ? v[i] ^ 0x8000 : v[i] & 0x7FFF;
        bool nan = std::isnan(format.Values.decode(uint32_t(v[i])));
        if (nan)
          return std::isnan(format.Values.decode(uint32_t(got[i]))) ? got[i]
                                                                    : bits;
        return bits;
      });
    }
}

TEST(SimHalf, Setp) {
  std::vector<Values> v = tuples(2, EdgesHalf, 2000, 16, 62);
  std::vector<Input> inputs = {{16, v[0]}, {16, v[1]}};
  for (const Format &format : Formats) {
    std::string op = std::string("setp.lt.") + format.Name;
    Values got = evaluate1(op + " p0, i0, i1; selp.b32 o0, 1, 0, p0;", inputs);
    expectAll(op, inputs, got, [&](size_t i) -> uint64_t {
      return format.Values.decode(uint32_t(v[0][i])) <
             format.Values.decode(uint32_t(v[1][i]));
    });
    op = std::string("setp.geu.") + format.Name;
    got = evaluate1(op + " p0, i0, i1; selp.b32 o0, 1, 0, p0;", inputs);
    expectAll(op, inputs, got, [&](size_t i) -> uint64_t {
      return !(format.Values.decode(uint32_t(v[0][i])) <
               format.Values.decode(uint32_t(v[1][i])));
    });
  }
}

TEST(SimHalf, Approximations) {
  Values v;
  for (uint64_t code = 0; code != 65536; ++code)
    v.push_back(code);
  std::vector<Input> inputs = {{16, v}};
  for (const Format &format : Formats)
    for (const char *name : {"ex2.approx", "tanh.approx"}) {
      bool power = name[0] == 'e', brain = format.One == 0x3F80;
      // ex2 of bf16 exists with .ftz only.
      std::string op =
          std::string(name) + (power && brain ? ".ftz." : ".") + format.Name;
      Values got = evaluate1(op + " o0, i0;", inputs, 16);
      expectAll(op, inputs, got, [&](size_t i) -> uint64_t {
        uint64_t bits = power && brain ? flush(format, v[i]) : v[i];
        long double value = format.Values.decode(uint32_t(bits));
        Exact exact;
        long double result = power ? std::exp2(value) : std::tanh(value);
        exact.Sum = Quad(result);
        exact.Nan = std::isnan(result);
        uint64_t want = finish(format, exact, {power && brain, false, false});
        if (exact.Nan || std::isinf(double(result)))
          return want;
        // The last bit is the implementation's.
        int64_t apart = int64_t(got[i]) - int64_t(want);
        return apart >= -1 && apart <= 1 ? got[i] : want;
      });
    }
}

} // namespace
