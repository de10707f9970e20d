#!/usr/bin/env python3
"""Runs generated code of many kinds and compares what it computes.

    run_matrix.py [--full] [--jobs N] [--list] [MODEL[/KIND] ...]

A case is a model compiled one way. With f32 activations and cache its logits
must be the record's of an independent implementation; otherwise those of the
f64 interpreter that applies the same roundings to the same schedule. Programs
of one model that differ in instructions alone (same register width, same
options) must agree in every bit, and so must a program with itself when its
arenas start out as NaN (KVC_POISON=1) and two workers share the steps.

Without names: a selection that has every instruction set, register width,
format family and cache type; --full or KVC_FULL=1: every combination. Cases
this machine cannot run are named and skipped. Uses kvc-opt and kvc-translate
from PATH; standard library only.
"""
import argparse
import collections
import concurrent.futures
import json
import math
import os
import re
import subprocess
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
ORACLE = os.path.join(HERE, "../../oracle")
sys.path[:0] = [ORACLE, os.path.join(ORACLE, "tiny_gguf")]
import npy  # noqa: E402
import tiny_gguf  # noqa: E402

# Name: processor, register width, what /proc/cpuinfo has to list, sums of 8-bit products by.
TARGETS = {
    "vnni512": ("icelake-server", 512, "avx512vl avx512_vnni avx512_bitalg avx512_vbmi2 vpclmulqdq"),
    "vnni256": ("icelake-server", 256, "avx512vl avx512_vnni avx512_bitalg avx512_vbmi2 vpclmulqdq"),
    "v4": ("x86-64-v4", 512, "avx512vl avx512bw avx512dq avx512cd"),  # vpmaddubsw zmm
    "v3": ("x86-64-v3", 256, "avx2 fma f16c bmi2"),                   # vpmaddubsw ymm
    "v3w512": ("x86-64-v3", 512, "avx2 fma f16c bmi2"),               # the same, two a register
    "v2": ("x86-64-v2", 128, "ssse3 sse4_1"),                         # pmaddubsw xmm
    "v2w256": ("x86-64-v2", 256, "ssse3 sse4_1"),
    "base": ("x86-64", 128, "sse2"),                                  # shifts and multiplications
    "basew256": ("x86-64", 256, "sse2"),
    "basew512": ("x86-64", 512, "sse2"),
}
SPECS = ("gqa_small", "tiny_causal_lm", "mqa_learned_small", "modular_small", "partial_rotary_small",
         "capped_small")

Case = collections.namedtuple("Case", "model target activations kv fuse long")


def case(model, target, activations="int8", kv="f32", fuse=True, long=False):
    return Case(model, target, activations, kv, fuse, long)


def quick_cases():
    cases = [case("q4_1", target) for target in ("vnni512", "v4", "v3w512", "basew512", "v3", "vnni256", "v2", "base")]
    cases += [case("mixed", target) for target in ("vnni512", "v3w512")]
    # Codes of 8 bits, tables with negative values, zero points, exponents.
    cases += [case(model, target) for model in ("q8_0", "iq4_xs", "q6_k", "mxfp4", "q2_k")
              for target in ("v4", "v3w512")]
    cases += [case("mixed", "v4", "f32"), case("iq4_xs", "v3", "f32"), case("q2_k", "v2", "f32")]
    cases += [case("mqa_learned_small", "v3", "f32"), case("tiny_causal_lm", "v2", "f32")]
    cases += [case("gqa_small", target, "f32") for target in ("v4", "v3w512")]
    cases += [case(model, "v3", "f32", fuse=False) for model in ("gqa_small", "q4_1")]
    # Rounded to 16 bits where matrix units would read them, over weights of every kind.
    cases += [case("gqa_small", "v3", "bf16", "f16"), case("mqa_learned_small", "v4", "bf16", "bf16"),
              case("q8_0", "v3w512", "bf16", "f16"), case("q4_1", "v4", "bf16", "f16"), case("gqa_small", "v3", "bf16", "f16", fuse=False)]
    # Prompts beyond a split of 256 positions, in every type of cache.
    cases += [case("gqa_small", "v3", "f32", kv, long=True) for kv in ("f32", "f16", "bf16")]
    cases += [case("q4_1", "v4", "int8", "f16", long=True), case("q4_1", "v3w512", "int8", "f16", long=True)]
    return cases


def all_cases():
    names = list(tiny_gguf.models())
    cases = [case(model, target, activations) for model in names for target in TARGETS for activations in ("f32", "int8")]
    cases += [case(model, target, "f32") for model in SPECS for target in TARGETS]
    cases += [case(model, target, "f32", fuse=False) for model in ("gqa_small", "mqa_learned_small", "q4_1", "mixed")
              for target in ("v4", "v3", "v3w512", "v2")]
    cases += [case("q4_1", target, "int8", fuse=False) for target in ("v4", "v3")]
    cases += [case(model, target, activations, kv, long=True)
              for model, activations in (("gqa_small", "f32"), ("mqa_learned_small", "f32"), ("wide_heads", "int8"),
                                         ("q4_1", "int8"))
              for target in TARGETS for kv in ("f32", "f16", "bf16")]
    return cases


def label(c):
    width = TARGETS[c.target][1]
    parts = [c.model, c.target, f"w{width}", c.activations, f"kv-{c.kv}"]
    return "/".join(parts + ([] if c.fuse else ["unfused"]) + (["long"] if c.long else []))


def run(command, env=None):
    done = subprocess.run(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                          timeout=600, check=False, env={**os.environ, **(env or {})})
    if done.returncode != 0:
        raise RuntimeError(f"exit status {done.returncode} of {' '.join(command)}: "
                           f"{done.stdout.decode('utf-8', 'replace')[-2000:]}")
    return done.stdout.decode("utf-8", "replace")


def runnable(target):
    with open("/proc/cpuinfo", encoding="ascii", errors="replace") as file:
        flags = set(next(line for line in file if line.startswith("flags")).split())
    return set(TARGETS[target][2].split()) <= flags


class Model:
    """A model's L1 and its record, made once."""

    def __init__(self, name, folder):
        self.name, self.path = name, os.path.join(folder, f"{name}.l1.mlir")
        if name in SPECS:
            source, action = os.path.join(HERE, "../../models", f"{name}.json"), "--import-spec"
            self.record = os.path.join(ORACLE, "tiny", f"{name}.json")
        else:
            source, action = os.path.join(folder, f"{name}.gguf"), "--import-gguf"
            self.record = os.path.join(ORACLE, "tiny_gguf", f"{name}.json")
            with open(source, "wb") as file:
                file.write(tiny_gguf.make(tiny_gguf.models()[name]))
        run(["kvc-translate", action, source, "-o", self.path])
        with open(self.record, encoding="utf-8") as file:
            sequence = json.load(file)["sequences"][0]
        self.prompt, self.forced = sequence["prompt_ids"], sequence["ids"][:6]
        self.vocab = max(self.prompt + sequence["ids"]) + 1
        self.known = {}

    def context(self):
        with open(self.path, encoding="utf-8") as file:
            return int(re.search(r"max_context = (\d+)", file.read()).group(1))

    def long_prompt(self):
        return [(7 * i * i + 3 * i + 1) % self.vocab for i in range(300)]

    def interpreted(self, program, prompts, forced):
        """What the interpreter computes; schedules of one arithmetic that differ in target share it."""
        key = (program.arithmetic, json.dumps([prompts, forced]))
        if key not in self.known:
            self.known[key] = interpret(program.schedule, prompts, forced, program.path + ".wanted")
        return self.known[key]

    def short_prompts(self):
        return [[(31 * i * i + 17 * i + 5 * j) % self.vocab for j in range(1 + i % 3)] for i in range(10)]


def joined(ids):
    return ",".join(map(str, ids))


def logits_of(path):
    """The rows of a file of logits."""
    (_, vocab), values = npy.read(path)
    return [values[first:first + vocab] for first in range(0, len(values), vocab)]


def interpret(schedule, prompts, forced, path):
    """The rows of logits of each sequence, by the f64 interpreter in rounded mode."""
    run(["kvc-translate", "--interpret", "--rounded", schedule, *(f"--ids={joined(ids)}" for ids in prompts),
         *(f"--decode-ids={joined(ids)}" for ids in forced), f"--logits={path}.npy"])
    if len(prompts) == 1:
        return [logits_of(f"{path}.npy")]
    return [logits_of(f"{path}.{number}.npy") for number in range(len(prompts))]


def row_error(ours, theirs):
    """The largest difference as a part of the standard deviation."""
    mean = math.fsum(theirs) / len(theirs)
    deviation = math.sqrt(math.fsum((x - mean) ** 2 for x in theirs) / len(theirs))
    return max(math.inf if math.isnan(a) else abs(a - b) for a, b in zip(ours, theirs)) / deviation


def judge(rows, activations, rounded):
    """Errors of sequences' rows against the f64 interpreter that rounds at the same places.

    Sums of f32 are off by some 1e-7 of what they add. Without roundings in
    between, logits differ by little more. A rounding to 8 bits or to the
    cache's type now and then falls on a value that close to a tie, and is
    turned by one step; the roundings behind it then see other values and turn,
    too, so that one sequence's logits move by as much as rounding itself moves
    them, a few hundredths of their deviation. It is rare: about one value in
    10000. So most sequences of a few tokens have none, and must be as exact as
    sums are; what is wrong in kind, a scale, a sign, a code's place, moves
    every one of them. With bf16 activations each value rounds by itself, and
    attention's weights do: more turn, but the best row must be exact.
    """
    errors = sorted(map(max, rows))
    most = min(map(min, rows)) if activations == "bf16" else errors[(3 * len(errors) - 1) // 4]
    if not most <= (5e-5 if rounded else 2e-4) or not errors[-1] <= (0.3 if rounded else 2e-4):
        raise RuntimeError("differs from the interpreter by (parts of the deviation) "
                           + ", ".join(f"{error:.1e}" for error in errors))
    return errors


class Program:
    """A compiled case."""

    def __init__(self, c, model, base):
        self.path, self.logits, self.schedule = base, base + ".npy", base + ".l4.mlir"
        # A fused attention rounds its weights where its queries are rounded.
        self.arithmetic = (c.activations, c.kv, c.fuse or c.activations != "bf16")
        cpu, width, _ = TARGETS[c.target]
        options = f"target-cpu={cpu} vector-width={width} activations={c.activations} kv-type={c.kv}"
        if not c.fuse:
            options += " fuse=false"
        run(["kvc-opt", f"--kvc-pipeline={options}", model.path, "-o", self.schedule])
        run(["kvc-translate", "--kvc-to-executable", self.schedule, "-o", self.path])

    def execute(self, prompt, forced, arguments, env=None):
        """Feeds ids; returns the bytes of the file of logits."""
        run([self.path, f"--prompt-ids={joined(prompt)}", f"--force-ids={joined(forced)}",
             f"--max-new-tokens={len(forced)}", "--temperature=0", "--ignore-eos", f"--logits={self.logits}",
             *arguments], env)
        with open(self.logits, "rb") as file:
            return file.read()

    def batch(self, prompts, new):
        """Runs prompts together; returns each one's ids and rows of logits."""
        path = self.path + ".jsonl"
        with open(path, "w", encoding="utf-8") as file:
            file.writelines(json.dumps({"prompt_ids": prompt}) + "\n" for prompt in prompts)
        lines = run([self.path, f"--prompts={path}", f"--max-new-tokens={new}", "--temperature=0", "--ignore-eos",
                     "--json", f"--logits={self.path}.batch"]).splitlines()[-len(prompts):]
        return [(json.loads(line)["ids"], logits_of(f"{self.path}.batch.{number}.npy"))
                for number, line in enumerate(lines)]


def run_case(c, model, folder):
    """Returns (what was found, the bits of the logits)."""
    program = Program(c, model, os.path.join(folder, label(c).replace("/", ".")))
    prompt = model.long_prompt() if c.long else model.prompt
    bits = program.execute(prompt, model.forced, ["--threads=1"])
    ours = logits_of(program.logits)
    again = program.execute(prompt, model.forced, ["--threads=2", "--prefill-chunk=7"], {"KVC_POISON": "1"})
    if again != bits:
        raise RuntimeError("two workers with arenas of NaNs and chunks of 7 compute other bits")
    rounded = c.activations != "f32" or c.kv != "f32"
    if c.long:
        theirs = model.interpreted(program, [prompt], [model.forced[:-1]])[0]
        errors = [row_error(a, b) for a, b in zip(ours, theirs, strict=True)]
        # One sequence: its first turned rounding is in every row behind it.
        if not max(errors) <= (0.3 if c.activations == "int8" else 1e-3 if rounded else 2e-4):
            raise RuntimeError(f"differs from the interpreter by {max(errors):.1e} of the deviation")
        found = f"{len(prompt)} positions, within {max(errors):.1e} of the interpreter"
    elif not rounded:
        text = run([sys.executable, os.path.join(ORACLE, "check_program.py"), model.record, program.path])
        found = text.strip().split(": ", 1)[1]
    else:
        prompts = model.short_prompts()
        results = program.batch(prompts, 2)
        theirs = model.interpreted(program, prompts, [ids[:-1] for ids, _ in results])
        errors = judge([[row_error(a, b) for a, b in zip(rows, wanted, strict=True)]
                        for (_, rows), wanted in zip(results, theirs, strict=True)], c.activations, rounded)
        found = (f"{len(errors)} prompts within {errors[-1]:.1e} of the interpreter, "
                 f"three quarters within {errors[(3 * len(errors) - 1) // 4]:.1e}")
    os.remove(program.path)
    return found, bits


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--full", action="store_true", default=os.environ.get("KVC_FULL") == "1")
    parser.add_argument("--jobs", type=int, default=os.cpu_count(), help="cases at once (default: %(default)s)")
    parser.add_argument("--list", action="store_true", help="name the cases and stop")
    parser.add_argument("names", nargs="*", help="only cases whose name starts so")
    args = parser.parse_args()
    cases = all_cases() if args.full else quick_cases()
    cases = [c for c in cases if not args.names or label(c).startswith(tuple(args.names))]
    if not cases:
        parser.error("no case has such a name")
    if args.list:
        print("\n".join(map(label, cases)))
        return 0
    possible = {target: runnable(target) for target in TARGETS}
    failed, skipped, families = 0, 0, collections.defaultdict(dict)
    with tempfile.TemporaryDirectory(prefix="kvc-matrix-") as folder, \
            concurrent.futures.ThreadPoolExecutor(args.jobs) as pool:
        names = dict.fromkeys(c.model for c in cases)
        models = dict(zip(names, pool.map(lambda name: Model(name, folder), names)))

        def one(c):
            if not possible[c.target]:
                return None, "skipped, this machine lacks its instructions", None
            try:
                return True, *run_case(c, models[c.model], folder)
            except (RuntimeError, OSError, npy.NpyError, subprocess.TimeoutExpired) as error:
                return False, str(error), None

        for c, (good, text, bits) in zip(cases, pool.map(one, cases)):
            print(f"{label(c)}: {text}", flush=True)
            failed += good is False
            skipped += good is None
            if bits is not None:
                # What the fusions leave alone is the arithmetic; register width fixes the order of sums.
                families[c._replace(target=TARGETS[c.target][1])].setdefault(bits, []).append(c.target)
    for family, groups in families.items():
        if len(groups) > 1:
            failed += 1
            print(f"{family.model}, {family.target}-bit registers, {family.activations}, cache {family.kv}: "
                  f"different bits by {' and by '.join(', '.join(targets) for targets in groups.values())}")
    compared = sum(len(targets) > 1 for groups in families.values() for targets in groups.values())
    print(f"matrix: {len(cases) - failed - skipped}/{len(cases)} right, {skipped} skipped, "
          f"{compared} groups of instruction sets compared by bits")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
