#!/usr/bin/env python3
"""Makes the records of the small JSON specs with PyTorch in float64.

The model below is written from PyTorch's own modules (LayerNorm, RMSNorm,
Linear, gelu, silu, scaled_dot_product_attention); the weights are the seeded
float32 values of docs/SPEC_WEIGHTS.md, widened. It has no cache: every step
runs the whole sequence.
"""
import argparse
import os
import sys

import numpy as np
import torch
from torch import nn
from torch.nn import functional as F

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.dirname(HERE))
import record  # noqa: E402
import seeded  # noqa: E402

SPECS = ["tiny_causal_lm", "modular_small", "gqa_small", "mqa_learned_small", "partial_rotary_small",
         "capped_small"]


def make_norm(spec):
    width, norm = spec["hidden"], spec["norm"]
    if norm["kind"] == "layer_norm":
        return nn.LayerNorm(width, eps=norm["eps"], bias=norm["bias"])
    return nn.RMSNorm(width, eps=norm["eps"])


def rotate(x, rotary):
    """x: [heads, tokens, head_dim]; turns the first `dims` dimensions."""
    dims = rotary["dims"]
    rates = rotary["theta"] ** (-torch.arange(0, dims, 2, dtype=x.dtype) / dims)
    angle = torch.arange(x.shape[1], dtype=x.dtype)[:, None] * rates[None, :]
    turn = torch.polar(torch.ones_like(angle), angle)
    turned, rest = x[..., :dims], x[..., dims:]
    if rotary["layout"] == "half":
        pairs = torch.stack(turned.chunk(2, dim=-1), dim=-1)
    else:
        pairs = turned.unflatten(-1, (dims // 2, 2))
    out = torch.view_as_real(torch.view_as_complex(pairs.contiguous()) * turn)
    if rotary["layout"] == "half":
        out = torch.cat([out[..., 0], out[..., 1]], dim=-1)
    else:
        out = out.flatten(-2)
    return torch.cat([out, rest], dim=-1)


class Layer(nn.Module):
    def __init__(self, spec):
        super().__init__()
        self.spec = spec
        hidden, ffn, bias = spec["hidden"], spec["ffn"], spec["bias"]
        self.q_rows = spec["heads"] * spec["head_dim"]
        self.kv_rows = spec["kv_heads"] * spec["head_dim"]
        self.attn_norm, self.ffn_norm = make_norm(spec), make_norm(spec)
        if spec["qkv"] == "fused":
            self.attn_qkv = nn.Linear(hidden, self.q_rows + 2 * self.kv_rows, bias=bias["qkv"])
        else:
            self.attn_q = nn.Linear(hidden, self.q_rows, bias=bias["qkv"])
            self.attn_k = nn.Linear(hidden, self.kv_rows, bias=bias["qkv"])
            self.attn_v = nn.Linear(hidden, self.kv_rows, bias=bias["qkv"])
        self.attn_output = nn.Linear(self.q_rows, hidden, bias=bias["output"])
        self.ffn_up = nn.Linear(hidden, ffn, bias=bias["ffn"])
        if spec["activation"] == "swiglu":
            self.ffn_gate = nn.Linear(hidden, ffn, bias=bias["ffn"])
        self.ffn_down = nn.Linear(ffn, hidden, bias=bias["ffn"])

    def heads(self, x):
        return x.unflatten(-1, (-1, self.spec["head_dim"])).transpose(0, 1)

    def attention(self, x):
        if self.spec["qkv"] == "fused":
            q, k, v = self.attn_qkv(x).split([self.q_rows, self.kv_rows, self.kv_rows], dim=-1)
        else:
            q, k, v = self.attn_q(x), self.attn_k(x), self.attn_v(x)
        q, k, v = self.heads(q), self.heads(k), self.heads(v)
        if isinstance(self.spec["positions"], dict):
            rotary = self.spec["positions"]["rotary"]
            q, k = rotate(q, rotary), rotate(k, rotary)
        out = F.scaled_dot_product_attention(q[None], k[None], v[None], is_causal=True, enable_gqa=True)[0]
        return self.attn_output(out.transpose(0, 1).flatten(-2))

    def ffn(self, x):
        if self.spec["activation"] == "swiglu":
            return self.ffn_down(F.silu(self.ffn_gate(x)) * self.ffn_up(x))
        form = {"gelu": "none", "gelu_tanh": "tanh"}[self.spec["activation"]]
        return self.ffn_down(F.gelu(self.ffn_up(x), approximate=form))

    def forward(self, x):
        x = x + self.attention(self.attn_norm(x))
        return x + self.ffn(self.ffn_norm(x))


class CausalLM(nn.Module):
    def __init__(self, spec):
        super().__init__()
        self.cap = spec.get("logit_cap")
        self.token_embd = nn.Embedding(spec["vocab"], spec["hidden"])
        if spec["positions"] == "learned":
            self.position_embd = nn.Embedding(spec["max_context"], spec["hidden"])
        self.blk = nn.ModuleList(Layer(spec) for _ in range(spec["layers"]))
        self.output_norm = make_norm(spec)
        self.output = nn.Linear(spec["hidden"], spec["vocab"], bias=False)
        if spec["tied"]:
            self.output.weight = self.token_embd.weight

    def forward(self, ids):
        x = self.token_embd(ids)
        if hasattr(self, "position_embd"):
            x = x + self.position_embd(torch.arange(len(ids)))
        for layer in self.blk:
            x = layer(x)
        logits = self.output(self.output_norm(x))
        return logits if self.cap is None else self.cap * torch.tanh(logits / self.cap)


def load_model(spec):
    model = CausalLM(spec)
    state = {name: torch.from_numpy(value) for name, value in seeded.seeded_weights(spec).items()}
    if spec["tied"]:
        state["output.weight"] = state["token_embd.weight"]
    model.load_state_dict(state, strict=True)
    return model.double().eval()


def greedy(model, prompt_ids, steps):
    ids, rows = list(prompt_ids), []
    with torch.inference_mode():
        for _ in range(steps):
            rows.append(model(torch.tensor(ids))[-1].numpy())
            ids.append(int(rows[-1].argmax()))
    return ids[len(prompt_ids):], np.stack(rows)


def make_prompts(spec):
    """Lengths that lie inside, on and across pages of 64 and a split of 256."""
    vocab = spec["vocab"]
    prompts = [([10, 20, 30, 40], 8)]
    rng = np.random.default_rng(spec["weights"]["seed"])
    for length, steps in ((1, 6), (30, 12), (63, 4), (64, 2), (257, 3)):
        prompts.append((rng.integers(0, vocab, length).tolist(), steps))
    return prompts


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("specs", nargs="*", default=SPECS, help="names in test/models")
    parser.add_argument("--models", default=os.path.join(HERE, "../../models"))
    parser.add_argument("-o", "--output", default=HERE, help="folder of the records")
    args = parser.parse_args()
    torch.set_num_threads(1)
    versions = record.versions("torch", "numpy")
    print("make_tiny:", versions)
    for name in args.specs:
        spec = seeded.load_spec(os.path.join(args.models, f"{name}.json"))
        model = load_model(spec)
        sequences = []
        for prompt_ids, steps in make_prompts(spec):
            ids, logits = greedy(model, prompt_ids, steps)
            gap = record.smallest_gap(logits)
            print(f"{name}: {len(prompt_ids):4} tokens -> {ids}, closest pair {gap:.4f}, "
                  f"deviation {logits.std():.3f}")
            sequences.append({"prompt_ids": prompt_ids, "ids": ids, "logits": record.encode_logits(logits)})
        record.write(os.path.join(args.output, f"{name}.json"), {
            "name": name,
            "made_by": "test/oracle/tiny/make_tiny.py",
            "versions": versions,
            "arithmetic": "float64, float32 weights",
            "tolerance": 2e-4,
        }, sequences)


if __name__ == "__main__":
    main()
