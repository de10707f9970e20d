# REQUIRES: kvc-translate
# RUN: %python %s %t.gguf
# RUN: not kvc-translate --import-gguf %t.gguf -o %t.mlir 2>&1 | FileCheck %s
# CHECK: gguf: tensor 'a': found dimensions [4611686018427387905], rule: the size in f32 fits 63 bits
import sys

from ggufwriter import F32, Gguf

# Four bytes each: the size wraps around to 4.
model = Gguf().key("general.architecture", "llama")
model.raw_tensor("a", [2**62 + 1], F32[0]).write(sys.argv[1])
