// RUN: kvc-opt %s --kvc-pack-weights --split-input-file | FileCheck %s

// The order of the arena: what is embedded from, layer after layer, the rest. Mixed formats have sizes of
// their own. 32 rows in panels of 8 lanes: a panel of q8_0 has (2 + 32) * 8 = 272 bytes,
// q4_0 144, q4_1 160, each padded to a multiple of 64; a weight has four.
// CHECK: kvc.model @m attributes {{.*}}weights_bytes = 5248 : i64
kvc.model @m attributes {max_context = 32 : i64, target = #kvc.target<arch = "cpu", cpu = "x86-64-v3", features = "", vector_width = 256>} {
  kvc.source @file {path = "m.gguf", size = 1000000 : i64}
  // CHECK: kvc.weight @norm : !kvc.weight<1x32> = {{.*}} {offsets = array<i64: 5120>}
  kvc.weight @norm : !kvc.weight<1x32> = [#kvc.slice<@file, f32, 0>]
  // CHECK: kvc.weight @q : !kvc.weight<2x32x32, #kvc.panels<lanes = 8, unit = 16>> = {{.*}} {offsets = array<i64: 1280, 3456>}
  kvc.weight @q : !kvc.weight<2x32x32> = [#kvc.slice<@file, q8_0, 0>, #kvc.slice<@file, q4_0, 0>]
  // CHECK: kvc.weight @bias : !kvc.weight<2x32> = {{.*}} {offsets = array<i64: 2560, 4224>}
  kvc.weight @bias : !kvc.weight<2x32> = [#kvc.slice<@file, f16, 0>, #kvc.slice<@file, f16, 0>]
  // CHECK: kvc.weight @w : !kvc.weight<2x32x32, #kvc.panels<lanes = 8, unit = 32>> = {{.*}} {offsets = array<i64: 2688, 4352>}
  kvc.weight @w : !kvc.weight<2x32x32> = [#kvc.slice<@file, q4_1, 0>, #kvc.slice<@file, q4_1, 0>]
  // CHECK: kvc.weight @unused : !kvc.weight<1x32x32> = [{{.*}}]{{$}}
  kvc.weight @unused : !kvc.weight<1x32x32> = [#kvc.slice<@file, q8_0, 0>]
  // A tied embedding has one place.
  // CHECK: kvc.weight @embd : !kvc.weight<1x32x32, #kvc.panels<lanes = 8, unit = 32>> = {{.*}} {offsets = array<i64: 0>}
  kvc.weight @embd : !kvc.weight<1x32x32> = [#kvc.slice<@file, q8_0, 0>]
  kvc.program @decode(%tokens: tensor<?xi32, #kvc.rows>, %batch: !kvc.batch) -> tensor<?x32xf32, #kvc.outputs> attributes {phase = #kvc.phase<decode>} {
    %x = kvc.embed %tokens, @embd : (tensor<?xi32, #kvc.rows>) -> tensor<?x32xf32, #kvc.rows>
    %y = kvc.layers 2 (%x) : (tensor<?x32xf32, #kvc.rows>) -> tensor<?x32xf32, #kvc.rows> {
    ^bb0(%h: tensor<?x32xf32, #kvc.rows>, %layer: index):
      %q = kvc.linear %h, [@q][%layer] bias [@bias] : (tensor<?x32xf32, #kvc.rows>) -> tensor<?x2x16xf32, #kvc.rows>
      %w = kvc.linear %q, [@w][%layer] : (tensor<?x2x16xf32, #kvc.rows>) -> tensor<?x32xf32, #kvc.rows>
      kvc.yield %w : tensor<?x32xf32, #kvc.rows>
    }
    %r = kvc.select_rows %y, %batch : (tensor<?x32xf32, #kvc.rows>) -> tensor<?x32xf32, #kvc.outputs>
    %n = kvc.rms_norm %r, @norm {eps = 1.0e-5 : f64} : tensor<?x32xf32, #kvc.outputs>
    %l = kvc.linear %n, [@embd] : (tensor<?x32xf32, #kvc.outputs>) -> tensor<?x32xf32, #kvc.outputs>
    kvc.return %l : tensor<?x32xf32, #kvc.outputs>
  }
}

// -----

// More than 8,192 rows: larger units; 16 lanes for registers of 512 bits.
// CHECK-LABEL: kvc.model @wide
kvc.model @wide attributes {max_context = 32 : i64, target = #kvc.target<arch = "cpu", cpu = "x86-64-v4", features = "", vector_width = 512>} {
  kvc.source @file {path = "m.gguf", size = 1000000 : i64}
  // CHECK: kvc.weight @embd : !kvc.weight<1x8193x32, #kvc.panels<lanes = 16, unit = 64>>
  kvc.weight @embd : !kvc.weight<1x8193x32> = [#kvc.slice<@file, q8_0, 0>]
  // CHECK: kvc.weight @head : !kvc.weight<1x8192x32, #kvc.panels<lanes = 16, unit = 32>>
  kvc.weight @head : !kvc.weight<1x8192x32> = [#kvc.slice<@file, q8_0, 0>]
  kvc.program @decode(%tokens: tensor<?xi32, #kvc.rows>, %batch: !kvc.batch) -> tensor<?x8192xf32, #kvc.outputs> attributes {phase = #kvc.phase<decode>} {
    %x = kvc.embed %tokens, @embd : (tensor<?xi32, #kvc.rows>) -> tensor<?x32xf32, #kvc.rows>
    %r = kvc.select_rows %x, %batch : (tensor<?x32xf32, #kvc.rows>) -> tensor<?x32xf32, #kvc.outputs>
    %l = kvc.linear %r, [@head] : (tensor<?x32xf32, #kvc.outputs>) -> tensor<?x8192xf32, #kvc.outputs>
    kvc.return %l : tensor<?x8192xf32, #kvc.outputs>
  }
}
