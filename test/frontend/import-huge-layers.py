# REQUIRES: kvc-translate
# RUN: %python %s %t.gguf
# RUN: not kvc-translate --import-gguf %t.gguf -o %t.mlir 2>&1 | FileCheck %s
# CHECK: {{^}}kvc: {{.*}}.gguf: key 'llama.block_count': found 4294967295, rule: 1 to 4096
import sys

from llamafile import llama

llama(keys={"llama.block_count": 2**32 - 1}).write(sys.argv[1])
