//===- LinearGroups.cpp ---------------------------------------------------===//
#include "codegen/LinearGroups.h"

#include "llvm/ADT/SmallBitVector.h"

using namespace mlir;
using namespace kvc;

FailureOr<std::vector<LinearGroup>> kvc::linearGroups(LinearOp linear) {
  auto count = static_cast<int>(linear.getNumResults());
  SmallVector<int> groupOf(llvm::to_vector(llvm::seq<int>(0, count)));
  DenseMap<Value, llvm::SmallBitVector> reach;
  for (auto [index, result] : llvm::enumerate(linear.getOutputs())) {
    llvm::SmallBitVector bits(count);
    bits.set(static_cast<unsigned>(index));
    reach[result] = bits;
  }
  auto reachOf = [&](Operation *op) {
    llvm::SmallBitVector bits(count);
    for (Value operand : op->getOperands())
      if (auto it = reach.find(operand); it != reach.end())
        bits |= it->second;
    return bits;
  };
  SmallVector<Operation *> epilogue;
  for (Operation *op = linear->getNextNode();
       !op->hasTrait<OpTrait::IsTerminator>(); op = op->getNextNode()) {
    if (isa<ReadOp>(op))
      continue;
    llvm::SmallBitVector bits = reachOf(op);
    for (Value result : op->getResults())
      reach[result] = bits;
    if (bits.none())
      return op->emitOpError("stands behind the kernel's linear but does not "
                             "use its results");
    epilogue.push_back(op);
    // Keys and values are stored apart: they need not meet.
    if (isa<CacheAppendOp>(op))
      continue;
    int first = groupOf[bits.find_first()];
    for (unsigned bit : bits.set_bits()) {
      int other = groupOf[bit];
      std::replace(groupOf.begin(), groupOf.end(), other, first);
    }
  }
  std::vector<LinearGroup> groups;
  for (int leader = 0; leader < count; ++leader) {
    LinearGroup group;
    llvm::SmallBitVector mine(count);
    for (int segment = 0; segment < count; ++segment)
      if (groupOf[segment] == leader) {
        group.segments.push_back(segment);
        mine.set(segment);
      }
    if (group.segments.empty())
      continue;
    for (Operation *op : epilogue)
      if (reachOf(op).anyCommon(mine))
        group.epilogue.push_back(op);
    groups.push_back(std::move(group));
  }
  return groups;
}
