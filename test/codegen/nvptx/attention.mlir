// Attention on a GPU: scores live in registers alone, both phases do the same
// arithmetic, decode's partial results meet in the kernel.
// REQUIRES: kvc-opt, kvc-translate
// RUN: kvc-opt %s --kvc-convert-to-nvvm -o %t.mlir
// RUN: FileCheck %s --input-file=%t.mlir
// RUN: FileCheck %s --input-file=%t.mlir --check-prefix=DECODE
// RUN: FileCheck %s --input-file=%t.mlir --check-prefix=PREFILL
// RUN: kvc-translate --kvc-to-ptx --chip=sm_90 %s -o %t.ptx
// RUN: kvc-translate --kvc-to-ptx --chip=sm_80 %s -o %t.80.ptx

// A tile is 64 positions: Q K^T is 4 k16 steps by 8 n8 tiles, P V as many; K and
// V come by 16-byte copies, 32 rows of 128 bytes a copy of all lanes. Decode
// stores a tile's (m, l) and O (9 vectors), the counter's zero, and the result.
// A weight a thread, of one row of the two: 16 exponentials; merging takes 2, written out 8 times and
// once.
// RUN: %python %S/ptx_counts.py %t.ptx decode_0_attention mma.sync.aligned.m16n8k16.row.col.f32.f16=64 mma=64 ldmatrix.sync.aligned.m8n8.x4.shared=16 ldmatrix.sync.aligned.m8n8.x4.trans.shared=16 cp.async.cg.shared.global=32 ex2.approx.ftz.f32=34 st.global=11 st.shared=1 atom.global.add=1 fence.acq_rel.gpu=2 bar.sync=2 st.local=0 ld.local=0 griddepcontrol.wait=1 griddepcontrol.launch_dependents=1
// RUN: %python %S/ptx_counts.py %t.80.ptx decode_0_attention mma=64 cp.async.cg.shared.global=32 st.global=11 griddepcontrol=0

// Prefill writes nothing but the result, pairs of bf16 of two rows: no scores
// and no partial sums lie in memory. One barrier a tile, copies of the first
// tile and of the next one.
// RUN: %python %S/ptx_counts.py %t.ptx prefill_0_attention mma=64 ldmatrix.sync.aligned.m8n8.x4.shared=16 ldmatrix.sync.aligned.m8n8.x4.trans.shared=16 cp.async.cg.shared.global=8 ex2.approx.ftz.f32=36 st.global.b32=16 st.global=16 st.shared=0 atom=0 bar.sync=1 cp.async.wait_group=1 st.local=0 ld.local=0 griddepcontrol.wait=1
// RUN: %python %S/ptx_counts.py %t.80.ptx prefill_0_attention mma=64 st.global=16 griddepcontrol=0

// A row's counters: four of the choice, one a kv head. A block of decode has
// four tiles; partial results are O and (m, l) of 8 heads.
// CHECK: counters_per_row = 6 : i64
// CHECK-SAME: decode = [{blocks_per_sm = 0 : i64, id = 0 : i64, kernel = @decode_0_attention, layer = 0 : i64, shared = 73744 : i64, threads = 128 : i64, when = ["rows", 1, 2147483647], x = ["positions", 256], y = ["fixed", 2], z = ["sequences", 1]},
// CHECK-SAME: layer = 1 : i64
// CHECK-SAME: partial_bytes = 2176 : i64
// CHECK-SAME: prefill = [{{.*}}kernel = @prefill_0_attention, layer = 0 : i64, shared = 36864 : i64, threads = 256 : i64, when = ["rows", 1, 2147483647], x = ["tiles", 1], y = ["fixed", 2], z = ["fixed", 1]}

// Nothing is read before the kernels before have ended. The block that arrives
// last, by a counter between two fences, merges.
// DECODE: llvm.func @decode_0_attention({{.*}}) attributes {nvvm.kernel, nvvm.reqntid = array<i32: 128, 1, 1>}
// DECODE-NOT: llvm.load
// DECODE: nvvm.griddepcontrol wait
// DECODE: nvvm.cp.async.shared.global
// DECODE: nvvm.mma.sync
// DECODE-NOT: scf.for
// DECODE: nvvm.barrier
// DECODE: llvm.fence syncscope("device") acq_rel
// DECODE: llvm.atomicrmw add %{{.*}} syncscope("device") monotonic
// DECODE: llvm.fence syncscope("device") acq_rel
// DECODE: nvvm.barrier
// DECODE: scf.if
// DECODE: scf.for
// DECODE-NOT: nvvm.mma.sync
// DECODE: llvm.return

// PREFILL: llvm.func @prefill_0_attention
// PREFILL-NOT: llvm.load
// PREFILL: nvvm.griddepcontrol wait
// PREFILL-NOT: llvm.store
// PREFILL: scf.for
// PREFILL: nvvm.cp.async.wait.group 0
// PREFILL: nvvm.barrier
// PREFILL-NOT: llvm.store
// PREFILL: nvvm.mma.sync
// PREFILL-NOT: llvm.store
// PREFILL: scf.yield
// PREFILL-NOT: llvm.atomicrmw
// PREFILL: llvm.return

kvc.model @m attributes {activations = "bf16", max_context = 512 : i64, target = #kvc.target<arch = "cuda", cpu = "sm_90", features = "+ptx80", vector_width = 128>} {
  kvc.cache @kv : !kvc.cache<layers = 2, kv_heads = 2, head_dim = 64, type = f16, page = 64, split = 64>
  kvc.program @prefill(%tokens: tensor<?xi32, #kvc.rows>, %batch: !kvc.batch) attributes {phase = #kvc.phase<prefill>, rows_bytes = 2048 : i64, outputs_bytes = 0 : i64, worker_bytes = 0 : i64} {
    kvc.layers 2 {
    ^bb0(%layer: index):
      kvc.dispatch "attention" 0 {
        %q = kvc.read slot<rows, offset = 0, stride = 1024, f16> : tensor<?x8x64xf32, #kvc.rows>
        %c = kvc.attention %q, @kv[%layer], %batch {scale = 0.125 : f64} : tensor<?x8x64xf32, #kvc.rows>
        %r = kvc.round %c to bf16 : tensor<?x8x64xf32, #kvc.rows>
        kvc.write %r, slot<rows, offset = 1024, stride = 1024, bf16> : tensor<?x8x64xf32, #kvc.rows>
      }
    }
    kvc.return
  }
  kvc.program @decode(%tokens: tensor<?xi32, #kvc.rows>, %batch: !kvc.batch) attributes {phase = #kvc.phase<decode>, rows_bytes = 2048 : i64, outputs_bytes = 0 : i64, worker_bytes = 0 : i64} {
    kvc.layers 2 {
    ^bb0(%layer: index):
      kvc.dispatch "attention" 0 {
        %q = kvc.read slot<rows, offset = 0, stride = 1024, f16> : tensor<?x8x64xf32, #kvc.rows>
        %c = kvc.attention %q, @kv[%layer], %batch {scale = 0.125 : f64} : tensor<?x8x64xf32, #kvc.rows>
        %r = kvc.round %c to bf16 : tensor<?x8x64xf32, #kvc.rows>
        kvc.write %r, slot<rows, offset = 1024, stride = 1024, bf16> : tensor<?x8x64xf32, #kvc.rows>
      }
    }
    kvc.return
  }
}
