#!/usr/bin/env python3
"""Compares a compiled kvc program with a record of an independent implementation.

    check_program.py RECORD.json PROG [option ...] [-- further arguments of PROG]

A record holds sequences: a prompt (text with its expected ids, or ids alone),
the ids that follow, and either the two largest logits of each step or all
logits. The last line printed says how many prompts are equal; the exit status
is 0 when all are, differences at a near tie forgiven as the record allows.

With --tolerance T, for programs that round on the way (bf16): the record's ids
are fed, each logit must be within T of the deviation of its step's logits, and
the largest must be the record's wherever the record's two largest are more than
10 T apart.

Record, one JSON object:
  name        used in the last line
  tie         {"logit_gap": G, "most": N}: a first differing id is forgiven
              where the record's two largest logits are closer than G and the
              program chose the second, in at most N sequences
  tolerance   largest allowed logit error as a part of the standard deviation
              of the sequence's logits
  sequences   [{prompt, prompt_ids, ids, top2, logits, forced}]
              top2: [[id, logit, id, logit], ...] for each step
              logits: base64 of float32 little-endian [steps, vocab]
              forced: the ids were given, not chosen: only logits are compared
"""
import argparse
import array
import base64
import json
import math
import os
import subprocess
import sys
import tempfile

import npy


class Mismatch(Exception):
    """One sequence of the program is not the record's."""


def run_program(command, timeout):
    """Runs the program; returns its lines of stdout."""
    try:
        done = subprocess.run(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                              stderr=subprocess.PIPE, timeout=timeout, check=False)
    except subprocess.TimeoutExpired:
        sys.exit(f"check_program: no end after {timeout} s: {' '.join(command)}")
    except OSError as error:
        sys.exit(f"check_program: {error}")
    if done.returncode != 0:
        sys.stderr.write(done.stderr.decode("utf-8", "replace")[-2000:])
        sys.exit(f"check_program: exit status {done.returncode}: {' '.join(command)}")
    return done.stdout.decode("utf-8", "replace").splitlines()


def result_objects(lines, count):
    """The last `count` lines, each one sequence's JSON object."""
    objects = []
    for line in lines[-count:]:
        try:
            value = json.loads(line)
        except ValueError:
            value = None
        if not isinstance(value, dict) or not isinstance(value.get("ids"), list):
            sys.exit(f"check_program: no JSON result among the last lines of stdout: {line[:200]!r}")
        objects.append(value)
    if len(objects) != count:
        sys.exit(f"check_program: {len(objects)} JSON results, wanted {count}")
    return objects


def generate(program, sequences, folder, args):
    """Runs sequences of one length in one batch; returns (object, npy path) of each."""
    steps = len(sequences[0]["ids"])
    path = os.path.join(folder, "prompts.jsonl")
    with open(path, "w", encoding="utf-8") as file:
        for sequence in sequences:
            key = "prompt" if "prompt" in sequence else "prompt_ids"
            file.write(json.dumps({key: sequence[key]}) + "\n")
    command = [program, "--prompts", path, "--max-new-tokens", str(steps), "--temperature", "0",
               "--ignore-eos", "--json"]
    prefix = os.path.join(folder, "logits")
    wants_logits = args.logits or any("logits" in s for s in sequences)
    if wants_logits:
        command += ["--logits", prefix]
    objects = result_objects(run_program(command + args.rest, args.timeout), len(sequences))
    paths = [f"{prefix}.{i}.npy" if wants_logits else None for i in range(len(sequences))]
    return list(zip(objects, paths))


def force(program, sequence, folder, args):
    """Feeds the record's ids; returns (object, npy path)."""
    path = os.path.join(folder, "forced.npy")
    ids = sequence["ids"]
    command = [program, "--prompt-ids", ",".join(map(str, sequence["prompt_ids"])),
               "--force-ids", ",".join(map(str, ids)), "--max-new-tokens", str(len(ids)),
               "--temperature", "0", "--ignore-eos", "--json", "--logits", path]
    return result_objects(run_program(command + args.rest, args.timeout), 1)[0], path


def first_difference(left, right):
    """The first index where two lists differ, None where they are equal."""
    for index, (a, b) in enumerate(zip(left, right)):
        if a != b:
            return index
    return None if len(left) == len(right) else min(len(left), len(right))


def at(values, index):
    return values[index] if index < len(values) else "the end"


def compare_ids(sequence, result, tie):
    """Returns (comparable steps, forgiven text or None), or raises Mismatch."""
    prompt_ids = result.get("prompt_ids")
    if prompt_ids is not None or "prompt" in sequence:
        step = first_difference(prompt_ids or [], sequence["prompt_ids"])
        if step is not None:
            raise Mismatch(f"prompt id {step} is {at(prompt_ids or [], step)}, "
                           f"the record has {at(sequence['prompt_ids'], step)}")
    step = first_difference(result["ids"], sequence["ids"])
    if step is None:
        return len(sequence["ids"]), None
    what = f"id {step} is {at(result['ids'], step)}, the record has {at(sequence['ids'], step)}"
    if "top2" in sequence and step < min(len(result["ids"]), len(sequence["ids"])):
        first, first_logit, second, second_logit = sequence["top2"][step]
        gap = first_logit - second_logit
        what += f" (its two largest logits: {first}, {second}, {gap:.4f} apart)"
        if tie and gap < tie["logit_gap"] and result["ids"][step] == second:
            return step + 1, what
    raise Mismatch(what)


def compare_logits(sequence, path, steps, tolerance):
    """Largest logit error as a part of the standard deviation."""
    shape, ours = npy.read(path)
    if len(shape) != 2 or shape[0] < steps:
        raise Mismatch(f"logits have shape {shape}, wanted {steps} rows")
    vocab = shape[1]
    if "logits" not in sequence:
        return max(abs(ours[i * vocab + index] - logit)
                   for i, row in enumerate(sequence["top2"][:steps])
                   for index, logit in ((row[0], row[1]), (row[2], row[3])))
    theirs = array.array("f")
    theirs.frombytes(base64.b64decode(sequence["logits"]))
    if sys.byteorder == "big":
        theirs.byteswap()
    if len(theirs) != len(sequence["ids"]) * vocab:
        raise Mismatch(f"logits have {vocab} columns, the record has {len(theirs) / len(sequence['ids'])}")
    mean = math.fsum(theirs) / len(theirs)
    deviation = math.sqrt(math.fsum((x - mean) ** 2 for x in theirs) / len(theirs))
    worst = 0.0
    for index in range(steps * vocab):
        error = abs(ours[index] - theirs[index])
        if not error <= worst:  # a NaN is never smaller
            worst = error
            if not error / deviation <= tolerance:
                raise Mismatch(f"logit [{index // vocab}, {index % vocab}] is {ours[index]:.7g}, the record "
                               f"has {theirs[index]:.7g}: {error / deviation:.2e} of the standard deviation, "
                               f"allowed {tolerance:.0e}")
    return worst / deviation


def deviation_of(values):
    mean = math.fsum(values) / len(values)
    return math.sqrt(math.fsum((x - mean) ** 2 for x in values) / len(values))


def compare_near(sequence, path, tolerance):
    """Logits of forced ids; returns the largest error in deviations of a step's logits."""
    (steps, vocab), ours = npy.read(path)
    if steps != len(sequence["ids"]):
        raise Mismatch(f"{steps} rows of logits, the record has {len(sequence['ids'])}")
    theirs = None
    if "logits" in sequence:
        theirs = array.array("f")
        theirs.frombytes(base64.b64decode(sequence["logits"]))
        if sys.byteorder == "big":
            theirs.byteswap()
    worst = 0.0
    for step in range(steps):
        row = ours[step * vocab:(step + 1) * vocab]
        if theirs is None:
            first, first_logit, second, second_logit = sequence["top2"][step]
            wanted = {first: first_logit, second: second_logit}
        else:
            wanted = dict(enumerate(theirs[step * vocab:(step + 1) * vocab]))
        deviation = deviation_of(row if theirs is None else list(wanted.values()))
        for index, logit in wanted.items():
            error = abs(row[index] - logit) / deviation
            if not error <= tolerance:
                raise Mismatch(f"logit [{step}, {index}] is {row[index]:.7g}, the record has {logit:.7g}: "
                               f"{error:.2e} of the deviation, allowed {tolerance:.0e}")
            worst = max(worst, error)
        best, next_best = sorted(wanted, key=wanted.get)[:-3:-1]
        if wanted[best] - wanted[next_best] > 10 * tolerance * deviation and row.index(max(row)) != best:
            raise Mismatch(f"id {step} is {row.index(max(row))}, the record has {best}, far ahead of {next_best}")
    return worst


def check_near(record, program, folder, args):
    """All sequences of a record, forced; returns the exit status."""
    equal, worst = 0, 0.0
    for index, sequence in enumerate(record["sequences"]):
        try:
            worst = max(worst, compare_near(sequence, force(program, sequence, folder, args)[1], args.tolerance))
            equal += 1
        except (Mismatch, npy.NpyError, OSError) as error:
            print(f"prompt {index}: {error}")
    print(f"{record['name']}: {equal}/{len(record['sequences'])} prompts near, largest logit error {worst:.2e} of the "
          f"deviation, allowed {args.tolerance:.0e}")
    return 0 if equal == len(record["sequences"]) else 1


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("record")
    parser.add_argument("program")
    parser.add_argument("--alone", action="store_true", help="a run for each prompt instead of one batch")
    parser.add_argument("--logits", action="store_true", help="ask for logits where the record has only two a step")
    parser.add_argument("--timeout", type=float, default=900.0, help="seconds for one run of the program")
    parser.add_argument("--tolerance", type=float, help="feed the record's ids; logits may differ by that much")
    argv, rest = sys.argv[1:], []
    if "--" in argv:
        cut = argv.index("--")
        argv, rest = argv[:cut], argv[cut + 1:]
    args = parser.parse_args(argv)
    args.rest = rest

    with open(args.record, encoding="utf-8") as file:
        record = json.load(file)
    sequences = record["sequences"]
    program = os.path.abspath(args.program)
    if args.tolerance is not None:
        with tempfile.TemporaryDirectory(prefix="kvc-check-") as folder:
            return check_near(record, program, folder, args)
    tie, tolerance = record.get("tie"), record.get("tolerance", 2e-4)

    results = [None] * len(sequences)
    groups = {}
    with tempfile.TemporaryDirectory(prefix="kvc-check-") as folder:
        for index, sequence in enumerate(sequences):
            if not sequence.get("forced"):
                groups.setdefault(index if args.alone else len(sequence["ids"]), []).append(index)
        equal, forgiven, worst = 0, 0, None
        for number, group in enumerate(groups.values()):
            sub = os.path.join(folder, str(number))
            os.mkdir(sub)
            for index, result in zip(group, generate(program, [sequences[i] for i in group], sub, args)):
                results[index] = result
        for index, sequence in enumerate(sequences):
            try:
                if sequence.get("forced"):
                    result, path = force(program, sequence, folder, args)
                    steps, excuse = len(sequence["ids"]), None
                else:
                    result, path = results[index]
                    steps, excuse = compare_ids(sequence, result, tie)
                if path is not None:
                    error = compare_logits(sequence, path, steps, tolerance)
                    worst = error if worst is None else max(worst, error)
                if excuse is not None:
                    forgiven += 1
                    if forgiven > tie["most"]:
                        raise Mismatch(f"{excuse}; a near tie, but {tie['most']} are forgiven already")
                    print(f"prompt {index}: {excuse}: forgiven")
                equal += 1
            except (Mismatch, npy.NpyError, OSError) as error:
                print(f"prompt {index}: {error}")
    line = f"{record['name']}: {equal}/{len(sequences)} prompts equal"
    if forgiven:
        line += f", of them {min(forgiven, tie['most'])} with a forgiven near tie"
    if worst is not None:
        unit = " of the standard deviation" if any("logits" in s for s in sequences) else ""
        line += f", largest logit error {worst:.2e}{unit}"
    print(line)
    return 0 if equal == len(sequences) else 1


if __name__ == "__main__":
    sys.exit(main())
