# REQUIRES: kvc-translate
# RUN: %python %s %t.gguf
# RUN: not kvc-translate --import-gguf %t.gguf -o %t.mlir 2>&1 | FileCheck %s
# CHECK: {{^}}kvc: {{.*}}.gguf: key 'llama.vocab_size': found 41, rule: equals the rows of token_embd.weight, which are 40
import sys

from llamafile import llama

llama(keys={"llama.vocab_size": 41}).write(sys.argv[1])
