// RUN: kvc-opt %s --kvc-fuse-cache-append | FileCheck %s --check-prefixes=CHECK,ALONE
// RUN: kvc-opt %s --kvc-fuse-qkv --kvc-fuse-cache-append | FileCheck %s --check-prefixes=CHECK,AFTER
// RUN: kvc-opt %s --kvc-fuse-cache-append --kvc-fuse-qkv --kvc-fuse-cache-append | FileCheck %s --check-prefixes=CHECK,AFTER

kvc.model @m attributes {max_context = 32 : i64} {
  kvc.source @seed {seed = 1 : i64}
  kvc.weight @embd : !kvc.weight<1x7x8> = [#kvc.slice<@seed, f32, 0, "embd", [0.0, 1.0]>]
  kvc.weight @q : !kvc.weight<1x8x8> = [#kvc.slice<@seed, f32, 0, "q", [0.0, 1.0]>]
  kvc.weight @k : !kvc.weight<1x4x8> = [#kvc.slice<@seed, f32, 0, "k", [0.0, 1.0]>]
  kvc.weight @v : !kvc.weight<1x4x8> = [#kvc.slice<@seed, f32, 0, "v", [0.0, 1.0]>]
  kvc.cache @kv : !kvc.cache<layers = 1, kv_heads = 1, head_dim = 4, type = f16, page = 16, split = 32>
  kvc.program @decode(%tokens: tensor<?xi32, #kvc.rows>, %batch: !kvc.batch) -> tensor<?x2x4xf32, #kvc.outputs> attributes {phase = #kvc.phase<decode>} {
    // CHECK: %[[X:.*]] = kvc.embed
    // AFTER-NEXT: %[[QR:.*]] = kvc.kernel "qkv" -> tensor<?x2x4xf32, #kvc.rows> {
    // AFTER-NEXT: %[[L:.*]]:3 = kvc.linear %[[X]], [@q, @k, @v]
    // AFTER-DAG: %[[R0:.*]] = kvc.rope %[[L]]#0
    // AFTER-DAG: %[[R1:.*]] = kvc.rope %[[L]]#1
    // AFTER-DAG: kvc.cache_append %[[R1]], %[[L]]#2
    // AFTER: kvc.yield %[[R0]] :
    // AFTER-NEXT: }
    // The rotations join their own linear; keys and values of two linears cannot meet in one.
    // ALONE-NEXT: %[[V:.*]] = kvc.linear %[[X]], [@v]
    // ALONE-NEXT: %[[QR:.*]] = kvc.kernel "q"
    // ALONE-NEXT: kvc.linear
    // ALONE-NEXT: kvc.rope
    // ALONE: %[[KR:.*]] = kvc.kernel "k"
    // ALONE-NEXT: kvc.linear
    // ALONE-NEXT: kvc.rope
    // ALONE: kvc.cache_append %[[KR]], %[[V]]
    // CHECK-NEXT: kvc.attention %[[QR]]
    %x = kvc.embed %tokens, @embd : (tensor<?xi32, #kvc.rows>) -> tensor<?x8xf32, #kvc.rows>
    %q = kvc.linear %x, [@q] : (tensor<?x8xf32, #kvc.rows>) -> tensor<?x2x4xf32, #kvc.rows>
    %k = kvc.linear %x, [@k] : (tensor<?x8xf32, #kvc.rows>) -> tensor<?x1x4xf32, #kvc.rows>
    %v = kvc.linear %x, [@v] : (tensor<?x8xf32, #kvc.rows>) -> tensor<?x1x4xf32, #kvc.rows>
    %qr = kvc.rope %q, %batch {layout = #kvc.rope_layout<half>, inv_freq = #kvc.reals<[1.0, 0.1]>} : tensor<?x2x4xf32, #kvc.rows>
    %kr = kvc.rope %k, %batch {layout = #kvc.rope_layout<half>, inv_freq = #kvc.reals<[1.0, 0.1]>} : tensor<?x1x4xf32, #kvc.rows>
    kvc.cache_append %kr, %v, @kv, %batch : tensor<?x1x4xf32, #kvc.rows>
    %c = kvc.attention %qr, @kv, %batch {scale = 0.5 : f64} : tensor<?x2x4xf32, #kvc.rows>
    %r = kvc.select_rows %c, %batch : (tensor<?x2x4xf32, #kvc.rows>) -> tensor<?x2x4xf32, #kvc.outputs>
    kvc.return %r : tensor<?x2x4xf32, #kvc.outputs>
  }
}
