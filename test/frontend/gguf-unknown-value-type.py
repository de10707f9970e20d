# REQUIRES: kvc-translate
# RUN: %python %s %t.gguf
# RUN: not kvc-translate --import-gguf %t.gguf -o %t.mlir 2>&1 | FileCheck %s
# CHECK: gguf: key 'a': found type 13, rule: the value's type is a number from 0 to 12
import sys

from ggufwriter import Gguf

Gguf().raw_key("a", 13, bytes(8)).write(sys.argv[1])
