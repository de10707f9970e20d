//===- SetTarget.cpp - The choices of one compilation ---------------------===//
#include "passes/Levels.h"
#include "passes/Passes.h"
#include "passes/TargetInfo.h"

using namespace mlir;
using namespace kvc;

namespace kvc {
#define GEN_PASS_DEF_SETTARGET
#include "passes/Passes.h.inc"
} // namespace kvc

namespace {

class SetTargetPass : public kvc::impl::SetTargetBase<SetTargetPass> {
public:
  using SetTargetBase::SetTargetBase;

  void runOnOperation() override {
    if (failed(setTarget(getOperation())))
      signalPassFailure();
  }

private:
  LogicalResult setTarget(ModelOp model) {
    for (auto weight : model.getOps<WeightOp>())
      if (weight.getWeightType().getLayout())
        return ruleError(weight) << "is packed for a target already: "
                                    "kvc-set-target comes before "
                                    "kvc-pack-weights";
    MLIRContext *context = &getContext();
    std::string error;
    TargetAttr resolved = resolveTarget(
        context, {target, targetCpu, vectorWidth, ptxVersion}, error);
    if (!resolved)
      return ruleError(model) << error;
    Type element = llvm::StringSwitch<Type>(kvType.getValue())
                       .Case("f32", Float32Type::get(context))
                       .Case("f16", Float16Type::get(context))
                       .Case("bf16", BFloat16Type::get(context))
                       .Default({});
    if (!element)
      return ruleError(model)
             << "kv-type is f32, f16 or bf16, found '" << kvType << "'";
    llvm::StringRef chosen = activations.getValue();
    if (chosen.empty())
      chosen = defaultActivations(resolved);
    error = activationsError(resolved, chosen);
    if (error.empty())
      error = cacheElementError(resolved, element);
    if (!error.empty())
      return ruleError(model) << error;
    int64_t made = static_cast<int64_t>(model.getMaxContext());
    if (ctx < 0 || ctx > made)
      return ruleError(model)
             << "ctx must be from 1 to the " << made
             << " positions the model was made for, found " << ctx.getValue();

    model.setTargetAttr(resolved);
    model.setActivations(chosen);
    if (ctx != 0)
      model.setMaxContext(ctx);
    for (auto cache : model.getOps<CacheOp>())
      cache.setType(cacheFor(resolved, cache.getCacheType(), element));
    return success();
  }
};

} // namespace
