//===- KernelTable.h - What the kernels of a GPU program take -------------===//
#ifndef KVC_CODEGEN_EMIT_KERNELTABLE_H
#define KVC_CODEGEN_EMIT_KERNELTABLE_H

#include "codegen/emit/Ptx.h"
#include "codegen/emit/Ptxas.h"

#include "llvm/Support/raw_ostream.h"

namespace kvc {

/// A line for each kernel: its launches a step, threads, dynamic shared memory,
/// and what ptxas says where it is there (`ptxas` is its path, else empty).
llvm::Error printKernelTable(const DeviceCode &code, const std::string &ptxas,
                             llvm::raw_ostream &os);

} // namespace kvc

#endif // KVC_CODEGEN_EMIT_KERNELTABLE_H
