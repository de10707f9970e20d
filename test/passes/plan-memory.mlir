// RUN: kvc-opt %s --kvc-plan-memory --split-input-file | FileCheck %s

// A residual stream keeps one place; what a norm hands on is reused for the next value.
// CHECK-LABEL: kvc.model @residual
kvc.model @residual attributes {max_context = 32 : i64} {
  kvc.source @seed {seed = 1 : i64}
  kvc.weight @embd : !kvc.weight<1x32x32> = [#kvc.slice<@seed, f32, 0, "embd", [0.0, 1.0]>]
  kvc.weight @w : !kvc.weight<2x32x32> = [#kvc.slice<@seed, f32, 0, "w0", [0.0, 1.0]>, #kvc.slice<@seed, f32, 0, "w1", [0.0, 1.0]>]
  kvc.weight @n : !kvc.weight<2x32> = [#kvc.slice<@seed, f32, 0, "n0", [1.0, 0.1]>, #kvc.slice<@seed, f32, 0, "n1", [1.0, 0.1]>]
  // CHECK: kvc.program @decode(%[[T:.*]]: tensor<?xi32, #kvc.rows>, %[[B:.*]]: !kvc.batch) attributes {outputs_bytes = 0 : i64, phase = #kvc.phase<decode>, rows_bytes = 256 : i64, worker_bytes = 128 : i64} {
  kvc.program @decode(%tokens: tensor<?xi32, #kvc.rows>, %batch: !kvc.batch) -> tensor<?x32xf32, #kvc.outputs> attributes {phase = #kvc.phase<decode>} {
    // CHECK-NEXT: kvc.kernel "embed" {
    // CHECK-NEXT: %[[X:.*]] = kvc.embed %[[T]]
    // CHECK-NEXT: kvc.write %[[X]], slot<rows, offset = 0, stride = 128, f32>
    // CHECK-NEXT: }
    %x = kvc.embed %tokens, @embd : (tensor<?xi32, #kvc.rows>) -> tensor<?x32xf32, #kvc.rows>
    // CHECK-NEXT: kvc.layers 2 {
    // CHECK-NEXT: ^bb0(%[[LAYER:.*]]: index):
    %y = kvc.layers 2 (%x) : (tensor<?x32xf32, #kvc.rows>) -> tensor<?x32xf32, #kvc.rows> {
    ^bb0(%h: tensor<?x32xf32, #kvc.rows>, %layer: index):
      // CHECK-NEXT: kvc.kernel "norm" {
      // CHECK-NEXT: %[[H:.*]] = kvc.read slot<rows, offset = 0, stride = 128, f32>
      // CHECK-NEXT: %[[N:.*]] = kvc.rms_norm %[[H]], @n[%[[LAYER]]]
      // CHECK-NEXT: kvc.write %[[N]], slot<rows, offset = 128, stride = 128, f32>
      // CHECK-NEXT: }
      %n = kvc.rms_norm %h, @n[%layer] {eps = 1.0e-5 : f64} : tensor<?x32xf32, #kvc.rows>
      // CHECK-NEXT: kvc.kernel "out" {
      // CHECK-NEXT: %[[N2:.*]] = kvc.read slot<rows, offset = 128, stride = 128, f32>
      // CHECK-NEXT: %[[H2:.*]] = kvc.read slot<rows, offset = 0, stride = 128, f32>
      // CHECK-NEXT: %[[O:.*]] = kvc.linear %[[N2]]
      // CHECK-NEXT: %[[S:.*]] = kvc.add %[[H2]], %[[O]]
      // CHECK-NEXT: kvc.write %[[S]], slot<rows, offset = 0, stride = 128, f32>
      // CHECK-NEXT: }
      %h1 = kvc.kernel "out" -> tensor<?x32xf32, #kvc.rows> {
        %o = kvc.linear %n, [@w][%layer] : (tensor<?x32xf32, #kvc.rows>) -> tensor<?x32xf32, #kvc.rows>
        %s = kvc.add %h, %o : tensor<?x32xf32, #kvc.rows>
        kvc.yield %s : tensor<?x32xf32, #kvc.rows>
      }
      kvc.yield %h1 : tensor<?x32xf32, #kvc.rows>
    }
    // CHECK: kvc.kernel "head" {
    // CHECK-NEXT: %[[Y:.*]] = kvc.read slot<rows, offset = 0, stride = 128, f32>
    // CHECK-NEXT: %[[R:.*]] = kvc.select_rows %[[Y]], %[[B]]
    // CHECK-NEXT: %[[ST:.*]] = kvc.stage %[[R]], slot<worker, offset = 0, stride = 128, f32>
    // CHECK-NEXT: %[[L:.*]] = kvc.linear %[[ST]]
    // CHECK-NEXT: kvc.write %[[L]], slot<logits, offset = 0, stride = 128, f32>
    // CHECK-NEXT: }
    // CHECK-NEXT: kvc.return
    %l = kvc.kernel "head" -> tensor<?x32xf32, #kvc.outputs> {
      %r = kvc.select_rows %y, %batch : (tensor<?x32xf32, #kvc.rows>) -> tensor<?x32xf32, #kvc.outputs>
      %0 = kvc.linear %r, [@embd] : (tensor<?x32xf32, #kvc.outputs>) -> tensor<?x32xf32, #kvc.outputs>
      kvc.yield %0 : tensor<?x32xf32, #kvc.outputs>
    }
    kvc.return %l : tensor<?x32xf32, #kvc.outputs>
  }
}

// -----

// A norm reads whole rows: its result must not lie over its operand. In front of the back edge the carried
// value's place is free, so no copy is needed either.
// CHECK-LABEL: kvc.model @no_residual
kvc.model @no_residual attributes {max_context = 32 : i64} {
  kvc.source @seed {seed = 1 : i64}
  kvc.weight @embd : !kvc.weight<1x32x32> = [#kvc.slice<@seed, f32, 0, "embd", [0.0, 1.0]>]
  kvc.weight @n : !kvc.weight<2x32> = [#kvc.slice<@seed, f32, 0, "n0", [1.0, 0.1]>, #kvc.slice<@seed, f32, 0, "n1", [1.0, 0.1]>]
  // CHECK: rows_bytes = 256
  kvc.program @decode(%tokens: tensor<?xi32, #kvc.rows>, %batch: !kvc.batch) -> tensor<?x32xf32, #kvc.outputs> attributes {phase = #kvc.phase<decode>} {
    %x = kvc.embed %tokens, @embd : (tensor<?xi32, #kvc.rows>) -> tensor<?x32xf32, #kvc.rows>
    // CHECK: ^bb0
    // CHECK-NEXT: kvc.kernel "norm" {
    // CHECK-NEXT: kvc.read slot<rows, offset = 0
    // CHECK-NEXT: kvc.rms_norm
    // CHECK-NEXT: kvc.write {{.*}}, slot<rows, offset = 128
    // CHECK-NEXT: }
    // CHECK-NEXT: kvc.kernel "norm" {
    // CHECK-NEXT: kvc.read slot<rows, offset = 128
    // CHECK-NEXT: kvc.rms_norm
    // CHECK-NEXT: kvc.write {{.*}}, slot<rows, offset = 0
    // CHECK-NEXT: }
    // CHECK-NEXT: }
    %y = kvc.layers 2 (%x) : (tensor<?x32xf32, #kvc.rows>) -> tensor<?x32xf32, #kvc.rows> {
    ^bb0(%h: tensor<?x32xf32, #kvc.rows>, %layer: index):
      %a = kvc.rms_norm %h, @n[%layer] {eps = 1.0e-5 : f64} : tensor<?x32xf32, #kvc.rows>
      %b = kvc.rms_norm %a, @n[%layer] {eps = 1.0e-5 : f64} : tensor<?x32xf32, #kvc.rows>
      kvc.yield %b : tensor<?x32xf32, #kvc.rows>
    }
    %r = kvc.select_rows %y, %batch : (tensor<?x32xf32, #kvc.rows>) -> tensor<?x32xf32, #kvc.outputs>
    kvc.return %r : tensor<?x32xf32, #kvc.outputs>
  }
}

// -----

// Two carried values change places: both are copied before either is overwritten. The logits are a kernel's.
// CHECK-LABEL: kvc.model @swap
kvc.model @swap attributes {max_context = 32 : i64} {
  kvc.source @seed {seed = 1 : i64}
  kvc.weight @embd : !kvc.weight<1x32x32> = [#kvc.slice<@seed, f32, 0, "embd", [0.0, 1.0]>]
  kvc.program @decode(%tokens: tensor<?xi32, #kvc.rows>, %batch: !kvc.batch) -> tensor<?x32xf32, #kvc.outputs> attributes {phase = #kvc.phase<decode>} {
    %x = kvc.embed %tokens, @embd : (tensor<?xi32, #kvc.rows>) -> tensor<?x32xf32, #kvc.rows>
    %x2 = kvc.activation %x {kind = #kvc.activation_kind<silu>} : tensor<?x32xf32, #kvc.rows>
    // CHECK: ^bb0
    // CHECK-NEXT: kvc.kernel "copy" {
    // CHECK-NEXT: kvc.read slot<rows, offset = [[A:[0-9]+]],
    // CHECK-NEXT: kvc.write {{.*}}, slot<rows, offset = [[C:[0-9]+]],
    // CHECK: kvc.kernel "copy" {
    // CHECK-NEXT: kvc.read slot<rows, offset = [[B:[0-9]+]],
    // CHECK-NEXT: kvc.write {{.*}}, slot<rows, offset = [[A]],
    // CHECK: kvc.kernel "copy" {
    // CHECK-NEXT: kvc.read slot<rows, offset = [[C]],
    // CHECK-NEXT: kvc.write {{.*}}, slot<rows, offset = [[B]],
    %y:2 = kvc.layers 2 (%x, %x2) : (tensor<?x32xf32, #kvc.rows>, tensor<?x32xf32, #kvc.rows>) -> (tensor<?x32xf32, #kvc.rows>, tensor<?x32xf32, #kvc.rows>) {
    ^bb0(%a: tensor<?x32xf32, #kvc.rows>, %b: tensor<?x32xf32, #kvc.rows>, %layer: index):
      kvc.yield %b, %a : tensor<?x32xf32, #kvc.rows>, tensor<?x32xf32, #kvc.rows>
    }
    %s = kvc.mul %y#0, %y#1 : tensor<?x32xf32, #kvc.rows>
    %r = kvc.select_rows %s, %batch : (tensor<?x32xf32, #kvc.rows>) -> tensor<?x32xf32, #kvc.outputs>
    // CHECK: kvc.kernel "select_rows" {
    // CHECK: kvc.write {{.*}}, slot<logits, offset = 0, stride = 128, f32>
    kvc.return %r : tensor<?x32xf32, #kvc.outputs>
  }
}

// -----

// Rounded values lie in q8 slots: 64 + 64/32 * 4 + 64/16 * 4 + 64/32 * 4 = 96 bytes, rounded up; scores have room for every position.
// CHECK-LABEL: kvc.model @kinds
kvc.model @kinds attributes {max_context = 100 : i64} {
  kvc.source @seed {seed = 1 : i64}
  kvc.weight @embd : !kvc.weight<1x64x64> = [#kvc.slice<@seed, f32, 0, "embd", [0.0, 1.0]>]
  kvc.cache @kv : !kvc.cache<layers = 1, kv_heads = 1, head_dim = 32, type = f16, page = 16, split = 32>
  kvc.program @prefill(%tokens: tensor<?xi32, #kvc.rows>, %batch: !kvc.batch) -> tensor<?x64xf32, #kvc.outputs> attributes {phase = #kvc.phase<prefill>} {
    // CHECK: kvc.quantize
    // CHECK-NEXT: kvc.write {{.*}}, slot<rows, offset = {{[0-9]+}}, stride = 128, q8> : tensor<?x64xf32, #kvc.rows>
    // CHECK: kvc.read slot<rows, offset = {{[0-9]+}}, stride = 128, q8> : tensor<?x64xf32, #kvc.rows>
    // CHECK: kvc.scores
    // CHECK-NEXT: kvc.write {{.*}}, slot<rows, offset = {{[0-9]+}}, stride = 832, f32> : tensor<?x2x?xf32, #kvc.rows>
    %x = kvc.embed %tokens, @embd : (tensor<?xi32, #kvc.rows>) -> tensor<?x64xf32, #kvc.rows>
    %q = kvc.quantize %x : tensor<?x64xf32, #kvc.rows>
    %l = kvc.linear %q, [@embd] : (tensor<?x64xf32, #kvc.rows>) -> tensor<?x2x32xf32, #kvc.rows>
    %s = kvc.scores %l, @kv, %batch {scale = 0.5 : f64} : (tensor<?x2x32xf32, #kvc.rows>) -> tensor<?x2x?xf32, #kvc.rows>
    %p = kvc.masked_softmax %s, %batch : tensor<?x2x?xf32, #kvc.rows>
    %c = kvc.context %p, @kv, %batch : (tensor<?x2x?xf32, #kvc.rows>) -> tensor<?x2x32xf32, #kvc.rows>
    %o = kvc.linear %c, [@embd] : (tensor<?x2x32xf32, #kvc.rows>) -> tensor<?x64xf32, #kvc.rows>
    %r = kvc.select_rows %o, %batch : (tensor<?x64xf32, #kvc.rows>) -> tensor<?x64xf32, #kvc.outputs>
    kvc.return %r : tensor<?x64xf32, #kvc.outputs>
  }
}

// -----

// For cuda a rounded value takes 2 bytes: 80 are 160, rounded up to 192; a query in the cache's own type, and what a
// prologue hands on. Written over nothing: what else shares a slot with it would have to be 16 bits wide.
// CHECK-LABEL: kvc.model @rounded
kvc.model @rounded attributes {max_context = 100 : i64, target = #kvc.target<arch = "cuda", cpu = "sm_90", features = "+ptx80", vector_width = 128>} {
  kvc.source @seed {seed = 1 : i64}
  kvc.weight @embd : !kvc.weight<1x80x80> = [#kvc.slice<@seed, f32, 0, "embd", [0.0, 1.0]>]
  kvc.weight @n : !kvc.weight<1x80> = [#kvc.slice<@seed, f32, 0, "n", [1.0, 0.1]>]
  kvc.cache @kv : !kvc.cache<layers = 1, kv_heads = 1, head_dim = 40, type = f16, page = 64, split = 64>
  // CHECK: worker_bytes = 192
  kvc.program @prefill(%tokens: tensor<?xi32, #kvc.rows>, %batch: !kvc.batch) -> tensor<?x80xf32, #kvc.outputs> attributes {phase = #kvc.phase<prefill>} {
    // CHECK: kvc.write {{.*}}, slot<rows, offset = 0, stride = 320, f32> : tensor<?x80xf32, #kvc.rows>
    // CHECK: kvc.round {{.*}} to bf16
    // CHECK-NEXT: kvc.write {{.*}}, slot<rows, offset = 320, stride = 192, bf16> : tensor<?x80xf32, #kvc.rows>
    // CHECK: kvc.read slot<rows, offset = 320, stride = 192, bf16> : tensor<?x80xf32, #kvc.rows>
    // CHECK: kvc.round {{.*}} to f16
    // CHECK-NEXT: kvc.write {{.*}}, slot<rows, offset = {{[0-9]+}}, stride = 192, f16> : tensor<?x2x40xf32, #kvc.rows>
    // CHECK: kvc.attention
    // CHECK: kvc.stage {{.*}}, slot<worker, offset = 0, stride = 192, bf16> : tensor<?x2x40xf32, #kvc.outputs>
    %x = kvc.embed %tokens, @embd : (tensor<?xi32, #kvc.rows>) -> tensor<?x80xf32, #kvc.rows>
    %b = kvc.round %x to bf16 : tensor<?x80xf32, #kvc.rows>
    %q = kvc.linear %b, [@embd] : (tensor<?x80xf32, #kvc.rows>) -> tensor<?x2x40xf32, #kvc.rows>
    %h = kvc.round %q to f16 : tensor<?x2x40xf32, #kvc.rows>
    %c = kvc.attention %h, @kv, %batch {scale = 0.5 : f64} : tensor<?x2x40xf32, #kvc.rows>
    %r = kvc.select_rows %c, %batch : (tensor<?x2x40xf32, #kvc.rows>) -> tensor<?x2x40xf32, #kvc.outputs>
    %l = kvc.kernel "head" -> tensor<?x80xf32, #kvc.outputs> {
      %0 = kvc.round %r to bf16 : tensor<?x2x40xf32, #kvc.outputs>
      %1 = kvc.linear %0, [@embd] : (tensor<?x2x40xf32, #kvc.outputs>) -> tensor<?x80xf32, #kvc.outputs>
      kvc.yield %1 : tensor<?x80xf32, #kvc.outputs>
    }
    kvc.return %l : tensor<?x80xf32, #kvc.outputs>
  }
}
