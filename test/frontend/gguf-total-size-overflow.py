# REQUIRES: kvc-translate
# RUN: %python %s %t.gguf
# RUN: not kvc-translate --import-gguf %t.gguf -o %t.mlir 2>&1 | FileCheck %s
# CHECK: gguf: tensor 'b': found a size of 4611686018427387904 bytes at offset 4611686018427387904, rule: the data of all tensors fits 63 bits
import sys

from ggufwriter import F32, Gguf

model = Gguf().key("general.architecture", "llama")
model.raw_tensor("a", [2**60], F32[0])
model.raw_tensor("b", [2**60], F32[0], offset=2**62).write(sys.argv[1])
