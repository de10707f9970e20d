#!/usr/bin/env python3
"""Checks that code does not grow with a model's layers.

    compile_cost.py FOLDER

Compiles models that differ in their number of layers alone. The instructions
for 32 and for 64 take the same number of bytes (LLVM may unroll the calls of a
few layers), and code generation's processor time, the smallest of three tries,
is for 64 layers at most 30 % above that for 2.
"""
import json
import os
import re
import resource
import subprocess
import sys

SPEC = {"name": "deep", "vocab": 64, "hidden": 64, "heads": 2, "kv_heads": 1, "head_dim": 32, "ffn": 96,
        "norm": {"kind": "rms_norm", "bias": False, "eps": 1e-6}, "activation": "swiglu",
        "positions": {"rotary": {"theta": 10000.0, "dims": 32, "layout": "half"}}, "qkv": "separate",
        "bias": {"qkv": False, "output": False, "ffn": False}, "tied": False, "max_context": 256, "eos": [],
        "weights": {"seed": 3}}


def run(*command):
    """Returns the user time."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN).ru_utime
    subprocess.run(command, stdin=subprocess.DEVNULL, check=True)
    return resource.getrusage(resource.RUSAGE_CHILDREN).ru_utime - before


def text_bytes(path):
    """The bytes of an object's sections of instructions."""
    output = subprocess.run(["llvm-size", "-A", path], stdout=subprocess.PIPE, text=True, check=True).stdout
    return sum(int(size) for size in re.findall(r"^\.text\S*\s+(\d+)", output, re.MULTILINE))


def main():
    folder = sys.argv[1]
    os.makedirs(folder, exist_ok=True)
    schedules, sizes = {}, {}
    for layers in (2, 32, 64):
        base = os.path.join(folder, f"layers{layers}")
        with open(base + ".json", "w", encoding="utf-8") as file:
            json.dump({**SPEC, "layers": layers}, file)
        run("kvc-translate", "--import-spec", base + ".json", "-o", base + ".l1.mlir")
        run("kvc-opt", "--kvc-pipeline=target-cpu=x86-64-v3", base + ".l1.mlir", "-o", base + ".l4.mlir")
        schedules[layers] = base + ".l4.mlir"

    def generate(layers):
        path = os.path.join(folder, f"layers{layers}.o")
        seconds = run("kvc-translate", "--kvc-to-object", schedules[layers], "-o", path)
        sizes[layers] = text_bytes(path)
        return seconds

    generate(32)
    # In turns, so that what else the machine does slows both.
    tries = [(generate(2), generate(64)) for _ in range(3)]
    few, many = (min(times) for times in zip(*tries))
    print(f"2 layers: {few:.2f} s; 32 layers: {sizes[32]} bytes; 64 layers: {sizes[64]} bytes, {many:.2f} s")
    if sizes[32] != sizes[64] or not sizes[64]:
        sys.exit("compile_cost: the code's size depends on the number of layers")
    if many > 1.3 * few + 0.1:
        sys.exit("compile_cost: the time of code generation depends on the number of layers")


if __name__ == "__main__":
    main()
