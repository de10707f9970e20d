//===- Ptx.h - From a schedule to PTX -------------------------------------===//
#ifndef KVC_CODEGEN_EMIT_PTX_H
#define KVC_CODEGEN_EMIT_PTX_H

#include "codegen/emit/SchedulePlan.h"
#include "codegen/nvptx/Launches.h"

#include "mlir/IR/BuiltinOps.h"

#include <string>

namespace kvc {

struct PtxOptions {
  /// The chip, where it is not the target's own ("sm_90").
  std::string chip;
  /// The PTX ISA version times ten, where it is not the target's own; 0: that.
  int ptxVersion = 0;
  /// Whether LLVM's optimisations run. Programs are always optimised.
  bool optimize = true;
};

/// The device's half of a program.
struct DeviceCode {
  std::string chip;
  std::string ptx;
  nvptx::LaunchLists launches;
  bool programmaticLaunch = false; // kernels wait for their predecessors

  /// Lowers a copy of `module`, which keeps its schedule.
  static llvm::Expected<DeviceCode> create(mlir::ModuleOp module,
                                           const PtxOptions &options);
  /// The LLVM IR instead, as text.
  static llvm::Expected<std::string> createLlvmIr(mlir::ModuleOp module,
                                                  const PtxOptions &options);
};

} // namespace kvc

#endif // KVC_CODEGEN_EMIT_PTX_H
