"""Writes GGUF files, right ones and wrong ones, without any package.

    model = Gguf()
    model.key("general.architecture", "llama")          # type by value, or
    model.key("llama.block_count", 2, U32)              # given
    model.tensor("token_embd.weight", [64, 128], F32, data)
    model.write(path)

A script that wants a broken file changes one thing: a count (model.tensor_count),
an offset (model.tensor(..., offset=7)), a raw piece (model.raw_key, model.raw_tensor),
or the finished bytes (model.bytes()).
"""

import struct

U8, I8, U16, I16, U32, I32, FLOAT32, BOOL, STRING, ARRAY, U64, I64, FLOAT64 = range(13)
_codes = {U8: "B", I8: "b", U16: "H", I16: "h", U32: "I", I32: "i", FLOAT32: "f",
          BOOL: "B", U64: "Q", I64: "q", FLOAT64: "d"}  # fmt: skip

# Tensor types: id, values and bytes of a block.
F32, F16, BF16 = (0, 1, 4), (1, 1, 2), (30, 1, 2)
Q4_0, Q4_1, Q5_0, Q5_1, Q8_0 = (2, 32, 18), (3, 32, 20), (6, 32, 22), (7, 32, 24), (8, 32, 34)
Q2_K, Q3_K, Q4_K, Q5_K, Q6_K = (10, 256, 84), (11, 256, 110), (12, 256, 144), (13, 256, 176), (14, 256, 210)
IQ4_NL, IQ4_XS, MXFP4 = (20, 32, 18), (23, 256, 136), (39, 32, 17)


def u32(value):
    return struct.pack("<I", value)


def u64(value):
    return struct.pack("<Q", value)


def string(text):
    data = text if isinstance(text, bytes) else text.encode()
    return u64(len(data)) + data


def value(item, kind):
    """The payload of a value of type `kind`."""
    return string(item) if kind == STRING else struct.pack("<" + _codes[kind], item)


def array(items, kind):
    """The payload of an array: element type, length, elements."""
    return u32(kind) + u64(len(items)) + b"".join(value(item, kind) for item in items)


def _kind(item):
    if isinstance(item, bool):
        return BOOL
    if isinstance(item, int):
        return U32
    if isinstance(item, float):
        return FLOAT32
    return STRING


class Gguf:
    def __init__(self, version=3, alignment=32, magic=b"GGUF"):
        self.magic, self.version, self.alignment = magic, version, alignment
        self.keys, self.infos, self.data = [], [], b""
        self.key_count = self.tensor_count = None  # the true ones, unless set

    def key(self, name, item, kind=None):
        """A metadata entry; a list becomes an array of `kind`."""
        if isinstance(item, list):
            kind = _kind(item[0]) if kind is None else kind
            return self.raw_key(name, ARRAY, array(item, kind))
        kind = _kind(item) if kind is None else kind
        return self.raw_key(name, kind, value(item, kind))

    def raw_key(self, name, kind, payload):
        self.keys.append(string(name) + u32(kind) + payload)
        return self

    def tensor(self, name, dims, kind, data=None, offset=None):
        """A tensor of `dims` in GGUF's order, the fastest first. Zero bytes
        without data; `offset` overrides where the header says it lies."""
        count = 1
        for dim in dims:
            count *= dim
        size = count // kind[1] * kind[2]
        data = bytes(size) if data is None else bytes(data)
        assert len(data) == size, (name, len(data), size)
        self.data += bytes(-len(self.data) % self.alignment)
        info = string(name) + u32(len(dims)) + b"".join(u64(dim) for dim in dims)
        info += u32(kind[0]) + u64(len(self.data) if offset is None else offset)
        self.infos.append(info)
        self.data += data
        return self

    def raw_tensor(self, name, dims, kind_id, offset=0, rank=None):
        """A tensor's entry without data."""
        rank = len(dims) if rank is None else rank
        info = string(name) + u32(rank) + b"".join(u64(dim) for dim in dims)
        self.infos.append(info + u32(kind_id) + u64(offset))
        return self

    def bytes(self):
        tensors = len(self.infos) if self.tensor_count is None else self.tensor_count
        keys = len(self.keys) if self.key_count is None else self.key_count
        head = self.magic + u32(self.version) + u64(tensors) + u64(keys)
        head += b"".join(self.keys) + b"".join(self.infos)
        return head + bytes(-len(head) % self.alignment) + self.data

    def write(self, path):
        with open(path, "wb") as file:
            file.write(self.bytes())
