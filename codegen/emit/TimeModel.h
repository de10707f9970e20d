//===- TimeModel.h - How long a schedule should take on a GPU -------------===//
//
// A kernel takes as long as the slower of its bytes and its operations, at what
// the GPU has been measured to reach, and then the gap to the next kernel. That
// is a bound with launches, not a simulation: what a kernel loses between the
// two is what a measurement is compared with this for.
#ifndef KVC_CODEGEN_EMIT_TIMEMODEL_H
#define KVC_CODEGEN_EMIT_TIMEMODEL_H

#include "llvm/ADT/StringRef.h"

#include <string>
#include <vector>

namespace kvc {

/// A number, and where it comes from.
struct GpuConstant {
  double value;
  const char *source;
};

struct Gpu {
  const char *name;           // "h200"
  GpuConstant bytesPerSecond; // of memory, reached by a copy
  GpuConstant flopsPerSecond; // of bf16 matrix products, dense
  GpuConstant launchGap;      // seconds between kernels of a graph
};

/// Null where none has that name.
const Gpu *findGpu(llvm::StringRef name);
std::vector<llvm::StringRef> gpuNames();

/// The GPU a chip ("sm_90") is usually asked about; empty if there is none.
llvm::StringRef usualGpu(llvm::StringRef chip);

/// Seconds of `launches` launches that move `bytes` and do `flops` together.
double predictSeconds(const Gpu &gpu, double launches, double bytes,
                      double flops);

} // namespace kvc

#endif // KVC_CODEGEN_EMIT_TIMEMODEL_H
