// A quarter turn a position, in the first of one or two pairs of two heads of 4;
// positions 0, 1 and 2 rotate by 0, 90 and 180 degrees: (x, y) -> (-y, x).
// REQUIRES: kvc-translate
// RUN: mkdir -p %t
// RUN: cd %t
// RUN: %floats w.bin 1 2 3 4 5 6 7 8  1 0 0 0 0 0 0 0  0 1 0 0 0 0 0 0  0 0 1 0 0 0 0 0  0 0 0 1 0 0 0 0  0 0 0 0 1 0 0 0  0 0 0 0 0 1 0 0  0 0 0 0 0 0 1 0  0 0 0 0 0 0 0 1
// RUN: kvc-translate --interpret %s --ids 0,0,0 --all-logits | FileCheck %s --check-prefix=HALF
// RUN: sed -e 's/<half>/<interleaved>/' %s > interleaved.mlir
// RUN: kvc-translate --interpret interleaved.mlir --ids 0,0,0 --all-logits | FileCheck %s --check-prefix=INTERLEAVED
// RUN: sed -e 's/, 0.0\]>/]>, scale = 2.0 : f64/' %s > partial.mlir
// RUN: kvc-translate --interpret partial.mlir --ids 0,0,0 --all-logits | FileCheck %s --check-prefix=PARTIAL

// HALF: logits[0][0]: 1 2 3 4 5 6 7 8
// HALF-NEXT: logits[0][1]: -3 2 1 4 -7 6 5 8
// HALF-NEXT: logits[0][2]: -1 2 -3 4 -5 6 -7 8
// INTERLEAVED: logits[0][0]: 1 2 3 4 5 6 7 8
// INTERLEAVED-NEXT: logits[0][1]: -2 1 3 4 -6 5 7 8
// INTERLEAVED-NEXT: logits[0][2]: -1 -2 3 4 -5 -6 7 8
// One pair: dimensions 0 and 1 turn and double, 2 and 3 pass.
// PARTIAL: logits[0][0]: 2 4 3 4 10 12 7 8
// PARTIAL-NEXT: logits[0][1]: -4 2 3 4 -12 10 7 8
kvc.model @m attributes {max_context = 4 : i64} {
  kvc.source @f {path = "w.bin", size = 288 : i64}
  kvc.weight @table : !kvc.weight<1x1x8> = [#kvc.slice<@f, f32, 0>]
  kvc.weight @one : !kvc.weight<1x8x8> = [#kvc.slice<@f, f32, 32>]
  kvc.forward @forward(%tokens: tensor<?xi32, #kvc.rows>, %batch: !kvc.batch) -> tensor<?x8xf32, #kvc.outputs> {
    %x = kvc.embed %tokens, @table : (tensor<?xi32, #kvc.rows>) -> tensor<?x8xf32, #kvc.rows>
    %h = kvc.linear %x, [@one] : (tensor<?x8xf32, #kvc.rows>) -> tensor<?x2x4xf32, #kvc.rows>
    %t = kvc.rope %h, %batch {layout = #kvc.rope_layout<half>, inv_freq = #kvc.reals<[1.5707963267948966, 0.0]>} : tensor<?x2x4xf32, #kvc.rows>
    %y = kvc.linear %t, [@one] : (tensor<?x2x4xf32, #kvc.rows>) -> tensor<?x8xf32, #kvc.rows>
    %r = kvc.select_rows %y, %batch : (tensor<?x8xf32, #kvc.rows>) -> tensor<?x8xf32, #kvc.outputs>
    kvc.return %r : tensor<?x8xf32, #kvc.outputs>
  }
}
