//===- PackWeights.cpp - Layouts and places of the weights ----------------===//
#include "codegen/formats/Packing.h"
#include "passes/Levels.h"
#include "passes/Passes.h"
#include "passes/TargetInfo.h"

#include "llvm/Support/MathExtras.h"

using namespace mlir;
using namespace kvc;

namespace kvc {
#define GEN_PASS_DEF_PACKWEIGHTS
#include "passes/Passes.h.inc"
} // namespace kvc

namespace {

/// How the programs use a weight.
struct WeightUse {
  bool used = false;
  bool gathered = false; // embedded from, before any layer
  int64_t headDim = 0;   // of a linear's result, where heads are a dimension
};

class PackWeightsPass : public kvc::impl::PackWeightsBase<PackWeightsPass> {
public:
  void runOnOperation() override {
    if (failed(pack(getOperation())))
      signalPassFailure();
  }

private:
  LogicalResult pack(ModelOp model);
  LogicalResult collectUses(ModelOp model);
  LogicalResult chooseLayout(WeightOp weight, int64_t lanes);
  LogicalResult place(WeightOp weight, int64_t layer);

  llvm::DenseMap<WeightOp, WeightUse> uses;
  llvm::DenseMap<WeightOp, llvm::SmallVector<int64_t>> offsets;
  int64_t arenaBytes = 0;
};

} // namespace

/// Rows a unit has where no head decides: few enough that workers share a small
/// matrix evenly, more where there are plenty.
static int64_t defaultUnit(int64_t rows) { return rows > 8192 ? 64 : 32; }

LogicalResult PackWeightsPass::collectUses(ModelOp model) {
  auto use = [&](Operation *op, FlatSymbolRefAttr symbol) -> WeightUse & {
    WeightUse &entry = uses[lookupWeight(op, symbol)];
    entry.used = true;
    return entry;
  };
  WalkResult result = model.walk([&](Operation *op) {
    if (auto embed = dyn_cast<EmbedOp>(op)) {
      use(op, embed.getWeightAttr()).gathered = true;
    } else if (auto positions = dyn_cast<AddPositionsOp>(op)) {
      use(op, positions.getWeightAttr()).gathered = true;
    } else if (auto norm = dyn_cast<RmsNormOp>(op)) {
      use(op, norm.getWeightAttr());
    } else if (auto norm = dyn_cast<LayerNormOp>(op)) {
      use(op, norm.getWeightAttr());
      if (auto bias = norm.getBiasAttr())
        use(op, bias);
    } else if (auto linear = dyn_cast<LinearOp>(op)) {
      if (auto biases = linear.getBiases())
        for (Attribute bias : *biases)
          if (auto symbol = dyn_cast<FlatSymbolRefAttr>(bias))
            use(op, symbol);
      for (auto [weight, output] :
           llvm::zip_equal(linear.getWeights(), linear.getOutputs())) {
        WeightUse &entry = use(op, cast<FlatSymbolRefAttr>(weight));
        auto type = cast<RankedTensorType>(output.getType());
        int64_t headDim = type.getRank() == 3 ? type.getDimSize(2) : 0;
        if (entry.headDim != 0 && headDim != 0 && entry.headDim != headDim) {
          ruleError(linear) << "uses " << weight << " with heads of " << headDim
                            << ", another use has " << entry.headDim
                            << ": a weight has one packed layout";
          return WalkResult::interrupt();
        }
        if (headDim != 0)
          entry.headDim = headDim;
      }
    }
    return WalkResult::advance();
  });
  return failure(result.wasInterrupted());
}

LogicalResult PackWeightsPass::chooseLayout(WeightOp weight, int64_t lanes) {
  WeightType type = weight.getWeightType();
  if (!type.isMatrix())
    return success();
  const WeightUse &use = uses[weight];
  int64_t unit = use.headDim != 0 ? use.headDim : defaultUnit(type.getRows());
  for (auto slice : weight.getSlices().getAsRange<SliceAttr>()) {
    std::string error =
        packedLayoutError(static_cast<Format>(slice.getFormat()),
                          type.getRows(), type.getColumns(), lanes, unit);
    if (!error.empty())
      return ruleError(weight) << "cannot be packed: " << error;
  }
  weight.setType(type.withLayout(PanelsAttr::get(&getContext(), lanes, unit)));
  return success();
}

LogicalResult PackWeightsPass::place(WeightOp weight, int64_t layer) {
  WeightType type = weight.getWeightType();
  // Vectors are stored as f32.
  int64_t bytes = type.getRows() * 4;
  if (PanelsAttr panels = type.getLayout()) {
    auto slice = cast<SliceAttr>(weight.getSlices()[layer]);
    bytes = packedLayout(static_cast<Format>(slice.getFormat()), type.getRows(),
                         type.getColumns(), panels.getLanes(), panels.getUnit())
                .totalBytes;
  }
  offsets[weight].push_back(arenaBytes);
  int64_t end = 0;
  if (llvm::AddOverflow(arenaBytes, bytes, end) ||
      end > std::numeric_limits<int64_t>::max() - PanelAlignment)
    return ruleError(weight)
           << "ends beyond the largest size an arena can have";
  arenaBytes = llvm::alignTo(end, PanelAlignment);
  return success();
}

LogicalResult PackWeightsPass::pack(ModelOp model) {
  if (failed(requireProgramsOfValues(model, getArgument())))
    return failure();
  TargetAttr target = model.getTargetAttr();
  if (!target)
    return ruleError(model) << "has no target: kvc-pack-weights comes after "
                               "kvc-set-target";
  if (model.getWeightsBytes())
    return ruleError(model) << "has its weights packed already";
  int64_t lanes = vectorLanes(target);
  if (failed(collectUses(model)))
    return failure();

  llvm::SmallVector<WeightOp> first, layered, last;
  for (auto weight : model.getOps<WeightOp>()) {
    if (!uses[weight].used)
      continue;
    if (failed(chooseLayout(weight, lanes)))
      return failure();
    ++numPacked;
    if (weight.getWeightType().getLayers() > 1)
      layered.push_back(weight);
    else
      (uses[weight].gathered ? first : last).push_back(weight);
  }
  // A layer's weights lie together: a step reads the arena once, in order.
  int64_t layers = 0;
  for (WeightOp weight : layered)
    layers = std::max(layers, weight.getWeightType().getLayers());
  for (WeightOp weight : first)
    if (failed(place(weight, 0)))
      return failure();
  for (int64_t layer = 0; layer < layers; ++layer)
    for (WeightOp weight : layered)
      if (layer < weight.getWeightType().getLayers() &&
          failed(place(weight, layer)))
        return failure();
  for (WeightOp weight : last)
    if (failed(place(weight, 0)))
      return failure();
  for (auto &[weight, places] : offsets)
    WeightOp(weight).setOffsets(places);
  model.setWeightsBytes(arenaBytes);
  return success();
}
