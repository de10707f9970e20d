# REQUIRES: kvc-translate
# RUN: %python %s %t.gguf
# RUN: not kvc-translate --import-gguf %t.gguf -o %t.mlir 2>&1 | FileCheck %s
# CHECK: {{^}}kvc: {{.*}}.gguf: tensor 'blk.1.attn_k.bias': 
import sys

from llamafile import llama

llama(tensors={"blk.0.attn_k.bias": ([32], (0, 1, 4))}).write(sys.argv[1])
