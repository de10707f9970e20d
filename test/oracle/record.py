"""Writes records in the form that check_program.py reads."""
import base64
import json
from importlib.metadata import version

import numpy as np


def versions(*names):
    return {name: version(name) for name in names}


def encode_logits(logits):
    """Base64 of float32 little-endian rows."""
    return base64.b64encode(np.ascontiguousarray(logits, dtype="<f4").tobytes()).decode("ascii")


def smallest_gap(logits):
    """The least distance between the two largest logits of a row."""
    top = np.sort(np.asarray(logits, dtype=np.float64), axis=1)[:, -2:]
    return float((top[:, 1] - top[:, 0]).min())


def write(path, head, sequences):
    """One sequence a line, so that a change shows as the lines it touches."""
    with open(path, "w", encoding="utf-8") as file:
        file.write(json.dumps(head, indent=1)[:-2])
        file.write(',\n "sequences": [\n')
        file.write(",\n".join(json.dumps(sequence) for sequence in sequences))
        file.write("\n ]\n}\n")
    with open(path, encoding="utf-8") as file:
        json.load(file)
