# REQUIRES: kvc-translate
# RUN: %python %s %t.gguf
# RUN: not kvc-translate --import-gguf %t.gguf -o %t.mlir 2>&1 | FileCheck %s
# CHECK: gguf: key 'tokenizer.ggml.tokens': found 10 bytes to the end of the file, rule: an array of 4000000000 string takes at least 8 bytes each
import sys

from ggufwriter import ARRAY, STRING, Gguf, string, u32, u64

payload = u32(STRING) + u64(4_000_000_000) + string("ab")
model = Gguf(alignment=1).raw_key("tokenizer.ggml.tokens", ARRAY, payload)
model.write(sys.argv[1])
