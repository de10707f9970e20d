# REQUIRES: kvc-translate
# RUN: %python %s %t.gguf
# RUN: not kvc-translate --import-gguf %t.gguf -o %t.mlir 2>&1 | FileCheck %s
# CHECK: {{^}}kvc: {{.*}}.gguf: tensor 'blk.2.attn_norm.weight': found a tensor that is not used, rule: tensors of architecture llama with 2 layers
import sys

from llamafile import llama

llama(extra=["blk.2.attn_norm.weight"]).write(sys.argv[1])
