# REQUIRES: kvc-translate
# RUN: %python %s %t.gguf
# RUN: not kvc-translate --import-gguf %t.gguf -o %t.mlir 2>&1 | FileCheck %s
# CHECK: gguf: key 'llama.block_count': found the key again, as metadata entry 1, rule: every key is there once
import sys

from ggufwriter import Gguf

Gguf().key("llama.block_count", 1).key("llama.block_count", 2).write(sys.argv[1])
