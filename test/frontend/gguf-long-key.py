# REQUIRES: kvc-translate
# RUN: %python %s %t.gguf
# RUN: not kvc-translate --import-gguf %t.gguf -o %t.mlir 2>&1 | FileCheck %s
# CHECK: gguf: metadata entry 0 of 1: found a key of 65536 bytes, rule: keys have at most 65535
import sys

from ggufwriter import Gguf

Gguf().key("k" * 65536, 1).write(sys.argv[1])
