#include "codegen/formats/Packing.h"
#include "codegen/formats/HalfFloat.h"

#include <gtest/gtest.h>

#include <cstring>
#include <random>
#include <vector>

using namespace kvc;

namespace {

// Rows of random blocks. Every byte pattern is a legal block; NaN scales are
// avoided so that values compare.
std::vector<uint8_t> randomRows(const FormatInfo &info, int64_t n, int64_t k) {
  std::mt19937 random(static_cast<uint32_t>(info.ggufId * 1000 + n));
  std::vector<uint8_t> bytes(n * info.rowBytes(k));
  for (uint8_t &byte : bytes)
    byte = static_cast<uint8_t>(random() & 0xbb);
  return bytes;
}

// A kernel's way to read a code: whole 32-bit elements, shifted and masked.
int codeOf(const PackedLayout &layout, const uint8_t *block, int lane, int k) {
  auto bits = [&](int64_t plane, int p) -> uint32_t {
    if (p == 0)
      return 0;
    int group = k / 4, perRegister = 8 / p;
    uint32_t element;
    std::memcpy(
        &element,
        block + plane + group / perRegister * 4 * layout.lanes + 4 * lane, 4);
    uint32_t mask = 0x01010101u * ((1u << p) - 1);
    return (element >> p * (group % perRegister)) & mask;
  };
  uint32_t codes = bits(layout.lowOffset, layout.lowBits) |
                   bits(layout.highOffset, layout.highBits) << layout.lowBits;
  return codes >> 8 * (k % 4) & 255;
}

using Parameters = std::tuple<int, int>; // format, lanes

class PackEveryFormat : public testing::TestWithParam<Parameters> {
protected:
  Format format = static_cast<Format>(std::get<0>(GetParam()));
  int lanes = std::get<1>(GetParam());
  const FormatInfo &info = formatInfo(format);
};

TEST_P(PackEveryFormat, RoundTrip) {
  for (auto [n, unit] : {std::pair<int64_t, int64_t>{37, 37},
                         {29, 9},
                         {64, 64},
                         {5, 16},
                         {33, 3 * lanes}}) {
    int64_t k = info.plain() ? 75 : 3 * info.blockValues;
    std::vector<uint8_t> rows = randomRows(info, n, k);
    ASSERT_EQ(packedLayoutError(format, n, k, lanes, unit), "");
    PackedLayout layout = packedLayout(format, n, k, lanes, unit);
    std::vector<uint8_t> packed(layout.totalBytes, 0xee);
    packRows(layout, rows.data(), packed.data());

    std::vector<float> expected(k), found(k);
    for (int64_t row = 0; row < n; ++row) {
      const uint8_t *source = rows.data() + row * layout.sourceRowBytes();
      dequantize(format, source, k, expected.data());
      unpackRow(layout, packed.data(), row, found.data());
      ASSERT_EQ(std::memcmp(expected.data(), found.data(), k * 4), 0)
          << "row " << row << " of " << n;
      if (info.plain())
        continue;
      for (int64_t b = 0; b < layout.blocks; ++b) {
        BlockCodes codes;
        decodeBlock(format, source + b * info.blockBytes, codes);
        const uint8_t *block =
            packed.data() + layout.panelOffset(row) + b * layout.blockBytes;
        for (int i = 0; i < info.blockValues; ++i)
          ASSERT_EQ(codeOf(layout, block, layout.lane(row), i), codes.codes[i]);
      }
    }

    // Unit by unit is the same bytes.
    std::vector<uint8_t> piece(layout.unitBytes);
    for (int64_t u = 0; u < layout.units; ++u) {
      packUnits(layout, rows.data() + u * unit * layout.sourceRowBytes(), u, 1,
                piece.data());
      ASSERT_EQ(std::memcmp(piece.data(), packed.data() + u * layout.unitBytes,
                            layout.unitBytes),
                0);
    }
  }
}

TEST_P(PackEveryFormat, AbsentRowsAreZeroBytes) {
  int64_t k = info.plain() ? 40 : 2 * info.blockValues;
  int64_t n = lanes + 1, unit = lanes + 1; // the second panel has lane 0 only
  std::vector<uint8_t> rows(n * info.rowBytes(k), 0xff);
  PackedLayout layout = packedLayout(format, n, k, lanes, unit);
  ASSERT_EQ(layout.panelsPerUnit, 2);
  std::vector<uint8_t> packed(layout.totalBytes, 0xee);
  packRows(layout, rows.data(), packed.data());
  auto expectOneLane = [&](const uint8_t *plane, int64_t bytes,
                           int64_t element) {
    for (int64_t i = 0; i < bytes; ++i)
      if (i % (element * lanes) >= element)
        ASSERT_EQ(plane[i], 0) << i;
  };
  for (int64_t b = 0; b < layout.blocks; ++b) {
    const uint8_t *block =
        packed.data() + layout.panelBytes + b * layout.blockBytes;
    if (info.plain())
      expectOneLane(block, layout.blockBytes, layout.elementBytes);
    else
      expectOneLane(block + layout.lowOffset,
                    layout.blockBytes - layout.lowOffset, 4);
    for (int64_t offset : {layout.dOffset, layout.mOffset})
      if (offset >= 0)
        expectOneLane(block + offset, 2 * lanes, 2);
    for (int64_t offset : {layout.subScaleOffset, layout.subMinOffset})
      if (offset >= 0)
        expectOneLane(block + offset, layout.subBlocks * lanes, 1);
    if (layout.exponentOffset >= 0)
      expectOneLane(block + layout.exponentOffset, lanes, 1);
  }
}

TEST_P(PackEveryFormat, PlanesAreAlignedAndDisjoint) {
  int64_t k = info.plain() ? 64 : info.blockValues;
  PackedLayout layout = packedLayout(format, 3 * lanes, k, lanes, lanes);
  EXPECT_EQ(layout.panelBytes % 64, 0);
  EXPECT_EQ(layout.units, 3);
  EXPECT_EQ(layout.totalBytes, 3 * layout.panelBytes);
  if (info.plain()) {
    EXPECT_EQ(layout.blockBytes, info.blockBytes * lanes);
    return;
  }
  for (int64_t offset : {layout.dOffset, layout.mOffset, layout.subScaleOffset,
                         layout.subMinOffset, layout.exponentOffset,
                         layout.lowOffset, layout.highOffset})
    if (offset >= 0)
      EXPECT_EQ(offset % lanes, 0);
  EXPECT_EQ(layout.lowBits + layout.highBits, info.codeBits);
  EXPECT_EQ(layout.lowOffset, layout.headerBytes);
  EXPECT_EQ(layout.blockBytes - layout.headerBytes,
            info.blockValues * info.codeBits / 8 * lanes);
  EXPECT_EQ(layout.blockBytes % layout.codeAlignment, 0);
  EXPECT_EQ(layout.lowOffset % layout.codeAlignment, 0);
  if (info.superBlock())
    EXPECT_EQ(layout.blockBytes % (4 * lanes), 0);
  // The file packs Q2_K's sub-scales into nibbles and Q3_K's into 6 bits; a
  // byte each costs a kernel less than taking those apart.
  double growth = format == Format::Q2_K   ? 1.20
                  : format == Format::Q3_K ? 1.06
                                           : 1.03;
  EXPECT_LE(layout.blockBytes, info.blockBytes * lanes * growth);
}

std::string packName(const testing::TestParamInfo<Parameters> &param) {
  return std::string(
             formatInfo(static_cast<Format>(std::get<0>(param.param))).name) +
         "_lanes" + std::to_string(std::get<1>(param.param));
}
INSTANTIATE_TEST_SUITE_P(Formats, PackEveryFormat,
                         testing::Combine(testing::Range(0, FormatCount),
                                          testing::Values(4, 8, 16, 32)),
                         packName);

// Written out by hand from the comment in Packing.h.
TEST(Packing, Q4_1Bytes) {
  std::vector<uint8_t> rows(20 * 5);
  for (int row = 0; row < 5; ++row) {
    uint8_t *block = rows.data() + 20 * row;
    block[0] = static_cast<uint8_t>(0x10 + row); // d
    block[2] = static_cast<uint8_t>(0x20 + row); // m
    for (int j = 0; j < 16; ++j)                 // element j, element j + 16
      block[4 + j] = static_cast<uint8_t>((j + row) % 16 | (15 - j) << 4);
  }
  PackedLayout layout = packedLayout(Format::Q4_1, 5, 32, 4, 5);
  EXPECT_EQ(layout.panelsPerUnit, 2);
  EXPECT_EQ(layout.dOffset, 0);
  EXPECT_EQ(layout.mOffset, 8);
  EXPECT_EQ(layout.lowOffset, 16);
  EXPECT_EQ(layout.blockBytes, 80);
  EXPECT_EQ(layout.panelBytes, 128);
  std::vector<uint8_t> packed(layout.totalBytes);
  packRows(layout, rows.data(), packed.data());
  EXPECT_EQ(packed[2 * 3], 0x13);
  EXPECT_EQ(packed[8 + 2 * 3], 0x23);
  EXPECT_EQ(packed[128], 0x14);
  // Register 1, lane 2, byte 3: k = 11 low, k = 15 high; row 2 adds 2 to k.
  EXPECT_EQ(packed[16 + 16 * 1 + 4 * 2 + 3], 13 | (17 % 16) << 4);
  // Register 3: k = 24 and k = 28 are elements 8 and 12 of the high nibbles.
  EXPECT_EQ(packed[16 + 16 * 3 + 4 * 1 + 0], 7 | 3 << 4);
}

TEST(Packing, Refusals) {
  EXPECT_EQ(packedLayoutError(Format::Q4_0, 8, 40, 8, 8),
            "K = 40 is not a multiple of q4_0's block of 32");
  EXPECT_EQ(packedLayoutError(Format::F32, 0, 40, 8, 8),
            "N = 0 is not positive");
  EXPECT_EQ(packedLayoutError(Format::F32, 8, -1, 8, 8),
            "K = -1 is not positive");
  EXPECT_EQ(packedLayoutError(Format::F32, 8, 8, 12, 8),
            "lanes = 12 is not a power of two in 4 .. 32");
  EXPECT_EQ(packedLayoutError(Format::F32, 8, 8, 8, 0),
            "unit = 0 is not positive");
  EXPECT_NE(packedLayoutError(Format::F32, INT64_MAX, 8, 8, 8), "");
  EXPECT_NE(packedLayoutError(Format::F32, INT64_MAX / 8, 8, 8, 8), "");
  EXPECT_NE(packedLayoutError(Format::F32, 8, INT64_MAX / 8, 8, 8), "");
  EXPECT_NE(packedLayoutError(Format::F32, 8, 8, 8, INT64_MAX), "");
}

} // namespace
