# REQUIRES: kvc-translate
# RUN: %python %s %t.gguf
# RUN: not kvc-translate --import-gguf %t.gguf -o %t.mlir 2>&1 | FileCheck %s
# CHECK: gguf: key 'a': found 16 bytes to the end of the file, rule: an array of 2305843009213693953 u64 takes at least 8 bytes each
import sys

from ggufwriter import ARRAY, U64, Gguf, u32, u64

# 8 * length wraps around to 8.
payload = u32(U64) + u64(2**61 + 1) + bytes(16)
Gguf(alignment=1).raw_key("a", ARRAY, payload).write(sys.argv[1])
