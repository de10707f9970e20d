#!/usr/bin/env python3
"""Every kernel of the tiny programs under compute-sanitizer.

Each program runs twice under each tool: ten sequences of different lengths in
one batch (many rows and outputs), and one short sequence with sampling (few
rows). A run without the tool names the kernels that were launched, the
program's PTX those that there are. Where the tool is absent or refuses the
device, that is what is recorded.
"""
import argparse
import concurrent.futures
import os
import re
import shutil
import sys
import tempfile

import common
from common import Failure

TOOLS = ("memcheck", "racecheck", "synccheck", "initcheck")
MANY = ["--prefill-chunk", "512"]
FEW = ["--temperature", "0.8", "--top-k", "12", "--top-p", "0.9", "--seed", "3"]
PLACES = ("/usr/local/cuda/bin", "/opt/nvidia/nsight-compute", "/usr/local/cuda/compute-sanitizer")


def tool_path():
    found = shutil.which("compute-sanitizer")
    for place in PLACES:
        candidate = os.path.join(place, "compute-sanitizer")
        if found is None and os.access(candidate, os.X_OK) and os.path.isfile(candidate):
            found = candidate
    return found


def runs(vocab):
    """(name, prompts, new tokens, options, greedy)"""
    lengths = (70, 3, 1, 64, 12, 9, 2, 33, 5, 4)
    return [("many", [common.prompt_ids(n, i, vocab) for i, n in enumerate(lengths)], 3, MANY, True),
            ("few", [common.prompt_ids(3, 1, vocab)], 3, FEW, False)]


def kernels_of(program):
    """Names of the entries of the PTX that a program carries."""
    with open(program, "rb") as file:
        return {name.decode() for name in re.findall(rb"\.entry\s+([A-Za-z_$][A-Za-z0-9_$]*)", file.read())}


def launched(program, vocab, folder, timeout, device):
    """Names of the kernels that the runs launch, by the profile."""
    names = set()
    for name, prompts, new, options, greedy in runs(vocab):
        batch = common.run_batch(program, prompts, new, os.path.join(folder, name), timeout,
                                 [f"--device={device}", "--profile", *options], greedy=greedy)
        names |= {entry["kernel"] for entry in batch.stats.get("kernels", [])}
    return names


def faults_in(log):
    """(what is wrong, summary) by a log of the tool: lines of the first fault, and its last word."""
    text = ""
    if os.path.exists(log):
        with open(log, encoding="utf-8", errors="replace") as file:
            text = file.read()
    lines = [line.lstrip("= ").strip() for line in text.splitlines() if line.startswith("=========")]
    summary = next((line for line in reversed(lines) if "SUMMARY" in line), None)
    faults = [line for line in lines if line and not re.match(r"COMPUTE-SANITIZER|Saved|Host Frame|.*SUMMARY|$", line)
              and "in lib" not in line]
    return " | ".join(faults[:3]), summary


def sanitize(path, tool, program, run, folder, timeout):
    """None where one run of a program is clean under a tool, else what is wrong."""
    name, prompts, new, options, greedy = run
    os.makedirs(folder, exist_ok=True)
    log = os.path.join(folder, f"{name}.log")
    wrapper = [path, "--tool", tool, "--error-exitcode", "99", "--print-limit", "5", "--log-file", log]
    error = None
    try:
        common.run_batch(program, prompts, new, os.path.join(folder, name), timeout, ["--device=cuda", *options],
                         greedy=greedy, wrapper=wrapper)
    except Failure as failure:
        error = str(failure)
    faults, summary = faults_in(log)
    if error is None and summary and re.search(r"SUMMARY: 0 (errors|hazards)", summary):
        return None
    if summary and error and "status 99" in error:
        error = None  # the tool's own
    return "; ".join(part for part in (summary or "no summary", faults, error) if part)[:500]


REFUSED = re.compile(r"not supported|LibraryNotLoaded|Unable to|[Nn]o attachable|injection|no summary")


def main():
    parser = common.stage_parser(argparse.ArgumentParser(description=__doc__.splitlines()[0]))
    parser.add_argument("--tools", default=",".join(TOOLS))
    args = parser.parse_args()
    results, deadline = common.Results(args.output), common.Deadline(args.limit)
    entries = sorted(common.programs_of(args, "sanitize"), key=lambda entry: entry.get("order", 99))
    path = tool_path()
    results.set("tool", path)
    with tempfile.TemporaryDirectory(prefix="kvc-sanitize-") as scratch:

        def facts(entry):
            return os.path.join(args.folder, entry["file"]), common.read_record(args.folder, entry)["vocab"]

        coverage = []
        with concurrent.futures.ThreadPoolExecutor(args.jobs) as pool:
            jobs = [(entry, pool.submit(lambda e: launched(*facts(e), os.path.join(scratch, e["name"] + ".plain"),
                                                           deadline.limit(60), args.backend), entry))
                    for entry in entries]
            for entry, future in jobs:
                try:
                    names, every = future.result(), kernels_of(facts(entry)[0])
                    coverage.append({"name": entry["name"], "kernels": len(every), "launched": len(names & every),
                                     "missing": sorted(every - names)})
                except (Failure, OSError, ValueError) as error:
                    results.fail(f"kernels of {entry['name']}", error)
        results.set("coverage", coverage)
        count, of = sum(row["launched"] for row in coverage), sum(row["kernels"] for row in coverage)
        missing = sorted({name for row in coverage for name in row["missing"]})
        print(f"sanitize: the runs launch {count} of {of} kernels of {len(coverage)} programs; never launched: "
              f"{', '.join(missing[:12]) or 'none'}{' ...' if len(missing) > 12 else ''}", flush=True)

        if path is None or args.backend != "cuda" or not entries:
            results.set("summary", "compute-sanitizer is not installed here" if path is None else "not run")
            print(f"sanitize: {results.values['summary']}")
            return 0
        # One short run says whether the tool works on this machine at all.
        program, record = facts(entries[0])
        why = sanitize(path, "memcheck", program, runs(record)[1], os.path.join(scratch, "first"), deadline.limit(60))
        if why and REFUSED.search(why):
            results.set("summary", f"compute-sanitizer refuses: {why}")
            print(f"sanitize: {results.values['summary']}")
            return 0

        table = {}
        for tool in args.tools.split(","):
            row = table[tool] = {"programs": 0, "clean_runs": 0, "runs": 0, "wrong": [], "skipped": []}

            def work(entry, tool=tool):
                program, vocab = facts(entry)
                return [(f"{entry['name']}, {run[0]} rows",
                         sanitize(path, tool, program, run, os.path.join(scratch, f"{entry['name']}.{tool}"),
                                  deadline.limit(75))) for run in runs(vocab)]

            with concurrent.futures.ThreadPoolExecutor(args.jobs) as pool:
                for entry, future in [(entry, pool.submit(work, entry)) for entry in entries]:
                    try:
                        answers = future.result()
                    except Failure:
                        row["skipped"].append(entry["name"])
                        continue
                    row["programs"] += 1
                    row["runs"] += len(answers)
                    row["clean_runs"] += sum(wrong is None for _, wrong in answers)
                    row["wrong"] += [f"{name}: {wrong}" for name, wrong in answers if wrong]
            results.set("tools", table)
            print(f"sanitize {tool}: {row['clean_runs']} of {row['runs']} runs of {row['programs']} programs clean" +
                  (f"; no time for {len(row['skipped'])}" if row["skipped"] else ""), flush=True)
            for text in row["wrong"]:
                results.fail(tool, text)
        results.set("summary", "; ".join(f"{tool} {row['clean_runs']}/{row['runs']} clean"
                                         for tool, row in table.items()))
    return 0


if __name__ == "__main__":
    sys.exit(main())
