# REQUIRES: kvc-translate
# RUN: %python %s %t.gguf
# RUN: not kvc-translate --import-gguf %t.gguf -o %t.mlir 2>&1 | FileCheck %s
# CHECK: gguf: tensor 'a': found the name again, as tensor 1, rule: every name is there once
import sys

from ggufwriter import F32, Gguf

model = Gguf().key("general.architecture", "llama")
model.tensor("a", [4], F32).tensor("a", [4], F32).write(sys.argv[1])
