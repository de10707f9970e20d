# REQUIRES: kvc-translate
# RUN: %python %s %t.gguf
# RUN: not kvc-translate --import-gguf %t.gguf -o %t.mlir 2>&1 | FileCheck %s
# CHECK: gguf: tensor 'b': found 96 bytes of data in the file, rule: the tensor takes 64 bytes at offset 64 of them
import sys

from ggufwriter import F32, Gguf

model = Gguf().key("general.architecture", "llama")
model.tensor("a", [16], F32).tensor("b", [16], F32)
open(sys.argv[1], "wb").write(model.bytes()[:-32])
