// A dispatch without an anchor: a block a row, values pulled through the ops
// into registers, sums of norms through shared memory; and the choice of
// tokens.
// REQUIRES: kvc-opt, kvc-translate
// RUN: kvc-opt %s --kvc-convert-to-nvvm | FileCheck %s
// RUN: kvc-translate --kvc-to-ptx --chip=sm_90 %s -o %t.ptx
// 128-bit accesses: two reads a window, one write of four f32 and one of four
// bf16; nothing lies between the ops.
// RUN: %python %S/ptx_counts.py %t.ptx decode_0_add ld.global.v4.b32=2 ld.global=2 st.global.v4.b32=1 st.global.v2.b32=1 st.global=2 ld.shared=0 cvt.rn.bf16x2.f32=2 bar.sync=0 st.local=0
// The row is read for its sum and again for its values, beside the weights.
// RUN: %python %S/ptx_counts.py %t.ptx decode_1_norm ld.global.v4.b32=3 st.global.v2.b32=1 st.global=1 shfl.sync.bfly=5 bar.sync=2 ld.shared.v4=2 st.shared=1 rsqrt.approx=1
// Keys and values go to the cache as 8 bytes of f16, a third store is the query.
// RUN: %python %S/ptx_counts.py %t.ptx decode_2_append st.global.v2.b32=2 st.global=2 cvt.rn.f16x2.f32=4
// The largest logit by a 64-bit maximum, the sampler's bins by 64-bit sums.
// RUN: %python %S/ptx_counts.py %t.ptx choose atom.global.max.u64=1 atom.global.add.u32=1 atom.shared.add.u64=1 fence.acq_rel.gpu=2 st.local=0 griddepcontrol.wait=1

// CHECK: choose = [{{.*}}kernel = @choose, {{.*}}threads = 512 : i64, {{.*}}x = ["fixed", 4], y = ["outputs", 1]
// CHECK-SAME: kernel = @decode_0_add, layer = 0 : i64, shared = 0 : i64, threads = 256 : i64, when = ["rows", 1, 2147483647], x = ["rows", 1]
// CHECK-SAME: kernel = @decode_3_logits, {{.*}}x = ["outputs", 1]
kvc.model @m attributes {activations = "bf16", max_context = 512 : i64, target = #kvc.target<arch = "cuda", cpu = "sm_90", features = "+ptx80", vector_width = 128>} {
  kvc.source @s {seed = 1 : i64}
  kvc.weight @w : !kvc.weight<1x128> = [#kvc.slice<@s, f32, 0, "w", [0.0, 1.0]>] {offsets = array<i64: 0>}
  kvc.cache @kv : !kvc.cache<layers = 1, kv_heads = 2, head_dim = 64, type = f16, page = 64, split = 64>
  kvc.program @decode(%tokens: tensor<?xi32, #kvc.rows>, %batch: !kvc.batch) attributes {phase = #kvc.phase<decode>, rows_bytes = 2048 : i64, outputs_bytes = 131072 : i64} {
    kvc.dispatch "add" 0 {
      %x = kvc.read slot<rows, offset = 0, stride = 512, f32> : tensor<?x128xf32, #kvc.rows>
      %y = kvc.read slot<rows, offset = 512, stride = 512, f32> : tensor<?x128xf32, #kvc.rows>
      %s = kvc.add %x, %y : tensor<?x128xf32, #kvc.rows>
      %m = kvc.mul %s, %y : tensor<?x128xf32, #kvc.rows>
      %r = kvc.round %m to bf16 : tensor<?x128xf32, #kvc.rows>
      kvc.write %s, slot<rows, offset = 1024, stride = 512, f32> : tensor<?x128xf32, #kvc.rows>
      kvc.write %r, slot<rows, offset = 1536, stride = 256, bf16> : tensor<?x128xf32, #kvc.rows>
    }
    kvc.barrier
    kvc.dispatch "norm" 1 {
      %x = kvc.read slot<rows, offset = 1024, stride = 512, f32> : tensor<?x128xf32, #kvc.rows>
      %n = kvc.rms_norm %x, @w {eps = 1.0e-5 : f64} : tensor<?x128xf32, #kvc.rows>
      %r = kvc.round %n to bf16 : tensor<?x128xf32, #kvc.rows>
      kvc.write %r, slot<rows, offset = 1536, stride = 256, bf16> : tensor<?x128xf32, #kvc.rows>
    }
    kvc.dispatch "append" 2 {
      %k = kvc.read slot<rows, offset = 0, stride = 512, f32> : tensor<?x2x64xf32, #kvc.rows>
      %v = kvc.read slot<rows, offset = 512, stride = 512, f32> : tensor<?x2x64xf32, #kvc.rows>
      kvc.cache_append %k, %v, @kv, %batch : tensor<?x2x64xf32, #kvc.rows>
    }
    kvc.barrier
    kvc.dispatch "logits" 3 {
      %x = kvc.read slot<outputs, offset = 0, stride = 131072, f32> : tensor<?x32768xf32, #kvc.outputs>
      kvc.write %x, slot<logits, offset = 0, stride = 131072, f32> : tensor<?x32768xf32, #kvc.outputs>
    }
    kvc.return
  }
}
