//===- CpuTarget.cpp - What code generation asks of a processor -----------===//
#include "codegen/cpu/CpuTarget.h"

#include "llvm/MC/MCSubtargetInfo.h"
#include "llvm/MC/TargetRegistry.h"
#include "llvm/Support/TargetSelect.h"
#include "llvm/TargetParser/Host.h"

using namespace mlir;
using namespace kvc;
using namespace kvc::cpu;

static std::unique_ptr<llvm::MCSubtargetInfo> getSubtarget(TargetAttr target,
                                                           std::string &error) {
  static const bool initialized = [] {
    llvm::InitializeNativeTarget();
    return true;
  }();
  (void)initialized;
  llvm::Triple triple(llvm::sys::getDefaultTargetTriple());
  const llvm::Target *llvmTarget =
      llvm::TargetRegistry::lookupTarget(triple, error);
  if (!llvmTarget)
    return nullptr;
  std::unique_ptr<llvm::MCSubtargetInfo> subtarget(
      llvmTarget->createMCSubtargetInfo(triple, target.getCpu(),
                                        target.getFeatures()));
  if (!subtarget || !subtarget->isCPUStringValid(target.getCpu())) {
    error = "unknown processor '" + target.getCpu().str() + "'";
    return nullptr;
  }
  return subtarget;
}

FailureOr<CpuTarget> CpuTarget::get(TargetAttr target, std::string &error) {
  auto subtarget = getSubtarget(target, error);
  if (!subtarget)
    return failure();
  auto has = [&](const char *feature) {
    return subtarget->checkFeatures(feature);
  };
  CpuTarget result;
  int64_t width = target.getVectorWidth();
  result.lanes = static_cast<int>(width / 32);
  result.nativeBits = has("+avx512bw") ? 512 : has("+avx2") ? 256 : 128;
  result.nativeBits =
      static_cast<int>(std::min<int64_t>(result.nativeBits, width));
  result.byteShuffle = has("+ssse3");
  bool vnni = width <= 256 ? has("+avxvnni") || has("+avx512vnni,+avx512vl")
                           : has("+avx512vnni");
  result.dot = vnni && width <= 512 ? DotKind::Vnni
               : has("+ssse3")      ? DotKind::Maddubs
                                    : DotKind::Generic;
  return result;
}

ArrayRef<int> CpuTarget::rowTiles() const {
  // A panel's unpacked block takes 8 registers; 32 registers leave room for 8
  // rows, 16 for 4.
  static constexpr int Wide[] = {8, 4, 2, 1};
  static constexpr int Narrow[] = {4, 2, 1};
  return nativeBits == 512 ? ArrayRef<int>(Wide) : ArrayRef<int>(Narrow);
}

ArrayRef<int> CpuTarget::queryTiles() const {
  static constexpr int Wide[] = {8, 4, 3, 2, 1};
  static constexpr int Narrow[] = {4, 3, 2, 1};
  return nativeBits == 512 ? ArrayRef<int>(Wide) : ArrayRef<int>(Narrow);
}

int CpuTarget::valueRegisters(int queries) const {
  // At most 16 sums of 32 registers, 8 of 16.
  return nativeBits == 512 && queries <= 4 ? 4 : 2;
}

FailureOr<std::vector<std::string>>
kvc::cpu::requiredFeatures(TargetAttr target, std::string &error) {
  auto subtarget = getSubtarget(target, error);
  if (!subtarget)
    return failure();
  // What generated code can contain, as __builtin_cpu_supports names it.
  static constexpr const char *Known[] = {
      "ssse3",      "sse4.1",     "sse4.2",     "popcnt",      "avx",
      "avx2",       "bmi",        "bmi2",       "f16c",        "fma",
      "lzcnt",      "avx512f",    "avx512bw",   "avx512cd",    "avx512dq",
      "avx512vl",   "avx512ifma", "avx512vbmi", "avx512vbmi2", "avx512vnni",
      "avx512bf16", "avx512fp16", "avxvnni"};
  std::vector<std::string> features;
  for (const char *name : Known)
    if (subtarget->checkFeatures(std::string("+") + name))
      features.push_back(name);
  return features;
}
