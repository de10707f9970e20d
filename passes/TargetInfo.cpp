//===- TargetInfo.cpp - Processors by LLVM's tables -----------------------===//
#include "passes/TargetInfo.h"
#include "codegen/formats/Packing.h"
#include "codegen/formats/Tiles.h"

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

static TargetAttr resolveCpu(MLIRContext *context, const TargetRequest &request,
                             std::string &error) {
  int64_t vectorWidth = request.vectorWidth;
  if (vectorWidth != 0 && vectorWidth != 128 && vectorWidth != 256 &&
      vectorWidth != 512 && vectorWidth != 1024) {
    error = "vector-width is 128, 256, 512 or 1024, found " +
            std::to_string(vectorWidth);
    return {};
  }
  if (request.ptxVersion != 0) {
    error = "ptx-version is of the cuda target, found " +
            std::to_string(request.ptxVersion) + " for cpu";
    return {};
  }
  bool native = request.cpu == "native" || request.cpu.empty();
  std::string name =
      native ? llvm::sys::getHostCPUName().str() : request.cpu.str();
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
  return TargetAttr::get(context, request.arch, name, features, vectorWidth);
}

//===----------------------------------------------------------------------===//
// NVIDIA chips
//===----------------------------------------------------------------------===//

namespace {

/// A chip that code is generated for, the first version of PTX that has what we
/// write for it, and the one that is written where nothing is said.
struct Chip {
  llvm::StringLiteral name;
  int64_t oldest;
  int64_t usual;
};

} // namespace

// bf16 mma and cp.async came with 7.0, loads that bypass L1 with 7.4,
// programmatic launches with 7.8.
static constexpr Chip Chips[] = {{"sm_80", 74, 80},
                                 {"sm_89", 78, 80},
                                 {"sm_90", 78, 80},
                                 {"sm_90a", 80, 80},
                                 {"sm_100", 86, 86}};
static constexpr llvm::StringLiteral DefaultChip = "sm_90";
// What this LLVM writes.
static constexpr int64_t PtxVersions[] = {
    70, 71, 72, 73, 74, 75, 76, 77, 78, 80, 81, 82, 83, 84, 85, 86, 87, 88, 90};
static constexpr int64_t ThreadAccessBits = 128;

static TargetAttr resolveCuda(MLIRContext *context,
                              const TargetRequest &request,
                              std::string &error) {
  if (request.vectorWidth != 0) {
    error = "vector-width is of the cpu target, found " +
            std::to_string(request.vectorWidth) + " for cuda";
    return {};
  }
  llvm::StringRef name = request.cpu.empty() ? DefaultChip : request.cpu;
  const Chip *chip = llvm::find_if(
      Chips, [&](const Chip &known) { return known.name == name; });
  if (chip == std::end(Chips)) {
    error = "chip '" + name.str() + "' is not one of ";
    llvm::raw_string_ostream os(error);
    llvm::interleaveComma(Chips, os,
                          [&](const Chip &known) { os << known.name; });
    return {};
  }
  int64_t version = request.ptxVersion ? request.ptxVersion : chip->usual;
  auto fits = [&](int64_t known) { return known >= chip->oldest; };
  if (!llvm::is_contained(PtxVersions, version) || !fits(version)) {
    error = "ptx-version for " + name.str() + " is one of ";
    llvm::raw_string_ostream os(error);
    llvm::interleaveComma(llvm::make_filter_range(PtxVersions, fits), os);
    os << ", found " << version;
    return {};
  }
  return TargetAttr::get(context, request.arch, name,
                         "+ptx" + std::to_string(version), ThreadAccessBits);
}

TargetAttr kvc::resolveTarget(MLIRContext *context,
                              const TargetRequest &request,
                              std::string &error) {
  if (request.arch == "cpu")
    return resolveCpu(context, request, error);
  if (request.arch == "cuda")
    return resolveCuda(context, request, error);
  error = "target '" + request.arch.str() +
          "' is not known; targets are cpu and cuda";
  return {};
}

//===----------------------------------------------------------------------===//
// What passes ask
//===----------------------------------------------------------------------===//

static bool isCuda(TargetAttr target) {
  return target && target.getArch() == "cuda";
}

llvm::StringRef kvc::defaultActivations(TargetAttr target) {
  return isCuda(target) ? "bf16" : "int8";
}

std::string kvc::activationsError(TargetAttr target,
                                  llvm::StringRef activations) {
  if (isCuda(target)) // what tensor cores multiply
    return activations == "bf16" ? std::string()
                                 : "activations is bf16 on cuda, found '" +
                                       activations.str() + "'";
  if (activations == "f32" || activations == "bf16" || activations == "int8")
    return {};
  return "activations is f32, bf16 or int8, found '" + activations.str() + "'";
}

std::string kvc::cacheElementError(TargetAttr target, Type element) {
  if (isCuda(target) && element.isF32())
    return "kv-type is f16 or bf16 on cuda, found 'f32'";
  return {};
}

CacheType kvc::cacheFor(TargetAttr target, CacheType cache, Type element) {
  // A GPU's attention merges tiles of 64 positions, a page each.
  constexpr int64_t Positions = 64;
  bool cuda = isCuda(target);
  return CacheType::get(cache.getContext(), cache.getLayers(),
                        cache.getKvHeads(), cache.getHeadDim(), element,
                        cuda ? Positions : cache.getPage(),
                        cuda ? Positions : cache.getSplit());
}

/// Rows a unit of panels has where no head decides: few enough that workers
/// share a small matrix evenly, more where there are plenty.
static int64_t defaultUnit(int64_t rows) { return rows > 8192 ? 64 : 32; }

Attribute kvc::matrixLayout(TargetAttr target, WeightType type,
                            const MatrixUse &use) {
  MLIRContext *context = type.getContext();
  if (!isCuda(target))
    return PanelsAttr::get(context, vectorLanes(target),
                           use.headDim != 0 ? use.headDim
                                            : defaultUnit(type.getRows()));
  // Tiles that hold a rotated pair in one thread, else 16 rows as they come.
  int64_t unit = TileRows, pair = TileRows / 2;
  if (use.rope) {
    unit = use.headDim;
    pair = *use.rope == RopeLayout::Half ? use.ropePairs : 1;
  }
  return TilesAttr::get(context, unit, pair, tileSplits(type.getColumns()));
}

int64_t kvc::weightAlignment(TargetAttr target) {
  return isCuda(target) ? TileAlignment : PanelAlignment;
}

SlotElement kvc::storedElement(TargetAttr target, Operation *producer) {
  if (isa_and_present<QuantizeOp>(producer))
    return SlotElement::Q8;
  auto round = dyn_cast_or_null<RoundOp>(producer);
  if (!round || !isCuda(target))
    return SlotElement::F32;
  return round.getElement().isBF16() ? SlotElement::BF16 : SlotElement::F16;
}

bool kvc::stagesOutsideArenas(TargetAttr target) { return isCuda(target); }

int64_t kvc::vectorLanes(TargetAttr target) {
  return target.getVectorWidth() / 32;
}
