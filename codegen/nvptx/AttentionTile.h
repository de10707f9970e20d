//===- AttentionTile.h - Queries against one tile of cached positions -----===//
//
// The arithmetic that decode and prefill share, so that their bits are the
// same: sixteen queries of one warp (rows g and g + 8 are a thread's, with
// lane = 4g + q) against TilePositions absolute positions of one kv head.
//
//   s   = Q K^T           mma in the cache's type, f32 sums
//   m   = max s           s in units of log2, hidden positions -inf
//   p   = 2^(s - m)       l = sum p in f32; P is p in the cache's type
//   O   = P V             from fresh zero
//
// Tiles merge in ascending order with mergeFactors(). A tile whose positions
// are all hidden has m = LowScore, l = 0, O = 0, and merging it changes
// nothing.
//
//===----------------------------------------------------------------------===//
#ifndef KVC_CODEGEN_NVPTX_ATTENTIONTILE_H
#define KVC_CODEGEN_NVPTX_ATTENTIONTILE_H

#include "codegen/nvptx/Emitter.h"

namespace kvc::nvptx {

constexpr int64_t TilePositions = 64;
/// Below every score, and finite: the difference of two of them is not a NaN.
constexpr double LowScore = -3.0e38;

struct AttentionShape {
  AttentionShape(CacheType cache, int64_t heads);

  Type element; // of the cache: bf16 or f16
  int64_t headDim, kvHeads, heads, group;
  int64_t padded;    // headDim up to whole k16 steps
  int64_t copyBytes; // of one asynchronous copy; 2: rows of odd dimensions

  int64_t steps() const { return padded / 16; }
  int64_t dimTiles() const { return padded / 8; }
  /// A row in shared memory: an odd number of 16-byte units, so that eight rows
  /// of an ldmatrix lie in different banks.
  int64_t rowBytes() const { return padded * 2 + 16; }
  int64_t tileBytes() const { return TilePositions * rowBytes(); }
  /// f32 of one head in a partial result, and the partial of one row and tile:
  /// O [heads][padded], then (m, l) [heads].
  int64_t partialHeadBytes() const { return padded * 4; }
  int64_t partialBytes() const;
};

/// What weighing leaves of a tile's scores, for rows g and g + 8; null where
/// those were left out.
struct TileWeights {
  Value maximum[2], sum[2];
  Values words; // P as A fragments: [step of 16 positions][4]
};

class AttentionTile {
public:
  AttentionTile(Emitter &e, const AttentionShape &shape, double scale);

  /// Zeroes the columns beyond head_dim of `rows` rows in shared memory: once,
  /// copies leave them alone.
  void clearPadding(Value tile, int64_t rows, Value thread, int64_t threads);
  /// Starts copying a page's plane of K or V, which lies `away` (i64) and
  /// `further` bytes from `base`: apart, because only one of them changes from
  /// tile to tile, and one address serves K and V. Rows from `valid` on become
  /// zero and are not read.
  void copy(Value tile, Value base, Value away, int64_t further, Value valid,
            Value thread, int64_t threads);

  /// A fragments of the queries at `rows` (global, of the cache's type) for
  /// k16 step `step`; zero where a row is null.
  Values query(const Value (&rows)[2], int64_t step);
  /// s of 64 positions: [n8 tile][4].
  Values scores(Value tile, llvm::function_ref<Values(int64_t step)> query);
  /// `s` times the scale in units of log2; then positions of the tile beyond
  /// `last` (row by row) are hidden.
  void scale(Values &s);
  void hide(Values &s, const Value (&last)[2]);
  /// For rows g, and g + 8 if `rows` is 2, not 1.
  TileWeights weigh(ValueRange s, int rows = 2);
  /// Calls `use(n8 tile of dimensions, 4 sums)` for all of O.
  void values(Value tile, const TileWeights &weights,
              llvm::function_ref<void(int64_t dimTile, const Values &)> use);

  /// Where a thread's values of a fragment lie.
  Value g, q;

private:
  Value queryWord(Value row, int64_t firstDim);

  Emitter &e;
  const AttentionShape &shape;
  double scaleLog2;
  // Byte offsets of the rows this lane names in ldmatrix, of K and of V.
  Value keyRow, valueRow;
};

struct MergeFactors {
  Value maximum, before, added;
};
MergeFactors mergeFactors(Emitter &e, Value maximum, Value tileMaximum);
/// x * before + y * added, for sums l and O.
Value merge(Emitter &e, const MergeFactors &factors, Value x, Value y);

/// O / l. A zero gets no sign: merging tiles that a row does not see may have
/// taken it.
Values finish(Emitter &e, Value sum, ValueRange outputs);

} // namespace kvc::nvptx

#endif // KVC_CODEGEN_NVPTX_ATTENTIONTILE_H
