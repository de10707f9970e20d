# REQUIRES: kvc-translate
# RUN: %python %s %t.gguf
# RUN: not kvc-translate --import-gguf %t.gguf -o %t.mlir 2>&1 | FileCheck %s
# CHECK: gguf: tensor 'a': found dimension 0 = 18446744073709551615, rule: dimensions are positive and fit 63 bits
import sys

from ggufwriter import F32, Gguf

model = Gguf().key("general.architecture", "llama")
model.raw_tensor("a", [2**64 - 1], F32[0]).write(sys.argv[1])
