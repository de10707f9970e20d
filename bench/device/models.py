"""The programs that are carried to the GPU: tiny models of every format, and the shapes that are measured."""
import copy
import json
import os
import sys

import common

ORACLE = os.path.join(common.REPOSITORY, "test", "oracle")
sys.path.insert(0, os.path.join(ORACLE, "tiny_gguf"))
import tiny_gguf  # noqa: E402

SPECS = ("gqa_small", "modular_small", "mqa_learned_small", "partial_rotary_small", "tiny_causal_lm")
INVARIANCE = ("gqa_small", "gqa_small_bf16", "modular_small", "mqa_learned_small", "bf16", "f16", "q4_0", "q8_0",
              "q4_k", "q6_k", "mixed", "odd", "wide_heads")
# Those with the most different kernels come first under compute-sanitizer, in case there is no time for all.
SANITIZE = ("mixed", "gqa_small", "q4_k", "modular_small", "q6_k", "wide_heads", "bf16", "q8_0", "odd", "q4_0", "f16",
            "partial_rotary_small", "q4_1", "tied", "mqa_learned_small", "llama3_bias")
SPEEDS = {"llama-3.2-1b": "llama-3.2-1b.json", "llama-3.1-8b": "llama-3.1-8b.json"}
SMOLLM2 = {"name": "smollm2_135m_shape", "vocab": 49152, "hidden": 576, "layers": 30, "heads": 9, "kv_heads": 3,
           "head_dim": 64, "ffn": 1536, "norm": {"kind": "rms_norm", "bias": False, "eps": 1e-05},
           "activation": "swiglu",
           "positions": {"rotary": {"theta": 100000.0, "dims": 64, "layout": "half"}}, "qkv": "separate",
           "bias": {"qkv": False, "output": False, "ffn": False}, "tied": True, "max_context": 2048, "eos": [],
           "weights": {"seed": 1, "format": "bf16"}}


class Model:
    """One program to be made."""

    def __init__(self, name, source, vocab, roles, chip="sm_90", options=(), spec=None, random=False):
        self.name, self.source, self.vocab, self.roles = name, source, vocab, list(roles)
        self.chip, self.options, self.spec, self.random = chip, list(options), spec, random


def read_json(path):
    with open(path, encoding="utf-8") as file:
        return json.load(file)


def roles_of(name):
    return ["check"] + ["invariance"] * (name in INVARIANCE) + ["sanitize"] * (name in SANITIZE)


def all_models(folder):
    """Every model, its source written into `folder` where it is not a file of the repository."""
    models = []

    def write(name, data):
        path = os.path.join(folder, name)
        with open(path, "wb") as file:
            file.write(data if isinstance(data, bytes) else json.dumps(data).encode())
        return path

    for name in SPECS:
        path = os.path.join(common.REPOSITORY, "test", "models", f"{name}.json")
        models.append(Model(name, path, read_json(path)["vocab"], roles_of(name)))
    spec = read_json(models[0].source)
    for form in ("f16", "bf16"):
        other = copy.deepcopy(spec)
        other["name"], other["weights"]["format"] = f"gqa_small_{form}", form
        path = write(f"gqa_small_{form}.json", other)
        models.append(Model(other["name"], path, spec["vocab"], roles_of(other["name"])))
    models.append(Model("gqa_small_kv_bf16", models[0].source, spec["vocab"], ["check"], options=["--kv-type=bf16"]))
    for name, description in tiny_gguf.models().items():
        path = write(f"{name}.gguf", tiny_gguf.make(description))
        models.append(Model(name, path, description["vocab"], roles_of(name)))
    # Code of an older chip runs here too, by the driver's own assembler.
    models.append(Model("gqa_small_sm_80", models[0].source, spec["vocab"], ["check"], chip="sm_80"))
    path = os.path.join(folder, "q4_k.gguf")
    models.append(Model("q4_k_sm_80", path, tiny_gguf.models()["q4_k"]["vocab"], ["check"], chip="sm_80"))
    path = write("smollm2_135m_shape.json", SMOLLM2)
    models.append(Model("smollm2_135m_shape", path, SMOLLM2["vocab"], ["large"], spec=SMOLLM2, random=True))
    for name, file in SPEEDS.items():
        path = os.path.join(common.REPOSITORY, "bench", "specs", file)
        spec = read_json(path)
        roles = ["speed"] + ["large"] * (name == "llama-3.2-1b")
        models.append(Model(name, path, spec["vocab"], roles, spec=spec, random=True))
    return models
