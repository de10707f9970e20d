//===- PackWeights.cpp - Layouts and places of the weights ----------------===//
#include "dialect/PackedWeights.h"
#include "passes/KernelFusion.h"
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
  MatrixUse matrix;
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
  LogicalResult noteResult(LinearOp linear, FlatSymbolRefAttr symbol,
                           Value output);
  LogicalResult chooseLayout(WeightOp weight);
  LogicalResult place(WeightOp weight, int64_t layer);

  llvm::DenseMap<WeightOp, WeightUse> uses;
  llvm::DenseMap<WeightOp, llvm::SmallVector<int64_t>> offsets;
  TargetAttr target;
  int64_t arenaBytes = 0;
};

} // namespace

/// The rotation of a linear's result, null if it is not rotated.
static RopeOp rotationOf(Value output) {
  for (Operation *user : usersOf(output))
    if (auto rope = dyn_cast<RopeOp>(user))
      return rope;
  return {};
}

/// Notes how a linear's result is used: a weight has one layout, whatever uses
/// it.
LogicalResult PackWeightsPass::noteResult(LinearOp linear,
                                          FlatSymbolRefAttr symbol,
                                          Value output) {
  MatrixUse &use = uses[lookupWeight(linear, symbol)].matrix;
  auto type = cast<RankedTensorType>(output.getType());
  int64_t headDim = type.getRank() == 3 ? type.getDimSize(2) : 0;
  if (use.headDim != 0 && headDim != 0 && use.headDim != headDim)
    return ruleError(linear) << "uses " << symbol << " with heads of "
                             << headDim << ", another use has " << use.headDim
                             << ": a weight has one packed layout";
  if (headDim != 0)
    use.headDim = headDim;
  RopeOp rope = rotationOf(output);
  if (!rope)
    return success();
  auto pairs = static_cast<int64_t>(rope.getInvFreq().size());
  if (use.rope && (*use.rope != rope.getLayout() || use.ropePairs != pairs))
    return ruleError(linear)
           << "has a result of " << symbol << " that is rotated as " << pairs
           << " pairs (" << stringifyRopeLayout(rope.getLayout())
           << "), another use as " << use.ropePairs << " ("
           << stringifyRopeLayout(*use.rope)
           << "): a weight has one packed layout";
  use.rope = rope.getLayout();
  use.ropePairs = pairs;
  return success();
}

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
        auto symbol = cast<FlatSymbolRefAttr>(weight);
        use(op, symbol);
        if (failed(noteResult(linear, symbol, output)))
          return WalkResult::interrupt();
      }
    }
    return WalkResult::advance();
  });
  return failure(result.wasInterrupted());
}

LogicalResult PackWeightsPass::chooseLayout(WeightOp weight) {
  WeightType type = weight.getWeightType();
  if (!type.isMatrix())
    return success();
  type = type.withLayout(matrixLayout(target, type, uses[weight].matrix));
  for (auto slice : weight.getSlices().getAsRange<SliceAttr>()) {
    std::string error = packingError(type, slice.getFormat());
    if (!error.empty())
      return ruleError(weight) << "cannot be packed: " << error;
  }
  weight.setType(type);
  return success();
}

LogicalResult PackWeightsPass::place(WeightOp weight, int64_t layer) {
  int64_t bytes =
      packedBytes(weight.getWeightType(), weight.getSlice(layer).getFormat());
  int64_t alignment = weightAlignment(target);
  offsets[weight].push_back(arenaBytes);
  int64_t end = 0;
  if (llvm::AddOverflow(arenaBytes, bytes, end) ||
      end > std::numeric_limits<int64_t>::max() - alignment)
    return ruleError(weight)
           << "ends beyond the largest size an arena can have";
  arenaBytes = llvm::alignTo(end, alignment);
  return success();
}

LogicalResult PackWeightsPass::pack(ModelOp model) {
  if (failed(requireProgramsOfValues(model, getArgument())))
    return failure();
  target = model.getTargetAttr();
  if (!target)
    return ruleError(model) << "has no target: kvc-pack-weights comes after "
                               "kvc-set-target";
  if (model.getWeightsBytes())
    return ruleError(model) << "has its weights packed already";
  if (failed(collectUses(model)))
    return failure();

  llvm::SmallVector<WeightOp> first, layered, last;
  for (auto weight : model.getOps<WeightOp>()) {
    if (!uses[weight].used)
      continue;
    if (failed(chooseLayout(weight)))
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
