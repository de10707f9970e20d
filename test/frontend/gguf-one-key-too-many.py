# REQUIRES: kvc-translate
# RUN: %python %s %t.gguf
# RUN: not kvc-translate --import-gguf %t.gguf -o %t.mlir 2>&1 | FileCheck %s
# CHECK: gguf: metadata entry 1 of 2: found an empty key, rule: keys have at least one byte
import sys

from ggufwriter import Gguf

# The entry that is not there is read from the padding.
model = Gguf(alignment=64).key("general.architecture", "llama")
model.key_count = 2
model.write(sys.argv[1])
