//===- kvc-opt.cpp - Runs passes over kvc IR ------------------------------===//
#include "codegen/cpu/Passes.h"
#include "codegen/nvptx/Passes.h"
#include "dialect/KvcDialect.h"
#include "passes/Passes.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "mlir/Tools/mlir-opt/MlirOptMain.h"
#include "mlir/Transforms/Passes.h"

int main(int argc, char **argv) {
  mlir::DialectRegistry registry;
  registry.insert<kvc::KvcDialect, mlir::arith::ArithDialect,
                  mlir::func::FuncDialect, mlir::LLVM::LLVMDialect,
                  mlir::math::MathDialect, mlir::NVVM::NVVMDialect,
                  mlir::scf::SCFDialect, mlir::vector::VectorDialect>();
  mlir::registerTransformsPasses();
  kvc::registerPassesAndPipeline();
  kvc::cpu::registerCpuPasses();
  kvc::nvptx::registerNvptxPasses();
  return mlir::asMainReturnCode(mlir::MlirOptMain(
      argc, argv, "kvc-opt: runs passes over kvc IR\n", registry));
}
