# REQUIRES: kvc-translate
# RUN: %python %s %t.gguf
# RUN: not kvc-translate --import-gguf %t.gguf -o %t.mlir 2>&1 | FileCheck %s
# CHECK: {{^}}kvc: {{.*}}.gguf: key 'general.quantization_version': found 1, rule: 2
import sys

from llamafile import llama

llama(keys={"general.quantization_version": 1}).write(sys.argv[1])
