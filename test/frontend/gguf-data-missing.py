# REQUIRES: kvc-translate
# RUN: %python %s %t.gguf
# RUN: not kvc-translate --import-gguf %t.gguf -o %t.mlir 2>&1 | FileCheck %s
# CHECK: gguf: tensor 'a': found 0 bytes of data in the file, rule: the tensor takes 1073741824 bytes at offset 0 of them
import sys

from ggufwriter import F32, Gguf

model = Gguf().key("general.architecture", "llama")
model.raw_tensor("a", [2**28], F32[0]).write(sys.argv[1])
