# REQUIRES: kvc-translate
# RUN: %python %s %t.gguf
# RUN: not kvc-translate --import-gguf %t.gguf -o %t.mlir 2>&1 | FileCheck %s
# CHECK: gguf: tensor 'abcdefghijklmnopqrs': found 7 bytes to the end of the file, rule: the tensor's offset takes 8 bytes
import sys

from ggufwriter import F32, Gguf

model = Gguf(alignment=1).tensor("abcdefghijklmnopqrs", [1, 1], F32)
open(sys.argv[1], "wb").write(model.bytes()[:-5])
