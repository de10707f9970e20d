# REQUIRES: kvc-translate
# RUN: %python %s %t.gguf
# RUN: not kvc-translate --import-gguf %t.gguf -o %t.mlir 2>&1 | FileCheck %s
# CHECK: gguf: tensor '\x1b[2J\'; rm -rf \x00\xff': found 5 dimensions, rule: a tensor has at most 4
import sys

from ggufwriter import F32, Gguf

# What a terminal or a shell could take for more than text is escaped.
model = Gguf().key("general.architecture", "llama")
model.tensor(b"\x1b[2J'; rm -rf \0\xff", [1, 1, 1, 1, 1], F32)
model.write(sys.argv[1])
