# REQUIRES: kvc-translate
# RUN: %python %s %t.gguf
# RUN: not kvc-translate --import-gguf %t.gguf -o %t.mlir 2>&1 | FileCheck %s
# CHECK: {{^}}kvc: {{.*}}.gguf: key 'llama.attention.layer_norm_rms_epsilon': found nan, rule: 0 to 1
import sys

from llamafile import llama

llama(keys={"llama.attention.layer_norm_rms_epsilon": float("nan")}).write(sys.argv[1])
