"""Tiny GGUF models of arch `llama` with random blocks, by the standard library alone.

Every tensor's bytes are SHAKE-256 of its name and the model's seed. Bit masks
then keep what may be anything (quantised values, signs, mantissas) and set the
exponents of floats and block scales, so that values are near 1/16 in size and
a model's logits near 1. The same file comes out everywhere, so none is kept.
"""
import hashlib
import struct

# Masks are written for one block as (bytes, what to keep, what to set).


def half(low, high, signed=False):
    """Keeps a float16's mantissa; exponent field low, or low .. high = low + 1, low even."""
    keep = 0x03FF | (0x0400 if high > low else 0) | (0x8000 if signed else 0)
    return [(2, keep, low << 10)]


# A float16 just below the smallest normal number: real files have such scales.
SUBNORMAL = [(2, 0x01FF, 0x0200)]


def free(count):
    return [(1, 0xFF, 0)] * count


# name: (GGUF type id, values of a block, fields)
TYPES = {
    "F32": (0, 1, [(4, 0x81FFFFFF, 120 << 23)]),
    "F16": (1, 1, [(2, 0x8FFF, 8 << 10)]),
    "BF16": (30, 1, [(2, 0x81FF, 120 << 7)]),
    "Q4_0": (2, 32, half(8, 9, signed=True) + free(16)),
    "Q4_1": (3, 32, half(6, 7, signed=True) + half(10, 11, signed=True) + free(16)),
    "Q5_0": (6, 32, half(6, 7, signed=True) + free(4) + free(16)),
    "Q5_1": (7, 32, half(6, 6, signed=True) + half(10, 11, signed=True) + free(4) + free(16)),
    "Q8_0": (8, 32, half(4, 5) + free(32)),
    "Q2_K": (10, 256, free(16) + free(64) + half(6, 7) + half(7, 7)),
    "Q3_K": (11, 256, free(32) + free(64) + free(12) + half(4, 5)),
    "Q4_K": (12, 256, half(2, 2) + half(5, 5) + free(12) + free(128)),
    "Q5_K": (13, 256, half(1, 1) + half(5, 5) + free(12) + free(32) + free(128)),
    "Q6_K": (14, 256, free(128) + free(64) + free(16) + SUBNORMAL),
    "IQ4_NL": (20, 32, half(4, 5) + free(16)),
    "IQ4_XS": (23, 256, SUBNORMAL + free(2) + free(4) + free(128)),
    "MXFP4": (39, 32, [(1, 0x03, 0x78)] + free(16)),
}
NORM = [(4, 0x00FFFFFF, 126 << 23)]   # float32 in [0.5, 2)
RATIO = [(4, 0x00FFFFFF, 128 << 23)]  # float32 in [2, 8): divisors of the rotary frequencies


def random_blocks(key, fields, blocks):
    """`blocks` blocks of random bytes under the fields' masks."""
    keep = b"".join(mask.to_bytes(size, "little") for size, mask, _ in fields) * blocks
    fix = b"".join(value.to_bytes(size, "little") for size, _, value in fields) * blocks
    data = hashlib.shake_256(key.encode("utf-8")).digest(len(keep))
    value = (int.from_bytes(data, "little") & int.from_bytes(keep, "little")) | int.from_bytes(fix, "little")
    return value.to_bytes(len(keep), "little")


def byte_level_alphabet():
    """GPT-2's printable stand-in for each byte."""
    plain = list(range(0x21, 0x7F)) + list(range(0xA1, 0xAD)) + list(range(0xAE, 0x100))
    table, spare = {}, 0x100
    for byte in range(256):
        if byte in plain:
            table[byte] = chr(byte)
        else:
            table[byte] = chr(spare)
            spare += 1
    return table


def tokenizer(vocab):
    """A byte-level BPE vocabulary of `vocab` tokens: bytes, a few merges, two control tokens."""
    alphabet = byte_level_alphabet()
    tokens = [alphabet[byte] for byte in range(256)]
    merges = []
    for word in (" the", " and", "ing", " of", "er", "on", " to", "in", " that", "ent", " was", "re"):
        parts = [alphabet[byte] for byte in word.encode("utf-8")]
        while len(parts) > 1 and len(tokens) < vocab - 2:
            pair = parts[0] + parts[1]
            if pair not in tokens:
                tokens.append(pair)
                merges.append(f"{parts[0]} {parts[1]}")
            parts[:2] = [pair]
    while len(tokens) < vocab - 2:
        tokens.append(f"unused{len(tokens)}")
    types = [1] * len(tokens) + [3, 3]
    tokens += ["<|begin|>", "<|end|>"]
    return tokens, types, merges


class Writer:
    """Collects keys and tensors of one GGUF file."""

    def __init__(self, seed, version=3):
        self.seed, self.version = seed, version
        self.keys, self.tensors = [], []

    def key(self, name, kind, value):
        codes = {"u32": (4, "<I"), "i32": (5, "<i"), "f32": (6, "<f"), "bool": (7, "<B")}
        self.keys.append(self._string(name) + self._value(codes, kind, value))

    def _string(self, text):
        data = text.encode("utf-8")
        return struct.pack("<Q", len(data)) + data

    def _value(self, codes, kind, value):
        if kind == "string":
            return struct.pack("<I", 8) + self._string(value)
        if kind == "strings":
            return struct.pack("<IIQ", 9, 8, len(value)) + b"".join(map(self._string, value))
        if kind == "i32s":
            return struct.pack(f"<IIQ{len(value)}i", 9, 5, len(value), *value)
        code, form = codes[kind]
        return struct.pack("<I", code) + struct.pack(form, value)

    def matrix(self, name, kind, rows, columns):
        type_id, block, fields = TYPES[kind]
        assert columns % block == 0, f"{name}: {columns} columns do not fit {kind}"
        data = random_blocks(f"{self.seed}/{name}", fields, rows * columns // block)
        self.tensors.append((name, (columns, rows), type_id, data))

    def vector(self, name, size, fields):
        data = random_blocks(f"{self.seed}/{name}", fields, size)
        self.tensors.append((name, (size,), 0, data))

    def data(self):
        infos, bodies, offset = [], [], 0
        for name, shape, type_id, data in self.tensors:
            infos.append(self._string(name) + struct.pack(f"<I{len(shape)}QIQ", len(shape), *shape, type_id, offset))
            bodies.append(data + b"\0" * (-len(data) % 32))
            offset += len(bodies[-1])
        head = b"GGUF" + struct.pack("<IQQ", self.version, len(self.tensors), len(self.keys))
        head += b"".join(self.keys) + b"".join(infos)
        return head + b"\0" * (-len(head) % 32) + b"".join(bodies)


MATRICES = ("attn_q", "attn_k", "attn_v", "attn_output", "ffn_gate", "ffn_up", "ffn_down")
BASE = {"vocab": 300, "hidden": 256, "layers": 3, "heads": 8, "kv_heads": 2, "head_dim": 32, "ffn": 512,
        "theta": 10000.0, "eps": 1e-5, "context": 512}


def models():
    """name -> description; `types` maps a weight's name (without .weight) to its type."""
    result = {}

    def add(name, default, **changes):
        result[name] = {**BASE, "name": name, "default": default, "types": {}, **changes}

    for kind in TYPES:
        add(kind.lower(), kind)
    # Types differ between layers and inside q, k, v and gate, up, as Q4_K_M files do.
    mixed = {"token_embd": "Q6_K", "output": "Q6_K"}
    for layer, (q, k, v, o, gate, up, down) in enumerate((
            ("Q4_K", "Q4_K", "Q6_K", "Q4_K", "Q4_K", "Q4_K", "Q6_K"),
            ("Q4_K", "Q5_K", "F16", "Q5_0", "Q4_K", "Q8_0", "Q4_K"),
            ("Q4_K", "Q4_K", "Q6_K", "Q4_K", "Q4_K", "Q4_K", "Q6_K"),
            ("BF16", "F32", "IQ4_NL", "Q3_K", "Q2_K", "MXFP4", "IQ4_XS"))):
        for name, kind in zip(MATRICES, (q, k, v, o, gate, up, down)):
            mixed[f"blk.{layer}.{name}"] = kind
    add("mixed", "Q4_K", layers=4, types=mixed)
    # Version 2 of the format, and the head is the embedding.
    add("tied", "Q4_1", tied=True, types={"token_embd": "Q8_0"}, version=2)
    # Llama 3's divisors of the rotary frequencies, and biases.
    add("llama3_bias", "Q8_0", rope_freqs=True, bias=True, theta=500000.0)
    # Sizes that are no multiple of a panel; positions scaled linearly; one key head.
    add("odd", "Q5_1", vocab=277, hidden=96, layers=2, heads=3, kv_heads=1, head_dim=32, ffn=160, linear=4.0,
        types={"blk.1.attn_k": "Q8_0", "blk.1.ffn_up": "Q4_0", "output": "Q5_0"})
    # head_dim is not hidden / heads, and no power of two.
    add("wide_heads", "Q4_0", hidden=160, heads=6, kv_heads=3, head_dim=48, ffn=288,
        types={"blk.0.attn_output": "Q8_0", "token_embd": "F16"})
    # Rows of two and three chunks of 256 values, and of one and a half.
    add("chunks", "BF16", hidden=512, layers=2, heads=8, head_dim=48, ffn=768)
    return result


def make(model):
    """The bytes of one model's file."""
    out = Writer(model["name"], model.get("version", 3))
    vocab, hidden, ffn = model["vocab"], model["hidden"], model["ffn"]
    out.key("general.architecture", "string", "llama")
    out.key("general.name", "string", f"kvc tiny {model['name']}")
    out.key("general.alignment", "u32", 32)
    out.key("llama.block_count", "u32", model["layers"])
    out.key("llama.context_length", "u32", model["context"])
    out.key("llama.embedding_length", "u32", hidden)
    out.key("llama.feed_forward_length", "u32", ffn)
    out.key("llama.attention.head_count", "u32", model["heads"])
    out.key("llama.attention.head_count_kv", "u32", model["kv_heads"])
    out.key("llama.attention.key_length", "u32", model["head_dim"])
    out.key("llama.attention.value_length", "u32", model["head_dim"])
    out.key("llama.attention.layer_norm_rms_epsilon", "f32", model["eps"])
    out.key("llama.rope.dimension_count", "u32", model["head_dim"])
    out.key("llama.rope.freq_base", "f32", model["theta"])
    if "linear" in model:
        out.key("llama.rope.scaling.type", "string", "linear")
        out.key("llama.rope.scaling.factor", "f32", model["linear"])
    out.key("llama.vocab_size", "u32", vocab)
    tokens, types, merges = tokenizer(vocab)
    out.key("tokenizer.ggml.model", "string", "gpt2")
    out.key("tokenizer.ggml.pre", "string", "smollm")
    out.key("tokenizer.ggml.tokens", "strings", tokens)
    out.key("tokenizer.ggml.token_type", "i32s", types)
    out.key("tokenizer.ggml.merges", "strings", merges)
    out.key("tokenizer.ggml.bos_token_id", "u32", vocab - 2)
    out.key("tokenizer.ggml.eos_token_id", "u32", vocab - 1)
    out.key("tokenizer.ggml.add_bos_token", "bool", 0)

    def matrix(name, rows, columns):
        out.matrix(f"{name}.weight", model["types"].get(name, model["default"]), rows, columns)
        if model.get("bias") and name.startswith("blk."):
            out.vector(f"{name}.bias", rows, TYPES["F32"][2])

    q_rows, kv_rows = model["heads"] * model["head_dim"], model["kv_heads"] * model["head_dim"]
    matrix("token_embd", vocab, hidden)
    if not model.get("tied"):
        matrix("output", vocab, hidden)
    out.vector("output_norm.weight", hidden, NORM)
    if model.get("rope_freqs"):
        out.vector("rope_freqs.weight", model["head_dim"] // 2, RATIO)
    for layer in range(model["layers"]):
        prefix = f"blk.{layer}"
        out.vector(f"{prefix}.attn_norm.weight", hidden, NORM)
        matrix(f"{prefix}.attn_q", q_rows, hidden)
        matrix(f"{prefix}.attn_k", kv_rows, hidden)
        matrix(f"{prefix}.attn_v", kv_rows, hidden)
        matrix(f"{prefix}.attn_output", hidden, q_rows)
        out.vector(f"{prefix}.ffn_norm.weight", hidden, NORM)
        matrix(f"{prefix}.ffn_gate", ffn, hidden)
        matrix(f"{prefix}.ffn_up", ffn, hidden)
        matrix(f"{prefix}.ffn_down", hidden, ffn)
    return out.data()
