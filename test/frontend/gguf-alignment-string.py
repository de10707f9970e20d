# REQUIRES: kvc-translate
# RUN: %python %s %t.gguf
# RUN: not kvc-translate --import-gguf %t.gguf -o %t.mlir 2>&1 | FileCheck %s
# CHECK: gguf: key 'general.alignment': found a value of type string, rule: the alignment is a u32
import sys

from ggufwriter import Gguf

Gguf().key("general.alignment", "32").write(sys.argv[1])
