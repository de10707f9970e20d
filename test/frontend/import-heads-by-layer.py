# REQUIRES: kvc-translate
# RUN: %python %s %t.gguf
# RUN: not kvc-translate --import-gguf %t.gguf -o %t.mlir 2>&1 | FileCheck %s
# CHECK: {{^}}kvc: {{.*}}.gguf: key 'llama.attention.head_count_kv': found 2 in layer 0 and 4 in layer 1, rule: every layer has the same size
import sys

from llamafile import llama

llama(keys={"llama.attention.head_count_kv": [2, 4]}).write(sys.argv[1])
