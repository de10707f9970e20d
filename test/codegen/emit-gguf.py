# REQUIRES: kvc-opt, kvc-translate
# RUN: rm -rf %t && mkdir -p %t
# RUN: %python %s %t/model.gguf 0
# RUN: cd %t && kvc-translate --import-gguf model.gguf -o model.mlir
# RUN: kvc-opt --kvc-pipeline="target-cpu=x86-64-v3" %t/model.mlir -o %t/l4.mlir
# A relative path is looked for beside the IR.
# RUN: kvc-translate --kvc-to-weights %t/l4.mlir -o %t/w && test -s %t/w
# Same bytes, other places: the header tells.
# RUN: %python %s %t/model.gguf 1
# RUN: not kvc-translate --kvc-to-weights %t/l4.mlir -o %t/again 2>&1 | FileCheck %s --check-prefix=HEADER
# RUN: %python %s %t/model.gguf 2
# RUN: not kvc-translate --kvc-to-executable %t/l4.mlir -o %t/again 2>&1 | FileCheck %s --check-prefix=SIZE
# RUN: rm %t/model.gguf
# RUN: not kvc-translate --kvc-to-object %t/l4.mlir -o %t/again 2>&1 | FileCheck %s --check-prefix=GONE
# Nothing half-written.
# RUN: ls %t | FileCheck %s --check-prefix=FILES
import sys

from ggufwriter import F32
from llamafile import llama

path, change = sys.argv[1:]
keys = [{}, {"general.name": "B tiny Model"}, {"general.name": "A tiny Model, and longer by a block"}]
llama(keys=keys[int(change)]).write(path)

# HEADER: kvc: {{.*}}l4.mlir: {{.*}}model.gguf: found another header, rule: {{.*}}; the file has changed since it was imported
# SIZE: kvc: {{.*}}l4.mlir: {{.*}}model.gguf: found {{[0-9]+}} bytes, rule: {{[0-9]+}} bytes; the file has changed
# GONE: model.gguf: {{.*}}o such file
# FILES: l4.mlir
# FILES-NEXT: model.mlir
# FILES-NEXT: w
# FILES-NOT: {{.}}
