# REQUIRES: kvc-translate
# RUN: %python %s %t.gguf
# RUN: not kvc-translate --import-gguf %t.gguf -o %t.mlir 2>&1 | FileCheck %s
# CHECK: gguf: tensor 'a': found dimensions [48, 2], rule: the first dimension of q4_0 is a multiple of 32
import sys

from ggufwriter import Q4_0, Gguf

# 96 values are three blocks, but a row may not end inside one.
model = Gguf().key("general.architecture", "llama")
model.tensor("a", [48, 2], Q4_0).write(sys.argv[1])
