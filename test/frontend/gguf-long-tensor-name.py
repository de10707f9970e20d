# REQUIRES: kvc-translate
# RUN: %python %s %t.gguf
# RUN: not kvc-translate --import-gguf %t.gguf -o %t.mlir 2>&1 | FileCheck %s
# CHECK: gguf: tensor 0 of 1: found the name 'nnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnn' of 64 bytes, rule: names have at most 63
import sys

from ggufwriter import F32, Gguf

model = Gguf().key("general.architecture", "llama")
model.tensor("n" * 64, [4], F32).write(sys.argv[1])
