#include "codegen/formats/Tiles.h"
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

template <typename Word> Word read(const uint8_t *at) {
  Word word;
  std::memcpy(&word, at, sizeof(word));
  return word;
}

/// What a lane's register holds, read as the header describes it: whole words
/// of 128-bit pieces. Two codes or, for plain formats, two elements.
struct Register {
  uint32_t lower, upper;
};

Register planeRegister(const uint8_t *plane, int blocks, int bits, int lane,
                       int reg) {
  int laneBytes = std::max(4, 2 * blocks * bits);
  int piece = std::min(16, laneBytes);
  std::vector<uint8_t> own;
  for (int i = 0; i < laneBytes / piece; ++i) {
    const uint8_t *at = plane + i * 32 * piece + lane * piece;
    own.insert(own.end(), at, at + piece);
  }
  auto word = read<uint32_t>(own.data() + reg / (16 / bits) * 4);
  uint32_t codes = word >> bits * (reg % (16 / bits));
  uint32_t mask = (1u << bits) - 1;
  return {codes & mask, codes >> 16 & mask};
}

Register codeRegister(const uint8_t *chunk, const TileChunk &planes, int lane,
                      int reg) {
  Register low = planeRegister(chunk + planes.low.offset, planes.blocks,
                               planes.low.bits, lane, reg);
  if (planes.high.bits == 0)
    return low;
  Register high = planeRegister(chunk + planes.high.offset, planes.blocks,
                                planes.high.bits, lane, reg);
  return {low.lower | high.lower << planes.low.bits,
          low.upper | high.upper << planes.low.bits};
}

Register elementRegister(const uint8_t *chunk, int elementBytes, int lane,
                         int reg) {
  if (elementBytes == 2) { // one piece a step: four registers of two
    const uint8_t *at = chunk + reg / 4 * 512 + lane * 16 + reg % 4 * 4;
    return {read<uint16_t>(at), read<uint16_t>(at + 2)};
  }
  // Two pieces a step, of two registers of two floats.
  const uint8_t *at = chunk + reg / 2 * 512 + lane * 16 + reg % 2 * 8;
  return {read<uint32_t>(at), read<uint32_t>(at + 4)};
}

/// The numbers that a source row stands for, in element order: codes, or the
/// bits of elements; `columns` of them.
std::vector<uint32_t> sourceNumbers(Format format, const uint8_t *row,
                                    int64_t columns) {
  const FormatInfo &info = formatInfo(format);
  std::vector<uint32_t> numbers;
  for (int64_t k = 0; k < columns; k += info.blockValues) {
    const uint8_t *block = row + k / info.blockValues * info.blockBytes;
    if (info.plain()) {
      numbers.push_back(info.blockBytes == 2 ? read<uint16_t>(block)
                                             : read<uint32_t>(block));
      continue;
    }
    BlockCodes codes;
    decodeBlock(format, block, codes);
    numbers.insert(numbers.end(), codes.codes, codes.codes + info.blockValues);
  }
  return numbers;
}

struct Shape {
  int64_t rows, columns, unit, pair, splits;
};

class TileEveryFormat : public testing::TestWithParam<int> {
protected:
  Format format = static_cast<Format>(GetParam());
  const FormatInfo &info = formatInfo(format);

  /// The shapes of issue and models: heads of 4, 24, 64, 128, rotated in both
  /// layouts or in part, rows that end within a unit, K of few and many blocks.
  std::vector<Shape> shapes() const {
    std::vector<Shape> all = {
        {16, 256, 16, 8, 1},    {37, 256, 16, 8, 1},    {8, 256, 4, 1, 1},
        {12, 512, 4, 2, 2},     {72, 256, 24, 12, 1},   {72, 256, 24, 1, 1},
        {72, 256, 24, 8, 1},    {128, 768, 64, 32, 3},  {100, 256, 64, 1, 1},
        {128, 512, 128, 64, 2}, {30, 2560, 16, 8, 10},  {24, 256, 20, 8, 1},
        {5, 256, 16, 8, 1},     {130, 256, 128, 64, 1}, {17, 1280, 16, 8, 3}};
    if (info.superBlock())
      return all;
    for (int64_t columns : {32, 64, 96, 480, 576, 1152})
      all.push_back({19, columns, 16, 8, tileSplits(columns)});
    all.push_back({24, 576, 24, 12, 5});
    if (info.plain())
      for (int64_t columns : {1, 7, 40, 80, 161, 577})
        all.push_back({19, columns, 16, 8, tileSplits(columns)});
    return all;
  }
  TilesLayout layoutOf(const Shape &s) const {
    EXPECT_EQ(
        tilesLayoutError(format, s.rows, s.columns, s.unit, s.pair, s.splits),
        "");
    return tilesLayout(format, s.rows, s.columns, s.unit, s.pair, s.splits);
  }
};

TEST_P(TileEveryFormat, RowsComeBack) {
  for (const Shape &s : shapes()) {
    TilesLayout layout = layoutOf(s);
    std::vector<uint8_t> rows = randomRows(info, s.rows, s.columns);
    std::vector<uint8_t> packed(layout.totalBytes, 0xee);
    packTiles(layout, rows.data(), 0, layout.units, packed.data());
    std::vector<float> expected(s.columns), found(s.columns);
    for (int64_t row = 0; row < s.rows; ++row) {
      dequantize(format, rows.data() + row * layout.sourceRowBytes(), s.columns,
                 expected.data());
      unpackRow(layout, packed.data(), row, found.data());
      ASSERT_EQ(std::memcmp(expected.data(), found.data(), s.columns * 4), 0)
          << "row " << row << " of " << s.rows << " x " << s.columns;
    }
    // Unit by unit is the same bytes.
    int64_t unitBytes = layout.tilesPerUnit * layout.tileBytes;
    std::vector<uint8_t> piece(unitBytes);
    for (int64_t u = 0; u < layout.units; ++u) {
      packTiles(layout, rows.data() + u * s.unit * layout.sourceRowBytes(), u,
                1, piece.data());
      ASSERT_EQ(
          std::memcmp(piece.data(), packed.data() + u * unitBytes, unitBytes),
          0);
    }
  }
}

// What lanes load is mma's A fragment of 16 rows and 16 k, in ascending k.
TEST_P(TileEveryFormat, LanesHoldFragments) {
  for (const Shape &s : shapes()) {
    TilesLayout layout = layoutOf(s);
    std::vector<uint8_t> rows = randomRows(info, s.rows, s.columns);
    std::vector<uint8_t> packed(layout.totalBytes, 0xee);
    packTiles(layout, rows.data(), 0, layout.units, packed.data());
    std::vector<std::vector<uint32_t>> numbers;
    for (int64_t row = 0; row < s.rows; ++row)
      numbers.push_back(sourceNumbers(
          format, rows.data() + row * layout.sourceRowBytes(), s.columns));
    auto numberAt = [&](int64_t row, int64_t k) -> uint32_t {
      return row >= 0 && k < s.columns ? numbers[row][k] : 0;
    };
    for (int64_t tile = 0; tile < layout.tiles; ++tile)
      for (const ChunkPlace &place : layout.chunkPlaces()) {
        const uint8_t *chunk =
            packed.data() + tile * layout.tileBytes + place.offset;
        const TileChunk &planes = layout.chunk(place.blocks);
        for (int reg = 0; reg < 8 * place.blocks; ++reg)
          for (int lane = 0; lane < 32; ++lane) {
            Register found =
                info.plain()
                    ? elementRegister(chunk, info.blockBytes, lane, reg)
                    : codeRegister(chunk, planes, lane, reg);
            // a0: rows g; a1: rows g + 8; a2 and a3: the same, 8 k on.
            int64_t row = layout.rowAt(tile, lane / 4, reg % 2);
            int64_t k = place.firstBlock * 32 + reg / 4 * 16 + reg % 4 / 2 * 8 +
                        lane % 4 * 2;
            ASSERT_EQ(found.lower, numberAt(row, k))
                << "row " << row << " k " << k << " of " << s.rows << " x "
                << s.columns;
            ASSERT_EQ(found.upper, numberAt(row, k + 1));
          }
      }
  }
}

TEST_P(TileEveryFormat, ScalesLieBySlotAndBlock) {
  if (info.plain())
    return;
  Shape s = {37, info.superBlock() ? 768 : 480, 16, 8, 2};
  TilesLayout layout = layoutOf(s);
  std::vector<uint8_t> rows = randomRows(info, s.rows, s.columns);
  std::vector<uint8_t> packed(layout.totalBytes, 0xee);
  packTiles(layout, rows.data(), 0, layout.units, packed.data());
  for (int64_t tile = 0; tile < layout.tiles; ++tile)
    for (const ChunkPlace &place : layout.chunkPlaces()) {
      const uint8_t *chunk =
          packed.data() + tile * layout.tileBytes + place.offset;
      const TileChunk &planes = layout.chunk(place.blocks);
      int fileBlocks = info.superBlock() ? 1 : place.blocks;
      for (int slot = 0; slot < 8; ++slot)
        for (int half = 0; half < 2; ++half)
          for (int block = 0; block < fileBlocks; ++block) {
            BlockCodes codes = {};
            int64_t row = layout.rowAt(tile, slot, half);
            int64_t number = place.firstBlock * 32 / info.blockValues + block;
            if (row >= 0)
              decodeBlock(format,
                          rows.data() + row * layout.sourceRowBytes() +
                              number * info.blockBytes,
                          codes);
            int at = (slot * fileBlocks + block) * 2 + half;
            if (info.scale == ScaleKind::E8M0)
              ASSERT_EQ(chunk[planes.scaleOffset + at], codes.exponent);
            else
              ASSERT_EQ(read<uint16_t>(chunk + planes.scaleOffset + 2 * at),
                        codes.dBits);
            if (info.min != MinKind::None)
              ASSERT_EQ(read<uint16_t>(chunk + planes.minOffset + 2 * at),
                        codes.mBits);
            for (int sub = 0; sub < info.subBlocks(); ++sub) {
              int to = (slot * info.subBlocks() + sub) * 2 + half;
              if (planes.subScaleOffset >= 0)
                ASSERT_EQ(
                    static_cast<int8_t>(chunk[planes.subScaleOffset + to]),
                    codes.subScale[sub]);
              if (planes.subMinOffset >= 0)
                ASSERT_EQ(static_cast<int8_t>(chunk[planes.subMinOffset + to]),
                          codes.subMin[sub]);
            }
          }
    }
}

TEST_P(TileEveryFormat, StreamsAreDense) {
  for (const Shape &s : shapes()) {
    TilesLayout layout = layoutOf(s);
    EXPECT_EQ(layout.tileBytes % 128, 0);
    int64_t end = 0, block = 0;
    for (const ChunkPlace &place : layout.chunkPlaces()) {
      EXPECT_EQ(place.offset, end);
      EXPECT_EQ(place.firstBlock, block);
      EXPECT_GE(place.firstBlock, layout.cut(place.segment));
      const TileChunk &chunk = layout.chunk(place.blocks);
      if (info.superBlock())
        EXPECT_EQ(place.blocks, 8);
      EXPECT_EQ(chunk.bytes % 16, 0);
      end += chunk.bytes;
      block += place.blocks;
      EXPECT_LE(block, layout.cut(place.segment + 1));
      // A whole chunk of codes is loaded 128 bits at a time.
      if (place.blocks == 8 && !info.plain()) {
        EXPECT_EQ(chunk.low.pieceBytes, 16);
        EXPECT_EQ(chunk.low.offset % 16, 0);
      }
    }
    EXPECT_EQ(block, layout.blocks);
    EXPECT_LT(layout.tileBytes - end, 128);
    // No format is widened: q2_k's scales of 4 bits become bytes, others' grow
    // less.
    if (s.columns % 256 == 0)
      EXPECT_LE(static_cast<double>(end),
                16.0 * static_cast<double>(layout.sourceRowBytes()) * 1.2);
  }
}

INSTANTIATE_TEST_SUITE_P(
    Tiles, TileEveryFormat, testing::Range(0, FormatCount),
    [](const auto &tested) {
      return std::string(formatInfo(static_cast<Format>(tested.param)).name);
    });

// Rotated pairs share a slot, whichever dimensions pair.
TEST(Tiles, PairsShareASlot) {
  struct {
    int64_t unit, pair, tiles;
  } cases[] = {{4, 1, 1},    {4, 2, 1},   {24, 12, 2}, {24, 1, 2},
               {24, 8, 2},   {24, 4, 2},  {64, 32, 4}, {64, 1, 4},
               {128, 64, 8}, {128, 1, 8}, {20, 8, 2},  {16, 8, 1}};
  for (auto [unit, pair, tiles] : cases) {
    int64_t rows = 3 * unit;
    TilesLayout layout =
        tilesLayout(Format::BF16, rows, 32, unit, pair, /*splits=*/1);
    EXPECT_EQ(layout.tilesPerUnit, tiles);
    std::vector<int> seen(layout.tiles * 16);
    for (int64_t row = 0; row < rows; ++row) {
      TileSlot slot = layout.slotOf(row);
      ASSERT_EQ(layout.rowAt(slot.tile, slot.slot, slot.half), row);
      EXPECT_EQ(slot.tile / tiles, row / unit);
      EXPECT_EQ(seen[slot.tile * 16 + slot.half * 8 + slot.slot]++, 0);
      int64_t inBlock = row % unit % (2 * pair);
      if (inBlock >= pair)
        continue;
      EXPECT_EQ(slot.half, 0);
      if (row % unit + pair < unit) {
        TileSlot other = layout.slotOf(row + pair);
        EXPECT_EQ(other.tile, slot.tile);
        EXPECT_EQ(other.slot, slot.slot);
        EXPECT_EQ(other.half, 1);
      }
    }
  }
}

TEST(Tiles, SplitsFollowFromK) {
  struct {
    int64_t columns;
    int splits;
  } cases[] = {{1, 1},      {32, 1},   {256, 1},   {384, 2},   {576, 2},
               {640, 3},    {1024, 4}, {2048, 8},  {4096, 16}, {8192, 16},
               {14336, 16}, {1536, 6}, {3072, 12}, {40, 1}};
  for (auto [columns, splits] : cases)
    EXPECT_EQ(tileSplits(columns), splits) << columns;
}

// Segments are as even as whole superblocks allow, and cover K once.
TEST(Tiles, SegmentsAreEven) {
  for (int64_t columns : {576, 1536, 2048, 2560, 4096, 8192, 14336}) {
    TilesLayout layout =
        tilesLayout(Format::BF16, 16, columns, 16, 8, tileSplits(columns));
    int64_t least = layout.blocks, most = 0;
    for (int s = 0; s < layout.splits; ++s) {
      int64_t blocks = layout.cut(s + 1) - layout.cut(s);
      EXPECT_EQ(layout.cut(s) % layout.granule, 0);
      least = std::min(least, blocks);
      most = std::max(most, blocks);
    }
    EXPECT_GE(least, 1);
    EXPECT_LE(most - least, layout.granule) << columns;
    EXPECT_EQ(layout.cut(0), 0);
    EXPECT_EQ(layout.cut(layout.splits), layout.blocks);
  }
}

TEST(Tiles, WrongNumbersAreNamed) {
  auto error = [](int64_t n, int64_t k, int64_t unit, int64_t pair,
                  int64_t splits, Format format = Format::Q4_K) {
    return tilesLayoutError(format, n, k, unit, pair, splits);
  };
  EXPECT_EQ(error(0, 256, 16, 8, 1), "N = 0 is not positive");
  EXPECT_EQ(error(16, -1, 16, 8, 1), "K = -1 is not positive");
  EXPECT_EQ(error(16, 256, 0, 8, 1), "unit = 0 is not positive");
  EXPECT_EQ(error(16, 256, 16, 0, 1), "pair = 0 is not positive");
  EXPECT_EQ(error(16, 256, 16, 8, 0), "splits = 0 is not positive");
  EXPECT_EQ(error(16, 288, 16, 8, 1),
            "K = 288 is not a multiple of q4_k's block of 256");
  EXPECT_EQ(error(16, 512, 16, 8, 3),
            "splits = 3 is more than 2, the most for K = 512");
  EXPECT_EQ(error(16, 65536, 16, 8, 17),
            "splits = 17 is more than 16, the most for K = 65536");
  EXPECT_EQ(error(int64_t(1) << 50, 1 << 16, 16, 8, 1, Format::F32),
            "N = 1125899906842624, K = 65536, unit = 16: the packed size does "
            "not fit 64 bits");
  EXPECT_NE(error(INT64_MAX, INT64_MAX, INT64_MAX, 8, 1, Format::F32), "");
}

} // namespace
