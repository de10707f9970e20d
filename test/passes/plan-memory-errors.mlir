// RUN: not kvc-opt %s --kvc-plan-memory --split-input-file 2>&1 | FileCheck %s

// A kernel by hand that breaks the rules of kernels says which.
// CHECK: error: 'kvc.kernel' op "mine" cannot run as one kernel: kvc.rms_norm cannot run on the tiles of kvc.linear
kvc.model @epilogue attributes {max_context = 32 : i64} {
  kvc.source @seed {seed = 1 : i64}
  kvc.weight @w : !kvc.weight<1x32x32> = [#kvc.slice<@seed, f32, 0, "w", [0.0, 1.0]>]
  kvc.weight @n : !kvc.weight<1x32> = [#kvc.slice<@seed, f32, 0, "n", [1.0, 0.1]>]
  kvc.program @decode(%tokens: tensor<?xi32, #kvc.rows>, %batch: !kvc.batch) -> tensor<?x32xf32, #kvc.outputs> attributes {phase = #kvc.phase<decode>} {
    %x = kvc.embed %tokens, @w : (tensor<?xi32, #kvc.rows>) -> tensor<?x32xf32, #kvc.rows>
    %y = kvc.kernel "mine" -> tensor<?x32xf32, #kvc.rows> {
      %0 = kvc.linear %x, [@w] : (tensor<?x32xf32, #kvc.rows>) -> tensor<?x32xf32, #kvc.rows>
      %1 = kvc.rms_norm %0, @n {eps = 1.0e-5 : f64} : tensor<?x32xf32, #kvc.rows>
      kvc.yield %1 : tensor<?x32xf32, #kvc.rows>
    }
    %r = kvc.select_rows %y, %batch : (tensor<?x32xf32, #kvc.rows>) -> tensor<?x32xf32, #kvc.outputs>
    kvc.return %r : tensor<?x32xf32, #kvc.outputs>
  }
}

// -----

// CHECK: error: 'kvc.kernel' op "mine" cannot run as one kernel: every worker computes kvc.rms_norm for itself, but something besides the anchor uses it
kvc.model @prologue attributes {max_context = 32 : i64} {
  kvc.source @seed {seed = 1 : i64}
  kvc.weight @w : !kvc.weight<1x32x32> = [#kvc.slice<@seed, f32, 0, "w", [0.0, 1.0]>]
  kvc.weight @n : !kvc.weight<1x32> = [#kvc.slice<@seed, f32, 0, "n", [1.0, 0.1]>]
  kvc.program @decode(%tokens: tensor<?xi32, #kvc.rows>, %batch: !kvc.batch) -> tensor<?x32xf32, #kvc.outputs> attributes {phase = #kvc.phase<decode>} {
    %x = kvc.embed %tokens, @w : (tensor<?xi32, #kvc.rows>) -> tensor<?x32xf32, #kvc.rows>
    %y:2 = kvc.kernel "mine" -> tensor<?x32xf32, #kvc.rows>, tensor<?x32xf32, #kvc.rows> {
      %0 = kvc.rms_norm %x, @n {eps = 1.0e-5 : f64} : tensor<?x32xf32, #kvc.rows>
      %1 = kvc.linear %0, [@w] : (tensor<?x32xf32, #kvc.rows>) -> tensor<?x32xf32, #kvc.rows>
      kvc.yield %0, %1 : tensor<?x32xf32, #kvc.rows>, tensor<?x32xf32, #kvc.rows>
    }
    %s = kvc.add %y#0, %y#1 : tensor<?x32xf32, #kvc.rows>
    %r = kvc.select_rows %s, %batch : (tensor<?x32xf32, #kvc.rows>) -> tensor<?x32xf32, #kvc.outputs>
    kvc.return %r : tensor<?x32xf32, #kvc.outputs>
  }
}

// -----

// CHECK: error: 'kvc.kernel' op "mine" cannot run as one kernel: a head of 16 values is not whole blocks of 32
kvc.model @blocks attributes {max_context = 32 : i64} {
  kvc.source @seed {seed = 1 : i64}
  kvc.weight @w : !kvc.weight<1x32x32> = [#kvc.slice<@seed, f32, 0, "w", [0.0, 1.0]>]
  kvc.cache @kv : !kvc.cache<layers = 1, kv_heads = 1, head_dim = 16, type = f16, page = 16, split = 32>
  kvc.program @decode(%tokens: tensor<?xi32, #kvc.rows>, %batch: !kvc.batch) -> tensor<?x32xf32, #kvc.outputs> attributes {phase = #kvc.phase<decode>} {
    %x = kvc.embed %tokens, @w : (tensor<?xi32, #kvc.rows>) -> tensor<?x32xf32, #kvc.rows>
    %q = kvc.linear %x, [@w] : (tensor<?x32xf32, #kvc.rows>) -> tensor<?x2x16xf32, #kvc.rows>
    %y = kvc.kernel "mine" -> tensor<?x2x16xf32, #kvc.rows> {
      %0 = kvc.attention %q, @kv, %batch {scale = 0.5 : f64} : tensor<?x2x16xf32, #kvc.rows>
      %1 = kvc.quantize %0 : tensor<?x2x16xf32, #kvc.rows>
      kvc.yield %1 : tensor<?x2x16xf32, #kvc.rows>
    }
    %o = kvc.linear %y, [@w] : (tensor<?x2x16xf32, #kvc.rows>) -> tensor<?x32xf32, #kvc.rows>
    %r = kvc.select_rows %o, %batch : (tensor<?x32xf32, #kvc.rows>) -> tensor<?x32xf32, #kvc.outputs>
    kvc.return %r : tensor<?x32xf32, #kvc.outputs>
  }
}

// -----

// CHECK: error: 'kvc.program' op has a value of type 'tensor<?x2x?xf32, #kvc.rows>', whose rows are too large for an arena
kvc.model @large attributes {max_context = 4611686018427387904 : i64} {
  kvc.source @seed {seed = 1 : i64}
  kvc.weight @w : !kvc.weight<1x32x32> = [#kvc.slice<@seed, f32, 0, "w", [0.0, 1.0]>]
  kvc.cache @kv : !kvc.cache<layers = 1, kv_heads = 1, head_dim = 16, type = f16, page = 16, split = 32>
  kvc.program @decode(%tokens: tensor<?xi32, #kvc.rows>, %batch: !kvc.batch) -> tensor<?x2x16xf32, #kvc.outputs> attributes {phase = #kvc.phase<decode>} {
    %x = kvc.embed %tokens, @w : (tensor<?xi32, #kvc.rows>) -> tensor<?x32xf32, #kvc.rows>
    %q = kvc.linear %x, [@w] : (tensor<?x32xf32, #kvc.rows>) -> tensor<?x2x16xf32, #kvc.rows>
    %s = kvc.scores %q, @kv, %batch {scale = 0.5 : f64} : (tensor<?x2x16xf32, #kvc.rows>) -> tensor<?x2x?xf32, #kvc.rows>
    %p = kvc.masked_softmax %s, %batch : tensor<?x2x?xf32, #kvc.rows>
    %c = kvc.context %p, @kv, %batch : (tensor<?x2x?xf32, #kvc.rows>) -> tensor<?x2x16xf32, #kvc.rows>
    %r = kvc.select_rows %c, %batch : (tensor<?x2x16xf32, #kvc.rows>) -> tensor<?x2x16xf32, #kvc.outputs>
    kvc.return %r : tensor<?x2x16xf32, #kvc.outputs>
  }
}

// -----

// CHECK: error: 'arith.constant' op is not of the kvc dialect: no kernel can run it
kvc.model @foreign attributes {max_context = 32 : i64} {
  kvc.source @seed {seed = 1 : i64}
  kvc.weight @w : !kvc.weight<1x32x32> = [#kvc.slice<@seed, f32, 0, "w", [0.0, 1.0]>]
  kvc.program @decode(%tokens: tensor<?xi32, #kvc.rows>, %batch: !kvc.batch) -> tensor<?x32xf32, #kvc.outputs> attributes {phase = #kvc.phase<decode>} {
    %layer = arith.constant 0 : index
    %x = kvc.embed %tokens, @w : (tensor<?xi32, #kvc.rows>) -> tensor<?x32xf32, #kvc.rows>
    %y = kvc.linear %x, [@w][%layer] : (tensor<?x32xf32, #kvc.rows>) -> tensor<?x32xf32, #kvc.rows>
    %r = kvc.select_rows %y, %batch : (tensor<?x32xf32, #kvc.rows>) -> tensor<?x32xf32, #kvc.outputs>
    kvc.return %r : tensor<?x32xf32, #kvc.outputs>
  }
}
