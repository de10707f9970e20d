// RUN: kvc-opt %s --kvc-quantize-activations | FileCheck %s
// RUN: kvc-opt %s --kvc-quantize-activations --kvc-quantize-activations | FileCheck %s
// RUN: sed s/int8/f32/ %s | kvc-opt --kvc-quantize-activations | FileCheck %s --check-prefix=F32
// RUN: sed s/int8/bf16/ %s | kvc-opt --kvc-quantize-activations | FileCheck %s --check-prefix=BF16
// RUN: sed s/int8/bf16/ %s | kvc-opt --kvc-quantize-activations --kvc-quantize-activations | FileCheck %s --check-prefix=BF16
// RUN: sed -e s/int8/bf16/ -e 's/type = f16/type = f32/' %s | kvc-opt --kvc-quantize-activations | FileCheck %s --check-prefix=KVF32

// F32-NOT: kvc.quantize
// F32-NOT: kvc.round
// With 16-bit activations every linear's input is rounded, once for all that read it, and an attention's query
// as its cache keeps keys.
// BF16-NOT: kvc.quantize
// BF16: ^bb0(%[[H:.*]]: tensor<?x64xf32, #kvc.rows>
// BF16-NEXT: %[[R:.*]] = kvc.round %[[H]] to bf16
// BF16-NEXT: kvc.linear %[[R]], [@a]
// BF16-NEXT: kvc.linear %[[R]], [@b]
// BF16-NEXT: kvc.linear %[[R]], [@mixed]
// BF16: %[[S:.*]] = kvc.select_rows
// BF16-NEXT: %[[SR:.*]] = kvc.round %[[S]] to bf16
// BF16-NEXT: kvc.linear %[[SR]], [@embd]
// BF16: kvc.program @attend
// BF16: %[[X:.*]] = kvc.read slot<rows
// BF16-NEXT: %[[QR:.*]] = kvc.round %[[X]] to f16
// BF16-NEXT: kvc.attention %[[QR]], {{.*}}weights = f16}
// BF16-NEXT: kvc.scores %[[QR]]
// BF16-NOT: kvc.round
// KVF32: kvc.program @attend
// KVF32-NOT: kvc.round
kvc.model @m attributes {max_context = 32 : i64, activations = "int8"} {
  kvc.source @file {path = "m.gguf", size = 1000000 : i64}
  kvc.weight @embd : !kvc.weight<1x64x64> = [#kvc.slice<@file, q8_0, 0>]
  kvc.weight @a : !kvc.weight<2x64x64> = [#kvc.slice<@file, q4_0, 0>, #kvc.slice<@file, q8_0, 0>]
  kvc.weight @b : !kvc.weight<2x64x64> = [#kvc.slice<@file, q4_0, 0>, #kvc.slice<@file, q4_0, 0>]
  kvc.weight @mixed : !kvc.weight<2x64x64> = [#kvc.slice<@file, q4_0, 0>, #kvc.slice<@file, f16, 0>]
  kvc.program @decode(%tokens: tensor<?xi32, #kvc.rows>, %batch: !kvc.batch) -> tensor<?x64xf32, #kvc.outputs> attributes {phase = #kvc.phase<decode>} {
    %x = kvc.embed %tokens, @embd : (tensor<?xi32, #kvc.rows>) -> tensor<?x64xf32, #kvc.rows>
    %y = kvc.layers 2 (%x) : (tensor<?x64xf32, #kvc.rows>) -> tensor<?x64xf32, #kvc.rows> {
    // CHECK: ^bb0(%[[H:.*]]: tensor<?x64xf32, #kvc.rows>
    ^bb0(%h: tensor<?x64xf32, #kvc.rows>, %layer: index):
      // One rounding for two linears; the weight that is f16 in one layer keeps f32 activations.
      // CHECK-NEXT: %[[Q:.*]] = kvc.quantize %[[H]]
      // CHECK-NEXT: kvc.linear %[[Q]], [@a]
      // CHECK-NEXT: kvc.linear %[[Q]], [@b]
      // CHECK-NEXT: kvc.linear %[[H]], [@mixed]
      %a = kvc.linear %h, [@a][%layer] : (tensor<?x64xf32, #kvc.rows>) -> tensor<?x64xf32, #kvc.rows>
      %b = kvc.linear %h, [@b][%layer] : (tensor<?x64xf32, #kvc.rows>) -> tensor<?x64xf32, #kvc.rows>
      %c = kvc.linear %h, [@mixed][%layer] : (tensor<?x64xf32, #kvc.rows>) -> tensor<?x64xf32, #kvc.rows>
      %d = kvc.add %a, %b : tensor<?x64xf32, #kvc.rows>
      %e = kvc.add %c, %d : tensor<?x64xf32, #kvc.rows>
      kvc.yield %e : tensor<?x64xf32, #kvc.rows>
    }
    // CHECK: %[[R:.*]] = kvc.select_rows
    // CHECK-NEXT: %[[RQ:.*]] = kvc.quantize %[[R]]
    // CHECK-NEXT: kvc.linear %[[RQ]], [@embd]
    %r = kvc.select_rows %y, %batch : (tensor<?x64xf32, #kvc.rows>) -> tensor<?x64xf32, #kvc.outputs>
    %l = kvc.linear %r, [@embd] : (tensor<?x64xf32, #kvc.outputs>) -> tensor<?x64xf32, #kvc.outputs>
    kvc.return %l : tensor<?x64xf32, #kvc.outputs>
  }
  kvc.cache @kv : !kvc.cache<layers = 1, kv_heads = 1, head_dim = 16, type = f16, page = 16, split = 32>
  kvc.program @attend(%tokens: tensor<?xi32, #kvc.rows>, %batch: !kvc.batch) -> tensor<?x64xf32, #kvc.outputs> attributes {phase = #kvc.phase<decode>} {
    %x = kvc.read slot<rows, offset = 0, stride = 256, f32> : tensor<?x4x16xf32, #kvc.rows>
    %c = kvc.attention %x, @kv, %batch {scale = 0.5 : f64} : tensor<?x4x16xf32, #kvc.rows>
    %s = kvc.scores %x, @kv, %batch {scale = 0.5 : f64} : (tensor<?x4x16xf32, #kvc.rows>) -> tensor<?x4x?xf32, #kvc.rows>
    %r = kvc.read slot<outputs, offset = 0, stride = 256, f32> : tensor<?x64xf32, #kvc.outputs>
    kvc.return %r : tensor<?x64xf32, #kvc.outputs>
  }
}
