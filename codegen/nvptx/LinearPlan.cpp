//===- LinearPlan.cpp - What a linear's kernels compute -------------------===//
#include "codegen/nvptx/LinearPlan.h"

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
  FailureOr<std::vector<LinearGroup>> found = linearGroups(linear);
  if (failed(found))
    return failure();
  groups = std::move(*found);
  for (const LinearGroup &group : groups) {
    WeightType first = segments[group.segments[0]].weight.getWeightType();
    for (int segment : group.segments) {
      WeightType type = segments[segment].weight.getWeightType();
      if (type.getTiles() != first.getTiles() ||
          type.getRows() != first.getRows())
        return linear.emitOpError("has segments that meet in the epilogue but "
                                  "differ in rows or tiles: ")
               << first.getRows() << " in " << first.getTiles() << " and "
               << type.getRows() << " in " << type.getTiles();
    }
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

bool LinearPlan::isContiguous(const LinearRun &run,
                              const LinearClass &formats) const {
  auto offset = [&](size_t group, size_t position, int64_t layer) {
    int segment = groups[run.groups[group]].segments[position];
    WeightOp weight = segments[segment].weight;
    ArrayRef<int64_t> offsets = *weight.getOffsets();
    return offsets.size() == 1 ? offsets[0] : offsets[layer];
  };
  auto follow = [&](int64_t layer) {
    for (size_t group = 1; group < run.groups.size(); ++group)
      for (auto [position, layout] : llvm::enumerate(run.layouts))
        if (offset(group, position, layer) !=
            offset(group - 1, position, layer) +
                run.tiles[group - 1] * layout.tileBytes)
          return false;
    return true;
  };
  if (!formats.layers.empty())
    return llvm::all_of(formats.layers, follow);
  WeightOp weight = segments[0].weight;
  int64_t layers = weight.getWeightType().getLayers();
  return llvm::all_of(llvm::seq<int64_t>(layers), follow);
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
      runs.push_back({{}, layouts, {}, false});
      found = std::prev(runs.end());
    }
    found->groups.push_back(static_cast<int>(number));
    found->tiles.push_back(layouts[0].tiles);
  }
  for (LinearRun &run : runs)
    run.contiguous = isContiguous(run, formats);
  return runs;
}
