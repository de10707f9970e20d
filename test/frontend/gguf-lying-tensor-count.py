# REQUIRES: kvc-translate
# RUN: %python %s %t.gguf
# RUN: not kvc-translate --import-gguf %t.gguf -o %t.mlir 2>&1 | FileCheck %s
# CHECK: gguf: header: found 1099511627776 tensors, rule: the 72 bytes left hold at most 2
import sys

from ggufwriter import Gguf

model = Gguf().key("general.architecture", "llama")
model.tensor_count = 2**40
model.write(sys.argv[1])
