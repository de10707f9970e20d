# REQUIRES: kvc-translate
# RUN: %python %s %t.gguf
# RUN: not kvc-translate --import-gguf %t.gguf -o %t.mlir 2>&1 | FileCheck %s
# CHECK: gguf: tensor 'a': found dimensions [4294967296, 4294967296, 4], rule: the number of values fits 63 bits
import sys

from ggufwriter import F32, Gguf

# The product wraps around to 0.
model = Gguf().key("general.architecture", "llama")
model.raw_tensor("a", [2**32, 2**32, 4], F32[0]).write(sys.argv[1])
