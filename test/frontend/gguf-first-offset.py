# REQUIRES: kvc-translate
# RUN: %python %s %t.gguf
# RUN: not kvc-translate --import-gguf %t.gguf -o %t.mlir 2>&1 | FileCheck %s
# CHECK: gguf: tensor 'a': found offset 32, rule: the data follows the tensor before, at 0
import sys

from ggufwriter import F32, Gguf

model = Gguf().key("general.architecture", "llama")
model.tensor("a", [16], F32, offset=32).write(sys.argv[1])
