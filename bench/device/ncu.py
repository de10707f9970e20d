#!/usr/bin/env python3
"""Hardware counters of the large shapes' kernels by Nsight Compute: time, memory traffic, occupancy.

Kernels run one by one and from a cold cache of the tool's making, so times are
longer than in a step; what counts here is how close each comes to the memory's
rate alone. Not among the usual stages.
"""
import argparse
import csv
import io
import os
import shutil
import statistics
import sys
import tempfile

import common
from common import Failure

METRICS = {"gpu__time_duration.sum": "ns", "dram__bytes_read.sum": "read", "dram__bytes_write.sum": "written",
           "dram__throughput.avg.pct_of_peak_sustained_elapsed": "dram %",
           "sm__throughput.avg.pct_of_peak_sustained_elapsed": "sm %",
           "sm__warps_active.avg.pct_of_peak_sustained_active": "warps %", "launch__registers_per_thread": "registers",
           "launch__grid_size": "blocks", "launch__occupancy_limit_registers": "limit by registers",
           "launch__occupancy_limit_shared_mem": "limit by shared"}


def counters(tool, program, vocab, pattern, count, prompt, folder, timeout):
    """{kernel: {metric: median}} of `count` launches whose names match."""
    log = os.path.join(folder, "ncu.csv")
    wrapper = [tool, "--clock-control", "none", "--csv", "--print-units", "base", "--log-file", log, "-k",
               f"regex:{pattern}", "--launch-count", str(count), "--metrics", ",".join(METRICS)]
    common.run_batch(program, [common.prompt_ids(prompt, 1, vocab)], 2, folder, timeout,
                     ["--device=cuda", "--prefill-chunk", "2048"], {"KVC_SYNC": "1"}, wrapper=wrapper)
    with open(log, encoding="utf-8", errors="replace") as file:
        lines = [line for line in file if line.startswith('"')]
    values = {}
    for row in csv.DictReader(io.StringIO("".join(lines))):
        try:
            number = float(row["Metric Value"].replace(",", ""))
        except (ValueError, KeyError):
            continue
        kernel = values.setdefault(row["Kernel Name"].split("(")[0], {})
        kernel.setdefault(METRICS.get(row["Metric Name"], row["Metric Name"]), []).append(number)
    if not values:
        raise Failure(f"ncu printed no counters: {common.last_lines(''.join(lines).encode()) or 'nothing'}")
    return {kernel: {name: statistics.median(numbers) for name, numbers in metrics.items()}
            for kernel, metrics in values.items()}


def main():
    parser = common.stage_parser(argparse.ArgumentParser(description=__doc__.splitlines()[0]))
    parser.add_argument("--launches", type=int, default=24, help="of each phase (default: %(default)s)")
    args = parser.parse_args()
    results, deadline = common.Results(args.output), common.Deadline(args.limit)
    tool = shutil.which("ncu") or "/usr/local/cuda/bin/ncu"
    if args.backend != "cuda" or not os.access(tool, os.X_OK):
        results.set("summary", "not run: ncu is not installed here")
        print("ncu: not installed here")
        return 0
    with tempfile.TemporaryDirectory(prefix="kvc-ncu-") as folder:
        for entry in common.programs_of(args, "speed"):
            for phase, prompt in (("decode", 512), ("prefill", 2048)):
                name = f"{entry['name']} {phase}"
                try:
                    table = counters(tool, os.path.join(args.folder, entry["file"]), entry["spec"]["vocab"],
                                     f"^{phase}", args.launches, prompt, folder, deadline.limit(60))
                except (Failure, OSError) as error:
                    results.fail(name, error)
                    continue
                results.set(name, table)
                for kernel, row in table.items():
                    rate = (row.get("read", 0) + row.get("written", 0)) / max(1.0, row.get("ns", 0))
                    print(f"ncu {name} {kernel}: {row.get('ns', 0) / 1e3:.1f} us, {row.get('read', 0) / 1e6:.2f} MB "
                          f"read, {rate:.0f} GB/s, " + ", ".join(f"{key} {row[key]:.0f}" for key in (
                              "dram %", "sm %", "warps %", "registers", "blocks") if key in row), flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
