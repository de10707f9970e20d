//===- Pipelines.cpp - The order of the passes ----------------------------===//
#include "passes/Passes.h"

#include "mlir/Pass/PassManager.h"
#include "mlir/Pass/PassRegistry.h"

using namespace mlir;
using namespace kvc;

void kvc::buildPipeline(OpPassManager &manager,
                        const PipelineOptions &options) {
  OpPassManager &model = manager.nest<ModelOp>();
  SetTargetOptions target;
  target.target = options.target;
  target.targetCpu = options.targetCpu;
  target.vectorWidth = options.vectorWidth;
  target.ptxVersion = options.ptxVersion;
  target.kvType = options.kvType;
  target.activations = options.activations;
  target.ctx = options.ctx;
  model.addPass(createSetTarget(target));
  model.addPass(createSplitPhases());
  model.addPass(createQuantizeActivations());
  if (options.fuse) {
    model.addPass(createFuseQkv());
    model.addPass(createFuseGateUp());
    model.addPass(createFuseMaskedSoftmax());
    model.addPass(createFuseCacheAppend());
    model.addPass(createFuseResidual());
    model.addPass(createFuseNorm());
    model.addPass(createFuseQuantize());
  }
  model.addPass(createPackWeights());
  model.addPass(createPlanMemory());
  model.addPass(createSchedule());
}

void kvc::registerPassesAndPipeline() {
  registerKvcPasses();
  PassPipelineRegistration<PipelineOptions>(
      "kvc-pipeline", "from an imported model to the schedule of its programs",
      buildPipeline);
}
