//===- Ptx.cpp ------------------------------------------------------------===//
#include "codegen/emit/Ptx.h"
#include "codegen/emit/Object.h"
#include "codegen/nvptx/NvptxTarget.h"
#include "codegen/nvptx/Passes.h"
#include "passes/TargetInfo.h"

#include "mlir/Target/LLVMIR/Export.h"
#include "llvm/IR/LegacyPassManager.h"
#include "llvm/MC/TargetRegistry.h"
#include "llvm/Support/CommandLine.h"
#include "llvm/Support/TargetSelect.h"
#include "llvm/Target/TargetMachine.h"

using namespace mlir;
using namespace kvc;
using llvm::Error;
using llvm::Expected;
using llvm::StringRef;
using llvm::Twine;

static Error ptxError(const Twine &message) {
  return llvm::createStringError(llvm::inconvertibleErrorCode(), message);
}

/// The model's target, or what `options` asks for instead.
static Expected<TargetAttr> deviceTarget(TargetAttr own,
                                         const PtxOptions &options) {
  std::string error;
  if (failed(nvptx::NvptxTarget::get(own, error)))
    return ptxError(error);
  StringRef chip = options.chip.empty() ? own.getCpu() : options.chip;
  if (chip == own.getCpu() && options.ptxVersion == 0)
    return own;
  TargetAttr other = resolveTarget(
      own.getContext(),
      {own.getArch(), chip, /*vectorWidth=*/0, options.ptxVersion}, error);
  if (!other)
    return ptxError(error);
  return other;
}

static Expected<std::unique_ptr<llvm::TargetMachine>>
createMachine(TargetAttr target) {
  LLVMInitializeNVPTXTargetInfo();
  LLVMInitializeNVPTXTarget();
  LLVMInitializeNVPTXTargetMC();
  LLVMInitializeNVPTXAsmPrinter();
  // Addresses of shared memory have 32 bits. The switch is the only way to say
  // so; nothing else in this process makes code for a GPU.
  auto &switches = llvm::cl::getRegisteredOptions();
  if (auto found = switches.find("nvptx-short-ptr"); found != switches.end())
    static_cast<llvm::cl::opt<bool> *>(found->second)->setValue(true);

  llvm::Triple triple("nvptx64-nvidia-cuda");
  std::string error;
  const llvm::Target *found = llvm::TargetRegistry::lookupTarget(triple, error);
  if (!found)
    return ptxError(error);
  llvm::TargetOptions options;
  // Only a written fma is fused: every mul and add carries .rn.
  options.AllowFPOpFusion = llvm::FPOpFusion::Strict;
  return std::unique_ptr<llvm::TargetMachine>(found->createTargetMachine(
      triple, target.getCpu(), target.getFeatures(), options, llvm::Reloc::PIC_,
      std::nullopt, llvm::CodeGenOptLevel::Aggressive));
}

namespace {
/// Kernels as LLVM IR, with what turns them into PTX.
struct DeviceModule {
  nvptx::NvptxTarget target;
  nvptx::LaunchLists launches;
  std::unique_ptr<llvm::LLVMContext> context;
  std::unique_ptr<llvm::TargetMachine> machine;
  std::unique_ptr<llvm::Module> code; // goes before its context

  static Expected<DeviceModule> create(ModuleOp module,
                                       const PtxOptions &options);
};
} // namespace

Expected<DeviceModule> DeviceModule::create(ModuleOp module,
                                            const PtxOptions &options) {
  Expected<ModelOp> model = findScheduledModel(module);
  if (!model)
    return model.takeError();
  DeviceModule result;
  Expected<TargetAttr> attr = deviceTarget(model->getTargetAttr(), options);
  if (!attr)
    return attr.takeError();
  std::string error;
  FailureOr<nvptx::NvptxTarget> target = nvptx::NvptxTarget::get(*attr, error);
  if (failed(target))
    return ptxError(error);
  result.target = *target;
  auto machine = createMachine(*attr);
  if (!machine)
    return machine.takeError();
  result.machine = std::move(*machine);

  OwningOpRef<ModuleOp> lowered = module.clone();
  for (ModelOp copy : lowered->getOps<ModelOp>())
    copy.setTargetAttr(*attr);
  if (Error failure = runPasses(*lowered, [](OpPassManager &manager) {
        manager.addPass(nvptx::createConvertToNvvm());
        nvptx::buildLowerToLLVMPipeline(manager);
      }))
    return std::move(failure);
  FailureOr<nvptx::LaunchLists> launches = nvptx::LaunchLists::of(*lowered);
  if (failed(launches))
    return ptxError("kvc-convert-to-nvvm left no list of launches");
  result.launches = std::move(*launches);
  for (ModelOp declarations :
       llvm::make_early_inc_range(lowered->getOps<ModelOp>()))
    declarations.erase();

  result.context = std::make_unique<llvm::LLVMContext>();
  result.code =
      translateModuleToLLVMIR(*lowered, *result.context, model->getSymName());
  if (!result.code)
    return ptxError("the kernels do not translate to LLVM IR");
  llvm::Module &code = *result.code;
  code.setDataLayout(result.machine->createDataLayout());
  code.setTargetTriple(result.machine->getTargetTriple());
  if (Error failure = verifyCode(code))
    return std::move(failure);
  // Emitters unroll where they want it.
  if (options.optimize)
    optimizeModule(code, *result.machine, /*unrollLoops=*/false);
  return result;
}

Expected<DeviceCode> DeviceCode::create(ModuleOp module,
                                        const PtxOptions &options) {
  Expected<DeviceModule> device = DeviceModule::create(module, options);
  if (!device)
    return device.takeError();
  llvm::SmallVector<char, 0> text;
  llvm::raw_svector_ostream os(text);
  llvm::legacy::PassManager manager;
  if (device->machine->addPassesToEmitFile(manager, os, nullptr,
                                           llvm::CodeGenFileType::AssemblyFile))
    return ptxError("LLVM emits no PTX for " + device->target.chip);
  manager.run(*device->code);
  DeviceCode result;
  result.chip = device->target.chip;
  result.programmaticLaunch = device->target.programmaticLaunch();
  result.ptx.assign(text.begin(), text.end());
  result.launches = std::move(device->launches);
  return result;
}

Expected<std::string> DeviceCode::createLlvmIr(ModuleOp module,
                                               const PtxOptions &options) {
  Expected<DeviceModule> device = DeviceModule::create(module, options);
  if (!device)
    return device.takeError();
  std::string text;
  llvm::raw_string_ostream os(text);
  device->code->print(os, nullptr);
  return text;
}
