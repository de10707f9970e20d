// RUN: kvc-opt %s --kvc-schedule | FileCheck %s

kvc.model @m attributes {max_context = 32 : i64} {
  kvc.source @seed {seed = 1 : i64}
  kvc.weight @embd : !kvc.weight<1x16x16> = [#kvc.slice<@seed, f32, 0, "embd", [0.0, 1.0]>]
  kvc.cache @kv : !kvc.cache<layers = 1, kv_heads = 1, head_dim = 16, type = f16, page = 16, split = 32>
  kvc.program @decode(%tokens: tensor<?xi32, #kvc.rows>, %batch: !kvc.batch) attributes {phase = #kvc.phase<decode>, rows_bytes = 256 : i64, outputs_bytes = 0 : i64, worker_bytes = 0 : i64} {
    // CHECK: kvc.dispatch "a" 0
    kvc.kernel "a" {
      %0 = kvc.embed %tokens, @embd : (tensor<?xi32, #kvc.rows>) -> tensor<?x16xf32, #kvc.rows>
      kvc.write %0, slot<rows, offset = 0, stride = 64, f32> : tensor<?x16xf32, #kvc.rows>
    }
    // Other bytes: no barrier.
    // CHECK-NOT: kvc.barrier
    // CHECK: kvc.dispatch "b" 1
    kvc.kernel "b" {
      %0 = kvc.embed %tokens, @embd : (tensor<?xi32, #kvc.rows>) -> tensor<?x16xf32, #kvc.rows>
      kvc.write %0, slot<rows, offset = 64, stride = 64, f32> : tensor<?x16xf32, #kvc.rows>
    }
    // The body reads "a": the barrier stands before the layers, not in them. Two readers need none between them.
    // CHECK: {{^ *}$}}
    // CHECK-NEXT: kvc.barrier
    // CHECK-NEXT: kvc.layers 3
    // CHECK-NEXT: ^bb0
    // CHECK-NEXT: kvc.dispatch "c" 2
    // CHECK-NOT: kvc.barrier
    // CHECK: kvc.dispatch "d" 3
    // Overwriting what was read needs one; so does the next layer's read, at the end.
    // CHECK: {{^ *}$}}
    // CHECK-NEXT: kvc.barrier
    // CHECK-NEXT: kvc.dispatch "e" 4
    // CHECK: {{^ *}$}}
    // CHECK-NEXT: kvc.barrier
    // CHECK-NEXT: }
    kvc.layers 3 {
    ^bb0(%layer: index):
      kvc.kernel "c" {
        %0 = kvc.read slot<rows, offset = 0, stride = 64, f32> : tensor<?x16xf32, #kvc.rows>
        %1 = kvc.add %0, %0 : tensor<?x16xf32, #kvc.rows>
        kvc.write %1, slot<rows, offset = 128, stride = 64, f32> : tensor<?x16xf32, #kvc.rows>
      }
      kvc.kernel "d" {
        %0 = kvc.read slot<rows, offset = 0, stride = 64, f32> : tensor<?x16xf32, #kvc.rows>
        kvc.write %0, slot<rows, offset = 192, stride = 64, f32> : tensor<?x16xf32, #kvc.rows>
      }
      kvc.kernel "e" {
        %0 = kvc.read slot<rows, offset = 192, stride = 64, f32> : tensor<?x16xf32, #kvc.rows>
        kvc.write %0, slot<rows, offset = 0, stride = 64, f32> : tensor<?x16xf32, #kvc.rows>
      }
    }
    // The barrier at the end of the body serves what follows, too. The cache orders like bytes.
    // CHECK-NEXT: kvc.dispatch "f" 5
    // CHECK: {{^ *}$}}
    // CHECK-NEXT: kvc.barrier
    // CHECK-NEXT: kvc.dispatch "g" 6
    // CHECK: {{^ *}$}}
    // CHECK-NEXT: kvc.return
    kvc.kernel "f" {
      %0 = kvc.read slot<rows, offset = 0, stride = 64, f32> : tensor<?x16xf32, #kvc.rows>
      %1 = kvc.linear %0, [@embd] : (tensor<?x16xf32, #kvc.rows>) -> tensor<?x1x16xf32, #kvc.rows>
      kvc.cache_append %1, %1, @kv, %batch : tensor<?x1x16xf32, #kvc.rows>
    }
    kvc.kernel "g" {
      %0 = kvc.read slot<rows, offset = 0, stride = 64, f32> : tensor<?x1x16xf32, #kvc.rows>
      %1 = kvc.attention %0, @kv, %batch {scale = 0.5 : f64} : tensor<?x1x16xf32, #kvc.rows>
      kvc.write %1, slot<rows, offset = 128, stride = 64, f32> : tensor<?x1x16xf32, #kvc.rows>
    }
    kvc.return
  }
  // Numbers start at 0 in each program.
  // CHECK: kvc.program @prefill
  // CHECK-NEXT: kvc.dispatch "p" 0
  kvc.program @prefill(%tokens: tensor<?xi32, #kvc.rows>, %batch: !kvc.batch) attributes {phase = #kvc.phase<prefill>, rows_bytes = 256 : i64, outputs_bytes = 0 : i64, worker_bytes = 0 : i64} {
    kvc.kernel "p" {
      %0 = kvc.embed %tokens, @embd : (tensor<?xi32, #kvc.rows>) -> tensor<?x16xf32, #kvc.rows>
      kvc.write %0, slot<rows, offset = 0, stride = 64, f32> : tensor<?x16xf32, #kvc.rows>
    }
    kvc.return
  }
}
