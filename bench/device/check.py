#!/usr/bin/env python3
"""The tiny programs against their records, and against themselves run another way.

Each program runs the record's prompts with the record's ids forced. Its logits
are compared with the float64 interpreter's at the same roundings (this decides),
with the CPU program's, and bit for bit with the PTX interpreter's. The ids that
it chooses must be the interpreter's wherever that one's two largest logits are
further apart than ten times the tolerance. Then the same sequences in batches
of 64, 9, 8, 3 and alone, in chunks and whole, and without the cache: the bits
of the logits must not change. So must those of a model of a real size, whose
long prompts run in kernels that no tiny model launches.
"""
import argparse
import concurrent.futures
import math
import os
import struct
import sys
import tempfile

import common
from common import Failure

NEW = 6
LENGTHS = (70, 9, 131, 1, 33, 64, 65, 17, 3, 128, 8, 16, 63, 2, 100, 40)


def deviation_of(values):
    mean = math.fsum(values) / len(values)
    return math.sqrt(math.fsum((x - mean) ** 2 for x in values) / len(values))


def largest_error(ours, theirs):
    """The largest difference; infinite where a value is NaN or the lengths differ."""
    if len(ours) != len(theirs):
        return math.inf
    worst = 0.0
    for a, b in zip(ours, theirs):
        error = abs(a - b)
        if not error <= worst:
            worst = math.inf if math.isnan(error) else error
    return worst


def relative_error(ours, theirs):
    """The largest difference as a part of the standard deviation."""
    return largest_error(ours, theirs) / deviation_of(theirs)


def different_bits(ours, theirs):
    """How many values are not the same bits."""
    a, b = ours.tobytes(), theirs.tobytes()
    if a == b:
        return 0
    count = min(len(ours), len(theirs))
    left, right = struct.unpack(f"<{count}I", a[:4 * count]), struct.unpack(f"<{count}I", b[:4 * count])
    return sum(x != y for x, y in zip(left, right)) + abs(len(ours) - len(theirs))


def compare_ids(sequence, theirs, vocab, margin):
    """(ids that the margin decides, those of them that are wrong) of one forced sequence."""
    decided = wrong = 0
    for step, id_ in enumerate(sequence["chosen_ids"]):
        row = theirs[step * vocab:(step + 1) * vocab]
        best = max(range(vocab), key=row.__getitem__)
        second = max((x for i, x in enumerate(row) if i != best), default=-math.inf)
        if row[best] - second > margin:
            decided += 1
            wrong += id_ != best
    return decided, wrong


def check_record(entry, program, record, folder, timeout, device):
    """The numbers of one program beside its record."""
    vocab, forced, tolerance = record["vocab"], record["forced"], record["tolerance"]
    options = [f"--device={device}", "--force-ids", ",".join(map(str, forced))]
    batch = common.run_batch(program, record["prompts"], len(forced), folder, timeout, options, logits=True)
    row = {"steps": len(forced) * len(batch.logits), "tolerance": tolerance, "decided": 0, "wrong_ids": 0}
    for name in ("interpreter", "cpu", "sim"):
        if name not in record:
            continue
        relative = []
        for result, ours, text in zip(batch.results, batch.logits, record[name]):
            theirs, ours = common.floats(text), ours[::record["stride"]]
            relative.append(relative_error(ours, theirs))
            if name == "sim":
                row["sim_different"] = row.get("sim_different", 0) + different_bits(ours, theirs)
                row["logits"] = row.get("logits", 0) + len(theirs)
            if name == "interpreter":
                margin = 10 * tolerance * deviation_of(theirs)
                decided, wrong = compare_ids(result, theirs, vocab, margin)
                row["decided"] += decided
                row["wrong_ids"] += wrong
        row[f"{name}_error"] = max(relative)
    if "sampled" in record:
        sampled = record["sampled"]
        batch = common.run_batch(program, record["prompts"], sampled["new"], folder, timeout,
                                 [f"--device={device}", *sampled["options"]], greedy=False)
        row["sampled_equal"] = [result["ids"] for result in batch.results] == sampled["ids"]
    main = "interpreter_error" if "interpreter_error" in row else "sim_error"
    row["good"] = row[main] <= tolerance and row["wrong_ids"] == 0
    row["name"], row["chip"] = entry["name"], entry["chip"]
    return row


def ways(lengths, small):
    """(name, indices of the prompts, options) of every further run."""
    result = [(f"batch {count}", range(count), []) for count in (3, 8, 9) if count < len(lengths)]
    result += [(f"alone {index}", [index], []) for index in range(3)]
    result += [("batch 3, chunk 1", range(3), ["--prefill-chunk", "1"]),
               ("batch 9, chunk 7", range(min(9, len(lengths))), ["--prefill-chunk", "7"]),
               ("batch 3, chunk 64", range(3), ["--prefill-chunk", "64"]),
               ("no cache", range(3), ["--no-cache"])]
    if small:
        result = [way for way in result if way[0] in ("batch 3", "alone 1", "no cache")]
    return result


def large_ways(lengths):
    """The same for few sequences of a large model; the first prompt is the long one."""
    everything = range(len(lengths))
    return [("alone", [0], ["--prefill-chunk", "2048"]), ("chunk 256", everything, ["--prefill-chunk", "256"]),
            ("chunk 64", everything, ["--prefill-chunk", "64"]), ("chunk 8", [0], ["--prefill-chunk", "8"])]


def check_invariance(entry, program, vocab, folder, timeout, device, lengths, every_way):
    """The ways whose logits are not the bits of the largest batch's."""
    prompts = [common.prompt_ids(length, number, vocab) for number, length in enumerate(lengths)]
    option = [f"--device={device}", "--ctx", "256" if max(lengths) <= 200 else "1024"]
    whole = common.run_batch(program, prompts, NEW, folder, timeout, option + ["--prefill-chunk", "2048"], logits=True)
    row = {"name": entry["name"], "ways": 0, "bad": []}
    if any(value != value for values in whole.logits for value in values):
        row["bad"].append("there are NaNs among the logits")
    for way, indices, options in every_way:
        batch = common.run_batch(program, [prompts[i] for i in indices], NEW, folder, timeout, option + options,
                                 logits=True)
        row["ways"] += 1
        for place, index in enumerate(indices):
            bits = different_bits(batch.logits[place], whole.logits[index])
            ids = batch.results[place]["ids"] != whole.results[index]["ids"]
            if bits or ids:
                error = largest_error(batch.logits[place], whole.logits[index])
                row["bad"].append(f"{way}, prompt of {lengths[index]}: {bits} of {len(whole.logits[index])} logits "
                                  f"differ, by {error:.2g} at most{', other ids' if ids else ''}")
            expected = lengths[index] + NEW - 1
            rows = batch.results[place]["stats"]["projected_rows"]
            if way != "no cache" and rows != expected:
                row["bad"].append(f"{way}: projected {rows} rows, expected {expected}")
    row["good"] = not row["bad"]
    return row


def line_of(row):
    text = f"{row['name']:24} "
    text += ", ".join(f"{name} {row[name + '_error']:.1e}" for name in ("interpreter", "cpu", "sim")
                      if name + "_error" in row)
    if "sim_different" in row:
        text += f" ({row['sim_different']} of {row['logits']} other bits)"
    text += f", allowed {row['tolerance']:.0e}, ids {row['decided'] - row['wrong_ids']}/{row['decided']}"
    if "sampled_equal" in row:
        text += ", sampled ids equal" if row["sampled_equal"] else ", sampled ids differ"
    return text + ("" if row["good"] else "   WRONG")


def main():
    parser = common.stage_parser(argparse.ArgumentParser(description=__doc__.splitlines()[0]))
    parser.add_argument("--what", default="record,invariance,large")
    parser.add_argument("--small", action="store_true", help="few sequences: for a dry run on the PTX interpreter")
    args = parser.parse_args()
    results, deadline = common.Results(args.output), common.Deadline(args.limit)
    with tempfile.TemporaryDirectory(prefix="kvc-check-") as scratch:

        def work(job):
            what, entry = job
            program = os.path.join(args.folder, entry["file"])
            record = common.read_record(args.folder, entry)
            folder = os.path.join(scratch, f"{entry['name']}.{what}")
            timeout = deadline.limit(600 if args.backend == "sim" else 60)
            if what == "record":
                return check_record(entry, program, record, folder, timeout, args.backend)
            lengths = [LENGTHS[i % len(LENGTHS)] for i in range(64)]
            if what == "large":
                lengths = [600, 33, 9]
            elif args.small:
                lengths = [9, 3, 12, 1]
            every_way = large_ways(lengths) if what == "large" else ways(lengths, args.small)
            return check_invariance(entry, program, record["vocab"], folder, timeout, args.backend, lengths, every_way)

        for what in args.what.split(","):
            role = {"record": "check", "invariance": "invariance", "large": "speed"}[what]
            jobs = [(what, entry) for entry in common.programs_of(args, role)]
            # The smallest of the large ones will do, and the PTX interpreter has no time for it.
            jobs = jobs if what != "large" else [] if args.backend == "sim" else jobs[:1]
            rows = []
            with concurrent.futures.ThreadPoolExecutor(args.jobs) as pool:
                for job, future in [(job, pool.submit(work, job)) for job in jobs]:
                    try:
                        rows.append(future.result())
                        print(line_of(rows[-1]) if what == "record" else
                              f"{rows[-1]['name']:24} {rows[-1]['ways']} ways, " +
                              ("the same bits" if rows[-1]["good"] else "; ".join(rows[-1]["bad"][:2]) +
                               f" ({len(rows[-1]['bad'])} differences)"), flush=True)
                    except (Failure, KeyError, OSError, ValueError) as error:
                        results.fail(f"{what} {job[1]['name']}", error)
            results.set(what, rows)
            for row in rows:
                if not row["good"]:
                    results.values["failures"].append(f"{what} {row['name']}: see above")
            good = sum(row["good"] for row in rows)
            results.set(f"{what}_summary", f"{good} of {len(jobs)} programs good")
            print(f"{what}: {good} of {len(jobs)} programs good", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
