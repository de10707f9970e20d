#!/usr/bin/env python3
"""Runs GPU programs on the PTX interpreter and compares what they compute.

    run_sim.py [--full] [--one-layer] [--jobs N] [--list] [MODEL[/KIND] ...]

A case is a model compiled for a chip with a type of cache; its program runs
with --device=sim, all checks on. Its logits must be those of the f64
interpreter that rounds at the same places (kvc.round, the cache, attention's
weights), and must not depend by a single bit on how it is run: alone or in
batches of 3 to 70, prefilled whole or in chunks of 1, 3, 8, 9 and 64 rows,
by decode steps or by prefill, blocks in order or permuted. Neither must what any
of its kernels writes for a token (--trace), which rounding to bf16 behind it
might hide from the logits.

How near is near: a sum in f32 is off by some 1e-6, since tensor cores cut what
they add, so a row in which no value falls on the other side of a rounding
agrees to 5e-5 of the logits' deviation. Cut to one layer, of forty rows of a
model at least a tenth must; what is wrong in kind moves every row. One turned
bf16 rounding moves a value by 1/256 of itself, and the logits by up to some
hundredths of their deviation: no row may differ by more than a tenth.

Without names: a selection; --full or KVC_FULL=1: every tiny model. Uses kvc-opt
and kvc-translate from PATH; standard library only.
"""
import argparse
import collections
import concurrent.futures
import json
import os
import subprocess
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [os.path.join(HERE, "../cpu"), os.path.join(HERE, "../../oracle")]
import npy  # noqa: E402
import run_matrix as matrix  # noqa: E402
import traces  # noqa: E402

EXACT, TURNED = 5e-5, 0.1
SIM = ["--device=sim", "--temperature=0", "--ignore-eos", "--json"]
NEW = 4  # tokens behind every prompt
LONG = 512  # tokens of a sequence in eight pages
# Others differ from these in formats, or in what a short run shows.
THOROUGH = ("gqa_small", "mqa_learned_small", "modular_small", "wide_heads", "chunks")

Case = collections.namedtuple("Case", "model chip kv")
Result = collections.namedtuple("Result", "ids rows data")


def quick_cases():
    return [Case("gqa_small", "sm_90", "f16"), Case("partial_rotary_small", "sm_80", "bf16"), Case("q4_0", "sm_90", "f16")]


def all_cases():
    cases = []
    for number, name in enumerate((*matrix.SPECS, *matrix.tiny_gguf.models())):
        cases.append(Case(name, "sm_90", "f16"))
        if number % 3 == 0:
            cases.append(Case(name, "sm_80", "bf16"))
    return cases


def label(c):
    return "/".join(c)


class FirstLayer(matrix.Model):
    """A model cut to one layer: few roundings, so that most rows agree exactly."""

    def __init__(self, model, folder):  # pylint: disable=super-init-not-called
        self.name, self.path = model.name + ".1", os.path.join(folder, f"{model.name}.1.l1.mlir")
        self.vocab, self.known = model.vocab, {}
        source = os.path.join(folder, f"{model.name}.1")
        if model.name in matrix.SPECS:
            with open(os.path.join(HERE, "../../models", f"{model.name}.json"), encoding="utf-8") as file:
                content = json.dumps({**json.load(file), "layers": 1}).encode()
        else:
            content = matrix.tiny_gguf.make({**matrix.tiny_gguf.models()[model.name], "layers": 1})
        with open(source, "wb") as file:
            file.write(content)
        matrix.run(["kvc-translate", "--import-spec" if model.name in matrix.SPECS else "--import-gguf", source, "-o",
                    self.path])


class Program:
    """A compiled case."""

    def __init__(self, c, model, base):
        self.path, self.schedule = base, base + ".l4.mlir"
        self.arithmetic = ("cuda", c.kv)
        options = f"target=cuda target-cpu={c.chip} kv-type={c.kv}"
        matrix.run(["kvc-opt", f"--kvc-pipeline={options}", model.path, "-o", self.schedule])
        matrix.run(["kvc-translate", "--kvc-to-executable", self.schedule, "-o", self.path])
        self.runs, self.rows = 0, traces.Rows()

    def execute(self, command):
        """Runs it; returns the JSON that it prints."""
        return [json.loads(line) for line in matrix.run(command).splitlines() if line.startswith("{")]

    def batch(self, prompts, *arguments, new=NEW):
        """Runs prompts together; returns each one's ids, rows of logits and their bytes."""
        self.runs += 1
        base = f"{self.path}.{self.runs}"
        with open(base + ".jsonl", "w", encoding="utf-8") as file:
            file.writelines(json.dumps({"prompt_ids": prompt}) + "\n" for prompt in prompts)
        records = self.execute([self.path, f"--prompts={base}.jsonl", f"--max-new-tokens={new}", f"--logits={base}",
                                f"--trace={base}.trace", *SIM, *arguments])[-len(prompts):]
        results = []
        for number, record in enumerate(records):
            name = f"{base}.{number}.npy"
            with open(name, "rb") as file:
                data = file.read()
            results.append(Result(record["ids"], matrix.logits_of(name), data))
            os.remove(name)
        self.rows.add(base + ".trace", [[*prompt, *result.ids] for prompt, result in zip(prompts, results)])
        return results


def prompts_of(model):
    """Ten short prompts, and three that end in different pages: one reaches the next page in decode."""
    def ids(length, start):
        return [(31 * i * i + 17 * i + start) % model.vocab for i in range(length)]
    return model.short_prompts(), [ids(61, 3), ids(130, 7), ids(5, 11)]


def errors_of(model, program, prompts, results):
    """The error of every sequence's every row."""
    theirs = model.interpreted(program, prompts, [result.ids[:-1] for result in results])
    return [matrix.row_error(a, b) for result, wanted in zip(results, theirs, strict=True)
            for a, b in zip(result.rows, wanted, strict=True)]


def compare_bits(what, wanted, found):
    for number, (one, other) in enumerate(zip(wanted, found, strict=True)):
        if one.data == other.data:
            continue
        row = next((i for i, (a, b) in enumerate(zip(one.rows, other.rows)) if a != b), None)
        raise RuntimeError(f"{what}: other bits in sequence {number}, first in row {row} of logits, "
                           f"by {matrix.row_error(other.rows[row or 0], one.rows[row or 0]):.1e} of the deviation")


def check_layer(first, program):
    """A program of one layer; returns (rows that are exact, errors). test/mutation uses this, too."""
    short = prompts_of(first)[0]
    errors = errors_of(first, program, short, program.batch(short))
    exact = sum(error <= EXACT for error in errors)
    if exact < len(errors) / 10 or not max(errors) <= TURNED:
        raise RuntimeError("one layer differs from the interpreter by (parts of the deviation) "
                           + ", ".join(f"{error:.1e}" for error in errors))
    return exact, errors


def check_all(model, program):
    """Errors and bits of a program of all layers; returns the errors."""
    short, ragged = prompts_of(model)
    few, together = program.batch(short), program.batch(ragged)
    errors = errors_of(model, program, short, few) + errors_of(model, program, ragged, together)
    if not max(errors) <= TURNED:
        raise RuntimeError("differs from the interpreter by (parts of the deviation) "
                           + ", ".join(f"{error:.1e}" for error in errors))

    for number, prompt in enumerate(ragged):
        compare_bits("alone", together[number:number + 1], program.batch([prompt]))
    compare_bits("permuted blocks, chunks of 7", together, program.batch(ragged, "--sim-seed=5", "--prefill-chunk=7"))
    for chunk in (3, 8, 9, 64):
        compare_bits(f"chunks of {chunk}", together[:1], program.batch(ragged[:1], f"--prefill-chunk={chunk}"))
    compare_bits("chunks of 1", together[2:], program.batch(ragged[2:], "--prefill-chunk=1"))
    compare_bits("prefill against decode", together[::2], program.batch(ragged[::2], "--no-cache"))
    # Decode steps of 1, 3, 8 and 9 rows; ten above.
    for rows in (1, 3, 8, 9):
        compare_bits(f"a batch of {rows}", few[:rows], program.batch(short[:rows]))
    # A block has 64 rows: it ends within each eight of them, and there is a second one.
    thorough = model.name in THOROUGH
    for rows in (20, 29, 37, 44, 53, 64, 70) if thorough else (64, 70):
        many = [short[i % len(short)] for i in range(rows)]
        compare_bits(f"a batch of {rows}", [few[i % len(short)] for i in range(rows)], program.batch(many))
    # Many pages, merged by a decode step and by prefill.
    if thorough:
        whole = [(13 * i * i + 5 * i + 2) % model.vocab for i in range(min(model.context(), LONG) - 1)]
        program.batch([whole], new=1)
        program.batch([whole[:1 - NEW]], f"--force-ids={matrix.joined(whole[1 - NEW:])}")
    return errors


def run_layer(c, model, folder):
    """Returns what was found of the model cut to one layer."""
    first = FirstLayer(model, folder)
    program = Program(c, first, os.path.join(folder, label(c).replace("/", ".") + ".1"))
    exact, errors = check_layer(first, program)
    os.remove(program.path)
    return f"{exact} of {len(errors)} rows of one layer are the interpreter's, all within {max(errors):.1e}"


def run_case(c, model, folder):
    """Returns what was found."""
    found = run_layer(c, model, folder)
    program = Program(c, model, os.path.join(folder, label(c).replace("/", ".")))
    errors = check_all(model, program)
    os.remove(program.path)
    return (f"{found}; {len(errors)} of all layers within {max(errors):.1e}; {program.runs} runs agree bit by bit in "
            f"{len(program.rows.bits)} rows")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--full", action="store_true", default=os.environ.get("KVC_FULL") == "1")
    parser.add_argument("--one-layer", action="store_true", help="only what runs cut to one layer")
    parser.add_argument("--jobs", type=int, default=1, help="cases at once (default: %(default)s; one uses all cores)")
    parser.add_argument("--list", action="store_true", help="name the cases and stop")
    parser.add_argument("names", nargs="*", help="only cases whose name starts so")
    args = parser.parse_args()
    cases = all_cases() if args.full or args.names else quick_cases()
    cases = [c for c in cases if not args.names or label(c).startswith(tuple(args.names))]
    if not cases:
        parser.error("no case has such a name")
    if args.list:
        print("\n".join(map(label, cases)))
        return 0
    failed = 0
    with tempfile.TemporaryDirectory(prefix="kvc-sim-") as folder, concurrent.futures.ThreadPoolExecutor(args.jobs) as pool:
        models = {name: matrix.Model(name, folder) for name in dict.fromkeys(c.model for c in cases)}

        def one(c):
            try:
                return True, (run_layer if args.one_layer else run_case)(c, models[c.model], folder)
            except (RuntimeError, OSError, npy.NpyError, subprocess.TimeoutExpired) as error:
                return False, str(error)

        for c, (good, text) in zip(cases, pool.map(one, cases)):
            print(f"{label(c)}: {text}", flush=True)
            failed += not good
    print(f"sim: {len(cases) - failed}/{len(cases)} right")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
