# REQUIRES: kvc-translate
# RUN: %python %s %t.gguf
# RUN: not kvc-translate --import-gguf %t.gguf -o %t.mlir 2>&1 | FileCheck %s
# CHECK: gguf: key 'a': found 3 bytes to the end of the file, rule: a string takes 9223372036854775808 bytes
import sys

from ggufwriter import STRING, Gguf, u64

# A length that is negative as a signed number.
model = Gguf(alignment=1).raw_key("a", STRING, u64(2**63) + b"abc")
model.write(sys.argv[1])
