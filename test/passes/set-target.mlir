// RUN: kvc-opt %s --kvc-set-target="target-cpu=x86-64-v3 kv-type=bf16 activations=f32" | FileCheck %s --check-prefixes=CHECK,V3
// RUN: kvc-opt %s --kvc-set-target="target-cpu=x86-64-v4 kv-type=bf16 activations=f32 ctx=24" | FileCheck %s --check-prefixes=CHECK,V4
// RUN: kvc-opt %s --kvc-set-target="target-cpu=znver3 kv-type=bf16 activations=f32" | FileCheck %s --check-prefixes=CHECK,ZEN
// RUN: kvc-opt %s --kvc-set-target="target-cpu=x86-64 kv-type=bf16 activations=f32" | FileCheck %s --check-prefixes=CHECK,BASE
// RUN: kvc-opt %s --kvc-set-target="target-cpu=x86-64-v3 vector-width=512 kv-type=bf16 activations=f32" | FileCheck %s --check-prefixes=CHECK,WIDE
// RUN: kvc-opt %s --kvc-set-target="target-cpu=x86-64-v3" --kvc-set-target="target-cpu=znver3 kv-type=f32" | FileCheck %s --check-prefix=TWICE
// RUN: kvc-opt %s --kvc-set-target | FileCheck %s --check-prefix=NATIVE
// RUN: not kvc-opt %s --kvc-set-target="target-cpu=x86-64-v9" 2>&1 | FileCheck %s --check-prefix=CPU
// RUN: not kvc-opt %s --kvc-set-target="target=abacus" 2>&1 | FileCheck %s --check-prefix=ARCH
// RUN: not kvc-opt %s --kvc-set-target="vector-width=100" 2>&1 | FileCheck %s --check-prefix=WIDTH
// RUN: not kvc-opt %s --kvc-set-target="kv-type=q8" 2>&1 | FileCheck %s --check-prefix=KV
// RUN: not kvc-opt %s --kvc-set-target="activations=int4" 2>&1 | FileCheck %s --check-prefix=ACT
// RUN: not kvc-opt %s --kvc-set-target="ctx=33" 2>&1 | FileCheck %s --check-prefix=CTX
// RUN: not kvc-opt %s --kvc-set-target="ctx=-1" 2>&1 | FileCheck %s --check-prefix=CTX

// CHECK: kvc.model @m attributes {activations = "f32",
// V3-SAME: max_context = 32 : i64
// V3-SAME: target = #kvc.target<arch = "cpu", cpu = "x86-64-v3", features = "", vector_width = 256>
// V4-SAME: max_context = 24 : i64
// V4-SAME: target = #kvc.target<arch = "cpu", cpu = "x86-64-v4", features = "", vector_width = 512>
// ZEN-SAME: target = #kvc.target<arch = "cpu", cpu = "znver3", features = "", vector_width = 256>
// BASE-SAME: target = #kvc.target<arch = "cpu", cpu = "x86-64", features = "", vector_width = 128>
// WIDE-SAME: target = #kvc.target<arch = "cpu", cpu = "x86-64-v3", features = "", vector_width = 512>
// TWICE: cpu = "znver3"
// NATIVE: activations = "int8"
// NATIVE-NOT: cpu = "native"
// NATIVE-NOT: +amx
// CPU: error: 'kvc.model' op target-cpu 'x86-64-v9' is not a processor LLVM knows for {{.*}}
// ARCH: error: 'kvc.model' op target 'abacus' is not known; the target is cpu
// WIDTH: error: 'kvc.model' op vector-width is 128, 256, 512 or 1024, found 100
// KV: error: 'kvc.model' op kv-type is f32, f16 or bf16, found 'q8'
// ACT: error: 'kvc.model' op activations is f32, bf16 or int8, found 'int4'
// CTX: error: 'kvc.model' op ctx must be from 1 to the 32 positions the model was made for, found
kvc.model @m attributes {max_context = 32 : i64} {
  // CHECK: kvc.cache @kv {{.*}}type = bf16, page = 16
  // TWICE: kvc.cache @kv {{.*}}type = f32
  // NATIVE: kvc.cache @kv {{.*}}type = f16
  kvc.cache @kv : !kvc.cache<layers = 2, kv_heads = 1, head_dim = 8, type = f16, page = 16, split = 32>
}
