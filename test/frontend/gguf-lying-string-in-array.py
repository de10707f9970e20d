# REQUIRES: kvc-translate
# RUN: %python %s %t.gguf
# RUN: not kvc-translate --import-gguf %t.gguf -o %t.mlir 2>&1 | FileCheck %s
# CHECK: gguf: key 'a': found 2 bytes to the end of the file, rule: string 1 of the array takes 200 bytes
import sys

from ggufwriter import ARRAY, STRING, Gguf, string, u32, u64

payload = u32(STRING) + u64(2) + string("ab") + u64(200) + b"cd"
Gguf(alignment=1).raw_key("a", ARRAY, payload).write(sys.argv[1])
