# REQUIRES: kvc-translate
# RUN: %python %s %t.gguf
# RUN: not kvc-translate --import-gguf %t.gguf -o %t.mlir 2>&1 | FileCheck %s
# CHECK: gguf: key 'a': found 3 bytes to the end of the file, rule: a value of type u32 takes 4 bytes
import sys

from ggufwriter import Gguf

open(sys.argv[1], "wb").write(Gguf(alignment=1).key("a", 7).bytes()[:-1])
