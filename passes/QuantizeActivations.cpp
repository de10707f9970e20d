//===- QuantizeActivations.cpp - Where activations become 8 or 16 bits ----===//
#include "passes/Levels.h"
#include "passes/Passes.h"

using namespace mlir;
using namespace kvc;

namespace kvc {
#define GEN_PASS_DEF_QUANTIZEACTIVATIONS
#include "passes/Passes.h.inc"
} // namespace kvc

/// All weights of the linear, in all layers, are block-quantised.
static bool hasQuantizedWeights(LinearOp linear) {
  return llvm::all_of(
      linear.getWeights().getAsRange<FlatSymbolRefAttr>(),
      [&](FlatSymbolRefAttr symbol) {
        return llvm::all_of(
            lookupWeight(linear, symbol).getSlices().getAsRange<SliceAttr>(),
            [](SliceAttr slice) {
              WeightFormat format = slice.getFormat();
              return format != WeightFormat::F32 &&
                     format != WeightFormat::F16 &&
                     format != WeightFormat::BF16;
            });
      });
}

namespace {

class QuantizeActivationsPass
    : public kvc::impl::QuantizeActivationsBase<QuantizeActivationsPass> {
public:
  void runOnOperation() override {
    ModelOp model = getOperation();
    if (failed(requireProgramsOfValues(model, getArgument())))
      return signalPassFailure();
    if (model.getActivations() == "int8")
      model.walk([&](LinearOp linear) { quantizeInput(linear); });
    if (model.getActivations() == "bf16")
      model.walk([&](Operation *op) { roundInput(op); });
  }

private:
  static Type elementOf(Operation *op, FlatSymbolRefAttr cache) {
    return lookupCache(op, cache).getCacheType().getType();
  }

  /// A linear's input, and a query as the keys it meets are kept.
  void roundInput(Operation *op) {
    Type element;
    if (isa<LinearOp>(op)) {
      element = BFloat16Type::get(&getContext());
    } else if (auto scores = dyn_cast<ScoresOp>(op)) {
      element = elementOf(scores, scores.getCacheAttr());
    } else if (auto attention = dyn_cast<AttentionOp>(op)) {
      element = elementOf(attention, attention.getCacheAttr());
      if (!element.isF32())
        attention.setWeights(element);
    }
    if (!element || element.isF32())
      return;
    OpOperand &use = op->getOpOperand(0);
    Value input = use.get();
    auto before = input.getDefiningOp<RoundOp>();
    if (before && before.getElement() == element)
      return;
    RoundOp &round = rounded[{input, element}];
    if (!round) {
      OpBuilder builder(op);
      builder.setInsertionPointAfterValue(input);
      round = RoundOp::create(builder, op->getLoc(), input, element);
      ++numQuantized;
    }
    use.set(round);
  }

  void quantizeInput(LinearOp linear) {
    Value input = linear.getInput();
    if (input.getDefiningOp<QuantizeOp>() || !hasQuantizedWeights(linear))
      return;
    QuantizeOp &quantize = quantized[input];
    if (!quantize) {
      OpBuilder builder(linear);
      builder.setInsertionPointAfterValue(input);
      quantize = QuantizeOp::create(builder, linear.getLoc(), input);
      ++numQuantized;
    }
    linear.getInputMutable().assign(quantize);
  }

  llvm::DenseMap<Value, QuantizeOp> quantized;
  llvm::DenseMap<std::pair<Value, Type>, RoundOp> rounded;
};

} // namespace
