//===- Passes.h - Passes of CPU code generation ---------------------------===//
#ifndef KVC_CODEGEN_CPU_PASSES_H
#define KVC_CODEGEN_CPU_PASSES_H

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/Pass/Pass.h"
#include "mlir/Pass/PassManager.h"

namespace kvc::cpu {

#define GEN_PASS_DECL
#include "codegen/cpu/Passes.h.inc"

/// What follows kvc-convert-to-cpu: loops, vectors and arithmetic to the LLVM
/// dialect. Registered as `kvc-cpu-to-llvm`.
void buildLowerToLLVMPipeline(mlir::OpPassManager &manager);

/// Registers kvc-convert-to-cpu and kvc-cpu-to-llvm.
void registerCpuPasses();

} // namespace kvc::cpu

#endif // KVC_CODEGEN_CPU_PASSES_H
