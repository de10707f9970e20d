# REQUIRES: kvc-translate
# RUN: %python %s %t.gguf
# RUN: kvc-translate --import-gguf %t.gguf -o %t.mlir
# RUN: FileCheck %s < %t.mlir
# RUN: kvc-opt %t.mlir | diff - %t.mlir
import sys

from ggufwriter import F32, Q4_0, Q8_0
from llamafile import FFN, HIDDEN, VOCAB, llama

# Formats that differ between layers, heads wider than hidden / heads, biases, an
# untied head and the divisors of llama3's scaling.
llama(
    head_dim=32,
    keys={"llama.attention.key_length": 32, "llama.attention.value_length": 32, "llama.rope.freq_base": 100.0},
    tensors={
        "output.weight": ([HIDDEN, VOCAB], Q8_0),
        "blk.0.ffn_down.weight": ([FFN, HIDDEN], Q4_0),
        "blk.0.attn_q.bias": ([128], F32),
        "blk.1.attn_q.bias": ([128], F32),
        "rope_freqs.weight": ([16], F32, b"\0\0\0\x40" * 16),
    },
).write(sys.argv[1])

# CHECK: kvc.model @a_tiny_model attributes {max_context = 256 : i64}
# CHECK-NEXT: kvc.source @file {header_digest = {{.*}}, path = "{{.*}}.gguf", size = {{[0-9]+}} : i64}
# CHECK: kvc.weight @attn_q : !kvc.weight<2x128x64> = [#kvc.slice<@file, f32, [[OFFSET:[0-9]+]]>, #kvc.slice<@file, f32,
# CHECK: kvc.weight @attn_q_b : !kvc.weight<2x128>
# CHECK: kvc.weight @ffn_down : !kvc.weight<2x64x96> = [#kvc.slice<@file, q4_0, {{[0-9]+}}>, #kvc.slice<@file, f32, {{[0-9]+}}>]
# CHECK: kvc.weight @output : !kvc.weight<1x40x64> = [#kvc.slice<@file, q8_0,
# CHECK: kvc.cache @kv : !kvc.cache<layers = 2, kv_heads = 2, head_dim = 32, type = f16, page = 64, split = 256>
# CHECK: kvc.layers 2
# CHECK: kvc.linear {{.*}}, [@attn_q][{{.*}}] bias [@attn_q_b] : {{.*}} -> tensor<?x4x32xf32, #kvc.rows>
# CHECK: kvc.rope {{.*}}inv_freq = #kvc.reals<[5.000000e-01, 0.374947104666
# CHECK-SAME: layout = #kvc.rope_layout<interleaved>
# CHECK: kvc.scores {{.*}}scale = 0.17677669529663687
# CHECK: kvc.select_rows
# CHECK-NEXT: kvc.rms_norm {{.*}}, @output_norm
# CHECK-NEXT: kvc.linear {{.*}}, [@output]
