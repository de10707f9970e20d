# REQUIRES: kvc-translate
# RUN: %python %s %t.gguf
# RUN: not kvc-translate --import-gguf %t.gguf -o %t.mlir 2>&1 | FileCheck %s
# CHECK: {{^}}kvc: {{.*}}.gguf: key 'llama.rope.dimension_count': found 17, rule: an even number up to the head's 16
import sys

from llamafile import llama

llama(keys={"llama.rope.dimension_count": 17}).write(sys.argv[1])
