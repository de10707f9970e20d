# REQUIRES: kvc-translate
# RUN: %python %s %t.gguf
# RUN: not kvc-translate --import-gguf %t.gguf -o %t.mlir 2>&1 | FileCheck %s
# CHECK: gguf: header: found 18446744073709551615 metadata entries, rule: the 40 bytes left hold at most 2
import sys

from ggufwriter import Gguf

model = Gguf().key("general.architecture", "llama")
model.key_count = 2**64 - 1
open(sys.argv[1], "wb").write(model.bytes()[:64])
