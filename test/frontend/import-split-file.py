# REQUIRES: kvc-translate
# RUN: %python %s %t.gguf
# RUN: not kvc-translate --import-gguf %t.gguf -o %t.mlir 2>&1 | FileCheck %s
# CHECK: {{^}}kvc: {{.*}}.gguf: key 'split.count': found 2, rule: a model in one file
import sys

from llamafile import llama

llama(keys={"split.count": 2}).write(sys.argv[1])
