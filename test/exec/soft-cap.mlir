// 2 tanh(x / 2): at x = 1 it is 2 tanh(0.5) = 0.92423431; near zero it is x; far
// out it is the cap. tanh(0.5) = (e - 1) / (e + 1).
// REQUIRES: kvc-translate
// RUN: mkdir -p %t
// RUN: cd %t
// RUN: %floats w.bin 1 -1 0 0.0009765625 100 -1000
// RUN: kvc-translate --interpret %s --ids 0 | FileCheck %s
// CHECK: logits[0][0]: 0.924234315 -0.924234315 0 0.000976562422 2 -2
kvc.model @m attributes {max_context = 4 : i64} {
  kvc.source @f {path = "w.bin", size = 24 : i64}
  kvc.weight @table : !kvc.weight<1x1x6> = [#kvc.slice<@f, f32, 0>]
  kvc.forward @forward(%tokens: tensor<?xi32, #kvc.rows>, %batch: !kvc.batch) -> tensor<?x6xf32, #kvc.outputs> {
    %x = kvc.embed %tokens, @table : (tensor<?xi32, #kvc.rows>) -> tensor<?x6xf32, #kvc.rows>
    %r = kvc.select_rows %x, %batch : (tensor<?x6xf32, #kvc.rows>) -> tensor<?x6xf32, #kvc.outputs>
    %y = kvc.soft_cap %r {cap = 2.0 : f64} : tensor<?x6xf32, #kvc.outputs>
    kvc.return %y : tensor<?x6xf32, #kvc.outputs>
  }
}
