// The formats of 32 values a block with one scale: Q4_0, Q4_1, Q5_0, Q5_1 and
// Q8_0. Low nibbles are elements 0..15, high nibbles 16..31.
#include "codegen/formats/FormatFamily.h"

using namespace kvc;

static constexpr FormatInfo blockInfo(const char *name, uint32_t ggufId,
                                      int bytes, int codeBits, int zero,
                                      MinKind min) {
  return {name,
          ggufId,
          /*blockValues=*/32,
          bytes,
          /*subBlock=*/32,
          codeBits,
          zero,
          /*table=*/nullptr,
          ScaleKind::Half,
          min,
          /*signedSubScale=*/false};
}

// Bit i of the four bytes is the fifth bit of element i's code.
static void addFifthBits(const uint8_t *bits, uint8_t *codes) {
  for (int i = 0; i < 32; ++i)
    codes[i] |= (bits[i / 8] >> i % 8 & 1) << 4;
}

static void decodeQ40(const uint8_t *block, BlockCodes &out) {
  setD(out, loadU16(block));
  splitNibbles(block + 2, 16, out.codes);
}

static void decodeQ41(const uint8_t *block, BlockCodes &out) {
  setD(out, loadU16(block));
  setM(out, loadU16(block + 2));
  splitNibbles(block + 4, 16, out.codes);
}

static void decodeQ50(const uint8_t *block, BlockCodes &out) {
  setD(out, loadU16(block));
  splitNibbles(block + 6, 16, out.codes);
  addFifthBits(block + 2, out.codes);
}

static void decodeQ51(const uint8_t *block, BlockCodes &out) {
  setD(out, loadU16(block));
  setM(out, loadU16(block + 2));
  splitNibbles(block + 8, 16, out.codes);
  addFifthBits(block + 4, out.codes);
}

static void decodeQ80(const uint8_t *block, BlockCodes &out) {
  setD(out, loadU16(block));
  for (int i = 0; i < 32; ++i)
    out.codes[i] = block[2 + i] ^ 0x80; // int8 q as q + 128
}

constexpr FormatEntry kvc::q4_0Entry = {
    blockInfo("q4_0", 2, 18, 4, 8, MinKind::None), decodeQ40};
constexpr FormatEntry kvc::q4_1Entry = {
    blockInfo("q4_1", 3, 20, 4, 0, MinKind::Half), decodeQ41};
constexpr FormatEntry kvc::q5_0Entry = {
    blockInfo("q5_0", 6, 22, 5, 16, MinKind::None), decodeQ50};
constexpr FormatEntry kvc::q5_1Entry = {
    blockInfo("q5_1", 7, 24, 5, 0, MinKind::Half), decodeQ51};
constexpr FormatEntry kvc::q8_0Entry = {
    blockInfo("q8_0", 8, 34, 8, 128, MinKind::None), decodeQ80};
