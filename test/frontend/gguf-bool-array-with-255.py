# REQUIRES: kvc-translate
# RUN: %python %s %t.gguf
# RUN: not kvc-translate --import-gguf %t.gguf -o %t.mlir 2>&1 | FileCheck %s
# CHECK: gguf: key 'a': found the bool 255, rule: a bool is 0 or 1
import sys

from ggufwriter import BOOL, Gguf

Gguf().key("a", [0, 1, 255], BOOL).write(sys.argv[1])
