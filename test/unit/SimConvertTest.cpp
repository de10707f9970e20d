// cvt: floating formats against their enumerated values, integers against the
// host's rounding modes.
#include "test/unit/SimFixture.h"
#include "test/unit/SimSoftFloat.h"

#include <cfenv>

using namespace kvc::sim;

namespace {

const Snippet Fp8 = {"sm_90", "8.1", 32, 0, {}};

/// All values of a format as f32 bits, the midpoints between neighbours and
/// the floats next to both, then random ones.
Values aroundAll(const SmallFloat &format) {
  Values values = EdgesF32;
  auto add = [&](double value) {
    float single = float(value);
    values.push_back(bits32(single));
    values.push_back(bits32(std::nextafterf(single, INFINITY)));
    values.push_back(bits32(std::nextafterf(single, -INFINITY)));
    values.push_back(bits32(-single));
  };
  for (uint32_t code = 0; code != format.infinity(); ++code) {
    double value = format.decode(code);
    add(value);
    if (code != format.largest())
      add((value + format.decode(code + 1)) / 2);
  }
  double last = format.decode(format.largest());
  add(last + (last - format.decode(format.largest() - 1)) / 2);
  std::mt19937_64 random(40);
  for (int i = 0; i != 5000; ++i)
    values.push_back(random() >> 32);
  return values;
}

Exact exactOf(double value) {
  Exact exact;
  exact.Sum = value;
  exact.Nan = std::isnan(value);
  return exact;
}

/// What cvt of an f32 to a 16-bit format gives.
uint64_t narrowed(const SmallFloat &format, uint64_t bits, char mode, bool relu,
                  bool saturate = false) {
  double value = asFloat(bits);
  if (std::isnan(value))
    return 0x7FFF;
  if (relu && std::signbit(value))
    return 0;
  return format.encode(exactOf(value), mode, saturate);
}

TEST(SimConvert, F32ToF16) {
  Values v = aroundAll(f16Format());
  std::vector<Input> inputs = {{32, v}};
  for (char mode : {'n', 'z', 'm', 'p'}) {
    std::string op = std::string("cvt.r") + mode + ".f16.f32";
    Values got = evaluate1(op + " o0, i0;", inputs, 16);
    expectAll(op, inputs, got, [&](size_t i) {
      return narrowed(f16Format(), v[i], mode, false);
    });
  }
  for (bool relu : {false, true})
    for (char mode : {'n', 'z'}) {
      std::string op =
          std::string("cvt.r") + mode + (relu ? ".relu" : "") + ".f16x2.f32";
      Values reversed(v.rbegin(), v.rend());
      std::vector<Input> both = {{32, v}, {32, reversed}};
      Values got = evaluate1(op + " o0, i0, i1;", both);
      // The first operand goes to the upper half.
      expectAll(op, both, got, [&](size_t i) {
        return narrowed(f16Format(), v[i], mode, relu) << 16 |
               narrowed(f16Format(), reversed[i], mode, relu);
      });
    }
}

TEST(SimConvert, F32ToBf16) {
  Values v = aroundAll(bf16Format());
  Values reversed(v.rbegin(), v.rend());
  std::vector<Input> both = {{32, v}, {32, reversed}};
  for (bool relu : {false, true})
    for (char mode : {'n', 'z'}) {
      std::string middle = std::string("cvt.r") + mode + (relu ? ".relu" : "");
      Values got = evaluate1(middle + ".bf16.f32 o0, i0;", both, 16);
      expectAll(middle + ".bf16.f32", both, got, [&](size_t i) {
        return narrowed(bf16Format(), v[i], mode, relu);
      });
      got = evaluate1(middle + ".bf16x2.f32 o0, i0, i1;", both);
      expectAll(middle + ".bf16x2.f32", both, got, [&](size_t i) {
        return narrowed(bf16Format(), v[i], mode, relu) << 16 |
               narrowed(bf16Format(), reversed[i], mode, relu);
      });
    }
}

TEST(SimConvert, HalfToF32) {
  Values v;
  for (uint64_t code = 0; code != 65536; ++code)
    v.push_back(code);
  std::vector<Input> inputs = {{16, v}};
  for (bool brain : {false, true}) {
    const SmallFloat &format = brain ? bf16Format() : f16Format();
    std::string op = brain ? "cvt.f32.bf16" : "cvt.f32.f16";
    Values got = evaluate1(op + " o0, i0;", inputs);
    expectAll(op, inputs, got, [&](size_t i) -> uint64_t {
      double value = format.decode(uint32_t(v[i]));
      if (std::isnan(value)) // which NaN is not specified
        return std::isnan(asFloat(got[i])) ? got[i] : 0x7FFFFFFF;
      return bits32(float(value));
    });
  }
  Values got = evaluate1("cvt.f64.f16 o0, i0;", inputs, 64);
  expectAll("cvt.f64.f16", inputs, got, [&](size_t i) -> uint64_t {
    double value = f16Format().decode(uint32_t(v[i]));
    if (std::isnan(value))
      return std::isnan(asDouble(got[i])) ? got[i] : 0;
    return bits64(value);
  });
}

TEST(SimConvert, F32ToFp8) {
  for (bool wide : {false, true})
    for (bool relu : {false, true}) {
      const SmallFloat &format = wide ? e5m2Format() : e4m3Format();
      Values v = aroundAll(format);
      Values reversed(v.rbegin(), v.rend());
      std::vector<Input> both = {{32, v}, {32, reversed}};
      std::string op = std::string("cvt.rn.satfinite") + (relu ? ".relu" : "") +
                       (wide ? ".e5m2x2" : ".e4m3x2") + ".f32";
      auto code = [&](uint64_t bits) -> uint64_t {
        double value = asFloat(bits);
        if (std::isnan(value))
          return 0x7F;
        if (relu && std::signbit(value))
          return 0;
        return format.encode(exactOf(value), 'n', true);
      };
      Values got = evaluate1(op + " o0, i0, i1;", both, 16, Fp8);
      expectAll(op, both, got,
                [&](size_t i) { return code(v[i]) << 8 | code(reversed[i]); });
    }
}

TEST(SimConvert, Fp8AndF16) {
  Values v;
  for (uint64_t code = 0; code != 65536; ++code)
    v.push_back(code);
  std::vector<Input> inputs = {{16, v}};
  for (bool wide : {false, true}) {
    const SmallFloat &format = wide ? e5m2Format() : e4m3Format();
    std::string name = wide ? "e5m2x2" : "e4m3x2";
    std::string op = "cvt.rn.f16x2." + name;
    Values got = evaluate1(op + " o0, i0;", inputs, 32, Fp8);
    auto half = [&](uint64_t code, uint64_t actual) -> uint64_t {
      double value = format.decode(uint32_t(code));
      if (std::isnan(value))
        return (actual & 0x7FFF) > 0x7C00 ? actual : 0x7FFF;
      return f16Format().encode(exactOf(value), 'n');
    };
    expectAll(op, inputs, got, [&](size_t i) {
      return half(v[i] >> 8, got[i] >> 16) << 16 |
             half(v[i] & 255, got[i] & 0xFFFF);
    });
    // And back from every f16.
    Values pairs;
    for (uint64_t code = 0; code != 65536; ++code)
      pairs.push_back(code << 16 | (65535 - code));
    std::vector<Input> halves = {{32, pairs}};
    op = "cvt.rn.satfinite." + name + ".f16x2";
    got = evaluate1(op + " o0, i0;", halves, 16, Fp8);
    auto small = [&](uint64_t code) -> uint64_t {
      double value = f16Format().decode(uint32_t(code & 0xFFFF));
      return std::isnan(value) ? 0x7F
                               : format.encode(exactOf(value), 'n', true);
    };
    expectAll(op, halves, got, [&](size_t i) {
      return small(pairs[i] >> 16) << 8 | small(pairs[i]);
    });
  }
}

TEST(SimConvert, Tf32) {
  SmallFloat format(8, 10, true);
  Values v = EdgesF32;
  std::mt19937_64 random(41);
  for (int i = 0; i != 8000; ++i) {
    uint64_t bits = random() >> 32;
    v.push_back(bits);
    v.push_back((bits & ~uint64_t(0x1FFF)) | 0x1000); // a tie
  }
  std::vector<Input> inputs = {{32, v}};
  for (char mode : {'a', 'n', 'z'}) {
    std::string op = std::string("cvt.r") +
                     (mode == 'a' ? "na" : std::string(1, mode)) + ".tf32.f32";
    Values got = evaluate1(op + " o0, i0;", inputs);
    expectAll(op, inputs, got, [&](size_t i) -> uint64_t {
      double value = asFloat(v[i]);
      if (std::isnan(value))
        return std::isnan(asFloat(got[i])) ? got[i] : 0x7FFFFFFF;
      uint64_t code = format.encode(exactOf(value), mode);
      return (code >> 18) << 31 | (code & 0x3FFFF) << 13;
    });
  }
}

struct HostMode {
  char Name;
  int Mode;
};
const HostMode HostModes[] = {{'n', FE_TONEAREST},
                              {'z', FE_TOWARDZERO},
                              {'m', FE_DOWNWARD},
                              {'p', FE_UPWARD}};

TEST(SimConvert, DoubleToAndFromSingle) {
  Values v = tuples(1, EdgesF64, 4000, 64, 42)[0];
  std::mt19937_64 random(43);
  for (int i = 0; i != 4000; ++i) // where f32 has values, subnormals too
    v.push_back(bits64(std::ldexp(double(int64_t(random())) * 0x1p-63,
                                  int(random() % 300) - 155)));
  std::vector<Input> inputs = {{64, v}};
  for (const HostMode &mode : HostModes)
    for (bool ftz : {false, true}) {
      std::string op =
          std::string("cvt.r") + mode.Name + (ftz ? ".ftz" : "") + ".f32.f64";
      Values got = evaluate1(op + " o0, i0;", inputs);
      expectAll(op, inputs, got, [&](size_t i) -> uint64_t {
        volatile double value = asDouble(v[i]);
        std::fesetround(mode.Mode);
        volatile float result = float(value);
        std::fesetround(FE_TONEAREST);
        if (std::isnan(result))
          return std::isnan(asFloat(got[i])) ? got[i] : 0x7FFFFFFF;
        float final = result;
        if (ftz && std::fabs(final) < 0x1p-126F)
          final = std::copysign(0.0F, final);
        return bits32(final);
      });
    }
  Values singles = tuples(1, EdgesF32, 2000, 32, 44)[0];
  std::vector<Input> narrow = {{32, singles}};
  Values got = evaluate1("cvt.f64.f32 o0, i0;", narrow, 64);
  expectAll("cvt.f64.f32", narrow, got, [&](size_t i) -> uint64_t {
    double value = asFloat(singles[i]);
    if (std::isnan(value))
      return std::isnan(asDouble(got[i])) ? got[i] : 0;
    return bits64(value);
  });
}

/// The integer that cvt gives for a floating value.
uint64_t integerOf(long double value, unsigned bits, bool isSigned, int mode,
                   bool sourceIsDouble) {
  uint64_t mask = bits == 64 ? ~uint64_t(0) : (uint64_t(1) << bits) - 1;
  if (std::isnan(value))
    return sourceIsDouble || bits == 64 ? uint64_t(1) << (bits - 1) : 0;
  std::fesetround(mode);
  volatile long double operand = value;
  long double integral = std::nearbyintl(operand);
  std::fesetround(FE_TONEAREST);
  long double top = std::ldexp(1.0L, int(bits) - (isSigned ? 1 : 0));
  long double low = isSigned ? -top : 0;
  if (integral < low)
    return uint64_t(isSigned ? int64_t(low) : 0) & mask;
  if (integral > top - 1)
    return isSigned ? mask >> 1 : mask;
  return (isSigned ? uint64_t(int64_t(integral)) : uint64_t(integral)) & mask;
}

TEST(SimConvert, FloatToInteger) {
  Values singles = tuples(1, EdgesF32, 2000, 32, 45)[0];
  std::mt19937_64 random(46);
  for (int i = 0; i != 3000; ++i) // halves and thirds around every limit
    singles.push_back(bits32(
        std::ldexp(float(int32_t(random())) * 0x1p-31F, int(random() % 70))));
  for (int i = -20; i != 20; ++i)
    singles.push_back(bits32(float(i) / 2));
  Values doubles;
  for (uint64_t bits : singles)
    doubles.push_back(bits64(asFloat(bits)));
  for (double value : {2147483647.5, -2147483648.5, 4294967295.5, 127.5, 255.5,
                       32767.5, -0.5, 0.5, 1.5, 2.5, 9223372036854775807.0})
    doubles.push_back(bits64(value));
  std::vector<Input> single = {{32, singles}}, twofold = {{64, doubles}};
  for (unsigned bits : {16u, 32u, 64u})
    for (bool isSigned : {false, true})
      for (const HostMode &mode : HostModes)
        for (bool fromDouble : {false, true}) {
          std::string op = std::string("cvt.r") + mode.Name + "i." +
                           (isSigned ? "s" : "u") + std::to_string(bits) +
                           (fromDouble ? ".f64" : ".f32");
          const Values &v = fromDouble ? doubles : singles;
          Values got =
              evaluate1(op + " o0, i0;", fromDouble ? twofold : single, bits);
          expectAll(op, fromDouble ? twofold : single, got, [&](size_t i) {
            long double value = fromDouble ? asDouble(v[i]) : asFloat(v[i]);
            return integerOf(value, bits, isSigned, mode.Mode, fromDouble);
          });
        }
}

TEST(SimConvert, HalfToInteger) {
  Values v;
  for (uint64_t code = 0; code != 65536; ++code)
    v.push_back(code);
  std::vector<Input> inputs = {{16, v}};
  for (const char *op : {"cvt.rni.s32.f16", "cvt.rzi.u16.f16"}) {
    bool word = std::strstr(op, "s32");
    Values got =
        evaluate1(std::string(op) + " o0, i0;", inputs, word ? 32 : 16);
    expectAll(op, inputs, got, [&](size_t i) {
      return integerOf(f16Format().decode(uint32_t(v[i])), word ? 32 : 16, word,
                       word ? FE_TONEAREST : FE_TOWARDZERO, false);
    });
  }
}

TEST(SimConvert, IntegerToFloat) {
  Values v = tuples(1, EdgesI64, 1000, 64, 47)[0];
  std::mt19937_64 random(48);
  for (int i = 0; i != 2000; ++i) // every length; ties to even
    v.push_back((random() | 1) >> (random() % 64));
  for (unsigned shift = 0; shift != 40; ++shift)
    for (uint64_t odd : {0x1000001u, 0x1000003u, 0x1000002u})
      v.push_back(odd << shift);
  for (unsigned bits : {16u, 32u, 64u})
    for (bool isSigned : {false, true})
      for (const HostMode &mode : HostModes) {
        Values cut;
        for (uint64_t value : v)
          cut.push_back(bits == 64 ? value
                                   : value & ((uint64_t(1) << bits) - 1));
        std::vector<Input> inputs = {{bits, cut}};
        auto valueOf = [&](size_t i) -> long double {
          unsigned shift = 64 - bits;
          return isSigned ? (long double)(int64_t(cut[i] << shift) >> shift)
                          : (long double)cut[i];
        };
        std::string end =
            std::string(isSigned ? ".s" : ".u") + std::to_string(bits);
        std::string start = std::string("cvt.r") + mode.Name;
        Values got = evaluate1(start + ".f32" + end + " o0, i0;", inputs);
        expectAll(start + ".f32" + end, inputs, got, [&](size_t i) {
          volatile long double value = valueOf(i);
          std::fesetround(mode.Mode);
          volatile float result = float(value);
          std::fesetround(FE_TONEAREST);
          return bits32(result);
        });
        got = evaluate1(start + ".f64" + end + " o0, i0;", inputs, 64);
        expectAll(start + ".f64" + end, inputs, got, [&](size_t i) {
          volatile long double value = valueOf(i);
          std::fesetround(mode.Mode);
          volatile double result = double(value);
          std::fesetround(FE_TONEAREST);
          return bits64(result);
        });
        got = evaluate1(start + ".f16" + end + " o0, i0;", inputs, 16);
        expectAll(start + ".f16" + end, inputs, got, [&](size_t i) -> uint64_t {
          Exact exact;
          exact.Sum = valueOf(i);
          return f16Format().encode(exact, mode.Name);
        });
      }
}

TEST(SimConvert, IntegerToInteger) {
  Values v = tuples(1, EdgesI64, 1000, 64, 49)[0];
  for (uint64_t base : {0x80u, 0x100u, 0x8000u, 0x10000u})
    for (uint64_t offset = 0; offset != 3; ++offset)
      for (uint64_t sign : {0, 1})
        v.push_back((base + offset - 1) * (sign ? ~uint64_t(0) : 1));
  auto typeOf = [](unsigned bits, bool isSigned) {
    return (isSigned ? ".s" : ".u") + std::to_string(bits);
  };
  for (unsigned from : {8u, 16u, 32u, 64u})
    for (unsigned to : {8u, 16u, 32u, 64u})
      for (bool fromSigned : {false, true})
        for (bool toSigned : {false, true})
          for (bool saturate : {false, true}) {
            if (from == to && fromSigned == toSigned)
              continue;
            // .sat does not exist where every value fits.
            bool fits = toSigned ? to > from || (fromSigned && to == from)
                                 : !fromSigned && to >= from;
            if (saturate && fits)
              continue;
            std::string op = std::string("cvt") + (saturate ? ".sat" : "") +
                             typeOf(to, toSigned) + typeOf(from, fromSigned);
            unsigned inBits = std::max(from, 16u), outBits = std::max(to, 16u);
            Values cut;
            for (uint64_t value : v)
              cut.push_back(
                  value &
                  (inBits == 64 ? ~uint64_t(0) : (uint64_t(1) << inBits) - 1));
            std::vector<Input> inputs = {{inBits, cut}};
            Values got = evaluate1(op + " o0, i0;", inputs, outBits);
            expectAll(op, inputs, got, [&](size_t i) {
              unsigned shift = 64 - from;
              __int128 value = fromSigned
                                   ? __int128(int64_t(cut[i] << shift) >> shift)
                                   : __int128(cut[i] << shift >> shift);
              __int128 top = __int128(1) << (to - (toSigned ? 1 : 0));
              if (saturate)
                value =
                    std::clamp(value, toSigned ? -top : __int128(0), top - 1);
              // The low bits, extended to the register as the type says.
              unsigned rest = 64 - to;
              uint64_t result =
                  toSigned ? uint64_t(int64_t(uint64_t(value) << rest) >> rest)
                           : uint64_t(value) << rest >> rest;
              return outBits == 64 ? result
                                   : result & ((uint64_t(1) << outBits) - 1);
            });
          }
}

TEST(SimConvert, ToIntegralFloat) {
  Values v = tuples(1, EdgesF32, 2000, 32, 50)[0];
  for (int i = -40; i != 40; ++i)
    v.push_back(bits32(float(i) / 4));
  std::vector<Input> inputs = {{32, v}};
  for (const HostMode &mode : HostModes) {
    std::string op = std::string("cvt.r") + mode.Name + "i.f32.f32";
    Values got = evaluate1(op + " o0, i0;", inputs);
    expectAll(op, inputs, got, [&](size_t i) -> uint64_t {
      volatile float value = asFloat(v[i]);
      std::fesetround(mode.Mode);
      volatile float result = std::nearbyintf(value);
      std::fesetround(FE_TONEAREST);
      if (std::isnan(result))
        return std::isnan(asFloat(got[i])) ? got[i] : 0x7FFFFFFF;
      return bits32(result);
    });
  }
  Values got = evaluate1("cvt.sat.f32.f32 o0, i0;", inputs);
  expectAll("cvt.sat.f32.f32", inputs, got, [&](size_t i) {
    float value = asFloat(v[i]);
    return bits32(std::isnan(value) || std::signbit(value) ? 0.0F
                  : value > 1                              ? 1.0F
                                                           : value);
  });
}

} // namespace
