//===- ProgramInfo.h - The constant that describes a program --------------===//
#ifndef KVC_CODEGEN_EMIT_PROGRAMINFO_H
#define KVC_CODEGEN_EMIT_PROGRAMINFO_H

#include "codegen/RopeTables.h"
#include "codegen/emit/Ptx.h"
#include "codegen/emit/SchedulePlan.h"
#include "runtime/Abi.h"

#include "llvm/IR/Module.h"

namespace kvc {

/// What stands in KvcProgramInfo::weights_digest until the weights are known.
constexpr uint64_t PendingDigest = 0x6b76635f70656e64; // "kvc_pend"

/// What a program is made of, beside its functions.
struct ProgramParts {
  const SchedulePlan &plan;
  const RopeTables &ropes;
  std::string isa; // features that the machine must have
  uint64_t digest = PendingDigest;
  const DeviceCode *device = nullptr; // of a program for GPUs
  llvm::StringRef cubin = {};         // its machine code; empty: none
  llvm::ArrayRef<KvcWeightRange> randomRanges = {};
};

/// Adds `kvc_program` (runtime/Abi.h) to a module that defines kvc_prefill and
/// kvc_decode, or is empty where there is device code.
llvm::Error addProgramInfo(llvm::Module &module, const ProgramParts &parts);

} // namespace kvc

#endif // KVC_CODEGEN_EMIT_PROGRAMINFO_H
