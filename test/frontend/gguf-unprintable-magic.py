# REQUIRES: kvc-translate
# RUN: %python %s %t.gguf
# RUN: not kvc-translate --import-gguf %t.gguf -o %t.mlir 2>&1 | FileCheck %s
# CHECK: gguf: header: found the magic number '\x7fELF', rule: a GGUF file starts with 'GGUF'
import sys

from ggufwriter import Gguf

Gguf(magic=b"\x7fELF").write(sys.argv[1])
