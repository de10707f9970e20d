# REQUIRES: kvc-translate
# RUN: %python %s %t.gguf
# RUN: not kvc-translate --import-gguf %t.gguf -o %t.mlir 2>&1 | FileCheck %s
# CHECK: gguf: key 'a': found an array of arrays, rule: arrays are not nested
import sys

from ggufwriter import ARRAY, U32, Gguf, array, u32, u64

payload = u32(ARRAY) + u64(1) + array([1], U32)
Gguf().raw_key("a", ARRAY, payload).write(sys.argv[1])
