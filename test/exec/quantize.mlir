// The largest magnitude is 127, so the scale is 1 and ties go to the even
// neighbour; without --rounded nothing rounds. A block of zeros stays zero.
// REQUIRES: kvc-translate
// RUN: mkdir -p %t
// RUN: cd %t
// RUN: %floats w.bin -127 0.5 1.5 2.5 -0.5 -1.5 126.4 126.6 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0
// RUN: kvc-translate --interpret %s --ids 0 | FileCheck %s --check-prefix=EXACT
// RUN: kvc-translate --interpret %s --ids 0 --rounded | FileCheck %s --check-prefix=ROUNDED
// RUN: kvc-translate --interpret %s --ids 1 --rounded | FileCheck %s --check-prefix=ZERO

// EXACT: logits[0][0]: -127 0.5 1.5 2.5 -0.5 -1.5 126.400002 126.599998 0
// ROUNDED: logits[0][0]: -127 0 2 2 0 -2 126 127 0
// ZERO: logits[0][0]: 0 0 0
// ZERO-NOT: nan
kvc.model @m attributes {max_context = 4 : i64} {
  kvc.source @f {path = "w.bin", size = 256 : i64}
  kvc.weight @table : !kvc.weight<1x2x32> = [#kvc.slice<@f, f32, 0>]
  kvc.forward @forward(%tokens: tensor<?xi32, #kvc.rows>, %batch: !kvc.batch) -> tensor<?x32xf32, #kvc.outputs> {
    %x = kvc.embed %tokens, @table : (tensor<?xi32, #kvc.rows>) -> tensor<?x32xf32, #kvc.rows>
    %q = kvc.quantize %x : tensor<?x32xf32, #kvc.rows>
    %r = kvc.select_rows %q, %batch : (tensor<?x32xf32, #kvc.rows>) -> tensor<?x32xf32, #kvc.outputs>
    kvc.return %r : tensor<?x32xf32, #kvc.outputs>
  }
}
