"""Writes test/oracle/formats/NAME.json: blocks of every quantised weight format
with the values that PyPI's `gguf` package gives them.

    python3 -m venv venv && venv/bin/pip install gguf==0.19.0 numpy==2.4.6
    venv/bin/python test/oracle/make_formats.py

Blocks are random bytes, except that the binary16 scales are finite numbers of
many magnitudes (subnormals, both zeros and both signs among them). Values are
the float32 bit patterns, little endian, in hexadecimal, a line a block.
"""

import importlib.metadata
import json
import pathlib

import gguf
import numpy as np

# name: offsets of the block's binary16 fields
FORMATS = {
    "F32": (), "F16": (), "BF16": (),
    "Q4_0": (0,), "Q4_1": (0, 2), "Q5_0": (0,), "Q5_1": (0, 2), "Q8_0": (0,),
    "Q2_K": (80, 82), "Q3_K": (108,), "Q4_K": (0, 2), "Q5_K": (0, 2), "Q6_K": (208,),
    "IQ4_NL": (0,), "IQ4_XS": (0,), "MXFP4": (),
}
VALUES = 1024


def halves(rng, count):
    special = np.array([0x0000, 0x8000, 0x0001, 0x83FF, 0x0400, 0x7BFF, 0xFBFF], dtype=np.uint16)
    bits = rng.integers(0, 0x7C00, count, dtype=np.uint16)  # finite
    bits |= rng.integers(0, 2, count, dtype=np.uint16) << np.uint16(15)
    bits[: len(special)] = special[:count]
    return bits


def make(name):
    rng = np.random.default_rng(list(name.encode()))
    kind = gguf.GGMLQuantizationType[name]
    values, size = gguf.GGML_QUANT_SIZES[kind]
    rows = 32 if values == 1 else VALUES // values  # plain formats: 32 to a line
    width = size * (VALUES // rows // values)
    blocks = rng.integers(0, 256, (rows, width), dtype=np.uint8)
    for offset in FORMATS[name]:
        blocks[:, offset : offset + 2] = halves(rng, rows).reshape(-1, 1).view(np.uint8)
    if name == "MXFP4":  # 2^(e-128) times 12 stays finite; 0 and 1 are subnormal
        blocks[:, 0] = rng.integers(0, 252, rows)
        blocks[:4, 0] = (0, 1, 2, 251)
    if name in ("F16", "BF16"):
        words = blocks.view(np.uint16)
        top = 0x7C00 if name == "F16" else 0x7F80
        words[(words & top) == top] &= 0x83FF
    if name == "F32":
        words = blocks.view(np.uint32)
        words[(words & 0x7F800000) == 0x7F800000] &= 0x807FFFFF
    result = gguf.quants.dequantize(blocks, kind)
    assert np.isfinite(result).all()
    result = np.ascontiguousarray(result, dtype="<f4").reshape(rows, -1)
    return {
        "format": name.lower(),
        "made_by": f"test/oracle/make_formats.py, gguf {importlib.metadata.version('gguf')}, numpy {np.__version__}",
        "blocks": [row.tobytes().hex() for row in blocks],
        "values": [row.tobytes().hex() for row in result],
    }


def main():
    folder = pathlib.Path(__file__).parent / "formats"
    folder.mkdir(exist_ok=True)
    for name in FORMATS:
        text = json.dumps(make(name), indent=1)
        (folder / f"{name.lower()}.json").write_text(text + "\n")


main()
