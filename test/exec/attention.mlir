// Tokens carry q (two heads of 1), k and v (one kv head of 1); the scale is ln 3.
// Token 0: q = [0, 0], k = 0, v = 4. Token 1: q = [1, 0], k = 1, v = 8.
// Token 2: q = [1, 1], k = 0.3 (no f16), v = 100.
// REQUIRES: kvc-translate
// RUN: mkdir -p %t
// RUN: cd %t
// RUN: %floats w.bin 0 0 0 4  1 0 1 8  1 1 0.3 100  1 0 0 0  0 1 0 0  0 0 1 0  0 0 0 1
// RUN: kvc-translate --interpret %s --ids 0,1 --all-logits | FileCheck %s
// RUN: kvc-translate --interpret %s --ids 0 --decode-ids 1 | FileCheck %s
// RUN: kvc-translate --interpret %s --ids 1,0 --ids 0,0,1 --all-logits | FileCheck %s --check-prefix=RAGGED
// RUN: sed -e '/kvc.scores/d; /kvc.masked_softmax/d; s/kvc.context .*/kvc.attention %%q, @kv, %%batch {scale = 1.0986122886681098 : f64} : tensor<?x2x1xf32, #kvc.rows>/' %s > fused.mlir
// RUN: kvc-translate --interpret fused.mlir --ids 0,1 --all-logits | FileCheck %s
// RUN: sed -e 's/1098 : f64}/1098 : f64, weights = bf16}/' fused.mlir > weights.mlir
// RUN: kvc-translate --interpret weights.mlir --ids 0,1 --all-logits | FileCheck %s
// RUN: kvc-translate --interpret weights.mlir --ids 0,1 --ids 0,0,0,0,1 --rounded | FileCheck %s --check-prefix=WEIGHTS
// RUN: kvc-translate --interpret %s --ids 0,1,2,0 --ids 1 --decode-ids 2,1 --decode-ids 1 --against fused.mlir
// RUN: kvc-translate --interpret %s --ids 0,1,2 --cache cache.npz
// RUN: %python -m zipfile -l cache.npz | FileCheck %s --check-prefix=CACHE
// RUN: not kvc-translate --interpret %s --ids 2 --rounded --against rounds.mlir 2>&1 | FileCheck %s --check-prefix=MISSING
// RUN: sed -e 's/type = f16/type = f32/' %s > f32.mlir
// RUN: kvc-translate --interpret %s --ids 2,2 --against f32.mlir
// RUN: not kvc-translate --interpret %s --ids 2,2 --rounded --against f32.mlir 2>&1 | FileCheck %s --check-prefix=ROUNDED
// RUN: sed -e 's/kvc.cache_append/kvc.barrier \/\//' %s > unwritten.mlir
// RUN: not kvc-translate --interpret unwritten.mlir --ids 0,1 2>&1 | FileCheck %s --check-prefix=UNWRITTEN

// Weights of token 1's heads: 1/4, 3/4 and 1/2, 1/2.
// CHECK: logits[0][0]: 4 4
// CHECK-NEXT: logits[0][1]: 7 6
// The sequences do not see each other, and a row does not see what follows it.
// RAGGED: logits[0][0]: 8 8
// RAGGED-NEXT: logits[0][1]: 6 6
// RAGGED-NEXT: logits[1][0]: 4 4
// RAGGED-NEXT: logits[1][1]: 4 4
// RAGGED-NEXT: logits[1][2]: 6.4 5.33333333
// In bf16 a third is 0.333984375: (4 * that + 8) / (4 / 3). Five positions are two splits: four weights of 1, whose
// split's largest score is its own, and one: (4 * 4 / 3 + 8) / (7 / 3), although a third as such would be rounded.
// WEIGHTS: logits[0][0]: 7.00195312 6
// WEIGHTS-NEXT: logits[1][0]: 5.71428571 4.8
// CACHE-DAG: layer0.sequence0.k.npy
// CACHE-DAG: layer0.sequence0.v.npy
// MISSING: rounds.mlir
// ROUNDED: differ by {{.*}} (cache of layer 0, sequence 0, position 0); 1.0e-12 is allowed
// UNWRITTEN: 'kvc.scores': reads position 0 of sequence 0 in layer 0, which nothing has written
kvc.model @m attributes {max_context = 8 : i64} {
  kvc.source @f {path = "w.bin", size = 112 : i64}
  kvc.weight @table : !kvc.weight<1x3x4> = [#kvc.slice<@f, f32, 0>]
  kvc.weight @wq : !kvc.weight<1x2x4> = [#kvc.slice<@f, f32, 48>]
  kvc.weight @wk : !kvc.weight<1x1x4> = [#kvc.slice<@f, f32, 80>]
  kvc.weight @wv : !kvc.weight<1x1x4> = [#kvc.slice<@f, f32, 96>]
  kvc.cache @kv : !kvc.cache<layers = 1, kv_heads = 1, head_dim = 1, type = f16, page = 2, split = 4>
  kvc.forward @forward(%tokens: tensor<?xi32, #kvc.rows>, %batch: !kvc.batch) -> tensor<?x2xf32, #kvc.outputs> {
    %x = kvc.embed %tokens, @table : (tensor<?xi32, #kvc.rows>) -> tensor<?x4xf32, #kvc.rows>
    %q, %k, %v = kvc.linear %x, [@wq, @wk, @wv] : (tensor<?x4xf32, #kvc.rows>)
        -> (tensor<?x2x1xf32, #kvc.rows>, tensor<?x1x1xf32, #kvc.rows>, tensor<?x1x1xf32, #kvc.rows>)
    kvc.cache_append %k, %v, @kv, %batch : tensor<?x1x1xf32, #kvc.rows>
    %s = kvc.scores %q, @kv, %batch {scale = 1.0986122886681098 : f64} : (tensor<?x2x1xf32, #kvc.rows>) -> tensor<?x2x?xf32, #kvc.rows>
    %p = kvc.masked_softmax %s, %batch : tensor<?x2x?xf32, #kvc.rows>
    %c = kvc.context %p, @kv, %batch : (tensor<?x2x?xf32, #kvc.rows>) -> tensor<?x2x1xf32, #kvc.rows>
    kvc.write %c, slot<rows, offset = 0, stride = 64, f32> : tensor<?x2x1xf32, #kvc.rows>
    %y = kvc.read slot<rows, offset = 0, stride = 64, f32> : tensor<?x2xf32, #kvc.rows>
    %r = kvc.select_rows %y, %batch : (tensor<?x2xf32, #kvc.rows>) -> tensor<?x2xf32, #kvc.outputs>
    kvc.return %r : tensor<?x2xf32, #kvc.outputs>
  }
}
