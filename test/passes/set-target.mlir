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
// RUN: kvc-opt %s --kvc-set-target="target=cuda" | FileCheck %s --check-prefix=CUDA
// RUN: kvc-opt %s --kvc-set-target="target=cuda target-cpu=sm_80 kv-type=bf16 activations=bf16 ptx-version=74" | FileCheck %s --check-prefix=SM80
// RUN: kvc-opt %s --kvc-set-target="target=cuda target-cpu=sm_100" | FileCheck %s --check-prefix=SM100
// RUN: not kvc-opt %s --kvc-set-target="target=cuda target-cpu=sm_75" 2>&1 | FileCheck %s --check-prefix=CHIP
// RUN: not kvc-opt %s --kvc-set-target="target=cuda target-cpu=sm_90a ptx-version=78" 2>&1 | FileCheck %s --check-prefix=OLD
// RUN: not kvc-opt %s --kvc-set-target="target=cuda ptx-version=79" 2>&1 | FileCheck %s --check-prefix=PTX
// RUN: not kvc-opt %s --kvc-set-target="target=cuda kv-type=f32" 2>&1 | FileCheck %s --check-prefix=KVF32
// RUN: not kvc-opt %s --kvc-set-target="target=cuda activations=int8" 2>&1 | FileCheck %s --check-prefix=INT8
// RUN: not kvc-opt %s --kvc-set-target="target=cuda vector-width=256" 2>&1 | FileCheck %s --check-prefix=BITS
// RUN: not kvc-opt %s --kvc-set-target="ptx-version=80" 2>&1 | FileCheck %s --check-prefix=CPUPTX
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
// ARCH: error: 'kvc.model' op target 'abacus' is not known; targets are cpu and cuda
// WIDTH: error: 'kvc.model' op vector-width is 128, 256, 512 or 1024, found 100
// KV: error: 'kvc.model' op kv-type is f32, f16 or bf16, found 'q8'
// ACT: error: 'kvc.model' op activations is f32, bf16 or int8, found 'int4'
// A GPU multiplies bf16, keeps 16-bit caches and merges splits of 64 positions.
// CUDA: kvc.model @m attributes {activations = "bf16", {{.*}}target = #kvc.target<arch = "cuda", cpu = "sm_90", features = "+ptx80", vector_width = 128>
// CUDA: type = f16, page = 64, split = 64>
// SM80: activations = "bf16", {{.*}}cpu = "sm_80", features = "+ptx74"
// SM80: type = bf16, page = 64, split = 64>
// SM100: cpu = "sm_100", features = "+ptx86"
// CHIP: error: 'kvc.model' op chip 'sm_75' is not one of sm_80, sm_89, sm_90, sm_90a, sm_100
// OLD: error: 'kvc.model' op ptx-version for sm_90a is one of 80, 81, 82, 83, 84, 85, 86, 87, 88, 90, found 78
// PTX: error: 'kvc.model' op ptx-version for sm_90 is one of 78, 80, 81, 82, 83, 84, 85, 86, 87, 88, 90, found 79
// KVF32: error: 'kvc.model' op kv-type is f16 or bf16 on cuda, found 'f32'
// INT8: error: 'kvc.model' op activations is bf16 on cuda, found 'int8'
// BITS: error: 'kvc.model' op vector-width is of the cpu target, found 256 for cuda
// CPUPTX: error: 'kvc.model' op ptx-version is of the cuda target, found 80 for cpu
// CTX: error: 'kvc.model' op ctx must be from 1 to the 32 positions the model was made for, found
kvc.model @m attributes {max_context = 32 : i64} {
  // CHECK: kvc.cache @kv {{.*}}type = bf16, page = 16
  // TWICE: kvc.cache @kv {{.*}}type = f32
  // NATIVE: kvc.cache @kv {{.*}}type = f16
  kvc.cache @kv : !kvc.cache<layers = 2, kv_heads = 1, head_dim = 8, type = f16, page = 16, split = 32>
}
