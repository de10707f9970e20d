//===- NarrowRun.h - The walk over tiles of a linear of few tokens --------===//
#ifndef KVC_CODEGEN_NVPTX_NARROWRUN_H
#define KVC_CODEGEN_NVPTX_NARROWRUN_H

#include "codegen/nvptx/LinearKernels.h"
#include "codegen/nvptx/LinearMath.h"

namespace kvc::nvptx {

/// What a warp multiplies with: the B fragments of the two steps of block
/// `block` behind block `from` of K.
using ActivationsOf = llvm::function_ref<Values(Value from, int block)>;

/// Tiles of one run, as the warps walk them.
class NarrowRun {
public:
  /// Shared memory for two buffers of every warp's sums, so that a tile's may
  /// be written while the last one's are still read.
  static int64_t sumBytes(const LinearPlan &plan);

  NarrowRun(KernelContext &kernel, const LinearPlan &plan, LinearRun run);

  /// Ahead of the wait: addresses, and the first loads. `firstTile` may be none
  /// of the run's unless `certain`.
  void begin(Value firstTile, bool certain);
  /// The loop over tiles, `rows` tokens, with the warps' sums in `sumSpace`.
  void walk(Value rows, ActivationsOf activations, Value sumSpace);

private:
  /// A chunk's part of a segment, in the order in which they are consumed.
  struct Item {
    int segment;
    Fragments fragments;
  };
  /// What a warp with `blocks` blocks of K does for a tile: the items once, or
  /// where `repeats`, once for each 8 blocks.
  struct Path {
    int64_t blocks;
    bool repeats;
    std::vector<Item> items;
  };
  void addItems(Path &path, int blocks, int64_t firstBlock,
                llvm::MutableArrayRef<int64_t> offsets);
  std::vector<Value> tileBases(Value tile);
  Values runItems(Path &path, llvm::ArrayRef<Value> bases, Value from,
                  ValueRange window, Value next, Value nextValid,
                  ActivationsOf activations, std::vector<Values> &sums);
  Values runPath(Path &path, llvm::ArrayRef<Value> bases, ValueRange window,
                 Value next, Value nextValid, ActivationsOf activations,
                 std::vector<Values> &sums);
  Values runTile(llvm::ArrayRef<Value> bases, ValueRange window, Value next,
                 Value nextValid, ActivationsOf activations,
                 std::vector<Values> &sums);
  /// Calls `body(group, tile of the group)` for the group that has the tile.
  void forGroup(Value tile, llvm::function_ref<void(size_t, Value)> body);
  Values prepare(Value tile, Value slot, Value row);
  void finish(Value tile, Value slot, Value row, ValueRange prepared,
              Value sums);

  KernelContext &kernel;
  Emitter &e;
  const LinearPlan &plan;
  LinearRun run;
  LaneOffsets lanes;
  std::vector<Path> paths;
  std::vector<std::vector<int>> firstBlocks; // by path, by item
  std::vector<std::vector<Value>> weights;   // by group, by its segments
  std::vector<PairEpilogue> epilogues;       // by group of the run
  std::vector<Value> segmentOffsets;         // by segment of a group
  Value segmentBlock, segmentBlocks;         // of K, this warp's
  Value first;
  Values window;
};

} // namespace kvc::nvptx

#endif // KVC_CODEGEN_NVPTX_NARROWRUN_H
