// A schedule becomes one function a program, one a dispatch, and one for each
// kind of product of rows with a panel.
// REQUIRES: kvc-opt
// RUN: kvc-opt --kvc-convert-to-cpu %s -o %t.mlir
// RUN: FileCheck %s --input-file=%t.mlir
// RUN: FileCheck %s --input-file=%t.mlir --check-prefix=CLASS
// RUN: FileCheck %s --input-file=%t.mlir --check-prefix=EMBED
// RUN: FileCheck %s --input-file=%t.mlir --check-prefix=ATTENTION
// RUN: FileCheck %s --input-file=%t.mlir --check-prefix=ONCE
// RUN: FileCheck %s --input-file=%t.mlir --check-prefix=EXACT
// RUN: kvc-opt --kvc-convert-to-cpu --kvc-cpu-to-llvm %s | FileCheck %s --check-prefix=LLVM

// The model stays without its programs, its tables stand before it.
// CHECK-DAG: llvm.mlir.global private constant @offsets.q(dense<[2688, 4352]>
// CHECK-DAG: llvm.mlir.global private constant @classes.q(dense<[0, 1]>
// CHECK: kvc.model @m
// CHECK-NOT: kvc.program
// CHECK: func.func private @kvc_barrier(!llvm.ptr, i64, i64)

// KvcStepFunction: batch, arenas, team, worker, workers. A barrier gets the id
// of the dispatch before it, and one follows the last.
// CHECK: func.func @kvc_decode(%[[BATCH:.*]]: !llvm.ptr, %[[ARENAS:.*]]: !llvm.ptr, %[[TEAM:.*]]: !llvm.ptr, %[[WORKER:.*]]: i64, %[[WORKERS:.*]]: i64) {
// CHECK: call @decode.0.embed(%[[BATCH]], %[[ARENAS]], %[[WORKER]], %[[WORKERS]], %{{.*}})
// CHECK-NEXT: %[[ID0:.*]] = arith.constant 0 : i64
// CHECK-NEXT: call @kvc_barrier(%[[TEAM]], %[[WORKER]], %[[ID0]])
// CHECK: scf.for %[[LAYER:.*]] =
// CHECK: call @decode.1.q(%[[BATCH]], %[[ARENAS]], %[[WORKER]], %[[WORKERS]], %[[LAYER]])
// CHECK-NEXT: func.call @decode.2.v(
// CHECK-NEXT: %[[ID2:.*]] = arith.constant 2 : i64
// CHECK-NEXT: call @kvc_barrier(%[[TEAM]], %[[WORKER]], %[[ID2]])
// CHECK-NEXT: func.call @decode.3.append(
// CHECK: call @decode.4.attention(
// CHECK: }
// CHECK: call @decode.5.head(
// CHECK-NEXT: %[[ID5:.*]] = arith.constant 5 : i64
// CHECK-NEXT: call @kvc_barrier(%[[TEAM]], %[[WORKER]], %[[ID5]])
// CHECK-NEXT: return

// A worker's share of the rows: worker * rows / workers up to the next one's.
// CHECK: func.func private @decode.0.embed(%[[BATCH:.*]]: !llvm.ptr, %{{.*}}: !llvm.ptr, %[[WORKER:.*]]: i64, %[[WORKERS:.*]]: i64, %{{.*}}: i64) {
// CHECK: %[[ROWS:.*]] = llvm.load %[[BATCH]]
// CHECK: %[[LOW:.*]] = arith.muli %[[WORKER]], %[[ROWS]]
// CHECK: %[[FIRST:.*]] = arith.divui %[[LOW]], %[[WORKERS]]
// CHECK: %[[NEXT:.*]] = arith.addi %[[WORKER]], %
// CHECK: %[[HIGH:.*]] = arith.muli %[[NEXT]], %[[ROWS]]
// CHECK: %[[END:.*]] = arith.divui %[[HIGH]], %[[WORKERS]]
// CHECK: scf.for %{{.*}} = %[[FIRST]] to %[[END]]

// Layers of two formats: the layer's class chooses the product.
// CLASS-LABEL: func.func private @decode.1.q(
// CLASS-SAME: %[[LAYER:[^ ]*]]: i64) {
// CLASS: %[[TABLE:.*]] = llvm.mlir.addressof @classes.q
// CLASS: %[[BYTE:.*]] = arith.muli %[[LAYER]], %
// CLASS: %[[AT:.*]] = llvm.getelementptr %[[TABLE]][%[[BYTE]]]
// CLASS: %[[CLASS:.*]] = llvm.load %[[AT]]
// CLASS: %[[HIT:.*]] = arith.cmpi eq, %[[CLASS]], %
// CLASS: scf.if %[[HIT]] {
// CLASS: func.call @panel.q4_1.q8.k32.{{[0-9]+}}x{{[0-9]+}}(
// CLASS: %[[OTHER:.*]] = arith.cmpi eq, %[[CLASS]], %
// CLASS: scf.if %[[OTHER]] {
// CLASS: func.call @panel.q5_0.q8.k32.{{[0-9]+}}x{{[0-9]+}}(
// Layers of one format do not.
// CLASS-NOT: classes.{{[kv]}}
// CLASS: func.func private @decode.2.v(
// CLASS: func.call @panel.f16.f32.k32.

// The head is the embedding: one matrix, read by rows here and by panels there.
// EMBED-LABEL: func.func private @decode.0.embed(
// EMBED: llvm.load %{{.*}} : !llvm.ptr -> f16
// EMBED: arith.extf
// EMBED: llvm.store %{{.*}} : f32, !llvm.ptr
// EMBED-NOT: func.call
// EMBED: func.func private @decode.1.q(
// EMBED: func.func private @decode.5.head(
// EMBED: func.call @panel.q8_0.f32.k32.
// EMBED-NOT: panel.q8_0.q8

// Splits of 256 positions, pages of 64, panels of 8: scores in scratch for
// four queries, and V row by row.
// ATTENTION-LABEL: func.func private @decode.4.attention(
// ATTENTION-DAG: %[[SPACE:.*]] = arith.constant 4096 : i64
// ATTENTION-DAG: llvm.alloca %[[SPACE]] x i8 {alignment = 64 : i64}
// ATTENTION: %[[SPLIT:.*]] = arith.constant 256 : i64
// ATTENTION: scf.for %{{.*}} step %{{.*}} iter_args
// ATTENTION: llvm.load %{{.*}} : !llvm.ptr -> vector<8xf16>
// ATTENTION: arith.extf %{{.*}} : vector<8xf16> to vector<8xf32>
// ATTENTION: math.fma
// ATTENTION-NOT: func.call
// ATTENTION: func.func private @decode.5.head(

// One function for one product, whoever calls it.
// ONCE-COUNT-1: func.func private @panel.q4_1.q8.k32.1x1(%{{.*}}: !llvm.ptr, %{{.*}}: !llvm.ptr, %{{.*}}: i64, %{{.*}}: !llvm.ptr, %{{.*}}: i64) attributes {passthrough = ["noinline"]}
// ONCE-NOT: func.func private @panel.q4_1.q8.k32.1x1(

// No arithmetic may be reordered.
// EXACT-NOT: fastmath
// EXACT-NOT: vector.reduction <{{.*}}f32

// LLVM: llvm.func @kvc_barrier(!llvm.ptr, i64, i64)
// LLVM: llvm.func @kvc_decode(%{{.*}}: !llvm.ptr, %{{.*}}: !llvm.ptr, %{{.*}}: !llvm.ptr, %{{.*}}: i64, %{{.*}}: i64)
// LLVM-NOT: {{ (scf|func|arith|math|vector|cf)[.][a-z]}}
// LLVM-NOT: builtin.unrealized
kvc.model @m attributes {max_context = 512 : i64, target = #kvc.target<arch = "cpu", cpu = "x86-64-v3", features = "", vector_width = 256>, weights_bytes = 6144 : i64} {
  kvc.source @f {path = "w.bin", size = 65536 : i64}
  kvc.weight @table : !kvc.weight<1x40x32, #kvc.panels<lanes = 8, unit = 32>> = [#kvc.slice<@f, q8_0, 0>] {offsets = array<i64: 0>}
  kvc.weight @q : !kvc.weight<2x32x32, #kvc.panels<lanes = 8, unit = 16>> = [#kvc.slice<@f, q4_1, 12288>, #kvc.slice<@f, q5_0, 16384>] {offsets = array<i64: 2688, 4352>}
  kvc.weight @k : !kvc.weight<2x16x32, #kvc.panels<lanes = 8, unit = 16>> = [#kvc.slice<@f, q4_1, 20480>, #kvc.slice<@f, q4_1, 24576>] {offsets = array<i64: 3456, 5120>}
  kvc.weight @v : !kvc.weight<2x16x32, #kvc.panels<lanes = 8, unit = 16>> = [#kvc.slice<@f, f16, 28672>, #kvc.slice<@f, f16, 32768>] {offsets = array<i64: 3840, 5504>}
  kvc.cache @kv : !kvc.cache<layers = 2, kv_heads = 1, head_dim = 16, type = f16, page = 64, split = 256>
  kvc.program @decode(%arg0: tensor<?xi32, #kvc.rows>, %arg1: !kvc.batch) attributes {outputs_bytes = 0 : i64, phase = #kvc.phase<decode>, rows_bytes = 448 : i64, worker_bytes = 128 : i64} {
    kvc.dispatch "embed" 0 {
      %0 = kvc.embed %arg0, @table : (tensor<?xi32, #kvc.rows>) -> tensor<?x32xf32, #kvc.rows>
      kvc.write %0, slot<rows, offset = 0, stride = 128, f32> : tensor<?x32xf32, #kvc.rows>
    }
    kvc.barrier
    kvc.layers 2 {
    ^bb0(%arg2: index):
      kvc.dispatch "q" 1 {
        %0 = kvc.read slot<rows, offset = 0, stride = 128, f32> : tensor<?x32xf32, #kvc.rows>
        %2 = kvc.quantize %0 : tensor<?x32xf32, #kvc.rows>
        %3 = kvc.stage %2, slot<worker, offset = 0, stride = 64, q8> : tensor<?x32xf32, #kvc.rows>
        %4:2 = kvc.linear %3, [@q, @k][%arg2] : (tensor<?x32xf32, #kvc.rows>) -> (tensor<?x2x16xf32, #kvc.rows>, tensor<?x1x16xf32, #kvc.rows>)
        kvc.write %4#0, slot<rows, offset = 128, stride = 128, f32> : tensor<?x2x16xf32, #kvc.rows>
        kvc.write %4#1, slot<rows, offset = 256, stride = 64, f32> : tensor<?x1x16xf32, #kvc.rows>
      }
      kvc.dispatch "v" 2 {
        %0 = kvc.read slot<rows, offset = 0, stride = 128, f32> : tensor<?x32xf32, #kvc.rows>
        %4 = kvc.linear %0, [@v][%arg2] : (tensor<?x32xf32, #kvc.rows>) -> tensor<?x1x16xf32, #kvc.rows>
        kvc.write %4, slot<rows, offset = 320, stride = 64, f32> : tensor<?x1x16xf32, #kvc.rows>
      }
      kvc.barrier
      kvc.dispatch "append" 3 {
        %0 = kvc.read slot<rows, offset = 256, stride = 64, f32> : tensor<?x1x16xf32, #kvc.rows>
        %1 = kvc.read slot<rows, offset = 320, stride = 64, f32> : tensor<?x1x16xf32, #kvc.rows>
        kvc.cache_append %0, %1, @kv[%arg2], %arg1 : tensor<?x1x16xf32, #kvc.rows>
      }
      kvc.barrier
      kvc.dispatch "attention" 4 {
        %0 = kvc.read slot<rows, offset = 128, stride = 128, f32> : tensor<?x2x16xf32, #kvc.rows>
        %1 = kvc.attention %0, @kv[%arg2], %arg1 {scale = 2.500000e-01 : f64} : tensor<?x2x16xf32, #kvc.rows>
        kvc.write %1, slot<rows, offset = 0, stride = 128, f32> : tensor<?x2x16xf32, #kvc.rows>
      }
      kvc.barrier
    }
    kvc.dispatch "head" 5 {
      %0 = kvc.read slot<rows, offset = 0, stride = 128, f32> : tensor<?x32xf32, #kvc.rows>
      %1 = kvc.select_rows %0, %arg1 : (tensor<?x32xf32, #kvc.rows>) -> tensor<?x32xf32, #kvc.outputs>
      %2 = kvc.stage %1, slot<worker, offset = 0, stride = 128, f32> : tensor<?x32xf32, #kvc.outputs>
      %3 = kvc.linear %2, [@table] : (tensor<?x32xf32, #kvc.outputs>) -> tensor<?x40xf32, #kvc.outputs>
      kvc.write %3, slot<logits, offset = 0, stride = 160, f32> : tensor<?x40xf32, #kvc.outputs>
    }
    kvc.return
  }
}
