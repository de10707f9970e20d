// RUN: kvc-opt %s --kvc-fuse-norm | FileCheck %s

kvc.model @m attributes {max_context = 32 : i64} {
  kvc.source @seed {seed = 1 : i64}
  kvc.weight @embd : !kvc.weight<1x32x32> = [#kvc.slice<@seed, f32, 0, "embd", [0.0, 1.0]>]
  kvc.weight @o : !kvc.weight<1x32x32> = [#kvc.slice<@seed, f32, 0, "o", [0.0, 1.0]>]
  kvc.weight @n : !kvc.weight<1x32> = [#kvc.slice<@seed, f32, 0, "n", [1.0, 0.1]>]
  // CHECK: kvc.program @decode
  kvc.program @decode(%tokens: tensor<?xi32, #kvc.rows>, %batch: !kvc.batch) -> tensor<?x32xf32, #kvc.outputs> attributes {phase = #kvc.phase<decode>} {
    %x = kvc.embed %tokens, @embd : (tensor<?xi32, #kvc.rows>) -> tensor<?x32xf32, #kvc.rows>
    // CHECK: %[[X:.*]] = kvc.embed
    // CHECK-NEXT: %[[K:.*]] = kvc.kernel "linear" -> tensor<?x32xf32, #kvc.rows> {
    // CHECK-NEXT: %[[N:.*]] = kvc.layer_norm %[[X]]
    // CHECK-NEXT: %[[Q:.*]] = kvc.quantize %[[N]]
    // CHECK-NEXT: %[[L:.*]] = kvc.linear %[[Q]]
    // CHECK-NEXT: kvc.yield %[[L]]
    // CHECK-NEXT: }
    %n = kvc.layer_norm %x, @n bias @n {eps = 1.0e-5 : f64} : tensor<?x32xf32, #kvc.rows>
    %q = kvc.quantize %n : tensor<?x32xf32, #kvc.rows>
    %a = kvc.linear %q, [@o] : (tensor<?x32xf32, #kvc.rows>) -> tensor<?x32xf32, #kvc.rows>
    // Two linears would each compute it.
    // CHECK-NEXT: %[[M:.*]] = kvc.rms_norm %[[K]]
    // CHECK-NEXT: kvc.linear %[[M]]
    // CHECK-NEXT: kvc.linear %[[M]]
    // CHECK-NEXT: kvc.mul
    %m = kvc.rms_norm %a, @n {eps = 1.0e-5 : f64} : tensor<?x32xf32, #kvc.rows>
    %b = kvc.linear %m, [@o] : (tensor<?x32xf32, #kvc.rows>) -> tensor<?x32xf32, #kvc.rows>
    %c = kvc.linear %m, [@embd] : (tensor<?x32xf32, #kvc.rows>) -> tensor<?x32xf32, #kvc.rows>
    %d = kvc.mul %b, %c : tensor<?x32xf32, #kvc.rows>
    // CHECK-NEXT: kvc.kernel "head"
    // CHECK-NEXT: kvc.select_rows
    // CHECK-NEXT: kvc.rms_norm
    // CHECK-NEXT: kvc.linear
    // CHECK-NEXT: kvc.yield
    %r = kvc.select_rows %d, %batch : (tensor<?x32xf32, #kvc.rows>) -> tensor<?x32xf32, #kvc.outputs>
    %rn = kvc.rms_norm %r, @n {eps = 1.0e-5 : f64} : tensor<?x32xf32, #kvc.outputs>
    %l = kvc.linear %rn, [@embd] : (tensor<?x32xf32, #kvc.outputs>) -> tensor<?x32xf32, #kvc.outputs>
    kvc.return %l : tensor<?x32xf32, #kvc.outputs>
  }
  // On the rows of a prefill every worker would repeat it; output rows are few.
  // CHECK: kvc.program @prefill
  kvc.program @prefill(%tokens: tensor<?xi32, #kvc.rows>, %batch: !kvc.batch) -> tensor<?x32xf32, #kvc.outputs> attributes {phase = #kvc.phase<prefill>} {
    // CHECK: kvc.embed
    // CHECK-NEXT: kvc.rms_norm
    // CHECK-NEXT: kvc.linear
    // CHECK-NEXT: kvc.kernel "head"
    // CHECK-NEXT: kvc.select_rows
    // CHECK-NEXT: kvc.rms_norm
    // CHECK-NEXT: kvc.quantize
    // CHECK-NEXT: kvc.linear
    // CHECK-NEXT: kvc.yield
    %x = kvc.embed %tokens, @embd : (tensor<?xi32, #kvc.rows>) -> tensor<?x32xf32, #kvc.rows>
    %n = kvc.rms_norm %x, @n {eps = 1.0e-5 : f64} : tensor<?x32xf32, #kvc.rows>
    %a = kvc.linear %n, [@o] : (tensor<?x32xf32, #kvc.rows>) -> tensor<?x32xf32, #kvc.rows>
    %r = kvc.select_rows %a, %batch : (tensor<?x32xf32, #kvc.rows>) -> tensor<?x32xf32, #kvc.outputs>
    %rn = kvc.rms_norm %r, @n {eps = 1.0e-5 : f64} : tensor<?x32xf32, #kvc.outputs>
    %rq = kvc.quantize %rn : tensor<?x32xf32, #kvc.outputs>
    %l = kvc.linear %rq, [@embd] : (tensor<?x32xf32, #kvc.outputs>) -> tensor<?x32xf32, #kvc.outputs>
    kvc.return %l : tensor<?x32xf32, #kvc.outputs>
  }
}
