//===- TimeModel.cpp ------------------------------------------------------===//
#include "codegen/emit/TimeModel.h"

#include "llvm/ADT/STLExtras.h"

using namespace kvc;
using llvm::StringRef;

// The gap: a published run of Llama-3.2-1B in bf16 on one card, 100 ordinary
// kernels in a graph with programmatic launches, takes 795 us a token. Its
// 2.472 GB of weights take 575 us at 4.3 TB/s, and the rest is 2.2 us a kernel.
static constexpr GpuConstant HopperGap = {
    2.2e-6, "(795 us - 2.472 GB / 4.3 TB/s) / 100 kernels of a published run "
            "of Llama-3.2-1B"};

// A copy reaches 4.3 of the H200's 4.8 TB/s, cuBLAS 790 of its 989 TFLOP/s: the
// others' are taken to reach the same parts of theirs.
static constexpr Gpu Gpus[] = {
    {"h200",
     {4.3e12, "measured, of 4.8 TB/s"},
     {790e12, "measured, of 989 TFLOP/s"},
     HopperGap},
    {"h100",
     {3.0e12, "90 % of 3.35 TB/s, the part an H200 was measured to reach"},
     {790e12, "the H200's, which has the same chip"},
     HopperGap},
    {"a100",
     {1.83e12, "90 % of 2.04 TB/s (80 GB SXM), the part an H200 was measured "
               "to reach"},
     {250e12, "80 % of 312 TFLOP/s, the part an H200 was measured to reach"},
     {2.2e-6, "the H200's; without programmatic launches no less than that"}},
};

const Gpu *kvc::findGpu(StringRef name) {
  const Gpu *found =
      llvm::find_if(Gpus, [&](const Gpu &gpu) { return gpu.name == name; });
  return found == std::end(Gpus) ? nullptr : found;
}

std::vector<StringRef> kvc::gpuNames() {
  std::vector<StringRef> names;
  for (const Gpu &gpu : Gpus)
    names.emplace_back(gpu.name);
  return names;
}

StringRef kvc::usualGpu(StringRef chip) {
  if (chip == "sm_80")
    return "a100";
  return chip.starts_with("sm_90") ? "h200" : "";
}

double kvc::predictSeconds(const Gpu &gpu, double launches, double bytes,
                           double flops) {
  return launches * gpu.launchGap.value +
         std::max(bytes / gpu.bytesPerSecond.value,
                  flops / gpu.flopsPerSecond.value);
}
