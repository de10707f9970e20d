// A pass on the wrong level says which pass is missing.
// RUN: not kvc-opt %s --kvc-fuse-qkv 2>&1 | FileCheck %s --check-prefix=SPLIT
// RUN: not kvc-opt %s --kvc-plan-memory 2>&1 | FileCheck %s --check-prefix=SPLIT
// RUN: not kvc-opt %s --kvc-schedule 2>&1 | FileCheck %s --check-prefix=SPLIT
// RUN: not kvc-opt %s --kvc-split-phases --kvc-pack-weights 2>&1 | FileCheck %s --check-prefix=TARGET
// RUN: not kvc-opt %s --kvc-split-phases --kvc-schedule 2>&1 | FileCheck %s --check-prefix=PLAN
// RUN: not kvc-opt %s --kvc-split-phases --kvc-plan-memory --kvc-fuse-norm 2>&1 | FileCheck %s --check-prefix=PLANNED
// RUN: not kvc-opt %s --kvc-split-phases --kvc-plan-memory --kvc-plan-memory 2>&1 | FileCheck %s --check-prefix=PLANNED
// RUN: not kvc-opt %s --kvc-split-phases --kvc-plan-memory --kvc-schedule --kvc-schedule 2>&1 | FileCheck %s --check-prefix=SCHEDULED
// RUN: not kvc-opt %s --kvc-set-target --kvc-split-phases --kvc-pack-weights --kvc-set-target 2>&1 | FileCheck %s --check-prefix=PACKED
// RUN: not kvc-opt %s --kvc-set-target --kvc-split-phases --kvc-pack-weights --kvc-pack-weights 2>&1 | FileCheck %s --check-prefix=REPACKED

// SPLIT: levels.mlir:[[@LINE+8]]:3: error: 'kvc.forward' op is not split into programs: kvc-{{.*}} comes after kvc-split-phases
// TARGET: error: 'kvc.model' op has no target: kvc-pack-weights comes after kvc-set-target
// PLAN: error: 'kvc.program' op has no memory plan: kvc-schedule comes after kvc-plan-memory
// PLANNED: error: 'kvc.program' op has its memory planned already: kvc-{{fuse-norm|plan-memory}} comes before kvc-plan-memory
// SCHEDULED: error: 'kvc.program' op is scheduled already: kvc-schedule runs once
// PACKED: error: 'kvc.weight' op is packed for a target already: kvc-set-target comes before kvc-pack-weights
// REPACKED: error: 'kvc.model' op has its weights packed already
kvc.model @m attributes {max_context = 32 : i64} {
  kvc.forward @forward(%tokens: tensor<?xi32, #kvc.rows>, %batch: !kvc.batch) -> tensor<?x7xf32, #kvc.outputs> {
    %x = kvc.embed %tokens, @embd : (tensor<?xi32, #kvc.rows>) -> tensor<?x8xf32, #kvc.rows>
    %r = kvc.select_rows %x, %batch : (tensor<?x8xf32, #kvc.rows>) -> tensor<?x8xf32, #kvc.outputs>
    %l = kvc.linear %r, [@embd] : (tensor<?x8xf32, #kvc.outputs>) -> tensor<?x7xf32, #kvc.outputs>
    kvc.return %l : tensor<?x7xf32, #kvc.outputs>
  }
  kvc.source @seed {seed = 1 : i64}
  kvc.weight @embd : !kvc.weight<1x7x8> = [#kvc.slice<@seed, f32, 0, "embd", [0.0, 1.0]>]
}
