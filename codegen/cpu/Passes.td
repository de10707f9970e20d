//===- Passes.td - Passes of CPU code generation --------------*- tablegen -*-===//
#ifndef KVC_CODEGEN_CPU_PASSES
#define KVC_CODEGEN_CPU_PASSES

include "mlir/Pass/PassBase.td"

def ConvertToCpu : Pass<"kvc-convert-to-cpu", "mlir::ModuleOp"> {
  let summary = "Turns the schedule of a model into functions of loops and vectors";
  let description = [{
    Each program becomes one function, `kvc_prefill` or `kvc_decode`, with the signature of
    `KvcStepFunction` (runtime/Abi.h), which every worker calls; each dispatch becomes a private
    function that computes the worker's share of it; each kind of panel product becomes a
    function of its own, shared by all. Register width and instructions follow from the
    model's `#kvc.target`. The model stays, without its programs, as the record of weights.

    Before:

    ```mlir
    kvc.model @m attributes {target = #kvc.target<arch = "cpu", cpu = "x86-64-v3", features = "", vector_width = 256>, ...} {
      kvc.program @decode(%tokens: ..., %batch: !kvc.batch) attributes {phase = #kvc.phase<decode>, ...} {
        kvc.dispatch "embed" 0 { ... }
        kvc.barrier
        ...
    ```

    After:

    ```mlir
    func.func @kvc_decode(%batch: !llvm.ptr, %arenas: !llvm.ptr, %team: !llvm.ptr, %worker: i64, %workers: i64) {
      call @decode.0.embed(%batch, %arenas, %worker, %workers, %c0) : (...) -> ()
      call @kvc_barrier(%team, %worker, %c0) : (!llvm.ptr, i64, i64) -> ()
      ...
    ```
  }];
  let options = [
    Option<"dot", "dot", "std::string", /*default=*/"\"auto\"",
           "How 8-bit products are summed: auto, vnni, maddubs or generic">
  ];
  let statistics = [
    Statistic<"dispatches", "dispatches", "Number of dispatches converted">
  ];
  let dependentDialects = ["mlir::arith::ArithDialect", "mlir::func::FuncDialect",
    "mlir::LLVM::LLVMDialect", "mlir::math::MathDialect", "mlir::scf::SCFDialect",
    "mlir::vector::VectorDialect"];
}

#endif // KVC_CODEGEN_CPU_PASSES
