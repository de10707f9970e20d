//===- KvcAttrs.td - Attributes of the kvc dialect ------------*- tablegen -*-===//
#ifndef KVC_ATTRS
#define KVC_ATTRS

include "dialect/KvcBase.td"

class Kvc_Attr<string name, string attrMnemonic, list<Trait> traits = []>
    : AttrDef<Kvc_Dialect, name, traits> {
  let mnemonic = attrMnemonic;
}

//===----------------------------------------------------------------------===//
// Enumerations
//===----------------------------------------------------------------------===//

class Kvc_Enum<string name, string summary, list<I32EnumAttrCase> cases>
    : I32EnumAttr<name, summary, cases> {
  let cppNamespace = "::kvc";
  let genSpecializedAttr = 0;
}

class Kvc_EnumAttr<EnumAttrInfo info, string mnemonic>
    : EnumAttr<Kvc_Dialect, info, mnemonic> {
  let assemblyFormat = "`<` $value `>`";
}

// The order and the names are those of formats::Format (codegen/formats).
def Kvc_WeightFormat : Kvc_Enum<"WeightFormat", "storage format of a weight's values", [
  I32EnumAttrCase<"F32", 0, "f32">, I32EnumAttrCase<"F16", 1, "f16">,
  I32EnumAttrCase<"BF16", 2, "bf16">, I32EnumAttrCase<"Q4_0", 3, "q4_0">,
  I32EnumAttrCase<"Q4_1", 4, "q4_1">, I32EnumAttrCase<"Q5_0", 5, "q5_0">,
  I32EnumAttrCase<"Q5_1", 6, "q5_1">, I32EnumAttrCase<"Q8_0", 7, "q8_0">,
  I32EnumAttrCase<"Q2_K", 8, "q2_k">, I32EnumAttrCase<"Q3_K", 9, "q3_k">,
  I32EnumAttrCase<"Q4_K", 10, "q4_k">, I32EnumAttrCase<"Q5_K", 11, "q5_k">,
  I32EnumAttrCase<"Q6_K", 12, "q6_k">, I32EnumAttrCase<"IQ4_NL", 13, "iq4_nl">,
  I32EnumAttrCase<"IQ4_XS", 14, "iq4_xs">, I32EnumAttrCase<"MXFP4", 15, "mxfp4">]>;

def Kvc_Phase : Kvc_Enum<"Phase", "which of a model's two programs", [
  I32EnumAttrCase<"Prefill", 0, "prefill">, I32EnumAttrCase<"Decode", 1, "decode">]>;
def Kvc_PhaseAttr : Kvc_EnumAttr<Kvc_Phase, "phase">;

def Kvc_ActivationKind : Kvc_Enum<"ActivationKind", "elementwise nonlinearity", [
  I32EnumAttrCase<"Silu", 0, "silu">, I32EnumAttrCase<"Gelu", 1, "gelu">,
  I32EnumAttrCase<"GeluTanh", 2, "gelu_tanh">]>;
def Kvc_ActivationKindAttr : Kvc_EnumAttr<Kvc_ActivationKind, "activation_kind">;

def Kvc_RopeLayout : Kvc_Enum<"RopeLayout", "which two dimensions of a head rotate together", [
  I32EnumAttrCase<"Half", 0, "half">, I32EnumAttrCase<"Interleaved", 1, "interleaved">]>;
def Kvc_RopeLayoutAttr : Kvc_EnumAttr<Kvc_RopeLayout, "rope_layout">;

def Kvc_Space : Kvc_Enum<"Space", "the arena a slot lies in", [
  I32EnumAttrCase<"Rows", 0, "rows">, I32EnumAttrCase<"Outputs", 1, "outputs">,
  I32EnumAttrCase<"Worker", 2, "worker">, I32EnumAttrCase<"Logits", 3, "logits">]>;

def Kvc_SlotElement : Kvc_Enum<"SlotElement", "how a slot stores a row's values", [
  I32EnumAttrCase<"F32", 0, "f32">, I32EnumAttrCase<"Q8", 1, "q8">,
  I32EnumAttrCase<"BF16", 2, "bf16">, I32EnumAttrCase<"F16", 3, "f16">]>;

//===----------------------------------------------------------------------===//
// Names of dynamic extents
//===----------------------------------------------------------------------===//

def Kvc_RowsAttr : Kvc_Attr<"Rows", "rows"> {
  let summary = "the first dimension counts the new rows of this step";
  let description = [{
    Encoding of a tensor whose first dimension is the step's rows: one row a new
    token, ragged over the sequences of the step. `tensor<?x576xf32, #kvc.rows>`.
  }];
}

def Kvc_OutputsAttr : Kvc_Attr<"Outputs", "outputs"> {
  let summary = "the first dimension counts the rows whose logits are wanted";
  let description = [{
    Encoding of a tensor whose first dimension is the step's output rows, a
    selection of its rows. `tensor<?x49152xf32, #kvc.outputs>`.
  }];
}

//===----------------------------------------------------------------------===//
// Numbers
//===----------------------------------------------------------------------===//

def Kvc_RealsAttr : Kvc_Attr<"Reals", "reals"> {
  let summary = "a list of f64 numbers that survives printing";
  let description = [{
    `#kvc.reals<[1.0, 0.177827941003892]>`. Parsing what was printed gives the same
    bits; the builtin `array<f64>` prints six digits.
  }];
  let parameters = (ins "::mlir::DenseF64ArrayAttr":$numbers);
  let assemblyFormat = "`<` custom<Reals>($numbers) `>`";
  let builders = [AttrBuilder<(ins "::llvm::ArrayRef<double>":$values), [{
    return $_get($_ctxt, ::mlir::DenseF64ArrayAttr::get($_ctxt, values));
  }]>];
  let genVerifyDecl = 1;
  let extraClassDeclaration = [{
    ::llvm::ArrayRef<double> getValues() const { return getNumbers(); }
    int64_t size() const { return getNumbers().size(); }
  }];
}

// As an op's attribute: read as, and built from, an array of doubles.
def Kvc_RealsArrayAttr : Attr<CPred<"::llvm::isa<::kvc::RealsAttr>($_self)">,
                              "list of f64 numbers"> {
  let storageType = "::kvc::RealsAttr";
  let returnType = "::llvm::ArrayRef<double>";
  let convertFromStorage = "$_self.getValues()";
  let constBuilderCall = "::kvc::RealsAttr::get($_builder.getContext(), $0)";
}

//===----------------------------------------------------------------------===//
// Weights and slots
//===----------------------------------------------------------------------===//

def Kvc_SliceAttr : Kvc_Attr<"Slice", "slice"> {
  let summary = "where one layer's values of a weight are stored";
  let description = [{
    A run of bytes of a source that holds one layer's matrix, row after row, in
    a format: `#kvc.slice<@file, q4_1, 1736704>` starts at byte 1,736,704 of
    `@file`. A name may follow, for messages.

    For a generated source (`kvc.source` with a seed) the format is f32, or f16 or bf16 that the
    values are rounded to, `tensor` is the name that seeds the values, `offset` counts values to skip and `range`
    is the centre and the half width of the values' uniform distribution
    (docs/SPEC_WEIGHTS.md): `#kvc.slice<@seed, f32, 0, "blk.0.attn_q.weight", [0.0, 0.21]>`.
  }];
  let parameters = (ins
    "::mlir::FlatSymbolRefAttr":$source,
    EnumParameter<Kvc_WeightFormat>:$format,
    "int64_t":$offset,
    OptionalParameter<"::mlir::StringAttr">:$tensor,
    OptionalParameter<"::mlir::DenseF64ArrayAttr">:$range);
  let assemblyFormat = [{
    `<` $source `,` $format `,` $offset
    (`,` $tensor^ (`,` custom<Reals>($range)^)?)? `>`
  }];
  let genVerifyDecl = 1;
  let extraClassDeclaration = [{
    /// Of a generated source: the middle and half the width of the values.
    double getCenter() const { return getRange()[0]; }
    double getScale() const { return getRange()[1]; }
  }];
}

def Kvc_PanelsAttr : Kvc_Attr<"Panels", "panels"> {
  let summary = "packed layout of a weight: panels of interleaved rows";
  let description = [{
    Rows are grouped into units of `unit` rows, each padded to whole panels of
    `lanes` rows; a panel holds its rows interleaved along K, so that a vector
    register loads the same K of `lanes` output rows. codegen/formats/Packing.h
    defines the bytes. `#kvc.panels<lanes = 16, unit = 64>`.
  }];
  let parameters = (ins "int64_t":$lanes, "int64_t":$unit);
  let assemblyFormat = "`<` struct(params) `>`";
  let genVerifyDecl = 1;
}

def Kvc_TilesAttr : Kvc_Attr<"Tiles", "tiles"> {
  let summary = "packed layout of a weight: tiles of a matrix unit's operand";
  let description = [{
    Rows are grouped into units of `unit` rows, each padded to whole tiles of 16;
    rows `pair` apart (a rotated pair) lie in the two halves of a tile. Along K
    a sum has `splits` segments, added in ascending order by every kernel.
    codegen/formats/Tiles.h defines the bytes.
    `#kvc.tiles<unit = 64, pair = 32, splits = 8>`.
  }];
  let parameters = (ins "int64_t":$unit, "int64_t":$pair, "int64_t":$splits);
  let assemblyFormat = "`<` struct(params) `>`";
  let genVerifyDecl = 1;
}

def Kvc_SlotAttr : Kvc_Attr<"Slot", "slot"> {
  let summary = "a place in an arena, fixed by the compiler";
  let description = [{
    `#kvc.slot<rows, offset = 2304, stride = 2304, f32>`: row r lies at
    `arena + offset * max_rows + r * stride`; `offset` and `stride` are bytes a
    row and multiples of 64. Spaces: `rows` and `outputs` (shared by the
    workers), `worker` (one copy a worker), `logits` (the result). Elements: `f32`;
    `bf16` and `f16`, which hold the result of a `kvc.round`;
    or `q8`: K signed bytes, then three planes: K/32 f32 scales, K/16 i32 sums of
    16 bytes, K/32 f32 products of scale and sum of 32.
  }];
  let parameters = (ins
    EnumParameter<Kvc_Space>:$space, "int64_t":$offset, "int64_t":$stride,
    EnumParameter<Kvc_SlotElement>:$element);
  let assemblyFormat = "`<` $space `,` `offset` `=` $offset `,` `stride` `=` $stride `,` $element `>`";
  let genVerifyDecl = 1;
}

def Kvc_TargetAttr : Kvc_Attr<"Target", "target"> {
  let summary = "the machine a model is compiled for";
  let description = [{
    `#kvc.target<arch = "cpu", cpu = "x86-64-v3", features = "+avx2,+fma",
    vector_width = 256>`: architecture, LLVM's name of the processor, the features
    code generation may use and the register width in bits that tiles are
    written for (LLVM legalises wider tiles on a narrower machine).

    `#kvc.target<arch = "cuda", cpu = "sm_90", features = "+ptx80", vector_width = 128>`: an NVIDIA chip,
    the version of PTX that is written for it, and the bits of a thread's widest access.
  }];
  let parameters = (ins
    StringRefParameter<>:$arch, StringRefParameter<>:$cpu,
    StringRefParameter<>:$features, "int64_t":$vector_width);
  let assemblyFormat = "`<` struct(params) `>`";
  let genVerifyDecl = 1;
}

#endif // KVC_ATTRS
