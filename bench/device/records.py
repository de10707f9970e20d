#!/usr/bin/env python3
"""What the PTX interpreter computed, computed again on the GPU.

The interpreter's tests leave a file a snippet (KVC_SIM_RECORD=DIR): PTX, launch
shape, buffers before and after. Each runs here through the driver; buffers must
come back with the same bits, but for those that the instruction set leaves
open, whose largest difference in ulps is printed. A worker process runs the
snippets, because a fault spoils its context: the next one goes on after it.
"""
import argparse
import json
import math
import os
import struct
import subprocess
import sys

import common
from common import Failure

FORMS = {"f32": ("I", 4), "f64": ("Q", 8), "f16": ("H", 2), "bf16": ("H", 2)}
INFINITY = {"f32": 0x7F800000, "f64": 0x7FF0000000000000, "f16": 0x7C00, "bf16": 0x7F80}


def ordered(bits, width):
    """An integer that counts representable values: neighbours differ by one."""
    sign = 1 << (8 * width - 1)
    return -(bits & (sign - 1)) if bits & sign else bits


def ulps(element, ours, theirs):
    """(values that differ, largest difference in ulps) of two buffers; NaN beside a number is infinitely far."""
    form, width = FORMS[element]
    count = len(theirs) // width
    left = struct.unpack(f"<{count}{form}", ours[:count * width])
    right = struct.unpack(f"<{count}{form}", theirs[:count * width])
    mask, different, worst = (1 << (8 * width - 1)) - 1, 0, 0
    for a, b in zip(left, right):
        if a == b:
            continue
        nan_a, nan_b = (a & mask) > INFINITY[element], (b & mask) > INFINITY[element]
        different += 1
        if nan_a != nan_b:
            worst = math.inf
        elif not nan_a:
            worst = max(worst, abs(ordered(a, width) - ordered(b, width)))
    return different, worst


def instruction_of(ptx):
    """The lines between the last load and the first store, which is what a snippet is about."""
    lines = [" ".join(line.split()) for line in ptx.splitlines()]
    loads = ("ld.global", "ld.param", "add.u64", "mad.wide")
    first = max((i for i, line in enumerate(lines) if line.startswith(loads)), default=-1) + 1
    end = next((i for i in range(first, len(lines)) if lines[i].startswith("st.global")), len(lines))
    return " ".join(line for line in lines[first:end] if line)[:110]


def compare(record, buffers):
    """One line's worth: values that differ and by how much, over all buffers."""
    different = worst = values = 0
    for parameter, ours in zip((p for p in record["parameters"] if p["kind"] == "buffer"), buffers):
        theirs = bytes.fromhex(parameter["after"])
        element = parameter.get("element", "bits")
        if element in FORMS:
            values += len(theirs) // FORMS[element][1]
            count, far = ulps(element, ours, theirs)
            different, worst = different + count, max(worst, far)
        else:
            values += len(theirs)
            count = sum(a != b for a, b in zip(ours, theirs))
            different += count
            worst = math.inf if count else worst
    return {"name": f"{record['name']} ({instruction_of(record['ptx'])})", "values": values, "different": different,
            "ulps": worst if worst != math.inf else "no number", "approximate": bool(record.get("approximate"))}


def run_record(gpu, record):
    parameters = [bytearray.fromhex(p["before"]) if p["kind"] == "buffer" else bytes.fromhex(p["bytes"])
                  for p in record["parameters"]]
    module = gpu.module(record["ptx"])
    gpu.launch(module, record["kernel"], record["grid"], record["block"], record.get("shared", 0), parameters)
    gpu.unload(module)
    return [bytes(p) for p in parameters if isinstance(p, bytearray)]


def work(folder, names, backend):
    """The worker: prints a JSON object a snippet; ends after one that spoils the context."""
    gpu = None
    if backend == "cuda":
        import driver
        try:
            gpu = driver.Gpu()
        except Failure as error:
            sys.exit(str(error))
    for name in names:
        with open(os.path.join(folder, name), encoding="utf-8") as file:
            record = json.load(file)
        print(json.dumps({"begin": name}), flush=True)
        try:
            if gpu:
                buffers = run_record(gpu, record)
            else:
                # Without a GPU the record is compared with itself: the reading is tested, nothing else.
                buffers = [bytes.fromhex(p["after"]) for p in record["parameters"] if p["kind"] == "buffer"]
            row = compare(record, buffers)
        except (Failure, KeyError, ValueError) as error:
            row = {"name": f"{name} ({instruction_of(record.get('ptx', ''))})", "error": f"{error}"}
        print(json.dumps({**row, "file": name}), flush=True)
        if gpu and gpu.broken:
            return 3
    return 0


def run_all(folder, names, backend, deadline):
    """Rows of all snippets, with workers started again as they break."""
    rows, left = [], list(names)
    while left:
        command = [sys.executable, os.path.abspath(__file__), "--folder", folder, "--output", "-", "--worker",
                   "--backend", backend]
        process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        try:
            out, err = process.communicate("\n".join(left).encode(), timeout=deadline.limit(60))
        except subprocess.TimeoutExpired:
            common.kill_tree(process.pid)
            out, err = process.communicate()
            err = err or b"no end"
        begun, done = None, []
        for line in out.decode("utf-8", "replace").splitlines():
            try:
                value = json.loads(line)
            except ValueError:
                continue
            if "begin" in value:
                begun = value["begin"]
            else:
                done.append(value)
                begun = None
        rows += done
        finished = {row["file"] for row in done}
        if begun:
            rows.append({"name": begun, "file": begun, "error": f"the worker ended without a word: "
                                                              f"{common.last_lines(err, 2, 200)}"})
            finished.add(begun)
        if not finished:
            raise Failure(f"no snippet ran: {common.last_lines(err)}")
        left = [name for name in left if name not in finished]
    return rows


def main():
    parser = common.stage_parser(argparse.ArgumentParser(description=__doc__.splitlines()[0]))
    parser.add_argument("--worker", action="store_true")
    args = parser.parse_args()
    snippets = os.path.join(args.folder, "snippets")
    if args.worker:
        return work(snippets, sys.stdin.read().split("\n"), args.backend)
    results, deadline = common.Results(args.output), common.Deadline(args.limit)
    names = sorted(name for name in os.listdir(snippets) if name.endswith(".json")) if os.path.isdir(snippets) else []
    if not names:
        results.set("summary", "no snippets were carried")
        print("records: no snippets were carried")
        return 0
    try:
        rows = run_all(args.folder, names, args.backend, deadline)
    except Failure as error:
        results.fail("records", error)
        return 1
    results.set("snippets", rows)
    broken = [row for row in rows if "error" in row]
    exact = [row for row in rows if "error" not in row and not row["different"]]
    wrong = [row for row in rows if row.get("different") and not row["approximate"]]
    open_ = [row for row in rows if row.get("different") and row["approximate"]]
    for title, some in (("WRONG BITS", wrong), ("within the ISA's freedom", open_)):
        for row in sorted(some, key=lambda row: -row["different"] / max(1, row["values"]))[:25]:
            print(f"  {title}: {row['name']}: {row['different']} of {row['values']} values, {row['ulps']} ulps at most")
    for row in broken[:12]:
        print(f"  DID NOT RUN: {row['name']}: {row['error'][:200]}")
    results.values["failures"] += [f"records {row['name']}: see above" for row in wrong + broken]
    results.set("summary", f"{len(exact)} of {len(rows)} snippets have the interpreter's bits, {len(wrong)} wrong "
                           f"bits, {len(open_)} differ where the ISA lets them, {len(broken)} did not run")
    print(f"records: {results.values['summary']}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
