// Every op, attribute and type prints and parses to itself, in the custom and in
// the generic form.
// REQUIRES: kvc-opt
// RUN: kvc-opt %s | FileCheck %s
// RUN: kvc-opt %s | kvc-opt | FileCheck %s
// RUN: kvc-opt %s --mlir-print-op-generic | kvc-opt | FileCheck %s

// CHECK-LABEL: kvc.model @l1 attributes {activations = "int8", eos = array<i64: 2, 0>, max_context = 8 : i64
// CHECK-SAME: target = #kvc.target<arch = "cpu", cpu = "x86-64-v3", features = "+avx2,+fma", vector_width = 256>
// CHECK-SAME: tokenizer = @file, vocab_tokens = 5 : i64, weights_bytes = 4096 : i64}
kvc.model @l1 attributes {max_context = 8 : i64, eos = array<i64: 2, 0>, vocab_tokens = 5 : i64, tokenizer = @file,
    activations = "int8", weights_bytes = 4096 : i64,
    target = #kvc.target<arch = "cpu", cpu = "x86-64-v3", features = "+avx2,+fma", vector_width = 256>} {
  // CHECK: kvc.source @file {header_digest = 81985529216486895 : i64, path = "model.gguf", size = 100000 : i64}
  kvc.source @file {path = "model.gguf", size = 100000 : i64, header_digest = 81985529216486895 : i64}
  // CHECK: kvc.source @seed {seed = 1 : i64}
  kvc.source @seed {seed = 1 : i64}
  // CHECK: kvc.weight @embd : !kvc.weight<1x6x64> = [#kvc.slice<@file, q8_0, 64>]
  kvc.weight @embd : !kvc.weight<1x6x64> = [#kvc.slice<@file, q8_0, 64>]
  // CHECK: kvc.weight @pos : !kvc.weight<1x8x64> = [#kvc.slice<@file, f16, 1024, "position_embd.weight">]
  kvc.weight @pos : !kvc.weight<1x8x64> = [#kvc.slice<@file, f16, 1024, "position_embd.weight">]
  // CHECK: kvc.weight @norm : !kvc.weight<2x64> = [#kvc.slice<@seed, f32, 0, "norm", [1.000000e+00, 1.000000e-01]>, #kvc.slice<@seed, f32, 64, "norm", [1.000000e+00, 1.000000e-01]>] {offsets = array<i64: 0, 256>}
  kvc.weight @norm : !kvc.weight<2x64> = [#kvc.slice<@seed, f32, 0, "norm", [1.0, 0.1]>,
                                          #kvc.slice<@seed, f32, 64, "norm", [1.0, 0.1]>] {offsets = array<i64: 0, 256>}
  // The scale needs more than six digits.
  // CHECK: kvc.weight @bias : !kvc.weight<2x64> = [#kvc.slice<@seed, f32, 0, "bias.0", [-2.500000e-01, 0.21650635094610965]>, #kvc.slice
  kvc.weight @bias : !kvc.weight<2x64> = [#kvc.slice<@seed, f32, 0, "bias.0", [-0.25, 0.21650635094610965]>,
                                          #kvc.slice<@seed, f32, 0, "bias.1", [0.0, 0.1]>]
  // CHECK: kvc.weight @q : !kvc.weight<2x64x64, #kvc.panels<lanes = 8, unit = 32>> = [#kvc.slice<@file, q4_1, 128>, #kvc.slice<@file, q4_0, 4096>] {offsets = array<i64: 512, 4096>}
  kvc.weight @q : !kvc.weight<2x64x64, #kvc.panels<lanes = 8, unit = 32>> =
      [#kvc.slice<@file, q4_1, 128>, #kvc.slice<@file, q4_0, 4096>] {offsets = array<i64: 512, 4096>}
  // CHECK: kvc.weight @t : !kvc.weight<2x64x64, #kvc.tiles<unit = 16, pair = 8, splits = 1>> =
  kvc.weight @t : !kvc.weight<2x64x64, #kvc.tiles<unit = 16, pair = 8, splits = 1>> =
      [#kvc.slice<@file, q4_1, 128>, #kvc.slice<@file, q4_0, 4096>] {offsets = array<i64: 512, 4096>}
  kvc.weight @kv2 : !kvc.weight<2x32x64> = [#kvc.slice<@file, q5_0, 128>, #kvc.slice<@file, q5_1, 4096>]
  kvc.weight @ffn : !kvc.weight<2x64x64> = [#kvc.slice<@file, bf16, 128>, #kvc.slice<@file, mxfp4, 4096>]
  // CHECK: kvc.cache @kv : !kvc.cache<layers = 2, kv_heads = 2, head_dim = 16, type = f16, page = 64, split = 256>
  kvc.cache @kv : !kvc.cache<layers = 2, kv_heads = 2, head_dim = 16, type = f16, page = 64, split = 256>

  // CHECK: kvc.forward @forward(%[[TOKENS:.*]]: tensor<?xi32, #kvc.rows>, %[[BATCH:.*]]: !kvc.batch) -> tensor<?x6xf32, #kvc.outputs> {
  kvc.forward @forward(%tokens: tensor<?xi32, #kvc.rows>, %batch: !kvc.batch) -> tensor<?x6xf32, #kvc.outputs> {
    // CHECK: kvc.embed %[[TOKENS]], @embd : (tensor<?xi32, #kvc.rows>) -> tensor<?x64xf32, #kvc.rows>
    %e = kvc.embed %tokens, @embd : (tensor<?xi32, #kvc.rows>) -> tensor<?x64xf32, #kvc.rows>
    // CHECK: kvc.add_positions %{{.*}}, @pos, %[[BATCH]] : tensor<?x64xf32, #kvc.rows>
    %x = kvc.add_positions %e, @pos, %batch : tensor<?x64xf32, #kvc.rows>
    // CHECK: kvc.layers 2(%{{.*}}) : (tensor<?x64xf32, #kvc.rows>) -> tensor<?x64xf32, #kvc.rows> {
    // CHECK: ^bb0(%[[H:.*]]: tensor<?x64xf32, #kvc.rows>, %[[LAYER:.*]]: index):
    %y = kvc.layers 2 (%x) : (tensor<?x64xf32, #kvc.rows>) -> tensor<?x64xf32, #kvc.rows> {
    ^bb0(%h: tensor<?x64xf32, #kvc.rows>, %layer: index):
      // CHECK: kvc.rms_norm %[[H]], @norm[%[[LAYER]]] {eps = 1.000000e-05 : f64} : tensor<?x64xf32, #kvc.rows>
      %n = kvc.rms_norm %h, @norm[%layer] {eps = 1.0e-5 : f64} : tensor<?x64xf32, #kvc.rows>
      // CHECK: kvc.quantize %{{.*}} : tensor<?x64xf32, #kvc.rows>
      %n8 = kvc.quantize %n : tensor<?x64xf32, #kvc.rows>
      // CHECK: %[[QKV:.*]]:3 = kvc.linear %{{.*}}, [@q, @kv2, @kv2][%[[LAYER]]] bias [@bias, unit, unit] : (tensor<?x64xf32, #kvc.rows>) -> (tensor<?x4x16xf32, #kvc.rows>, tensor<?x2x16xf32, #kvc.rows>, tensor<?x2x16xf32, #kvc.rows>)
      %q, %k, %v = kvc.linear %n8, [@q, @kv2, @kv2][%layer] bias [@bias, unit, unit]
          : (tensor<?x64xf32, #kvc.rows>) -> (tensor<?x4x16xf32, #kvc.rows>, tensor<?x2x16xf32, #kvc.rows>, tensor<?x2x16xf32, #kvc.rows>)
      // CHECK: kvc.rope %[[QKV]]#0, %[[BATCH]] {inv_freq = #kvc.reals<[1.000000e+00, 0.31622776601683794, 1.000000e-03]>, layout = #kvc.rope_layout<half>, scale = 1.100000e+00 : f64} : tensor<?x4x16xf32, #kvc.rows>
      %qr = kvc.rope %q, %batch {layout = #kvc.rope_layout<half>, inv_freq = #kvc.reals<[1.0, 0.31622776601683794, 0.001]>,
                                 scale = 1.1 : f64} : tensor<?x4x16xf32, #kvc.rows>
      // CHECK: kvc.rope %[[QKV]]#1, %[[BATCH]] {inv_freq = #kvc.reals<[1.000000e+00]>, layout = #kvc.rope_layout<interleaved>} : tensor<?x2x16xf32, #kvc.rows>
      %kr = kvc.rope %k, %batch {layout = #kvc.rope_layout<interleaved>, inv_freq = #kvc.reals<[1.0]>} : tensor<?x2x16xf32, #kvc.rows>
      // CHECK: kvc.cache_append %{{.*}}, %[[QKV]]#2, @kv[%[[LAYER]]], %[[BATCH]] : tensor<?x2x16xf32, #kvc.rows>
      kvc.cache_append %kr, %v, @kv[%layer], %batch : tensor<?x2x16xf32, #kvc.rows>
      // CHECK: kvc.scores %{{.*}}, @kv[%[[LAYER]]], %[[BATCH]] {scale = 2.500000e-01 : f64} : (tensor<?x4x16xf32, #kvc.rows>) -> tensor<?x4x?xf32, #kvc.rows>
      %s = kvc.scores %qr, @kv[%layer], %batch {scale = 0.25 : f64} : (tensor<?x4x16xf32, #kvc.rows>) -> tensor<?x4x?xf32, #kvc.rows>
      // CHECK: kvc.masked_softmax %{{.*}}, %[[BATCH]] : tensor<?x4x?xf32, #kvc.rows>
      %p = kvc.masked_softmax %s, %batch : tensor<?x4x?xf32, #kvc.rows>
      // CHECK: kvc.context %{{.*}}, @kv[%[[LAYER]]], %[[BATCH]] : (tensor<?x4x?xf32, #kvc.rows>) -> tensor<?x4x16xf32, #kvc.rows>
      %c = kvc.context %p, @kv[%layer], %batch : (tensor<?x4x?xf32, #kvc.rows>) -> tensor<?x4x16xf32, #kvc.rows>
      // CHECK: kvc.linear %{{.*}}, [@ffn][%[[LAYER]]] : (tensor<?x4x16xf32, #kvc.rows>) -> tensor<?x64xf32, #kvc.rows>
      %o = kvc.linear %c, [@ffn][%layer] : (tensor<?x4x16xf32, #kvc.rows>) -> tensor<?x64xf32, #kvc.rows>
      // CHECK: kvc.add %[[H]], %{{.*}} : tensor<?x64xf32, #kvc.rows>
      %a = kvc.add %h, %o : tensor<?x64xf32, #kvc.rows>
      // CHECK: kvc.layer_norm %{{.*}}, @norm[%[[LAYER]]] bias @bias {eps = 1.000000e-05 : f64} : tensor<?x64xf32, #kvc.rows>
      %m = kvc.layer_norm %a, @norm[%layer] bias @bias {eps = 1.0e-5 : f64} : tensor<?x64xf32, #kvc.rows>
      // CHECK: kvc.activation %{{.*}} {kind = #kvc.activation_kind<silu>} : tensor<?x64xf32, #kvc.rows>
      %g0 = kvc.activation %m {kind = #kvc.activation_kind<silu>} : tensor<?x64xf32, #kvc.rows>
      // CHECK: kvc.activation %{{.*}} {kind = #kvc.activation_kind<gelu>} : tensor<?x64xf32, #kvc.rows>
      %g1 = kvc.activation %g0 {kind = #kvc.activation_kind<gelu>} : tensor<?x64xf32, #kvc.rows>
      // CHECK: kvc.activation %{{.*}} {kind = #kvc.activation_kind<gelu_tanh>} : tensor<?x64xf32, #kvc.rows>
      %g2 = kvc.activation %g1 {kind = #kvc.activation_kind<gelu_tanh>} : tensor<?x64xf32, #kvc.rows>
      // CHECK: kvc.mul %{{.*}}, %{{.*}} : tensor<?x64xf32, #kvc.rows>
      %z = kvc.mul %g2, %m : tensor<?x64xf32, #kvc.rows>
      // CHECK: kvc.yield %{{.*}} : tensor<?x64xf32, #kvc.rows>
      kvc.yield %z : tensor<?x64xf32, #kvc.rows>
    }
    // CHECK: kvc.select_rows %{{.*}}, %[[BATCH]] : (tensor<?x64xf32, #kvc.rows>) -> tensor<?x64xf32, #kvc.outputs>
    %r = kvc.select_rows %y, %batch : (tensor<?x64xf32, #kvc.rows>) -> tensor<?x64xf32, #kvc.outputs>
    // CHECK: kvc.linear %{{.*}}, [@embd] : (tensor<?x64xf32, #kvc.outputs>) -> tensor<?x6xf32, #kvc.outputs>
    %l = kvc.linear %r, [@embd] : (tensor<?x64xf32, #kvc.outputs>) -> tensor<?x6xf32, #kvc.outputs>
    // CHECK: kvc.return %{{.*}} : tensor<?x6xf32, #kvc.outputs>
    kvc.return %l : tensor<?x6xf32, #kvc.outputs>
  }
}

// CHECK-LABEL: kvc.model @l3 attributes {max_context = 8 : i64}
kvc.model @l3 attributes {max_context = 8 : i64} {
  kvc.source @seed {seed = 7 : i64}
  kvc.weight @embd : !kvc.weight<1x6x64> = [#kvc.slice<@seed, f32, 0, "embd", [0.0, 1.0]>]
  kvc.cache @kv : !kvc.cache<layers = 1, kv_heads = 4, head_dim = 16, type = bf16, page = 64, split = 64>

  // CHECK: kvc.program @prefill(%{{.*}}: tensor<?xi32, #kvc.rows>, %[[BATCH:.*]]: !kvc.batch) -> tensor<?x6xf32, #kvc.outputs> attributes {phase = #kvc.phase<prefill>}
  kvc.program @prefill(%tokens: tensor<?xi32, #kvc.rows>, %batch: !kvc.batch) -> tensor<?x6xf32, #kvc.outputs>
      attributes {phase = #kvc.phase<prefill>} {
    // CHECK: kvc.kernel "embed" -> tensor<?x64xf32, #kvc.rows> {
    %x = kvc.kernel "embed" -> tensor<?x64xf32, #kvc.rows> {
      %e = kvc.embed %tokens, @embd : (tensor<?xi32, #kvc.rows>) -> tensor<?x64xf32, #kvc.rows>
      // CHECK: kvc.yield
      kvc.yield %e : tensor<?x64xf32, #kvc.rows>
    }
    // CHECK: kvc.kernel "head" -> tensor<?x6xf32, #kvc.outputs> {
    %l = kvc.kernel "head" -> tensor<?x6xf32, #kvc.outputs> {
      %r = kvc.select_rows %x, %batch : (tensor<?x64xf32, #kvc.rows>) -> tensor<?x64xf32, #kvc.outputs>
      %o = kvc.linear %r, [@embd] : (tensor<?x64xf32, #kvc.outputs>) -> tensor<?x6xf32, #kvc.outputs>
      kvc.yield %o : tensor<?x6xf32, #kvc.outputs>
    }
    kvc.return %l : tensor<?x6xf32, #kvc.outputs>
  }

  // CHECK: kvc.program @decode(%{{.*}}: tensor<?xi32, #kvc.rows>, %[[BATCH:.*]]: !kvc.batch) attributes {outputs_bytes = 256 : i64, phase = #kvc.phase<decode>, rows_bytes = 512 : i64, worker_bytes = 128 : i64}
  kvc.program @decode(%tokens: tensor<?xi32, #kvc.rows>, %batch: !kvc.batch)
      attributes {phase = #kvc.phase<decode>, rows_bytes = 512 : i64, outputs_bytes = 256 : i64, worker_bytes = 128 : i64} {
    // CHECK: kvc.dispatch "embed" 0 {
    kvc.dispatch "embed" 0 {
      %e = kvc.embed %tokens, @embd : (tensor<?xi32, #kvc.rows>) -> tensor<?x64xf32, #kvc.rows>
      // CHECK: kvc.write %{{.*}}, slot<rows, offset = 0, stride = 256, f32> : tensor<?x64xf32, #kvc.rows>
      kvc.write %e, slot<rows, offset = 0, stride = 256, f32> : tensor<?x64xf32, #kvc.rows>
    // CHECK-NEXT: }
    }
    // CHECK-NEXT: kvc.barrier
    kvc.barrier
    // CHECK: kvc.layers 1 {
    // CHECK: ^bb0(%{{.*}}: index):
    kvc.layers 1 {
    ^bb0(%layer: index):
      // CHECK: kvc.dispatch "attention" 1 {
      kvc.dispatch "attention" 1 {
        // CHECK: kvc.read slot<rows, offset = 0, stride = 256, f32> : tensor<?x4x16xf32, #kvc.rows>
        %q = kvc.read slot<rows, offset = 0, stride = 256, f32> : tensor<?x4x16xf32, #kvc.rows>
        // CHECK: kvc.attention %{{.*}}, @kv[%{{.*}}], %[[BATCH]] {scale = 2.500000e-01 : f64, weights = f16} : tensor<?x4x16xf32, #kvc.rows>
        %c = kvc.attention %q, @kv[%layer], %batch {scale = 0.25 : f64, weights = f16} : tensor<?x4x16xf32, #kvc.rows>
        // CHECK: kvc.round %{{.*}} to f16 : tensor<?x4x16xf32, #kvc.rows>
        %c16 = kvc.round %c to f16 : tensor<?x4x16xf32, #kvc.rows>
        // CHECK: kvc.write %{{.*}}, slot<rows, offset = 384, stride = 128, f16> : tensor<?x4x16xf32, #kvc.rows>
        kvc.write %c16, slot<rows, offset = 384, stride = 128, f16> : tensor<?x4x16xf32, #kvc.rows>
        %c8 = kvc.quantize %c16 : tensor<?x4x16xf32, #kvc.rows>
        // CHECK: kvc.write %{{.*}}, slot<rows, offset = 256, stride = 128, q8> : tensor<?x4x16xf32, #kvc.rows>
        kvc.write %c8, slot<rows, offset = 256, stride = 128, q8> : tensor<?x4x16xf32, #kvc.rows>
      }
      kvc.barrier
    }
    kvc.dispatch "head" 2 {
      %x = kvc.read slot<rows, offset = 256, stride = 128, q8> : tensor<?x64xf32, #kvc.rows>
      %r = kvc.select_rows %x, %batch : (tensor<?x64xf32, #kvc.rows>) -> tensor<?x64xf32, #kvc.outputs>
      %r8 = kvc.quantize %r : tensor<?x64xf32, #kvc.outputs>
      // CHECK: kvc.stage %{{.*}}, slot<worker, offset = 0, stride = 128, q8> : tensor<?x64xf32, #kvc.outputs>
      %s = kvc.stage %r8, slot<worker, offset = 0, stride = 128, q8> : tensor<?x64xf32, #kvc.outputs>
      %l = kvc.linear %s, [@embd] : (tensor<?x64xf32, #kvc.outputs>) -> tensor<?x6xf32, #kvc.outputs>
      // CHECK: kvc.write %{{.*}}, slot<logits, offset = 0, stride = 24, f32> : tensor<?x6xf32, #kvc.outputs>
      kvc.write %l, slot<logits, offset = 0, stride = 24, f32> : tensor<?x6xf32, #kvc.outputs>
    }
    kvc.dispatch "staged" 3 {
      // CHECK: kvc.read slot<rows, offset = 384, stride = 128, f16> : tensor<?x64xf32, #kvc.rows>
      %x = kvc.read slot<rows, offset = 384, stride = 128, f16> : tensor<?x64xf32, #kvc.rows>
      // CHECK: kvc.round %{{.*}} to bf16 : tensor<?x64xf32, #kvc.rows>
      %r = kvc.round %x to bf16 : tensor<?x64xf32, #kvc.rows>
      // CHECK: kvc.soft_cap %{{.*}} {cap = 3.000000e+01 : f64} : tensor<?x64xf32, #kvc.rows>
      %sc = kvc.soft_cap %x {cap = 30.0 : f64} : tensor<?x64xf32, #kvc.rows>
      // CHECK: kvc.stage %{{.*}}, slot<worker, offset = 0, stride = 128, bf16> : tensor<?x64xf32, #kvc.rows>
      %s = kvc.stage %r, slot<worker, offset = 0, stride = 128, bf16> : tensor<?x64xf32, #kvc.rows>
      %l = kvc.linear %s, [@embd] : (tensor<?x64xf32, #kvc.rows>) -> tensor<?x6xf32, #kvc.rows>
    }
    // CHECK: kvc.return
    kvc.return
  }
}
