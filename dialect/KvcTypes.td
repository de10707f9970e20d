//===- KvcTypes.td - Types of the kvc dialect -----------------*- tablegen -*-===//
#ifndef KVC_TYPES
#define KVC_TYPES

include "dialect/KvcAttrs.td"

class Kvc_Type<string name, string typeMnemonic> : TypeDef<Kvc_Dialect, name> {
  let mnemonic = typeMnemonic;
}

def Kvc_BatchType : Kvc_Type<"Batch", "batch"> {
  let summary = "what is per sequence in a step";
  let description = [{
    For each row of the step its sequence and absolute position; for each
    sequence its page table; the list of output rows. Positions are values of the
    batch, never shapes.
  }];
}

def Kvc_WeightType : Kvc_Type<"Weight", "weight"> {
  let summary = "a stack of matrices or vectors, one a layer";
  let description = [{
    `!kvc.weight<30x576x1536>`: 30 layers of 576 output rows and 1,536 input
    columns; `!kvc.weight<30x576>`: 30 vectors; the first dimension is 1 where the
    weight does not belong to a layer. After `kvc-pack-weights` the layout is part of
    the type: `!kvc.weight<30x576x1536, #kvc.panels<lanes = 16, unit = 32>>`, or a `#kvc.tiles`.
  }];
  let parameters = (ins ArrayRefParameter<"int64_t">:$shape,
                        OptionalParameter<"::mlir::Attribute">:$layout);
  let hasCustomAssemblyFormat = 1;
  let genVerifyDecl = 1;
  let extraClassDeclaration = [{
    int64_t getLayers() const { return getShape()[0]; }
    bool isMatrix() const { return getShape().size() == 3; }
    /// Output rows of a matrix, entries of a vector.
    int64_t getRows() const { return getShape()[1]; }
    /// Input columns of a matrix.
    int64_t getColumns() const { return getShape()[2]; }
    /// The layout where it is of that kind, else null.
    PanelsAttr getPanels() const { return ::llvm::dyn_cast_or_null<PanelsAttr>(getLayout()); }
    TilesAttr getTiles() const { return ::llvm::dyn_cast_or_null<TilesAttr>(getLayout()); }
    WeightType withLayout(::mlir::Attribute layout) const;
  }];
}

def Kvc_CacheType : Kvc_Type<"Cache", "cache"> {
  let summary = "the KV cache of a model: geometry, element type, pages, split";
  let description = [{
    `!kvc.cache<layers = 30, kv_heads = 3, head_dim = 64, type = f16, page = 64,
    split = 256>`: pages of 64 positions hold K and V of every layer; attention
    accumulates within splits of 256 absolute positions and merges them in
    ascending order, in every phase, so that its sums have one order.
  }];
  let parameters = (ins "int64_t":$layers, "int64_t":$kv_heads, "int64_t":$head_dim,
                        "::mlir::Type":$type, "int64_t":$page, "int64_t":$split);
  let assemblyFormat = "`<` struct(params) `>`";
  let genVerifyDecl = 1;
  let extraClassDeclaration = [{
    /// Bytes of one page: K and V of every layer.
    int64_t getPageBytes() const;
  }];
}

// Values: f32 tensors with a named first dimension.
def Kvc_RowsTensor : Type<
    CPred<"::kvc::isExtentTensor($_self)">,
    "f32 tensor with a first dimension of #kvc.rows or #kvc.outputs", "::mlir::RankedTensorType">;
def Kvc_TokensTensor : Type<
    CPred<"::kvc::isTokensTensor($_self)">,
    "tensor<?xi32, #kvc.rows>", "::mlir::RankedTensorType">;

#endif // KVC_TYPES
