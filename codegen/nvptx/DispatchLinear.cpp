//===- DispatchLinear.cpp - Linears: which kernels serve which rows -------===//
#include "codegen/nvptx/Dispatch.h"
#include "codegen/nvptx/LinearKernels.h"

using namespace mlir;
using namespace kvc;
using namespace kvc::nvptx;

LogicalResult kvc::nvptx::emitLinear(DispatchContext &context,
                                     LinearOp linear) {
  FailureOr<LinearPlan> plan = LinearPlan::get(linear);
  if (failed(plan))
    return failure();
  for (const LinearGroup &group : plan->groups)
    if (failed(PairEpilogue::check(*plan, group)))
      return failure();
  // Few rows run their prologue where they are multiplied, unless they do not
  // fit; many would repeat it in every block.
  bool fits = narrowSharedBytes(*plan) <= context.model.target.sharedBytes;
  bool inKernel = !plan->input && fits;
  if (!plan->input &&
      failed(emitStage(context, *plan, inKernel ? NarrowTokens + 1 : 1)))
    return failure();
  for (auto [number, formats] : llvm::enumerate(plan->classes)) {
    std::string suffix;
    if (plan->classes.size() > 1)
      suffix = "_c" + std::to_string(number);
    if (failed(emitNarrowLinear(context, *plan, formats, suffix, inKernel)) ||
        failed(emitWideLinear(context, *plan, formats, suffix)))
      return failure();
  }
  return success();
}
