# REQUIRES: kvc-translate
# RUN: %python %s %t.gguf
# RUN: not kvc-translate --import-gguf %t.gguf -o %t.mlir 2>&1 | FileCheck %s
# CHECK: gguf: tensor 'a': found dimension 1 = 0, rule: dimensions are positive and fit 63 bits
import sys

from ggufwriter import F32, Gguf

model = Gguf().key("general.architecture", "llama")
model.tensor("a", [4, 0], F32).write(sys.argv[1])
