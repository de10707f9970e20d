#!/usr/bin/env python3
"""Tokens/s of the large shapes by kvc, beside PyTorch and beside what the card can do.

Decoding of 1, 8 and 64 sequences at contexts of about 576 positions and a
prompt of 2048 tokens, random bf16 weights. A step's time is the median of the
run's steps but the first; kvc's tokens/s count the host's time until the next
step, the peer's only its graph's replay. Limits: the bytes that a decode step
must read over the measured read bandwidth; a prompt's operations over the
measured bf16 matrix rate.
"""
import argparse
import json
import os
import statistics
import sys
import tempfile

import common
from common import Failure

# name: (phase, sequences, prompt, new tokens, the peer's case)
CASES = {"decode 1": ("decode", 1, 512, 129, "decode:1:576"), "decode 8": ("decode", 8, 512, 129, "decode:8:576"),
         "decode 64": ("decode", 64, 512, 65, "decode:64:544"),
         "prefill 2048": ("prefill", 4, 2048, 1, "prefill:1:2048")}
SMALL = {"decode 1": ("decode", 1, 8, 5, "decode:1:10"), "decode 8": ("decode", 8, 8, 5, "decode:8:10"),
         "prefill 2048": ("prefill", 2, 32, 1, "prefill:1:32")}


class Shape:
    """What a spec costs."""

    def __init__(self, spec):
        self.vocab, self.hidden, self.layers = spec["vocab"], spec["hidden"], spec["layers"]
        heads = spec["heads"]
        self.dim = spec.get("head_dim", self.hidden // heads)
        kv_heads = spec.get("kv_heads", heads)
        self.query, self.key = heads * self.dim, kv_heads * self.dim
        self.layer_weights = self.hidden * (2 * self.query + 2 * self.key + 3 * spec["ffn"])
        self.head_weights = self.vocab * self.hidden

    def decode_bytes(self, batch, context):
        """Weights once, in 16 bits, and each sequence's keys and values, in 16 bits; an embedding row is nothing."""
        weights = 2 * (self.layers * self.layer_weights + self.head_weights)
        return weights + batch * context * self.layers * 2 * self.key * 2

    def prefill_flops(self, tokens):
        """Every token through every layer, half of the score square, the head once."""
        linear = 2 * tokens * self.layers * self.layer_weights + 2 * self.head_weights
        return linear + 4 * self.layers * self.query * tokens * (tokens + 1) // 2


def step_times(stats, phase):
    """(device, host) microseconds of the phase's steps, the first left out where there are others."""
    steps = [step for step in stats.get("steps", []) if step["phase"] == phase]
    if not steps:
        raise Failure("the program reported no steps: KVC_STEP_TIMES is unknown to it")
    if len(steps) > 1:
        steps = steps[1:]
    host = [step["host_us"] for step in steps]
    return [step.get("device_us", step["host_us"]) for step in steps], host


def run_kvc(args, entry, case, folder, timeout, profile=False):
    phase, batch, prompt, new, _ = case
    vocab = entry["spec"]["vocab"]
    prompts = [[(7919 * i + 104729 * number + 13) % vocab for i in range(prompt)] for number in range(batch)]
    options = [f"--device={args.backend}", "--ctx", str(prompt + new)]
    options += ["--prefill-chunk", str(min(prompt, 2048) if phase == "prefill" else 2048)]
    options += ["--profile"] if profile else []
    return common.run_batch(os.path.join(args.folder, entry["file"]), prompts, new, folder, timeout, options,
                            {"KVC_STEP_TIMES": "1"})


def measure_kvc(args, entry, name, case, folder, timeout):
    phase, batch, prompt, new, _ = case
    done = run_kvc(args, entry, case, folder, timeout)
    device, host = step_times(done.stats, phase)
    median = statistics.median(device)
    row = {"device_us": median, "fastest_us": min(device), "steps": len(device), "load_ms": done.stats["load_ms"]}
    if phase == "decode":
        row["host_us"] = statistics.median(host)
        row["tokens_per_s"] = batch * 1e6 / row["host_us"]
        row["bytes"] = Shape(entry["spec"]).decode_bytes(batch, prompt + new // 2)
        prefill = [step for step in done.stats["steps"] if step["phase"] == "prefill"]
        row["prefill_tokens_per_s"] = batch * prompt * 1e6 / sum(step["host_us"] for step in prefill)
    else:
        row["tokens_per_s"] = prompt * 1e6 / median
        row["flops"] = Shape(entry["spec"]).prefill_flops(prompt)
    return row


def profile_kvc(args, entry, folder, timeout, small):
    """Kernels by time, of decode steps of one sequence and of a prompt."""
    prompt, new = (32, 5) if small else (2048, 17)
    done = run_kvc(args, entry, ("prefill", 1, prompt, new, None), folder, timeout, profile=True)
    kernels = done.stats.get("kernels", [])
    return {"kernels": kernels, "table": done.stderr, "prompt": prompt, "decode_steps": new - 1}


def print_profile(name, profile):
    for phase, steps in (("decode", profile["decode_steps"]), ("prefill", 1)):
        rows = sorted((row for row in profile["kernels"] if row["phase"] == phase), key=lambda row: -row["ns"])
        total = sum(row["ns"] for row in rows) or 1
        print(f"{name}, {phase}, {profile['prompt']} positions, kernels by events (no overlap), us a step: " +
              ", ".join(f"{row['kernel']} {row['ns'] / 1e3 / steps:.0f} ({row['calls'] // steps}x, "
                        f"{100 * row['ns'] / total:.0f} %)" for row in rows[:9]), flush=True)


def run_peer(args, entry, mode, cases, folder, timeout):
    """The peer's rows of one mode, as far as it came."""
    spec, output = os.path.join(folder, "spec.json"), os.path.join(folder, f"{mode}.json")
    with open(spec, "w", encoding="utf-8") as file:
        json.dump(entry["spec"], file)
    command = [sys.executable, os.path.join(common.HERE, "peer.py"), "--spec", spec, "--output", output, "--mode", mode,
               "--cases", ",".join(case[4] for case in cases.values())]
    if args.backend == "sim":
        command += ["--device", "cpu", "--layers", "1"]
    error = None
    try:
        out = common.execute(command, timeout)[0].decode("utf-8", "replace")
        print(out, end="", flush=True)
    except Failure as failure:
        error = failure
    values = {"failures": []}
    if os.path.exists(output):
        with open(output, encoding="utf-8") as file:
            values = json.load(file)
    if error:
        values["failures"].append(str(error))
    return values


def summarise(entry, cases, kvc, peers, probes):
    """Rows of the table, the ratio last."""
    read, peak, shape = probes.get("read_GBps", 0), probes.get("peak_TFLOPs", 0), Shape(entry["spec"])
    rows = []
    for name, (phase, batch, prompt, new, peer_case) in cases.items():
        mine = kvc.get(name)
        found = [(values[peer_case]["us"], mode) for mode, values in peers.items() if peer_case in values]
        theirs = min(found, default=(None, "none"))
        row = {"model": entry["name"], "case": name, "kvc": mine, "torch_us": theirs[0], "torch_mode": theirs[1]}
        if phase == "decode":
            used = shape.decode_bytes(batch, prompt + new // 2)
            limit_us = used / read * 1e-3 if read else None
            row["limit"] = f"{used * 1e-9:.2f} GB"
        else:
            used = shape.prefill_flops(prompt)
            limit_us = used / peak * 1e-6 if peak else None
            row["limit"] = f"{used * 1e-12:.1f} TFLOP"
        row["limit_us"] = limit_us
        if mine and limit_us:
            row["fraction"] = limit_us / mine["device_us"]
        if theirs[0] and limit_us:
            row["torch_fraction"] = limit_us / theirs[0]
        if mine and theirs[0]:
            row["ratio_device"] = theirs[0] / mine["device_us"]
            row["ratio"] = theirs[0] / mine.get("host_us", mine["device_us"])
        rows.append(row)
    return rows


def line_of(row):
    mine, text = row["kvc"], f"{row['model']:14} {row['case']:13} "
    text += (f"kvc {mine['device_us']:9.0f} us" + (f" (host {mine['host_us']:.0f})" if "host_us" in mine else "") +
             f" {mine['tokens_per_s']:9.0f} tok/s" if mine else "kvc failed")
    text += f"; {row['limit']}" + (f" limit {row['limit_us']:.0f} us" if row["limit_us"] else "")
    text += f", reached {100 * row['fraction']:.0f} %" if "fraction" in row else ""
    text += f"; torch ({row['torch_mode']}) {row['torch_us']:.0f} us" if row["torch_us"] else "; torch: none"
    text += f" {100 * row['torch_fraction']:.0f} %" if "torch_fraction" in row else ""
    return text + (f"; ratio {row['ratio']:.2f} (device {row['ratio_device']:.2f})" if "ratio" in row else "")


def main():
    parser = common.stage_parser(argparse.ArgumentParser(description=__doc__.splitlines()[0]))
    parser.add_argument("--small", action="store_true", help="short prompts: for a dry run")
    parser.add_argument("--no-peer", action="store_true", help="leave PyTorch out")
    parser.add_argument("--no-profile", action="store_true", help="leave the table of kernels out")
    parser.add_argument("--probes", help="what probes.py wrote")
    args = parser.parse_args()
    results, deadline = common.Results(args.output), common.Deadline(args.limit)
    probes = {}
    if args.probes and os.path.exists(args.probes):
        with open(args.probes, encoding="utf-8") as file:
            probes = json.load(file)
    cases, entries, table = SMALL if args.small else CASES, common.programs_of(args, "speed"), []
    kvc, peers = {}, {}
    with tempfile.TemporaryDirectory(prefix="kvc-speed-") as scratch:

        def attempt(what, function, *arguments):
            """A step that may fail: its answer, or None and a recorded failure."""
            try:
                return function(*arguments)
            except (Failure, KeyError, OSError, ValueError) as error:
                results.fail(what, error)
                return None

        for entry in entries:
            name = entry["name"]
            folder = os.path.join(scratch, name)
            os.makedirs(folder)
            kvc[name], peers[name] = {}, {}
            for case, numbers in cases.items():
                row = attempt(f"{name} {case}", lambda n=numbers, c=case, e=entry, f=folder: measure_kvc(
                    args, e, c, n, f, deadline.limit(600 if args.backend == "sim" else 60)))
                if row:
                    kvc[name][case] = row
                    common.note(f"{name} {case}: {row['device_us']:.0f} us a step, loaded in {row['load_ms']:.0f} ms")
            results.set("kvc", kvc)
            if not args.no_peer:
                peers[name]["graph"] = attempt(f"{name} peer", lambda e=entry, f=folder: run_peer(
                    args, e, "graph", cases, f, deadline.limit(60))) or {}
            results.set("peers", peers)
        # What may be left out for want of time comes last.
        for entry in entries:
            if not args.no_peer:
                name = entry["name"]
                values = attempt(f"{name} peer, compiled", lambda e=entry: run_peer(
                    args, e, "compile", cases, os.path.join(scratch, e["name"]), deadline.limit(90)))
                peers[name]["compile"] = values or {}
                results.set("peers", peers)
        for entry in entries:
            if not args.no_profile:
                profile = attempt(f"{entry['name']} profile", lambda e=entry: profile_kvc(
                    args, e, os.path.join(scratch, e["name"]), deadline.limit(60), args.small))
                if profile:
                    results.set(f"profile {entry['name']}", profile)
                    print_profile(entry["name"], profile)
        for entry in entries:
            table += summarise(entry, cases, kvc[entry["name"]], peers[entry["name"]], probes)
            for values in peers[entry["name"]].values():
                for text in values.get("failures", []):
                    results.fail(f"{entry['name']} peer", text)
    results.set("table", table)
    for row in table:
        print(line_of(row), flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
