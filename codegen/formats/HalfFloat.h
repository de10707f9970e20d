// The 16-bit and 8-bit floating point encodings weights and caches use, and
// their conversions: the only place that spells out these bit layouts.
#ifndef KVC_CODEGEN_FORMATS_HALFFLOAT_H
#define KVC_CODEGEN_FORMATS_HALFFLOAT_H

#include <cstdint>
#include <cstring>

namespace kvc {

inline float floatFromBits(uint32_t bits) {
  float value;
  std::memcpy(&value, &bits, sizeof(value));
  return value;
}

inline uint32_t bitsFromFloat(float value) {
  uint32_t bits;
  std::memcpy(&bits, &value, sizeof(bits));
  return bits;
}

/// IEEE binary16 to float. Exact; a NaN keeps its payload and becomes quiet,
/// as the F16C instruction does it.
float floatFromHalf(uint16_t half);

/// Float to IEEE binary16, to nearest, ties to even; overflow gives infinity.
uint16_t halfFromFloat(float value);

/// bfloat16 to float. Exact.
inline float floatFromBfloat(uint16_t bfloat) {
  return floatFromBits(static_cast<uint32_t>(bfloat) << 16);
}

/// Float to bfloat16, to nearest, ties to even; NaNs stay NaNs.
uint16_t bfloatFromFloat(float value);

/// MXFP4's block scale for the doubled table: 2^(e-128), subnormal for e < 2.
inline float floatFromE8M0Half(uint8_t exponent) {
  return floatFromBits(exponent < 2
                           ? UINT32_C(0x00200000) << exponent
                           : (static_cast<uint32_t>(exponent) - 1) << 23);
}

} // namespace kvc

#endif // KVC_CODEGEN_FORMATS_HALFFLOAT_H
