#!/usr/bin/env python3
"""Compares a program for GPUs with one for the CPU, logits by logits.

    compare_devices.py CPU_PROG GPU_PROG [--device sim] [--prompt-ids 1,2,3] [--new 4] [--tolerance 0.1]

The CPU program chooses ids; both are fed these, and each of the GPU's logits
must be within the tolerance of the CPU's, in deviations of the step's logits.
Where the CPU's two largest logits are more than ten tolerances apart both must
choose the same id. On the sim the last line says how many instructions of a
thread were interpreted a second. Standard library only.
"""
import argparse
import json
import math
import os
import subprocess
import sys
import tempfile
import time

import npy


def run(command, timeout):
    try:
        done = subprocess.run(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                              timeout=timeout, check=False)
    except (OSError, subprocess.TimeoutExpired) as error:
        sys.exit(f"compare_devices: {error}")
    if done.returncode != 0:
        sys.exit(f"compare_devices: exit status {done.returncode}: {' '.join(command)}: "
                 f"{done.stderr.decode('utf-8', 'replace')[-2000:]}")
    return json.loads(done.stdout.decode("utf-8", "replace").splitlines()[-1])


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("cpu")
    parser.add_argument("gpu")
    parser.add_argument("--device", default="sim", choices=("sim", "cuda"))
    parser.add_argument("--prompt-ids", default="32210,28,14801,28,15083,28,14963,28",
                        help="(default: eight of SmolLM2, Monday to Thursday and a comma)")
    parser.add_argument("--new", type=int, default=4, help="new tokens (default: %(default)s)")
    parser.add_argument("--tolerance", type=float, default=0.1, help="in deviations (default: %(default)s)")
    parser.add_argument("--timeout", type=float, default=600.0, help="seconds for one run")
    args = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="kvc-devices-") as folder:
        logits = [os.path.join(folder, name) for name in ("cpu.npy", "gpu.npy")]
        common = [f"--prompt-ids={args.prompt_ids}", f"--max-new-tokens={args.new}", "--temperature=0", "--ignore-eos",
                  "--json"]
        chosen = run([os.path.abspath(args.cpu), *common, f"--logits={logits[0]}"], args.timeout)["ids"]
        start = time.monotonic()
        result = run([os.path.abspath(args.gpu), *common, f"--logits={logits[1]}", f"--device={args.device}",
                      f"--force-ids={','.join(map(str, chosen))}", *(["--sim-meter"] if args.device == "sim" else [])],
                     args.timeout)
        seconds = time.monotonic() - start
        (shape, ours), (other, theirs) = npy.read(logits[0]), npy.read(logits[1])
    if shape != other or shape[0] != args.new:
        sys.exit(f"compare_devices: logits have shapes {shape} and {other}")
    worst, sure = 0.0, 0
    for step in range(args.new):
        a, b = (values[step * shape[1]:(step + 1) * shape[1]] for values in (ours, theirs))
        mean = math.fsum(a) / len(a)
        deviation = math.sqrt(math.fsum((x - mean) ** 2 for x in a) / len(a))
        error = max(math.inf if math.isnan(y) else abs(x - y) for x, y in zip(a, b)) / deviation
        worst = max(worst, error)
        if not error <= args.tolerance:
            sys.exit(f"compare_devices: step {step}: logits differ by {error:.2e} of their deviation, "
                     f"allowed {args.tolerance:.0e}")
        first, second = sorted(a)[:-3:-1]
        if first - second > 10 * args.tolerance * deviation:
            sure += 1
            if b.index(max(b)) != chosen[step]:
                sys.exit(f"compare_devices: step {step}: {args.device} chooses {b.index(max(b))}, the CPU {chosen[step]}, "
                         f"which is {(first - second) / deviation:.2f} deviations ahead")
    line = (f"{os.path.basename(args.gpu)}: {args.new} steps within {worst:.2e} of the logits' deviation, "
            f"{sure} ids compared, {seconds:.1f} s")
    if args.device == "sim":
        meter = result["stats"]["meter"]["all"]
        line += f", {meter['warp_instructions'] * 32 / seconds / 1e6:.0f} million instructions/s"
    print(line)


if __name__ == "__main__":
    main()
