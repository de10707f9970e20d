# REQUIRES: kvc-translate
# RUN: %python %s %t.gguf
# RUN: not kvc-translate --import-gguf %t.gguf -o %t.mlir 2>&1 | FileCheck %s
# CHECK: gguf: tensor 'a': found dimensions [128], rule: the first dimension of q4_k is a multiple of 256
import sys

from ggufwriter import Q4_K, Gguf

model = Gguf().key("general.architecture", "llama")
model.raw_tensor("a", [128], Q4_K[0]).write(sys.argv[1])
