# REQUIRES: kvc-translate
# RUN: %python %s %t.gguf
# RUN: not kvc-translate --import-gguf %t.gguf -o %t.mlir 2>&1 | FileCheck %s
# CHECK: {{^}}kvc: {{.*}}.gguf: key 'llama.attention.head_count_kv': found 3, rule: divides llama.attention.head_count, which is 4
import sys

from llamafile import llama

llama(keys={"llama.attention.head_count_kv": 3}).write(sys.argv[1])
