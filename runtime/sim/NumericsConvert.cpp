// f16, bf16, fp8 and tf32: conversions and arithmetic; integers to and from
// floating types.
#include "runtime/sim/SoftFloat.h"

#include <array>

namespace kvc::sim {

// Widening.

/// The value of a code without its sign, times 2^0; exact in f32.
static float decodeMagnitude(uint32_t code, Format format) {
  int exponent = int(code >> format.mantissaBits);
  uint32_t mantissa = code & ((1u << format.mantissaBits) - 1);
  if (exponent == 0)
    return std::ldexp(float(mantissa), 1 - format.bias() - format.mantissaBits);
  return std::ldexp(float(mantissa | 1u << format.mantissaBits),
                    exponent - format.bias() - format.mantissaBits);
}

uint32_t f16ToF32(uint16_t bits) {
  uint32_t sign = uint32_t(bits & 0x8000) << 16;
  uint32_t magnitude = bits & 0x7FFF;
  if (magnitude > 0x7C00)
    return CanonicalNan;
  if (magnitude == 0x7C00)
    return sign | 0x7F800000u;
  // The exponent's bias differs by 112; the product is exact, subnormals too.
  return sign | bitsOf(floatOf(magnitude << 13) * 0x1p112F);
}

namespace {

using Table = std::array<uint32_t, 256>;

} // namespace

static Table makeE4m3() {
  Table table{};
  for (uint32_t code = 0; code != 256; ++code) {
    uint32_t magnitude = code & 0x7F;
    table[code] = magnitude == 0x7F
                      ? CanonicalNan
                      : (code & 0x80) << 24 |
                            bitsOf(decodeMagnitude(magnitude, FormatE4m3));
  }
  return table;
}

static Table makeE5m2() {
  Table table{};
  for (uint32_t code = 0; code != 256; ++code)
    table[code] = f16ToF32(uint16_t(code << 8));
  return table;
}

uint32_t e4m3ToF32(uint8_t bits) {
  static const Table E4m3 = makeE4m3();
  return E4m3[bits];
}

uint32_t e5m2ToF32(uint8_t bits) {
  static const Table E5m2 = makeE5m2();
  return E5m2[bits];
}

// Narrowing.

static uint16_t narrow(Half half, uint32_t bits, NarrowMode mode) {
  if (isNanBits(bits))
    return CanonicalNan16;
  if (mode.relu && bits >> 31)
    return 0;
  uint16_t code = encodeHalf(floatOf(bits), half, mode.round);
  Format format = half == Half::F16 ? FormatF16 : FormatBf16;
  if (mode.satfinite && (code & 0x7FFF) == format.infinity())
    --code;
  return code;
}

uint16_t f32ToF16(uint32_t bits, NarrowMode mode) {
  return narrow(Half::F16, bits, mode);
}

uint16_t f32ToBf16(uint32_t bits, NarrowMode mode) {
  if (mode.round != Round::Nearest || mode.relu || mode.satfinite ||
      isNanBits(bits))
    return narrow(Half::Bf16, bits, mode);
  // Nearest even on the upper half: a carry runs into the exponent as it must.
  return uint16_t((bits + 0x7FFF + (bits >> 16 & 1)) >> 16);
}

static uint8_t narrowFp8(uint32_t bits, bool relu, Format format,
                         uint32_t largest) {
  if (isNanBits(bits))
    return 0x7F;
  if (relu && bits >> 31)
    return 0;
  float value = floatOf(bits);
  uint32_t code = std::isinf(value)
                      ? largest
                      : encodeMagnitude(value, format, Round::Nearest);
  return uint8_t(bits >> 24 & 0x80) | uint8_t(std::min(code, largest));
}

uint8_t f32ToE4m3(uint32_t bits, bool relu) {
  return narrowFp8(bits, relu, FormatE4m3, 0x7E);
}

uint8_t f32ToE5m2(uint32_t bits, bool relu) {
  return narrowFp8(bits, relu, FormatE5m2, 0x7B);
}

uint32_t f32ToTf32(uint32_t bits, NarrowMode mode) {
  if (isNanBits(bits))
    return CanonicalNan;
  if (mode.relu && bits >> 31)
    return 0;
  uint32_t code = encodeIeee(floatOf(bits), FormatTf32, mode.round);
  if (mode.satfinite && code == FormatTf32.infinity())
    --code;
  return (bits & 0x80000000u) | code << 13;
}

uint16_t f64ToF16(double value, Round round) {
  return encodeHalf(value, Half::F16, round);
}

uint32_t f64ToF32(double value, Round round, bool ftz) {
  uint32_t bits = encodeF32(value, round);
  return ftz ? flush(bits) : bits;
}

// f16 and bf16 arithmetic: exact in odd-rounded doubles.

static uint16_t flushHalf(Half half, uint16_t bits) {
  uint16_t exponent = half == Half::F16 ? 0x7C00 : 0x7F80;
  return (bits & exponent) == 0 ? bits & 0x8000 : bits;
}

static double operand(Half half, uint16_t bits, HalfMode mode) {
  return floatOf(halfToF32(half, mode.ftz ? flushHalf(half, bits) : bits));
}

static uint16_t finish(Half half, double exact, HalfMode mode) {
  uint16_t bits = encodeHalf(exact, half, Round::Nearest);
  if (mode.ftz)
    bits = flushHalf(half, bits);
  bool nan = bits == CanonicalNan16;
  if (mode.relu && !nan && bits >> 15)
    bits = 0;
  if (mode.sat) {
    uint16_t one = half == Half::F16 ? 0x3C00 : 0x3F80;
    bits = nan || bits >> 15 ? 0 : std::min(bits, one);
  }
  return bits;
}

uint16_t addHalf(Half format, uint16_t a, uint16_t b, HalfMode mode) {
  double sum = addToOdd(operand(format, a, mode), operand(format, b, mode),
                        Round::Nearest);
  return finish(format, sum, mode);
}

uint16_t subHalf(Half format, uint16_t a, uint16_t b, HalfMode mode) {
  return addHalf(format, a, b ^ 0x8000, mode);
}

uint16_t mulHalf(Half format, uint16_t a, uint16_t b, HalfMode mode) {
  return finish(format, operand(format, a, mode) * operand(format, b, mode),
                mode);
}

uint16_t fmaHalf(Half format, uint16_t a, uint16_t b, uint16_t c,
                 HalfMode mode) {
  double product = operand(format, a, mode) * operand(format, b, mode);
  return finish(format,
                addToOdd(product, operand(format, c, mode), Round::Nearest),
                mode);
}

// Both formats are ordered as f32 orders their values, and widening is exact.
static uint16_t chooseHalf(Half format, uint16_t a, uint16_t b, MinMaxMode mode,
                           bool larger) {
  if (mode.ftz) {
    a = flushHalf(format, a);
    b = flushHalf(format, b);
    mode.ftz = false;
  }
  uint32_t x = halfToF32(format, a), y = halfToF32(format, b);
  uint32_t chosen = larger ? maxF32(x, y, mode) : minF32(x, y, mode);
  return f32ToHalf(format, chosen, {});
}

uint16_t minHalf(Half format, uint16_t a, uint16_t b, MinMaxMode mode) {
  return chooseHalf(format, a, b, mode, false);
}

uint16_t maxHalf(Half format, uint16_t a, uint16_t b, MinMaxMode mode) {
  return chooseHalf(format, a, b, mode, true);
}

uint16_t ex2Half(Half format, uint16_t a, bool ftz) {
  HalfMode mode;
  mode.ftz = ftz;
  return finish(format, std::exp2(operand(format, a, mode)), mode);
}

uint16_t tanhHalf(Half format, uint16_t a) {
  return finish(format, std::tanh(operand(format, a, {})), {});
}

// Integers.

double roundToIntegralF64(double value, Round round) {
  switch (round) {
  case Round::Zero:
    return std::trunc(value);
  case Round::Down:
    return std::floor(value);
  case Round::Up:
    return std::ceil(value);
  case Round::Nearest:
  case Round::Away:
    break;
  }
  // The host runs in nearest-even.
  return std::nearbyint(value);
}

uint32_t roundToIntegral(uint32_t bits, Round round, bool ftz) {
  if (isNanBits(bits))
    return CanonicalNan;
  double value = floatOf(ftz ? flush(bits) : bits);
  return bitsOf(float(roundToIntegralF64(value, round)));
}

uint64_t floatToInteger(double value, unsigned bits, bool isSigned, Round round,
                        bool sourceIsF64) {
  uint64_t top = uint64_t(1) << (bits - 1);
  uint64_t extended = isSigned ? ~(top - 1) : top;
  if (std::isnan(value))
    return sourceIsF64 || bits == 64 ? extended : 0;
  double integral = roundToIntegralF64(value, round);
  double above = std::ldexp(1.0, int(isSigned ? bits - 1 : bits));
  if (integral >= above)
    return isSigned ? top - 1 : top | (top - 1);
  if (isSigned)
    return integral < -above ? extended : uint64_t(int64_t(integral));
  return integral <= 0 ? 0 : uint64_t(integral);
}

/// The magnitude of an integer as a double that is odd where inexact.
static double magnitudeToOdd(uint64_t magnitude) {
  int excess = 0;
  while (magnitude >> excess >= uint64_t(1) << 53)
    ++excess;
  uint64_t kept = magnitude >> excess;
  if (kept << excess != magnitude)
    kept |= 1;
  return std::ldexp(double(kept), excess);
}

static double integerToOdd(uint64_t value, bool isSigned) {
  if (isSigned && value >> 63)
    return -magnitudeToOdd(0 - value);
  return magnitudeToOdd(value);
}

uint32_t integerToF32(uint64_t value, bool isSigned, Round round) {
  return encodeF32(integerToOdd(value, isSigned), round);
}

uint16_t integerToHalf(Half format, uint64_t value, bool isSigned,
                       Round round) {
  return encodeHalf(integerToOdd(value, isSigned), format, round);
}

double integerToF64(uint64_t value, bool isSigned, Round round) {
  bool negative = isSigned && value >> 63;
  uint64_t magnitude = negative ? 0 - value : value;
  int excess = 0;
  while (magnitude >> excess >= uint64_t(1) << 53)
    ++excess;
  uint64_t kept = magnitude >> excess;
  uint64_t rest = magnitude - (kept << excess);
  bool up = false;
  if (rest != 0) {
    uint64_t half = uint64_t(1) << (excess - 1);
    up = (round == Round::Nearest &&
          (rest > half || (rest == half && (kept & 1)))) ||
         (round == Round::Up && !negative) ||
         (round == Round::Down && negative);
  }
  double result = std::ldexp(double(kept + up), excess);
  return negative ? -result : result;
}

} // namespace kvc::sim
