// Rows of tables: by token, by position, and the rows whose logits are wanted.
// REQUIRES: kvc-translate
// RUN: mkdir -p %t
// RUN: cd %t
// RUN: %floats w.bin 1 2 3 4 5 6 100 200 300 400
// RUN: kvc-translate --interpret %s --ids 2,0 | FileCheck %s --check-prefix=LAST
// RUN: kvc-translate --interpret %s --ids 2,0 --all-logits | FileCheck %s --check-prefix=ALL
// RUN: kvc-translate --interpret %s --ids 2 --ids 0,1 | FileCheck %s --check-prefix=TWO
// RUN: not kvc-translate --interpret %s --ids 3 2>&1 | FileCheck %s --check-prefix=TOKEN
// RUN: not kvc-translate --interpret %s --ids 0,0,0 2>&1 | FileCheck %s --check-prefix=POSITION
// RUN: not kvc-translate --interpret %s --ids 0,0,0,0,0 2>&1 | FileCheck %s --check-prefix=LENGTH
// RUN: %floats w.bin 1
// RUN: not kvc-translate --interpret %s --ids 3 2>&1 | FileCheck %s --check-prefix=CHANGED
// RUN: rm w.bin
// RUN: not kvc-translate --interpret %s --ids 3 2>&1 | FileCheck %s --check-prefix=ABSENT

// LAST: logits[0][0]: 301 402
// LAST-NOT: logits
// ALL: logits[0][0]: 105 206
// ALL-NEXT: logits[0][1]: 301 402
// TWO: logits[0][0]: 105 206
// TWO-NEXT: logits[1][0]: 303 404
// TOKEN: embed.mlir:[[@LINE+11]]:{{.*}}'kvc.embed': token 3 is not one of the 3 of @table
// POSITION: 'kvc.add_positions': position 2 is not one of the 2 of @positions
// LENGTH: sequence 0 has 5 ids, but the model's max_context is 4
// CHANGED: 'kvc.source' @w: the model was made from w.bin of 40 bytes, but the file has 4: it has changed; import it again
// ABSENT: 'kvc.source' @w: cannot read w.bin: No such file or directory
kvc.model @m attributes {max_context = 4 : i64} {
  kvc.source @w {path = "w.bin", size = 40 : i64}
  kvc.weight @table : !kvc.weight<1x3x2> = [#kvc.slice<@w, f32, 0>]
  kvc.weight @positions : !kvc.weight<1x2x2> = [#kvc.slice<@w, f32, 24>]
  kvc.forward @forward(%tokens: tensor<?xi32, #kvc.rows>, %batch: !kvc.batch) -> tensor<?x2xf32, #kvc.outputs> {

    %e = kvc.embed %tokens, @table : (tensor<?xi32, #kvc.rows>) -> tensor<?x2xf32, #kvc.rows>
    %x = kvc.add_positions %e, @positions, %batch : tensor<?x2xf32, #kvc.rows>
    %r = kvc.select_rows %x, %batch : (tensor<?x2xf32, #kvc.rows>) -> tensor<?x2xf32, #kvc.outputs>
    kvc.return %r : tensor<?x2xf32, #kvc.outputs>
  }
}
