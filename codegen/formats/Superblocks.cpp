// The K formats: 256 values a superblock, whose sub-blocks of 16 or 32 values
// have small integer scales (and minimums) under one or two binary16 factors.
#include "codegen/formats/FormatFamily.h"

using namespace kvc;

static constexpr FormatInfo superInfo(const char *name, uint32_t ggufId,
                                      int bytes, int subBlock, int codeBits,
                                      int zero, MinKind min,
                                      bool signedSubScale) {
  return {name,
          ggufId,
          /*blockValues=*/256,
          bytes,
          subBlock,
          codeBits,
          zero,
          /*table=*/nullptr,
          ScaleKind::HalfTimesSub,
          min,
          signedSubScale};
}

// Two-bit codes: 32 bytes hold 128 values, bits 2s and 2s+1 of byte l being
// value 32s + l.
static void splitPairs(const uint8_t *bytes, uint8_t *codes) {
  for (int half = 0; half < 2; ++half)
    for (int s = 0; s < 4; ++s)
      for (int l = 0; l < 32; ++l)
        *codes++ = bytes[32 * half + l] >> 2 * s & 3;
}

// One bit of 256 values: bit s of byte l is value 32s + l's; it becomes bit
// `position` of the code.
static void addBits(const uint8_t *bytes, int position, uint8_t *codes) {
  for (int s = 0; s < 8; ++s)
    for (int l = 0; l < 32; ++l)
      *codes++ |= (bytes[l] >> s & 1) << position;
}

// Eight 6-bit scales and eight 6-bit minimums in 12 bytes.
static void splitScales(const uint8_t *bytes, BlockCodes &out) {
  for (int j = 0; j < 4; ++j) {
    out.subScale[j] = bytes[j] & 63;
    out.subMin[j] = bytes[j + 4] & 63;
    out.subScale[j + 4] = (bytes[j + 8] & 15) | bytes[j] >> 6 << 4;
    out.subMin[j + 4] = bytes[j + 8] >> 4 | bytes[j + 4] >> 6 << 4;
  }
}

// scales[16], qs[64], d, dmin
static void decodeQ2K(const uint8_t *block, BlockCodes &out) {
  for (int j = 0; j < 16; ++j) {
    out.subScale[j] = block[j] & 15;
    out.subMin[j] = block[j] >> 4;
  }
  splitPairs(block + 16, out.codes);
  setD(out, loadU16(block + 80));
  setM(out, loadU16(block + 82));
}

// hmask[32], qs[64], scales[12], d. A set mask bit means "subtract nothing",
// so it is the third bit of a code whose zero is 4.
static void decodeQ3K(const uint8_t *block, BlockCodes &out) {
  splitPairs(block + 32, out.codes);
  addBits(block, 2, out.codes);
  const uint8_t *scales = block + 96;
  for (int j = 0; j < 16; ++j) {
    int low = scales[j % 8] >> j / 8 * 4 & 15;
    int high = scales[8 + j % 4] >> j / 4 * 2 & 3;
    out.subScale[j] = static_cast<int8_t>((low | high << 4) - 32);
  }
  setD(out, loadU16(block + 108));
}

// d, dmin, scales[12], qs[128]
static void decodeQ4K(const uint8_t *block, BlockCodes &out) {
  setD(out, loadU16(block));
  setM(out, loadU16(block + 2));
  splitScales(block + 4, out);
  for (int g = 0; g < 4; ++g)
    splitNibbles(block + 16 + 32 * g, 32, out.codes + 64 * g);
}

// d, dmin, scales[12], qh[32], qs[128]
static void decodeQ5K(const uint8_t *block, BlockCodes &out) {
  setD(out, loadU16(block));
  setM(out, loadU16(block + 2));
  splitScales(block + 4, out);
  for (int g = 0; g < 4; ++g)
    splitNibbles(block + 48 + 32 * g, 32, out.codes + 64 * g);
  addBits(block + 16, 4, out.codes);
}

// ql[128], qh[64], i8 scales[16], d
static void decodeQ6K(const uint8_t *block, BlockCodes &out) {
  uint8_t high[256];
  splitPairs(block + 128, high);
  for (int half = 0; half < 2; ++half)
    splitNibbles(block + 64 * half, 64, out.codes + 128 * half);
  for (int i = 0; i < 256; ++i)
    out.codes[i] |= high[i] << 4;
  for (int j = 0; j < 16; ++j)
    out.subScale[j] = static_cast<int8_t>(block[192 + j]);
  setD(out, loadU16(block + 208));
}

constexpr FormatEntry kvc::q2_KEntry = {
    superInfo("q2_k", 10, 84, 16, 2, 0, MinKind::HalfTimesSub, false),
    decodeQ2K};
constexpr FormatEntry kvc::q3_KEntry = {
    superInfo("q3_k", 11, 110, 16, 3, 4, MinKind::None, true), decodeQ3K};
constexpr FormatEntry kvc::q4_KEntry = {
    superInfo("q4_k", 12, 144, 32, 4, 0, MinKind::HalfTimesSub, false),
    decodeQ4K};
constexpr FormatEntry kvc::q5_KEntry = {
    superInfo("q5_k", 13, 176, 32, 5, 0, MinKind::HalfTimesSub, false),
    decodeQ5K};
constexpr FormatEntry kvc::q6_KEntry = {
    superInfo("q6_k", 14, 210, 16, 6, 32, MinKind::None, true), decodeQ6K};
