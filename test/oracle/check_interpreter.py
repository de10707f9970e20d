#!/usr/bin/env python3
"""Compares the reference interpreter with a record, logits and all.

    check_interpreter.py RECORD MODEL.mlir [--sequences N]

Each sequence of the record runs as a prefill of its prompt and one decode step
an id; every row of logits must be the record's, which holds float32.
"""
import argparse
import array
import base64
import json
import os
import subprocess
import sys
import tempfile

import npy


def recorded_logits(sequence):
    values = array.array("f")
    values.frombytes(base64.b64decode(sequence["logits"]))
    if sys.byteorder == "big":
        values.byteswap()
    return values


def interpret(model, sequence, path):
    command = ["kvc-translate", "--interpret", model, "--logits", path,
               "--ids", ",".join(map(str, sequence["prompt_ids"])),
               "--decode-ids", ",".join(map(str, sequence["ids"][:-1]))]
    subprocess.run(command, check=True)
    return npy.read(path)[1]


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("record")
    parser.add_argument("model")
    parser.add_argument("--sequences", type=int, default=None, help="how many of the record's, all if absent")
    args = parser.parse_args()
    with open(args.record, encoding="utf-8") as file:
        record = json.load(file)
    largest = 0.0
    with tempfile.TemporaryDirectory() as folder:
        for number, sequence in enumerate(record["sequences"][:args.sequences]):
            expected = recorded_logits(sequence)
            found = interpret(args.model, sequence, os.path.join(folder, "logits.npy"))
            if len(found) != len(expected):
                sys.exit(f"{args.record}: sequence {number}: {len(found)} logits, the record has {len(expected)}")
            magnitude = max(map(abs, expected))
            error = max(abs(a - b) for a, b in zip(found, expected)) / magnitude
            # A float32 is off by half an ulp, 6e-8 of its magnitude.
            if not error < 1e-7:
                sys.exit(f"{args.record}: sequence {number}: relative error {error:.3e} in the logits")
            largest = max(largest, error)
    print(f"{record['name']}: largest relative error {largest:.3e}")


if __name__ == "__main__":
    main()
