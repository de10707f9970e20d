"""Writes the models that the passes are tested on, as L1 IR.

usage: make_inputs.py            rewrites the models beside itself
"""
import os


def generated(name, layers, shape):
    """Slices of a generated weight: vectors around 1, matrices that keep a row's size."""
    middle, half = (0.0, (3.0 / shape[-1]) ** 0.5) if len(shape) == 2 else (1.0, 0.25)
    names = [f"blk.{layer}.{name}.weight" for layer in range(layers)] if layers > 1 else [f"{name}.weight"]
    return ",\n      ".join(f'#kvc.slice<@seed, f32, 0, "{n}", [{middle!r}, {half!r}]>' for n in names)


def stored(layers, fmt, base, step):
    return ",\n      ".join(f"#kvc.slice<@file, {fmt}, {base + layer * step}>" for layer in range(layers))


class Model:
    """A Llama-like model, and its weights' formats and places. `rounded` puts
    kvc.quantize where int8 activations would be, over f32 weights."""

    def __init__(self, name, layers, hidden, heads, kv_heads, head_dim, ffn, vocab, context, file=None, tied=False,
                 fmt="f32", embd_fmt="f32", cache="f32", split=64, page=16, rope_base=10000.0, rounded=False):
        self.__dict__.update(locals())

    def text(self):
        m = self
        rows = f"tensor<?x{m.hidden}xf32, #kvc.rows>"
        outs = f"tensor<?x{m.hidden}xf32, #kvc.outputs>"
        logits = f"tensor<?x{m.vocab}xf32, #kvc.outputs>"
        q = f"tensor<?x{m.heads}x{m.head_dim}xf32, #kvc.rows>"
        kv = f"tensor<?x{m.kv_heads}x{m.head_dim}xf32, #kvc.rows>"
        scores = f"tensor<?x{m.heads}x?xf32, #kvc.rows>"
        ffn = f"tensor<?x{m.ffn}xf32, #kvc.rows>"
        freq = ", ".join(repr(m.rope_base ** (-2.0 * i / m.head_dim)) for i in range(m.head_dim // 2))
        place = [4096]

        def weight(name, layers, shape, fmt):
            dims = "x".join(str(d) for d in [layers] + shape)
            if m.file is None:
                where = generated(name, layers, shape)
            else:
                size = 1
                for d in shape:
                    size *= d
                per32 = {"q4_1": 20, "q8_0": 34, "f32": 128}[fmt]
                step = size // 32 * per32
                base = place[0]
                place[0] += step * layers
                where = stored(layers, fmt, base, step)
            return f"    kvc.weight @{name} : !kvc.weight<{dims}> = [\n      {where}]\n"

        L, H = m.layers, m.hidden
        qd, kd = m.heads * m.head_dim, m.kv_heads * m.head_dim
        weights = weight("token_embd", 1, [m.vocab, H], m.embd_fmt)
        weights += weight("attn_norm", L, [H], "f32")
        weights += weight("attn_q", L, [qd, H], m.fmt)
        weights += weight("attn_k", L, [kd, H], m.fmt)
        weights += weight("attn_v", L, [kd, H], m.fmt)
        weights += weight("attn_output", L, [H, qd], m.fmt)
        weights += weight("ffn_norm", L, [H], "f32")
        weights += weight("ffn_gate", L, [m.ffn, H], m.fmt)
        weights += weight("ffn_up", L, [m.ffn, H], m.fmt)
        weights += weight("ffn_down", L, [H, m.ffn], m.fmt)
        weights += weight("output_norm", 1, [H], "f32")
        n, c, n2, p, hn = "%n", "%c", "%n2", "%m", "%n"
        roundings = dict.fromkeys(("n", "c", "n2", "m", "head"), "")
        if m.rounded:
            for key, value, kind in (("n", "%n", rows), ("c", "%c", q), ("n2", "%n2", rows), ("m", "%m", ffn)):
                roundings[key] = f"\n        {value}q = kvc.quantize {value} : {kind}"
            roundings["head"] = f"\n      %nq = kvc.quantize %n : {outs}"
            n, c, n2, p, hn = "%nq", "%cq", "%n2q", "%mq", "%nq"
        head = "@token_embd"
        if not m.tied:
            weights += weight("output", 1, [m.vocab, H], m.fmt)
            head = "@output"
        if m.file is None:
            source = "kvc.source @seed {seed = 1 : i64}"
        else:
            source = f'kvc.source @file {{path = "{m.file}", size = {place[0]} : i64, header_digest = 1 : i64}}'
        rope = f"{{layout = #kvc.rope_layout<half>, inv_freq = #kvc.reals<[{freq}]>}}"
        return f"""// Made by make_inputs.py.
kvc.model @{m.name} attributes {{eos = array<i64: 2>, max_context = {m.context} : i64, vocab_tokens = {m.vocab} : i64}} {{
    {source}
{weights}    kvc.cache @kv : !kvc.cache<layers = {L}, kv_heads = {m.kv_heads}, head_dim = {m.head_dim}, type = {m.cache}, page = {m.page}, split = {m.split}>

    kvc.forward @forward(%tokens: tensor<?xi32, #kvc.rows>, %batch: !kvc.batch) -> {logits} {{
      %x = kvc.embed %tokens, @token_embd : (tensor<?xi32, #kvc.rows>) -> {rows}
      %y = kvc.layers {L} (%x) : ({rows}) -> {rows} {{
      ^bb0(%h: {rows}, %layer: index):
        %n = kvc.rms_norm %h, @attn_norm[%layer] {{eps = 1.0e-5 : f64}} : {rows}{roundings["n"]}
        %q = kvc.linear {n}, [@attn_q][%layer] : ({rows}) -> {q}
        %k = kvc.linear {n}, [@attn_k][%layer] : ({rows}) -> {kv}
        %v = kvc.linear {n}, [@attn_v][%layer] : ({rows}) -> {kv}
        %qr = kvc.rope %q, %batch {rope} : {q}
        %kr = kvc.rope %k, %batch {rope} : {kv}
        kvc.cache_append %kr, %v, @kv[%layer], %batch : {kv}
        %s = kvc.scores %qr, @kv[%layer], %batch {{scale = {m.head_dim ** -0.5!r} : f64}} : ({q}) -> {scores}
        %p = kvc.masked_softmax %s, %batch : {scores}
        %c = kvc.context %p, @kv[%layer], %batch : ({scores}) -> {q}{roundings["c"]}
        %o = kvc.linear {c}, [@attn_output][%layer] : ({q}) -> {rows}
        %h1 = kvc.add %h, %o : {rows}
        %n2 = kvc.rms_norm %h1, @ffn_norm[%layer] {{eps = 1.0e-5 : f64}} : {rows}{roundings["n2"]}
        %g = kvc.linear {n2}, [@ffn_gate][%layer] : ({rows}) -> {ffn}
        %u = kvc.linear {n2}, [@ffn_up][%layer] : ({rows}) -> {ffn}
        %a = kvc.activation %g {{kind = #kvc.activation_kind<silu>}} : {ffn}
        %m = kvc.mul %a, %u : {ffn}{roundings["m"]}
        %d = kvc.linear {p}, [@ffn_down][%layer] : ({ffn}) -> {rows}
        %h2 = kvc.add %h1, %d : {rows}
        kvc.yield %h2 : {rows}
      }}
      %r = kvc.select_rows %y, %batch : ({rows}) -> {outs}
      %n = kvc.rms_norm %r, @output_norm {{eps = 1.0e-5 : f64}} : {outs}{roundings["head"]}
      %l = kvc.linear {hn}, [{head}] : ({outs}) -> {logits}
      kvc.return %l : {logits}
    }}
}}
"""


MODELS = [
    Model("gqa", 3, 80, 6, 2, 24, 112, 131, 128),
    Model("rounded", 2, 64, 4, 2, 32, 96, 67, 64, rounded=True),
    Model("rounded_small_heads", 2, 64, 4, 2, 16, 96, 67, 64, rounded=True),
    Model("smollm2", 30, 576, 9, 3, 64, 1536, 49152, 8192, file="smollm2.gguf", tied=True, fmt="q4_1", embd_fmt="q8_0",
          cache="f16", split=256, page=64, rope_base=100000.0),
]

if __name__ == "__main__":
    for model in MODELS:
        with open(os.path.join(os.path.dirname(__file__), model.name + ".mlir"), "w") as out:
            out.write(model.text())
