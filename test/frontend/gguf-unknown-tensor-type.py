# REQUIRES: kvc-translate
# RUN: %python %s %t.gguf
# RUN: not kvc-translate --import-gguf %t.gguf -o %t.mlir 2>&1 | FileCheck %s
# CHECK: gguf: tensor 'a': found type 99 (unknown), rule: a weight's type is f32, f16, bf16, q4_0, q4_1, q5_0, q5_1, q8_0, q2_k, q3_k, q4_k, q5_k, q6_k, iq4_nl, iq4_xs or mxfp4
import sys

from ggufwriter import Gguf

model = Gguf().key("general.architecture", "llama")
model.raw_tensor("a", [32], 99).write(sys.argv[1])
