//===- WideRun.h - A block's tile of a linear of many tokens --------------===//
#ifndef KVC_CODEGEN_NVPTX_WIDERUN_H
#define KVC_CODEGEN_NVPTX_WIDERUN_H

#include "codegen/nvptx/LinearKernels.h"
#include "codegen/nvptx/LinearMath.h"

namespace kvc::nvptx {

/// How a block's tile is dealt to its warps. Tiles of all segments that meet in
/// an epilogue count.
struct WideShape {
  int warpRows, warpColumns; // warps along weight rows and tokens
  int tiles;                 // of 16 weight rows, a warp's
  int groups;                // of 8 tokens, a warp's

  int warps() const { return warpRows * warpColumns; }
  int threads() const { return 32 * warps(); }
  int blockTiles() const { return warpRows * tiles; }
  int tokens() const { return 8 * groups * warpColumns; }
};

/// One stage of a chunk.
struct WideStage {
  TilePart part;      // chunkOffset counts from the chunk, or the tile
  int64_t firstBlock; // of K, from the chunk or from 0
  bool endsSegment;
};

/// Stages that come `number` times further on, each time by so many blocks of K
/// and bytes of each segment of a group.
struct WideTurn {
  Value number;
  int64_t blocks;
  llvm::SmallVector<int64_t> bytes;
};

/// Blocks that compute a run's tiles, for each tile of tokens, and the shared
/// memory that one needs.
int64_t wideBlocks(const LinearRun &run, WideShape shape);
int64_t wideSharedBytes(const LinearRun &run, WideShape shape);

/// A block's tile of weight rows times tokens.
class WideRun {
public:
  WideRun(KernelContext &kernel, const LinearPlan &plan, const LinearRun &run,
          WideShape shape);

  /// `block` is one of the run's; it has `rows` tokens from `firstToken` on.
  void emit(Value block, Value firstToken, Value rows);

private:
  int segments() const { return static_cast<int>(run.layouts.size()); }
  int ownTiles() const { return shape.tiles / segments(); }
  int segmentTiles() const { return shape.blockTiles() / segments(); }
  /// Whether blocks have no tiles past a group's last one.
  bool fills(llvm::ArrayRef<int64_t> tiles) const;
  Value slotPlace(int slot, int64_t offset);
  int64_t tilePlace(int segment) const;
  void requireLanes();
  void choosePlaces(Value block);
  /// Starts the copies of a stage, given for each segment, to a slot of the
  /// ring. Without a turn, its address is made for it alone.
  void issue(const std::vector<WideStage> &stages, int slot,
             const WideTurn *turn = nullptr);
  void multiply(const std::vector<WideStage> &stages, int slot,
                llvm::MutableArrayRef<Values> sums);
  /// Waits for the next stage: every warp is done with the one before.
  void awaitStage();
  void multiplyAll();
  void multiplyChunks();
  void multiplyList();
  void addSegment(llvm::MutableArrayRef<Values> sums);
  void storeResults();
  void finishGroup(size_t number);

  KernelContext &kernel;
  Emitter &e;
  const LinearPlan &plan;
  const LinearRun &run;
  const WideShape shape;
  LaneOffsets lanes;
  Value ring;
  Value firstToken, rows, lane, warp, tid;
  Value source;       // row 0 of the activations
  int64_t stride = 0; // of a row
  // Of this thread: which piece of which row it copies, from where, where to.
  Value copyFrom, copyTo, copyRow, copyPiece;
  // Of this warp: the tiles that it copies.
  struct Copy {
    int segment;
    Value tile, valid, base;
  };
  std::vector<Copy> copies;
  Value group;                // number in the run
  Value groupTile;            // the block's first tile in the group
  Value groupTiles;           // tiles that the group has
  std::vector<Values> totals; // by tile of the warp and group of tokens
  int lastSlot = 0;           // of the ring, that is multiplied last
};

} // namespace kvc::nvptx

#endif // KVC_CODEGEN_NVPTX_WIDERUN_H
