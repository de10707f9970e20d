# REQUIRES: kvc-translate
# RUN: %python %s %t.gguf
# RUN: not kvc-translate --import-gguf %t.gguf -o %t.mlir 2>&1 | FileCheck %s
# CHECK: gguf: key 'a': found the bool 2, rule: a bool is 0 or 1
import sys

from ggufwriter import BOOL, Gguf

Gguf().raw_key("a", BOOL, b"\2").write(sys.argv[1])
