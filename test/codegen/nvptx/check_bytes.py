#!/usr/bin/env python3
"""Compares the bytes that decode steps load on the PTX interpreter with the plan's.

    check_bytes.py SPEC FOLDER

Weights and KV come from memory once a step; what the interpreter counted of
both, in sectors of 32 bytes, must be within 3 % of what `kvc plan` predicts.
(Activations are left out there: many blocks read the same few rows, from the
cache.) So must all that the launches touch, each sector counted once a launch.
"""
import json
import os
import subprocess
import sys

PROMPT, NEW = 60, 8


def run(*command):
    done = subprocess.run(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, check=False)
    if done.returncode != 0:
        sys.exit(f"check_bytes: exit status {done.returncode}: {' '.join(command)}: {done.stderr.decode()[-2000:]}")
    return done.stdout.decode("utf-8", "replace")


def main():
    spec, folder = sys.argv[1:]
    program = os.path.join(folder, "bytes")
    run("kvc", "compile", spec, "--target=cuda", "-q", "-o", program)
    plan = json.loads(run("kvc", "plan", spec, "--target=cuda", "--json"))
    ids = ",".join(str(i % 90) for i in range(PROMPT))
    lines = run(program, "--device=sim", f"--prompt-ids={ids}", f"--max-new-tokens={NEW}", "--temperature=0",
                "--ignore-eos", "--json", "--sim-meter").splitlines()
    meter = json.loads(lines[-1])["stats"]["meter"]
    kernels = meter["kernels"]
    loaded = {"weights": 0, "kv": 0}
    for name, kernel in kernels.items():
        if name.startswith("decode_") and "embed" not in name:
            for arena in loaded:
                loaded[arena] += kernel["loaded_bytes_by_allocation"].get(arena, 0)
    # The first new token is the prefill's; each step reads the positions before it and its own.
    steps = NEW - 1
    positions = sum(PROMPT + 1 + step for step in range(steps))
    decode = [kernel for kernel in plan["kernels"] if kernel["phase"] == "decode"]
    wanted = {"weights": steps * sum(kernel["bytes_fixed"] for kernel in decode),
              "kv": positions * sum(kernel["kv_bytes_per_position"] for kernel in decode)}
    total = sum(loaded.values()) / sum(wanted.values())
    print(f"decode of {steps} steps: weights {loaded['weights']} of {wanted['weights']} bytes, KV {loaded['kv']} of "
          f"{wanted['kv']}: {100 * total - 100:+.2f} %")
    kernels = [kernel for kernel in meter["plan"] if kernel["phase"] == "decode"]
    once = sum(kernel["distinct_bytes"] for kernel in kernels)
    planned = sum(kernel["plan_bytes"] for kernel in kernels)
    print(f"all that is touched: {once} of {planned:.0f} bytes: {100 * once / planned - 100:+.2f} %")
    return 0 if 0.97 <= total <= 1.03 and 0.97 <= once / planned <= 1.03 else 1


if __name__ == "__main__":
    sys.exit(main())
