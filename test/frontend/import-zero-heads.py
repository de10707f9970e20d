# REQUIRES: kvc-translate
# RUN: %python %s %t.gguf
# RUN: not kvc-translate --import-gguf %t.gguf -o %t.mlir 2>&1 | FileCheck %s
# CHECK: {{^}}kvc: {{.*}}.gguf: key 'llama.attention.head_count': found 0, rule: 1 to 16777216
import sys

from llamafile import llama

llama(keys={"llama.attention.head_count": 0}).write(sys.argv[1])
