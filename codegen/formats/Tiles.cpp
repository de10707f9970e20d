#include "codegen/formats/Tiles.h"
#include "codegen/formats/CodeBits.h"
#include "codegen/formats/HalfFloat.h"

#include <algorithm>
#include <cassert>
#include <cstring>
#include <limits>

using namespace kvc;

static int64_t divideUp(int64_t a, int64_t b) { return a / b + (a % b != 0); }

static int64_t alignUp(int64_t value, int64_t alignment) {
  return divideUp(value, alignment) * alignment;
}

/// Pair numbers that rows of a unit have.
static int64_t pairsOf(int64_t unit, int64_t pair) {
  return unit / (2 * pair) * pair + std::min(unit % (2 * pair), pair);
}

static int64_t granuleOf(int64_t columns) {
  return columns % (MaxChunkBlocks * TileBlock) == 0 ? MaxChunkBlocks : 1;
}

int kvc::tileSplits(int64_t columns) {
  int64_t blocks = divideUp(columns, TileBlock);
  int64_t splits = std::clamp<int64_t>(
      (blocks + MaxChunkBlocks / 2) / MaxChunkBlocks, 1, MaxTileSplits);
  return static_cast<int>(std::min(splits, blocks / granuleOf(columns)));
}

std::string kvc::tilesLayoutError(Format format, int64_t n, int64_t k,
                                  int64_t unit, int64_t pair, int64_t splits) {
  const FormatInfo &info = formatInfo(format);
  auto found = [](const char *what, int64_t value) {
    return std::string(what) + " = " + std::to_string(value);
  };
  for (auto [what, value] :
       {std::pair("N", n), std::pair("K", k), std::pair("unit", unit),
        std::pair("pair", pair), std::pair("splits", splits)})
    if (value <= 0)
      return found(what, value) + " is not positive";
  if (k % info.blockValues != 0)
    return found("K", k) + " is not a multiple of " + info.name +
           "'s block of " + std::to_string(info.blockValues);
  int64_t most = divideUp(k, TileBlock) / granuleOf(k);
  if (splits > std::min<int64_t>(most, MaxTileSplits))
    return found("splits", splits) + " is more than " +
           std::to_string(std::min<int64_t>(most, MaxTileSplits)) +
           ", the most for K = " + std::to_string(k);
  // A bound, not exact: 4 bytes a value and a chunk's and a tile's padding, in
  // tiles of which each has a row.
  constexpr int64_t max = std::numeric_limits<int64_t>::max();
  if (unit > max / 64 || pair > max / 64 || n > max / 64 || k > max / 1024 ||
      alignUp(n, unit) > max / (16 * (8 * alignUp(k, TileBlock) + 1024)))
    return found("N", n) + ", " + found("K", k) + ", " + found("unit", unit) +
           ": the packed size does not fit 64 bits";
  return {};
}

static CodePlane codePlane(int blocks, int bits, int64_t &end) {
  CodePlane plane;
  if (bits == 0)
    return plane;
  plane.bits = bits;
  plane.laneBytes = std::max(4, 2 * blocks * bits);
  plane.pieceBytes = std::min(16, plane.laneBytes);
  plane.offset = end;
  end += 32 * plane.laneBytes;
  return plane;
}

static TileChunk chunkOf(const FormatInfo &info, int blocks) {
  TileChunk chunk = {};
  chunk.blocks = blocks;
  chunk.scaleOffset = chunk.minOffset = chunk.subScaleOffset = -1;
  chunk.subMinOffset = chunk.elementOffset = -1;
  int64_t end = 0;
  auto plane = [&](int64_t bytes) {
    int64_t offset = end;
    end = alignUp(end + bytes, 16);
    return offset;
  };
  if (info.plain()) {
    chunk.elementOffset = plane(static_cast<int64_t>(TileRows) * TileBlock *
                                blocks * info.blockBytes);
    chunk.bytes = end;
    return chunk;
  }
  int64_t scales =
      static_cast<int64_t>(TileRows) * (info.superBlock() ? 1 : blocks);
  int64_t subScales =
      static_cast<int64_t>(TileRows) * blocks * TileBlock / info.subBlock;
  chunk.scaleOffset = plane(scales * (info.scale == ScaleKind::E8M0 ? 1 : 2));
  if (info.min != MinKind::None)
    chunk.minOffset = plane(scales * 2);
  if (info.scale == ScaleKind::HalfTimesSub)
    chunk.subScaleOffset = plane(subScales);
  if (info.min == MinKind::HalfTimesSub)
    chunk.subMinOffset = plane(subScales);
  CodeBits bits = splitCodeBits(info.codeBits);
  chunk.low = codePlane(blocks, bits.low, end);
  chunk.high = codePlane(blocks, bits.high, end);
  chunk.bytes = end;
  return chunk;
}

TilesLayout kvc::tilesLayout(Format format, int64_t n, int64_t k, int64_t unit,
                             int64_t pair, int64_t splits) {
  assert(tilesLayoutError(format, n, k, unit, pair, splits).empty());
  const FormatInfo &info = formatInfo(format);
  TilesLayout layout = {};
  layout.format = format;
  layout.rows = n;
  layout.columns = k;
  layout.unit = unit;
  layout.pair = pair;
  layout.splits = static_cast<int>(splits);
  layout.elementBytes = info.plain() ? info.blockBytes : 0;
  layout.blocks = divideUp(k, TileBlock);
  layout.granule = granuleOf(k);
  layout.tilesPerUnit = divideUp(pairsOf(unit, pair), TileRows / 2);
  layout.units = divideUp(n, unit);
  layout.tiles = layout.units * layout.tilesPerUnit;
  for (int i = 0; i < 4; ++i)
    layout.chunks[i] = chunkOf(info, MaxChunkBlocks >> i);
  ChunkPlace last = layout.chunkPlaces().back();
  layout.tileBytes =
      alignUp(last.offset + layout.chunk(last.blocks).bytes, TileAlignment);
  layout.totalBytes = layout.tiles * layout.tileBytes;
  return layout;
}

std::vector<ChunkPlace> TilesLayout::chunkPlaces() const {
  std::vector<ChunkPlace> places;
  int64_t offset = 0;
  for (int segment = 0; segment < splits; ++segment) {
    int64_t end = cut(segment + 1);
    int size = MaxChunkBlocks;
    for (int64_t block = cut(segment); block < end; block += size) {
      while (size > end - block)
        size /= 2;
      places.push_back({segment, block, size, offset});
      offset += chunk(size).bytes;
    }
  }
  return places;
}

TileSlot TilesLayout::slotOf(int64_t row) const {
  int64_t inUnit = row % unit, inBlock = inUnit % (2 * pair);
  int64_t number = inUnit / (2 * pair) * pair + inBlock % pair;
  return {row / unit * tilesPerUnit + number / 8, static_cast<int>(number % 8),
          static_cast<int>(inBlock / pair)};
}

int64_t TilesLayout::rowAt(int64_t tile, int slot, int half) const {
  int64_t number = tile % tilesPerUnit * 8 + slot;
  int64_t inUnit = number / pair * 2 * pair + half * pair + number % pair;
  int64_t row = tile / tilesPerUnit * unit + inUnit;
  return inUnit < unit && row < rows ? row : -1;
}

TileElement TilesLayout::element(int64_t row, int64_t k) const {
  TileSlot slot = slotOf(row);
  int64_t block = k / TileBlock;
  int segment = 0;
  while (cut(segment + 1) <= block)
    ++segment;
  // Chunks of the segments before, then those of this one: of 8 while they
  // fit, and at most one of each smaller size.
  int64_t offset = 0;
  auto skip = [&](int64_t count) {
    for (const TileChunk &size : chunks) {
      offset += count / size.blocks * size.bytes;
      count %= size.blocks;
    }
  };
  for (int before = 0; before < segment; ++before)
    skip(cut(before + 1) - cut(before));
  int64_t start = cut(segment), left = cut(segment + 1) - start;
  for (const TileChunk &size : chunks) {
    int64_t whole = left / size.blocks * size.blocks;
    if (block - start >= whole) {
      offset += whole / size.blocks * size.bytes;
      start += whole;
      left -= whole;
      continue;
    }
    int64_t number = (block - start) / size.blocks;
    int64_t inChunk = k - (start + number * size.blocks) * TileBlock;
    int inStep = static_cast<int>(inChunk % 16);
    int step = static_cast<int>(inChunk / 16);
    return {&size,
            offset + number * size.bytes,
            static_cast<int>(inChunk / TileBlock),
            static_cast<int>(inChunk / formatInfo(format).subBlock),
            4 * slot.slot + inStep % 8 / 2,
            4 * step + 2 * (inStep / 8) + slot.half,
            inStep % 2};
  }
  assert(false && "every block is in a chunk");
  return {};
}

int64_t TilesLayout::elementByte(const TileElement &element) const {
  // A piece has 16 bytes a lane: four registers of 16-bit elements, or two of
  // f32.
  int registers = 8 / elementBytes;
  return element.chunkOffset + element.chunk->elementOffset +
         (element.reg / registers * 32 + element.lane) * 16 +
         (element.reg % registers * 2 + element.upper) * elementBytes;
}

int64_t TilesLayout::wordByte(const TileElement &element,
                              const CodePlane &plane) const {
  int byte = element.reg / plane.registersPerWord() * 4;
  int piece = byte / plane.pieceBytes;
  return element.chunkOffset + plane.offset +
         (piece * 32 + element.lane) * plane.pieceBytes +
         byte % plane.pieceBytes;
}

int TilesLayout::codeBit(const TileElement &element,
                         const CodePlane &plane) const {
  return element.reg % plane.registersPerWord() * plane.bits +
         16 * element.upper;
}

int64_t TilesLayout::scaleIndex(const TileSlot &slot,
                                const TileElement &element) const {
  if (formatInfo(format).superBlock())
    return slot.slot * 2 + slot.half;
  return (slot.slot * element.chunk->blocks + element.block) * 2 + slot.half;
}

int64_t TilesLayout::subIndex(const TileSlot &slot,
                              const TileElement &element) const {
  int subBlocks =
      element.chunk->blocks * TileBlock / formatInfo(format).subBlock;
  return (slot.slot * subBlocks + element.subBlock) * 2 + slot.half;
}

//===----------------------------------------------------------------------===//
// Packing
//===----------------------------------------------------------------------===//

namespace {

/// Packs one row into its tile.
class RowPacker {
public:
  RowPacker(const TilesLayout &layout, const std::vector<ChunkPlace> &places)
      : layout(layout), places(places), info(formatInfo(layout.format)) {}

  void pack(const uint8_t *source, TileSlot slot, uint8_t *tile) const;

private:
  void packElements(const uint8_t *source, TileSlot slot,
                    const ChunkPlace &place, uint8_t *chunk) const;
  void packBlocks(const uint8_t *source, TileSlot slot, const ChunkPlace &place,
                  uint8_t *chunk) const;
  void packCodes(const uint8_t *codes, TileSlot slot, int firstStep, int steps,
                 int shift, const CodePlane &plane, uint8_t *chunk) const;

  const TilesLayout &layout;
  const std::vector<ChunkPlace> &places;
  const FormatInfo &info;
};

} // namespace

void RowPacker::packElements(const uint8_t *source, TileSlot slot,
                             const ChunkPlace &place, uint8_t *chunk) const {
  int64_t bytes = layout.elementBytes;
  int registers = 8 / layout.elementBytes;
  for (int64_t step = 0; step < 2 * place.blocks; ++step)
    for (int column = 0; column < 8; ++column) {
      int reg = static_cast<int>(4 * step) + column / 4 * 2 + slot.half;
      int64_t lane = 4 * slot.slot + column % 4;
      int64_t k = place.firstBlock * TileBlock + step * 16 + column * 2;
      if (k >= layout.columns)
        continue;
      uint8_t *out = chunk + (reg / registers * 32 + lane) * 16 +
                     reg % registers * 2 * bytes;
      int64_t count = std::min<int64_t>(layout.columns - k, 2);
      std::memcpy(out, source + k * bytes, count * bytes);
    }
}

/// Bits shift .. shift+bits-1 of the codes of `steps` steps.
void RowPacker::packCodes(const uint8_t *codes, TileSlot slot, int firstStep,
                          int steps, int shift, const CodePlane &plane,
                          uint8_t *chunk) const {
  int mask = (1 << plane.bits) - 1;
  int perWord = plane.registersPerWord();
  for (int step = 0; step < steps; ++step)
    for (int column = 0; column < 8; ++column) {
      int reg = 4 * (firstStep + step) + column / 4 * 2 + slot.half;
      int lane = 4 * slot.slot + column % 4;
      int byte = reg / perWord * 4;
      uint8_t *at = chunk + plane.offset +
                    (byte / plane.pieceBytes * 32 + lane) * plane.pieceBytes +
                    byte % plane.pieceBytes;
      const uint8_t *two = codes + step * 16 + column * 2;
      uint32_t bits = (two[0] >> shift & mask) | (two[1] >> shift & mask) << 16;
      uint32_t word;
      std::memcpy(&word, at, sizeof(word));
      word |= bits << reg % perWord * plane.bits;
      std::memcpy(at, &word, sizeof(word));
    }
}

void RowPacker::packBlocks(const uint8_t *source, TileSlot slot,
                           const ChunkPlace &place, uint8_t *chunk) const {
  const TileChunk &planes = layout.chunk(place.blocks);
  int blockSteps = info.blockValues / 16;
  int fileBlocks = place.blocks * TileBlock / info.blockValues;
  int subBlocks = info.subBlocks();
  BlockCodes block;
  for (int i = 0; i < fileBlocks; ++i) {
    int64_t number = place.firstBlock * TileBlock / info.blockValues + i;
    decodeBlock(layout.format, source + number * info.blockBytes, block);
    int64_t index =
        static_cast<int64_t>(slot.slot * fileBlocks + i) * 2 + slot.half;
    if (info.scale == ScaleKind::E8M0)
      chunk[planes.scaleOffset + index] = block.exponent;
    else
      std::memcpy(chunk + planes.scaleOffset + 2 * index, &block.dBits, 2);
    if (planes.minOffset >= 0)
      std::memcpy(chunk + planes.minOffset + 2 * index, &block.mBits, 2);
    for (int sub = 0; sub < subBlocks; ++sub) {
      int64_t at =
          (static_cast<int64_t>(slot.slot) * subBlocks + sub) * 2 + slot.half;
      if (planes.subScaleOffset >= 0)
        chunk[planes.subScaleOffset + at] =
            static_cast<uint8_t>(block.subScale[sub]);
      if (planes.subMinOffset >= 0)
        chunk[planes.subMinOffset + at] =
            static_cast<uint8_t>(block.subMin[sub]);
    }
    packCodes(block.codes, slot, i * blockSteps, blockSteps, 0, planes.low,
              chunk);
    if (planes.high.bits)
      packCodes(block.codes, slot, i * blockSteps, blockSteps, planes.low.bits,
                planes.high, chunk);
  }
}

void RowPacker::pack(const uint8_t *source, TileSlot slot,
                     uint8_t *tile) const {
  for (const ChunkPlace &place : places) {
    if (info.plain())
      packElements(source, slot, place, tile + place.offset);
    else
      packBlocks(source, slot, place, tile + place.offset);
  }
}

void kvc::packTiles(const TilesLayout &layout, const uint8_t *firstRow,
                    int64_t firstUnit, int64_t count, uint8_t *out) {
  assert(firstUnit >= 0 && count <= layout.units - firstUnit);
  std::vector<ChunkPlace> places = layout.chunkPlaces();
  RowPacker packer(layout, places);
  int64_t firstTile = firstUnit * layout.tilesPerUnit;
  std::memset(out, 0, count * layout.tilesPerUnit * layout.tileBytes);
  int64_t begin = firstUnit * layout.unit;
  int64_t end = std::min(begin + count * layout.unit, layout.rows);
  for (int64_t row = begin; row < end; ++row) {
    TileSlot slot = layout.slotOf(row);
    packer.pack(firstRow + (row - begin) * layout.sourceRowBytes(), slot,
                out + (slot.tile - firstTile) * layout.tileBytes);
  }
}

void kvc::unpackRow(const TilesLayout &layout, const uint8_t *packed,
                    int64_t row, float *out) {
  const FormatInfo &info = formatInfo(layout.format);
  TileSlot slot = layout.slotOf(row);
  const uint8_t *tile = packed + slot.tile * layout.tileBytes;
  for (int64_t k = 0; k < layout.columns; ++k) {
    TileElement element = layout.element(row, k);
    if (info.plain()) {
      dequantize(layout.format, tile + layout.elementByte(element), 1, out + k);
      continue;
    }
    const TileChunk &chunk = *element.chunk;
    const uint8_t *start = tile + element.chunkOffset;
    int64_t index = layout.scaleIndex(slot, element);
    int64_t sub = layout.subIndex(slot, element);
    auto half = [&](int64_t offset) {
      uint16_t bits;
      std::memcpy(&bits, start + offset + 2 * index, sizeof(bits));
      return floatFromHalf(bits);
    };
    auto codeBits = [&](const CodePlane &plane) {
      uint32_t word;
      std::memcpy(&word, tile + layout.wordByte(element, plane), sizeof(word));
      return static_cast<int>(word >> layout.codeBit(element, plane) &
                              ((1u << plane.bits) - 1));
    };
    float scale = info.scale == ScaleKind::E8M0
                      ? floatFromE8M0Half(start[chunk.scaleOffset + index])
                      : half(chunk.scaleOffset);
    if (chunk.subScaleOffset >= 0)
      scale *= static_cast<int8_t>(start[chunk.subScaleOffset + sub]);
    int code = codeBits(chunk.low);
    if (chunk.high.bits)
      code |= codeBits(chunk.high) << chunk.low.bits;
    float value = scale * info.codeValue(code);
    if (info.min == MinKind::Half)
      value = value + half(chunk.minOffset);
    else if (info.min == MinKind::HalfTimesSub)
      value = value - half(chunk.minOffset) *
                          static_cast<int8_t>(start[chunk.subMinOffset + sub]);
    out[k] = value;
  }
}
