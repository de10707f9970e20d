//===- TargetInfo.cpp - Processors by LLVM's tables -----------------------===//
#include "passes/TargetInfo.h"

#include "llvm/ADT/StringExtras.h"
#include "llvm/MC/MCSubtargetInfo.h"
#include "llvm/MC/TargetRegistry.h"
#include "llvm/Support/TargetSelect.h"
#include "llvm/TargetParser/Host.h"

using namespace mlir;
using namespace kvc;

static std::unique_ptr<llvm::MCSubtargetInfo>
createSubtarget(llvm::StringRef cpu, llvm::StringRef features,
                std::string &error) {
  [[maybe_unused]] static const bool initialized = [] {
    llvm::InitializeNativeTarget();
    return true;
  }();
  llvm::Triple triple(llvm::sys::getProcessTriple());
  const llvm::Target *target =
      llvm::TargetRegistry::lookupTarget(triple, error);
  if (!target)
    return nullptr;
  // A subtarget of an unknown name prints its own complaint: ask the generic
  // one first.
  std::unique_ptr<llvm::MCSubtargetInfo> generic(
      target->createMCSubtargetInfo(triple, "", ""));
  if (!generic || (!cpu.empty() && !generic->isCPUStringValid(cpu))) {
    error = "target-cpu '" + cpu.str() +
            "' is not a processor LLVM knows for " +
            triple.getArchName().str() + " (try native, x86-64-v3, x86-64-v4)";
    return nullptr;
  }
  return std::unique_ptr<llvm::MCSubtargetInfo>(
      target->createMCSubtargetInfo(triple, cpu, features));
}

/// The host's features that its processor's name does not already say: a
/// virtual machine may hide some. Tile registers (AMX) are never used, and a
/// kernel must grant them first.
static std::string hostFeatures(const llvm::MCSubtargetInfo &named) {
  std::vector<std::string> differing;
  for (const auto &feature : llvm::sys::getHostCPUFeatures()) {
    llvm::StringRef name = feature.first();
    bool present = feature.second && !name.starts_with("amx");
    if (named.checkFeatures(("+" + name).str()) != present)
      differing.push_back((present ? "+" : "-") + name.str());
  }
  llvm::sort(differing, [](llvm::StringRef lhs, llvm::StringRef rhs) {
    return lhs.drop_front() < rhs.drop_front();
  });
  return llvm::join(differing, ",");
}

static int64_t widestVector(const llvm::MCSubtargetInfo &subtarget) {
  const llvm::Triple &triple = subtarget.getTargetTriple();
  if (!triple.isX86())
    return 128;
  if (subtarget.checkFeatures("+avx512f") &&
      subtarget.checkFeatures("+avx512bw") &&
      subtarget.checkFeatures("+avx512vl"))
    return 512;
  return subtarget.checkFeatures("+avx2") ? 256 : 128;
}

TargetAttr kvc::resolveTarget(MLIRContext *context, llvm::StringRef arch,
                              llvm::StringRef cpu, int64_t vectorWidth,
                              std::string &error) {
  if (arch != "cpu") {
    error = "target '" + arch.str() + "' is not known; the target is cpu";
    return {};
  }
  if (vectorWidth != 0 && vectorWidth != 128 && vectorWidth != 256 &&
      vectorWidth != 512 && vectorWidth != 1024) {
    error = "vector-width is 128, 256, 512 or 1024, found " +
            std::to_string(vectorWidth);
    return {};
  }
  bool native = cpu == "native";
  std::string name = native ? llvm::sys::getHostCPUName().str() : cpu.str();
  if (name.empty()) {
    error = "target-cpu must not be empty";
    return {};
  }
  std::unique_ptr<llvm::MCSubtargetInfo> subtarget =
      createSubtarget(name, "", error);
  if (!subtarget)
    return {};
  std::string features;
  if (native) {
    features = hostFeatures(*subtarget);
    subtarget = createSubtarget(name, features, error);
    if (!subtarget)
      return {};
  }
  if (vectorWidth == 0)
    vectorWidth = widestVector(*subtarget);
  return TargetAttr::get(context, arch, name, features, vectorWidth);
}

int64_t kvc::vectorLanes(TargetAttr target) {
  return target.getVectorWidth() / 32;
}
