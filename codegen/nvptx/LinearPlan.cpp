//===- LinearPlan.cpp - What a linear's kernels compute -------------------===//
#include "codegen/nvptx/LinearPlan.h"

#include "llvm/ADT/SmallBitVector.h"

using namespace mlir;
using namespace kvc;
using namespace kvc::nvptx;

LogicalResult LinearPlan::collectSegments() {
  Value value = linear.getInput();
  extent = KernelContext::extentOf(value.getType());
  columns = rowElements(value.getType());
  if (auto read = value.getDefiningOp<ReadOp>()) {
    input = read.getSlot();
    if (input.getElement() != SlotElement::BF16)
      return linear.emitOpError("reads a slot of bf16 on cuda, found ")
             << stringifySlotElement(input.getElement());
  }
  for (Operation &op : *linear->getBlock()) {
    if (&op == linear.getOperation())
      break;
    if (!isa<ReadOp>(op))
      prologue.push_back(&op);
  }
  if (!input && prologue.empty())
    return linear.emitOpError("needs its input in a slot");
  for (auto [index, symbol] :
       llvm::enumerate(linear.getWeights().getAsRange<FlatSymbolRefAttr>())) {
    LinearSegment segment;
    segment.result = linear.getOutputs()[index];
    segment.weight = lookupWeight(linear, symbol);
    TilesAttr tiles = segment.weight.getWeightType().getTiles();
    if (!tiles || !segment.weight.getOffsets())
      return linear.emitOpError("multiplies with ")
             << symbol << ", which is not packed in tiles";
    splits = static_cast<int>(tiles.getSplits());
    if (auto biases = linear.getBiases())
      segment.bias = dyn_cast<FlatSymbolRefAttr>((*biases)[index]);
    segments.push_back(segment);
  }
  return success();
}

LogicalResult LinearPlan::collectGroups() {
  int count = static_cast<int>(segments.size());
  SmallVector<int> groupOf(llvm::to_vector(llvm::seq<int>(0, count)));
  DenseMap<Value, llvm::SmallBitVector> reach;
  for (auto [index, segment] : llvm::enumerate(segments)) {
    llvm::SmallBitVector bits(count);
    bits.set(static_cast<unsigned>(index));
    reach[segment.result] = bits;
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
    TilesAttr first =
        segments[group.segments[0]].weight.getWeightType().getTiles();
    int64_t rows = segments[group.segments[0]].weight.getWeightType().getRows();
    for (int segment : group.segments) {
      WeightType type = segments[segment].weight.getWeightType();
      if (type.getTiles() != first || type.getRows() != rows)
        return linear.emitOpError("has segments that meet in the epilogue but "
                                  "differ in rows or tiles: ")
               << rows << " in " << first << " and " << type.getRows() << " in "
               << type.getTiles();
    }
    groups.push_back(std::move(group));
  }
  return success();
}

void LinearPlan::collectClasses() {
  int64_t layers = 1;
  for (LinearSegment &segment : segments)
    layers = std::max(layers, segment.weight.getWeightType().getLayers());
  for (int64_t layer = 0; layer < layers; ++layer) {
    std::vector<Format> formats;
    for (LinearSegment &segment : segments) {
      int64_t slices = segment.weight.getWeightType().getLayers();
      formats.push_back(static_cast<Format>(
          segment.weight.getSlice(std::min(layer, slices - 1)).getFormat()));
    }
    auto *found = llvm::find_if(classes, [&](const LinearClass &known) {
                    return known.formats == formats;
                  }).base();
    if (found == classes.data() + classes.size()) {
      classes.push_back({{}, formats});
      found = &classes.back();
    }
    found->layers.push_back(layer);
  }
  if (classes.size() == 1)
    classes[0].layers.clear();
}

FailureOr<LinearPlan> LinearPlan::get(LinearOp linear) {
  LinearPlan plan;
  plan.linear = linear;
  if (failed(plan.collectSegments()) || failed(plan.collectGroups()))
    return failure();
  plan.collectClasses();
  return plan;
}

TilesLayout LinearPlan::layout(const LinearClass &formats, int segment) const {
  WeightOp weight = segments[segment].weight;
  WeightType type = weight.getWeightType();
  TilesAttr tiles = type.getTiles();
  return tilesLayout(formats.formats[segment], type.getRows(),
                     type.getColumns(), tiles.getUnit(), tiles.getPair(),
                     static_cast<int>(tiles.getSplits()));
}

std::vector<LinearRun> LinearPlan::runs(const LinearClass &formats) const {
  std::vector<LinearRun> runs;
  for (auto [number, group] : llvm::enumerate(groups)) {
    std::vector<TilesLayout> layouts;
    for (int segment : group.segments)
      layouts.push_back(layout(formats, segment));
    auto same = [&](const LinearRun &run) {
      if (run.layouts.size() != layouts.size())
        return false;
      for (auto [mine, other] : llvm::zip(layouts, run.layouts))
        if (mine.format != other.format)
          return false;
      return true;
    };
    auto found = llvm::find_if(runs, same);
    if (found == runs.end()) {
      runs.push_back({{}, layouts, {}});
      found = std::prev(runs.end());
    }
    found->groups.push_back(static_cast<int>(number));
    found->tiles.push_back(layouts[0].tiles);
  }
  return runs;
}
