// One rounding from an exact value to a small format, shared by the arithmetic
// and the conversions of Numerics.h.
#ifndef KVC_RUNTIME_SIM_SOFTFLOAT_H
#define KVC_RUNTIME_SIM_SOFTFLOAT_H

#include "runtime/sim/Numerics.h"

#include <algorithm>
#include <cmath>

namespace kvc::sim {

/// A double that stands for the exact value `sum + error`, with |error| at most
/// half an ulp of `sum`: rounded to odd, so that a further rounding to at most
/// 51 bits sees on which side of every boundary the exact value lies.
inline double roundToOdd(double sum, double error) {
  uint64_t bits = bitsOf(sum);
  if (error == 0 || !std::isfinite(sum) || (bits & 1))
    return sum;
  bool outwards = std::signbit(error) == std::signbit(sum);
  return doubleOf(outwards ? bits | 1 : bits - 1);
}

/// a + b as a double that is odd where inexact. Down gives an exact zero its
/// minus sign.
inline double addToOdd(double a, double b, Round round) {
  double sum = a + b;
  if (sum == 0 && round == Round::Down)
    return std::signbit(a) || std::signbit(b) ? -0.0 : 0.0;
  double part = sum - a;
  double error = (a - (sum - part)) + (b - part);
  return roundToOdd(sum, error);
}

/// A binary format with IEEE's layout. Where it has no infinity (e4m3), the
/// caller clamps.
struct Format {
  int exponentBits;
  int mantissaBits;

  constexpr int bias() const { return (1 << (exponentBits - 1)) - 1; }
  constexpr uint32_t infinity() const {
    return ((1u << exponentBits) - 1) << mantissaBits;
  }
};
constexpr Format FormatF32{8, 23};
constexpr Format FormatTf32{8, 10};
constexpr Format FormatF16{5, 10};
constexpr Format FormatBf16{8, 7};
constexpr Format FormatE4m3{4, 3};
constexpr Format FormatE5m2{5, 2};

/// The magnitude's code in the format, without the sign bit; above
/// `infinity()` only where the format counts on past it. `value` is not a NaN.
inline uint32_t encodeMagnitude(double value, Format format, Round round) {
  uint64_t bits = bitsOf(value);
  bool negative = bits >> 63;
  int exponent = int(bits >> 52 & 0x7FF);
  uint64_t mantissa = bits & ((uint64_t(1) << 52) - 1);
  if (exponent == 0x7FF)
    return format.infinity();
  if (exponent != 0)
    mantissa |= uint64_t(1) << 52;
  else
    exponent = 1;
  exponent -= 1023;
  // e4m3 uses the exponent that is infinity's elsewhere.
  if (exponent > format.bias() + 1)
    return format.infinity() + (1u << format.mantissaBits);
  int smallest = 1 - format.bias();
  int unit = std::max(exponent, smallest) - format.mantissaBits;
  int shift = std::min(unit - (exponent - 52), 63);
  uint64_t kept = mantissa >> shift;
  uint64_t rest = mantissa & ((uint64_t(1) << shift) - 1);
  uint64_t half = uint64_t(1) << (shift - 1);
  bool up = false;
  switch (round) {
  case Round::Nearest:
    up = rest > half || (rest == half && (kept & 1));
    break;
  case Round::Away:
    up = rest >= half;
    break;
  case Round::Zero:
    break;
  case Round::Down:
    up = negative && rest;
    break;
  case Round::Up:
    up = !negative && rest;
    break;
  }
  kept += up;
  if (exponent < smallest)
    return uint32_t(kept);
  return (uint32_t(exponent - smallest) << format.mantissaBits) +
         uint32_t(kept);
}

/// The same with IEEE's overflow: infinity, or the largest finite value where
/// the rounding points inwards.
inline uint32_t encodeIeee(double value, Format format, Round round) {
  uint32_t code = encodeMagnitude(value, format, round);
  uint32_t infinity = format.infinity();
  if (code < infinity || std::isinf(value))
    return code;
  bool negative = std::signbit(value);
  bool inwards = round == Round::Zero || (round == Round::Down && !negative) ||
                 (round == Round::Up && negative);
  return inwards ? infinity - 1 : infinity;
}

/// To f32's bits, NaN canonical.
inline uint32_t encodeF32(double value, Round round) {
  if (std::isnan(value))
    return CanonicalNan;
  if (round == Round::Nearest)
    return bitsOf(float(value));
  return uint32_t(std::signbit(value)) << 31 |
         encodeIeee(value, FormatF32, round);
}

/// To f16's or bf16's bits, NaN canonical.
inline uint16_t encodeHalf(double value, Half half, Round round) {
  if (std::isnan(value))
    return CanonicalNan16;
  Format format = half == Half::F16 ? FormatF16 : FormatBf16;
  return uint16_t(uint32_t(std::signbit(value)) << 15 |
                  encodeIeee(value, format, round));
}

} // namespace kvc::sim

#endif // KVC_RUNTIME_SIM_SOFTFLOAT_H
