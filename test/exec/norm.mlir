// mean([1, 7]^2) = 25; mean([1, 7]) = 4, variance 9 and 9 + 7 = 16.
// REQUIRES: kvc-translate
// RUN: mkdir -p %t
// RUN: cd %t
// RUN: %floats w.bin 1 7 0 2 0.5 10 20
// RUN: kvc-translate --interpret %s --ids 0 | FileCheck %s
// RUN: sed -e 's/kvc.rms_norm/kvc.layer_norm/' %s > layer.mlir
// RUN: kvc-translate --interpret layer.mlir --ids 0 | FileCheck %s --check-prefix=LAYER
// RUN: sed -e 's/kvc.rms_norm %%x, @w/kvc.layer_norm %%x, @w bias @b/;s/0.0 : f64/7.0 : f64/' %s > bias.mlir
// RUN: kvc-translate --interpret bias.mlir --ids 0 | FileCheck %s --check-prefix=BIAS
// RUN: sed -e 's/0.0 : f64/11.0 : f64/' %s > eps.mlir
// RUN: kvc-translate --interpret eps.mlir --ids 0 | FileCheck %s --check-prefix=EPS

// CHECK: logits[0][0]: 0.4 0.7
// LAYER: logits[0][0]: -2 0.5
// BIAS: logits[0][0]: 8.5 20.375
// EPS: logits[0][0]: 0.333333333 0.583333333
kvc.model @m attributes {max_context = 4 : i64} {
  kvc.source @f {path = "w.bin", size = 28 : i64}
  kvc.weight @table : !kvc.weight<1x1x2> = [#kvc.slice<@f, f32, 0>]
  kvc.weight @w : !kvc.weight<1x2> = [#kvc.slice<@f, f32, 12>]
  kvc.weight @b : !kvc.weight<1x2> = [#kvc.slice<@f, f32, 20>]
  kvc.forward @forward(%tokens: tensor<?xi32, #kvc.rows>, %batch: !kvc.batch) -> tensor<?x2xf32, #kvc.outputs> {
    %x = kvc.embed %tokens, @table : (tensor<?xi32, #kvc.rows>) -> tensor<?x2xf32, #kvc.rows>
    %n = kvc.rms_norm %x, @w {eps = 0.0 : f64} : tensor<?x2xf32, #kvc.rows>
    %r = kvc.select_rows %n, %batch : (tensor<?x2xf32, #kvc.rows>) -> tensor<?x2xf32, #kvc.outputs>
    kvc.return %r : tensor<?x2xf32, #kvc.outputs>
  }
}
