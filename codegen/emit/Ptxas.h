//===- Ptxas.h - NVIDIA's assembler, where it is found --------------------===//
#ifndef KVC_CODEGEN_EMIT_PTXAS_H
#define KVC_CODEGEN_EMIT_PTXAS_H

#include "llvm/ADT/StringRef.h"
#include "llvm/Support/Error.h"

#include <string>
#include <vector>

namespace kvc {

/// What ptxas says of one kernel.
struct KernelResources {
  std::string kernel;
  int64_t registers = 0;
  int64_t sharedBytes = 0; // static
  int64_t stackBytes = 0;
  int64_t spillStoreBytes = 0;
  int64_t spillLoadBytes = 0;
  int64_t barriers = 0;
};

struct AssembledCode {
  std::string cubin;
  std::vector<KernelResources> kernels; // in the order of the text
};

/// The path of ptxas: on the PATH, in CUDA_HOME or CUDA_PATH, or where
/// scripts/ptxas puts it. Empty where there is none.
std::string findPtxas();

/// Assembles PTX for its chip.
llvm::Expected<AssembledCode> assemblePtx(llvm::StringRef ptx,
                                          llvm::StringRef chip,
                                          const std::string &ptxas);

/// Reads what `ptxas -v` printed.
std::vector<KernelResources> parsePtxasLog(llvm::StringRef log);

} // namespace kvc

#endif // KVC_CODEGEN_EMIT_PTXAS_H
