//===- NvptxTarget.h - What code generation knows of a GPU ----------------===//
#ifndef KVC_CODEGEN_NVPTX_NVPTXTARGET_H
#define KVC_CODEGEN_NVPTX_NVPTXTARGET_H

#include "dialect/KvcDialect.h"

#include <string>

namespace kvc::nvptx {

struct NvptxTarget {
  std::string chip; // LLVM's name: "sm_90a"
  int sm = 0;       // 80, 89, 90, 100
  /// Dynamic shared memory a block may have, in bytes.
  int64_t sharedBytes = 0;
  /// Kernels of one step overlap: a kernel starts before the last one ends.
  bool programmaticLaunch() const { return sm >= 90; }

  /// The target that the attribute describes; `error` says why not.
  static llvm::FailureOr<NvptxTarget> get(TargetAttr attr, std::string &error);

private:
  /// The target of LLVM's name of a chip.
  static llvm::FailureOr<NvptxTarget> get(llvm::StringRef chip,
                                          std::string &error);
};

} // namespace kvc::nvptx

#endif // KVC_CODEGEN_NVPTX_NVPTXTARGET_H
