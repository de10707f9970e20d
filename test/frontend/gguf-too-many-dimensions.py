# REQUIRES: kvc-translate
# RUN: %python %s %t.gguf
# RUN: not kvc-translate --import-gguf %t.gguf -o %t.mlir 2>&1 | FileCheck %s
# CHECK: gguf: tensor 'a': found 4294967295 dimensions, rule: a tensor has at most 4
import sys

from ggufwriter import F32, Gguf

model = Gguf().key("general.architecture", "llama")
model.raw_tensor("a", [4], F32[0], rank=2**32 - 1).write(sys.argv[1])
