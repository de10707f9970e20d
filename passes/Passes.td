//===- Passes.td - The passes of kvc --------------------------*- tablegen -*-===//
#ifndef KVC_PASSES
#define KVC_PASSES

include "mlir/Pass/PassBase.td"

class Kvc_Pass<string argument> : Pass<argument, "::kvc::ModelOp"> {
  let dependentDialects = ["::kvc::KvcDialect"];
}

//===----------------------------------------------------------------------===//
// From the model to its programs
//===----------------------------------------------------------------------===//

def SetTarget : Kvc_Pass<"kvc-set-target"> {
  let summary = "writes the choices of one compilation into the model";
  let description = [{
    Resolves the target (`target-cpu=native` becomes LLVM's name of this machine's
    processor and the features that differ from what the name implies) and notes
    it on the model, with the kind of activations. Gives the cache its element type and
    the model the context asked for. Every later choice follows from these attributes,
    never from the machine the compiler runs on.

    ```mlir
    kvc.model @m attributes {max_context = 8192 : i64} {
      kvc.cache @kv : !kvc.cache<layers = 30, kv_heads = 3, head_dim = 64, type = f16, page = 64, split = 256>
    ```
    with `target-cpu=x86-64-v3 kv-type=f32 activations=int8 ctx=2048` becomes
    ```mlir
    kvc.model @m attributes {activations = "int8", max_context = 2048 : i64,
        target = #kvc.target<arch = "cpu", cpu = "x86-64-v3", features = "", vector_width = 256>} {
      kvc.cache @kv : !kvc.cache<layers = 30, kv_heads = 3, head_dim = 64, type = f32, page = 64, split = 256>
    ```
    and with `target=cuda`, whose attention merges splits of 64 positions,
    ```mlir
    kvc.model @m attributes {activations = "bf16", max_context = 8192 : i64,
        target = #kvc.target<arch = "cuda", cpu = "sm_90", features = "+ptx80", vector_width = 128>} {
      kvc.cache @kv : !kvc.cache<layers = 30, kv_heads = 3, head_dim = 64, type = f16, page = 64, split = 64>
    ```
  }];
  let options = [
    Option<"target", "target", "std::string", "\"cpu\"", "architecture: cpu or cuda">,
    Option<"targetCpu", "target-cpu", "std::string", "\"\"",
           "LLVM's name of the processor or chip; cpu: native if empty; cuda: sm_80, sm_89, sm_90 (if empty), sm_90a or sm_100">,
    Option<"vectorWidth", "vector-width", "int64_t", "0",
           "cpu: register width in bits that tiles are written for; 0: the widest the processor has">,
    Option<"ptxVersion", "ptx-version", "int64_t", "0", "cuda: version of PTX to write, 80 for 8.0; 0: one that fits the chip">,
    Option<"kvType", "kv-type", "std::string", "\"f16\"", "element type of the cache: f32 (cpu), f16 or bf16">,
    Option<"activations", "activations", "std::string", "\"\"",
           "what linears multiply: f32, bf16, or int8 where weights are block-quantised; if empty int8 on cpu, bf16 on cuda, which has no other">,
    Option<"ctx", "ctx", "int64_t", "0", "positions to compile for; 0: the model's own">,
  ];
}

def SplitPhases : Kvc_Pass<"kvc-split-phases"> {
  let summary = "makes the prefill and the decode program from the forward function";
  let description = [{
    From here on the phase is an attribute that passes and code generation may use.
    Both programs start as the same ops.

    ```mlir
    kvc.forward @forward(%tokens: ..., %batch: !kvc.batch) -> tensor<?x131xf32, #kvc.outputs> { ... }
    ```
    becomes
    ```mlir
    kvc.program @prefill(...) -> ... attributes {phase = #kvc.phase<prefill>} { ... }
    kvc.program @decode(...) -> ... attributes {phase = #kvc.phase<decode>} { ... }
    ```
  }];
}

def QuantizeActivations : Kvc_Pass<"kvc-quantize-activations"> {
  let summary = "marks where activations are rounded to 8 or 16 bits";
  let description = [{
    If the model's `activations` is `int8`: each linear whose weights are
    block-quantised in every layer reads its input through a `kvc.quantize`, one for
    each distinct input. A linear with an f32, f16 or bf16 weight in any layer keeps f32
    activations. If it is `bf16`: each linear reads its input through a `kvc.round` to bf16, and each
    attention its query through one to the cache's element type, unless that is f32. (The fused attention
    then rounds its weights to it, too.)
    Nothing else in the compiler decides where roundings stand.

    ```mlir
    %q = kvc.linear %n, [@attn_q][%layer] : ...
    %k = kvc.linear %n, [@attn_k][%layer] : ...
    ```
    becomes
    ```mlir
    %nq = kvc.quantize %n : tensor<?x576xf32, #kvc.rows>
    %q = kvc.linear %nq, [@attn_q][%layer] : ...
    %k = kvc.linear %nq, [@attn_k][%layer] : ...
    ```
  }];
  let statistics = [Statistic<"numQuantized", "quantized", "values quantized">];
}

//===----------------------------------------------------------------------===//
// Fusion
//===----------------------------------------------------------------------===//

class Kvc_FusionPass<string argument> : Kvc_Pass<argument> {
  let statistics = [Statistic<"numFused", "fused", "fusions done">];
}

def FuseQkv : Kvc_FusionPass<"kvc-fuse-qkv"> {
  let summary = "one linear for the projections of one attention";
  let description = [{
    Linears of the same input and layer whose results go, perhaps rotated, to an attention or
    the cache become one linear with a segment each, in one kernel. Each segment keeps
    its own weight and format. Projections whose inputs differ (one reads rounded activations,
    another does not) stay apart.

    ```mlir
    %q = kvc.linear %n, [@attn_q][%layer] : (tensor<?x80xf32, #kvc.rows>) -> tensor<?x6x24xf32, #kvc.rows>
    %k = kvc.linear %n, [@attn_k][%layer] : ...
    %v = kvc.linear %n, [@attn_v][%layer] : ...
    ```
    becomes
    ```mlir
    %q, %k, %v = kvc.kernel "qkv" -> ... {
      %0:3 = kvc.linear %n, [@attn_q, @attn_k, @attn_v][%layer] : ...
      kvc.yield %0#0, %0#1, %0#2 : ...
    }
    ```
  }];
}

def FuseGateUp : Kvc_FusionPass<"kvc-fuse-gate-up"> {
  let summary = "gate and up projection in one kernel with their activation";
  let description = [{
    Two linears of one input whose results meet in `mul(activation(gate), up)` become
    one linear of two segments, with the activation and the product on its tile. A function of one
    linear's values, the activation of an ungated feed-forward or a `soft_cap`, goes onto that linear's tile.

    ```mlir
    %g = kvc.linear %n, [@ffn_gate][%layer] : ...
    %u = kvc.linear %n, [@ffn_up][%layer] : ...
    %a = kvc.activation %g {kind = #kvc.activation_kind<silu>} : ...
    %m = kvc.mul %a, %u : ...
    ```
    becomes
    ```mlir
    %m = kvc.kernel "gate_up" -> ... {
      %g, %u = kvc.linear %n, [@ffn_gate, @ffn_up][%layer] : ...
      %a = kvc.activation %g {kind = #kvc.activation_kind<silu>} : ...
      %p = kvc.mul %a, %u : ...
      kvc.yield %p : ...
    }
    ```
  }];
}

def FuseMaskedSoftmax : Kvc_FusionPass<"kvc-fuse-masked-softmax"> {
  let summary = "attention that never stores its scores";
  let description = [{
    Scores, masked softmax and context of one cache layer become one `kvc.attention` in a
    kernel of its own, unless something else uses the scores or writes the cache in between. Where the query is a
    `kvc.round`, the attention's `weights` are rounded to the same type.

    ```mlir
    %s = kvc.scores %q, @kv[%layer], %batch {scale = 0.125 : f64} : ...
    %p = kvc.masked_softmax %s, %batch : ...
    %c = kvc.context %p, @kv[%layer], %batch : ...
    ```
    becomes
    ```mlir
    %c = kvc.kernel "attention" -> ... {
      %a = kvc.attention %q, @kv[%layer], %batch {scale = 0.125 : f64} : ...
      kvc.yield %a : ...
    }
    ```
  }];
}

def FuseCacheAppend : Kvc_FusionPass<"kvc-fuse-cache-append"> {
  let summary = "rotation and cache append on the tile of their projection";
  let description = [{
    Rotations of a linear's results go into the linear's kernel; so does the
    `kvc.cache_append` whose keys and values are both made there. K and V then go
    from the tile to their page, once, and need no slot.

    ```mlir
    %q, %k, %v = kvc.kernel "qkv" -> ... { ... }
    %qr = kvc.rope %q, %batch {...} : ...
    %kr = kvc.rope %k, %batch {...} : ...
    kvc.cache_append %kr, %v, @kv[%layer], %batch : ...
    ```
    becomes
    ```mlir
    %qr = kvc.kernel "qkv" -> ... {
      %0:3 = kvc.linear %n, [@attn_q, @attn_k, @attn_v][%layer] : ...
      %1 = kvc.rope %0#0, %batch {...} : ...
      %2 = kvc.rope %0#1, %batch {...} : ...
      kvc.cache_append %2, %0#2, @kv[%layer], %batch : ...
      kvc.yield %1 : ...
    }
    ```
  }];
}

def FuseResidual : Kvc_FusionPass<"kvc-fuse-residual"> {
  let summary = "the residual sum on the tile of its linear";
  let description = [{
    A sum of which one operand is a linear's result that nothing else uses goes
    into that linear's kernel.

    ```mlir
    %o = kvc.linear %c, [@attn_output][%layer] : ...
    %h1 = kvc.add %h, %o : ...
    ```
    becomes
    ```mlir
    %h1 = kvc.kernel "out" -> ... {
      %o = kvc.linear %c, [@attn_output][%layer] : ...
      %s = kvc.add %h, %o : ...
      kvc.yield %s : ...
    }
    ```
  }];
}

def FuseNorm : Kvc_FusionPass<"kvc-fuse-norm"> {
  let summary = "a norm as the prologue of its only linear";
  let description = [{
    A norm that one linear alone uses, directly or rounded, goes with its rounding and with the
    selection of rows before it into the linear's kernel, where every worker computes it for
    itself. That pays where rows are few: in decode programs, and for output
    rows. On the rows of a prefill program the norm stays a kernel of its own.

    ```mlir
    %n = kvc.rms_norm %h, @ffn_norm[%layer] {eps = 1.0e-5 : f64} : ...
    %g = kvc.linear %n, [@ffn_up][%layer] : ...
    ```
    becomes
    ```mlir
    %g = kvc.kernel "linear" -> ... {
      %n = kvc.rms_norm %h, @ffn_norm[%layer] {eps = 1.0e-5 : f64} : ...
      %u = kvc.linear %n, [@ffn_up][%layer] : ...
      kvc.yield %u : ...
    }
    ```
  }];
}

def FuseQuantize : Kvc_FusionPass<"kvc-fuse-quantize"> {
  let summary = "activations are rounded where they are made";
  let description = [{
    A `kvc.quantize` or a `kvc.round` goes into the kernel that makes its input: an attention (for
    `kvc.quantize` one whose heads are whole blocks of 32), the activation of a feed-forward, a norm, the
    projection of an attention's queries. Otherwise it becomes the
    prologue of its linear where rows are few (decode, output rows), or stays a kernel of its own.

    ```mlir
    %c = kvc.kernel "attention" -> tensor<?x9x64xf32, #kvc.rows> { ... }
    %q = kvc.quantize %c : tensor<?x9x64xf32, #kvc.rows>
    ```
    becomes
    ```mlir
    %q = kvc.kernel "attention" -> tensor<?x9x64xf32, #kvc.rows> {
      %a = kvc.attention ...
      %r = kvc.quantize %a : tensor<?x9x64xf32, #kvc.rows>
      kvc.yield %r : tensor<?x9x64xf32, #kvc.rows>
    }
    ```
  }];
}

//===----------------------------------------------------------------------===//
// To the schedule
//===----------------------------------------------------------------------===//

def PackWeights : Kvc_Pass<"kvc-pack-weights"> {
  let summary = "chooses the packed layout of each weight and its place in the arena";
  let description = [{
    Each matrix gets the layout that the target's kernels read.
    On the CPU a `#kvc.panels`: as many lanes as the target's vector
    register has f32 values, and units that tiles of its kernel cover whole: a head
    where heads are a dimension of the result, else 32 rows, 64 in a matrix
    of more than 8,192 rows. For cuda a `#kvc.tiles`: units of 16 rows, or where heads are rotated a head
    whose pairs meet in one thread; `splits` follow from the columns alone.
    Each weight gets the byte offset of each layer, a multiple of
    64, of 128 for cuda: first what is embedded from, then layer after layer, then the rest.
    Vectors are stored as f32. Weights that no program uses get no place. The
    size of the arena becomes the model's `weights_bytes`.

    ```mlir
    kvc.weight @attn_q : !kvc.weight<2x576x576> = [...]
    ```
    becomes
    ```mlir
    kvc.weight @attn_q : !kvc.weight<2x576x576, #kvc.panels<lanes = 8, unit = 64>> = [...] {offsets = array<i64: 2304, 1873728>}
    ```
  }];
  let statistics = [Statistic<"numPacked", "packed", "weights given a place">];
}

def PlanMemory : Kvc_Pass<"kvc-plan-memory"> {
  let summary = "gives every value that crosses kernels a slot in an arena";
  let description = [{
    Ops outside kernels become kernels of their own. Each value that one kernel hands
    to another gets a slot in the `rows` or the `outputs` arena, by its extent, and slots of values
    that are never live together share bytes. A carried value of `kvc.layers` keeps one
    slot, and an elementwise op whose operand dies with it writes over that operand: a residual
    stream stays in one place. Where that is impossible a kernel "copy" is inserted. A value
    that a prologue hands to its anchor is staged in the worker's own slot. What a `kvc.quantize` makes lies
    in a `q8` slot; what a `kvc.round` makes in a slot of its type for cuda, in an `f32` slot on the CPU.

    Afterwards kernels have no results and capture nothing but the tokens, the batch and
    the layer's index, the program returns nothing (its logits lie in the logits slot), and
    `rows_bytes`, `outputs_bytes` and `worker_bytes` say what a row needs of
    each arena.

    ```mlir
    %h1 = kvc.kernel "out" -> tensor<?x576xf32, #kvc.rows> {
      %o = kvc.linear %c, [@attn_output][%layer] : ...
      %s = kvc.add %h, %o : tensor<?x576xf32, #kvc.rows>
      kvc.yield %s : tensor<?x576xf32, #kvc.rows>
    }
    ```
    becomes
    ```mlir
    kvc.kernel "out" {
      %c = kvc.read slot<rows, offset = 2304, stride = 2304, f32> : tensor<?x9x64xf32, #kvc.rows>
      %h = kvc.read slot<rows, offset = 0, stride = 2304, f32> : tensor<?x576xf32, #kvc.rows>
      %o = kvc.linear %c, [@attn_output][%layer] : ...
      %s = kvc.add %h, %o : tensor<?x576xf32, #kvc.rows>
      kvc.write %s, slot<rows, offset = 0, stride = 2304, f32> : tensor<?x576xf32, #kvc.rows>
    }
    ```
    Attention scores, where they have not been fused away, have a slot of heads x `max_context`
    values a row: score (h, t) of a row lies at `(h * max_context + t) * 4`.
  }];
  let statistics = [
    Statistic<"numCopies", "copies", "copy kernels inserted">,
    Statistic<"numInPlace", "in-place", "values written over an operand">,
  ];
}

def Schedule : Kvc_Pass<"kvc-schedule"> {
  let summary = "numbers the kernels and puts barriers where they depend";
  let description = [{
    Each kernel becomes a `kvc.dispatch`, numbered from 0 in each program. A
    `kvc.barrier` stands between two dispatches only where one reads or writes bytes that
    the other writes (slots or cache), also between the end of a layer and the start of the next.

    ```mlir
    kvc.kernel "a" { ... kvc.write %x, slot<rows, offset = 0, ...> }
    kvc.kernel "b" { %x = kvc.read slot<rows, offset = 0, ...> ... }
    ```
    becomes
    ```mlir
    kvc.dispatch "a" 0 { ... kvc.write %x, slot<rows, offset = 0, ...> }
    kvc.barrier
    kvc.dispatch "b" 1 { %x = kvc.read slot<rows, offset = 0, ...> ... }
    ```
  }];
  let statistics = [
    Statistic<"numDispatches", "dispatches", "dispatches">,
    Statistic<"numBarriers", "barriers", "barriers">,
  ];
}

#endif // KVC_PASSES
