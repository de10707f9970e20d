// What one weight format gives to the registry in Format.cpp. Only the files of
// this folder include it.
#ifndef KVC_CODEGEN_FORMATS_FORMATFAMILY_H
#define KVC_CODEGEN_FORMATS_FORMATFAMILY_H

#include "codegen/formats/Format.h"
#include "codegen/formats/HalfFloat.h"

namespace kvc {

struct FormatEntry {
  FormatInfo info;
  /// Null for plain formats. `out` is zero but for what the function sets.
  void (*decode)(const uint8_t *block, BlockCodes &out);
};

// Plain.cpp
extern const FormatEntry f32Entry, f16Entry, bf16Entry;
// Blocks32.cpp
extern const FormatEntry q4_0Entry, q4_1Entry, q5_0Entry, q5_1Entry, q8_0Entry;
// Superblocks.cpp
extern const FormatEntry q2_KEntry, q3_KEntry, q4_KEntry, q5_KEntry, q6_KEntry;
// Tables.cpp
extern const FormatEntry iq4_NLEntry, iq4_XSEntry, mxfp4Entry;

inline uint16_t loadU16(const uint8_t *p) {
  return static_cast<uint16_t>(p[0] | p[1] << 8);
}

inline void setD(BlockCodes &out, uint16_t bits) {
  out.dBits = bits;
  out.d = floatFromHalf(bits);
}

inline void setM(BlockCodes &out, uint16_t bits) {
  out.mBits = bits;
  out.m = floatFromHalf(bits);
}

/// `count` bytes of two codes each: the low nibbles are `codes`, the high ones
/// follow `count` further on.
inline void splitNibbles(const uint8_t *bytes, int count, uint8_t *codes) {
  for (int i = 0; i < count; ++i) {
    codes[i] = bytes[i] & 15;
    codes[i + count] = bytes[i] >> 4;
  }
}

} // namespace kvc

#endif // KVC_CODEGEN_FORMATS_FORMATFAMILY_H
