# REQUIRES: kvc-translate
# RUN: %python %s %t.gguf
# RUN: not kvc-translate --import-gguf %t.gguf -o %t.mlir 2>&1 | FileCheck %s
# CHECK: {{^}}kvc: {{.*}}.gguf: tensor 'blk.1.ffn_up.weight': found shape [64 x 95], rule: shape [64 x 96]
import sys

from ggufwriter import F32
from llamafile import llama

llama(tensors={"blk.1.ffn_up.weight": ([64, 95], F32)}).write(sys.argv[1])
