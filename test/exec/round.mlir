// bf16 keeps 8 bits of a number, f16 keeps 11 and has a smallest step of 2^-24
// and a largest number of 65,504. Ties go to the even neighbour; without
// --rounded nothing rounds.
//
// 1 + 2^-8 lies between 1 and 1 + 2^-7: even is 1. 1 + 3 * 2^-8: even is
// 1 + 2^-6. 1 + 2^-11 and 1 + 3 * 2^-11 likewise in f16. 2^-25 is half of
// f16's smallest step; 65,520 is half way beyond its largest number.
// REQUIRES: kvc-translate
// RUN: mkdir -p %t
// RUN: cd %t
// RUN: %floats w.bin 1.00390625 1.01171875 -1.00390626 1.00048828125 1.00146484375 2.98023223876953125e-8 65520 65519
// RUN: kvc-translate --interpret %s --ids 0 | FileCheck %s --check-prefix=EXACT
// RUN: kvc-translate --interpret %s --ids 0 --rounded | FileCheck %s --check-prefix=BF16
// RUN: sed -e 's/to bf16/to f16/' %s > f16.mlir
// RUN: kvc-translate --interpret f16.mlir --ids 0 --rounded | FileCheck %s --check-prefix=F16

// EXACT: logits[0][0]: 1.00390625 1.01171875 -1.00390625 1.00048828 1.00146484 2.98023224e-08 65520 65519
// BF16: logits[0][0]: 1 1.015625 -1 1 1 2.98023224e-08 65536 65536
// F16: logits[0][0]: 1.00390625 1.01171875 -1.00390625 1 1.00195312 0 inf 65504
kvc.model @m attributes {max_context = 4 : i64} {
  kvc.source @f {path = "w.bin", size = 32 : i64}
  kvc.weight @table : !kvc.weight<1x1x8> = [#kvc.slice<@f, f32, 0>]
  kvc.forward @forward(%tokens: tensor<?xi32, #kvc.rows>, %batch: !kvc.batch) -> tensor<?x8xf32, #kvc.outputs> {
    %x = kvc.embed %tokens, @table : (tensor<?xi32, #kvc.rows>) -> tensor<?x8xf32, #kvc.rows>
    %y = kvc.round %x to bf16 : tensor<?x8xf32, #kvc.rows>
    %r = kvc.select_rows %y, %batch : (tensor<?x8xf32, #kvc.rows>) -> tensor<?x8xf32, #kvc.outputs>
    kvc.return %r : tensor<?x8xf32, #kvc.outputs>
  }
}
