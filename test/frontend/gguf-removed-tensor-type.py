# REQUIRES: kvc-translate
# RUN: %python %s %t.gguf
# RUN: not kvc-translate --import-gguf %t.gguf -o %t.mlir 2>&1 | FileCheck %s
# CHECK: gguf: tensor 'a': found type 4 (Q4_2, removed from the format), rule: a weight's type is f32,
import sys

from ggufwriter import Gguf

model = Gguf().key("general.architecture", "llama")
model.raw_tensor("a", [32], 4).write(sys.argv[1])
