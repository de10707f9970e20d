//===- PairEpilogue.h - A linear's epilogue on pairs of rows --------------===//
//
// A thread holds, for one token, two values of each weight of a group: those of
// the weight rows g and g + 8 of a tile, which are a rotated pair where the
// epilogue rotates. What the ops read besides is loaded ahead of the products
// (prepare), so that nothing waits behind the last sum (finish).
//
//===----------------------------------------------------------------------===//
#ifndef KVC_CODEGEN_NVPTX_PAIREPILOGUE_H
#define KVC_CODEGEN_NVPTX_PAIREPILOGUE_H

#include "codegen/nvptx/LinearPlan.h"

#include "llvm/ADT/DenseMap.h"

namespace kvc::nvptx {

class PairEpilogue {
public:
  using Pair = std::pair<Value, Value>;

  PairEpilogue(KernelContext &kernel, const LinearPlan &plan,
               const LinearGroup &group);

  /// Whether the group's ops can be emitted; prints the error.
  static mlir::LogicalResult check(const LinearPlan &plan,
                                   const LinearGroup &group);

  /// Where a pair lies: i32.
  struct Place {
    Value row; // of the linear's extent; any valid row where there is none
    Value pairInUnit;
    Value columns[2]; // rows of the weight, clamped to valid ones
    Value valid[2];   // i1; null: always
  };
  Place place(Value tile, Value slot, Value row);

  /// Loads what the ops read: a fixed number of values of fixed types. May
  /// run for places whose row is not stored.
  Values prepare(const Place &place);
  llvm::SmallVector<Type> preparedTypes();
  /// Runs the ops on `values`, a pair for each segment of the group.
  void finish(const Place &place, ValueRange prepared,
              llvm::ArrayRef<Pair> values);

private:
  int64_t pairsOfUnit() const;
  void findLimits();
  bool mine(Value value);
  Value columnAddress(SlotAttr slot, const Place &place, int half);
  void storePair(const Place &place, Type element, Pair values,
                 llvm::function_ref<Value(int half)> address);

  KernelContext &kernel;
  Emitter &e;
  const LinearPlan &plan;
  const LinearGroup &group;
  TilesAttr tiles;
  int64_t rows;
  // By half of a pair: whether some slots lie beyond their unit, or the matrix.
  bool leavesUnit[2] = {false, false};
  bool leavesRows[2] = {false, false};
  llvm::SmallVector<Value> reads; // by kvc.read, whole rows of other slots
  llvm::DenseMap<Value, Pair> known;
};

} // namespace kvc::nvptx

#endif // KVC_CODEGEN_NVPTX_PAIREPILOGUE_H
