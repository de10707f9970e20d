// RUN: not kvc-opt %s --kvc-split-phases --split-input-file 2>&1 | FileCheck %s

// CHECK: error: 'kvc.model' op has 0 kvc.forward functions, kvc-split-phases needs one
kvc.model @empty attributes {max_context = 32 : i64} {
  kvc.source @seed {seed = 1 : i64}
}

// -----

// CHECK: error: 'kvc.forward' op becomes @prefill, a name that is taken
kvc.model @taken attributes {max_context = 32 : i64} {
  kvc.source @seed {seed = 1 : i64}
  kvc.weight @prefill : !kvc.weight<1x7x8> = [#kvc.slice<@seed, f32, 0, "embd", [0.0, 1.0]>]
  kvc.forward @forward(%tokens: tensor<?xi32, #kvc.rows>, %batch: !kvc.batch) -> tensor<?x8xf32, #kvc.outputs> {
    %x = kvc.embed %tokens, @prefill : (tensor<?xi32, #kvc.rows>) -> tensor<?x8xf32, #kvc.rows>
    %r = kvc.select_rows %x, %batch : (tensor<?x8xf32, #kvc.rows>) -> tensor<?x8xf32, #kvc.outputs>
    kvc.return %r : tensor<?x8xf32, #kvc.outputs>
  }
}
