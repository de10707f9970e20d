# REQUIRES: kvc-translate
# RUN: %python %s linear %t.gguf && kvc-translate --import-gguf %t.gguf | FileCheck %s --check-prefix=LINEAR
# RUN: %python %s yarn %t.gguf && kvc-translate --import-gguf %t.gguf | FileCheck %s --check-prefix=YARN
# RUN: %python %s longrope %t.gguf && not kvc-translate --import-gguf %t.gguf 2>&1 | FileCheck %s --check-prefix=OTHER
import sys

from llamafile import llama

keys = {
    "llama.rope.freq_base": 10000.0,
    "llama.rope.scaling.type": sys.argv[1],
    "llama.rope.scaling.factor": 4.0,
    "llama.rope.scaling.original_context_length": 64,
}
llama(keys=keys).write(sys.argv[2])

# A quarter of 1, 10^-0.5, 10^-1, ...
# LINEAR: #kvc.reals<[2.500000e-01, 0.079056941504
# LINEAR-NOT: scale = 1.1
# By the paper's formula: pairs below 0 turns kept, above the fourth divided.
# YARN: #kvc.reals<[1.000000e+00, 0.2371708245
# YARN-SAME: scale = 1.1386294361
# OTHER: key 'llama.rope.scaling.type': found 'longrope', rule: none, linear or yarn
