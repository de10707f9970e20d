// A case for every message of kvc-convert-to-cpu and its emitters.
// REQUIRES: kvc-opt
// RUN: kvc-opt %s --kvc-convert-to-cpu --split-input-file --verify-diagnostics
// RUN: not kvc-opt --kvc-convert-to-cpu=dot=sse %S/convert-to-cpu.mlir 2>&1 | FileCheck %s
// CHECK: error: 'kvc.model' op dot is auto, vnni, maddubs or generic, found 'sse'

// expected-error@+1 {{needs one kvc.model, found 0}}
module {
}

// -----

// expected-error@+1 {{needs a cpu target; run kvc-set-target{target=cpu}}}
kvc.model @m attributes {max_context = 512 : i64, weights_bytes = 65536 : i64} {
  kvc.source @f {path = "w.bin", size = 65536 : i64}
  kvc.weight @w : !kvc.weight<1x32x32, #kvc.panels<lanes = 8, unit = 16>> = [#kvc.slice<@f, q4_1, 0>] {offsets = array<i64: 0>}
  kvc.cache @kv : !kvc.cache<layers = 1, kv_heads = 2, head_dim = 16, type = f16, page = 64, split = 256>
  kvc.program @decode(%t: tensor<?xi32, #kvc.rows>, %b: !kvc.batch) attributes {outputs_bytes = 0 : i64, phase = #kvc.phase<decode>, rows_bytes = 512 : i64, worker_bytes = 256 : i64} {
    kvc.return
  }
}

// -----

// expected-error@+1 {{unknown processor 'z80'}}
kvc.model @m attributes {max_context = 512 : i64, target = #kvc.target<arch = "cpu", cpu = "z80", features = "", vector_width = 256>, weights_bytes = 65536 : i64} {
  kvc.source @f {path = "w.bin", size = 65536 : i64}
  kvc.weight @w : !kvc.weight<1x32x32, #kvc.panels<lanes = 8, unit = 16>> = [#kvc.slice<@f, q4_1, 0>] {offsets = array<i64: 0>}
  kvc.cache @kv : !kvc.cache<layers = 1, kv_heads = 2, head_dim = 16, type = f16, page = 64, split = 256>
  kvc.program @decode(%t: tensor<?xi32, #kvc.rows>, %b: !kvc.batch) attributes {outputs_bytes = 0 : i64, phase = #kvc.phase<decode>, rows_bytes = 512 : i64, worker_bytes = 256 : i64} {
    kvc.return
  }
}

// -----

// expected-error@+1 {{has no programs; run kvc-split-phases}}
kvc.model @m attributes {max_context = 512 : i64, target = #kvc.target<arch = "cpu", cpu = "x86-64-v3", features = "", vector_width = 256>, weights_bytes = 65536 : i64} {
  kvc.source @f {path = "w.bin", size = 65536 : i64}
  kvc.weight @w : !kvc.weight<1x32x32, #kvc.panels<lanes = 8, unit = 16>> = [#kvc.slice<@f, q4_1, 0>] {offsets = array<i64: 0>}
  kvc.cache @kv : !kvc.cache<layers = 1, kv_heads = 2, head_dim = 16, type = f16, page = 64, split = 256>
}

// -----

kvc.model @m attributes {max_context = 512 : i64, target = #kvc.target<arch = "cpu", cpu = "x86-64-v3", features = "", vector_width = 256>, weights_bytes = 65536 : i64} {
  kvc.source @f {path = "w.bin", size = 65536 : i64}
  kvc.weight @w : !kvc.weight<1x32x32, #kvc.panels<lanes = 8, unit = 16>> = [#kvc.slice<@f, q4_1, 0>] {offsets = array<i64: 0>}
  kvc.cache @kv : !kvc.cache<layers = 1, kv_heads = 2, head_dim = 16, type = f16, page = 64, split = 256>
  kvc.program @decode(%t: tensor<?xi32, #kvc.rows>, %b: !kvc.batch) attributes {outputs_bytes = 0 : i64, phase = #kvc.phase<decode>, rows_bytes = 512 : i64, worker_bytes = 256 : i64} {
    // expected-error@+1 {{is not part of a schedule; run kvc-schedule}}
    kvc.kernel "k" {
      %x = kvc.read slot<rows, offset = 0, stride = 128, f32> : tensor<?x32xf32, #kvc.rows>
      kvc.write %x, slot<rows, offset = 128, stride = 128, f32> : tensor<?x32xf32, #kvc.rows>
    }
    kvc.return
  }
}

// -----

kvc.model @m attributes {max_context = 512 : i64, target = #kvc.target<arch = "cpu", cpu = "x86-64-v3", features = "", vector_width = 256>, weights_bytes = 65536 : i64} {
  kvc.source @f {path = "w.bin", size = 65536 : i64}
  kvc.weight @w : !kvc.weight<1x32x32, #kvc.panels<lanes = 8, unit = 16>> = [#kvc.slice<@f, q4_1, 0>] {offsets = array<i64: 0>}
  kvc.cache @kv : !kvc.cache<layers = 1, kv_heads = 2, head_dim = 16, type = f16, page = 64, split = 256>
  kvc.program @decode(%t: tensor<?xi32, #kvc.rows>, %b: !kvc.batch) attributes {outputs_bytes = 0 : i64, phase = #kvc.phase<decode>, rows_bytes = 512 : i64, worker_bytes = 256 : i64} {
    // expected-error@+1 {{does nothing}}
    kvc.dispatch "d" 0 {
      %x = kvc.read slot<rows, offset = 0, stride = 128, f32> : tensor<?x32xf32, #kvc.rows>
    }
    kvc.return
  }
}

// -----

kvc.model @m attributes {max_context = 512 : i64, target = #kvc.target<arch = "cpu", cpu = "x86-64-v3", features = "", vector_width = 256>, weights_bytes = 65536 : i64} {
  kvc.source @f {path = "w.bin", size = 65536 : i64}
  kvc.weight @w : !kvc.weight<1x32x32, #kvc.panels<lanes = 8, unit = 16>> = [#kvc.slice<@f, q4_1, 0>] {offsets = array<i64: 0>}
  kvc.cache @kv : !kvc.cache<layers = 1, kv_heads = 2, head_dim = 16, type = f16, page = 64, split = 256>
  kvc.program @decode(%t: tensor<?xi32, #kvc.rows>, %b: !kvc.batch) attributes {outputs_bytes = 0 : i64, phase = #kvc.phase<decode>, rows_bytes = 512 : i64, worker_bytes = 256 : i64} {
    kvc.dispatch "d" 0 {
      %x = kvc.read slot<rows, offset = 0, stride = 128, f32> : tensor<?x32xf32, #kvc.rows>
      %y = kvc.add %x, %x : tensor<?x32xf32, #kvc.rows>
      // expected-error@+1 {{needs its input in a slot}}
      %z = kvc.linear %y, [@w] : (tensor<?x32xf32, #kvc.rows>) -> tensor<?x32xf32, #kvc.rows>
      kvc.write %z, slot<rows, offset = 128, stride = 128, f32> : tensor<?x32xf32, #kvc.rows>
    }
    kvc.return
  }
}

// -----

kvc.model @m attributes {max_context = 512 : i64, target = #kvc.target<arch = "cpu", cpu = "x86-64-v3", features = "", vector_width = 256>, weights_bytes = 65536 : i64} {
  kvc.source @f {path = "w.bin", size = 65536 : i64}
  kvc.weight @w : !kvc.weight<1x32x32, #kvc.panels<lanes = 8, unit = 16>> = [#kvc.slice<@f, q4_1, 0>] {offsets = array<i64: 0>}
  kvc.weight @u : !kvc.weight<1x32x32> = [#kvc.slice<@f, f32, 4096>]
  kvc.cache @kv : !kvc.cache<layers = 1, kv_heads = 2, head_dim = 16, type = f16, page = 64, split = 256>
  kvc.program @decode(%t: tensor<?xi32, #kvc.rows>, %b: !kvc.batch) attributes {outputs_bytes = 0 : i64, phase = #kvc.phase<decode>, rows_bytes = 512 : i64, worker_bytes = 256 : i64} {
    kvc.dispatch "d" 0 {
      %x = kvc.read slot<rows, offset = 0, stride = 128, f32> : tensor<?x32xf32, #kvc.rows>
      // expected-error@+1 {{needs packed weights, but @u has no layout; run kvc-pack-weights}}
      %z = kvc.linear %x, [@u] : (tensor<?x32xf32, #kvc.rows>) -> tensor<?x32xf32, #kvc.rows>
      kvc.write %z, slot<rows, offset = 128, stride = 128, f32> : tensor<?x32xf32, #kvc.rows>
    }
    kvc.return
  }
}

// -----

kvc.model @m attributes {max_context = 512 : i64, target = #kvc.target<arch = "cpu", cpu = "x86-64-v3", features = "", vector_width = 256>, weights_bytes = 65536 : i64} {
  kvc.source @f {path = "w.bin", size = 65536 : i64}
  kvc.weight @w : !kvc.weight<1x32x32, #kvc.panels<lanes = 8, unit = 16>> = [#kvc.slice<@f, q4_1, 0>] {offsets = array<i64: 0>}
  kvc.weight @u : !kvc.weight<1x32x32, #kvc.panels<lanes = 16, unit = 16>> = [#kvc.slice<@f, q4_1, 4096>] {offsets = array<i64: 4096>}
  kvc.cache @kv : !kvc.cache<layers = 1, kv_heads = 2, head_dim = 16, type = f16, page = 64, split = 256>
  kvc.program @decode(%t: tensor<?xi32, #kvc.rows>, %b: !kvc.batch) attributes {outputs_bytes = 0 : i64, phase = #kvc.phase<decode>, rows_bytes = 512 : i64, worker_bytes = 256 : i64} {
    kvc.dispatch "d" 0 {
      %x = kvc.read slot<rows, offset = 0, stride = 128, f32> : tensor<?x32xf32, #kvc.rows>
      // expected-error@+1 {{needs panels of 8 lanes, but @u has 16}}
      %z = kvc.linear %x, [@u] : (tensor<?x32xf32, #kvc.rows>) -> tensor<?x32xf32, #kvc.rows>
      kvc.write %z, slot<rows, offset = 128, stride = 128, f32> : tensor<?x32xf32, #kvc.rows>
    }
    kvc.return
  }
}

// -----

kvc.model @m attributes {max_context = 512 : i64, target = #kvc.target<arch = "cpu", cpu = "x86-64-v3", features = "", vector_width = 256>, weights_bytes = 65536 : i64} {
  kvc.source @f {path = "w.bin", size = 65536 : i64}
  kvc.weight @w : !kvc.weight<1x32x32, #kvc.panels<lanes = 8, unit = 16>> = [#kvc.slice<@f, q4_1, 0>] {offsets = array<i64: 0>}
  kvc.weight @u : !kvc.weight<1x32x32, #kvc.panels<lanes = 8, unit = 16>> = [#kvc.slice<@f, f16, 4096>] {offsets = array<i64: 4096>}
  kvc.cache @kv : !kvc.cache<layers = 1, kv_heads = 2, head_dim = 16, type = f16, page = 64, split = 256>
  kvc.program @decode(%t: tensor<?xi32, #kvc.rows>, %b: !kvc.batch) attributes {outputs_bytes = 0 : i64, phase = #kvc.phase<decode>, rows_bytes = 512 : i64, worker_bytes = 256 : i64} {
    kvc.dispatch "d" 0 {
      %q = kvc.read slot<rows, offset = 384, stride = 64, q8> : tensor<?x32xf32, #kvc.rows>
      // expected-error@+1 {{multiplies quantized activations with @u, which is stored as f16}}
      %z = kvc.linear %q, [@u] : (tensor<?x32xf32, #kvc.rows>) -> tensor<?x32xf32, #kvc.rows>
      kvc.write %z, slot<rows, offset = 128, stride = 128, f32> : tensor<?x32xf32, #kvc.rows>
    }
    kvc.return
  }
}

// -----

kvc.model @m attributes {max_context = 512 : i64, target = #kvc.target<arch = "cpu", cpu = "x86-64-v3", features = "", vector_width = 256>, weights_bytes = 65536 : i64} {
  kvc.source @f {path = "w.bin", size = 65536 : i64}
  kvc.weight @w : !kvc.weight<1x32x32, #kvc.panels<lanes = 8, unit = 16>> = [#kvc.slice<@f, q4_1, 0>] {offsets = array<i64: 0>}
  kvc.cache @kv : !kvc.cache<layers = 1, kv_heads = 2, head_dim = 16, type = f16, page = 64, split = 256>
  kvc.program @decode(%t: tensor<?xi32, #kvc.rows>, %b: !kvc.batch) attributes {outputs_bytes = 0 : i64, phase = #kvc.phase<decode>, rows_bytes = 512 : i64, worker_bytes = 256 : i64} {
    kvc.dispatch "d" 0 {
      %x = kvc.read slot<rows, offset = 0, stride = 128, f32> : tensor<?x32xf32, #kvc.rows>
      %z = kvc.linear %x, [@w] : (tensor<?x32xf32, #kvc.rows>) -> tensor<?x32xf32, #kvc.rows>
      // expected-error@+1 {{stands behind the kernel's linear but does not use its results}}
      %y = kvc.add %x, %x : tensor<?x32xf32, #kvc.rows>
      kvc.write %z, slot<rows, offset = 128, stride = 128, f32> : tensor<?x32xf32, #kvc.rows>
      kvc.write %y, slot<rows, offset = 256, stride = 128, f32> : tensor<?x32xf32, #kvc.rows>
    }
    kvc.return
  }
}

// -----

kvc.model @m attributes {max_context = 512 : i64, target = #kvc.target<arch = "cpu", cpu = "x86-64-v3", features = "", vector_width = 256>, weights_bytes = 65536 : i64} {
  kvc.source @f {path = "w.bin", size = 65536 : i64}
  kvc.weight @w : !kvc.weight<1x32x32, #kvc.panels<lanes = 8, unit = 16>> = [#kvc.slice<@f, q4_1, 0>] {offsets = array<i64: 0>}
  kvc.weight @u : !kvc.weight<1x32x32, #kvc.panels<lanes = 8, unit = 32>> = [#kvc.slice<@f, q4_1, 4096>] {offsets = array<i64: 4096>}
  kvc.cache @kv : !kvc.cache<layers = 1, kv_heads = 2, head_dim = 16, type = f16, page = 64, split = 256>
  kvc.program @decode(%t: tensor<?xi32, #kvc.rows>, %b: !kvc.batch) attributes {outputs_bytes = 0 : i64, phase = #kvc.phase<decode>, rows_bytes = 512 : i64, worker_bytes = 256 : i64} {
    kvc.dispatch "d" 0 {
      %x = kvc.read slot<rows, offset = 0, stride = 128, f32> : tensor<?x32xf32, #kvc.rows>
      // expected-error@+1 {{has segments that meet in the epilogue but differ in units: 32 rows by 16 and 32 by 32}}
      %a, %c = kvc.linear %x, [@w, @u] : (tensor<?x32xf32, #kvc.rows>) -> (tensor<?x32xf32, #kvc.rows>, tensor<?x32xf32, #kvc.rows>)
      %y = kvc.mul %a, %c : tensor<?x32xf32, #kvc.rows>
      kvc.write %y, slot<rows, offset = 128, stride = 128, f32> : tensor<?x32xf32, #kvc.rows>
    }
    kvc.return
  }
}

// -----

kvc.model @m attributes {max_context = 512 : i64, target = #kvc.target<arch = "cpu", cpu = "x86-64-v3", features = "", vector_width = 256>, weights_bytes = 65536 : i64} {
  kvc.source @f {path = "w.bin", size = 65536 : i64}
  kvc.weight @w : !kvc.weight<1x32x32, #kvc.panels<lanes = 8, unit = 16>> = [#kvc.slice<@f, q4_1, 0>] {offsets = array<i64: 0>}
  kvc.cache @kv : !kvc.cache<layers = 1, kv_heads = 2, head_dim = 16, type = f16, page = 64, split = 256>
  kvc.program @decode(%t: tensor<?xi32, #kvc.rows>, %b: !kvc.batch) attributes {outputs_bytes = 0 : i64, phase = #kvc.phase<decode>, rows_bytes = 512 : i64, worker_bytes = 256 : i64} {
    kvc.dispatch "d" 0 {
      %x = kvc.read slot<rows, offset = 0, stride = 128, f32> : tensor<?x2x16xf32, #kvc.rows>
      %y = kvc.add %x, %x : tensor<?x2x16xf32, #kvc.rows>
      // expected-error@+1 {{needs its query in an f32 slot}}
      %z = kvc.attention %y, @kv, %b {scale = 0.25 : f64} : tensor<?x2x16xf32, #kvc.rows>
      kvc.write %z, slot<rows, offset = 128, stride = 128, f32> : tensor<?x2x16xf32, #kvc.rows>
    }
    kvc.return
  }
}

// -----

kvc.model @m attributes {max_context = 512 : i64, target = #kvc.target<arch = "cpu", cpu = "x86-64-v3", features = "", vector_width = 256>, weights_bytes = 65536 : i64} {
  kvc.source @f {path = "w.bin", size = 65536 : i64}
  kvc.weight @w : !kvc.weight<1x32x32, #kvc.panels<lanes = 8, unit = 16>> = [#kvc.slice<@f, q4_1, 0>] {offsets = array<i64: 0>}
  kvc.cache @kv : !kvc.cache<layers = 1, kv_heads = 2, head_dim = 16, type = f16, page = 8, split = 256>
  kvc.program @decode(%t: tensor<?xi32, #kvc.rows>, %b: !kvc.batch) attributes {outputs_bytes = 0 : i64, phase = #kvc.phase<decode>, rows_bytes = 512 : i64, worker_bytes = 256 : i64} {
    kvc.dispatch "d" 0 {
      %x = kvc.read slot<rows, offset = 0, stride = 128, f32> : tensor<?x2x16xf32, #kvc.rows>
      // expected-error@+1 {{needs pages of whole pairs of panels of 8 positions, found pages of 8}}
      %z = kvc.attention %x, @kv, %b {scale = 0.25 : f64} : tensor<?x2x16xf32, #kvc.rows>
      kvc.write %z, slot<rows, offset = 128, stride = 128, f32> : tensor<?x2x16xf32, #kvc.rows>
    }
    kvc.return
  }
}

// -----

kvc.model @m attributes {max_context = 512 : i64, target = #kvc.target<arch = "cpu", cpu = "x86-64-v3", features = "", vector_width = 256>, weights_bytes = 65536 : i64} {
  kvc.source @f {path = "w.bin", size = 65536 : i64}
  kvc.weight @w : !kvc.weight<1x32x32, #kvc.panels<lanes = 8, unit = 16>> = [#kvc.slice<@f, q4_1, 0>] {offsets = array<i64: 0>}
  kvc.cache @kv : !kvc.cache<layers = 1, kv_heads = 2, head_dim = 16, type = f16, page = 64, split = 256>
  kvc.program @decode(%t: tensor<?xi32, #kvc.rows>, %b: !kvc.batch) attributes {outputs_bytes = 0 : i64, phase = #kvc.phase<decode>, rows_bytes = 512 : i64, worker_bytes = 256 : i64} {
    kvc.dispatch "d" 0 {
      %x = kvc.read slot<rows, offset = 0, stride = 128, f32> : tensor<?x2x16xf32, #kvc.rows>
      // expected-error@+1 {{stands before the kernel's attention, which takes no prologue}}
      %y = kvc.add %x, %x : tensor<?x2x16xf32, #kvc.rows>
      %z = kvc.attention %x, @kv, %b {scale = 0.25 : f64} : tensor<?x2x16xf32, #kvc.rows>
      kvc.write %z, slot<rows, offset = 128, stride = 128, f32> : tensor<?x2x16xf32, #kvc.rows>
      kvc.write %y, slot<rows, offset = 256, stride = 128, f32> : tensor<?x2x16xf32, #kvc.rows>
    }
    kvc.return
  }
}

// -----

kvc.model @m attributes {max_context = 512 : i64, target = #kvc.target<arch = "cpu", cpu = "x86-64-v3", features = "", vector_width = 256>, weights_bytes = 65536 : i64} {
  kvc.source @f {path = "w.bin", size = 65536 : i64}
  kvc.weight @w : !kvc.weight<1x32x32, #kvc.panels<lanes = 8, unit = 16>> = [#kvc.slice<@f, q4_1, 0>] {offsets = array<i64: 0>}
  kvc.cache @kv : !kvc.cache<layers = 1, kv_heads = 2, head_dim = 16, type = f16, page = 64, split = 256>
  kvc.program @decode(%t: tensor<?xi32, #kvc.rows>, %b: !kvc.batch) attributes {outputs_bytes = 0 : i64, phase = #kvc.phase<decode>, rows_bytes = 512 : i64, worker_bytes = 256 : i64} {
    kvc.dispatch "d" 0 {
      %x = kvc.read slot<rows, offset = 0, stride = 128, f32> : tensor<?x32xf32, #kvc.rows>
      %y = kvc.add %x, %x : tensor<?x32xf32, #kvc.rows>
      // expected-error@+1 {{selects from a slot: its input must be a kvc.read}}
      %s = kvc.select_rows %y, %b : (tensor<?x32xf32, #kvc.rows>) -> tensor<?x32xf32, #kvc.outputs>
      kvc.write %s, slot<outputs, offset = 0, stride = 128, f32> : tensor<?x32xf32, #kvc.outputs>
    }
    kvc.return
  }
}

// -----

kvc.model @m attributes {max_context = 512 : i64, target = #kvc.target<arch = "cpu", cpu = "x86-64-v3", features = "", vector_width = 256>, weights_bytes = 65536 : i64} {
  kvc.source @f {path = "w.bin", size = 65536 : i64}
  kvc.weight @w : !kvc.weight<1x32x32, #kvc.panels<lanes = 8, unit = 16>> = [#kvc.slice<@f, q4_1, 0>] {offsets = array<i64: 0>}
  kvc.cache @kv : !kvc.cache<layers = 1, kv_heads = 2, head_dim = 16, type = f16, page = 64, split = 256>
  kvc.program @decode(%t: tensor<?xi32, #kvc.rows>, %b: !kvc.batch) attributes {outputs_bytes = 0 : i64, phase = #kvc.phase<decode>, rows_bytes = 512 : i64, worker_bytes = 256 : i64} {
    kvc.dispatch "d" 0 {
      %x = kvc.read slot<rows, offset = 0, stride = 128, f32> : tensor<?x32xf32, #kvc.rows>
      // expected-error@+1 {{is stored in q8 slots only, but kvc.add uses it}}
      %y = kvc.quantize %x : tensor<?x32xf32, #kvc.rows>
      %z = kvc.add %y, %x : tensor<?x32xf32, #kvc.rows>
      kvc.write %z, slot<rows, offset = 128, stride = 128, f32> : tensor<?x32xf32, #kvc.rows>
    }
    kvc.return
  }
}

// -----

kvc.model @m attributes {max_context = 512 : i64, target = #kvc.target<arch = "cpu", cpu = "x86-64-v3", features = "", vector_width = 256>, weights_bytes = 65536 : i64} {
  kvc.source @f {path = "w.bin", size = 65536 : i64}
  kvc.weight @w : !kvc.weight<1x32x32, #kvc.panels<lanes = 8, unit = 16>> = [#kvc.slice<@f, q4_1, 0>] {offsets = array<i64: 0>}
  kvc.cache @kv : !kvc.cache<layers = 1, kv_heads = 2, head_dim = 16, type = f16, page = 64, split = 256>
  kvc.program @decode(%t: tensor<?xi32, #kvc.rows>, %b: !kvc.batch) attributes {outputs_bytes = 0 : i64, phase = #kvc.phase<decode>, rows_bytes = 512 : i64, worker_bytes = 256 : i64} {
    kvc.dispatch "d" 0 {
      %x = kvc.read slot<rows, offset = 0, stride = 128, f32> : tensor<?x2x16xf32, #kvc.rows>
      %z = kvc.attention %x, @kv, %b {scale = 0.25 : f64} : tensor<?x2x16xf32, #kvc.rows>
      // expected-error@+1 {{needs tiles of whole blocks of 32, found 16 columns}}
      %y = kvc.quantize %z : tensor<?x2x16xf32, #kvc.rows>
      kvc.write %y, slot<rows, offset = 384, stride = 64, q8> : tensor<?x2x16xf32, #kvc.rows>
    }
    kvc.return
  }
}

// -----

// What a schedule for a GPU holds.
kvc.model @m attributes {max_context = 512 : i64, target = #kvc.target<arch = "cpu", cpu = "x86-64-v3", features = "", vector_width = 256>, weights_bytes = 65536 : i64} {
  kvc.source @f {path = "w.bin", size = 65536 : i64}
  // expected-error@+1 {{is packed in tiles, which the cpu target does not read}}
  kvc.weight @w : !kvc.weight<1x32x32, #kvc.tiles<unit = 16, pair = 8, splits = 1>> = [#kvc.slice<@f, q4_1, 0>] {offsets = array<i64: 0>}
  kvc.program @decode(%t: tensor<?xi32, #kvc.rows>, %b: !kvc.batch) attributes {outputs_bytes = 0 : i64, phase = #kvc.phase<decode>, rows_bytes = 512 : i64, worker_bytes = 256 : i64} {
    kvc.return
  }
}

// -----

kvc.model @m attributes {max_context = 512 : i64, target = #kvc.target<arch = "cpu", cpu = "x86-64-v3", features = "", vector_width = 256>, weights_bytes = 65536 : i64} {
  kvc.program @decode(%t: tensor<?xi32, #kvc.rows>, %b: !kvc.batch) attributes {outputs_bytes = 0 : i64, phase = #kvc.phase<decode>, rows_bytes = 512 : i64, worker_bytes = 256 : i64} {
    kvc.dispatch "d" 0 {
      // expected-error@+1 {{has a slot of bf16, which the cpu target does not keep}}
      %x = kvc.read slot<rows, offset = 0, stride = 64, bf16> : tensor<?x32xf32, #kvc.rows>
      kvc.write %x, slot<rows, offset = 128, stride = 128, f32> : tensor<?x32xf32, #kvc.rows>
    }
    kvc.return
  }
}
