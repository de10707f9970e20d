//===- NvptxTarget.cpp ----------------------------------------------------===//
#include "codegen/nvptx/NvptxTarget.h"

using namespace kvc;
using namespace kvc::nvptx;

llvm::FailureOr<NvptxTarget> NvptxTarget::get(llvm::StringRef chip,
                                              std::string &error) {
  // Shared memory: the most that a block may ask for, less 1 KiB of the
  // system's.
  static const NvptxTarget known[] = {{"sm_80", 80, 163 * 1024},
                                      {"sm_89", 89, 99 * 1024},
                                      {"sm_90", 90, 227 * 1024},
                                      {"sm_90a", 90, 227 * 1024},
                                      {"sm_100", 100, 227 * 1024}};
  for (const NvptxTarget &target : known)
    if (target.chip == chip)
      return target;
  error = ("the chip is sm_80, sm_89, sm_90, sm_90a or sm_100, found '" + chip +
           "'")
              .str();
  return llvm::failure();
}

llvm::FailureOr<NvptxTarget> NvptxTarget::get(TargetAttr attr,
                                              std::string &error) {
  if (attr && attr.getArch() == "cuda")
    return get(attr.getCpu(), error);
  error = "needs a cuda target; run kvc-set-target{target=cuda}";
  return llvm::failure();
}
