//===- ProgramInfo.h - The constant that describes a program --------------===//
#ifndef KVC_CODEGEN_EMIT_PROGRAMINFO_H
#define KVC_CODEGEN_EMIT_PROGRAMINFO_H

#include "codegen/RopeTables.h"
#include "codegen/emit/SchedulePlan.h"

#include "llvm/IR/Module.h"

namespace kvc {

/// What stands in KvcProgramInfo::weights_digest until the weights are known.
constexpr uint64_t PendingDigest = 0x6b76635f70656e64; // "kvc_pend"

/// Adds `kvc_program` (runtime/Abi.h) to a module that defines kvc_prefill and
/// kvc_decode. `isa` are the features that the machine must have.
llvm::Error addProgramInfo(llvm::Module &module, const SchedulePlan &plan,
                           const RopeTables &ropes, llvm::StringRef isa,
                           uint64_t digest = PendingDigest);

} // namespace kvc

#endif // KVC_CODEGEN_EMIT_PROGRAMINFO_H
