"""JSON specs and their seeded weights, as docs/SPEC_WEIGHTS.md defines them, in numpy."""
import json

import numpy as np

MASK = (1 << 64) - 1


def fnv1a64(name):
    value = 0xCBF29CE484222325
    for byte in name.encode("utf-8"):
        value = ((value ^ byte) * 0x100000001B3) & MASK
    return value


def symmetric_uniform(name, seed, count):
    """`count` doubles in [-1, 1)."""
    with np.errstate(over="ignore"):
        index = np.arange(1, count + 1, dtype=np.uint64)
        x = np.uint64(fnv1a64(name) ^ seed) + index * np.uint64(0x9E3779B97F4A7C15)
        x = (x ^ (x >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
        x = (x ^ (x >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
        x = x ^ (x >> np.uint64(31))
    return 2.0 * ((x >> np.uint64(40)).astype(np.float64) * 2.0**-24) - 1.0


def seeded_weight(name, shape, kind, seed):
    """One weight as float32."""
    t = symmetric_uniform(name, seed, int(np.prod(shape)))
    if kind == "linear":
        value = t * np.sqrt(3.0 / shape[1])
    elif kind == "embedding":
        value = t
    elif kind == "bias":
        value = t * 0.1
    elif kind == "norm":
        value = 1.0 + 0.1 * t
    elif kind == "norm bias":
        value = 0.1 * t
    else:
        raise ValueError(f"no such kind of weight: {kind}")
    return value.astype(np.float32).reshape(shape)


def round_to_format(values, form):
    """float32 values as `form` keeps them, to nearest, ties to even."""
    if form == "f16":
        return values.astype(np.float16).astype(np.float32)
    if form == "bf16":
        bits = values.view(np.uint32)
        bits = (bits + np.uint32(0x7FFF) + (bits >> np.uint32(16) & np.uint32(1))) & np.uint32(0xFFFF0000)
        return bits.view(np.float32)
    return values


def load_spec(path):
    """The spec with its defaults filled in."""
    with open(path, encoding="utf-8") as file:
        spec = json.load(file)
    spec.setdefault("kv_heads", spec["heads"])
    spec.setdefault("head_dim", spec["hidden"] // spec["heads"])
    return spec


def weight_list(spec):
    """(name, shape, kind) of every weight of a spec."""
    hidden, ffn = spec["hidden"], spec["ffn"]
    q_rows, kv_rows = spec["heads"] * spec["head_dim"], spec["kv_heads"] * spec["head_dim"]
    result = [("token_embd.weight", (spec["vocab"], hidden), "embedding")]
    if spec["positions"] == "learned":
        result.append(("position_embd.weight", (spec["max_context"], hidden), "embedding"))

    def norm(name):
        result.append((f"{name}.weight", (hidden,), "norm"))
        if spec["norm"]["bias"]:
            result.append((f"{name}.bias", (hidden,), "norm bias"))

    def linear(name, rows, columns, bias):
        result.append((f"{name}.weight", (rows, columns), "linear"))
        if bias:
            result.append((f"{name}.bias", (rows,), "bias"))

    for n in range(spec["layers"]):
        norm(f"blk.{n}.attn_norm")
        if spec["qkv"] == "fused":
            linear(f"blk.{n}.attn_qkv", q_rows + 2 * kv_rows, hidden, spec["bias"]["qkv"])
        else:
            linear(f"blk.{n}.attn_q", q_rows, hidden, spec["bias"]["qkv"])
            linear(f"blk.{n}.attn_k", kv_rows, hidden, spec["bias"]["qkv"])
            linear(f"blk.{n}.attn_v", kv_rows, hidden, spec["bias"]["qkv"])
        linear(f"blk.{n}.attn_output", hidden, q_rows, spec["bias"]["output"])
        norm(f"blk.{n}.ffn_norm")
        linear(f"blk.{n}.ffn_up", ffn, hidden, spec["bias"]["ffn"])
        if spec["activation"] == "swiglu":
            linear(f"blk.{n}.ffn_gate", ffn, hidden, spec["bias"]["ffn"])
        linear(f"blk.{n}.ffn_down", hidden, ffn, spec["bias"]["ffn"])
    norm("output_norm")
    if not spec["tied"]:
        linear("output", spec["vocab"], hidden, False)
    return result


def seeded_weights(spec):
    """All weights of a spec by name."""
    seed, form = spec["weights"]["seed"], spec["weights"].get("format", "f32")
    return {name: round_to_format(seeded_weight(name, shape, kind, seed), form if len(shape) == 2 else "f32")
            for name, shape, kind in weight_list(spec)}
