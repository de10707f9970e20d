# REQUIRES: kvc-translate
# RUN: %python %s %t.gguf
# RUN: kvc-translate --import-gguf %t.gguf | FileCheck %s
# CHECK: kvc.cache_append {{.*}}tensor<?x1x16xf32
# CHECK: kvc.linear {{.*}}, [@token_embd] : {{.*}}#kvc.outputs
import sys

from ggufwriter import F32
from llamafile import HIDDEN, llama

# No output.weight: the embedding is the head. One kv head; sizes as arrays.
llama(
    keys={"llama.attention.head_count_kv": [1, 1], "llama.attention.head_count": [4, 4]},
    tensors={f"blk.{n}.attn_{x}.weight": ([HIDDEN, 16], F32) for n in (0, 1) for x in "kv"},
).write(sys.argv[1])
