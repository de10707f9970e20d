// RUN: kvc-opt %s --kvc-split-phases | FileCheck %s
// RUN: not kvc-opt %s --kvc-split-phases --kvc-split-phases 2>&1 | FileCheck %s --check-prefix=TWICE

// TWICE: error: 'kvc.program' op stands where kvc-split-phases needs a kvc.forward: the model is split already
kvc.model @m attributes {max_context = 32 : i64} {
  kvc.source @seed {seed = 1 : i64}
  kvc.weight @embd : !kvc.weight<1x7x8> = [#kvc.slice<@seed, f32, 0, "embd", [0.0, 1.0]>]
  // CHECK-NOT: kvc.forward
  // CHECK: kvc.program @prefill(%[[T:.*]]: tensor<?xi32, #kvc.rows>, %[[B:.*]]: !kvc.batch) -> tensor<?x7xf32, #kvc.outputs> attributes {phase = #kvc.phase<prefill>} {
  // CHECK-NEXT: %[[X:.*]] = kvc.embed %[[T]], @embd
  // CHECK-NEXT: %[[R:.*]] = kvc.select_rows %[[X]], %[[B]]
  // CHECK-NEXT: %[[L:.*]] = kvc.linear %[[R]], [@embd]
  // CHECK-NEXT: kvc.return %[[L]]
  // CHECK: kvc.program @decode({{.*}}) -> tensor<?x7xf32, #kvc.outputs> attributes {phase = #kvc.phase<decode>} {
  // CHECK-NEXT: kvc.embed
  // CHECK-NEXT: kvc.select_rows
  // CHECK-NEXT: kvc.linear
  // CHECK-NEXT: kvc.return
  // CHECK-NOT: kvc.forward
  kvc.forward @forward(%tokens: tensor<?xi32, #kvc.rows>, %batch: !kvc.batch) -> tensor<?x7xf32, #kvc.outputs> {
    %x = kvc.embed %tokens, @embd : (tensor<?xi32, #kvc.rows>) -> tensor<?x8xf32, #kvc.rows>
    %r = kvc.select_rows %x, %batch : (tensor<?x8xf32, #kvc.rows>) -> tensor<?x8xf32, #kvc.outputs>
    %l = kvc.linear %r, [@embd] : (tensor<?x8xf32, #kvc.outputs>) -> tensor<?x7xf32, #kvc.outputs>
    kvc.return %l : tensor<?x7xf32, #kvc.outputs>
  }
}
