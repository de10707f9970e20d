#!/usr/bin/env python3
"""Checks that a compiled program's logits do not depend on how it is run.

    check_invariance.py PROG [--lengths 70,9,131] [--new 12] [--ways ...] [--kernels]

Sequences of different lengths run alone with one thread; then with two
threads, prefilled in chunks of 1, 7 and 64, all in one batch, and without the
cache. Every way must give the same ids and the same bits of logits, and
project the number of rows that it says it does: prompt + new - 1 with the
cache, the sum of all lengths without. With --kernels, so must every row that any
kernel writes, not the logits alone. On a GPU's device there are no threads,
but chunks of 3, 8 and 9 rows, and for the sim blocks in another order. Standard
library only.
"""
import argparse
import json
import os
import subprocess
import sys
import tempfile

import npy
import traces

WAYS = {
    "threads": ["--threads", "2"],
    "chunk-1": ["--threads", "1", "--prefill-chunk", "1"],
    "chunk-7": ["--threads", "2", "--prefill-chunk", "7"],
    "chunk-64": ["--threads", "2", "--prefill-chunk", "64"],
    "batch": ["--threads", "2"],
    "batch-chunk-7": ["--threads", "1", "--prefill-chunk", "7"],
    "no-cache": ["--threads", "2", "--no-cache"],
}
GPU_WAYS = {f"chunk-{rows}": ["--prefill-chunk", str(rows)] for rows in (1, 3, 8, 9, 64)}
GPU_WAYS.update({"batch": [], "batch-chunk-7": ["--prefill-chunk", "7"], "no-cache": ["--no-cache"]})
SIM_WAYS = {**GPU_WAYS, "batch-permuted": ["--sim-seed", "5"]}


def run(program, prompts, new, folder, options, timeout, rows):
    """Runs prompts in one batch; returns [(result, bytes of the .npy file)]. `rows` takes the trace, if not None."""
    path, prefix = os.path.join(folder, "prompts.jsonl"), os.path.join(folder, "logits")
    with open(path, "w", encoding="utf-8") as file:
        for prompt in prompts:
            file.write(json.dumps({"prompt_ids": prompt}) + "\n")
    command = [program, "--prompts", path, "--max-new-tokens", str(new), "--temperature", "0", "--ignore-eos", "--json",
               "--logits", prefix, *options, *([f"--trace={prefix}.trace"] if rows else [])]
    try:
        done = subprocess.run(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                              timeout=timeout, check=False)
    except (OSError, subprocess.TimeoutExpired) as error:
        sys.exit(f"check_invariance: {error}")
    if done.returncode != 0:
        sys.stderr.write(done.stderr.decode("utf-8", "replace")[-2000:])
        sys.exit(f"check_invariance: exit status {done.returncode}: {' '.join(command)}")
    results = []
    for number, line in enumerate(done.stdout.decode("utf-8", "replace").splitlines()[-len(prompts):]):
        name = f"{prefix}.{number}.npy"
        with open(name, "rb") as file:
            results.append((json.loads(line), file.read()))
        os.remove(name)
    if rows:
        rows.add(f"{prefix}.trace", [[*prompt, *result["ids"]] for prompt, (result, _) in zip(prompts, results)])
    return results


def difference(left, right, folder):
    """Where two .npy files differ first."""
    values = []
    for number, data in enumerate((left, right)):
        path = os.path.join(folder, f"difference.{number}.npy")
        with open(path, "wb") as file:
            file.write(data)
        values.append(npy.read(path))
    (shape, a), (other, b) = values
    if shape != other:
        return f"logits have shape {other}, alone they have {shape}"
    count = sum(x != y for x, y in zip(a, b))
    index = next((i for i, (x, y) in enumerate(zip(a, b)) if x != y), None)
    if index is None:
        return "logits differ only in bits that compare equal (zeros' signs, NaN)"
    return (f"{count} of {len(a)} logits differ, first [{index // shape[1]}, {index % shape[1]}]: {b[index]!r}, "
            f"alone {a[index]!r}")


def compare(way, alone, results, prompts, new, folder):
    """Prints what differs; returns the number of sequences that do."""
    bad = 0
    for number, ((result, data), (expected, wanted)) in enumerate(zip(results, alone)):
        length, faults = len(prompts[number]), []
        rows = length + new - 1
        if way == "no-cache":
            rows = sum(range(length, length + new))
        if result["ids"] != expected["ids"]:
            faults.append("ids differ")
        if data != wanted:
            faults.append(difference(wanted, data, folder))
        if result["stats"]["projected_rows"] != rows:
            faults.append(f"projected {result['stats']['projected_rows']} rows, expected {rows}")
        if faults:
            bad += 1
            print(f"{way}, prompt of {length} tokens: {'; '.join(faults)}")
    return bad


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("program")
    parser.add_argument("--lengths", default="70,9,131", help="prompt tokens (default: %(default)s)")
    parser.add_argument("--new", type=int, default=12, help="new tokens (default: %(default)s)")
    parser.add_argument("--vocab", type=int, default=90, help="prompt ids are below this (default: %(default)s)")
    parser.add_argument("--device", default="cpu", choices=("cpu", "sim", "cuda"), help="where to run")
    parser.add_argument("--ways", help=f"of: {','.join(WAYS)}; on sim and cuda of: {','.join(SIM_WAYS)}")
    parser.add_argument("--kernels", action="store_true", help="compare what every kernel writes")
    parser.add_argument("--timeout", type=float, default=1800.0, help="seconds for one run")
    args = parser.parse_args()
    known = {"cpu": WAYS, "sim": SIM_WAYS, "cuda": GPU_WAYS}[args.device]
    device = [] if args.device == "cpu" else ["--device", args.device]
    lengths = [int(word) for word in args.lengths.split(",")]
    ways = args.ways.split(",") if args.ways else list(known)
    unknown = [way for way in ways if way not in known]
    if unknown:
        parser.error(f"no such way: {', '.join(unknown)}; there are {', '.join(known)}")
    program = os.path.abspath(args.program)
    prompts = [[(37 * i * i + 11 * i + length) % args.vocab for i in range(length)] for length in lengths]

    with tempfile.TemporaryDirectory(prefix="kvc-invariance-") as folder:
        def each(options):
            return [run(program, [prompt], args.new, folder, options, args.timeout, rows)[0] for prompt in prompts]

        rows = traces.Rows() if args.kernels else None
        alone, bad = each(device or ["--threads", "1"]), 0
        for way in ways:
            try:
                if way.startswith("batch"):
                    results = run(program, prompts, args.new, folder, [*known[way], *device], args.timeout, rows)
                else:
                    results = each([*known[way], *device])
            except traces.Differs as fault:
                print(f"{way}: {fault}")
                bad += len(prompts)
                continue
            bad += compare(way, alone, results, prompts, args.new, folder)
    total = len(ways) * len(prompts)
    print(f"{os.path.basename(program)}: {total - bad}/{total} runs bit-identical to the sequence alone "
          f"({', '.join(ways)})" + (f", {len(rows.bits)} rows of kernels" if rows else ""))
    return 0 if bad == 0 else 1


if __name__ == "__main__":
    sys.exit(main())
