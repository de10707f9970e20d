# REQUIRES: kvc-translate
# RUN: %python %s %t.gguf
# RUN: not kvc-translate --import-gguf %t.gguf -o %t.mlir 2>&1 | FileCheck %s
# CHECK: gguf: metadata entry 0 of 1: found 32 bytes to the end of the file, rule: the key takes 18446744073709551615 bytes
import sys

from ggufwriter import Gguf, u64

model = Gguf()
model.keys.append(u64(2**64 - 1) + b"general.architecture")
open(sys.argv[1], "wb").write(model.bytes()[:52].ljust(64, b"\0"))
