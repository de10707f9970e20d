// RUN: kvc-opt %s --kvc-fuse-residual | FileCheck %s

kvc.model @m attributes {max_context = 32 : i64} {
  kvc.source @seed {seed = 1 : i64}
  kvc.weight @embd : !kvc.weight<1x8x8> = [#kvc.slice<@seed, f32, 0, "embd", [0.0, 1.0]>]
  kvc.weight @o : !kvc.weight<1x8x8> = [#kvc.slice<@seed, f32, 0, "o", [0.0, 1.0]>]
  kvc.program @decode(%tokens: tensor<?xi32, #kvc.rows>, %batch: !kvc.batch) -> tensor<?x8xf32, #kvc.outputs> attributes {phase = #kvc.phase<decode>} {
    // CHECK: %[[X:.*]] = kvc.embed
    // CHECK-NEXT: %[[K:.*]] = kvc.kernel "linear" -> tensor<?x8xf32, #kvc.rows> {
    // CHECK-NEXT: %[[L:.*]] = kvc.linear %[[X]], [@o]
    // CHECK-NEXT: %[[S:.*]] = kvc.add %[[X]], %[[L]]
    // CHECK-NEXT: kvc.yield %[[S]]
    // CHECK-NEXT: }
    %x = kvc.embed %tokens, @embd : (tensor<?xi32, #kvc.rows>) -> tensor<?x8xf32, #kvc.rows>
    %o = kvc.linear %x, [@o] : (tensor<?x8xf32, #kvc.rows>) -> tensor<?x8xf32, #kvc.rows>
    %h = kvc.add %x, %o : tensor<?x8xf32, #kvc.rows>
    // A result with a second use keeps its sum outside.
    // CHECK-NEXT: %[[P:.*]] = kvc.linear %[[K]]
    // CHECK-NEXT: %[[A:.*]] = kvc.add %[[K]], %[[P]]
    // CHECK-NEXT: kvc.mul %[[A]], %[[P]]
    %p = kvc.linear %h, [@o] : (tensor<?x8xf32, #kvc.rows>) -> tensor<?x8xf32, #kvc.rows>
    %a = kvc.add %h, %p : tensor<?x8xf32, #kvc.rows>
    %b = kvc.mul %a, %p : tensor<?x8xf32, #kvc.rows>
    // Of two linears the sum joins one: a kernel has one anchor.
    // CHECK-NEXT: %[[C:.*]] = kvc.linear
    // CHECK-NEXT: kvc.kernel "linear"
    // CHECK-NEXT: %[[D:.*]] = kvc.linear
    // CHECK-NEXT: kvc.add %[[C]], %[[D]]
    %c = kvc.linear %b, [@o] : (tensor<?x8xf32, #kvc.rows>) -> tensor<?x8xf32, #kvc.rows>
    %d = kvc.linear %a, [@o] : (tensor<?x8xf32, #kvc.rows>) -> tensor<?x8xf32, #kvc.rows>
    %e = kvc.add %c, %d : tensor<?x8xf32, #kvc.rows>
    %r = kvc.select_rows %e, %batch : (tensor<?x8xf32, #kvc.rows>) -> tensor<?x8xf32, #kvc.outputs>
    kvc.return %r : tensor<?x8xf32, #kvc.outputs>
  }
}
