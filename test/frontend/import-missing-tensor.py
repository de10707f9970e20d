# REQUIRES: kvc-translate
# RUN: %python %s %t.gguf
# RUN: not kvc-translate --import-gguf %t.gguf -o %t.mlir 2>&1 | FileCheck %s
# CHECK: {{^}}kvc: {{.*}}.gguf: tensor 'blk.1.attn_v.weight': 
import sys

from llamafile import llama

llama(without=["blk.1.attn_v.weight"]).write(sys.argv[1])
