//===- ConvertToNvvm.cpp - From the schedule to kernels and launches ------===//
#include "codegen/nvptx/Dispatch.h"
#include "codegen/nvptx/Passes.h"

#include "mlir/Conversion/ArithToLLVM/ArithToLLVM.h"
#include "mlir/Conversion/ControlFlowToLLVM/ControlFlowToLLVM.h"
#include "mlir/Conversion/MathToLLVM/MathToLLVM.h"
#include "mlir/Conversion/ReconcileUnrealizedCasts/ReconcileUnrealizedCasts.h"
#include "mlir/Conversion/SCFToControlFlow/SCFToControlFlow.h"
#include "mlir/Transforms/Passes.h"

using namespace mlir;
using namespace kvc;
using namespace kvc::nvptx;

namespace kvc::nvptx {
#define GEN_PASS_DEF_CONVERTTONVVM
#define GEN_PASS_REGISTRATION
#include "codegen/nvptx/Passes.h.inc"
} // namespace kvc::nvptx

namespace {

/// One program to kernels, and the list of their launches.
class ProgramEmitter {
public:
  ProgramEmitter(ModelContext &model, ProgramOp program,
                 std::vector<Launch> &launches)
      : model(model), program(program), launches(launches) {}

  LogicalResult emit(Block &block, std::optional<int64_t> layers = {});

private:
  LogicalResult emitDispatch(DispatchContext &context);

  ModelContext &model;
  ProgramOp program;
  std::vector<Launch> &launches;
};
} // namespace

LogicalResult ProgramEmitter::emitDispatch(DispatchContext &context) {
  Operation *anchor = context.dispatch.getAnchor();
  if (!anchor)
    return emitRows(context);
  if (auto linear = dyn_cast<LinearOp>(anchor))
    return emitLinear(context, linear);
  return emitAttention(context, cast<AttentionOp>(anchor));
}

LogicalResult ProgramEmitter::emit(Block &block,
                                   std::optional<int64_t> layers) {
  std::vector<DispatchContext> dispatches;
  for (Operation &op : block.without_terminator()) {
    // Launches of a list run one after the other: that is the barrier.
    if (isa<BarrierOp>(op))
      continue;
    if (auto dispatch = dyn_cast<DispatchOp>(op)) {
      DispatchContext &context =
          dispatches.emplace_back(model, program, dispatch);
      if (failed(emitDispatch(context)))
        return failure();
      if (layers)
        continue;
      for (DispatchContext::Entry &entry : context.entries)
        launches.push_back(entry.launch);
    } else if (auto loop = dyn_cast<LayersOp>(op); loop && !layers) {
      if (failed(emit(loop.getBody().front(),
                      static_cast<int64_t>(loop.getCount()))))
        return failure();
    } else {
      return op.emitOpError("is not part of a schedule; run kvc-schedule");
    }
  }
  for (int64_t layer = 0; layer < layers.value_or(0); ++layer)
    for (DispatchContext &context : dispatches)
      for (DispatchContext::Entry &entry : context.entries)
        if (entry.layers.empty() || llvm::is_contained(entry.layers, layer)) {
          entry.launch.layer = layer;
          launches.push_back(entry.launch);
        }
  return success();
}

namespace {
struct ConvertToNvvmPass
    : kvc::nvptx::impl::ConvertToNvvmBase<ConvertToNvvmPass> {
  using ConvertToNvvmBase::ConvertToNvvmBase;

  void runOnOperation() override {
    auto models = llvm::to_vector(getOperation().getOps<ModelOp>());
    if (models.size() != 1) {
      getOperation().emitError(
          "kvc-convert-to-nvvm needs one kvc.model, found ")
          << models.size();
      return signalPassFailure();
    }
    if (failed(convert(models[0])))
      signalPassFailure();
  }

private:
  LogicalResult convert(ModelOp model) {
    std::string error;
    FailureOr<NvptxTarget> target =
        NvptxTarget::get(model.getTargetAttr(), error);
    if (failed(target))
      return model.emitOpError(error);
    ModelContext context(getOperation(), model, *target);
    auto programs =
        llvm::to_vector(model.getBody().front().getOps<ProgramOp>());
    if (programs.empty())
      return model.emitOpError("has no programs; run kvc-split-phases");
    for (ProgramOp program : programs) {
      program.walk([&](DispatchOp) { ++dispatches; });
      std::vector<Launch> &list = program.getPhase() == Phase::Decode
                                      ? context.lists.decode
                                      : context.lists.prefill;
      if (failed(ProgramEmitter(context, program, list)
                     .emit(program.getBody().front())))
        return failure();
      launches += list.size();
    }
    if (failed(emitChoose(context)))
      return failure();
    for (ProgramOp program : programs)
      program.erase();
    context.lists.attach(getOperation());
    return success();
  }
};

} // namespace

void kvc::nvptx::buildLowerToLLVMPipeline(OpPassManager &manager) {
  manager.addPass(createCanonicalizerPass());
  manager.addPass(createCSEPass());
  manager.addPass(createSCFToControlFlowPass());
  manager.addPass(createConvertMathToLLVMPass());
  manager.addPass(createArithToLLVMConversionPass());
  manager.addPass(createConvertControlFlowToLLVMPass());
  manager.addPass(createReconcileUnrealizedCastsPass());
}

void kvc::nvptx::registerNvptxPasses() {
  registerKvcNvptxPasses();
  PassPipelineRegistration<>(
      "kvc-nvvm-to-llvm",
      "Lowers what kvc-convert-to-nvvm makes to the LLVM dialect",
      buildLowerToLLVMPipeline);
}
