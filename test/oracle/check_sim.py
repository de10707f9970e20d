#!/usr/bin/env python3
"""Runs small models' GPU programs in the PTX interpreter and compares their logits
with the reference interpreter's on the same schedule.

    check_sim.py --bin build/bin [--chip sm_90] [--device sim] [NAME ...]

The models are the JSON specs of test/models and the tiny GGUF models. Each is
compiled for cuda; three sequences of different lengths, cut so that prefill
and decode cross a page's end, run in one batch with forced tokens. Logits must
agree with `kvc-translate --interpret --rounded` (float64, the same rounding
points) within a part of their standard deviation, and the largest logit must be
the same wherever the margin exceeds ten times that. With --invariance the bits
must be those of each sequence alone, however it is cut (check_invariance.py).
The last line says how many models agree; standard library only.
"""
import argparse
import concurrent.futures
import contextlib
import json
import math
import os
import subprocess
import sys
import tempfile
import time

import npy

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "tiny_gguf"))
import tiny_gguf  # noqa: E402

# bf16 has 8 bits: an accumulation of roundings that fall on the other side.
TOLERANCE = 0.03
LENGTHS = (5, 67, 62)
FORCED = 4


class Failure(Exception):
    """One model does not agree."""


def run(command, timeout):
    try:
        done = subprocess.run(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                              timeout=timeout, check=False)
    except subprocess.TimeoutExpired:
        raise Failure(f"no end after {timeout} s: {' '.join(command)}") from None
    if done.returncode != 0:
        text = done.stderr.decode("utf-8", "replace").strip()[-1500:]
        raise Failure(f"exit status {done.returncode}: {' '.join(command)}: {text}")
    return done.stdout.decode("utf-8", "replace")


def rows_of(path):
    shape, values = npy.read(path)
    return [values[row * shape[1]:(row + 1) * shape[1]] for row in range(shape[0])]


def compare(expected, found):
    """Returns (largest error in standard deviations, steps whose largest differs)."""
    count = sum(len(row) for row in expected)
    mean = sum(map(sum, expected)) / count
    deviation = math.sqrt(sum((x - mean) ** 2 for row in expected for x in row) / count)
    worst, wrong = 0.0, 0
    for wanted, got in zip(expected, found):
        error = max(abs(a - b) if math.isfinite(b) else math.inf for a, b in zip(wanted, got)) / deviation
        worst = max(worst, error)
        best = sorted(wanted)[-2:]
        clear = best[1] - best[0] > 10 * TOLERANCE * deviation
        wrong += clear and max(range(len(got)), key=got.__getitem__) != wanted.index(best[1])
    return worst, wrong


def check(name, model, folder, args):
    """Compiles, runs and compares one model; returns the line that says how it went."""
    tool = lambda word: os.path.join(args.bin, word)  # noqa: E731
    start = time.monotonic()
    program, schedule = os.path.join(folder, name), os.path.join(folder, name + ".mlir")
    run([tool("kvc"), "compile", model, "-o", program, "-q", "--target=cuda", f"--chip={args.chip}"], args.timeout)
    importer = "--import-gguf" if model.endswith(".gguf") else "--import-spec"
    run([tool("kvc-translate"), importer, model, "-o", schedule + ".l1"], args.timeout)
    run([tool("kvc-opt"), f"--kvc-pipeline=target=cuda target-cpu={args.chip}", schedule + ".l1", "-o", schedule],
        args.timeout)

    vocab = args.vocab
    prompts = [[(37 * i * i + 11 * i + length) % vocab for i in range(length)] for length in LENGTHS]
    forced = [(29 * i + 3) % vocab for i in range(FORCED)]
    requests = os.path.join(folder, name + ".jsonl")
    with open(requests, "w", encoding="utf-8") as file:
        for prompt in prompts:
            file.write(json.dumps({"prompt_ids": prompt}) + "\n")
    prefix = os.path.join(folder, name + ".logits")
    run([program, f"--device={args.device}", "--prompts", requests, "--force-ids", ",".join(map(str, forced)),
         "--ignore-eos", "--json", "--logits", prefix, *args.program_arg], args.timeout)

    worst, wrong, steps = 0.0, 0, 0
    for number, prompt in enumerate(prompts):
        path = os.path.join(folder, f"{name}.{number}.npy")
        # The last forced token is never fed.
        run([tool("kvc-translate"), "--interpret", "--rounded", schedule, "--ids=" + ",".join(map(str, prompt)),
             "--decode-ids=" + ",".join(map(str, forced[:-1])), "--logits=" + path], args.timeout)
        expected, found = rows_of(path), rows_of(f"{prefix}.{number}.npy")
        if len(expected) != len(found):
            raise Failure(f"{len(found)} rows of logits, {len(expected)} expected")
        error, differ = compare(expected, found)
        worst, wrong, steps = max(worst, error), wrong + differ, steps + len(found)
    if not worst <= TOLERANCE or wrong:
        raise Failure(f"largest logit error {worst:.3g} of the standard deviation, allowed {TOLERANCE}; "
                      f"{wrong} of {steps} clear choices differ")
    line = f"{name}: {steps} steps agree, largest logit error {worst:.2e} of the standard deviation"
    if args.invariance:
        said = run([sys.executable, os.path.join(HERE, "check_invariance.py"), program, "--device", args.device,
                    "--lengths", "70,9", "--new", "3"], args.timeout)
        line += "; " + said.strip().splitlines()[-1]
    return f"{line}; {time.monotonic() - start:.0f} s"


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--bin", required=True, help="the folder of kvc, kvc-opt and kvc-translate")
    parser.add_argument("--chip", default="sm_90", help="(default: %(default)s)")
    parser.add_argument("--device", default="sim", help="sim or cuda (default: %(default)s)")
    parser.add_argument("--program-arg", action="append", default=[], metavar="ARG",
                        help="a further argument of the programs, such as --sim-seed=3")
    parser.add_argument("--invariance", action="store_true", help="check too that bits do not depend on how it runs")
    parser.add_argument("--vocab", type=int, default=90, help="token ids are below this (default: %(default)s)")
    parser.add_argument("--keep", metavar="FOLDER", help="put models and programs there and leave them")
    parser.add_argument("--jobs", type=int, default=1, help="models at once (default: %(default)s)")
    parser.add_argument("--timeout", type=float, default=600.0, help="seconds for one command")
    parser.add_argument("names", nargs="*", help="models; all without")
    args = parser.parse_args()

    ggufs = tiny_gguf.models()
    models = {name[:-5]: os.path.join(HERE, "../models", name) for name in sorted(os.listdir(os.path.join(HERE, "tiny")))
              if name.endswith(".json")}
    models.update({name: None for name in ggufs})
    unknown = [name for name in args.names if name not in models]
    if unknown:
        parser.error(f"no such model: {', '.join(unknown)}; there are {', '.join(models)}")

    def one(name):
        with contextlib.ExitStack() as stack:
            folder = args.keep or stack.enter_context(tempfile.TemporaryDirectory(prefix="kvc-sim-"))
            os.makedirs(folder, exist_ok=True)
            model = models[name]
            if model is None:
                model = os.path.join(folder, f"{name}.gguf")
                with open(model, "wb") as file:
                    file.write(tiny_gguf.make(ggufs[name]))
            try:
                return True, check(name, model, folder, args)
            except Failure as failure:
                return False, f"{name}: {failure}"

    names, agree = args.names or list(models), 0
    with concurrent.futures.ThreadPoolExecutor(args.jobs) as pool:
        for good, line in pool.map(one, names):
            print(line, flush=True)
            agree += good
    print(f"models: {agree}/{len(names)} agree")
    return 0 if agree == len(names) else 1


if __name__ == "__main__":
    sys.exit(main())
