# REQUIRES: kvc-translate
# RUN: %python %s %t.gguf
# RUN: not kvc-translate --import-gguf %t.gguf -o %t.mlir 2>&1 | FileCheck %s
# CHECK: {{^}}kvc: {{.*}}.gguf: tensor 'blk.0.ffn_down.weight': found shape [64 x 96], rule: shape [96 x 64]
import sys

from ggufwriter import F32
from llamafile import llama

llama(tensors={"blk.0.ffn_down.weight": ([64, 96], F32)}).write(sys.argv[1])
