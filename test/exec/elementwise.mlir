// REQUIRES: kvc-translate
// RUN: mkdir -p %t
// RUN: cd %t
// RUN: %floats w.bin -2 0 1 30
// RUN: kvc-translate --interpret %s --ids 0 | FileCheck %s --check-prefix=SILU
// RUN: sed -e 's/<silu>/<gelu>/' %s > gelu.mlir
// RUN: kvc-translate --interpret gelu.mlir --ids 0 | FileCheck %s --check-prefix=GELU
// RUN: sed -e 's/<silu>/<gelu_tanh>/' %s > tanh.mlir
// RUN: kvc-translate --interpret tanh.mlir --ids 0 | FileCheck %s --check-prefix=TANH
// RUN: sed -e 's/kvc.activation %%x.*:/kvc.add %%x, %%x :/' %s > add.mlir
// RUN: kvc-translate --interpret add.mlir --ids 0 | FileCheck %s --check-prefix=ADD
// RUN: sed -e 's/kvc.activation %%x.*:/kvc.mul %%x, %%x :/' %s > mul.mlir
// RUN: kvc-translate --interpret mul.mlir --ids 0 | FileCheck %s --check-prefix=MUL

// SILU: logits[0][0]: -0.238405844 0 0.731058579 30
// GELU: logits[0][0]: -0.0455002639 0 0.841344746 30
// TANH: logits[0][0]: -0.0454023059 0 0.841191991 30
// ADD: logits[0][0]: -4 0 2 60
// MUL: logits[0][0]: 4 0 1 900
kvc.model @m attributes {max_context = 4 : i64} {
  kvc.source @f {path = "w.bin", size = 16 : i64}
  kvc.weight @table : !kvc.weight<1x1x4> = [#kvc.slice<@f, f32, 0>]
  kvc.forward @forward(%tokens: tensor<?xi32, #kvc.rows>, %batch: !kvc.batch) -> tensor<?x4xf32, #kvc.outputs> {
    %x = kvc.embed %tokens, @table : (tensor<?xi32, #kvc.rows>) -> tensor<?x4xf32, #kvc.rows>
    %y = kvc.activation %x {kind = #kvc.activation_kind<silu>} : tensor<?x4xf32, #kvc.rows>
    %r = kvc.select_rows %y, %batch : (tensor<?x4xf32, #kvc.rows>) -> tensor<?x4xf32, #kvc.outputs>
    kvc.return %r : tensor<?x4xf32, #kvc.outputs>
  }
}
