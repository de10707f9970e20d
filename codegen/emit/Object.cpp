//===- Object.cpp ---------------------------------------------------------===//
#include "codegen/emit/Object.h"
#include "codegen/cpu/CpuTarget.h"
#include "codegen/cpu/Passes.h"
#include "codegen/emit/ProgramInfo.h"
#include "codegen/emit/Ptxas.h"
#include "codegen/emit/Weights.h"

#include "mlir/Dialect/ControlFlow/IR/ControlFlowOps.h"
#include "mlir/Dialect/LLVMIR/NVVMDialect.h"
#include "mlir/Pass/PassManager.h"
#include "mlir/Target/LLVMIR/Dialect/Builtin/BuiltinToLLVMIRTranslation.h"
#include "mlir/Target/LLVMIR/Dialect/LLVMIR/LLVMToLLVMIRTranslation.h"
#include "mlir/Target/LLVMIR/Dialect/NVVM/NVVMToLLVMIRTranslation.h"
#include "mlir/Target/LLVMIR/Export.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/IR/LegacyPassManager.h"
#include "llvm/IR/Verifier.h"
#include "llvm/MC/TargetRegistry.h"
#include "llvm/Passes/PassBuilder.h"
#include "llvm/Support/TargetSelect.h"
#include "llvm/TargetParser/Host.h"
#include "llvm/Transforms/Instrumentation/AddressSanitizer.h"
#include "llvm/Transforms/Instrumentation/ThreadSanitizer.h"

using namespace mlir;
using namespace kvc;
using llvm::Error;
using llvm::Expected;
using llvm::StringRef;
using llvm::Twine;

void kvc::registerEmissionDialects(DialectRegistry &registry) {
  registry.insert<KvcDialect, arith::ArithDialect, cf::ControlFlowDialect,
                  func::FuncDialect, LLVM::LLVMDialect, math::MathDialect,
                  NVVM::NVVMDialect, scf::SCFDialect, vector::VectorDialect>();
  registerBuiltinDialectTranslation(registry);
  registerLLVMDialectTranslation(registry);
  registerNVVMDialectTranslation(registry);
}

static Error emissionError(const Twine &message) {
  return llvm::createStringError(llvm::inconvertibleErrorCode(), message);
}

Expected<ModelOp> kvc::findScheduledModel(ModuleOp module) {
  auto models = llvm::to_vector(module.getOps<ModelOp>());
  if (models.size() != 1)
    return emissionError("found " + Twine(models.size()) +
                         " kvc.model ops, rule: one");
  bool scheduled = false;
  models.front().walk([&](DispatchOp) { scheduled = true; });
  if (!scheduled)
    return emissionError(
        "kvc.model @" + models.front().getSymName() +
        ": has no schedule, rule: kvc-opt --kvc-pipeline comes first");
  return models.front();
}

Error kvc::runPasses(ModuleOp module,
                     llvm::function_ref<void(OpPassManager &)> build) {
  std::string message;
  ScopedDiagnosticHandler handler(
      module.getContext(), [&](Diagnostic &diagnostic) {
        if (diagnostic.getSeverity() == DiagnosticSeverity::Error &&
            message.empty())
          message = diagnostic.str();
        return success();
      });
  PassManager manager(module.getContext());
  build(manager);
  if (succeeded(manager.run(module)))
    return Error::success();
  return emissionError(message.empty() ? "a pass failed" : message);
}

static Expected<std::unique_ptr<llvm::TargetMachine>>
createMachine(StringRef cpu, StringRef features) {
  llvm::InitializeNativeTarget();
  llvm::InitializeNativeTargetAsmPrinter();
  llvm::Triple triple(llvm::sys::getDefaultTargetTriple());
  std::string error;
  const llvm::Target *found = llvm::TargetRegistry::lookupTarget(triple, error);
  if (!found)
    return emissionError(error);
  llvm::TargetOptions options;
  // Sums have one order and one rounding: only a written fma is fused.
  options.AllowFPOpFusion = llvm::FPOpFusion::Strict;
  options.FunctionSections = options.DataSections = true;
  return std::unique_ptr<llvm::TargetMachine>(found->createTargetMachine(
      triple, cpu, features, options, llvm::Reloc::PIC_, std::nullopt,
      llvm::CodeGenOptLevel::Aggressive));
}

/// Attributes that all functions share.
static void setAttributes(llvm::Module &module, TargetAttr target,
                          Sanitizer sanitizer) {
  for (llvm::Function &function : module) {
    if (function.isDeclaration())
      continue;
    function.addFnAttr("prefer-vector-width",
                       std::to_string(target.getVectorWidth()));
    if (sanitizer == Sanitizer::Address)
      function.addFnAttr(llvm::Attribute::SanitizeAddress);
    if (sanitizer == Sanitizer::Thread)
      function.addFnAttr(llvm::Attribute::SanitizeThread);
  }
}

void kvc::optimizeModule(
    llvm::Module &module, llvm::TargetMachine &machine, bool unrollLoops,
    llvm::function_ref<void(llvm::ModulePassManager &)> last) {
  llvm::LoopAnalysisManager loops;
  llvm::FunctionAnalysisManager functions;
  llvm::CGSCCAnalysisManager components;
  llvm::ModuleAnalysisManager modules;
  // Vectors are written by kvc's emitters; loops of scalars are short.
  llvm::PipelineTuningOptions tuning;
  tuning.LoopVectorization = false;
  tuning.SLPVectorization = false;
  tuning.LoopUnrolling = unrollLoops;
  llvm::PassBuilder builder(&machine, tuning);
  if (last)
    builder.registerOptimizerLastEPCallback(
        [&](llvm::ModulePassManager &manager, llvm::OptimizationLevel,
            llvm::ThinOrFullLTOPhase) { last(manager); });
  builder.registerModuleAnalyses(modules);
  builder.registerCGSCCAnalyses(components);
  builder.registerFunctionAnalyses(functions);
  builder.registerLoopAnalyses(loops);
  builder.crossRegisterProxies(loops, functions, components, modules);
  builder.buildPerModuleDefaultPipeline(llvm::OptimizationLevel::O3)
      .run(module, modules);
}

static void addSanitizers(llvm::ModulePassManager &manager,
                          Sanitizer sanitizer) {
  if (sanitizer == Sanitizer::Address)
    manager.addPass(llvm::AddressSanitizerPass({}));
  if (sanitizer == Sanitizer::Thread) {
    manager.addPass(llvm::ModuleThreadSanitizerPass());
    manager.addPass(
        llvm::createModuleToFunctionPassAdaptor(llvm::ThreadSanitizerPass()));
  }
}

bool kvc::runsOnGpu(ModelOp model) {
  TargetAttr target = model.getTargetAttr();
  return target && target.getArch() == "cuda";
}

Error kvc::verifyCode(llvm::Module &code) {
  std::string invalid;
  llvm::raw_string_ostream invalidStream(invalid);
  if (!llvm::verifyModule(code, &invalidStream))
    return Error::success();
  return emissionError(
      "the LLVM IR is not valid: " +
      StringRef(invalid).take_until([](char c) { return c == '\n'; }));
}

Error ProgramCode::createForCpu(ModuleOp module, ModelOp model,
                                const CodeOptions &options, uint64_t digest) {
  RopeTables ropes(model);
  TargetAttr target = *model.getTarget();
  std::string error;
  FailureOr<std::vector<std::string>> features =
      cpu::requiredFeatures(target, error);
  if (failed(features))
    return emissionError(error);
  auto found = createMachine(target.getCpu(), target.getFeatures());
  if (!found)
    return found.takeError();
  machine = std::move(*found);

  OwningOpRef<ModuleOp> lowered = module.clone();
  if (Error failure = runPasses(*lowered, [](OpPassManager &manager) {
        manager.addPass(cpu::createConvertToCpu());
        cpu::buildLowerToLLVMPipeline(manager);
      }))
    return failure;
  for (ModelOp declarations :
       llvm::make_early_inc_range(lowered->getOps<ModelOp>()))
    declarations.erase();

  context = std::make_unique<llvm::LLVMContext>();
  code = translateModuleToLLVMIR(*lowered, *context, schedulePlan.model);
  if (!code)
    return emissionError("the lowered module does not translate to LLVM IR");
  code->setDataLayout(machine->createDataLayout());
  code->setTargetTriple(machine->getTargetTriple());
  ProgramParts parts{schedulePlan, ropes, llvm::join(*features, ",")};
  std::vector<KvcWeightRange> ranges;
  if (options.randomWeights)
    ranges = randomRanges(model);
  parts.digest = digest;
  parts.randomRanges = ranges;
  if (Error failure = addProgramInfo(*code, parts))
    return failure;
  setAttributes(*code, target, options.sanitizer);
  if (Error failure = verifyCode(*code))
    return failure;
  if (options.optimize)
    optimizeModule(*code, *machine, /*unrollLoops=*/true,
                   [&](llvm::ModulePassManager &manager) {
                     addSanitizers(manager, options.sanitizer);
                   });
  return Error::success();
}

/// The host's half of a program for GPUs is data alone.
Error ProgramCode::createForGpu(ModuleOp module, ModelOp model,
                                const CodeOptions &options, uint64_t digest) {
  PtxOptions ptx;
  ptx.chip = options.chip;
  ptx.ptxVersion = options.ptxVersion;
  ptx.optimize = options.optimize;
  Expected<DeviceCode> device = DeviceCode::create(module, ptx);
  if (!device)
    return device.takeError();
  schedulePlan.targetCpu = device->chip;
  AssembledCode assembled;
  if (!options.ptxas.empty()) {
    Expected<AssembledCode> machineCode =
        assemblePtx(device->ptx, device->chip, options.ptxas);
    if (!machineCode)
      return machineCode.takeError();
    assembled = std::move(*machineCode);
  }
  auto found = createMachine(/*cpu=*/"", /*features=*/"");
  if (!found)
    return found.takeError();
  machine = std::move(*found);

  RopeTables ropes(model);
  context = std::make_unique<llvm::LLVMContext>();
  code = std::make_unique<llvm::Module>(schedulePlan.model, *context);
  code->setDataLayout(machine->createDataLayout());
  code->setTargetTriple(machine->getTargetTriple());
  ProgramParts parts{schedulePlan, ropes, /*isa=*/""};
  std::vector<KvcWeightRange> ranges;
  if (options.randomWeights)
    ranges = randomRanges(model);
  parts.digest = digest;
  parts.device = &*device;
  parts.cubin = assembled.cubin;
  parts.randomRanges = ranges;
  if (Error failure = addProgramInfo(*code, parts))
    return failure;
  return verifyCode(*code);
}

Expected<ProgramCode> ProgramCode::create(ModuleOp module,
                                          const CodeOptions &options,
                                          std::optional<uint64_t> digest) {
  Expected<ModelOp> model = findScheduledModel(module);
  if (!model)
    return model.takeError();
  ProgramCode program;
  Expected<SchedulePlan> plan = makeSchedulePlan(*model);
  if (!plan)
    return plan.takeError();
  program.schedulePlan = std::move(*plan);
  uint64_t known = digest.value_or(PendingDigest);
  Error failure = runsOnGpu(*model)
                      ? program.createForGpu(module, *model, options, known)
                      : program.createForCpu(module, *model, options, known);
  if (failure)
    return std::move(failure);
  return program;
}

Error ProgramCode::write(llvm::raw_pwrite_stream &os,
                         llvm::CodeGenFileType type) {
  llvm::legacy::PassManager manager;
  if (machine->addPassesToEmitFile(manager, os, nullptr, type))
    return emissionError("LLVM emits no such file for " +
                         machine->getTargetTriple().str());
  manager.run(*code);
  return Error::success();
}
