// RUN: kvc-opt %s --kvc-fuse-gate-up --split-input-file | FileCheck %s

// CHECK-LABEL: kvc.model @gated
kvc.model @gated attributes {max_context = 32 : i64} {
  kvc.source @seed {seed = 1 : i64}
  kvc.weight @embd : !kvc.weight<1x7x8> = [#kvc.slice<@seed, f32, 0, "embd", [0.0, 1.0]>]
  kvc.weight @gate : !kvc.weight<1x12x8> = [#kvc.slice<@seed, f32, 0, "gate", [0.0, 1.0]>]
  kvc.weight @up : !kvc.weight<1x12x8> = [#kvc.slice<@seed, f32, 0, "up", [0.0, 1.0]>]
  kvc.program @decode(%tokens: tensor<?xi32, #kvc.rows>, %batch: !kvc.batch) -> tensor<?x12xf32, #kvc.outputs> attributes {phase = #kvc.phase<decode>} {
    // The gate is the segment that the activation reads, on whichever side of the product it stands.
    // CHECK: %[[X:.*]] = kvc.embed
    // CHECK-NEXT: %[[M:.*]] = kvc.kernel "gate_up" -> tensor<?x12xf32, #kvc.rows> {
    // CHECK-NEXT: %[[L:.*]]:2 = kvc.linear %[[X]], [@gate, @up]
    // CHECK-NEXT: %[[A:.*]] = kvc.activation %[[L]]#0
    // CHECK-NEXT: %[[P:.*]] = kvc.mul %[[L]]#1, %[[A]]
    // CHECK-NEXT: kvc.yield %[[P]]
    // CHECK-NEXT: }
    // CHECK-NEXT: kvc.select_rows %[[M]]
    %x = kvc.embed %tokens, @embd : (tensor<?xi32, #kvc.rows>) -> tensor<?x8xf32, #kvc.rows>
    %g = kvc.linear %x, [@gate] : (tensor<?x8xf32, #kvc.rows>) -> tensor<?x12xf32, #kvc.rows>
    %u = kvc.linear %x, [@up] : (tensor<?x8xf32, #kvc.rows>) -> tensor<?x12xf32, #kvc.rows>
    %a = kvc.activation %g {kind = #kvc.activation_kind<silu>} : tensor<?x12xf32, #kvc.rows>
    %m = kvc.mul %u, %a : tensor<?x12xf32, #kvc.rows>
    %r = kvc.select_rows %m, %batch : (tensor<?x12xf32, #kvc.rows>) -> tensor<?x12xf32, #kvc.outputs>
    kvc.return %r : tensor<?x12xf32, #kvc.outputs>
  }
  // The gate is used twice: nothing is fused.
  kvc.program @prefill(%tokens: tensor<?xi32, #kvc.rows>, %batch: !kvc.batch) -> tensor<?x12xf32, #kvc.outputs> attributes {phase = #kvc.phase<prefill>} {
    // CHECK: kvc.program @prefill
    // CHECK-NOT: kvc.kernel
    %x = kvc.embed %tokens, @embd : (tensor<?xi32, #kvc.rows>) -> tensor<?x8xf32, #kvc.rows>
    %g = kvc.linear %x, [@gate] : (tensor<?x8xf32, #kvc.rows>) -> tensor<?x12xf32, #kvc.rows>
    %u = kvc.linear %x, [@up] : (tensor<?x8xf32, #kvc.rows>) -> tensor<?x12xf32, #kvc.rows>
    %a = kvc.activation %g {kind = #kvc.activation_kind<silu>} : tensor<?x12xf32, #kvc.rows>
    %m = kvc.mul %a, %u : tensor<?x12xf32, #kvc.rows>
    %s = kvc.add %m, %g : tensor<?x12xf32, #kvc.rows>
    %r = kvc.select_rows %s, %batch : (tensor<?x12xf32, #kvc.rows>) -> tensor<?x12xf32, #kvc.outputs>
    kvc.return %r : tensor<?x12xf32, #kvc.outputs>
  }
}

// -----

// CHECK-LABEL: kvc.model @ungated
kvc.model @ungated attributes {max_context = 32 : i64} {
  kvc.source @seed {seed = 1 : i64}
  kvc.weight @embd : !kvc.weight<1x7x8> = [#kvc.slice<@seed, f32, 0, "embd", [0.0, 1.0]>]
  kvc.weight @up : !kvc.weight<1x12x8> = [#kvc.slice<@seed, f32, 0, "up", [0.0, 1.0]>]
  kvc.weight @upb : !kvc.weight<1x12> = [#kvc.slice<@seed, f32, 0, "upb", [0.0, 1.0]>]
  kvc.program @decode(%tokens: tensor<?xi32, #kvc.rows>, %batch: !kvc.batch) -> tensor<?x12xf32, #kvc.outputs> attributes {phase = #kvc.phase<decode>} {
    // CHECK: kvc.kernel "up"
    // CHECK-NEXT: %[[L:.*]] = kvc.linear {{.*}} bias [@upb]
    // CHECK-NEXT: %[[A:.*]] = kvc.activation %[[L]]
    // CHECK-NEXT: kvc.yield %[[A]]
    %x = kvc.embed %tokens, @embd : (tensor<?xi32, #kvc.rows>) -> tensor<?x8xf32, #kvc.rows>
    %u = kvc.linear %x, [@up] bias [@upb] : (tensor<?x8xf32, #kvc.rows>) -> tensor<?x12xf32, #kvc.rows>
    %a = kvc.activation %u {kind = #kvc.activation_kind<gelu>} : tensor<?x12xf32, #kvc.rows>
    %r = kvc.select_rows %a, %batch : (tensor<?x12xf32, #kvc.rows>) -> tensor<?x12xf32, #kvc.outputs>
    kvc.return %r : tensor<?x12xf32, #kvc.outputs>
  }
}
