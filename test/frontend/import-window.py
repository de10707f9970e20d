# REQUIRES: kvc-translate
# RUN: %python %s %t.gguf
# RUN: not kvc-translate --import-gguf %t.gguf -o %t.mlir 2>&1 | FileCheck %s
# CHECK: {{^}}kvc: {{.*}}.gguf: key 'llama.attention.sliding_window': found a value that changes the model
import sys

from llamafile import llama

llama(keys={"llama.attention.sliding_window": 128}).write(sys.argv[1])
