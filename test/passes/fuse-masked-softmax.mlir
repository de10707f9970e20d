// RUN: kvc-opt %s --kvc-fuse-masked-softmax | FileCheck %s

kvc.model @m attributes {max_context = 32 : i64} {
  kvc.source @seed {seed = 1 : i64}
  kvc.weight @embd : !kvc.weight<1x7x8> = [#kvc.slice<@seed, f32, 0, "embd", [0.0, 1.0]>]
  kvc.weight @q : !kvc.weight<1x8x8> = [#kvc.slice<@seed, f32, 0, "q", [0.0, 1.0]>]
  kvc.weight @k : !kvc.weight<1x4x8> = [#kvc.slice<@seed, f32, 0, "k", [0.0, 1.0]>]
  kvc.cache @kv : !kvc.cache<layers = 1, kv_heads = 1, head_dim = 4, type = f16, page = 16, split = 32>
  kvc.program @decode(%tokens: tensor<?xi32, #kvc.rows>, %batch: !kvc.batch) -> tensor<?x2x4xf32, #kvc.outputs> attributes {phase = #kvc.phase<decode>} {
    // CHECK: %[[Q:.*]] = kvc.linear
    // CHECK-NEXT: %[[K:.*]] = kvc.linear
    // CHECK-NEXT: kvc.cache_append
    // CHECK-NEXT: %[[C:.*]] = kvc.kernel "attention" -> tensor<?x2x4xf32, #kvc.rows> {
    // CHECK-NEXT: %[[A:.*]] = kvc.attention %[[Q]], @kv, %{{.*}} {scale = 5.000000e-01 : f64}
    // CHECK-NEXT: kvc.yield %[[A]]
    // CHECK-NEXT: }
    // CHECK-NEXT: kvc.select_rows %[[C]]
    %x = kvc.embed %tokens, @embd : (tensor<?xi32, #kvc.rows>) -> tensor<?x8xf32, #kvc.rows>
    %q = kvc.linear %x, [@q] : (tensor<?x8xf32, #kvc.rows>) -> tensor<?x2x4xf32, #kvc.rows>
    %k = kvc.linear %x, [@k] : (tensor<?x8xf32, #kvc.rows>) -> tensor<?x1x4xf32, #kvc.rows>
    kvc.cache_append %k, %k, @kv, %batch : tensor<?x1x4xf32, #kvc.rows>
    %s = kvc.scores %q, @kv, %batch {scale = 0.5 : f64} : (tensor<?x2x4xf32, #kvc.rows>) -> tensor<?x2x?xf32, #kvc.rows>
    %p = kvc.masked_softmax %s, %batch : tensor<?x2x?xf32, #kvc.rows>
    %c = kvc.context %p, @kv, %batch : (tensor<?x2x?xf32, #kvc.rows>) -> tensor<?x2x4xf32, #kvc.rows>
    %r = kvc.select_rows %c, %batch : (tensor<?x2x4xf32, #kvc.rows>) -> tensor<?x2x4xf32, #kvc.outputs>
    kvc.return %r : tensor<?x2x4xf32, #kvc.outputs>
  }
  // The cache is written between scores and context.
  kvc.program @prefill(%tokens: tensor<?xi32, #kvc.rows>, %batch: !kvc.batch) -> tensor<?x2x4xf32, #kvc.outputs> attributes {phase = #kvc.phase<prefill>} {
    // CHECK: kvc.program @prefill
    // CHECK-NOT: kvc.attention
    // CHECK: kvc.context
    %x = kvc.embed %tokens, @embd : (tensor<?xi32, #kvc.rows>) -> tensor<?x8xf32, #kvc.rows>
    %q = kvc.linear %x, [@q] : (tensor<?x8xf32, #kvc.rows>) -> tensor<?x2x4xf32, #kvc.rows>
    %k = kvc.linear %x, [@k] : (tensor<?x8xf32, #kvc.rows>) -> tensor<?x1x4xf32, #kvc.rows>
    kvc.cache_append %k, %k, @kv, %batch : tensor<?x1x4xf32, #kvc.rows>
    %s = kvc.scores %q, @kv, %batch {scale = 0.5 : f64} : (tensor<?x2x4xf32, #kvc.rows>) -> tensor<?x2x?xf32, #kvc.rows>
    %p = kvc.masked_softmax %s, %batch : tensor<?x2x?xf32, #kvc.rows>
    %k2 = kvc.add %k, %k : tensor<?x1x4xf32, #kvc.rows>
    kvc.cache_append %k2, %k2, @kv, %batch : tensor<?x1x4xf32, #kvc.rows>
    %c = kvc.context %p, @kv, %batch : (tensor<?x2x?xf32, #kvc.rows>) -> tensor<?x2x4xf32, #kvc.rows>
    %r = kvc.select_rows %c, %batch : (tensor<?x2x4xf32, #kvc.rows>) -> tensor<?x2x4xf32, #kvc.outputs>
    kvc.return %r : tensor<?x2x4xf32, #kvc.outputs>
  }
  // Rounded queries meet rounded weights.
  kvc.program @rounded(%tokens: tensor<?xi32, #kvc.rows>, %batch: !kvc.batch) -> tensor<?x2x4xf32, #kvc.outputs> attributes {phase = #kvc.phase<decode>} {
    // CHECK: kvc.program @rounded
    // CHECK: %[[QR:.*]] = kvc.round
    // CHECK: kvc.attention %[[QR]], @kv, %{{.*}} {scale = 5.000000e-01 : f64, weights = f16}
    %x = kvc.embed %tokens, @embd : (tensor<?xi32, #kvc.rows>) -> tensor<?x8xf32, #kvc.rows>
    %q = kvc.linear %x, [@q] : (tensor<?x8xf32, #kvc.rows>) -> tensor<?x2x4xf32, #kvc.rows>
    %qr = kvc.round %q to f16 : tensor<?x2x4xf32, #kvc.rows>
    %s = kvc.scores %qr, @kv, %batch {scale = 0.5 : f64} : (tensor<?x2x4xf32, #kvc.rows>) -> tensor<?x2x?xf32, #kvc.rows>
    %p = kvc.masked_softmax %s, %batch : tensor<?x2x?xf32, #kvc.rows>
    %c = kvc.context %p, @kv, %batch : (tensor<?x2x?xf32, #kvc.rows>) -> tensor<?x2x4xf32, #kvc.rows>
    %r = kvc.select_rows %c, %batch : (tensor<?x2x4xf32, #kvc.rows>) -> tensor<?x2x4xf32, #kvc.outputs>
    kvc.return %r : tensor<?x2x4xf32, #kvc.outputs>
  }
}
