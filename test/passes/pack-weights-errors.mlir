// RUN: not kvc-opt %s --kvc-pack-weights 2>&1 | FileCheck %s

// CHECK: error: 'kvc.linear' op uses @w with heads of 8, another use has 16: a weight has one packed layout
kvc.model @heads attributes {max_context = 32 : i64, target = #kvc.target<arch = "cpu", cpu = "x86-64-v3", features = "", vector_width = 256>} {
  kvc.source @seed {seed = 1 : i64}
  kvc.weight @w : !kvc.weight<1x32x32> = [#kvc.slice<@seed, f32, 0, "w", [0.0, 1.0]>]
  kvc.program @decode(%tokens: tensor<?xi32, #kvc.rows>, %batch: !kvc.batch) -> tensor<?x32xf32, #kvc.outputs> attributes {phase = #kvc.phase<decode>} {
    %x = kvc.embed %tokens, @w : (tensor<?xi32, #kvc.rows>) -> tensor<?x32xf32, #kvc.rows>
    %a = kvc.linear %x, [@w] : (tensor<?x32xf32, #kvc.rows>) -> tensor<?x2x16xf32, #kvc.rows>
    %b = kvc.linear %a, [@w] : (tensor<?x2x16xf32, #kvc.rows>) -> tensor<?x4x8xf32, #kvc.rows>
    %c = kvc.linear %b, [@w] : (tensor<?x4x8xf32, #kvc.rows>) -> tensor<?x32xf32, #kvc.rows>
    %r = kvc.select_rows %c, %batch : (tensor<?x32xf32, #kvc.rows>) -> tensor<?x32xf32, #kvc.outputs>
    kvc.return %r : tensor<?x32xf32, #kvc.outputs>
  }
}
