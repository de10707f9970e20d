# REQUIRES: kvc-translate
# RUN: %python %s %t.gguf
# RUN: not kvc-translate --import-gguf %t.gguf -o %t.mlir 2>&1 | FileCheck %s
# CHECK: gguf: key 'general.alignment': found 0, rule: the alignment is a power of two and a multiple of 8
import sys

from ggufwriter import Gguf

Gguf().key("general.alignment", 0).write(sys.argv[1])
