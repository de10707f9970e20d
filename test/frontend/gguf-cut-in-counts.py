# REQUIRES: kvc-translate
# RUN: %python %s %t.gguf
# RUN: not kvc-translate --import-gguf %t.gguf -o %t.mlir 2>&1 | FileCheck %s
# CHECK: gguf: header: found 5 bytes to the end of the file, rule: the number of metadata entries takes 8 bytes
import sys

from ggufwriter import Gguf

open(sys.argv[1], "wb").write(Gguf().bytes()[:21])
