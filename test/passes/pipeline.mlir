// The pipeline by its pieces is the pipeline, and what it prints parses.
// RUN: kvc-opt %S/Inputs/gqa.mlir --kvc-pipeline="target-cpu=x86-64-v3 kv-type=f32" -o %t.whole
// RUN: kvc-opt %S/Inputs/gqa.mlir --kvc-set-target="target-cpu=x86-64-v3 kv-type=f32" --kvc-split-phases --kvc-quantize-activations --kvc-fuse-qkv --kvc-fuse-gate-up --kvc-fuse-masked-softmax --kvc-fuse-cache-append --kvc-fuse-residual --kvc-fuse-norm --kvc-fuse-quantize --kvc-pack-weights --kvc-plan-memory --kvc-schedule -o %t.pieces
// RUN: cmp %t.whole %t.pieces
// RUN: kvc-opt %t.whole | cmp - %t.whole
// RUN: kvc-opt %S/Inputs/gqa.mlir --kvc-pipeline="target-cpu=x86-64-v3 fuse=false" | FileCheck %s --check-prefix=UNFUSED
// RUN: not kvc-opt %S/Inputs/gqa.mlir --kvc-pipeline="target-cpu=x86-64-v3 ctx=129" 2>&1 | FileCheck %s --check-prefix=ERROR

// Unfused, no dispatch holds two ops that compute.
// UNFUSED: kvc.dispatch "scores"
// UNFUSED: kvc.dispatch "masked_softmax"
// UNFUSED: kvc.dispatch "context"
// ERROR: gqa.mlir:2:1: error: 'kvc.model' op ctx must be from 1 to the 128 positions the model was made for, found 129
