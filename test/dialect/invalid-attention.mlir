// A case for every message of the verifiers of rotary positions, attention and the cache.
// REQUIRES: kvc-opt
// RUN: kvc-opt %s --split-input-file --verify-diagnostics --allow-unregistered-dialect

kvc.model @m attributes {max_context = 8 : i64} {
  kvc.forward @f(%t: tensor<?xi32, #kvc.rows>, %b: !kvc.batch) -> tensor<?x6xf32, #kvc.outputs> {
    %x = kvc.read slot<rows, offset = 0, stride = 256, f32> : tensor<?x64xf32, #kvc.rows>
    // expected-error@+1 {{rotates heads, found}}
    %y = kvc.rope %x, %b {layout = #kvc.rope_layout<half>, inv_freq = #kvc.reals<[1.0]>} : tensor<?x64xf32, #kvc.rows>
    %l = kvc.read slot<logits, offset = 0, stride = 24, f32> : tensor<?x6xf32, #kvc.outputs>
    kvc.return %l : tensor<?x6xf32, #kvc.outputs>
  }
}

// -----

kvc.model @m attributes {max_context = 8 : i64} {
  kvc.forward @f(%t: tensor<?xi32, #kvc.rows>, %b: !kvc.batch) -> tensor<?x6xf32, #kvc.outputs> {
    %h = kvc.read slot<rows, offset = 0, stride = 256, f32> : tensor<?x4x16xf32, #kvc.rows>
    // expected-error@+1 {{rotates 0 dimensions of a head of 16}}
    %y = kvc.rope %h, %b {layout = #kvc.rope_layout<half>, inv_freq = #kvc.reals<[]>} : tensor<?x4x16xf32, #kvc.rows>
    %l = kvc.read slot<logits, offset = 0, stride = 24, f32> : tensor<?x6xf32, #kvc.outputs>
    kvc.return %l : tensor<?x6xf32, #kvc.outputs>
  }
}

// -----

kvc.model @m attributes {max_context = 8 : i64} {
  kvc.forward @f(%t: tensor<?xi32, #kvc.rows>, %b: !kvc.batch) -> tensor<?x6xf32, #kvc.outputs> {
    %h = kvc.read slot<rows, offset = 0, stride = 256, f32> : tensor<?x4x16xf32, #kvc.rows>
    // expected-error@+1 {{rotates 18 dimensions of a head of 16}}
    %y = kvc.rope %h, %b {layout = #kvc.rope_layout<half>, inv_freq = #kvc.reals<[1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0]>} : tensor<?x4x16xf32, #kvc.rows>
    %l = kvc.read slot<logits, offset = 0, stride = 24, f32> : tensor<?x6xf32, #kvc.outputs>
    kvc.return %l : tensor<?x6xf32, #kvc.outputs>
  }
}

// -----

kvc.model @m attributes {max_context = 8 : i64} {
  kvc.forward @f(%t: tensor<?xi32, #kvc.rows>, %b: !kvc.batch) -> tensor<?x6xf32, #kvc.outputs> {
    %g = kvc.read slot<outputs, offset = 0, stride = 256, f32> : tensor<?x4x16xf32, #kvc.outputs>
    // expected-error@+1 {{rotates rows, not outputs}}
    %y = kvc.rope %g, %b {layout = #kvc.rope_layout<half>, inv_freq = #kvc.reals<[1.0]>} : tensor<?x4x16xf32, #kvc.outputs>
    %l = kvc.read slot<logits, offset = 0, stride = 24, f32> : tensor<?x6xf32, #kvc.outputs>
    kvc.return %l : tensor<?x6xf32, #kvc.outputs>
  }
}

// -----

kvc.model @m attributes {max_context = 8 : i64} {
  kvc.source @s {seed = 1 : i64}
  kvc.weight @m : !kvc.weight<1x6x64> = [#kvc.slice<@s, f32, 0, "m", [0.0, 1.0]>]
  kvc.forward @f(%t: tensor<?xi32, #kvc.rows>, %b: !kvc.batch) -> tensor<?x6xf32, #kvc.outputs> {
    %h = kvc.read slot<rows, offset = 0, stride = 256, f32> : tensor<?x4x16xf32, #kvc.rows>
    // expected-error@+1 {{names @m, which is not a kvc.cache}}
    %y = kvc.attention %h, @m, %b {scale = 1.0 : f64} : tensor<?x4x16xf32, #kvc.rows>
    %l = kvc.read slot<logits, offset = 0, stride = 24, f32> : tensor<?x6xf32, #kvc.outputs>
    kvc.return %l : tensor<?x6xf32, #kvc.outputs>
  }
}

// -----

kvc.model @m attributes {max_context = 8 : i64} {
  kvc.cache @kv2 : !kvc.cache<layers = 2, kv_heads = 2, head_dim = 16, type = f16, page = 64, split = 64>
  kvc.forward @f(%t: tensor<?xi32, #kvc.rows>, %b: !kvc.batch) -> tensor<?x6xf32, #kvc.outputs> {
    %h = kvc.read slot<rows, offset = 0, stride = 256, f32> : tensor<?x4x16xf32, #kvc.rows>
    // expected-error@+1 {{needs a layer index for @kv2, which has 2 layers}}
    %y = kvc.attention %h, @kv2, %b {scale = 1.0 : f64} : tensor<?x4x16xf32, #kvc.rows>
    %l = kvc.read slot<logits, offset = 0, stride = 24, f32> : tensor<?x6xf32, #kvc.outputs>
    kvc.return %l : tensor<?x6xf32, #kvc.outputs>
  }
}

// -----

kvc.model @m attributes {max_context = 8 : i64} {
  kvc.cache @kv2 : !kvc.cache<layers = 2, kv_heads = 2, head_dim = 16, type = f16, page = 64, split = 64>
  kvc.forward @f(%t: tensor<?xi32, #kvc.rows>, %b: !kvc.batch) -> tensor<?x6xf32, #kvc.outputs> {
    %h = kvc.read slot<rows, offset = 0, stride = 256, f32> : tensor<?x4x16xf32, #kvc.rows>
    kvc.layers 3 {
    ^bb0(%i: index):
      // expected-error@+1 {{runs in 3 layers, but @kv2 has 2}}
      %y = kvc.attention %h, @kv2[%i], %b {scale = 1.0 : f64} : tensor<?x4x16xf32, #kvc.rows>
    }
    %l = kvc.read slot<logits, offset = 0, stride = 24, f32> : tensor<?x6xf32, #kvc.outputs>
    kvc.return %l : tensor<?x6xf32, #kvc.outputs>
  }
}

// -----

kvc.model @m attributes {max_context = 8 : i64} {
  kvc.cache @kv : !kvc.cache<layers = 1, kv_heads = 2, head_dim = 16, type = f16, page = 64, split = 64>
  kvc.forward @f(%t: tensor<?xi32, #kvc.rows>, %b: !kvc.batch) -> tensor<?x6xf32, #kvc.outputs> {
    %x = kvc.read slot<rows, offset = 0, stride = 256, f32> : tensor<?x64xf32, #kvc.rows>
    // expected-error@+1 {{needs heads as a dimension, found}}
    %y = kvc.attention %x, @kv, %b {scale = 1.0 : f64} : tensor<?x64xf32, #kvc.rows>
    %l = kvc.read slot<logits, offset = 0, stride = 24, f32> : tensor<?x6xf32, #kvc.outputs>
    kvc.return %l : tensor<?x6xf32, #kvc.outputs>
  }
}

// -----

kvc.model @m attributes {max_context = 8 : i64} {
  kvc.cache @kv : !kvc.cache<layers = 1, kv_heads = 2, head_dim = 16, type = f16, page = 64, split = 64>
  kvc.forward @f(%t: tensor<?xi32, #kvc.rows>, %b: !kvc.batch) -> tensor<?x6xf32, #kvc.outputs> {
    %g = kvc.read slot<outputs, offset = 0, stride = 256, f32> : tensor<?x4x16xf32, #kvc.outputs>
    // expected-error@+1 {{works on rows, not outputs}}
    %y = kvc.attention %g, @kv, %b {scale = 1.0 : f64} : tensor<?x4x16xf32, #kvc.outputs>
    %l = kvc.read slot<logits, offset = 0, stride = 24, f32> : tensor<?x6xf32, #kvc.outputs>
    kvc.return %l : tensor<?x6xf32, #kvc.outputs>
  }
}

// -----

kvc.model @m attributes {max_context = 8 : i64} {
  kvc.cache @kv : !kvc.cache<layers = 1, kv_heads = 2, head_dim = 16, type = f16, page = 64, split = 64>
  kvc.forward @f(%t: tensor<?xi32, #kvc.rows>, %b: !kvc.batch) -> tensor<?x6xf32, #kvc.outputs> {
    %h = kvc.read slot<rows, offset = 0, stride = 256, f32> : tensor<?x4x16xf32, #kvc.rows>
    // expected-error@+1 {{4 heads do not fit the cache's 2 kv heads}}
    kvc.cache_append %h, %h, @kv, %b : tensor<?x4x16xf32, #kvc.rows>
    %l = kvc.read slot<logits, offset = 0, stride = 24, f32> : tensor<?x6xf32, #kvc.outputs>
    kvc.return %l : tensor<?x6xf32, #kvc.outputs>
  }
}

// -----

kvc.model @m attributes {max_context = 8 : i64} {
  kvc.cache @kv : !kvc.cache<layers = 1, kv_heads = 2, head_dim = 16, type = f16, page = 64, split = 64>
  kvc.forward @f(%t: tensor<?xi32, #kvc.rows>, %b: !kvc.batch) -> tensor<?x6xf32, #kvc.outputs> {
    %g = kvc.read slot<rows, offset = 0, stride = 256, f32> : tensor<?x3x16xf32, #kvc.rows>
    // expected-error@+1 {{3 heads do not fit the cache's 2 kv heads}}
    %y = kvc.attention %g, @kv, %b {scale = 1.0 : f64} : tensor<?x3x16xf32, #kvc.rows>
    %l = kvc.read slot<logits, offset = 0, stride = 24, f32> : tensor<?x6xf32, #kvc.outputs>
    kvc.return %l : tensor<?x6xf32, #kvc.outputs>
  }
}

// -----

kvc.model @m attributes {max_context = 8 : i64} {
  kvc.cache @kv : !kvc.cache<layers = 1, kv_heads = 2, head_dim = 16, type = f16, page = 64, split = 64>
  kvc.forward @f(%t: tensor<?xi32, #kvc.rows>, %b: !kvc.batch) -> tensor<?x6xf32, #kvc.outputs> {
    %g = kvc.read slot<rows, offset = 0, stride = 256, f32> : tensor<?x2x32xf32, #kvc.rows>
    // expected-error@+1 {{head_dim 32 is not the cache's, which is 16}}
    kvc.cache_append %g, %g, @kv, %b : tensor<?x2x32xf32, #kvc.rows>
    %l = kvc.read slot<logits, offset = 0, stride = 24, f32> : tensor<?x6xf32, #kvc.outputs>
    kvc.return %l : tensor<?x6xf32, #kvc.outputs>
  }
}

// -----

kvc.model @m attributes {max_context = 8 : i64} {
  kvc.cache @kv : !kvc.cache<layers = 1, kv_heads = 2, head_dim = 16, type = f16, page = 64, split = 64>
  kvc.forward @f(%t: tensor<?xi32, #kvc.rows>, %b: !kvc.batch) -> tensor<?x6xf32, #kvc.outputs> {
    %h = kvc.read slot<rows, offset = 0, stride = 256, f32> : tensor<?x4x16xf32, #kvc.rows>
    // expected-error@+1 {{scores are ?x4x?, found}}
    %y = kvc.scores %h, @kv, %b {scale = 1.0 : f64} : (tensor<?x4x16xf32, #kvc.rows>) -> tensor<?x2x?xf32, #kvc.rows>
    %l = kvc.read slot<logits, offset = 0, stride = 24, f32> : tensor<?x6xf32, #kvc.outputs>
    kvc.return %l : tensor<?x6xf32, #kvc.outputs>
  }
}

// -----

kvc.model @m attributes {max_context = 8 : i64} {
  kvc.forward @f(%t: tensor<?xi32, #kvc.rows>, %b: !kvc.batch) -> tensor<?x6xf32, #kvc.outputs> {
    %h = kvc.read slot<rows, offset = 0, stride = 256, f32> : tensor<?x4x16xf32, #kvc.rows>
    // expected-error@+1 {{needs scores, ?xheadsx?, found}}
    %y = kvc.masked_softmax %h, %b : tensor<?x4x16xf32, #kvc.rows>
    %l = kvc.read slot<logits, offset = 0, stride = 24, f32> : tensor<?x6xf32, #kvc.outputs>
    kvc.return %l : tensor<?x6xf32, #kvc.outputs>
  }
}

// -----

kvc.model @m attributes {max_context = 8 : i64} {
  kvc.cache @kv : !kvc.cache<layers = 1, kv_heads = 2, head_dim = 16, type = f16, page = 64, split = 64>
  kvc.forward @f(%t: tensor<?xi32, #kvc.rows>, %b: !kvc.batch) -> tensor<?x6xf32, #kvc.outputs> {
    %h = kvc.read slot<rows, offset = 0, stride = 256, f32> : tensor<?x4x16xf32, #kvc.rows>
    // expected-error@+1 {{needs scores, ?x4x?, found}}
    %y = kvc.context %h, @kv, %b : (tensor<?x4x16xf32, #kvc.rows>) -> tensor<?x4x16xf32, #kvc.rows>
    %l = kvc.read slot<logits, offset = 0, stride = 24, f32> : tensor<?x6xf32, #kvc.outputs>
    kvc.return %l : tensor<?x6xf32, #kvc.outputs>
  }
}

// -----

kvc.model @m attributes {max_context = 8 : i64} {
  kvc.cache @kv : !kvc.cache<layers = 1, kv_heads = 2, head_dim = 16, type = f16, page = 64, split = 64>
  kvc.forward @f(%t: tensor<?xi32, #kvc.rows>, %b: !kvc.batch) -> tensor<?x6xf32, #kvc.outputs> {
    %h = kvc.read slot<rows, offset = 0, stride = 256, f32> : tensor<?x4x16xf32, #kvc.rows>
    // expected-error@+1 {{rounds its weights to bf16 or f16, found 'f32'}}
    %y = kvc.attention %h, @kv, %b {scale = 0.5 : f64, weights = f32} : tensor<?x4x16xf32, #kvc.rows>
    %l = kvc.read slot<logits, offset = 0, stride = 24, f32> : tensor<?x6xf32, #kvc.outputs>
    kvc.return %l : tensor<?x6xf32, #kvc.outputs>
  }
}
