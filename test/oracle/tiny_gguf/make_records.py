#!/usr/bin/env python3
"""Makes the records of the tiny GGUF models by a numpy forward in float64.

PyPI's `gguf` reads the file and dequantises the blocks; the forward below is
written for these records alone, straight from the definition, in GGUF's own
row order (rotary pairs 2i, 2i + 1). Where transformers loads the file, it runs
too, in float64 (its rotary angles stay float32) with its own reordering of q
and k, and the largest difference is printed. transformers ignores the biases,
rope_freqs and linear scaling of a llama file; with --llama-logits, the tool
that bench/kl builds, llama.cpp runs a variant of each model whose weights are
all float32, because it would quantise the activations of the others.
"""
import argparse
import os
import subprocess
import sys
import tempfile

import gguf
import numpy as np

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.dirname(HERE))
import record  # noqa: E402
import tiny_gguf  # noqa: E402

PROMPT, FORCED = 30, 12


class Model:
    """Weights and sizes from a GGUF file of arch llama."""

    def __init__(self, path):
        reader = gguf.GGUFReader(path)
        self.key = {name: field.contents() for name, field in reader.fields.items()}
        self.weights = {}
        for tensor in reader.tensors:
            shape = tuple(int(extent) for extent in reversed(tensor.shape))
            values = gguf.dequantize(tensor.data, tensor.tensor_type)
            self.weights[tensor.name] = np.asarray(values, dtype=np.float64).reshape(shape)
        self.layers = self.key["llama.block_count"]
        self.heads = self.key["llama.attention.head_count"]
        self.kv_heads = self.key["llama.attention.head_count_kv"]
        self.head_dim = self.key["llama.attention.key_length"]
        self.eps = self.key["llama.attention.layer_norm_rms_epsilon"]
        self.vocab = len(self.key["tokenizer.ggml.tokens"])
        dims = self.key["llama.rope.dimension_count"]
        self.rates = self.key["llama.rope.freq_base"] ** (-np.arange(0, dims, 2) / dims)
        if self.key.get("llama.rope.scaling.type") == "linear":
            self.rates /= self.key["llama.rope.scaling.factor"]
        if "rope_freqs.weight" in self.weights:
            self.rates /= self.weights["rope_freqs.weight"]

    def linear(self, name, x):
        y = x @ self.weights[f"{name}.weight"].T
        bias = self.weights.get(f"{name}.bias")
        return y if bias is None else y + bias

    def norm(self, name, x):
        return x / np.sqrt((x * x).mean(axis=-1, keepdims=True) + self.eps) * self.weights[f"{name}.weight"]

    def rotate(self, x):
        """x: [tokens, heads, head_dim]."""
        angle = np.arange(len(x))[:, None, None] * self.rates
        out, dims = x.copy(), 2 * len(self.rates)
        even, odd = x[..., 0:dims:2], x[..., 1:dims:2]
        out[..., 0:dims:2] = even * np.cos(angle) - odd * np.sin(angle)
        out[..., 1:dims:2] = even * np.sin(angle) + odd * np.cos(angle)
        return out

    def attention(self, layer, x):
        tokens, group = len(x), self.heads // self.kv_heads
        q = self.rotate(self.linear(f"blk.{layer}.attn_q", x).reshape(tokens, self.heads, -1))
        k = self.rotate(self.linear(f"blk.{layer}.attn_k", x).reshape(tokens, self.kv_heads, -1))
        v = self.linear(f"blk.{layer}.attn_v", x).reshape(tokens, self.kv_heads, -1)
        out = np.empty_like(q)
        future = np.triu(np.ones((tokens, tokens), dtype=bool), 1)
        for head in range(self.heads):
            scores = q[:, head] @ k[:, head // group].T / np.sqrt(self.head_dim)
            scores[future] = -np.inf
            weights = np.exp(scores - scores.max(axis=1, keepdims=True))
            out[:, head] = weights / weights.sum(axis=1, keepdims=True) @ v[:, head // group]
        return self.linear(f"blk.{layer}.attn_output", out.reshape(tokens, -1))

    def logits(self, ids):
        """All rows of the logits."""
        x = self.weights["token_embd.weight"][ids]
        for layer in range(self.layers):
            x = x + self.attention(layer, self.norm(f"blk.{layer}.attn_norm", x))
            h = self.norm(f"blk.{layer}.ffn_norm", x)
            gate, up = self.linear(f"blk.{layer}.ffn_gate", h), self.linear(f"blk.{layer}.ffn_up", h)
            x = x + self.linear(f"blk.{layer}.ffn_down", gate / (1 + np.exp(-gate)) * up)
        return self.linear("output" if "output.weight" in self.weights else "token_embd",
                           self.norm("output_norm", x))


def transformers_logits(path, ids):
    """transformers' logits, or the reason why it does not load the file."""
    import torch
    from transformers import AutoModelForCausalLM, GgufConfig
    try:
        model = AutoModelForCausalLM.from_pretrained(os.path.dirname(path), gguf_file=os.path.basename(path),
                                                     dtype=torch.float64,
                                                     quantization_config=GgufConfig(dequantize=True))
    except Exception as error:  # whatever it raises is only reported
        return f"{type(error).__name__}: {str(error).splitlines()[0][:90]}"
    with torch.inference_mode():
        return model.eval()(torch.tensor([ids])).logits[0].numpy()


def llama_difference(tool, model, folder):
    """llama.cpp's largest difference from the forward above, as a part of the deviation."""
    path, words, out = (os.path.join(folder, name) for name in ("all-f32.gguf", "ids.txt", "logits"))
    with open(path, "wb") as file:
        file.write(tiny_gguf.make({**model, "default": "F32", "types": {}}))
    ids = [(37 * i + 5) % 250 for i in range(PROMPT + FORCED)]
    with open(words, "w", encoding="utf-8") as file:
        file.write(" ".join(map(str, ids)))
    subprocess.run([tool, path, words, "0", out, "f32", "1", "512"], check=True, stdout=subprocess.DEVNULL)
    logits = Model(path).logits(ids)
    return np.abs(np.fromfile(out, dtype="<f4").reshape(logits.shape) - logits).max() / logits.std()


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("names", nargs="*", help="models of tiny_gguf.py; all without")
    parser.add_argument("-o", "--output", default=HERE, help="folder of the records")
    parser.add_argument("--no-transformers", action="store_true", help="leave the second opinion out")
    parser.add_argument("--llama-logits", metavar="TOOL", help="ask llama.cpp too")
    args = parser.parse_args()
    names = ["numpy", "gguf"] + ([] if args.no_transformers else ["transformers", "torch"])
    print("make_records:", record.versions(*names))

    models = tiny_gguf.models()
    for name in args.names or models:
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, f"{name}.gguf")
            with open(path, "wb") as file:
                file.write(tiny_gguf.make(models[name]))
            model = Model(path)
            rng = np.random.default_rng(len(name))
            ids = rng.integers(0, model.vocab - 2, PROMPT + FORCED).tolist()
            logits = model.logits(ids[:-1])
            line = f"{name}: deviation {logits.std():.3f}"
            if not args.no_transformers:
                other = transformers_logits(path, ids[:-1])
                if isinstance(other, str):
                    line += f", transformers: {other}"
                else:
                    error = np.abs(logits - other).max() / logits.std()
                    line += f", transformers differs by {error:.1e} of the deviation"
            if args.llama_logits:
                error = llama_difference(args.llama_logits, models[name], folder)
                line += f", llama.cpp by {error:.1e} with all weights float32"
            print(line, flush=True)
        rows = logits[PROMPT - 1:]
        record.write(os.path.join(args.output, f"{name}.json"), {
            "name": name,
            "made_by": "test/oracle/tiny_gguf/make_records.py",
            "versions": record.versions("numpy", "gguf"),
            "arithmetic": "numpy float64 forward on blocks dequantised by gguf",
            "tolerance": 2e-4,
        }, [{"prompt_ids": ids[:PROMPT], "ids": ids[PROMPT:], "forced": True,
             "logits": record.encode_logits(rows)}])


if __name__ == "__main__":
    main()
