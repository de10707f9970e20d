// Four-bit formats whose codes index a table of unevenly spaced values.
#include "codegen/formats/FormatFamily.h"

using namespace kvc;

static constexpr int8_t iq4Table[16] = {
    -127, -104, -83, -65, -49, -35, -22, -10, 1, 13, 25, 38, 53, 69, 89, 113};
// E2M1, doubled so that every value is an integer.
static constexpr int8_t mxfp4Table[16] = {0, 1,  2,  3,  4,  6,  8,  12,
                                          0, -1, -2, -3, -4, -6, -8, -12};

// d, qs[16]
static void decodeIq4Nl(const uint8_t *block, BlockCodes &out) {
  setD(out, loadU16(block));
  splitNibbles(block + 2, 16, out.codes);
}

// d, u16 scales_h, scales_l[4], qs[128]
static void decodeIq4Xs(const uint8_t *block, BlockCodes &out) {
  setD(out, loadU16(block));
  int high = loadU16(block + 2);
  for (int j = 0; j < 8; ++j) {
    int low = block[4 + j / 2] >> j % 2 * 4 & 15;
    out.subScale[j] =
        static_cast<int8_t>((low | (high >> 2 * j & 3) << 4) - 32);
    splitNibbles(block + 8 + 16 * j, 16, out.codes + 32 * j);
  }
}

// u8 e, qs[16]
static void decodeMxfp4(const uint8_t *block, BlockCodes &out) {
  out.exponent = block[0];
  out.d = floatFromE8M0Half(block[0]);
  splitNibbles(block + 1, 16, out.codes);
}

constexpr FormatEntry kvc::iq4_NLEntry = {
    {"iq4_nl", 20, 32, 18, 32, 4, 0, iq4Table, ScaleKind::Half, MinKind::None,
     /*signedSubScale=*/false},
    decodeIq4Nl};
constexpr FormatEntry kvc::iq4_XSEntry = {
    {"iq4_xs", 23, 256, 136, 32, 4, 0, iq4Table, ScaleKind::HalfTimesSub,
     MinKind::None, /*signedSubScale=*/true},
    decodeIq4Xs};
constexpr FormatEntry kvc::mxfp4Entry = {
    {"mxfp4", 39, 32, 17, 32, 4, 0, mxfp4Table, ScaleKind::E8M0, MinKind::None,
     /*signedSubScale=*/false},
    decodeMxfp4};
