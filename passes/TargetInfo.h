//===- TargetInfo.h - What passes may ask of a target ---------------------===//
//
// The one interface through which a target's needs reach the passes. LLVM's own
// tables answer; no pass asks the machine the compiler runs on.
#ifndef KVC_PASSES_TARGETINFO_H
#define KVC_PASSES_TARGETINFO_H

#include "dialect/KvcDialect.h"

#include <string>

namespace kvc {

/// The target that `arch` ("cpu"), `cpu` (LLVM's name, or "native") and
/// `vectorWidth` (0: the processor's widest) name. Null and one line in `error`
/// where there is none.
TargetAttr resolveTarget(mlir::MLIRContext *context, llvm::StringRef arch,
                         llvm::StringRef cpu, int64_t vectorWidth,
                         std::string &error);

/// f32 values a vector register of the target holds: the lanes of a panel.
int64_t vectorLanes(TargetAttr target);

} // namespace kvc

#endif // KVC_PASSES_TARGETINFO_H
