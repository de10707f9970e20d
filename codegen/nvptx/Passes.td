//===- Passes.td - Passes of NVIDIA code generation -----------*- tablegen -*-===//
#ifndef KVC_CODEGEN_NVPTX_PASSES
#define KVC_CODEGEN_NVPTX_PASSES

include "mlir/Pass/PassBase.td"

def ConvertToNvvm : Pass<"kvc-convert-to-nvvm", "mlir::ModuleOp"> {
  let summary = "Turns the schedule of a model into GPU kernels and a list of launches";
  let description = [{
    Each dispatch becomes one or a few kernels (`llvm.func` with `nvvm.kernel`), for few rows and for
    many, all with the same parameters; each program becomes the list of its launches, every layer's in
    order, in the module's attribute `kvc.launches`. Code does not grow with depth, the list does. The
    model stays, without its programs, as the record of weights.

    Before:

    ```mlir
    kvc.model @m attributes {target = #kvc.target<arch = "cuda", cpu = "sm_90", features = "", vector_width = 128>, ...} {
      kvc.program @decode(%tokens: ..., %batch: !kvc.batch) attributes {phase = #kvc.phase<decode>, ...} {
        kvc.dispatch "embed" 0 { ... }
        kvc.barrier
        ...
    ```

    After:

    ```mlir
    module attributes {kvc.launches = {decode = [{kernel = @decode_0_embed, threads = 256 : i64, x = ["rows", 1 : i64], ...}, ...
    llvm.func @decode_0_embed(%weights: !llvm.ptr, ...) attributes {nvvm.kernel, nvvm.reqntid = array<i32: 256, 1, 1>} {
    ```
  }];
  let statistics = [
    Statistic<"dispatches", "dispatches", "Number of dispatches converted">,
    Statistic<"launches", "launches", "Number of launches listed">
  ];
  let dependentDialects = ["mlir::arith::ArithDialect", "mlir::LLVM::LLVMDialect",
    "mlir::math::MathDialect", "mlir::NVVM::NVVMDialect", "mlir::scf::SCFDialect"];
}

#endif // KVC_CODEGEN_NVPTX_PASSES
