// Three segments of one input, two with a bias; the layer selects the rows.
// x = [1, 10]; layer 0: @a = [[1, 2], [3, 4]], layer 1: @a = [[5, 6], [7, 8]].
// REQUIRES: kvc-translate
// RUN: mkdir -p %t
// RUN: cd %t
// RUN: %floats w.bin 1 10   1 2 3 4   5 6 7 8   100 200   1000 2000
// RUN: kvc-translate --interpret %s --ids 0 | FileCheck %s

// Layer 0: a = [21, 43] + [100, 200]; b = [21, 43]; y = a + b = [142, 286].
// Layer 1 of [142, 286]: [2426, 3282]; a = that + [1000, 2000].
// CHECK: logits[0][0]: 5852 8564
kvc.model @m attributes {max_context = 4 : i64} {
  kvc.source @f {path = "w.bin", size = 56 : i64}
  kvc.weight @table : !kvc.weight<1x1x2> = [#kvc.slice<@f, f32, 0>]
  kvc.weight @a : !kvc.weight<2x2x2> = [#kvc.slice<@f, f32, 8>, #kvc.slice<@f, f32, 24>]
  kvc.weight @bias : !kvc.weight<2x2> = [#kvc.slice<@f, f32, 40>, #kvc.slice<@f, f32, 48>]
  kvc.forward @forward(%tokens: tensor<?xi32, #kvc.rows>, %batch: !kvc.batch) -> tensor<?x2xf32, #kvc.outputs> {
    %x = kvc.embed %tokens, @table : (tensor<?xi32, #kvc.rows>) -> tensor<?x2xf32, #kvc.rows>
    %y = kvc.layers 2 (%x) : (tensor<?x2xf32, #kvc.rows>) -> tensor<?x2xf32, #kvc.rows> {
    ^bb0(%h: tensor<?x2xf32, #kvc.rows>, %layer: index):
      %a, %b, %c = kvc.linear %h, [@a, @a, @a][%layer] bias [@bias, unit, @bias] : (tensor<?x2xf32, #kvc.rows>)
          -> (tensor<?x2xf32, #kvc.rows>, tensor<?x1x2xf32, #kvc.rows>, tensor<?x2xf32, #kvc.rows>)
      %s = kvc.kernel "flatten" -> tensor<?x2xf32, #kvc.rows> {
        kvc.write %b, slot<rows, offset = 0, stride = 64, f32> : tensor<?x1x2xf32, #kvc.rows>
        kvc.yield %a : tensor<?x2xf32, #kvc.rows>
      }
      %f = kvc.read slot<rows, offset = 0, stride = 64, f32> : tensor<?x2xf32, #kvc.rows>
      %z = kvc.add %s, %f : tensor<?x2xf32, #kvc.rows>
      kvc.yield %z : tensor<?x2xf32, #kvc.rows>
    }
    %r = kvc.select_rows %y, %batch : (tensor<?x2xf32, #kvc.rows>) -> tensor<?x2xf32, #kvc.outputs>
    kvc.return %r : tensor<?x2xf32, #kvc.outputs>
  }
}
