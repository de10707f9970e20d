# REQUIRES: kvc-translate
# RUN: rm -rf %t && mkdir -p %t
# RUN: %python %s %t
# RUN: kvc-translate --import-spec %t/right.json | FileCheck %s
# RUN: not kvc-translate --import-spec %t/renamed.json 2>&1 | FileCheck %s --check-prefix=RENAMED
# RUN: not kvc-translate --import-spec %t/stranger.json 2>&1 | FileCheck %s --check-prefix=STRANGER
# RUN: not kvc-translate --import-spec %t/wider.json 2>&1 | FileCheck %s --check-prefix=WIDER
# A spec over a GGUF file: names are mapped, a fused weight is cut by rows.
import json
import sys

from ggufwriter import F32, Q8_0, Gguf

folder = sys.argv[1]
model = Gguf().key("general.architecture", "own")
model.tensor("wte", [64, 40], F32)
model.tensor("blk.0.attn_qkv.weight", [64, 192], Q8_0)
model.tensor("blk.0.attn_output.weight", [64, 64], F32)
for name in ("ffn_up", "ffn_down"):
    model.tensor(f"blk.0.{name}.weight", [64, 64], F32)
for name in ("blk.0.attn_norm", "blk.0.ffn_norm", "output_norm"):
    model.tensor(f"{name}.weight", [64], F32)
model.write(folder + "/weights.gguf")

spec = {
    "name": "own", "vocab": 40, "hidden": 64, "layers": 1, "heads": 4, "ffn": 64,
    "norm": {"kind": "layer_norm", "bias": False, "eps": 1e-5}, "activation": "gelu",
    "positions": "none", "qkv": "fused", "bias": {"qkv": False, "output": False, "ffn": False},
    "tied": True, "max_context": 128, "eos": [3, 1, 3],
    "weights": {"gguf": "weights.gguf", "names": {"token_embd.weight": "wte"}},
}  # fmt: skip


def write(name, **changes):
    with open(f"{folder}/{name}.json", "w") as file:
        json.dump({**spec, **changes}, file)


write("right")
write("renamed", weights={"gguf": "weights.gguf", "names": {"token_embd.weight": "wpe"}})
write("stranger", weights={"gguf": "weights.gguf", "names": {"token_embd.weight": "wte", "blk.1.ffn_up.weight": "x"}})
write("wider", ffn=96)

# Rows of 64 values in q8_0 take 68 bytes: 64 rows are 4352.
# CHECK: eos = array<i64: 3, 1>
# CHECK: kvc.source @file {{.*}}weights.gguf
# CHECK: kvc.weight @attn_q : !kvc.weight<1x64x64> = [#kvc.slice<@file, q8_0, [[#Q:]]>]
# CHECK: kvc.weight @attn_k : !kvc.weight<1x64x64> = [#kvc.slice<@file, q8_0, [[#Q+4352]]>]
# CHECK: kvc.weight @attn_v : !kvc.weight<1x64x64> = [#kvc.slice<@file, q8_0, [[#Q+8704]]>]
# RENAMED: weights.gguf: tensor 'wpe':
# STRANGER: stranger.json: key 'weights.names.blk.1.ffn_up.weight': found a name that the spec has no weight of
# WIDER: weights.gguf: tensor 'blk.0.ffn_up.weight': found 64 x 64, rule: 64 x 96, as {{.*}}wider.json says
