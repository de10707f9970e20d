// RUN: kvc-opt %s --kvc-fuse-qkv | FileCheck %s

kvc.model @m attributes {max_context = 32 : i64} {
  kvc.source @seed {seed = 1 : i64}
  kvc.weight @embd : !kvc.weight<1x7x8> = [#kvc.slice<@seed, f32, 0, "embd", [0.0, 1.0]>]
  kvc.weight @q : !kvc.weight<1x8x8> = [#kvc.slice<@seed, f32, 0, "q", [0.0, 1.0]>]
  kvc.weight @k : !kvc.weight<1x4x8> = [#kvc.slice<@seed, f32, 0, "k", [0.0, 1.0]>]
  kvc.weight @v : !kvc.weight<1x4x8> = [#kvc.slice<@seed, f32, 0, "v", [0.0, 1.0]>]
  kvc.weight @kb : !kvc.weight<1x4> = [#kvc.slice<@seed, f32, 0, "kb", [0.0, 1.0]>]
  kvc.cache @kv : !kvc.cache<layers = 1, kv_heads = 1, head_dim = 4, type = f16, page = 16, split = 32>
  kvc.program @decode(%tokens: tensor<?xi32, #kvc.rows>, %batch: !kvc.batch) -> tensor<?x8xf32, #kvc.outputs> attributes {phase = #kvc.phase<decode>} {
    // CHECK: %[[X:.*]] = kvc.embed
    // CHECK-NEXT: %[[K:.*]]:3 = kvc.kernel "qkv" -> tensor<?x2x4xf32, #kvc.rows>, tensor<?x1x4xf32, #kvc.rows>, tensor<?x1x4xf32, #kvc.rows> {
    // CHECK-NEXT: %[[L:.*]]:3 = kvc.linear %[[X]], [@q, @k, @v] bias [unit, @kb, unit]
    // CHECK-NEXT: kvc.yield %[[L]]#0, %[[L]]#1, %[[L]]#2
    // CHECK-NEXT: }
    // CHECK-NEXT: kvc.rope %[[K]]#1
    %x = kvc.embed %tokens, @embd : (tensor<?xi32, #kvc.rows>) -> tensor<?x8xf32, #kvc.rows>
    %q = kvc.linear %x, [@q] : (tensor<?x8xf32, #kvc.rows>) -> tensor<?x2x4xf32, #kvc.rows>
    %k = kvc.linear %x, [@k] bias [@kb] : (tensor<?x8xf32, #kvc.rows>) -> tensor<?x1x4xf32, #kvc.rows>
    %kr = kvc.rope %k, %batch {layout = #kvc.rope_layout<half>, inv_freq = #kvc.reals<[1.0, 0.1]>} : tensor<?x1x4xf32, #kvc.rows>
    %v = kvc.linear %x, [@v] : (tensor<?x8xf32, #kvc.rows>) -> tensor<?x1x4xf32, #kvc.rows>
    kvc.cache_append %kr, %v, @kv, %batch : tensor<?x1x4xf32, #kvc.rows>
    %c = kvc.attention %q, @kv, %batch {scale = 0.5 : f64} : tensor<?x2x4xf32, #kvc.rows>
    // A linear that goes to no attention stays out of it.
    // CHECK: kvc.attention
    // CHECK-NEXT: kvc.linear {{.*}}, [@q]
    %o = kvc.linear %c, [@q] : (tensor<?x2x4xf32, #kvc.rows>) -> tensor<?x8xf32, #kvc.rows>
    %r = kvc.select_rows %o, %batch : (tensor<?x8xf32, #kvc.rows>) -> tensor<?x8xf32, #kvc.outputs>
    kvc.return %r : tensor<?x8xf32, #kvc.outputs>
  }

  // The value projection reads something else: two segments.
  kvc.program @prefill(%tokens: tensor<?xi32, #kvc.rows>, %batch: !kvc.batch) -> tensor<?x8xf32, #kvc.outputs> attributes {phase = #kvc.phase<prefill>} {
    // CHECK: kvc.program @prefill
    // CHECK: kvc.kernel "qkv"
    // CHECK-NEXT: kvc.linear {{.*}}, [@q, @k]
    // CHECK-NOT: kvc.kernel
    // CHECK: kvc.linear {{.*}}, [@v]
    // CHECK-NOT: kvc.kernel
    %x = kvc.embed %tokens, @embd : (tensor<?xi32, #kvc.rows>) -> tensor<?x8xf32, #kvc.rows>
    %x2 = kvc.add %x, %x : tensor<?x8xf32, #kvc.rows>
    %q = kvc.linear %x, [@q] : (tensor<?x8xf32, #kvc.rows>) -> tensor<?x2x4xf32, #kvc.rows>
    %k = kvc.linear %x, [@k] : (tensor<?x8xf32, #kvc.rows>) -> tensor<?x1x4xf32, #kvc.rows>
    %v = kvc.linear %x2, [@v] : (tensor<?x8xf32, #kvc.rows>) -> tensor<?x1x4xf32, #kvc.rows>
    kvc.cache_append %k, %v, @kv, %batch : tensor<?x1x4xf32, #kvc.rows>
    %c = kvc.attention %q, @kv, %batch {scale = 0.5 : f64} : tensor<?x2x4xf32, #kvc.rows>
    %o = kvc.linear %c, [@q] : (tensor<?x2x4xf32, #kvc.rows>) -> tensor<?x8xf32, #kvc.rows>
    %r = kvc.select_rows %o, %batch : (tensor<?x8xf32, #kvc.rows>) -> tensor<?x8xf32, #kvc.outputs>
    kvc.return %r : tensor<?x8xf32, #kvc.outputs>
  }
}
