//===- Passes.h - Passes of NVIDIA code generation ------------------------===//
#ifndef KVC_CODEGEN_NVPTX_PASSES_H
#define KVC_CODEGEN_NVPTX_PASSES_H

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/LLVMIR/NVVMDialect.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/Pass/Pass.h"
#include "mlir/Pass/PassManager.h"

namespace kvc::nvptx {

#define GEN_PASS_DECL
#include "codegen/nvptx/Passes.h.inc"

/// What follows kvc-convert-to-nvvm: loops and arithmetic to the LLVM dialect.
/// Registered as `kvc-nvvm-to-llvm`.
void buildLowerToLLVMPipeline(mlir::OpPassManager &manager);

/// Registers kvc-convert-to-nvvm and kvc-nvvm-to-llvm.
void registerNvptxPasses();

} // namespace kvc::nvptx

#endif // KVC_CODEGEN_NVPTX_PASSES_H
