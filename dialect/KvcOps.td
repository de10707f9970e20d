//===- KvcOps.td - Operations of the kvc dialect --------------*- tablegen -*-===//
#ifndef KVC_OPS
#define KVC_OPS

include "dialect/KvcTypes.td"
include "mlir/IR/SymbolInterfaces.td"
include "mlir/Interfaces/FunctionInterfaces.td"
include "mlir/Interfaces/InferTypeOpInterface.td"
include "mlir/Interfaces/SideEffectInterfaces.td"

class Kvc_Op<string mnemonic, list<Trait> traits = []>
    : Op<Kvc_Dialect, mnemonic, traits>;

// State that ops touch without a value: the KV cache and the slots.
def Kvc_CacheResource : Resource<"::kvc::CacheResource">;
def Kvc_SlotResource : Resource<"::kvc::SlotResource">;
def Kvc_ReadsCache : MemoryEffects<[MemRead<Kvc_CacheResource>]>;
def Kvc_WritesCache : MemoryEffects<[MemWrite<Kvc_CacheResource>]>;

//===----------------------------------------------------------------------===//
// Declarations
//===----------------------------------------------------------------------===//

def Kvc_ModelOp : Kvc_Op<"model", [IsolatedFromAbove, NoTerminator, NoRegionArguments,
    SingleBlock, SymbolTable, Symbol]> {
  let summary = "a model: its sources, weights, cache and functions";
  let description = [{
    Holds everything one executable is made of, as symbols of its body: sources, weights,
    the cache and functions (one `kvc.forward`, or the programs made from it).
    `max_context` is the number of positions the model was made for, `eos` the ids that end a generation and
    `vocab_tokens` the ids a tokenizer can decode (rows of the head beyond it are
    padding and never sampled). `tokenizer`, if present, names the source that
    holds one. `target` is set when a target has been chosen; `activations`
    (`f32`, `bf16` or `int8`) then says what linears multiply. `weights_bytes`, set by
    `kvc-pack-weights`, is the size in bytes of the arena that holds the packed weights.

    ```mlir
    kvc.model @smollm2 attributes {eos = array<i64: 2>, max_context = 8192 : i64,
        tokenizer = @file, vocab_tokens = 49152 : i64} {
      kvc.source @file {path = "smollm2.gguf", size = 98362432 : i64}
      ...
    }
    ```
  }];
  let arguments = (ins SymbolNameAttr:$sym_name,
                       I64Attr:$max_context,
                       DefaultValuedAttr<DenseI64ArrayAttr, "{}">:$eos,
                       OptionalAttr<I64Attr>:$vocab_tokens,
                       OptionalAttr<FlatSymbolRefAttr>:$tokenizer,
                       OptionalAttr<Kvc_TargetAttr>:$target,
                       OptionalAttr<StrAttr>:$activations,
                       OptionalAttr<I64Attr>:$weights_bytes);
  let regions = (region SizedRegion<1>:$body);
  let assemblyFormat = "$sym_name attr-dict-with-keyword $body";
  let hasVerifier = 1;
}

def Kvc_SourceOp : Kvc_Op<"source", [Symbol, HasParent<"ModelOp">]> {
  let summary = "a file, or a generator, that weights take their values from";
  let description = [{
    Either a file, named by `path`, with its `size` in bytes and a digest of its
    header so that a changed file is noticed, or a documented generator of
    reproducible values, named by its `seed` (docs/SPEC_WEIGHTS.md).

    ```mlir
    kvc.source @file {path = "smollm2.gguf", size = 98362432 : i64, header_digest = 81985529216486895 : i64}
    kvc.source @seed {seed = 1 : i64}
    ```
  }];
  let arguments = (ins SymbolNameAttr:$sym_name, OptionalAttr<StrAttr>:$path,
                       OptionalAttr<I64Attr>:$size, OptionalAttr<I64Attr>:$header_digest,
                       OptionalAttr<I64Attr>:$seed);
  let assemblyFormat = "$sym_name attr-dict";
  let hasVerifier = 1;
}

def Kvc_WeightOp : Kvc_Op<"weight", [Symbol, HasParent<"ModelOp">,
    DeclareOpInterfaceMethods<SymbolUserOpInterface>]> {
  let summary = "a weight: shape, and where each layer's values are stored";
  let description = [{
    One slice a layer: real files mix formats across layers. The values never
    enter the IR. A matrix is [rows = output features][columns = input features].
    `offsets`, set by `kvc-pack-weights`, are the byte offsets in the weights arena of
    each layer's packed panels, or of its vector in f32.

    ```mlir
    kvc.weight @attn_q : !kvc.weight<2x576x576> = [#kvc.slice<@file, q4_1, 4096>, #kvc.slice<@file, q4_0, 8192>]
    ```
  }];
  let arguments = (ins SymbolNameAttr:$sym_name, TypeAttrOf<Kvc_WeightType>:$type,
                       TypedArrayAttrBase<Kvc_SliceAttr, "array of slices">:$slices,
                       OptionalAttr<DenseI64ArrayAttr>:$offsets);
  let assemblyFormat = "$sym_name `:` $type `=` $slices attr-dict";
  let hasVerifier = 1;
  let extraClassDeclaration = [{
    SliceAttr getSlice(int64_t layer) {
      return ::llvm::cast<SliceAttr>(getSlices()[layer]);
    }
    WeightType getWeightType() { return ::llvm::cast<WeightType>(getType()); }
  }];
}

def Kvc_CacheOp : Kvc_Op<"cache", [Symbol, HasParent<"ModelOp">]> {
  let summary = "the model's KV cache";
  let description = [{
    Declares the state that `kvc.cache_append` writes and attention reads.

    ```mlir
    kvc.cache @kv : !kvc.cache<layers = 30, kv_heads = 3, head_dim = 64, type = f16, page = 64, split = 256>
    ```
  }];
  let arguments = (ins SymbolNameAttr:$sym_name, TypeAttrOf<Kvc_CacheType>:$type);
  let assemblyFormat = "$sym_name `:` $type attr-dict";
  let extraClassDeclaration = [{
    CacheType getCacheType() { return ::llvm::cast<CacheType>(getType()); }
  }];
}

//===----------------------------------------------------------------------===//
// Functions
//===----------------------------------------------------------------------===//

class Kvc_FunctionOp<string mnemonic, list<Trait> traits = []>
    : Kvc_Op<mnemonic, !listconcat([HasParent<"ModelOp">, FunctionOpInterface, IsolatedFromAbove], traits)> {
  let regions = (region SizedRegion<1>:$body);
  let hasCustomAssemblyFormat = 1;
  let hasVerifier = 1;
  code functionDeclaration = [{
    ::llvm::ArrayRef<::mlir::Type> getArgumentTypes() { return getFunctionType().getInputs(); }
    ::llvm::ArrayRef<::mlir::Type> getResultTypes() { return getFunctionType().getResults(); }
    ::mlir::Region *getCallableRegion() { return &getBody(); }
    ::mlir::Value getTokens() { return getBody().getArgument(0); }
    ::mlir::Value getBatch() { return getBody().getArgument(1); }
  }];
  let extraClassDeclaration = functionDeclaration;
}

def Kvc_ForwardOp : Kvc_FunctionOp<"forward"> {
  let summary = "the model's function: from a step's tokens to logits";
  let description = [{
    L1: the computation of one step, the same for every phase. Takes the token
    ids of the step's rows, [rows], and the batch; returns the logits of its output
    rows, [outputs][vocab]. A step may mix prompts and single tokens of any number of
    sequences: rows are ordered by sequence, and by position within one.

    ```mlir
    kvc.forward @forward(%tokens: tensor<?xi32, #kvc.rows>, %batch: !kvc.batch)
        -> tensor<?x49152xf32, #kvc.outputs> {
      ...
      kvc.return %logits : tensor<?x49152xf32, #kvc.outputs>
    }
    ```
  }];
  let arguments = (ins SymbolNameAttr:$sym_name, TypeAttrOf<FunctionType>:$function_type,
                       OptionalAttr<DictArrayAttr>:$arg_attrs, OptionalAttr<DictArrayAttr>:$res_attrs);
}

def Kvc_ProgramOp : Kvc_FunctionOp<"program"> {
  let summary = "one phase's program";
  let description = [{
    L2 and below: `phase = prefill` takes any number of rows a sequence, so that a
    step may mix prompts and decodes; `phase = decode` takes exactly one row a
    sequence, the newest. From L4 on the program returns nothing: its logits are
    written to the logits slot, and `rows_bytes`, `outputs_bytes` and `worker_bytes`
    are the workspace it needs, in bytes a row.

    ```mlir
    kvc.program @decode(%tokens: tensor<?xi32, #kvc.rows>, %batch: !kvc.batch)
        -> tensor<?x49152xf32, #kvc.outputs> attributes {phase = #kvc.phase<decode>} {
      ...
    }
    ```
  }];
  let arguments = (ins SymbolNameAttr:$sym_name, TypeAttrOf<FunctionType>:$function_type,
                       Kvc_PhaseAttr:$phase,
                       OptionalAttr<I64Attr>:$rows_bytes, OptionalAttr<I64Attr>:$outputs_bytes,
                       OptionalAttr<I64Attr>:$worker_bytes,
                       OptionalAttr<DictArrayAttr>:$arg_attrs, OptionalAttr<DictArrayAttr>:$res_attrs);
}

def Kvc_ReturnOp : Kvc_Op<"return", [Pure, Terminator, ParentOneOf<["ForwardOp", "ProgramOp"]>]> {
  let summary = "ends a function with its logits";
  let description = [{
    ```mlir
    kvc.return %logits : tensor<?x49152xf32, #kvc.outputs>
    ```
  }];
  let arguments = (ins Variadic<Kvc_RowsTensor>:$operands);
  let assemblyFormat = "($operands^ `:` type($operands))? attr-dict";
  let builders = [OpBuilder<(ins), [{ build($_builder, $_state, ::mlir::ValueRange()); }]>];
  let hasVerifier = 1;
}

//===----------------------------------------------------------------------===//
// Regions
//===----------------------------------------------------------------------===//

def Kvc_LayersOp : Kvc_Op<"layers", [RecursiveMemoryEffects,
    SingleBlockImplicitTerminator<"YieldOp">]> {
  let summary = "the layers of a model: one body, run `count` times";
  let description = [{
    The body takes the carried values, then the layer's index, which selects
    weights and cache; it yields the values for the next layer. One body for every
    layer is what keeps code from growing with depth.

    ```mlir
    %y = kvc.layers 30 (%x) : (tensor<?x576xf32, #kvc.rows>) -> tensor<?x576xf32, #kvc.rows> {
    ^bb0(%h: tensor<?x576xf32, #kvc.rows>, %layer: index):
      ...
      kvc.yield %h2 : tensor<?x576xf32, #kvc.rows>
    }
    ```
  }];
  let arguments = (ins I64Attr:$count, Variadic<Kvc_RowsTensor>:$inits);
  let results = (outs Variadic<Kvc_RowsTensor>:$results);
  let regions = (region SizedRegion<1>:$body);
  let assemblyFormat = "$count (`(` $inits^ `)` `:` functional-type($inits, $results))? $body attr-dict";
  let hasVerifier = 1;
  let extraClassDeclaration = [{
    ::mlir::Value getLayer() { return getBody().front().getArguments().back(); }
  }];
}

def Kvc_KernelOp : Kvc_Op<"kernel", [RecursiveMemoryEffects,
    SingleBlockImplicitTerminator<"YieldOp">]> {
  let summary = "ops that run as one kernel: prologue, one anchor, epilogue";
  let description = [{
    L3. The anchor, if there is one, is a `kvc.linear` or a `kvc.attention`. Ops
    before it (prologue) run on the rows of its input; ops after it (epilogue) run
    on a tile of its output while that is in the nearest memory. An op outside any
    kernel is a kernel of its own, so every IR runs.

    ```mlir
    %h1 = kvc.kernel "out" -> tensor<?x576xf32, #kvc.rows> {
      %o = kvc.linear %c, [@attn_output][%layer] : (tensor<?x9x64xf32, #kvc.rows>) -> tensor<?x576xf32, #kvc.rows>
      %s = kvc.add %h, %o : tensor<?x576xf32, #kvc.rows>
      kvc.yield %s : tensor<?x576xf32, #kvc.rows>
    }
    ```
  }];
  let arguments = (ins StrAttr:$name);
  let results = (outs Variadic<Kvc_RowsTensor>:$results);
  let regions = (region SizedRegion<1>:$body);
  let assemblyFormat = "$name (`->` type($results)^)? $body attr-dict";
  let hasVerifier = 1;
  let extraClassDeclaration = [{
    /// The kernel's linear or attention, null where it has none.
    ::mlir::Operation *getAnchor();
  }];
}

def Kvc_DispatchOp : Kvc_Op<"dispatch", [RecursiveMemoryEffects,
    SingleBlockImplicitTerminator<"YieldOp">]> {
  let summary = "a kernel of the schedule: all its values lie in slots";
  let description = [{
    L4. Reads its inputs from slots, writes its results to slots; `id` is its number
    in the plan and the profile. Between two dispatches that depend on
    each other stands a `kvc.barrier`.

    ```mlir
    kvc.dispatch "out" 4 {
      %c = kvc.read slot<rows, offset = 4608, stride = 2304, f32> : tensor<?x9x64xf32, #kvc.rows>
      %h = kvc.read slot<rows, offset = 0, stride = 2304, f32> : tensor<?x576xf32, #kvc.rows>
      %o = kvc.linear %c, [@attn_output][%layer] : (tensor<?x9x64xf32, #kvc.rows>) -> tensor<?x576xf32, #kvc.rows>
      %s = kvc.add %h, %o : tensor<?x576xf32, #kvc.rows>
      kvc.write %s, slot<rows, offset = 0, stride = 2304, f32> : tensor<?x576xf32, #kvc.rows>
    }
    ```
  }];
  let arguments = (ins StrAttr:$name, I64Attr:$id);
  let regions = (region SizedRegion<1>:$body);
  let assemblyFormat = "$name $id $body attr-dict";
  let hasVerifier = 1;
  let extraClassDeclaration = [{
    ::mlir::Operation *getAnchor();
  }];
}

def Kvc_BarrierOp : Kvc_Op<"barrier", [MemoryEffects<[MemRead<Kvc_SlotResource>, MemWrite<Kvc_SlotResource>,
    MemRead<Kvc_CacheResource>, MemWrite<Kvc_CacheResource>]>]> {
  let summary = "all workers finish what stands before, before any starts what follows";
  let description = [{
    ```mlir
    kvc.barrier
    ```
  }];
  let assemblyFormat = "attr-dict";
}

def Kvc_YieldOp : Kvc_Op<"yield", [Pure, Terminator,
    ParentOneOf<["LayersOp", "KernelOp", "DispatchOp"]>]> {
  let summary = "ends a region with its values";
  let description = [{
    ```mlir
    kvc.yield %h : tensor<?x576xf32, #kvc.rows>
    ```
  }];
  let arguments = (ins Variadic<Kvc_RowsTensor>:$operands);
  let assemblyFormat = "($operands^ `:` type($operands))? attr-dict";
  let builders = [OpBuilder<(ins), [{ build($_builder, $_state, ::mlir::ValueRange()); }]>];
}

//===----------------------------------------------------------------------===//
// Slots
//===----------------------------------------------------------------------===//

def Kvc_ReadOp : Kvc_Op<"read", [MemoryEffects<[MemRead<Kvc_SlotResource>]>]> {
  let summary = "the value a slot holds";
  let description = [{
    The rows that the last write to the same slot stored, [rows or outputs][...]: the same offset,
    stride and element, and as many values a row, whatever dimensions they are counted in. A slot
    keeps nothing from step to step.

    ```mlir
    %h = kvc.read slot<rows, offset = 0, stride = 2304, f32> : tensor<?x576xf32, #kvc.rows>
    ```
  }];
  let arguments = (ins Kvc_SlotAttr:$slot);
  let results = (outs Kvc_RowsTensor:$result);
  let assemblyFormat = "`slot` `` $slot attr-dict `:` type($result)";
  let hasVerifier = 1;
}

def Kvc_WriteOp : Kvc_Op<"write", [MemoryEffects<[MemWrite<Kvc_SlotResource>]>]> {
  let summary = "stores a value in a slot";
  let description = [{
    [rows or outputs][...], to a slot whose stride is at least a row's bytes: 4 a value; 2 in a `bf16` or
    `f16` slot, which takes the result of a `kvc.round` to it; or for
    a `q8` slot K + K/32*4 + K/16*4 + K/32*4 of K values, the result of a `kvc.quantize`. What the
    slot held is gone, and so is what lay in any slot that shares bytes with it. A
    dispatch may write over its own input only where that is read elementwise, behind the
    anchor, from the very same slot.

    ```mlir
    kvc.write %h, slot<rows, offset = 0, stride = 2304, f32> : tensor<?x576xf32, #kvc.rows>
    ```
  }];
  let arguments = (ins Kvc_RowsTensor:$input, Kvc_SlotAttr:$slot);
  let assemblyFormat = "$input `,` `slot` `` $slot attr-dict `:` type($input)";
  let hasVerifier = 1;
}

def Kvc_StageOp : Kvc_Op<"stage", [Pure, AllTypesMatch<["input", "result"]>]> {
  let summary = "a prologue's result, kept in each worker's own slot";
  let description = [{
    Inside a dispatch: the value a prologue hands to the anchor, unchanged. Every worker
    computes it for itself, which needs no barrier. The slot's space is `worker`; it keeps
    nothing beyond the dispatch, and two stages of a dispatch do not overlap.

    ```mlir
    %s = kvc.stage %n, slot<worker, offset = 0, stride = 896, q8> : tensor<?x576xf32, #kvc.rows>
    ```
  }];
  let arguments = (ins Kvc_RowsTensor:$input, Kvc_SlotAttr:$slot);
  let results = (outs Kvc_RowsTensor:$result);
  let assemblyFormat = "$input `,` `slot` `` $slot attr-dict `:` type($input)";
  let hasVerifier = 1;
}

//===----------------------------------------------------------------------===//
// Rows
//===----------------------------------------------------------------------===//

class Kvc_WeightUserOp<string mnemonic, list<Trait> traits = []>
    : Kvc_Op<mnemonic, !listconcat([DeclareOpInterfaceMethods<SymbolUserOpInterface>], traits)>;

def Kvc_EmbedOp : Kvc_WeightUserOp<"embed", [Pure]> {
  let summary = "the embedding of each row's token";
  let description = [{
    result[r][:] = weight[tokens[r]][:]. Tokens are [rows], ids below vocab; the weight
    is [vocab][hidden], the result [rows][hidden]. A tied model's head is the same weight.

    ```mlir
    %x = kvc.embed %tokens, @token_embd : (tensor<?xi32, #kvc.rows>) -> tensor<?x576xf32, #kvc.rows>
    ```
  }];
  let arguments = (ins Kvc_TokensTensor:$tokens, FlatSymbolRefAttr:$weight);
  let results = (outs Kvc_RowsTensor:$result);
  let assemblyFormat = "$tokens `,` $weight attr-dict `:` functional-type(operands, results)";
}

def Kvc_AddPositionsOp : Kvc_WeightUserOp<"add_positions", [Pure, AllTypesMatch<["input", "result"]>]> {
  let summary = "adds the learned embedding of each row's position";
  let description = [{
    result[r][:] = input[r][:] + weight[position(r)][:]. Input and result are
    [rows][hidden], the weight is [positions][hidden] with at least max_context positions.

    ```mlir
    %x1 = kvc.add_positions %x, @position_embd, %batch : tensor<?x64xf32, #kvc.rows>
    ```
  }];
  let arguments = (ins Kvc_RowsTensor:$input, FlatSymbolRefAttr:$weight, Kvc_BatchType:$batch);
  let results = (outs Kvc_RowsTensor:$result);
  let assemblyFormat = "$input `,` $weight `,` $batch attr-dict `:` type($input)";
}

def Kvc_SelectRowsOp : Kvc_Op<"select_rows", [Pure]> {
  let summary = "the rows whose logits are wanted";
  let description = [{
    result[i][:] = input[output_row(i)][:], from the step's rows to its outputs:
    [rows][hidden] to [outputs][hidden]. The batch says which rows; usually the last of each
    sequence.

    ```mlir
    %r = kvc.select_rows %y, %batch : (tensor<?x576xf32, #kvc.rows>) -> tensor<?x576xf32, #kvc.outputs>
    ```
  }];
  let arguments = (ins Kvc_RowsTensor:$input, Kvc_BatchType:$batch);
  let results = (outs Kvc_RowsTensor:$result);
  let assemblyFormat = "$input `,` $batch attr-dict `:` functional-type($input, $result)";
  let hasVerifier = 1;
}

def Kvc_RmsNormOp : Kvc_WeightUserOp<"rms_norm", [Pure, AllTypesMatch<["input", "result"]>]> {
  let summary = "root-mean-square normalisation of each row";
  let description = [{
    result[r][i] = input[r][i] / sqrt(mean(input[r][:]^2) + eps) * weight[i]
    (Zhang and Sennrich, 2019, arXiv:1910.07467). Input and result are [rows or outputs][n], the
    weight is [n].

    ```mlir
    %n = kvc.rms_norm %h, @attn_norm[%layer] {eps = 1.0e-5 : f64} : tensor<?x576xf32, #kvc.rows>
    ```
  }];
  let arguments = (ins Kvc_RowsTensor:$input, FlatSymbolRefAttr:$weight, Optional<Index>:$layer, F64Attr:$eps);
  let results = (outs Kvc_RowsTensor:$result);
  let assemblyFormat = "$input `,` $weight (`[` $layer^ `]`)? attr-dict `:` type($input)";
}

def Kvc_LayerNormOp : Kvc_WeightUserOp<"layer_norm", [Pure, AllTypesMatch<["input", "result"]>]> {
  let summary = "mean and variance normalisation of each row";
  let description = [{
    result[r][i] = (input[r][i] - mean) / sqrt(variance + eps) * weight[i] + bias[i],
    with the biased variance (Ba et al., 2016, arXiv:1607.06450). Input and result are
    [rows or outputs][n], weight and bias [n]; the bias may be absent.

    ```mlir
    %n = kvc.layer_norm %h, @attn_norm[%layer] bias @attn_norm_b {eps = 1.0e-5 : f64} : tensor<?x64xf32, #kvc.rows>
    ```
  }];
  let arguments = (ins Kvc_RowsTensor:$input, FlatSymbolRefAttr:$weight, Optional<Index>:$layer,
                       OptionalAttr<FlatSymbolRefAttr>:$bias, F64Attr:$eps);
  let results = (outs Kvc_RowsTensor:$result);
  let assemblyFormat = "$input `,` $weight (`[` $layer^ `]`)? (`bias` $bias^)? attr-dict `:` type($input)";
}

def Kvc_AddOp : Kvc_Op<"add", [Pure, Commutative, SameOperandsAndResultType]> {
  let summary = "elementwise sum";
  let description = [{
    result[r][i] = lhs[r][i] + rhs[r][i], all three of the same shape.

    ```mlir
    %h1 = kvc.add %h, %o : tensor<?x576xf32, #kvc.rows>
    ```
  }];
  let arguments = (ins Kvc_RowsTensor:$lhs, Kvc_RowsTensor:$rhs);
  let results = (outs Kvc_RowsTensor:$result);
  let assemblyFormat = "$lhs `,` $rhs attr-dict `:` type($result)";
}

def Kvc_MulOp : Kvc_Op<"mul", [Pure, Commutative, SameOperandsAndResultType]> {
  let summary = "elementwise product";
  let description = [{
    result[r][i] = lhs[r][i] * rhs[r][i], all three of the same shape.

    ```mlir
    %a = kvc.mul %g, %u : tensor<?x1536xf32, #kvc.rows>
    ```
  }];
  let arguments = (ins Kvc_RowsTensor:$lhs, Kvc_RowsTensor:$rhs);
  let results = (outs Kvc_RowsTensor:$result);
  let assemblyFormat = "$lhs `,` $rhs attr-dict `:` type($result)";
}

def Kvc_ActivationOp : Kvc_Op<"activation", [Pure, AllTypesMatch<["input", "result"]>]> {
  let summary = "elementwise nonlinearity";
  let description = [{
    `silu`: x / (1 + exp(-x)). `gelu`: x/2 * (1 + erf(x / sqrt 2)). `gelu_tanh`:
    x/2 * (1 + tanh(sqrt(2/pi) * (x + 0.044715 x^3))) (Hendrycks and Gimpel, 2016, arXiv:1606.08415).
    Input and result have the same shape.

    ```mlir
    %s = kvc.activation %g {kind = #kvc.activation_kind<silu>} : tensor<?x1536xf32, #kvc.rows>
    ```
  }];
  let arguments = (ins Kvc_RowsTensor:$input, Kvc_ActivationKindAttr:$kind);
  let results = (outs Kvc_RowsTensor:$result);
  let assemblyFormat = "$input attr-dict `:` type($input)";
}

def Kvc_SoftCapOp : Kvc_Op<"soft_cap", [Pure, AllTypesMatch<["input", "result"]>]> {
  let summary = "keeps values between -cap and cap, smoothly";
  let description = [{
    result[r][i] = cap * tanh(input[r][i] / cap): the identity near zero, never beyond `cap`, which is
    above zero (logits of Gemma 2, 2024, arXiv:2408.00118). Input and result have the same shape.

    ```mlir
    %c = kvc.soft_cap %l {cap = 30.0 : f64} : tensor<?x49152xf32, #kvc.outputs>
    ```
  }];
  let arguments = (ins Kvc_RowsTensor:$input, F64Attr:$cap);
  let results = (outs Kvc_RowsTensor:$result);
  let assemblyFormat = "$input attr-dict `:` type($input)";
  let hasVerifier = 1;
}

def Kvc_QuantizeOp : Kvc_Op<"quantize", [Pure, AllTypesMatch<["input", "result"]>]> {
  let summary = "rounds each block of 32 values to 8 bits and a scale";
  let description = [{
    Input and result are [rows or outputs][...], a row a multiple of 32 values. For each block of 32
    consecutive values of a row, in f32: d = max|x| / 127, s = 1 / d, or 0 where d is 0, and
    q = x * s rounded to an integer, ties to even; the value becomes q * d. A block of zeros stays
    zero. The identity in exact mode. Linears that read the result multiply integers.

    ```mlir
    %q = kvc.quantize %n : tensor<?x576xf32, #kvc.rows>
    ```
  }];
  let arguments = (ins Kvc_RowsTensor:$input);
  let results = (outs Kvc_RowsTensor:$result);
  let assemblyFormat = "$input attr-dict `:` type($input)";
  let hasVerifier = 1;
}

def Kvc_RoundOp : Kvc_Op<"round", [Pure, AllTypesMatch<["input", "result"]>]> {
  let summary = "rounds each value to a 16-bit floating-point type";
  let description = [{
    result[r][i] = input[r][i] rounded to `bf16` or `f16`, to nearest, ties to even. The value stays an
    f32 tensor; only what it holds is coarser. Input and result are [rows or outputs][...]. The
    identity in exact mode. It marks what a matrix unit of 16-bit operands reads.

    ```mlir
    %r = kvc.round %n to bf16 : tensor<?x576xf32, #kvc.rows>
    ```
  }];
  let arguments = (ins Kvc_RowsTensor:$input, TypeAttr:$element);
  let results = (outs Kvc_RowsTensor:$result);
  let assemblyFormat = "$input `to` $element attr-dict `:` type($input)";
  let hasVerifier = 1;
}

def Kvc_LinearOp : Kvc_WeightUserOp<"linear", [Pure]> {
  let summary = "one or several linear maps of the same input";
  let description = [{
    Segment s: outputs[s][r][n] = sum over k of input[r][k] * weights[s][n][k] + biases[s][n].
    The input is [rows or outputs][k], weight s [n][k], its bias [n], output s [rows or outputs][n].
    Trailing dimensions of input and outputs are flattened: heads are a dimension of the result where
    that is what the rows of the weight are. The sum runs over k in ascending order. `biases`
    has one entry a segment, `unit` where it has none. One layer index serves all segments.

    ```mlir
    %q, %k, %v = kvc.linear %n, [@attn_q, @attn_k, @attn_v][%layer]
        : (tensor<?x576xf32, #kvc.rows>) -> (tensor<?x9x64xf32, #kvc.rows>, tensor<?x3x64xf32, #kvc.rows>, tensor<?x3x64xf32, #kvc.rows>)
    ```
  }];
  let arguments = (ins Kvc_RowsTensor:$input, FlatSymbolRefArrayAttr:$weights, Optional<Index>:$layer,
                       OptionalAttr<ArrayAttr>:$biases);
  let results = (outs Variadic<Kvc_RowsTensor>:$outputs);
  let assemblyFormat = [{
    $input `,` $weights (`[` $layer^ `]`)? (`bias` $biases^)? attr-dict
    `:` functional-type($input, $outputs)
  }];
  let hasVerifier = 1;
}

//===----------------------------------------------------------------------===//
// Attention and the cache
//===----------------------------------------------------------------------===//

def Kvc_RopeOp : Kvc_Op<"rope", [Pure, AllTypesMatch<["input", "result"]>]> {
  let summary = "rotates each head by its row's position";
  let description = [{
    Input and result are [rows][heads][head_dim]. Pair i of a head, (x, y), becomes (x cos - y sin, x sin + y cos) with the
    angle position * inv_freq[i] in radians, and cos and sin times `scale` (Su et al., 2021, arXiv:2104.09864).
    `interleaved` pairs dimensions (2i, 2i+1), `half` pairs (i, i + dims/2), where dims is
    twice the length of `inv_freq`; dimensions beyond dims pass unchanged. Frequencies
    are numbers in the IR, so that every scaling is the importer's.

    ```mlir
    %qr = kvc.rope %q, %batch {layout = #kvc.rope_layout<half>, inv_freq = #kvc.reals<[1.0, 0.1]>} : tensor<?x9x4xf32, #kvc.rows>
    ```
  }];
  let arguments = (ins Kvc_RowsTensor:$input, Kvc_BatchType:$batch, Kvc_RopeLayoutAttr:$layout,
                       Kvc_RealsArrayAttr:$inv_freq, DefaultValuedAttr<F64Attr, "1.0">:$scale);
  let results = (outs Kvc_RowsTensor:$result);
  let assemblyFormat = "$input `,` $batch attr-dict `:` type($input)";
  let hasVerifier = 1;
  let hasFolder = 1;
}

class Kvc_CacheUserOp<string mnemonic, list<Trait> traits = []>
    : Kvc_WeightUserOp<mnemonic, traits>;

def Kvc_CacheAppendOp : Kvc_CacheUserOp<"cache_append", [Kvc_WritesCache, AllTypesMatch<["key", "value"]>]> {
  let summary = "writes the step's K and V to the cache, at each row's position";
  let description = [{
    cache.k[layer][sequence(r)][position(r)] = key[r], and v likewise, rounded to the cache's element type.
    Key and value are [rows][kv_heads][head_dim]. A step appends each of its positions once in every layer,
    before anything reads them.

    ```mlir
    kvc.cache_append %k, %v, @kv[%layer], %batch : tensor<?x3x64xf32, #kvc.rows>
    ```
  }];
  let arguments = (ins Kvc_RowsTensor:$key, Kvc_RowsTensor:$value, FlatSymbolRefAttr:$cache, Optional<Index>:$layer,
                       Kvc_BatchType:$batch);
  let assemblyFormat = "$key `,` $value `,` $cache (`[` $layer^ `]`)? `,` $batch attr-dict `:` type($key)";
}

def Kvc_ScoresOp : Kvc_CacheUserOp<"scores", [Kvc_ReadsCache]> {
  let summary = "the product of each query with every cached key of its sequence";
  let description = [{
    result[r][h][t] = scale * dot(query[r][h], cache.k[layer][sequence(r)][t][h / (heads / kv_heads)]),
    t from 0 to the longest length of the step. The query is [rows][heads][head_dim], the result
    [rows][heads][context]; where t is beyond the sequence or the row's position, its value is of no
    meaning. Positions up to the row's own must have been appended.

    ```mlir
    %s = kvc.scores %q, @kv[%layer], %batch {scale = 0.125 : f64} : (tensor<?x9x64xf32, #kvc.rows>) -> tensor<?x9x?xf32, #kvc.rows>
    ```
  }];
  let arguments = (ins Kvc_RowsTensor:$query, FlatSymbolRefAttr:$cache, Optional<Index>:$layer, Kvc_BatchType:$batch,
                       F64Attr:$scale);
  let results = (outs Kvc_RowsTensor:$result);
  let assemblyFormat = "$query `,` $cache (`[` $layer^ `]`)? `,` $batch attr-dict `:` functional-type($query, $result)";
}

def Kvc_MaskedSoftmaxOp : Kvc_Op<"masked_softmax", [Pure, AllTypesMatch<["input", "result"]>]> {
  let summary = "softmax over the positions a row may see";
  let description = [{
    result[r][h][t] = exp(input[r][h][t]) / sum over t' of exp(input[r][h][t']) for t and t' from 0 to
    position(r), the positions that row r of a causal model sees; 0 for all others, whatever
    the input holds there. Input and result are [rows][heads][context].

    ```mlir
    %p = kvc.masked_softmax %s, %batch : tensor<?x9x?xf32, #kvc.rows>
    ```
  }];
  let arguments = (ins Kvc_RowsTensor:$input, Kvc_BatchType:$batch);
  let results = (outs Kvc_RowsTensor:$result);
  let assemblyFormat = "$input `,` $batch attr-dict `:` type($input)";
  let hasVerifier = 1;
}

def Kvc_ContextOp : Kvc_CacheUserOp<"context", [Kvc_ReadsCache]> {
  let summary = "the weighted sum of the cached values";
  let description = [{
    result[r][h][:] = sum over t of weights[r][h][t] * cache.v[layer][sequence(r)][t][h / (heads / kv_heads)][:],
    t from 0 to position(r). The weights are [rows][heads][context], the result [rows][heads][head_dim].

    ```mlir
    %c = kvc.context %p, @kv[%layer], %batch : (tensor<?x9x?xf32, #kvc.rows>) -> tensor<?x9x64xf32, #kvc.rows>
    ```
  }];
  let arguments = (ins Kvc_RowsTensor:$weights, FlatSymbolRefAttr:$cache, Optional<Index>:$layer, Kvc_BatchType:$batch);
  let results = (outs Kvc_RowsTensor:$result);
  let assemblyFormat = "$weights `,` $cache (`[` $layer^ `]`)? `,` $batch attr-dict `:` functional-type($weights, $result)";
}

def Kvc_AttentionOp : Kvc_CacheUserOp<"attention", [Kvc_ReadsCache, AllTypesMatch<["query", "result"]>]> {
  let summary = "causal attention over the cache, without storing scores";
  let description = [{
    The composition of `kvc.scores`, `kvc.masked_softmax` and `kvc.context`; query and result
    are [rows][heads][head_dim]. Computed by online softmax (Milakov and Gimelshein, 2018, arXiv:1805.02867) over splits of the cache type's
    `split` absolute positions, merged in ascending order: the same sums in prefill
    and in decode. With `weights`, `f16` or `bf16`, what multiplies the values of a split, exp(score - the
    split's largest), is rounded to that type; the sum it is divided by is of what is not rounded.
    No rounding in exact mode.

    ```mlir
    %c = kvc.attention %q, @kv[%layer], %batch {scale = 0.125 : f64} : tensor<?x9x64xf32, #kvc.rows>
    ```
  }];
  let arguments = (ins Kvc_RowsTensor:$query, FlatSymbolRefAttr:$cache, Optional<Index>:$layer, Kvc_BatchType:$batch,
                       F64Attr:$scale, OptionalAttr<TypeAttr>:$weights);
  let results = (outs Kvc_RowsTensor:$result);
  let assemblyFormat = "$query `,` $cache (`[` $layer^ `]`)? `,` $batch attr-dict `:` type($query)";
}

#endif // KVC_OPS
