//===- LinearPlan.h - What a linear's kernels compute ---------------------===//
#ifndef KVC_CODEGEN_NVPTX_LINEARPLAN_H
#define KVC_CODEGEN_NVPTX_LINEARPLAN_H

#include "codegen/LinearGroups.h"
#include "codegen/formats/Tiles.h"
#include "codegen/nvptx/ProgramContext.h"

namespace kvc::nvptx {

/// One weight of the linear.
struct LinearSegment {
  Value result;
  WeightOp weight;
  mlir::FlatSymbolRefAttr bias; // null without
};

/// Layers that store every weight of the linear in the same formats: they share
/// kernels. Code grows with classes, not with layers.
struct LinearClass {
  llvm::SmallVector<int64_t> layers; // empty: all
  std::vector<Format> formats;       // by segment
};

/// Groups whose tiles are walked by one loop: as many segments each, in the
/// same formats.
struct LinearRun {
  llvm::SmallVector<int> groups;
  std::vector<TilesLayout> layouts; // by segment of a group, rows aside
  llvm::SmallVector<int64_t> tiles; // by group
  /// Each group's weights begin where those of the one before end.
  bool contiguous = false;
  int64_t totalTiles() const {
    return std::accumulate(tiles.begin(), tiles.end(), int64_t{0});
  }
};

struct LinearPlan {
  LinearOp linear;
  std::vector<LinearSegment> segments;
  std::vector<LinearGroup> groups;
  std::vector<LinearClass> classes;
  llvm::SmallVector<mlir::Operation *> prologue; // without reads
  SlotAttr input; // null where a prologue makes the input
  Extent extent = Extent::Rows;
  int64_t columns = 0; // K
  int splits = 1;

  /// The plan, or an error on the op that has none.
  static llvm::FailureOr<LinearPlan> get(LinearOp linear);
  TilesLayout layout(const LinearClass &formats, int segment) const;
  std::vector<LinearRun> runs(const LinearClass &formats) const;

private:
  bool isContiguous(const LinearRun &run, const LinearClass &formats) const;
  mlir::LogicalResult collectSegments();
  mlir::LogicalResult collectGroups();
  void collectClasses();
};

} // namespace kvc::nvptx

#endif // KVC_CODEGEN_NVPTX_LINEARPLAN_H
