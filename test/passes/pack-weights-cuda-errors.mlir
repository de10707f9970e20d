// RUN: not kvc-opt %s --kvc-pack-weights 2>&1 | FileCheck %s

// CHECK: error: 'kvc.linear' op has a result of @w that is rotated as 4 pairs (half), another use as 2 (interleaved): a weight has one packed layout
kvc.model @rotations attributes {max_context = 32 : i64, target = #kvc.target<arch = "cuda", cpu = "sm_90", features = "+ptx80", vector_width = 128>} {
  kvc.source @seed {seed = 1 : i64}
  kvc.weight @w : !kvc.weight<1x32x32> = [#kvc.slice<@seed, f32, 0, "w", [0.0, 1.0]>]
  kvc.program @decode(%tokens: tensor<?xi32, #kvc.rows>, %batch: !kvc.batch) -> tensor<?x32xf32, #kvc.outputs> attributes {phase = #kvc.phase<decode>} {
    %x = kvc.embed %tokens, @w : (tensor<?xi32, #kvc.rows>) -> tensor<?x32xf32, #kvc.rows>
    %a = kvc.linear %x, [@w] : (tensor<?x32xf32, #kvc.rows>) -> tensor<?x2x16xf32, #kvc.rows>
    %ar = kvc.rope %a, %batch {layout = #kvc.rope_layout<interleaved>, inv_freq = #kvc.reals<[1.0, 0.5]>} : tensor<?x2x16xf32, #kvc.rows>
    %b = kvc.linear %ar, [@w] : (tensor<?x2x16xf32, #kvc.rows>) -> tensor<?x2x16xf32, #kvc.rows>
    %br = kvc.rope %b, %batch {layout = #kvc.rope_layout<half>, inv_freq = #kvc.reals<[1.0, 0.5, 0.2, 0.1]>} : tensor<?x2x16xf32, #kvc.rows>
    %c = kvc.linear %br, [@w] : (tensor<?x2x16xf32, #kvc.rows>) -> tensor<?x32xf32, #kvc.rows>
    %r = kvc.select_rows %c, %batch : (tensor<?x32xf32, #kvc.rows>) -> tensor<?x32xf32, #kvc.outputs>
    kvc.return %r : tensor<?x32xf32, #kvc.outputs>
  }
}
