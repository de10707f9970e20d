#!/usr/bin/env python3
"""The same models by PyTorch on the same card: what kvc is measured against.

bf16 weights and cache, fused qkv and gate/up products, RMSNorm, rotary,
scaled_dot_product_attention over a static cache (a key head's query heads as
the rows of one tile when decoding), greedy choice on the device, one CUDA graph
a step. Modes: `graph` launches PyTorch's own kernels; `compile` has
torch.compile fuse a layer (the same code for all layers), with its
memory-bound matrix-vector products where one sequence decodes. Contexts are
fixed at the length given, with nothing to read back between steps: the best
case for the peer.
"""
import argparse
import json
import math
import statistics
import sys
import time

import common
import torch
import torch.nn.functional as F


class Model:
    """Random weights in a model's shape."""

    def __init__(self, spec, device, layers=None):
        self.hidden, self.vocab, self.ffn = spec["hidden"], spec["vocab"], spec["ffn"]
        self.heads, self.kv_heads = spec["heads"], spec.get("kv_heads", spec["heads"])
        self.dim = spec.get("head_dim", self.hidden // self.heads)
        self.layers = layers or spec["layers"]
        self.eps = spec["norm"]["eps"]
        self.theta = spec["positions"]["rotary"]["theta"]
        self.device = device

        def weight(*shape):
            return torch.empty(*shape, device=device, dtype=torch.bfloat16).uniform_(-1 / 32, 1 / 32)

        rows = (self.heads + 2 * self.kv_heads) * self.dim
        self.blocks = [(weight(self.hidden), weight(rows, self.hidden), weight(self.hidden, self.heads * self.dim),
                        weight(self.hidden), weight(2 * self.ffn, self.hidden), weight(self.hidden, self.ffn))
                       for _ in range(self.layers)]
        self.embedding = weight(self.vocab, self.hidden)
        self.head = self.embedding if spec["tied"] else weight(self.vocab, self.hidden)
        self.norm = weight(self.hidden)

    def rotary(self, positions):
        """cos and sin, [rows, 1, dim] each."""
        steps = torch.arange(0, self.dim, 2, device=self.device, dtype=torch.float32) / self.dim
        angles = positions.float()[:, None] * (self.theta ** -steps)[None, :]
        angles = torch.cat((angles, angles), dim=1)[:, None, :]
        return angles.cos().to(torch.bfloat16), angles.sin().to(torch.bfloat16)


def turn(x, cos, sin):
    half = x.shape[-1] // 2
    return x * cos + torch.cat((-x[..., half:], x[..., :half]), dim=-1) * sin


def make_layer(model, batch, rows, whole):
    """A function of one layer: residual h and what is still to be added to it, as they go in and come out, so that
    the addition fuses with the norm after it. `whole`: rows of one prompt, from position 0; else one row a sequence."""
    heads, kv_heads, dim, hidden, eps = model.heads, model.kv_heads, model.dim, model.hidden, model.eps
    group = heads // kv_heads

    def layer(h, delta, norm1, w_qkv, w_out, norm2, w_gate_up, w_down, keys, values, position, cos, sin):
        h = h + delta
        qkv = F.linear(F.rms_norm(h, (hidden,), norm1, eps), w_qkv).view(rows, heads + 2 * kv_heads, dim)
        q, k, v = qkv.split((heads, kv_heads, kv_heads), dim=1)
        q, k = turn(q, cos, sin), turn(k, cos, sin)
        if whole:
            length = rows // batch
            q, k, v = (x.view(batch, length, -1, dim).transpose(1, 2) for x in (q, k, v))
            keys[:, :, :length] = k
            values[:, :, :length] = v
            out = F.scaled_dot_product_attention(q, k, v, is_causal=True, enable_gqa=True)
            out = out.transpose(1, 2).reshape(rows, heads * dim)
        else:
            keys[:, :, position] = k[:, :, None]
            values[:, :, position] = v[:, :, None]
            out = F.scaled_dot_product_attention(q.reshape(batch, kv_heads, group, dim), keys, values)
            out = out.reshape(rows, heads * dim)
        h = h + F.linear(out, w_out)
        gate, up = F.linear(F.rms_norm(h, (hidden,), norm2, eps), w_gate_up).chunk(2, dim=1)
        return h, F.linear(F.silu(gate) * up, w_down)

    return layer


def make_tail(model):
    """What follows the layers, for the rows whose token is wanted."""

    def tail(h, norm, head):
        return F.linear(F.rms_norm(h, (model.hidden,), norm, model.eps), head).argmax(dim=1)

    return tail


class Step:
    """One step of a batch: decoding at a fixed context, or a prompt as a whole."""

    def __init__(self, model, batch, context, whole, compiled):
        rows = batch * context if whole else batch
        self.model, self.batch, self.rows, self.whole = model, batch, rows, whole
        device = model.device
        shape = (model.layers, batch, model.kv_heads, context, model.dim)
        self.keys, self.values = (torch.randn(shape, device=device, dtype=torch.bfloat16) for _ in range(2))
        self.tokens = torch.randint(0, model.vocab, (rows,), device=device)
        self.position = torch.tensor([context - 1], device=device)
        positions = torch.arange(context, device=device).repeat(batch) if whole else self.position.repeat(batch)
        self.cos, self.sin = model.rotary(positions)
        self.layer, self.tail = make_layer(model, batch, rows, whole), make_tail(model)
        if compiled:
            self.layer, self.tail = (torch.compile(function, fullgraph=True, dynamic=False)
                                     for function in (self.layer, self.tail))

    def run(self):
        model = self.model
        h = F.embedding(self.tokens, model.embedding)
        delta = torch.zeros_like(h)
        for index, weights in enumerate(model.blocks):
            h, delta = self.layer(h, delta, *weights, self.keys[index], self.values[index], self.position, self.cos,
                                  self.sin)
        h = h + delta
        if self.whole:
            h = h[self.rows // self.batch - 1::self.rows // self.batch]
        chosen = self.tail(h, model.norm, model.head)
        if not self.whole:
            self.tokens.copy_(chosen)
        return chosen


def measure(step, repeats, device):
    """Seconds of each replay of the step's graph (of each run, without a GPU)."""
    with torch.no_grad():
        if device == "cpu":
            step.run()
            times = []
            for _ in range(repeats):
                start = time.perf_counter()
                step.run()
                times.append(time.perf_counter() - start)
            return times
        stream = torch.cuda.Stream()
        with torch.cuda.stream(stream):
            for _ in range(3):
                step.run()
        torch.cuda.synchronize()
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph):
            step.run()
        for _ in range(5):
            graph.replay()
        events = [torch.cuda.Event(enable_timing=True) for _ in range(repeats + 1)]
        torch.cuda.synchronize()
        events[0].record()
        for event in events[1:]:
            graph.replay()
            event.record()
        torch.cuda.synchronize()
        return [a.elapsed_time(b) * 1e-3 for a, b in zip(events, events[1:])]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--spec", required=True)
    parser.add_argument("--output", required=True)
    parser.add_argument("--mode", choices=("graph", "compile"), default="graph")
    parser.add_argument("--cases", default="decode:1:576,decode:8:576,decode:64:544,prefill:1:2048",
                        help="decode:BATCH:CONTEXT or prefill:BATCH:TOKENS (default: %(default)s)")
    parser.add_argument("--device", default="cuda")
    parser.add_argument("--layers", type=int, help="fewer layers, for a dry run")
    args = parser.parse_args()
    results = common.Results(args.output)
    with open(args.spec, encoding="utf-8") as file:
        spec = json.load(file)
    if args.device == "cuda" and not torch.cuda.is_available():
        results.fail("peer", "PyTorch sees no GPU")
        return 1
    results.set("torch", torch.__version__)
    model = Model(spec, args.device, args.layers)
    for case in args.cases.split(","):
        phase, batch, context = case.split(":")
        batch, context, whole = int(batch), int(context), phase == "prefill"
        started = time.monotonic()
        try:
            if args.mode == "compile":
                from torch import _dynamo as dynamo
                from torch._inductor import config as inductor
                dynamo.reset()
                # With this set, Inductor writes matrix-vector products itself and tunes them.
                inductor.coordinate_descent_tuning = batch == 1 and not whole
            step = Step(model, batch, context, whole, args.mode == "compile")
            times = measure(step, (8 if whole else 64) if args.device == "cuda" else 2, args.device)
            median = statistics.median(times)
            if not math.isfinite(median) or median <= 0:
                raise ValueError(f"a step took {median} s")
            results.set(case, {"us": median * 1e6, "fastest_us": min(times) * 1e6,
                               "tokens_per_s": (batch * context if whole else batch) / median,
                               "prepared_s": time.monotonic() - started})
            common.note(f"peer {args.mode} {case}: {median * 1e6:.0f} us")
        except Exception as error:  # a case that fails must not cost the others
            results.fail(f"peer {args.mode} {case}", f"{type(error).__name__}: {error}".replace("\n", " ")[:300])
        step = None
        if args.device == "cuda":
            torch.cuda.empty_cache()
    return 0


if __name__ == "__main__":
    sys.exit(main())
