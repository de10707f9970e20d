// RUN: kvc-opt %s --kvc-pack-weights --split-input-file | FileCheck %s

// Tiles of 16 rows; a rotated head is a unit whose pairs share a slot: 12 apart, next to each other, or the rotated
// part's half apart. Splits of K follow from K: 80 columns are 3 blocks, 2,048 are 64, 14,336 are 448.
// CHECK-LABEL: kvc.model @layouts
kvc.model @layouts attributes {max_context = 32 : i64, target = #kvc.target<arch = "cuda", cpu = "sm_90", features = "+ptx80", vector_width = 128>} {
  kvc.source @file {path = "m.gguf", size = 1000000000 : i64}
  // CHECK: kvc.weight @embd : !kvc.weight<1x96x80, #kvc.tiles<unit = 16, pair = 8, splits = 1>>
  kvc.weight @embd : !kvc.weight<1x96x80> = [#kvc.slice<@file, f16, 0>]
  // CHECK: kvc.weight @half : !kvc.weight<1x96x80, #kvc.tiles<unit = 24, pair = 12, splits = 1>>
  kvc.weight @half : !kvc.weight<1x96x80> = [#kvc.slice<@file, f16, 0>]
  // CHECK: kvc.weight @partial : !kvc.weight<1x96x80, #kvc.tiles<unit = 24, pair = 8, splits = 1>>
  kvc.weight @partial : !kvc.weight<1x96x80> = [#kvc.slice<@file, f16, 0>]
  // CHECK: kvc.weight @turns : !kvc.weight<1x96x80, #kvc.tiles<unit = 24, pair = 1, splits = 1>>
  kvc.weight @turns : !kvc.weight<1x96x80> = [#kvc.slice<@file, f16, 0>]
  // CHECK: kvc.weight @value : !kvc.weight<1x96x80, #kvc.tiles<unit = 16, pair = 8, splits = 1>>
  kvc.weight @value : !kvc.weight<1x96x80> = [#kvc.slice<@file, f16, 0>]
  // CHECK: kvc.weight @up : !kvc.weight<1x2048x96, #kvc.tiles<unit = 16, pair = 8, splits = 1>>
  kvc.weight @up : !kvc.weight<1x2048x96> = [#kvc.slice<@file, f16, 0>]
  // CHECK: kvc.weight @wide : !kvc.weight<1x14336x2048, #kvc.tiles<unit = 16, pair = 8, splits = 8>>
  kvc.weight @wide : !kvc.weight<1x14336x2048> = [#kvc.slice<@file, q4_k, 0>]
  // CHECK: kvc.weight @down : !kvc.weight<1x96x14336, #kvc.tiles<unit = 16, pair = 8, splits = 16>>
  kvc.weight @down : !kvc.weight<1x96x14336> = [#kvc.slice<@file, q6_k, 0>]
  kvc.program @decode(%tokens: tensor<?xi32, #kvc.rows>, %batch: !kvc.batch) -> tensor<?x96xf32, #kvc.outputs> attributes {phase = #kvc.phase<decode>} {
    %x = kvc.embed %tokens, @embd : (tensor<?xi32, #kvc.rows>) -> tensor<?x80xf32, #kvc.rows>
    %a = kvc.linear %x, [@half] : (tensor<?x80xf32, #kvc.rows>) -> tensor<?x4x24xf32, #kvc.rows>
    %ar = kvc.rope %a, %batch {layout = #kvc.rope_layout<half>, inv_freq = #kvc.reals<[1.0, 0.9, 0.8, 0.7, 0.6, 0.5, 0.4, 0.3, 0.2, 0.1, 0.05, 0.01]>} : tensor<?x4x24xf32, #kvc.rows>
    // Seen through a kernel, and rounded behind the rotation.
    %b = kvc.kernel "q" -> tensor<?x4x24xf32, #kvc.rows> {
      %0 = kvc.linear %x, [@partial] : (tensor<?x80xf32, #kvc.rows>) -> tensor<?x4x24xf32, #kvc.rows>
      kvc.yield %0 : tensor<?x4x24xf32, #kvc.rows>
    }
    %br = kvc.rope %b, %batch {layout = #kvc.rope_layout<half>, inv_freq = #kvc.reals<[1.0, 0.9, 0.8, 0.7, 0.6, 0.5, 0.4, 0.3]>} : tensor<?x4x24xf32, #kvc.rows>
    %c = kvc.linear %x, [@turns] : (tensor<?x80xf32, #kvc.rows>) -> tensor<?x4x24xf32, #kvc.rows>
    %cr = kvc.rope %c, %batch {layout = #kvc.rope_layout<interleaved>, inv_freq = #kvc.reals<[1.0, 0.9]>} : tensor<?x4x24xf32, #kvc.rows>
    %v = kvc.linear %x, [@value] : (tensor<?x80xf32, #kvc.rows>) -> tensor<?x4x24xf32, #kvc.rows>
    %s = kvc.add %ar, %br : tensor<?x4x24xf32, #kvc.rows>
    %t = kvc.add %cr, %v : tensor<?x4x24xf32, #kvc.rows>
    %u = kvc.add %s, %t : tensor<?x4x24xf32, #kvc.rows>
    %w = kvc.linear %u, [@up] : (tensor<?x4x24xf32, #kvc.rows>) -> tensor<?x2048xf32, #kvc.rows>
    %y = kvc.linear %w, [@wide] : (tensor<?x2048xf32, #kvc.rows>) -> tensor<?x14336xf32, #kvc.rows>
    %z = kvc.linear %y, [@down] : (tensor<?x14336xf32, #kvc.rows>) -> tensor<?x96xf32, #kvc.rows>
    %r = kvc.select_rows %z, %batch : (tensor<?x96xf32, #kvc.rows>) -> tensor<?x96xf32, #kvc.outputs>
    kvc.return %r : tensor<?x96xf32, #kvc.outputs>
  }
}

// -----

// Places are multiples of 128. A tile of 16 rows of 32 columns: q8_0 16 * (2 + 32) = 544 bytes, 640 padded; q4_0
// 16 * (2 + 16) = 288, 384 padded. 20 rows are two tiles; a vector of 20 is 80 bytes.
// CHECK-LABEL: kvc.model @places
// CHECK-SAME: weights_bytes = 3584 : i64
kvc.model @places attributes {max_context = 32 : i64, target = #kvc.target<arch = "cuda", cpu = "sm_90", features = "+ptx80", vector_width = 128>} {
  kvc.source @file {path = "m.gguf", size = 1000000 : i64}
  // CHECK: kvc.weight @embd {{.*}}offsets = array<i64: 0>
  kvc.weight @embd : !kvc.weight<1x20x32> = [#kvc.slice<@file, q8_0, 0>]
  // CHECK: kvc.weight @w {{.*}}offsets = array<i64: 1280, 2688>
  kvc.weight @w : !kvc.weight<2x20x32> = [#kvc.slice<@file, q8_0, 0>, #kvc.slice<@file, q4_0, 0>]
  // CHECK: kvc.weight @b {{.*}}offsets = array<i64: 2560, 3456>
  kvc.weight @b : !kvc.weight<2x20> = [#kvc.slice<@file, f32, 0>, #kvc.slice<@file, f32, 0>]
  kvc.program @decode(%tokens: tensor<?xi32, #kvc.rows>, %batch: !kvc.batch) -> tensor<?x20xf32, #kvc.outputs> attributes {phase = #kvc.phase<decode>} {
    %x = kvc.embed %tokens, @embd : (tensor<?xi32, #kvc.rows>) -> tensor<?x32xf32, #kvc.rows>
    %y = kvc.layers 2 (%x) : (tensor<?x32xf32, #kvc.rows>) -> tensor<?x32xf32, #kvc.rows> {
    ^bb0(%h: tensor<?x32xf32, #kvc.rows>, %layer: index):
      %w = kvc.linear %h, [@w][%layer] bias [@b] : (tensor<?x32xf32, #kvc.rows>) -> tensor<?x20xf32, #kvc.rows>
      kvc.yield %h : tensor<?x32xf32, #kvc.rows>
    }
    %r = kvc.select_rows %y, %batch : (tensor<?x32xf32, #kvc.rows>) -> tensor<?x32xf32, #kvc.outputs>
    %l = kvc.linear %r, [@embd] : (tensor<?x32xf32, #kvc.outputs>) -> tensor<?x20xf32, #kvc.outputs>
    kvc.return %l : tensor<?x20xf32, #kvc.outputs>
  }
}
