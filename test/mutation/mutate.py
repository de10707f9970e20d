#!/usr/bin/env python3
"""Mutates single instructions of a program's PTX and sees whether the tests notice.

    mutate.py [--bin build/bin] [--count 72] [--seed 1] [--models wide_heads,chunks,choose]

Small models are compiled for cuda, of whole blocks of K: where K is padded, many
instructions work on zeros. Their PTX is changed in one instruction at a time:
sites are drawn by the seed, half of them one opcode after the other, half among
all instructions that the unchanged program executes in its tests. Each mutant
goes through the tests of programs, test/codegen/nvptx/run_sim.py (the
interpreter's checks of memory, races and copies; logits against the float64
reference; the same bits of every kernel's rows alone, in batches, in chunks,
without the cache, in another order of blocks) and through draws with a
temperature, which have to be the unchanged program's. The kernel that chooses
tokens is mutated where its unit tests run it (kvc-nvptx-tests). Survivors are
printed with their lines and, where equivalents.json has one, the argument why
nothing could notice. The exit status is 0 if at least 95 % (--goal) of the
mutants were noticed.

Where a kernel writes 16-bit floats, the last bit of an f32 ahead of them shows in
one of 8,192 (f16) or 65,536 (bf16) values: what tests notice of wrong roundings
there is a matter of luck. Some are drawn besides and counted by themselves.
Standard library only.
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
sys.path.insert(0, os.path.join(HERE, "../codegen/nvptx"))
import run_sim  # noqa: E402
import operators  # noqa: E402

DRAWS = (["--temperature=0.9"], ["--temperature=1.3", "--top-k=20", "--top-p=0.9"], ["--temperature=1", "--min-p=0.05"])

# What lit tests count in the text (attention.mlir, rows.mlir): fences order what
# other blocks see, which the interpreter, one access after the other, cannot miss.
COUNTS = {r"decode_\d+_attention": 2, "choose": 2}


# Kernels whose f32 are rounded to 16 bits before any other kernel reads them.
ROUNDING = "norm|stage|attention|gate_up|qkv"


class Noticed(Exception):
    """A test fails: the mutant is found."""


def read_lines(path):
    """The text's lines; an instruction that goes over several is made one, in the file, too."""
    with open(path, encoding="utf-8") as file:
        text = file.read().replace("\n\t\t", " ")
    with open(path, "w", encoding="utf-8") as file:
        file.write(text)
    return text.split("\n")


def write_mutant(lines, number, text, path):
    with open(path, "w", encoding="utf-8") as file:
        file.write("\n".join([*lines[:number - 1], text, *lines[number:]]))
    return path


class Program(run_sim.Program):
    """The program, under a name of its own, with other PTX."""

    def __init__(self, unchanged, path, ptx, limit, metered=False):
        self.path, self.schedule, self.arithmetic = path, unchanged.schedule, unchanged.arithmetic
        self.ptx, self.limit, self.runs, self.rows, self.executed = ptx, limit, 0, run_sim.traces.Rows(), set()
        self.draws, self.metered = False, metered
        os.link(unchanged.path, path)

    def execute(self, command):
        command = [*command, "--ptx=" + self.ptx] + ["--sim-meter"] * self.metered
        if self.draws:
            command.remove("--temperature=0")
        try:
            done = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, check=False,
                                  timeout=self.limit)
        except subprocess.TimeoutExpired:
            raise Noticed("it does not end") from None
        if done.returncode != 0:
            said = done.stderr.decode("utf-8", "replace").strip().splitlines()
            raise Noticed(said[-1].replace(self.path + ": ", "") if said else f"exit status {done.returncode}")
        records = [json.loads(line) for line in done.stdout.decode("utf-8", "replace").splitlines() if line.startswith("{")]
        if self.metered:
            for kernel in records[-1]["stats"]["meter"]["kernels"].values():
                for first, last in kernel["lines"]:
                    self.executed.update(range(first, last + 1))
        return records


class Built:
    """A model and its unchanged program, with its PTX."""

    def __init__(self, model, base):
        self.model = model
        self.program = run_sim.Program(run_sim.Case(model.name, "sm_90", "f16"), model, base)
        self.ptx = base + ".ptx"
        run_sim.matrix.run(["kvc-translate", "--kvc-to-ptx", self.program.schedule, "-o", self.ptx])
        self.lines = read_lines(self.ptx)


class Model:
    """A model of all layers and one cut to the first, as run_sim.py tests them."""

    def __init__(self, name, folder, _):
        self.name, self.folder, self.drawn, self.limit = name, folder, None, None
        model = run_sim.matrix.Model(name, folder)
        self.whole = Built(model, os.path.join(folder, name))
        self.first = Built(run_sim.FirstLayer(model, folder), os.path.join(folder, name + ".first"))
        self.lines, start = self.whole.lines, time.monotonic()
        run_sim.check_layer(self.first.model, Program(self.first.program, self.first.program.path + ".run",
                                                      self.first.ptx, None))
        program = Program(self.whole.program, self.whole.program.path + ".run", self.whole.ptx, None, metered=True)
        self.drawn = self.test(program)
        self.executed = program.executed
        # A mutant may take this many times as long.
        self.limit = max(60.0, 10 * (time.monotonic() - start))

    def sites(self):
        """Numbers of the lines that may change, from 1."""
        kernels = kernel_at(self.lines)
        return [number for number in sorted(self.executed) if kernels[number] != "choose"]

    def test_text(self, number, text, folder):
        """Line `number` is `text` in both programs, if both have it in that place."""
        same = len(self.first.lines) == len(self.lines) and self.first.lines[number - 1] == self.lines[number - 1]
        try:
            if same:
                ptx = write_mutant(self.first.lines, number, text, os.path.join(folder, "first.ptx"))
                program = Program(self.first.program, os.path.join(folder, "first"), ptx, self.limit)
                run_sim.check_layer(self.first.model, program)
            ptx = write_mutant(self.lines, number, text, os.path.join(folder, "whole.ptx"))
            self.test(Program(self.whole.program, os.path.join(folder, "whole"), ptx, self.limit))
        except (RuntimeError, OSError, ValueError, LookupError) as fault:
            raise Noticed(str(fault)) from None

    def test(self, program):
        """The tests of all layers; returns what is drawn."""
        run_sim.check_all(self.whole.model, program)
        draws, program.draws = [], True
        for options in DRAWS:
            results = program.batch(run_sim.prompts_of(self.whole.model)[1], "--seed=11", *options)
            draws.append([result.ids for result in results])
            if self.drawn and self.drawn[len(draws) - 1] != draws[-1]:
                raise Noticed(f"other ids are drawn with {' '.join(options)}")
        return draws


class ChooseModel:
    """The kernel that chooses among 33000 tokens in four blocks, and its unit tests."""

    TEXT = """
kvc.model @m attributes {max_context = 64 : i64, target = #kvc.target<arch = "cuda", cpu = "sm_90",
    features = "+ptx80", vector_width = 128>} {
  kvc.program @decode(%tokens: tensor<?xi32, #kvc.rows>, %batch: !kvc.batch) attributes {
      phase = #kvc.phase<decode>, rows_bytes = 0 : i64, outputs_bytes = 132032 : i64, worker_bytes = 0 : i64} {
    kvc.dispatch "head" 0 {
      %x = kvc.read slot<outputs, offset = 0, stride = 132032, f32> : tensor<?x33000xf32, #kvc.outputs>
      kvc.write %x, slot<logits, offset = 0, stride = 132032, f32> : tensor<?x33000xf32, #kvc.outputs>
    }
    kvc.return
  }
}
"""

    def __init__(self, name, folder, tool):
        self.name, self.folder, self.tool = name, folder, tool
        path = os.path.join(folder, name)
        with open(path + ".mlir", "w", encoding="utf-8") as file:
            file.write(self.TEXT)
        run_sim.matrix.run(["kvc-translate", "--kvc-to-ptx", path + ".mlir", "-o", path + ".ptx"])
        self.lines = read_lines(path + ".ptx")
        kernels = kernel_at(self.lines)
        self.executed = {number for number in range(1, len(self.lines) + 1) if kernels[number] == "choose"}
        self.run(path + ".ptx")

    def sites(self):
        return sorted(self.executed)

    def test_text(self, number, text, folder):
        self.run(write_mutant(self.lines, number, text, os.path.join(folder, "choose.ptx")))

    def run(self, ptx):
        try:
            done = subprocess.run([self.tool("kvc-nvptx-tests"), "--gtest_brief=1",
                                   "--gtest_filter=Vocabularies/Choose.*/2"], env={**os.environ, "KVC_TEST_PTX": ptx},
                                  stdin=subprocess.DEVNULL, capture_output=True, check=False, timeout=120)
        except subprocess.TimeoutExpired:
            raise Noticed("it does not end") from None
        if b"PASSED  ] 5 tests" not in done.stdout:
            failed = re.findall(rb"FAILED  \] (\S+),", done.stdout)
            raise Noticed("unit tests fail: " + b", ".join(failed).decode() + done.stderr.decode("utf-8", "replace")[-200:])


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

    def count(self):
        for kernel, fences in COUNTS.items():
            if re.fullmatch(kernel, self.kernel) and self.opcode.startswith("fence") and not operators.parse(self.text):
                kernels = kernel_at(self.model.lines)
                left = sum(kernels[n] == self.kernel and line.strip().startswith("fence.acq_rel.gpu")
                           for n, line in enumerate(self.model.lines, 1)) - 1
                if left != fences:
                    raise Noticed(f"{left} fences in the text, {fences} expected")

    def test(self, number):
        with tempfile.TemporaryDirectory(prefix=f"mutant.{number}.", dir=self.model.folder) as folder:
            try:
                self.count()
                self.model.test_text(self.number, self.text, folder)
            except Noticed as noticed:
                self.verdict = str(noticed)
        return self


def mutations_of(lines, number, kernel):
    """What can be done to a line that is more than a hint to the hardware."""
    parsed = operators.parse(lines[number - 1])
    if not parsed:
        return []
    # In linears a warp's barrier keeps ptxas from unpacking codes ahead; lanes pass nothing to each other there.
    if parsed.opcode == "bar.warp.sync" and not re.search("attention|choose", kernel):
        return []
    found = operators.mutations(parsed)
    # Where its predicate is false, a load of weights has a good address and a result that nobody reads: it saves bytes.
    if "L1::no_allocate" in parsed.opcode:
        found = [mutation for mutation in found if mutation[0] != "dropped predicate"]
    # All lanes have the warp's number; the shuffle tells ptxas so.
    if parsed.opcode == "shfl.sync.idx.b32":
        source = re.escape(parsed.operands[1])
        made = next((line for line in reversed(lines[:number - 1]) if re.match(rf"\s*\S+\s+{source},", line)), "")
        if re.match(r"\s*shr\.u32\s+\S+ \S+ 5;", made):
            return []
    return found


def is_hidden(kernel, opcode, what):
    """Whether a later rounding to 16 bits hides most of what a mutation does."""
    return what == "wrong rounding" and not opcode.startswith("cvt") and re.search(ROUNDING, kernel)


def draw(models, count, seed):
    """Half of the mutants one opcode after the other in an order drawn by the
    seed, so that rare ones are there, half drawn among all sites; and a twelfth
    as many hidden ones."""
    chance = random.Random(seed)
    sites, hidden = collections.defaultdict(list), []
    for model in models:
        kernels = kernel_at(model.lines)
        for number in model.sites():
            kernel = kernels[number]
            found = mutations_of(model.lines, number, kernel)
            if not found:
                continue
            opcode = operators.parse(model.lines[number - 1]).opcode
            hides = [mutation for mutation in found if is_hidden(kernel, opcode, mutation[0])]
            shows = [mutation for mutation in found if mutation not in hides]
            if hides:
                hidden.append((model, number, kernel, opcode, hides))
            if shows:
                sites[opcode].append((model, number, kernel, opcode, shows))
    opcodes = sorted(sites)
    chance.shuffle(opcodes)
    for opcode in opcodes:
        chance.shuffle(sites[opcode])
    chosen = []
    while len(chosen) < (count + 1) // 2 and opcodes:
        for opcode in opcodes[:(count + 1) // 2 - len(chosen)]:
            chosen.append(sites[opcode].pop())
        opcodes = [opcode for opcode in opcodes if sites[opcode]]
    rest = [site for opcode in sorted(sites) for site in sites[opcode]]
    chosen += chance.sample(rest, min(count // 2, len(rest)))
    chosen += chance.sample(hidden, min(count // 12, len(hidden)))
    mutants = []
    for model, number, kernel, opcode, found in chosen:
        what, text = chance.choice(found)
        mutants.append(Mutant(model, number, kernel, opcode, what, text))
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
    parser.add_argument("--models", default="wide_heads,chunks,choose", help="(default: %(default)s)")
    parser.add_argument("--count", type=int, default=72, help="mutants (default: %(default)s)")
    parser.add_argument("--seed", type=int, default=1, help="draws the sites (default: %(default)s)")
    parser.add_argument("--goal", type=float, default=0.95, help="part to be noticed (default: %(default)s)")
    parser.add_argument("--jobs", type=int, default=2, help="mutants at once (default: %(default)s)")
    parser.add_argument("--keep", metavar="FOLDER", help="put models and programs there and leave them")
    parser.add_argument("--json", metavar="FILE", help="write each mutant and its verdict")
    args = parser.parse_args()
    start = time.monotonic()
    os.environ["PATH"] = os.path.abspath(args.bin) + os.pathsep + os.environ["PATH"]
    with tempfile.TemporaryDirectory(prefix="kvc-mutation-") as temporary:
        folder = args.keep or temporary
        os.makedirs(folder, exist_ok=True)
        models = []
        for name in args.models.split(","):
            try:
                kind = ChooseModel if name == "choose" else Model
                models.append(kind(name, folder, lambda word: os.path.join(args.bin, word)))
            except (Noticed, RuntimeError) as fault:
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
    hidden = [mutant for mutant in mutants if is_hidden(mutant.kernel, mutant.opcode, mutant.what)]
    mutants = [mutant for mutant in mutants if mutant not in hidden]
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
    print(f"roundings that 16 bits hide: {sum(mutant.verdict is not None for mutant in hidden)}/{len(hidden)} noticed")
    noticed = len(mutants) - len(survivors)
    opcodes = len({mutant.opcode for mutant in mutants})
    print(f"mutants: {noticed}/{len(mutants)} noticed ({100 * noticed / max(len(mutants), 1):.1f} %), {opcodes} opcodes, "
          f"{len(survivors)} survive, {unexplained} without an argument; {time.monotonic() - start:.0f} s")
    return 0 if mutants and noticed >= args.goal * len(mutants) else 1


if __name__ == "__main__":
    sys.exit(main())
