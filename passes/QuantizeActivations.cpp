//===- QuantizeActivations.cpp - Where activations become 8 bits ----------===//
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
  }

private:
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
};

} // namespace
