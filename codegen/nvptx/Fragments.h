//===- Fragments.h - Packed tiles as operands of the matrix unit ----------===//
//
// One path for every weight format: a lane loads its share of a part of a tile
// (planes of elements, or of codes, scales and minimums; codegen/formats/
// Tiles.h) into registers, and makes from it A fragments of bf16, exact for
// bf16 elements and for codes, high + low parts for f16 and f32.
//
//===----------------------------------------------------------------------===//
#ifndef KVC_CODEGEN_NVPTX_FRAGMENTS_H
#define KVC_CODEGEN_NVPTX_FRAGMENTS_H

#include "codegen/formats/Tiles.h"
#include "codegen/nvptx/Emitter.h"

#include <map>

namespace kvc::nvptx {

/// A part of a chunk that is loaded at once.
struct TilePart {
  int chunkBlocks; // of its chunk
  int firstBlock;  // in the chunk
  int blocks;
  int64_t chunkOffset; // of its chunk, from the segment's or the loop's start
};

/// The parts that a warp loads a chunk of `blocks` blocks at byte `offset` in:
/// whole chunks of codes, but no more elements than a window of registers
/// holds.
std::vector<TilePart> tileParts(const TilesLayout &layout, int blocks,
                                int64_t offset);

/// Where a lane's pieces lie: bytes from a tile's or a chunk's start that
/// depend on the lane, computed once in a kernel.
class LaneOffsets {
public:
  explicit LaneOffsets(Emitter &e) : e(e) {}
  /// Makes the offset that strides of `bytes` need, where the builder stands.
  void require(bool byGroup, int bytes);
  Value get(bool byGroup, int bytes) const;

private:
  Emitter &e;
  std::map<std::pair<bool, int>, Value> offsets;
};

/// What one lane loads of a part.
class TilePieces {
public:
  TilePieces(const TilesLayout &layout, TilePart part);

  void requireOffsets(LaneOffsets &lanes) const;
  int pieces() const { return static_cast<int>(list.size()); }
  int words() const { return wordCount; }
  int blocks() const { return part.blocks; }
  /// How many pieces of this part to load while the part before it is consumed
  /// up to `done` of `total` blocks.
  int piecesBy(int done, int total) const { return pieces() * done / total; }
  /// Bytes of all lanes' pieces in shared memory.
  int64_t sharedBytes() const { return sharedSize; }

protected:
  enum class Plane { Scale, Min, SubScale, SubMin, Low, High, Element };
  struct Piece {
    Plane plane;
    bool byGroup; // lanes of a row slot load the same
    int stride;   // bytes from lane to lane, or from slot to slot
    int64_t offset;
    int words; // 0: two bytes
    int index; // of the first word in its plane's lane
    int firstWord;
    int64_t sharedOffset;
    int bytes() const { return words ? 4 * words : 2; }
  };
  bool plain() const { return info.plain(); }
  int subBlocks() const { return plain() ? 0 : TileBlock / info.subBlock; }

  const TilesLayout &layout;
  const FormatInfo &info;
  const TileChunk &chunk;
  TilePart part;
  std::vector<Piece> list;
  int wordCount = 0;
  int64_t sharedSize = 0;

private:
  void addPiece(Plane plane, bool byGroup, int stride, int64_t offset,
                int bytes, int index);
  /// What the lanes of a row slot share: `perBlock` bytes a block, or in all.
  void addHeader(Plane plane, int64_t offset, int perBlock, bool inAll);
  void addCodes(Plane plane, const CodePlane &codes);
};

/// The registers of one part.
class Fragments : public TilePieces {
public:
  Fragments(Emitter &e, const TilesLayout &layout, TilePart part)
      : TilePieces(layout, part), e(e) {}

  /// Loads pieces [first, last) of the part; `base` points at what chunkOffset
  /// counts from. Where `predicate` is not null, only if it holds.
  void load(int first, int last, const LaneOffsets &lanes, Value base,
            Value predicate, Values &words) const;
  /// From here on the registers are these.
  void bind(ValueRange newWords);

  /// The same part by way of shared memory: sharedBytes() at a 16-byte aligned
  /// place, filled by one warp's copyAsync; any warp loads its pieces where
  /// they are first used after bindShared.
  void copyAsync(const LaneOffsets &lanes, Value base, Value place) const;
  void bindShared(Value place);

  /// Fragments of step `step` (0 or 1) of block `block` of the part, in the
  /// order in which they are multiplied: one, or high and low parts.
  llvm::SmallVector<Values> operands(int block, int step);

  /// Formats with codes: how many sub-blocks a block has, and the f32 scales
  /// and minimums (null where the format has none) of rows g and g + 8.
  using TilePieces::plain;
  using TilePieces::subBlocks;
  bool hasMinimums() const { return info.min != MinKind::None; }
  Value scale(int block, int sub, int half);
  Value minimum(int block, int sub, int half);

private:
  Value word(Plane plane, int index);
  Value half(Plane plane, int index); // an f16 of a plane, as f32
  Value byte(Plane plane, int index); // a signed byte of a plane, as f32
  Value codePair(int reg);
  Value integerPair(int reg);
  Value fromBiasedBytes(Value pair);
  Value lookUp(int reg);

  Emitter &e;
  Values registers;
  Value sharedPlace;                             // null: in registers already
  std::map<int, std::pair<Value, Value>> looked; // by word: lower, upper k
};

} // namespace kvc::nvptx

#endif // KVC_CODEGEN_NVPTX_FRAGMENTS_H
