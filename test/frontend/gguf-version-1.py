# REQUIRES: kvc-translate
# RUN: %python %s %t.gguf
# RUN: not kvc-translate --import-gguf %t.gguf -o %t.mlir 2>&1 | FileCheck %s
# CHECK: gguf: header: found version 1, rule: the version is 2 or 3, little-endian
import sys

from ggufwriter import Gguf

Gguf(version=1).write(sys.argv[1])
