# REQUIRES: kvc-translate
# RUN: %python %s %t.gguf
# RUN: not kvc-translate --import-gguf %t.gguf -o %t.mlir 2>&1 | FileCheck %s
# CHECK: gguf: header: found 3 bytes to the end of the file, rule: the magic number takes 4 bytes
import sys

open(sys.argv[1], "wb").write(b"GGU")
