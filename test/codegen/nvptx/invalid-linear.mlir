// Linears that have no kernel on a GPU are refused by name.
// REQUIRES: kvc-opt
// RUN: kvc-opt --kvc-convert-to-nvvm --split-input-file --verify-diagnostics %s

kvc.model @slot attributes {max_context = 64 : i64, target = #kvc.target<arch = "cuda", cpu = "sm_90", features = "", vector_width = 128>} {
  kvc.source @file {path = "m.gguf", size = 1000000 : i64}
  kvc.weight @w : !kvc.weight<1x64x64, #kvc.tiles<unit = 16, pair = 8, splits = 1>> = [#kvc.slice<@file, f16, 0>] {offsets = array<i64: 0>}
  kvc.program @decode(%tokens: tensor<?xi32, #kvc.rows>, %batch: !kvc.batch) attributes {phase = #kvc.phase<decode>, rows_bytes = 512 : i64} {
    kvc.dispatch "w" 0 {
      %x = kvc.read slot<rows, offset = 0, stride = 256, f32> : tensor<?x64xf32, #kvc.rows>
      // expected-error @+1 {{reads a slot of bf16 on cuda, found f32}}
      %y = kvc.linear %x, [@w] : (tensor<?x64xf32, #kvc.rows>) -> tensor<?x64xf32, #kvc.rows>
      kvc.write %y, slot<rows, offset = 256, stride = 256, f32> : tensor<?x64xf32, #kvc.rows>
    }
    kvc.return
  }
}

// -----

kvc.model @pairs attributes {max_context = 64 : i64, target = #kvc.target<arch = "cuda", cpu = "sm_90", features = "", vector_width = 128>} {
  kvc.source @file {path = "m.gguf", size = 1000000 : i64}
  kvc.weight @w : !kvc.weight<1x64x64, #kvc.tiles<unit = 16, pair = 8, splits = 1>> = [#kvc.slice<@file, f16, 0>] {offsets = array<i64: 0>}
  kvc.program @decode(%tokens: tensor<?xi32, #kvc.rows>, %batch: !kvc.batch) attributes {phase = #kvc.phase<decode>, rows_bytes = 512 : i64} {
    kvc.dispatch "w" 0 {
      %x = kvc.read slot<rows, offset = 0, stride = 128, bf16> : tensor<?x64xf32, #kvc.rows>
      %y = kvc.linear %x, [@w] : (tensor<?x64xf32, #kvc.rows>) -> tensor<?x2x32xf32, #kvc.rows>
      // expected-error @+1 {{rotates rows 1 apart, but the weight's tiles pair rows 8 apart}}
      %r = kvc.rope %y, %batch {layout = #kvc.rope_layout<interleaved>, inv_freq = #kvc.reals<[1.0, 0.5]>} : tensor<?x2x32xf32, #kvc.rows>
      kvc.write %r, slot<rows, offset = 256, stride = 256, f32> : tensor<?x2x32xf32, #kvc.rows>
    }
    kvc.return
  }
}

// -----

kvc.model @panels attributes {max_context = 64 : i64, target = #kvc.target<arch = "cuda", cpu = "sm_90", features = "", vector_width = 128>} {
  kvc.source @file {path = "m.gguf", size = 1000000 : i64}
  kvc.weight @w : !kvc.weight<1x64x64, #kvc.panels<lanes = 16, unit = 32>> = [#kvc.slice<@file, f16, 0>] {offsets = array<i64: 0>}
  kvc.program @decode(%tokens: tensor<?xi32, #kvc.rows>, %batch: !kvc.batch) attributes {phase = #kvc.phase<decode>, rows_bytes = 512 : i64} {
    kvc.dispatch "w" 0 {
      %x = kvc.read slot<rows, offset = 0, stride = 128, bf16> : tensor<?x64xf32, #kvc.rows>
      // expected-error @+1 {{multiplies with @w, which is not packed in tiles}}
      %y = kvc.linear %x, [@w] : (tensor<?x64xf32, #kvc.rows>) -> tensor<?x64xf32, #kvc.rows>
      kvc.write %y, slot<rows, offset = 256, stride = 256, f32> : tensor<?x64xf32, #kvc.rows>
    }
    kvc.return
  }
}
