# REQUIRES: kvc-translate
# RUN: %python %s %t.gguf
# RUN: not kvc-translate --import-gguf %t.gguf -o %t.mlir 2>&1 | FileCheck %s
# CHECK: gguf: metadata entry 0 of 1: found an empty key, rule: keys have at least one byte
import sys

from ggufwriter import Gguf

Gguf().key("", 1).write(sys.argv[1])
