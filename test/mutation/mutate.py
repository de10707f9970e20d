#!/usr/bin/env python3
"""Mutates single instructions of a program's PTX and sees whether the tests notice.

    mutate.py [--bin build/bin] [--count 72] [--seed 1] [--models gqa_small,q4_k]

Small models are compiled for cuda. Their PTX is changed in one instruction at a
time: sites are drawn by the seed, one opcode after the other, among the
instructions that the unchanged program executes in the runs below. Each mutant
runs in the PTX interpreter as the tests run programs (PROG --device=sim --ptx):
its checks of memory, races and copies; logits against the float64 reference;
the same bits alone, in a batch, in chunks, without the cache and in another
order of blocks; chosen ids against the logits and the unchanged program's draw.
Survivors are printed with their lines and, where equivalents.json has one, the
argument why nothing could notice. The exit status is 0 if at least 95 % of the
mutants were noticed and every survivor has an argument. Standard library only.
"""
import argparse
import collections
import concurrent.futures
import json
import os
import random
import re
import shutil
import subprocess
import sys
import tempfile
import time

HERE = os.path.dirname(os.path.abspath(__file__))
ORACLE = os.path.join(HERE, "..", "oracle")
sys.path.insert(0, ORACLE)
sys.path.insert(0, os.path.join(ORACLE, "tiny_gguf"))
import check_sim  # noqa: E402
import npy  # noqa: E402
import operators  # noqa: E402
import tiny_gguf  # noqa: E402

GOAL = 0.95
FORCED = (3, 32, 61, 12)
LENGTHS = (5, 67, 62)
VOCAB = 90


def prompt_of(length):
    return [(37 * i * i + 11 * i + length) % VOCAB for i in range(length)]


class Noticed(Exception):
    """A test fails: the mutant is found."""


class Model:
    """A compiled program, its PTX, and what the unchanged program gives."""

    def __init__(self, name, folder, args):
        self.name, self.folder, self.args = name, folder, args
        self.program = os.path.join(folder, name)
        tool = lambda word: os.path.join(args.bin, word)  # noqa: E731
        source = os.path.join(HERE, "..", "models", name + ".json")
        importer = "--import-spec"
        if not os.path.exists(source):
            source, importer = os.path.join(folder, name + ".gguf"), "--import-gguf"
            with open(source, "wb") as file:
                file.write(tiny_gguf.make(tiny_gguf.models()[name]))
        self.command([tool("kvc"), "compile", source, "-o", self.program, "-q", "--target=cuda"])
        schedule, ptx = self.program + ".mlir", self.program + ".ptx"
        self.command([tool("kvc-translate"), importer, source, "-o", schedule + ".l1"])
        self.command([tool("kvc-opt"), "--kvc-pipeline=target=cuda", schedule + ".l1", "-o", schedule])
        self.command([tool("kvc-translate"), "--kvc-to-ptx", schedule, "-o", ptx])
        with open(ptx, encoding="utf-8") as file:
            self.lines = file.read().split("\n")
        self.expected = []
        for number, length in enumerate(LENGTHS):
            path = os.path.join(folder, f"{name}.reference.{number}.npy")
            self.command([tool("kvc-translate"), "--interpret", "--rounded", schedule,
                          "--ids=" + ",".join(map(str, prompt_of(length))),
                          "--decode-ids=" + ",".join(map(str, FORCED[:-1])), "--logits=" + path])
            self.expected.append(check_sim.rows_of(path))
        self.executed = set()
        start = time.monotonic()
        self.drawn = None
        self.drawn = self.test(None, os.path.join(folder, name + ".unchanged"))
        # The interpreter may take this many times as long for a mutant.
        self.limit = max(60.0, 20 * (time.monotonic() - start))

    def command(self, command):
        done = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, check=False)
        if done.returncode != 0:
            sys.exit(f"mutate: exit status {done.returncode}: {' '.join(command)}: "
                     f"{done.stderr.decode('utf-8', 'replace').strip()[-1500:]}")

    def run(self, ptx, prefix, lengths, options):
        """Results of one run of the program, [(record, logits' bytes)]."""
        requests = prefix + ".jsonl"
        with open(requests, "w", encoding="utf-8") as file:
            for length in lengths:
                file.write(json.dumps({"prompt_ids": prompt_of(length)}) + "\n")
        command = [self.program, "--device=sim", "--prompts", requests, "--ignore-eos", "--json", "--logits", prefix,
                   "--threads", "1", *options]
        if ptx:
            command += ["--ptx", ptx]
        else:
            command += ["--sim-meter"]
        try:
            done = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, check=False,
                                  timeout=self.limit if ptx else None)
        except subprocess.TimeoutExpired:
            raise Noticed("it does not end") from None
        if done.returncode != 0:
            text = done.stderr.decode("utf-8", "replace").strip().splitlines()
            raise Noticed(text[-1] if text else f"exit status {done.returncode}")
        records = [json.loads(line) for line in done.stdout.decode("utf-8", "replace").splitlines()
                   if line.startswith("{")][-len(lengths):]
        if not ptx:
            for kernel in records[-1]["stats"]["meter"]["kernels"].values():
                for first, last in kernel["lines"]:
                    self.executed.update(range(first, last + 1))
        results = []
        for number, record in enumerate(records):
            with open(f"{prefix}.{number}.npy", "rb") as file:
                results.append((record, file.read()))
        return results

    def test(self, ptx, prefix):
        """Raises Noticed where a test of the program fails."""
        force = ["--force-ids", ",".join(map(str, FORCED))]
        batch = self.run(ptx, prefix, LENGTHS, force)
        for number, (record, _) in enumerate(batch):
            found = check_sim.rows_of(f"{prefix}.{number}.npy")
            error, differ = check_sim.compare(self.expected[number], found)
            if not error <= check_sim.TOLERANCE or differ:
                raise Noticed(f"logits are off by {error:.3g} of their deviation, allowed {check_sim.TOLERANCE}")
            chosen = [max(range(len(row)), key=row.__getitem__) for row in found]
            if record["chosen_ids"] != chosen:
                raise Noticed(f"chosen ids {record['chosen_ids']}, the largest logits are {chosen}")

        def same(results, numbers, way):
            for (_, data), number in zip(results, numbers):
                if data != batch[number][1]:
                    raise Noticed(f"bits of logits differ: {way}, prompt of {LENGTHS[number]}")

        for number in (2, 0, 1):
            same(self.run(ptx, prefix, LENGTHS[number:number + 1], force), [number], "alone and in a batch")
        same(self.run(ptx, prefix, LENGTHS, [*force, "--sim-seed", "7"]), range(3), "another order of blocks")
        same(self.run(ptx, prefix, LENGTHS, [*force, "--prefill-chunk", "7"]), range(3), "in chunks of 7")
        same(self.run(ptx, prefix, LENGTHS[1:2], [*force, "--prefill-chunk", "1"]), [1], "in chunks of 1")
        same(self.run(ptx, prefix, LENGTHS[:1], [*force, "--no-cache"]), [0], "without the cache")
        # More rows a decode step than the narrow kernels take.
        wide = [LENGTHS[i % 3] for i in range(9)]
        same(self.run(ptx, prefix, wide, force), [i % 3 for i in range(9)], "nine in a batch")
        draws = []
        for options in (["--temperature", "0.9"], ["--temperature", "1.3", "--top-k", "20", "--top-p", "0.9"],
                        ["--temperature", "1", "--min-p", "0.05"]):
            drawn = self.run(ptx, prefix, LENGTHS, [*options, "--seed", "11", "--max-new-tokens", "4"])
            draws.append([record["ids"] for record, _ in drawn])
            if self.drawn and self.drawn[len(draws) - 1] != draws[-1]:
                raise Noticed(f"other ids are drawn with {' '.join(options)}")
        return draws


def kernel_at(lines):
    """The kernel of each line, by line number from 1."""
    names, name = [None], None
    for line in lines:
        found = re.match(r"\.visible \.entry (\w+)", line)
        name = found.group(1) if found else name
        names.append(name)
    return names


class Mutant:
    def __init__(self, model, number, kernel, opcode, what, text):
        self.model, self.number, self.kernel, self.opcode = model, number, kernel, opcode
        self.what, self.text = what, text
        self.verdict = None

    def place(self):
        old = self.model.lines[self.number - 1].strip().replace("\t", " ")
        return (f"{self.model.name} {self.kernel} line {self.number}: `{old}` -> "
                f"`{self.text.strip().replace(chr(9), ' ') or '(dropped)'}` ({self.what})")

    def test(self, number):
        folder = os.path.join(self.model.folder, f"mutant.{number}")
        os.makedirs(folder, exist_ok=True)
        path = os.path.join(folder, "mutant.ptx")
        lines = list(self.model.lines)
        lines[self.number - 1] = self.text
        with open(path, "w", encoding="utf-8") as file:
            file.write("\n".join(lines))
        try:
            self.model.test(path, os.path.join(folder, "run"))
        except Noticed as noticed:
            self.verdict = str(noticed)
        for name in os.listdir(folder):
            os.remove(os.path.join(folder, name))
        return self


def draw(models, count, seed):
    """Mutants, one opcode after the other in an order drawn by the seed."""
    chance = random.Random(seed)
    sites = collections.defaultdict(list)
    for model in models:
        kernels = kernel_at(model.lines)
        for number in sorted(model.executed):
            line = model.lines[number - 1]
            parsed = operators.parse(line)
            if parsed and operators.mutations(parsed):
                sites[parsed.opcode].append((model, number, kernels[number], parsed))
    opcodes = sorted(sites)
    chance.shuffle(opcodes)
    for opcode in opcodes:
        chance.shuffle(sites[opcode])
    mutants = []
    while len(mutants) < count and opcodes:
        for opcode in list(opcodes):
            if len(mutants) == count:
                break
            model, number, kernel, parsed = sites[opcode].pop()
            what, text = chance.choice(operators.mutations(parsed))
            mutants.append(Mutant(model, number, kernel, opcode, what, text))
            if not sites[opcode]:
                opcodes.remove(opcode)
    return mutants


def argument_for(mutant):
    """The reason in equivalents.json why a survivor changes nothing, or None."""
    with open(os.path.join(HERE, "equivalents.json"), encoding="utf-8") as file:
        known = json.load(file)
    line = mutant.model.lines[mutant.number - 1].strip().replace("\t", " ")
    for entry in known:
        if (re.fullmatch(entry["opcode"], mutant.opcode) and re.fullmatch(entry["what"], mutant.what)
                and re.search(entry.get("kernel", ""), mutant.kernel) and re.search(entry.get("line", ""), line)):
            return entry["reason"]
    return None


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--bin", default=os.path.dirname(shutil.which("kvc") or ""),
                        help="the folder of kvc, kvc-opt and kvc-translate (default: where the PATH has kvc)")
    parser.add_argument("--models", default="gqa_small,q4_k", help="(default: %(default)s)")
    parser.add_argument("--count", type=int, default=72, help="mutants (default: %(default)s)")
    parser.add_argument("--seed", type=int, default=1, help="draws the sites (default: %(default)s)")
    parser.add_argument("--jobs", type=int, default=2, help="mutants at once (default: %(default)s)")
    parser.add_argument("--keep", metavar="FOLDER", help="put models and programs there and leave them")
    parser.add_argument("--json", metavar="FILE", help="write each mutant and its verdict")
    args = parser.parse_args()
    start = time.monotonic()
    with tempfile.TemporaryDirectory(prefix="kvc-mutation-") as temporary:
        folder = args.keep or temporary
        os.makedirs(folder, exist_ok=True)
        models = []
        for name in args.models.split(","):
            try:
                models.append(Model(name, folder, args))
            except Noticed as fault:
                sys.exit(f"mutate: {name}: the unchanged program fails: {fault}")
            model = models[-1]
            total = sum(operators.parse(line) is not None for line in model.lines)
            ran = sum(operators.parse(model.lines[n - 1]) is not None for n in model.executed)
            print(f"{name}: {ran} of {total} instructions are executed", flush=True)
        mutants = draw(models, args.count, args.seed)
        with concurrent.futures.ThreadPoolExecutor(args.jobs) as pool:
            for mutant in pool.map(Mutant.test, mutants, range(len(mutants))):
                verdict = f"noticed: {mutant.verdict[:160]}" if mutant.verdict else "SURVIVES"
                print(f"{mutant.place()}: {verdict}", flush=True)
    survivors = [mutant for mutant in mutants if not mutant.verdict]
    unexplained = 0
    for mutant in survivors:
        reason = argument_for(mutant)
        unexplained += reason is None
        print(f"survivor: {mutant.place()}: {reason or 'no argument'}")
    if args.json:
        with open(args.json, "w", encoding="utf-8") as file:
            json.dump([{"model": m.model.name, "kernel": m.kernel, "line": m.number, "opcode": m.opcode, "what": m.what,
                        "mutant": m.text.strip(), "verdict": m.verdict} for m in mutants], file, indent=1)
    noticed = len(mutants) - len(survivors)
    opcodes = len({mutant.opcode for mutant in mutants})
    print(f"mutants: {noticed}/{len(mutants)} noticed ({100 * noticed / max(len(mutants), 1):.1f} %), {opcodes} opcodes, "
          f"{len(survivors)} survive, {unexplained} without an argument; {time.monotonic() - start:.0f} s")
    return 0 if mutants and noticed >= GOAL * len(mutants) and unexplained == 0 else 1


if __name__ == "__main__":
    sys.exit(main())
