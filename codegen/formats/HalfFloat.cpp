#include "codegen/formats/HalfFloat.h"

using namespace kvc;

float kvc::floatFromHalf(uint16_t half) {
  uint32_t sign = static_cast<uint32_t>(half & 0x8000) << 16;
  uint32_t exponent = half >> 10 & 31;
  uint32_t mantissa = half & 0x3ff;
  if (exponent == 31)
    return floatFromBits(sign | 0x7f800000 | mantissa << 13 |
                         (mantissa ? 0x00400000 : 0));
  if (exponent != 0)
    return floatFromBits(sign | (exponent + 112) << 23 | mantissa << 13);
  // Subnormal or zero: mantissa * 2^-24, which float holds exactly.
  float magnitude =
      static_cast<float>(mantissa) * floatFromBits(UINT32_C(0x33800000));
  return floatFromBits(sign | bitsFromFloat(magnitude));
}

uint16_t kvc::halfFromFloat(float value) {
  uint32_t bits = bitsFromFloat(value);
  uint32_t sign = bits >> 16 & 0x8000;
  uint32_t magnitude = bits & 0x7fffffff;
  if (magnitude > 0x7f800000)
    return static_cast<uint16_t>(sign | 0x7e00 | (magnitude >> 13 & 0x3ff));
  if (magnitude >= 0x477ff000) // rounds to 65536 or more
    return static_cast<uint16_t>(sign | 0x7c00);
  if (magnitude < 0x38800000) {
    // Below 2^-14. Adding 1/2 puts the half's last place, 2^-24, where the
    // float's own last place is: the addition rounds to nearest even.
    uint32_t sum = bitsFromFloat(floatFromBits(magnitude) + 0.5f);
    return static_cast<uint16_t>(sign | (sum - 0x3f000000));
  }
  uint32_t rounded = magnitude + 0xfff + (magnitude >> 13 & 1);
  return static_cast<uint16_t>(sign | ((rounded >> 13) - (112 << 10)));
}

uint16_t kvc::bfloatFromFloat(float value) {
  uint32_t bits = bitsFromFloat(value);
  if ((bits & 0x7fffffff) > 0x7f800000)
    return static_cast<uint16_t>(bits >> 16 | 0x40);
  return static_cast<uint16_t>((bits + 0x7fff + (bits >> 16 & 1)) >> 16);
}
