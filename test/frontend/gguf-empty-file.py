# REQUIRES: kvc-translate
# RUN: %python %s %t.gguf
# RUN: not kvc-translate --import-gguf %t.gguf -o %t.mlir 2>&1 | FileCheck %s
# CHECK: gguf: header: found an empty file, rule: a GGUF file starts with 'GGUF'
import sys

open(sys.argv[1], "wb").close()
