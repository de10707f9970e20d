//===- KvcBase.td - The kvc dialect ---------------------------*- tablegen -*-===//
#ifndef KVC_BASE
#define KVC_BASE

include "mlir/IR/OpBase.td"
include "mlir/IR/AttrTypeBase.td"
include "mlir/IR/EnumAttr.td"

def Kvc_Dialect : Dialect {
  let name = "kvc";
  let cppNamespace = "::kvc";
  let summary = "Decoder-only transformers, from a model description to a schedule of fused kernels";
  let description = [{
    The dialect carries a model through four levels, each ordinary IR that
    prints, parses, verifies and runs in the reference interpreter:

    | level | holds | made by |
    |---|---|---|
    | L1 model | one `kvc.model`: weights by symbol, one `kvc.forward` of plain ops | the importers |
    | L2 programs | `kvc.program @prefill` and `@decode` | `kvc-split-phases` |
    | L3 kernels | `kvc.kernel` regions: prologue ops, one anchor, epilogue ops | `kvc-fuse-*` |
    | L4 schedule | `kvc.dispatch` and `kvc.barrier`, values in slots of arenas | `kvc-pack-weights`, `kvc-plan-memory`, `kvc-schedule` |

    Values are f32 tensors whose first dimension is dynamic and named by the
    tensor's encoding: `#kvc.rows`, the new tokens of this step (ragged over
    sequences), or `#kvc.outputs`, the rows whose logits are wanted. All other
    dimensions are static, except for the context of attention scores. Weights
    are declarations whose bytes stay in their file; the KV cache is state with
    memory effects, never a tensor.
  }];
  let useDefaultTypePrinterParser = 1;
  let useDefaultAttributePrinterParser = 1;
  let extraClassDeclaration = [{
    void registerAttributes();
    void registerTypes();
  }];
}

#endif // KVC_BASE
