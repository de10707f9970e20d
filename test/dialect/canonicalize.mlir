// REQUIRES: kvc-opt
// RUN: kvc-opt %s --canonicalize | FileCheck %s

kvc.model @folds attributes {max_context = 8 : i64} {
  kvc.source @seed {seed = 1 : i64}
  kvc.weight @embd : !kvc.weight<1x6x8> = [#kvc.slice<@seed, f32, 0, "embd", [0.0, 1.0]>]
  kvc.cache @kv : !kvc.cache<layers = 1, kv_heads = 2, head_dim = 4, type = f32, page = 64, split = 64>

  // CHECK-LABEL: kvc.forward @forward
  kvc.forward @forward(%tokens: tensor<?xi32, #kvc.rows>, %batch: !kvc.batch) -> tensor<?x6xf32, #kvc.outputs> {
    %x = kvc.embed %tokens, @embd : (tensor<?xi32, #kvc.rows>) -> tensor<?x8xf32, #kvc.rows>
    // CHECK: %[[Q:.*]] = kvc.linear
    %q = kvc.linear %x, [@embd] : (tensor<?x8xf32, #kvc.rows>) -> tensor<?x6xf32, #kvc.rows>
    %k = kvc.kernel "heads" -> tensor<?x2x4xf32, #kvc.rows> {
      %h = kvc.read slot<rows, offset = 0, stride = 64, f32> : tensor<?x2x4xf32, #kvc.rows>
      kvc.yield %h : tensor<?x2x4xf32, #kvc.rows>
    }
    // Angles of zero rotate nothing.
    // CHECK: %[[K:.*]] = kvc.kernel "heads"
    // CHECK-NOT: kvc.rope
    // CHECK: kvc.cache_append %[[K]], %[[K]]
    %r = kvc.rope %k, %batch {layout = #kvc.rope_layout<half>, inv_freq = #kvc.reals<[0.0, 0.0]>} : tensor<?x2x4xf32, #kvc.rows>
    kvc.cache_append %r, %r, @kv, %batch : tensor<?x2x4xf32, #kvc.rows>

    // With a scale they do something, and any other angle does, too.
    // CHECK: kvc.rope %[[K]], %{{.*}}scale = 2.0
    // CHECK: kvc.rope
    // CHECK: kvc.cache_append
    %s = kvc.rope %k, %batch {layout = #kvc.rope_layout<half>, inv_freq = #kvc.reals<[0.0, 0.0]>, scale = 2.0 : f64} : tensor<?x2x4xf32, #kvc.rows>
    %t = kvc.rope %k, %batch {layout = #kvc.rope_layout<half>, inv_freq = #kvc.reals<[0.0, 1.0]>} : tensor<?x2x4xf32, #kvc.rows>
    kvc.cache_append %s, %t, @kv, %batch : tensor<?x2x4xf32, #kvc.rows>

    // An op whose result nobody uses goes; one that writes the cache stays.
    // CHECK-NOT: kvc.mul
    %dead = kvc.mul %q, %q : tensor<?x6xf32, #kvc.rows>
    // CHECK: kvc.select_rows %[[Q]]
    %o = kvc.select_rows %q, %batch : (tensor<?x6xf32, #kvc.rows>) -> tensor<?x6xf32, #kvc.outputs>
    kvc.return %o : tensor<?x6xf32, #kvc.outputs>
  }
}
