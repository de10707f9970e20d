//===- Passes.h - The passes of kvc and their pipeline --------------------===//
#ifndef KVC_PASSES_PASSES_H
#define KVC_PASSES_PASSES_H

#include "dialect/KvcDialect.h"

#include "mlir/Pass/Pass.h"
#include "mlir/Pass/PassOptions.h"

namespace kvc {

#define GEN_PASS_DECL
#include "passes/Passes.h.inc"

#define GEN_PASS_REGISTRATION
#include "passes/Passes.h.inc"

/// What `kvc-pipeline` takes: the choices of one compilation.
struct PipelineOptions : mlir::PassPipelineOptions<PipelineOptions> {
  Option<std::string> target{*this, "target",
                             llvm::cl::desc("architecture: cpu or cuda"),
                             llvm::cl::init("cpu")};
  Option<std::string> targetCpu{
      *this, "target-cpu",
      llvm::cl::desc("LLVM's name of the processor or chip; empty: native on "
                     "cpu, sm_90 on cuda"),
      llvm::cl::init("")};
  Option<int64_t> vectorWidth{
      *this, "vector-width",
      llvm::cl::desc("register width in bits; 0: the processor's widest"),
      llvm::cl::init(0)};
  Option<int64_t> ptxVersion{
      *this, "ptx-version",
      llvm::cl::desc("cuda: 80 for PTX 8.0; 0: one that fits the chip"),
      llvm::cl::init(0)};
  Option<std::string> kvType{*this, "kv-type",
                             llvm::cl::desc("cache element: f32, f16 or bf16"),
                             llvm::cl::init("f16")};
  Option<std::string> activations{
      *this, "activations",
      llvm::cl::desc("f32, bf16 or int8; empty: int8 "
                     "on cpu, bf16 on cuda"),
      llvm::cl::init("")};
  Option<int64_t> ctx{
      *this, "ctx", llvm::cl::desc("positions to compile for; 0: the model's"),
      llvm::cl::init(0)};
  Option<bool> fuse{*this, "fuse",
                    llvm::cl::desc("false leaves every op a kernel of its own"),
                    llvm::cl::init(true)};
};

/// From a model as imported (L1) to its schedule (L4). `manager` is one of
/// builtin.module.
void buildPipeline(mlir::OpPassManager &manager,
                   const PipelineOptions &options);

/// Registers the passes and `kvc-pipeline`.
void registerPassesAndPipeline();

} // namespace kvc

#endif // KVC_PASSES_PASSES_H
