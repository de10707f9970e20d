// A case for every message of the verifiers of the ops that work row by row.
// REQUIRES: kvc-opt
// RUN: kvc-opt %s --split-input-file --verify-diagnostics --allow-unregistered-dialect

kvc.model @m attributes {max_context = 8 : i64} {
  kvc.source @s {seed = 1 : i64}
  kvc.weight @m : !kvc.weight<1x6x64> = [#kvc.slice<@s, f32, 0, "m", [0.0, 1.0]>]
  kvc.forward @f(%t: tensor<?xi32, #kvc.rows>, %b: !kvc.batch) -> tensor<?x6xf32, #kvc.outputs> {
    // expected-error@+1 {{embeds rows, not outputs}}
    %y = kvc.embed %t, @m : (tensor<?xi32, #kvc.rows>) -> tensor<?x64xf32, #kvc.outputs>
    %l = kvc.read slot<logits, offset = 0, stride = 24, f32> : tensor<?x6xf32, #kvc.outputs>
    kvc.return %l : tensor<?x6xf32, #kvc.outputs>
  }
}

// -----

kvc.model @m attributes {max_context = 8 : i64} {
  kvc.source @s {seed = 1 : i64}
  kvc.weight @m : !kvc.weight<1x6x64> = [#kvc.slice<@s, f32, 0, "m", [0.0, 1.0]>]
  kvc.forward @f(%t: tensor<?xi32, #kvc.rows>, %b: !kvc.batch) -> tensor<?x6xf32, #kvc.outputs> {
    // expected-error@+1 {{does not fit @m : '!kvc.weight<1x6x64>': expected any x 32}}
    %y = kvc.embed %t, @m : (tensor<?xi32, #kvc.rows>) -> tensor<?x32xf32, #kvc.rows>
    %l = kvc.read slot<logits, offset = 0, stride = 24, f32> : tensor<?x6xf32, #kvc.outputs>
    kvc.return %l : tensor<?x6xf32, #kvc.outputs>
  }
}

// -----

kvc.model @m attributes {max_context = 8 : i64} {
  kvc.source @s {seed = 1 : i64}
  kvc.weight @m : !kvc.weight<1x6x64> = [#kvc.slice<@s, f32, 0, "m", [0.0, 1.0]>]
  kvc.forward @f(%t: tensor<?xi32, #kvc.rows>, %b: !kvc.batch) -> tensor<?x6xf32, #kvc.outputs> {
    %x = kvc.read slot<rows, offset = 0, stride = 256, f32> : tensor<?x64xf32, #kvc.rows>
    // expected-error@+1 {{must be tensor<?xi32, #kvc.rows>}}
    %y = "kvc.embed"(%x) {weight = @m} : (tensor<?x64xf32, #kvc.rows>) -> tensor<?x64xf32, #kvc.rows>
    %l = kvc.read slot<logits, offset = 0, stride = 24, f32> : tensor<?x6xf32, #kvc.outputs>
    kvc.return %l : tensor<?x6xf32, #kvc.outputs>
  }
}

// -----

kvc.model @m attributes {max_context = 8 : i64} {
  kvc.source @s {seed = 1 : i64}
  kvc.weight @m : !kvc.weight<1x6x64> = [#kvc.slice<@s, f32, 0, "m", [0.0, 1.0]>]
  kvc.forward @f(%t: tensor<?xi32, #kvc.rows>, %b: !kvc.batch) -> tensor<?x6xf32, #kvc.outputs> {
    %o = kvc.read slot<outputs, offset = 0, stride = 256, f32> : tensor<?x64xf32, #kvc.outputs>
    // expected-error@+1 {{adds to rows, not outputs}}
    %y = kvc.add_positions %o, @m, %b : tensor<?x64xf32, #kvc.outputs>
    %l = kvc.read slot<logits, offset = 0, stride = 24, f32> : tensor<?x6xf32, #kvc.outputs>
    kvc.return %l : tensor<?x6xf32, #kvc.outputs>
  }
}

// -----

kvc.model @m attributes {max_context = 8 : i64} {
  kvc.forward @f(%t: tensor<?xi32, #kvc.rows>, %b: !kvc.batch) -> tensor<?x6xf32, #kvc.outputs> {
    %x = kvc.read slot<rows, offset = 0, stride = 256, f32> : tensor<?x64xf32, #kvc.rows>
    // expected-error@+1 {{selects outputs of the same shape from rows, found}}
    %y = kvc.select_rows %x, %b : (tensor<?x64xf32, #kvc.rows>) -> tensor<?x64xf32, #kvc.rows>
    %l = kvc.read slot<logits, offset = 0, stride = 24, f32> : tensor<?x6xf32, #kvc.outputs>
    kvc.return %l : tensor<?x6xf32, #kvc.outputs>
  }
}

// -----

kvc.model @m attributes {max_context = 8 : i64} {
  kvc.forward @f(%t: tensor<?xi32, #kvc.rows>, %b: !kvc.batch) -> tensor<?x6xf32, #kvc.outputs> {
    %x = kvc.read slot<rows, offset = 0, stride = 256, f32> : tensor<?x64xf32, #kvc.rows>
    // expected-error@+1 {{selects outputs of the same shape from rows, found}}
    %y = kvc.select_rows %x, %b : (tensor<?x64xf32, #kvc.rows>) -> tensor<?x32xf32, #kvc.outputs>
    %l = kvc.read slot<logits, offset = 0, stride = 24, f32> : tensor<?x6xf32, #kvc.outputs>
    kvc.return %l : tensor<?x6xf32, #kvc.outputs>
  }
}

// -----

kvc.model @m attributes {max_context = 8 : i64} {
  kvc.forward @f(%t: tensor<?xi32, #kvc.rows>, %b: !kvc.batch) -> tensor<?x6xf32, #kvc.outputs> {
    %x = kvc.read slot<rows, offset = 0, stride = 256, f32> : tensor<?x64xf32, #kvc.rows>
    // expected-error@+1 {{names @absent, which is not a kvc.weight}}
    %y = kvc.rms_norm %x, @absent {eps = 1.0e-5 : f64} : tensor<?x64xf32, #kvc.rows>
    %l = kvc.read slot<logits, offset = 0, stride = 24, f32> : tensor<?x6xf32, #kvc.outputs>
    kvc.return %l : tensor<?x6xf32, #kvc.outputs>
  }
}

// -----

kvc.model @m attributes {max_context = 8 : i64} {
  kvc.source @s {seed = 1 : i64}
  kvc.weight @m : !kvc.weight<1x6x64> = [#kvc.slice<@s, f32, 0, "m", [0.0, 1.0]>]
  kvc.forward @f(%t: tensor<?xi32, #kvc.rows>, %b: !kvc.batch) -> tensor<?x6xf32, #kvc.outputs> {
    %x = kvc.read slot<rows, offset = 0, stride = 256, f32> : tensor<?x64xf32, #kvc.rows>
    // expected-error@+1 {{needs a vector, but @m is '!kvc.weight<1x6x64>'}}
    %y = kvc.rms_norm %x, @m {eps = 1.0e-5 : f64} : tensor<?x64xf32, #kvc.rows>
    %l = kvc.read slot<logits, offset = 0, stride = 24, f32> : tensor<?x6xf32, #kvc.outputs>
    kvc.return %l : tensor<?x6xf32, #kvc.outputs>
  }
}

// -----

kvc.model @m attributes {max_context = 8 : i64} {
  kvc.source @s {seed = 1 : i64}
  kvc.weight @v : !kvc.weight<1x64> = [#kvc.slice<@s, f32, 0, "v", [0.0, 1.0]>]
  kvc.forward @f(%t: tensor<?xi32, #kvc.rows>, %b: !kvc.batch) -> tensor<?x6xf32, #kvc.outputs> {
    %z = kvc.read slot<rows, offset = 0, stride = 128, f32> : tensor<?x32xf32, #kvc.rows>
    // expected-error@+1 {{does not fit @v : '!kvc.weight<1x64>': expected 32}}
    %y = kvc.rms_norm %z, @v {eps = 1.0e-5 : f64} : tensor<?x32xf32, #kvc.rows>
    %l = kvc.read slot<logits, offset = 0, stride = 24, f32> : tensor<?x6xf32, #kvc.outputs>
    kvc.return %l : tensor<?x6xf32, #kvc.outputs>
  }
}

// -----

kvc.model @m attributes {max_context = 8 : i64} {
  kvc.source @s {seed = 1 : i64}
  kvc.weight @m : !kvc.weight<1x6x64> = [#kvc.slice<@s, f32, 0, "m", [0.0, 1.0]>]
  kvc.weight @v : !kvc.weight<1x64> = [#kvc.slice<@s, f32, 0, "v", [0.0, 1.0]>]
  kvc.forward @f(%t: tensor<?xi32, #kvc.rows>, %b: !kvc.batch) -> tensor<?x6xf32, #kvc.outputs> {
    %x = kvc.read slot<rows, offset = 0, stride = 256, f32> : tensor<?x64xf32, #kvc.rows>
    // expected-error@+1 {{needs a vector, but @m is '!kvc.weight<1x6x64>'}}
    %y = kvc.layer_norm %x, @v bias @m {eps = 1.0e-5 : f64} : tensor<?x64xf32, #kvc.rows>
    %l = kvc.read slot<logits, offset = 0, stride = 24, f32> : tensor<?x6xf32, #kvc.outputs>
    kvc.return %l : tensor<?x6xf32, #kvc.outputs>
  }
}

// -----

kvc.model @m attributes {max_context = 8 : i64} {
  kvc.forward @f(%t: tensor<?xi32, #kvc.rows>, %b: !kvc.batch) -> tensor<?x6xf32, #kvc.outputs> {
    %l = kvc.read slot<logits, offset = 0, stride = 24, f32> : tensor<?x6xf32, #kvc.outputs>
    // expected-error@+1 {{quantizes blocks of 32 values, found 6 in a row}}
    %y = kvc.quantize %l : tensor<?x6xf32, #kvc.outputs>
    kvc.return %l : tensor<?x6xf32, #kvc.outputs>
  }
}

// -----

kvc.model @m attributes {max_context = 8 : i64} {
  kvc.forward @f(%t: tensor<?xi32, #kvc.rows>, %b: !kvc.batch) -> tensor<?x6xf32, #kvc.outputs> {
    %l = kvc.read slot<logits, offset = 0, stride = 24, f32> : tensor<?x6xf32, #kvc.outputs>
    // expected-error@+1 {{rounds to bf16 or f16, found 'f32'}}
    %y = kvc.round %l to f32 : tensor<?x6xf32, #kvc.outputs>
    kvc.return %l : tensor<?x6xf32, #kvc.outputs>
  }
}

// -----

kvc.model @m attributes {max_context = 8 : i64} {
  kvc.forward @f(%t: tensor<?xi32, #kvc.rows>, %b: !kvc.batch) -> tensor<?x6xf32, #kvc.outputs> {
    %l = kvc.read slot<logits, offset = 0, stride = 24, f32> : tensor<?x6xf32, #kvc.outputs>
    // expected-error@+1 {{has a finite cap above 0, found 0.000000e+00 : f64}}
    %y = kvc.soft_cap %l {cap = 0.0 : f64} : tensor<?x6xf32, #kvc.outputs>
    kvc.return %l : tensor<?x6xf32, #kvc.outputs>
  }
}

// -----

kvc.model @m attributes {max_context = 8 : i64} {
  kvc.source @s {seed = 1 : i64}
  kvc.weight @m : !kvc.weight<1x6x64> = [#kvc.slice<@s, f32, 0, "m", [0.0, 1.0]>]
  kvc.forward @f(%t: tensor<?xi32, #kvc.rows>, %b: !kvc.batch) -> tensor<?x6xf32, #kvc.outputs> {
    %x = kvc.read slot<rows, offset = 0, stride = 256, f32> : tensor<?x64xf32, #kvc.rows>
    // expected-error@+1 {{has 1 results for 2 weights}}
    %y = kvc.linear %x, [@m, @m] : (tensor<?x64xf32, #kvc.rows>) -> tensor<?x6xf32, #kvc.rows>
    %l = kvc.read slot<logits, offset = 0, stride = 24, f32> : tensor<?x6xf32, #kvc.outputs>
    kvc.return %l : tensor<?x6xf32, #kvc.outputs>
  }
}

// -----

kvc.model @m attributes {max_context = 8 : i64} {
  kvc.forward @f(%t: tensor<?xi32, #kvc.rows>, %b: !kvc.batch) -> tensor<?x6xf32, #kvc.outputs> {
    %x = kvc.read slot<rows, offset = 0, stride = 256, f32> : tensor<?x64xf32, #kvc.rows>
    // expected-error@+1 {{has 0 results for 0 weights}}
    kvc.linear %x, [] : (tensor<?x64xf32, #kvc.rows>) -> ()
    %l = kvc.read slot<logits, offset = 0, stride = 24, f32> : tensor<?x6xf32, #kvc.outputs>
    kvc.return %l : tensor<?x6xf32, #kvc.outputs>
  }
}

// -----

kvc.model @m attributes {max_context = 8 : i64} {
  kvc.source @s {seed = 1 : i64}
  kvc.weight @m : !kvc.weight<1x6x64> = [#kvc.slice<@s, f32, 0, "m", [0.0, 1.0]>]
  kvc.forward @f(%t: tensor<?xi32, #kvc.rows>, %b: !kvc.batch) -> tensor<?x6xf32, #kvc.outputs> {
    %x = kvc.read slot<rows, offset = 0, stride = 256, f32> : tensor<?x64xf32, #kvc.rows>
    // expected-error@+1 {{has 2 biases for 1 weights}}
    %y = kvc.linear %x, [@m] bias [unit, unit] : (tensor<?x64xf32, #kvc.rows>) -> tensor<?x6xf32, #kvc.rows>
    %l = kvc.read slot<logits, offset = 0, stride = 24, f32> : tensor<?x6xf32, #kvc.outputs>
    kvc.return %l : tensor<?x6xf32, #kvc.outputs>
  }
}

// -----

kvc.model @m attributes {max_context = 8 : i64} {
  kvc.source @s {seed = 1 : i64}
  kvc.weight @m : !kvc.weight<1x6x64> = [#kvc.slice<@s, f32, 0, "m", [0.0, 1.0]>]
  kvc.forward @f(%t: tensor<?xi32, #kvc.rows>, %b: !kvc.batch) -> tensor<?x6xf32, #kvc.outputs> {
    %x = kvc.read slot<rows, offset = 0, stride = 256, f32> : tensor<?x64xf32, #kvc.rows>
    // expected-error@+1 {{a bias is a symbol or unit, found 1}}
    %y = kvc.linear %x, [@m] bias [1] : (tensor<?x64xf32, #kvc.rows>) -> tensor<?x6xf32, #kvc.rows>
    %l = kvc.read slot<logits, offset = 0, stride = 24, f32> : tensor<?x6xf32, #kvc.outputs>
    kvc.return %l : tensor<?x6xf32, #kvc.outputs>
  }
}

// -----

kvc.model @m attributes {max_context = 8 : i64} {
  kvc.source @s {seed = 1 : i64}
  kvc.weight @m : !kvc.weight<1x6x64> = [#kvc.slice<@s, f32, 0, "m", [0.0, 1.0]>]
  kvc.forward @f(%t: tensor<?xi32, #kvc.rows>, %b: !kvc.batch) -> tensor<?x6xf32, #kvc.outputs> {
    %x = kvc.read slot<rows, offset = 0, stride = 256, f32> : tensor<?x64xf32, #kvc.rows>
    // expected-error@+1 {{maps rows to rows and outputs to outputs}}
    %y = kvc.linear %x, [@m] : (tensor<?x64xf32, #kvc.rows>) -> tensor<?x6xf32, #kvc.outputs>
    %l = kvc.read slot<logits, offset = 0, stride = 24, f32> : tensor<?x6xf32, #kvc.outputs>
    kvc.return %l : tensor<?x6xf32, #kvc.outputs>
  }
}

// -----

kvc.model @m attributes {max_context = 8 : i64} {
  kvc.source @s {seed = 1 : i64}
  kvc.weight @m : !kvc.weight<1x6x64> = [#kvc.slice<@s, f32, 0, "m", [0.0, 1.0]>]
  kvc.forward @f(%t: tensor<?xi32, #kvc.rows>, %b: !kvc.batch) -> tensor<?x6xf32, #kvc.outputs> {
    %x = kvc.read slot<rows, offset = 0, stride = 256, f32> : tensor<?x64xf32, #kvc.rows>
    // expected-error@+1 {{does not fit @m : '!kvc.weight<1x6x64>': expected 7 x 64}}
    %y = kvc.linear %x, [@m] : (tensor<?x64xf32, #kvc.rows>) -> tensor<?x7xf32, #kvc.rows>
    %l = kvc.read slot<logits, offset = 0, stride = 24, f32> : tensor<?x6xf32, #kvc.outputs>
    kvc.return %l : tensor<?x6xf32, #kvc.outputs>
  }
}

// -----

kvc.model @m attributes {max_context = 8 : i64} {
  kvc.source @s {seed = 1 : i64}
  kvc.weight @m : !kvc.weight<1x6x64> = [#kvc.slice<@s, f32, 0, "m", [0.0, 1.0]>]
  kvc.weight @v : !kvc.weight<1x64> = [#kvc.slice<@s, f32, 0, "v", [0.0, 1.0]>]
  kvc.forward @f(%t: tensor<?xi32, #kvc.rows>, %b: !kvc.batch) -> tensor<?x6xf32, #kvc.outputs> {
    %x = kvc.read slot<rows, offset = 0, stride = 256, f32> : tensor<?x64xf32, #kvc.rows>
    // expected-error@+1 {{does not fit @v : '!kvc.weight<1x64>': expected 6}}
    %y = kvc.linear %x, [@m] bias [@v] : (tensor<?x64xf32, #kvc.rows>) -> tensor<?x6xf32, #kvc.rows>
    %l = kvc.read slot<logits, offset = 0, stride = 24, f32> : tensor<?x6xf32, #kvc.outputs>
    kvc.return %l : tensor<?x6xf32, #kvc.outputs>
  }
}

// -----

kvc.model @m attributes {max_context = 8 : i64} {
  kvc.source @s {seed = 1 : i64}
  kvc.weight @m2 : !kvc.weight<2x64x64> = [#kvc.slice<@s, f32, 0, "m", [0.0, 1.0]>, #kvc.slice<@s, f32, 0, "m", [0.0, 1.0]>]
  kvc.forward @f(%t: tensor<?xi32, #kvc.rows>, %b: !kvc.batch) -> tensor<?x6xf32, #kvc.outputs> {
    %x = kvc.read slot<rows, offset = 0, stride = 256, f32> : tensor<?x64xf32, #kvc.rows>
    // expected-error@+1 {{needs a layer index for @m2, which has 2 layers}}
    %y = kvc.linear %x, [@m2] : (tensor<?x64xf32, #kvc.rows>) -> tensor<?x64xf32, #kvc.rows>
    %l = kvc.read slot<logits, offset = 0, stride = 24, f32> : tensor<?x6xf32, #kvc.outputs>
    kvc.return %l : tensor<?x6xf32, #kvc.outputs>
  }
}

// -----

kvc.model @m attributes {max_context = 8 : i64} {
  kvc.source @s {seed = 1 : i64}
  kvc.weight @m2 : !kvc.weight<2x64x64> = [#kvc.slice<@s, f32, 0, "m", [0.0, 1.0]>, #kvc.slice<@s, f32, 0, "m", [0.0, 1.0]>]
  kvc.forward @f(%t: tensor<?xi32, #kvc.rows>, %b: !kvc.batch) -> tensor<?x6xf32, #kvc.outputs> {
    %x = kvc.read slot<rows, offset = 0, stride = 256, f32> : tensor<?x64xf32, #kvc.rows>
    %z = kvc.layers 3 (%x) : (tensor<?x64xf32, #kvc.rows>) -> tensor<?x64xf32, #kvc.rows> {
    ^bb0(%a: tensor<?x64xf32, #kvc.rows>, %i: index):
      // expected-error@+1 {{runs in 3 layers, but @m2 has 2}}
      %y = kvc.linear %a, [@m2][%i] : (tensor<?x64xf32, #kvc.rows>) -> tensor<?x64xf32, #kvc.rows>
      kvc.yield %y : tensor<?x64xf32, #kvc.rows>
    }
    %l = kvc.read slot<logits, offset = 0, stride = 24, f32> : tensor<?x6xf32, #kvc.outputs>
    kvc.return %l : tensor<?x6xf32, #kvc.outputs>
  }
}

// -----

kvc.model @m attributes {max_context = 8 : i64} {
  kvc.forward @f(%t: tensor<?xi32, #kvc.rows>, %b: !kvc.batch) -> tensor<?x6xf32, #kvc.outputs> {
    // expected-error@+1 {{must be f32 tensor with a first dimension of #kvc.rows or #kvc.outputs}}
    %y = "kvc.activation"(%t) {kind = #kvc.activation_kind<silu>} : (tensor<?xi32, #kvc.rows>) -> tensor<?xi32, #kvc.rows>
    %l = kvc.read slot<logits, offset = 0, stride = 24, f32> : tensor<?x6xf32, #kvc.outputs>
    kvc.return %l : tensor<?x6xf32, #kvc.outputs>
  }
}
