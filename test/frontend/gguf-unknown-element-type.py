# REQUIRES: kvc-translate
# RUN: %python %s %t.gguf
# RUN: not kvc-translate --import-gguf %t.gguf -o %t.mlir 2>&1 | FileCheck %s
# CHECK: gguf: key 'a': found type 4294967295, rule: an array's element type is a number from 0 to 12
import sys

from ggufwriter import ARRAY, Gguf, u32, u64

Gguf().raw_key("a", ARRAY, u32(2**32 - 1) + u64(0)).write(sys.argv[1])
