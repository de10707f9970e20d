// The packed layout of a weight matrix for matrix units of 16 rows: what a warp
// loads is what its registers hold. The contract between whoever writes the
// weights arena and the kernels that read it.
//
// A matrix has N rows (outputs) of K values. Rows are dealt into units of
// `unit` rows, a unit into tiles of 16 slots. Rows that an epilogue needs
// together, `pair` apart, share the two halves of a slot number:
//
//   row r of a unit = block * 2 * pair + half * pair + j, 0 <= j < pair
//   pair number i = block * pair + j: tile i / 8, slot g = i % 8, and `half`
//
// so that a thread which holds rows g and g + 8 of a tile holds a pair. A unit
// has ceil(pairs / 8) tiles; tiles are in order of unit, then tile, and each
// starts at a multiple of 128 bytes. Slots without a row are zero bytes
// throughout, which is the value zero in every format.
//
// K is cut into blocks of 32, B = ceil(K / 32), zero beyond K; blocks into
// `splits` segments, whose sums a kernel adds in ascending order: segment s has
// blocks cut(s) .. cut(s + 1) - 1. A segment is cut greedily into chunks of 8,
// 4, 2, 1 blocks (superblock formats: of 8 always), and a tile is one stream
// of its chunks, in order.
//
// A chunk of n blocks has these planes, in this order, each padded to 16 bytes:
//
//   scales     f16 d[8 slots g][n blocks][2 halves]; MXFP4: u8 exponents in the
//              same order; superblock formats: f16 d[8][2]
//   minimums   the same of m, or dmin
//   subScales  i8 [8][sub-blocks of 16 or 32][2], superblock formats
//   subMins    i8 the same
//   low codes, high codes
//
// Codes are those of Format.h (Q8_0 as q + 128), cut into lowBits and highBits
// as Packing.h does. They lie as the registers of mma's A fragment: step t of
// the chunk is 16 k; lane 4 * g + q holds in register j of a step the k = 16 t
// + 8 (j / 2) + 2 q and the one above it, of half j % 2. Register number J = 4
// t + j. With p bits a code in the plane, a lane has w = max(4, 2 n p) bytes,
// in pieces of W = min(16, w):
//
//   [piece][lane 0..31][W bytes]
//
// and as 32-bit words of the lane, register J is in word J / (16 / p): with i =
// J % (16 / p), its lower k's code at bit p i, its upper k's at bit 16 + p i.
//
// Plain formats have elements instead of codes. bf16 and f16: for each step
// [lane][registers 0..3], two elements a register, lower k first. f32: for each
// step [lane][registers 0, 1], then [lane][registers 2, 3].
#ifndef KVC_CODEGEN_FORMATS_TILES_H
#define KVC_CODEGEN_FORMATS_TILES_H

#include "codegen/formats/Format.h"

#include <array>
#include <cstdint>
#include <string>
#include <vector>

namespace kvc {

constexpr int64_t TileAlignment = 128;
constexpr int TileRows = 16;
constexpr int TileBlock = 32;     // k of a block
constexpr int MaxChunkBlocks = 8; // of a chunk
constexpr int MaxTileSplits = 16;

/// A plane of codes: bits of a code, bytes of a lane, bytes of a piece.
struct CodePlane {
  int bits = 0;       // 0: the plane is absent
  int laneBytes = 0;  // w
  int pieceBytes = 0; // W
  int64_t offset = -1;

  int registersPerWord() const { return 16 / bits; }
};

/// The planes of a chunk of `blocks` blocks, as bytes from its start. An absent
/// plane has offset -1.
struct TileChunk {
  int blocks;
  int64_t scaleOffset;
  int64_t minOffset;
  int64_t subScaleOffset;
  int64_t subMinOffset;
  int64_t elementOffset; // plain formats
  CodePlane low;
  CodePlane high;
  int64_t bytes;
};

/// A chunk in its tile.
struct ChunkPlace {
  int segment;
  int64_t firstBlock; // of K
  int blocks;
  int64_t offset; // from the tile's start
};

/// Where a row lies.
struct TileSlot {
  int64_t tile; // of the matrix
  int slot;     // g
  int half;     // 0: row g of the tile, 1: row g + 8
};

/// Where one value lies. Offsets are bytes from the tile's start.
struct TileElement {
  const TileChunk *chunk;
  int64_t chunkOffset;
  int block;    // in the chunk
  int subBlock; // in the chunk, of the format's sub-blocks
  int lane;
  int reg;   // J: register number in the chunk
  int upper; // 1 for the upper k of the register
};

struct TilesLayout {
  Format format;
  int64_t rows;    // N
  int64_t columns; // K
  int64_t unit;
  int64_t pair;
  int splits;

  int elementBytes;     // plain formats; else 0
  int64_t blocks;       // B
  int64_t granule;      // blocks that segments are cut at multiples of
  int64_t tilesPerUnit; // of 16 slots
  int64_t units;
  int64_t tiles;     // of the matrix
  int64_t tileBytes; // padded to 128
  int64_t totalBytes;
  std::array<TileChunk, 4> chunks; // of 8, 4, 2 and 1 blocks

  /// Bytes of a row in the file.
  int64_t sourceRowBytes() const {
    return formatInfo(format).rowBytes(columns);
  }
  /// The first block of segment `segment`; blocks for segment == splits.
  int64_t cut(int segment) const {
    return segment == splits ? blocks
                             : granule * (blocks / granule * segment / splits);
  }
  const TileChunk &chunk(int chunkBlocks) const {
    return chunks[chunkBlocks == MaxChunkBlocks ? 0 : 3 - chunkBlocks / 2];
  }
  /// The chunks of a tile, in order.
  std::vector<ChunkPlace> chunkPlaces() const;

  TileSlot slotOf(int64_t row) const;
  /// The row of a slot, -1 if it has none.
  int64_t rowAt(int64_t tile, int slot, int half) const;
  /// Where (row, k) lies in its tile.
  TileElement element(int64_t row, int64_t k) const;
  /// Of a plain format: the element's offset from the tile's start.
  int64_t elementByte(const TileElement &element) const;
  /// Of a plane of codes: the offset of the 32-bit word from the tile's start,
  /// and the lowest bit of the code in it.
  int64_t wordByte(const TileElement &element, const CodePlane &plane) const;
  int codeBit(const TileElement &element, const CodePlane &plane) const;
  /// The index of the row's scale or minimum in its plane, in elements.
  int64_t scaleIndex(const TileSlot &slot, const TileElement &element) const;
  int64_t subIndex(const TileSlot &slot, const TileElement &element) const;
};

/// The segments that a sum over `columns` is cut into: from K alone, so that no
/// number of rows and no phase changes a bit.
int tileSplits(int64_t columns);

/// Why no layout exists for these numbers; empty if tilesLayout may be called.
std::string tilesLayoutError(Format format, int64_t n, int64_t k, int64_t unit,
                             int64_t pair, int64_t splits);

TilesLayout tilesLayout(Format format, int64_t n, int64_t k, int64_t unit,
                        int64_t pair, int64_t splits);

/// Packs units firstUnit .. firstUnit+count-1. `firstRow` is the file's row
/// firstUnit * unit; rows follow each other, sourceRowBytes() apart, as long as
/// the matrix has them. `out` receives count * tilesPerUnit * tileBytes bytes.
void packTiles(const TilesLayout &layout, const uint8_t *firstRow,
               int64_t firstUnit, int64_t count, uint8_t *out);

/// The values of one row read back from a packed matrix, as dequantize gives
/// them: what a kernel must compute, for tests.
void unpackRow(const TilesLayout &layout, const uint8_t *packed, int64_t row,
               float *out);

} // namespace kvc

#endif // KVC_CODEGEN_FORMATS_TILES_H
