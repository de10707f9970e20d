"""Writes a module with one layer's linears: linear_shapes.py FORMAT HIDDEN FFN HEAD_DIM [OTHER_FORMAT].

Queries, keys and values of HIDDEN / HEAD_DIM heads and a quarter of them, rotated and appended; the output projection
with its residual; gate and up with their activation; down; a head behind a norm. The values' and up's weights have
OTHER_FORMAT. In decode norms stand in the kernels, in prefill a kernel before has written their results.
"""

import sys


def splits(columns):
    blocks = (columns + 31) // 32
    granules = blocks // 8 if columns % 256 == 0 else blocks
    return min(max((blocks + 4) // 8, 1), 16, granules)


def rows(*shape):
    return "tensor<?x" + "".join(f"{size}x" for size in shape) + "f32, #kvc.rows>"


def outputs(size):
    return f"tensor<?x{size}xf32, #kvc.outputs>"


def stride_of(size, element):
    return (size * (4 if element == "f32" else 2) + 63) // 64 * 64


class Module:
    def __init__(self, form, hidden, ffn, head_dim, other):
        self.hidden, self.ffn, self.head_dim = hidden, ffn, head_dim
        self.heads = hidden // head_dim
        self.kv_heads = max(self.heads // 4, 1)
        self.vocab = 1000
        self.weights = []
        self.vector("norm", hidden)
        self.matrix("q", self.heads * head_dim, hidden, form, head_dim)
        self.matrix("k", self.kv_heads * head_dim, hidden, form, head_dim)
        self.matrix("v", self.kv_heads * head_dim, hidden, other)
        self.matrix("o", hidden, self.heads * head_dim, form)
        self.matrix("gate", ffn, hidden, form)
        self.matrix("up", ffn, hidden, other)
        self.matrix("down", hidden, ffn, form)
        self.matrix("head", self.vocab, hidden, form)
        self.slots, self.row_bytes = {}, 0
        for name, size, element in (
            ("h", hidden, "f32"),
            ("x", hidden, "bf16"),
            ("q", self.heads * head_dim, "f16"),
            ("c", self.heads * head_dim, "bf16"),
            ("a", ffn, "bf16"),
        ):
            stride = stride_of(size, element)
            self.slots[name] = f"slot<rows, offset = {self.row_bytes}, stride = {stride}, {element}>"
            self.row_bytes += stride

    def weight(self, name, shape, form):
        offset = len(self.weights) * 2**24
        self.weights.append(
            f"  kvc.weight @{name} : !kvc.weight<{shape}> = [#kvc.slice<@file, {form}, 4096>] "
            f"{{offsets = array<i64: {offset}>}}"
        )

    def vector(self, name, size):
        self.weight(name, f"1x{size}", "f32")

    def matrix(self, name, size, columns, form, head_dim=0):
        unit, pair = (head_dim, head_dim // 2) if head_dim else (16, 8)
        layout = f"#kvc.tiles<unit = {unit}, pair = {pair}, splits = {splits(columns)}>"
        self.weight(name, f"1x{size}x{columns}, {layout}", form)

    def read(self, value, slot, kind):
        return f"{value} = kvc.read {self.slots[slot]} : {kind}"

    def write(self, value, slot, kind):
        return f"kvc.write {value}, {self.slots[slot]} : {kind}"

    def normed(self, given, kind):
        stage = f"slot<worker, offset = 0, stride = {stride_of(self.hidden, 'bf16')}, bf16>"
        return [
            f"%n = kvc.rms_norm {given}, @norm {{eps = 1.0e-5 : f64}} : {kind}",
            f"%r = kvc.round %n to bf16 : {kind}",
            f"%x = kvc.stage %r, {stage} : {kind}",
        ]

    def dispatches(self, decode):
        hidden, ffn, vocab = rows(self.hidden), rows(self.ffn), outputs(self.vocab)
        q, kv = rows(self.heads, self.head_dim), rows(self.kv_heads, self.head_dim)
        chosen = outputs(self.hidden)
        frequencies = ", ".join(["1.0"] * (self.head_dim // 2))
        rope = f"%batch {{layout = #kvc.rope_layout<half>, inv_freq = #kvc.reals<[{frequencies}]>}}"
        start = [self.read("%x", "x", hidden)]
        if decode:
            start = [self.read("%h", "h", hidden), *self.normed("%h", hidden)]
        residual = [f"%s = kvc.add %h, %y : {hidden}", self.write("%s", "h", hidden)]
        yield "qkv", [
            *start,
            f"%y:3 = kvc.linear %x, [@q, @k, @v] : ({hidden}) -> ({q}, {kv}, {kv})",
            f"%qr = kvc.rope %y#0, {rope} : {q}",
            f"%kr = kvc.rope %y#1, {rope} : {kv}",
            f"kvc.cache_append %kr, %y#2, @kv, %batch : {kv}",
            f"%qh = kvc.round %qr to f16 : {q}",
            self.write("%qh", "q", q),
        ]
        yield "out", [
            self.read("%x", "c", q),
            self.read("%h", "h", hidden),
            f"%y = kvc.linear %x, [@o] : ({q}) -> {hidden}",
            *residual,
        ]
        yield "gate_up", [
            *start,
            f"%y:2 = kvc.linear %x, [@gate, @up] : ({hidden}) -> ({ffn}, {ffn})",
            f"%s = kvc.activation %y#0 {{kind = #kvc.activation_kind<silu>}} : {ffn}",
            f"%m = kvc.mul %s, %y#1 : {ffn}",
            f"%a = kvc.round %m to bf16 : {ffn}",
            self.write("%a", "a", ffn),
        ]
        yield "down", [
            self.read("%x", "a", ffn),
            self.read("%h", "h", hidden),
            f"%y = kvc.linear %x, [@down] : ({ffn}) -> {hidden}",
            *residual,
        ]
        yield "head", [
            self.read("%h", "h", hidden),
            f"%o = kvc.select_rows %h, %batch : ({hidden}) -> {chosen}",
            *self.normed("%o", chosen),
            f"%y = kvc.linear %x, [@head] : ({chosen}) -> {vocab}",
            f"kvc.write %y, slot<logits, offset = 0, stride = {self.vocab * 4 // 64 * 64 + 64}, f32> : {vocab}",
        ]

    def program(self, phase):
        print(
            f"  kvc.program @{phase}(%tokens: tensor<?xi32, #kvc.rows>, %batch: !kvc.batch) attributes "
            f"{{phase = #kvc.phase<{phase}>, rows_bytes = {self.row_bytes} : i64, outputs_bytes = 0 : i64}} {{"
        )
        for number, (name, body) in enumerate(self.dispatches(phase == "decode")):
            print(f'    kvc.dispatch "{name}" {number} {{')
            for line in body:
                print("      " + line)
            print("    }\n    kvc.barrier")
        print("    kvc.return\n  }")

    def print(self):
        print(
            'kvc.model @m attributes {activations = "bf16", max_context = 512 : i64, target = #kvc.target<arch = "cuda", '
            f'cpu = "sm_90", features = "", vector_width = 128>, weights_bytes = {len(self.weights) * 2**24} : i64}} {{\n'
            '  kvc.source @file {path = "none.gguf", size = 1099511627776 : i64}'
        )
        print("\n".join(self.weights))
        print(
            f"  kvc.cache @kv : !kvc.cache<layers = 1, kv_heads = {self.kv_heads}, head_dim = {self.head_dim}, "
            "type = f16, page = 64, split = 64>"
        )
        for phase in ("prefill", "decode"):
            self.program(phase)
        print("}")


def main(form, hidden, ffn, head_dim, other=None):
    Module(form, int(hidden), int(ffn), int(head_dim), other or form).print()


main(*sys.argv[1:])
