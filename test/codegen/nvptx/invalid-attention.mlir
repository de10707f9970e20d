// What attention on a GPU refuses, a line each.
// REQUIRES: kvc-opt
// RUN: not kvc-opt %s --split-input-file --kvc-convert-to-nvvm 2>&1 | FileCheck %s

// CHECK: error: 'kvc.attention' op needs a cache of f16 or bf16 on cuda, found 'f32'
kvc.model @m attributes {max_context = 512 : i64, target = #kvc.target<arch = "cuda", cpu = "sm_90", features = "", vector_width = 128>} {
  kvc.cache @kv : !kvc.cache<layers = 1, kv_heads = 1, head_dim = 32, type = f32, page = 64, split = 64>
  kvc.program @decode(%tokens: tensor<?xi32, #kvc.rows>, %batch: !kvc.batch) attributes {phase = #kvc.phase<decode>, rows_bytes = 256 : i64} {
    kvc.dispatch "attention" 0 {
      %q = kvc.read slot<rows, offset = 0, stride = 128, f32> : tensor<?x1x32xf32, #kvc.rows>
      %c = kvc.attention %q, @kv, %batch {scale = 1.0 : f64} : tensor<?x1x32xf32, #kvc.rows>
      kvc.write %c, slot<rows, offset = 128, stride = 128, f32> : tensor<?x1x32xf32, #kvc.rows>
    }
    kvc.return
  }
}

// -----

// CHECK: error: 'kvc.attention' op needs a cache of page = 64 and split = 64 on cuda, found page = 64 and split = 256
kvc.model @m attributes {max_context = 512 : i64, target = #kvc.target<arch = "cuda", cpu = "sm_90", features = "", vector_width = 128>} {
  kvc.cache @kv : !kvc.cache<layers = 1, kv_heads = 1, head_dim = 32, type = f16, page = 64, split = 256>
  kvc.program @decode(%tokens: tensor<?xi32, #kvc.rows>, %batch: !kvc.batch) attributes {phase = #kvc.phase<decode>, rows_bytes = 256 : i64} {
    kvc.dispatch "attention" 0 {
      %q = kvc.read slot<rows, offset = 0, stride = 128, f32> : tensor<?x1x32xf32, #kvc.rows>
      %c = kvc.attention %q, @kv, %batch {scale = 1.0 : f64} : tensor<?x1x32xf32, #kvc.rows>
      kvc.write %c, slot<rows, offset = 128, stride = 128, f32> : tensor<?x1x32xf32, #kvc.rows>
    }
    kvc.return
  }
}

// -----

// CHECK: error: 'kvc.attention' op needs a head_dim of at most 256 on cuda, found 272
kvc.model @m attributes {max_context = 512 : i64, target = #kvc.target<arch = "cuda", cpu = "sm_90", features = "", vector_width = 128>} {
  kvc.cache @kv : !kvc.cache<layers = 1, kv_heads = 1, head_dim = 272, type = f16, page = 64, split = 64>
  kvc.program @decode(%tokens: tensor<?xi32, #kvc.rows>, %batch: !kvc.batch) attributes {phase = #kvc.phase<decode>, rows_bytes = 2304 : i64} {
    kvc.dispatch "attention" 0 {
      %q = kvc.read slot<rows, offset = 0, stride = 1088, f32> : tensor<?x1x272xf32, #kvc.rows>
      %c = kvc.attention %q, @kv, %batch {scale = 1.0 : f64} : tensor<?x1x272xf32, #kvc.rows>
      kvc.write %c, slot<rows, offset = 1152, stride = 1088, f32> : tensor<?x1x272xf32, #kvc.rows>
    }
    kvc.return
  }
}

// -----

// CHECK: error: 'kvc.attention' op needs its query rounded to the cache's 'f16', in a slot of it, found f32
kvc.model @m attributes {max_context = 512 : i64, target = #kvc.target<arch = "cuda", cpu = "sm_90", features = "", vector_width = 128>} {
  kvc.cache @kv : !kvc.cache<layers = 1, kv_heads = 1, head_dim = 32, type = f16, page = 64, split = 64>
  kvc.program @decode(%tokens: tensor<?xi32, #kvc.rows>, %batch: !kvc.batch) attributes {phase = #kvc.phase<decode>, rows_bytes = 256 : i64} {
    kvc.dispatch "attention" 0 {
      %q = kvc.read slot<rows, offset = 0, stride = 128, f32> : tensor<?x1x32xf32, #kvc.rows>
      %c = kvc.attention %q, @kv, %batch {scale = 1.0 : f64} : tensor<?x1x32xf32, #kvc.rows>
      kvc.write %c, slot<rows, offset = 128, stride = 128, f32> : tensor<?x1x32xf32, #kvc.rows>
    }
    kvc.return
  }
}

// -----

// CHECK: error: 'kvc.embed' op needs packed weights, but @e has no layout of tiles; run kvc-pack-weights
kvc.model @m attributes {max_context = 512 : i64, target = #kvc.target<arch = "cuda", cpu = "sm_90", features = "", vector_width = 128>} {
  kvc.source @s {seed = 1 : i64}
  kvc.weight @e : !kvc.weight<1x4x32> = [#kvc.slice<@s, f32, 0, "e", [0.0, 1.0]>]
  kvc.program @decode(%tokens: tensor<?xi32, #kvc.rows>, %batch: !kvc.batch) attributes {phase = #kvc.phase<decode>, rows_bytes = 128 : i64} {
    kvc.dispatch "embed" 0 {
      %x = kvc.embed %tokens, @e : (tensor<?xi32, #kvc.rows>) -> tensor<?x32xf32, #kvc.rows>
      kvc.write %x, slot<rows, offset = 0, stride = 128, f32> : tensor<?x32xf32, #kvc.rows>
    }
    kvc.return
  }
}
