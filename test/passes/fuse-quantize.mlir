// RUN: kvc-opt %s --kvc-fuse-quantize --split-input-file | FileCheck %s

// CHECK-LABEL: kvc.model @producers
kvc.model @producers attributes {max_context = 32 : i64} {
  kvc.source @seed {seed = 1 : i64}
  kvc.weight @embd : !kvc.weight<1x64x64> = [#kvc.slice<@seed, f32, 0, "embd", [0.0, 1.0]>]
  kvc.weight @n : !kvc.weight<1x64> = [#kvc.slice<@seed, f32, 0, "n", [1.0, 0.1]>]
  kvc.cache @kv : !kvc.cache<layers = 1, kv_heads = 1, head_dim = 32, type = f16, page = 16, split = 32>
  kvc.program @prefill(%tokens: tensor<?xi32, #kvc.rows>, %batch: !kvc.batch) -> tensor<?x64xf32, #kvc.outputs> attributes {phase = #kvc.phase<prefill>} {
    // CHECK: kvc.kernel "norm"
    // CHECK-NEXT: %[[N:.*]] = kvc.rms_norm
    // CHECK-NEXT: %[[NQ:.*]] = kvc.quantize %[[N]]
    // CHECK-NEXT: kvc.yield %[[NQ]]
    // CHECK: kvc.kernel "attention"
    // CHECK-NEXT: %[[A:.*]] = kvc.attention
    // CHECK-NEXT: %[[AQ:.*]] = kvc.quantize %[[A]]
    // CHECK-NEXT: kvc.yield %[[AQ]]
    // CHECK: kvc.kernel "up"
    // CHECK-NEXT: kvc.linear
    // CHECK-NEXT: %[[U:.*]] = kvc.activation
    // CHECK-NEXT: %[[UQ:.*]] = kvc.quantize %[[U]]
    // CHECK-NEXT: kvc.yield %[[UQ]]
    // In prefill a rounding of anything else is a kernel of its own.
    // CHECK: %[[B:.*]] = kvc.linear
    // CHECK-NEXT: %[[BQ:.*]] = kvc.quantize %[[B]]
    // CHECK-NEXT: kvc.linear %[[BQ]]
    %x = kvc.embed %tokens, @embd : (tensor<?xi32, #kvc.rows>) -> tensor<?x64xf32, #kvc.rows>
    %n = kvc.rms_norm %x, @n {eps = 1.0e-5 : f64} : tensor<?x64xf32, #kvc.rows>
    %nq = kvc.quantize %n : tensor<?x64xf32, #kvc.rows>
    %q = kvc.linear %nq, [@embd] : (tensor<?x64xf32, #kvc.rows>) -> tensor<?x2x32xf32, #kvc.rows>
    %c = kvc.attention %q, @kv, %batch {scale = 0.5 : f64} : tensor<?x2x32xf32, #kvc.rows>
    %cq = kvc.quantize %c : tensor<?x2x32xf32, #kvc.rows>
    %u = kvc.kernel "up" -> tensor<?x64xf32, #kvc.rows> {
      %0 = kvc.linear %cq, [@embd] : (tensor<?x2x32xf32, #kvc.rows>) -> tensor<?x64xf32, #kvc.rows>
      %1 = kvc.activation %0 {kind = #kvc.activation_kind<gelu>} : tensor<?x64xf32, #kvc.rows>
      kvc.yield %1 : tensor<?x64xf32, #kvc.rows>
    }
    %uq = kvc.quantize %u : tensor<?x64xf32, #kvc.rows>
    %b = kvc.linear %uq, [@embd] : (tensor<?x64xf32, #kvc.rows>) -> tensor<?x64xf32, #kvc.rows>
    %bq = kvc.quantize %b : tensor<?x64xf32, #kvc.rows>
    %d = kvc.linear %bq, [@embd] : (tensor<?x64xf32, #kvc.rows>) -> tensor<?x64xf32, #kvc.rows>
    %r = kvc.select_rows %d, %batch : (tensor<?x64xf32, #kvc.rows>) -> tensor<?x64xf32, #kvc.outputs>
    kvc.return %r : tensor<?x64xf32, #kvc.outputs>
  }
}

// -----

// Heads of 16 are not whole blocks: in decode the rounding is the prologue of what reads it.
// CHECK-LABEL: kvc.model @small_heads
kvc.model @small_heads attributes {max_context = 32 : i64} {
  kvc.source @seed {seed = 1 : i64}
  kvc.weight @embd : !kvc.weight<1x64x64> = [#kvc.slice<@seed, f32, 0, "embd", [0.0, 1.0]>]
  kvc.cache @kv : !kvc.cache<layers = 1, kv_heads = 1, head_dim = 16, type = f16, page = 16, split = 32>
  kvc.program @decode(%tokens: tensor<?xi32, #kvc.rows>, %batch: !kvc.batch) -> tensor<?x64xf32, #kvc.outputs> attributes {phase = #kvc.phase<decode>} {
    // CHECK: %[[C:.*]] = kvc.attention
    // CHECK-NEXT: kvc.kernel "out"
    // CHECK-NEXT: %[[CQ:.*]] = kvc.quantize %[[C]]
    // CHECK-NEXT: kvc.linear %[[CQ]]
    %x = kvc.embed %tokens, @embd : (tensor<?xi32, #kvc.rows>) -> tensor<?x64xf32, #kvc.rows>
    %q = kvc.linear %x, [@embd] : (tensor<?x64xf32, #kvc.rows>) -> tensor<?x4x16xf32, #kvc.rows>
    %c = kvc.attention %q, @kv, %batch {scale = 0.5 : f64} : tensor<?x4x16xf32, #kvc.rows>
    %cq = kvc.quantize %c : tensor<?x4x16xf32, #kvc.rows>
    %o = kvc.linear %cq, [@embd] : (tensor<?x4x16xf32, #kvc.rows>) -> tensor<?x64xf32, #kvc.rows>
    %r = kvc.select_rows %o, %batch : (tensor<?x64xf32, #kvc.rows>) -> tensor<?x64xf32, #kvc.outputs>
    kvc.return %r : tensor<?x64xf32, #kvc.outputs>
  }
}

// -----

// A round needs no blocks: heads of 12 are rounded where they are made, and so are an attention's queries. What
// else a rotation or a linear makes is not.
// CHECK-LABEL: kvc.model @round
kvc.model @round attributes {max_context = 32 : i64} {
  kvc.source @seed {seed = 1 : i64}
  kvc.weight @embd : !kvc.weight<1x24x24> = [#kvc.slice<@seed, f32, 0, "embd", [0.0, 1.0]>]
  kvc.weight @n : !kvc.weight<1x24> = [#kvc.slice<@seed, f32, 0, "n", [1.0, 0.1]>]
  kvc.cache @kv : !kvc.cache<layers = 1, kv_heads = 1, head_dim = 12, type = f16, page = 16, split = 32>
  kvc.program @prefill(%tokens: tensor<?xi32, #kvc.rows>, %batch: !kvc.batch) -> tensor<?x24xf32, #kvc.outputs> attributes {phase = #kvc.phase<prefill>} {
    // CHECK: kvc.kernel "norm"
    // CHECK-NEXT: %[[N:.*]] = kvc.rms_norm
    // CHECK-NEXT: %[[NR:.*]] = kvc.round %[[N]] to bf16
    // CHECK-NEXT: kvc.yield %[[NR]]
    %x = kvc.embed %tokens, @embd : (tensor<?xi32, #kvc.rows>) -> tensor<?x24xf32, #kvc.rows>
    %n = kvc.rms_norm %x, @n {eps = 1.0e-5 : f64} : tensor<?x24xf32, #kvc.rows>
    %nr = kvc.round %n to bf16 : tensor<?x24xf32, #kvc.rows>
    // CHECK: kvc.kernel "q"
    // CHECK-NEXT: %[[Q:.*]] = kvc.linear
    // CHECK-NEXT: %[[QT:.*]] = kvc.rope %[[Q]]
    // CHECK-NEXT: %[[QR:.*]] = kvc.round %[[QT]] to f16
    // CHECK-NEXT: kvc.yield %[[QR]]
    %qt = kvc.kernel "q" -> tensor<?x2x12xf32, #kvc.rows> {
      %0 = kvc.linear %nr, [@embd] : (tensor<?x24xf32, #kvc.rows>) -> tensor<?x2x12xf32, #kvc.rows>
      %1 = kvc.rope %0, %batch {layout = #kvc.rope_layout<half>, inv_freq = #kvc.reals<[1.0]>} : tensor<?x2x12xf32, #kvc.rows>
      kvc.yield %1 : tensor<?x2x12xf32, #kvc.rows>
    }
    %qr = kvc.round %qt to f16 : tensor<?x2x12xf32, #kvc.rows>
    // CHECK: kvc.kernel "attention"
    // CHECK-NEXT: %[[A:.*]] = kvc.attention
    // CHECK-NEXT: %[[AR:.*]] = kvc.round %[[A]] to bf16
    // CHECK-NEXT: kvc.yield %[[AR]]
    %c = kvc.attention %qr, @kv, %batch {scale = 0.5 : f64} : tensor<?x2x12xf32, #kvc.rows>
    %cr = kvc.round %c to bf16 : tensor<?x2x12xf32, #kvc.rows>
    // CHECK: kvc.kernel "out"
    // CHECK-NEXT: %[[O:.*]] = kvc.linear
    // CHECK-NEXT: kvc.yield %[[O]]
    // CHECK: kvc.round %{{.*}} to bf16
    %o = kvc.kernel "out" -> tensor<?x24xf32, #kvc.rows> {
      %0 = kvc.linear %cr, [@embd] : (tensor<?x2x12xf32, #kvc.rows>) -> tensor<?x24xf32, #kvc.rows>
      kvc.yield %0 : tensor<?x24xf32, #kvc.rows>
    }
    %or = kvc.round %o to bf16 : tensor<?x24xf32, #kvc.rows>
    %d = kvc.linear %or, [@embd] : (tensor<?x24xf32, #kvc.rows>) -> tensor<?x24xf32, #kvc.rows>
    %r = kvc.select_rows %d, %batch : (tensor<?x24xf32, #kvc.rows>) -> tensor<?x24xf32, #kvc.outputs>
    // CHECK: kvc.kernel "head"
    // CHECK-NEXT: %[[RR:.*]] = kvc.round
    // CHECK-NEXT: kvc.linear %[[RR]]
    %rr = kvc.round %r to bf16 : tensor<?x24xf32, #kvc.outputs>
    %l = kvc.linear %rr, [@embd] : (tensor<?x24xf32, #kvc.outputs>) -> tensor<?x24xf32, #kvc.outputs>
    kvc.return %l : tensor<?x24xf32, #kvc.outputs>
  }
}
