# REQUIRES: kvc-translate
# RUN: %python %s %t.gguf
# RUN: not kvc-translate --import-gguf %t.gguf -o %t.mlir 2>&1 | FileCheck %s
# CHECK: {{^}}kvc: {{.*}}.gguf: key 'general.architecture': found 'qwen2', rule: 'llama', the architecture that kvc knows
import sys

from llamafile import llama

llama(keys={"general.architecture": "qwen2"}).write(sys.argv[1])
