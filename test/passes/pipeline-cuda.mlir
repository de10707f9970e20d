// The schedule for cuda of a Llama-like model: five decode kernels a layer, all rounding points in the kernels that
// make the values, slots of 16 bits, the cache written by the kernel of the projections.
// RUN: kvc-opt %S/Inputs/gqa.mlir --kvc-pipeline="target=cuda" -o %t.l4.mlir
// RUN: FileCheck %s --input-file=%t.l4.mlir
// RUN: FileCheck %s --input-file=%t.l4.mlir --check-prefix=ONCE
// RUN: kvc-opt %t.l4.mlir | cmp - %t.l4.mlir
// RUN: kvc-opt %S/Inputs/gqa.mlir --kvc-pipeline="target=cuda target-cpu=sm_80 kv-type=bf16" | FileCheck %s --check-prefix=SM80
// RUN: kvc-opt %S/Inputs/smollm2.mlir --kvc-pipeline="target=cuda" | FileCheck %s --check-prefix=QUANTISED
// RUN: kvc-opt %S/Inputs/gqa.mlir --kvc-pipeline="target=cuda fuse=false" | FileCheck %s --check-prefix=UNFUSED
// What it computes is the model's.
// RUN: kvc-translate --interpret %t.l4.mlir --against %S/Inputs/gqa.mlir --ids 1,2,3 --ids 4 --decode-ids 5,6 --decode-ids 7 --all-logits | FileCheck %s --check-prefix=SAME
// With its roundings it computes something else, near it.
// RUN: not kvc-translate --interpret %t.l4.mlir --against %S/Inputs/gqa.mlir --ids 1,2,3 --rounded 2>&1 | FileCheck %s --check-prefix=ROUNDED

// CHECK: kvc.cache @kv : !kvc.cache<layers = 3, kv_heads = 2, head_dim = 24, type = f16, page = 64, split = 64>
// CHECK: kvc.program @prefill
// CHECK: kvc.dispatch "norm" 1
// CHECK: %[[PN:.*]] = kvc.rms_norm
// CHECK-NEXT: %[[PR:.*]] = kvc.round %[[PN]] to bf16
// CHECK-NEXT: kvc.write %[[PR]], slot<rows, offset = {{[0-9]+}}, stride = 192, bf16>
// CHECK: kvc.dispatch "qkv" 2
// CHECK: kvc.program @decode
// CHECK: kvc.layers 3
// CHECK: kvc.dispatch "qkv" 1 {
// CHECK-NEXT: %[[H:.*]] = kvc.read slot<rows, offset = 0, stride = 320, f32>
// CHECK-NEXT: %[[N:.*]] = kvc.rms_norm %[[H]]
// CHECK-NEXT: %[[R:.*]] = kvc.round %[[N]] to bf16
// CHECK-NEXT: %[[S:.*]] = kvc.stage %[[R]], slot<worker, offset = 0, stride = 192, bf16>
// CHECK-NEXT: %[[QKV:.*]]:3 = kvc.linear %[[S]], [@attn_q, @attn_k, @attn_v]
// CHECK-NEXT: %[[Q:.*]] = kvc.rope %[[QKV]]#0
// CHECK-NEXT: %[[K:.*]] = kvc.rope %[[QKV]]#1
// CHECK-NEXT: kvc.cache_append %[[K]], %[[QKV]]#2
// CHECK-NEXT: %[[Q16:.*]] = kvc.round %[[Q]] to f16
// CHECK-NEXT: kvc.write %[[Q16]], slot<rows, offset = 320, stride = 320, f16>
// CHECK-NEXT: }
// CHECK-NEXT: kvc.barrier
// CHECK-NEXT: kvc.dispatch "attention" 2 {
// CHECK-NEXT: kvc.read slot<rows, offset = 320, stride = 320, f16>
// CHECK-NEXT: %[[A:.*]] = kvc.attention {{.*}}weights = f16}
// CHECK-NEXT: %[[A16:.*]] = kvc.round %[[A]] to bf16
// CHECK-NEXT: kvc.write %[[A16]], slot<rows, offset = 640, stride = 320, bf16>
// CHECK-NEXT: }
// CHECK-NEXT: kvc.barrier
// CHECK-NEXT: kvc.dispatch "out" 3 {
// CHECK: kvc.linear
// CHECK-NEXT: kvc.add
// CHECK: kvc.barrier
// CHECK-NEXT: kvc.dispatch "gate_up" 4 {
// CHECK: kvc.rms_norm
// CHECK-NEXT: kvc.round {{.*}} to bf16
// CHECK-NEXT: kvc.stage
// CHECK-NEXT: kvc.linear
// CHECK-NEXT: kvc.activation
// CHECK-NEXT: kvc.mul
// CHECK-NEXT: kvc.round {{.*}} to bf16
// CHECK-NEXT: kvc.write {{.*}} bf16>
// CHECK: kvc.barrier
// CHECK-NEXT: kvc.dispatch "down" 5 {
// CHECK: kvc.barrier
// CHECK-NEXT: }
// CHECK-NEXT: kvc.dispatch "head" 6 {
// CHECK: kvc.select_rows
// CHECK-NEXT: kvc.rms_norm
// CHECK-NEXT: kvc.round {{.*}} to bf16
// CHECK-NEXT: kvc.stage
// CHECK-NEXT: kvc.linear

// Each phase rounds at six places: the inputs of four linears, the head's, and the queries.
// ONCE-COUNT-6: kvc.round
// ONCE: kvc.program @decode
// ONCE-COUNT-6: kvc.round
// ONCE-NOT: kvc.round

// SM80: target = #kvc.target<arch = "cuda", cpu = "sm_80"
// SM80: type = bf16, page = 64, split = 64>
// SM80-NOT: f16>
// SM80: kvc.program @prefill
// SM80-NOT: to f16

// Quantised weights are multiplied by the same 16-bit values.
// QUANTISED: kvc.weight @attn_q : !kvc.weight<30x576x576, #kvc.tiles<unit = 64, pair = 32, splits = 2>>
// QUANTISED: kvc.weight @attn_v : !kvc.weight<30x192x576, #kvc.tiles<unit = 16, pair = 8, splits = 2>>
// QUANTISED: kvc.weight @ffn_down : !kvc.weight<30x576x1536, #kvc.tiles<unit = 16, pair = 8, splits = 6>>
// QUANTISED-NOT: kvc.quantize

// UNFUSED: kvc.dispatch "round"
// UNFUSED: kvc.dispatch "scores"

// SAME: largest relative error:
// ROUNDED: differ by {{.*}}e-
