// Small floating formats by enumeration, for the simulator's tests: every value
// of a format is listed, and rounding is a search in the list.
#ifndef KVC_TEST_UNIT_SIMSOFTFLOAT_H
#define KVC_TEST_UNIT_SIMSOFTFLOAT_H

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <string>
#include <vector>

namespace kvc::sim {

#if defined(__SIZEOF_FLOAT128__)
using Quad = __float128;
#else
using Quad = long double;
#endif

/// The value Sum + Rest, |Rest| less than an ulp of Sum.
struct Exact {
  Quad Sum = 0, Rest = 0;
  bool Nan = false;
};

inline Exact exactSum(Quad a, Quad b) {
  Exact result;
  result.Sum = a + b;
  result.Nan = result.Sum != result.Sum;
  Quad part = result.Sum - a;
  result.Rest = (a - (result.Sum - part)) + (b - part);
  if (result.Rest != result.Rest) // infinities
    result.Rest = 0;
  return result;
}

class SmallFloat {
public:
  SmallFloat(int exponentBits, int mantissaBits, bool infinities)
      : HasInfinity(infinities), SignShift(exponentBits + mantissaBits) {
    int bias = (1 << (exponentBits - 1)) - 1;
    uint32_t ones = (1u << exponentBits) - 1;
    for (uint32_t exponent = 0; exponent <= ones; ++exponent)
      for (uint32_t mantissa = 0; mantissa != 1u << mantissaBits; ++mantissa) {
        // e4m3 has no infinities, and NaN is its last code alone.
        if (infinities
                ? exponent == ones
                : exponent == ones && mantissa == (1u << mantissaBits) - 1)
          continue;
        double fraction = std::ldexp(double(mantissa), -mantissaBits);
        Magnitudes.push_back(
            exponent == 0 ? std::ldexp(fraction, 1 - bias)
                          : std::ldexp(1 + fraction, int(exponent) - bias));
      }
  }

  uint32_t largest() const { return uint32_t(Magnitudes.size()) - 1; }
  uint32_t infinity() const { return largest() + 1; }
  uint32_t sign() const { return 1u << SignShift; }

  /// The code's value; NaN above infinity.
  double decode(uint32_t code) const {
    uint32_t magnitude = code & (sign() - 1);
    double value = magnitude < Magnitudes.size() ? Magnitudes[magnitude]
                   : HasInfinity && magnitude == infinity() ? double(INFINITY)
                                                            : double(NAN);
    return code & sign() ? -value : value;
  }

  /// 'n', 'z', 'm', 'p' as in .rn .rz .rm .rp; 'a' ties away from zero.
  /// Overflow gives infinity, or the largest value if `saturate`.
  uint32_t encode(Exact exact, char mode, bool saturate = false) const {
    bool negative = std::signbit(double(exact.Sum));
    Quad sum = negative ? -exact.Sum : exact.Sum;
    Quad rest = negative ? -exact.Rest : exact.Rest;
    // Doubles need no quadruple precision, which is slow: the format's values
    // and the middles between them are doubles.
    auto rounded = double(sum);
    bool plain = rest == 0 && Quad(rounded) == sum;
    auto compare = [&](double value) {
      if (plain)
        return rounded != value ? (rounded < value ? -1 : 1) : 0;
      return sum != value ? (sum < value ? -1 : 1)
             : rest != 0  ? (rest < 0 ? -1 : 1)
                          : 0;
    };
    uint32_t low = 0, high = infinity(); // Magnitudes[low] <= exact
    while (high - low > 1) {
      uint32_t middle = (low + high) / 2;
      (compare(Magnitudes[middle]) >= 0 ? low : high) = middle;
    }
    // What would be the next value decides the rounding of the last one, too.
    Quad step = low == largest() ? Quad(Magnitudes[low]) - Magnitudes[low - 1]
                                 : Quad(Magnitudes[low + 1]) - Magnitudes[low];
    int half = compare(Quad(Magnitudes[low]) + step / 2);
    bool inexact = compare(Magnitudes[low]) != 0;
    bool up = mode == 'n'   ? half > 0 || (half == 0 && (low & 1))
              : mode == 'a' ? half >= 0
              : mode == 'z' ? false
              : mode == 'm' ? inexact && negative
                            : inexact && !negative;
    uint32_t code = low + (up ? 1 : 0);
    if (double(exact.Sum) == double(INFINITY) ||
        double(exact.Sum) == -double(INFINITY))
      code = infinity();
    if (code == infinity() && (saturate || !HasInfinity))
      code = largest();
    return code | (negative ? sign() : 0);
  }

private:
  bool HasInfinity;
  int SignShift;
  std::vector<double> Magnitudes;
};

inline const SmallFloat &f16Format() {
  static const SmallFloat Format(5, 10, true);
  return Format;
}
inline const SmallFloat &bf16Format() {
  static const SmallFloat Format(8, 7, true);
  return Format;
}
inline const SmallFloat &e4m3Format() {
  static const SmallFloat Format(4, 3, false);
  return Format;
}
inline const SmallFloat &e5m2Format() {
  static const SmallFloat Format(5, 2, true);
  return Format;
}

} // namespace kvc::sim

#endif // KVC_TEST_UNIT_SIMSOFTFLOAT_H
