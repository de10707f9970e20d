//===- TargetInfo.h - What passes may ask of a target ---------------------===//
//
// The one interface through which a target's needs reach the passes. LLVM's own
// tables answer; no pass asks the machine the compiler runs on.
#ifndef KVC_PASSES_TARGETINFO_H
#define KVC_PASSES_TARGETINFO_H

#include "dialect/KvcDialect.h"

#include <optional>
#include <string>

namespace kvc {

/// What a compilation asks for. Empty and 0: what the target does by itself.
struct TargetRequest {
  llvm::StringRef arch;    // "cpu" or "cuda"
  llvm::StringRef cpu;     // LLVM's name, or for the cpu target "native"
  int64_t vectorWidth = 0; // cpu: bits; 0: the processor's widest
  int64_t ptxVersion = 0;  // cuda: 80 for 8.0; 0: one that fits the chip
};

/// The target that is asked for. Null and one line in `error` where there is
/// none.
TargetAttr resolveTarget(mlir::MLIRContext *context,
                         const TargetRequest &request, std::string &error);

/// What linears multiply on the target where nothing is said, and why it cannot
/// be `activations` or the cache cannot hold `element`; empty if they can.
llvm::StringRef defaultActivations(TargetAttr target);
std::string activationsError(TargetAttr target, llvm::StringRef activations);
std::string cacheElementError(TargetAttr target, mlir::Type element);

/// The cache as the target's attention reads it.
CacheType cacheFor(TargetAttr target, CacheType cache, mlir::Type element);

/// What a layout may depend on: how the linear's result is used.
struct MatrixUse {
  int64_t headDim = 0;            // where heads are a dimension of the result
  std::optional<RopeLayout> rope; // where each head is rotated
  int64_t ropePairs = 0;
};

/// The packed layout of a matrix, and what each weight's place is a multiple
/// of.
mlir::Attribute matrixLayout(TargetAttr target, WeightType type,
                             const MatrixUse &use);
int64_t weightAlignment(TargetAttr target);

/// How the target keeps what `producer` makes in a slot.
SlotElement storedElement(TargetAttr target, mlir::Operation *producer);

/// Workers keep what a prologue makes outside of the arenas.
bool stagesOutsideArenas(TargetAttr target);

/// f32 values a vector register of the target holds: the lanes of a panel.
int64_t vectorLanes(TargetAttr target);

} // namespace kvc

#endif // KVC_PASSES_TARGETINFO_H
