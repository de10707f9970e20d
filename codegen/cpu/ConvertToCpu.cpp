//===- ConvertToCpu.cpp - From the schedule to functions ------------------===//
#include "codegen/cpu/Dispatch.h"
#include "codegen/cpu/Passes.h"

#include "mlir/Conversion/ArithToLLVM/ArithToLLVM.h"
#include "mlir/Conversion/ControlFlowToLLVM/ControlFlowToLLVM.h"
#include "mlir/Conversion/FuncToLLVM/ConvertFuncToLLVMPass.h"
#include "mlir/Conversion/MathToLLVM/MathToLLVM.h"
#include "mlir/Conversion/ReconcileUnrealizedCasts/ReconcileUnrealizedCasts.h"
#include "mlir/Conversion/SCFToControlFlow/SCFToControlFlow.h"
#include "mlir/Conversion/VectorToLLVM/ConvertVectorToLLVMPass.h"
#include "mlir/Transforms/Passes.h"

using namespace mlir;
using namespace kvc;
using namespace kvc::cpu;

namespace kvc::cpu {
#define GEN_PASS_DEF_CONVERTTOCPU
#define GEN_PASS_REGISTRATION
#include "codegen/cpu/Passes.h.inc"
} // namespace kvc::cpu

namespace {

/// One program to one function.
class ProgramEmitter {
public:
  ProgramEmitter(ModelContext &model, ProgramOp program)
      : model(model), program(program),
        builder(OpBuilder::atBlockEnd(model.module.getBody())) {}

  LogicalResult emit();

private:
  LogicalResult emitBlock(Emitter &e, Block &block, Value layer);
  LogicalResult emitDispatch(Emitter &e, DispatchOp dispatch, Value layer);
  void emitBarrier(Emitter &e);

  ModelContext &model;
  ProgramOp program;
  OpBuilder builder;
  func::FuncOp function;
  int64_t lastId = 0;
};
} // namespace

LogicalResult ProgramEmitter::emitDispatch(Emitter &e, DispatchOp dispatch,
                                           Value layer) {
  std::string name = llvm::formatv("{0}.{1}.{2}", program.getSymName(),
                                   dispatch.getId(), dispatch.getName());
  auto body = func::FuncOp::create(
      builder, dispatch.getLoc(), name,
      builder.getFunctionType(DispatchContext::argumentTypes(builder), {}));
  body.setPrivate();
  Block *entry = body.addEntryBlock();
  OpBuilder bodyBuilder = OpBuilder::atBlockEnd(entry);
  auto end = func::ReturnOp::create(bodyBuilder, dispatch.getLoc());
  bodyBuilder.setInsertionPoint(end);
  Emitter inner(bodyBuilder, dispatch.getLoc(), model.target);
  DispatchContext context(model, inner, program, body.getArguments());

  LogicalResult result = success();
  Operation *anchor = dispatch.getAnchor();
  if (!anchor)
    result = emitRows(context, dispatch);
  else if (auto linear = dyn_cast<LinearOp>(anchor))
    result = emitLinear(context, dispatch, linear);
  else
    result = emitAttention(context, dispatch, cast<AttentionOp>(anchor));

  ValueRange arguments = function.getArguments();
  func::CallOp::create(e.b, e.loc, body,
                       ValueRange{arguments[0], arguments[1], arguments[3],
                                  arguments[4], layer});
  lastId = dispatch.getId();
  return result;
}

void ProgramEmitter::emitBarrier(Emitter &e) {
  ValueRange arguments = function.getArguments();
  func::CallOp::create(e.b, e.loc, "kvc_barrier", TypeRange(),
                       ValueRange{arguments[2], arguments[3], e.c(lastId)});
}

LogicalResult ProgramEmitter::emitBlock(Emitter &e, Block &block, Value layer) {
  for (Operation &op : block.without_terminator()) {
    if (auto dispatch = dyn_cast<DispatchOp>(op)) {
      if (failed(emitDispatch(e, dispatch, layer)))
        return failure();
    } else if (isa<BarrierOp>(op)) {
      emitBarrier(e);
    } else if (auto layers = dyn_cast<LayersOp>(op)) {
      LogicalResult result = success();
      e.loop(e.c(0), e.c(static_cast<int64_t>(layers.getCount())), 1,
             [&](Value index) {
               result = emitBlock(e, layers.getBody().front(), index);
             });
      if (failed(result))
        return failure();
    } else {
      return op.emitOpError("is not part of a schedule; run kvc-schedule");
    }
  }
  return success();
}

LogicalResult ProgramEmitter::emit() {
  Type ptr = LLVM::LLVMPointerType::get(builder.getContext());
  Type i64 = builder.getI64Type();
  StringRef phase = stringifyPhase(program.getPhase());
  function = func::FuncOp::create(
      builder, program.getLoc(), ("kvc_" + phase).str(),
      builder.getFunctionType({ptr, ptr, ptr, i64, i64}, {}));
  Block *entry = function.addEntryBlock();
  OpBuilder body = OpBuilder::atBlockEnd(entry);
  auto end = func::ReturnOp::create(body, program.getLoc());
  body.setInsertionPoint(end);
  Emitter e(body, program.getLoc(), model.target);
  Block &schedule = program.getBody().front();
  if (failed(emitBlock(e, schedule, e.c(0))))
    return failure();
  // The profile charges a dispatch to the barrier behind it, the last one too.
  auto last = std::next(schedule.rbegin());
  if (last != schedule.rend() && !isa<BarrierOp>(*last))
    emitBarrier(e);
  return success();
}

namespace {
struct ConvertToCpuPass : kvc::cpu::impl::ConvertToCpuBase<ConvertToCpuPass> {
  using ConvertToCpuBase::ConvertToCpuBase;

  void runOnOperation() override {
    auto models = llvm::to_vector(getOperation().getOps<ModelOp>());
    if (models.size() != 1) {
      getOperation().emitError("kvc-convert-to-cpu needs one kvc.model, found ")
          << models.size();
      return signalPassFailure();
    }
    if (failed(convert(models[0])))
      signalPassFailure();
  }

private:
  LogicalResult convert(ModelOp model) {
    TargetAttr targetAttr = model.getTargetAttr();
    if (!targetAttr || targetAttr.getArch() != "cpu")
      return model.emitOpError(
          "needs a cpu target; run kvc-set-target{target=cpu}");
    std::string error;
    FailureOr<CpuTarget> target = CpuTarget::get(targetAttr, error);
    if (failed(target))
      return model.emitOpError(error);
    if (failed(chooseDot(model, *target)) || failed(checkForms(model)))
      return failure();

    OpBuilder builder = OpBuilder::atBlockEnd(getOperation().getBody());
    Type ptr = LLVM::LLVMPointerType::get(&getContext());
    Type i64 = builder.getI64Type();
    func::FuncOp::create(builder, model.getLoc(), "kvc_barrier",
                         builder.getFunctionType({ptr, i64, i64}, {}))
        .setPrivate();

    ModelContext context(getOperation(), model, *target);
    auto programs =
        llvm::to_vector(model.getBody().front().getOps<ProgramOp>());
    if (programs.empty())
      return model.emitOpError("has no programs; run kvc-split-phases");
    for (ProgramOp program : programs) {
      program.walk([&](DispatchOp) { ++dispatches; });
      if (failed(ProgramEmitter(context, program).emit()))
        return failure();
    }
    for (ProgramOp program : programs)
      program.erase();
    return success();
  }

  /// What a schedule for another target holds has no code here.
  static LogicalResult checkForms(ModelOp model) {
    for (auto weight : model.getOps<WeightOp>())
      if (weight.getWeightType().getTiles())
        return weight.emitOpError("is packed in tiles, which the cpu target "
                                  "does not read");
    WalkResult slots = model.walk([](Operation *op) {
      auto slot = op->getAttrOfType<SlotAttr>("slot");
      if (!slot || slot.getElement() == SlotElement::F32 ||
          slot.getElement() == SlotElement::Q8)
        return WalkResult::advance();
      op->emitOpError("has a slot of ")
          << stringifySlotElement(slot.getElement())
          << ", which the cpu target does not keep";
      return WalkResult::interrupt();
    });
    return failure(slots.wasInterrupted());
  }

  LogicalResult chooseDot(ModelOp model, CpuTarget &target) {
    if (dot == "auto")
      return success();
    if (dot == "vnni")
      target.dot = DotKind::Vnni;
    else if (dot == "maddubs")
      target.dot = DotKind::Maddubs;
    else if (dot == "generic")
      target.dot = DotKind::Generic;
    else
      return model.emitOpError("dot is auto, vnni, maddubs or generic, found '")
             << dot << "'";
    return success();
  }
};

} // namespace

void kvc::cpu::buildLowerToLLVMPipeline(OpPassManager &manager) {
  manager.addPass(createCanonicalizerPass());
  manager.addPass(createCSEPass());
  manager.addPass(createSCFToControlFlowPass());
  manager.addPass(createConvertVectorToLLVMPass());
  manager.addPass(createConvertMathToLLVMPass());
  manager.addPass(createArithToLLVMConversionPass());
  manager.addPass(createConvertFuncToLLVMPass());
  manager.addPass(createConvertControlFlowToLLVMPass());
  manager.addPass(createReconcileUnrealizedCastsPass());
}

void kvc::cpu::registerCpuPasses() {
  registerKvcCpuPasses();
  PassPipelineRegistration<>(
      "kvc-cpu-to-llvm",
      "Lowers what kvc-convert-to-cpu makes to the LLVM dialect",
      buildLowerToLLVMPipeline);
}
