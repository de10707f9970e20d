#!/usr/bin/env python3
"""Plays a compiled program from a record, with one fault on demand, to test check_program.py."""
import argparse
import array
import base64
import json
import math
import struct


def write_npy(path, rows, columns, values):
    header = f"{{'descr': '<f4', 'fortran_order': False, 'shape': ({rows}, {columns}), }}"
    header += " " * (-(len(header) + 11) % 64) + "\n"
    with open(path, "wb") as file:
        file.write(b"\x93NUMPY\x01\0" + struct.pack("<H", len(header)) + header.encode() + values.tobytes())


def play(sequence, fault, path):
    """Writes one sequence's logits where wanted; returns its result."""
    ids, prompt_ids = list(sequence["ids"]), list(sequence["prompt_ids"])
    if fault == "id":
        ids[1] += 1
    elif fault == "short":
        ids.pop()
    elif fault == "prompt":
        prompt_ids.append(1)
    elif fault == "tie":  # the second choice at the closest pair
        step = min(range(len(ids)), key=lambda i: sequence["top2"][i][1] - sequence["top2"][i][3])
        ids[step] = sequence["top2"][step][2]
    if path is not None and "logits" in sequence:
        values = array.array("f")
        values.frombytes(base64.b64decode(sequence["logits"]))
        if fault == "logit":
            values[7] += 0.01
        elif fault == "nan":
            values[7] = math.nan
        write_npy(path, len(sequence["ids"]), len(values) // len(sequence["ids"]), values)
    return {"prompt_ids": prompt_ids, "ids": ids, "text": "", "finish_reason": "length", "stats": {}}


def main():
    parser = argparse.ArgumentParser()
    for name in ("--prompts", "--prompt-ids", "--force-ids", "--max-new-tokens", "--temperature", "--logits"):
        parser.add_argument(name)
    for name in ("--ignore-eos", "--json"):
        parser.add_argument(name, action="store_true")
    parser.add_argument("--record", required=True)
    parser.add_argument("--fault", default="none")
    args = parser.parse_args()
    with open(args.record, encoding="utf-8") as file:
        sequences = json.load(file)["sequences"]
    if args.fault == "exit":
        raise SystemExit(3)
    print("text before the results")
    if args.prompts is None:
        ids = [int(word) for word in args.prompt_ids.split(",")]
        sequence = next(s for s in sequences if s["prompt_ids"] == ids)
        print(json.dumps(play(sequence, args.fault, args.logits)))
        return
    with open(args.prompts, encoding="utf-8") as file:
        wanted = [json.loads(line) for line in file]
    for number, prompt in enumerate(wanted):
        sequence = next(s for s in sequences if all(s[key] == value for key, value in prompt.items()))
        path = None if args.logits is None else f"{args.logits}.{number}.npy"
        print(json.dumps(play(sequence, args.fault, path)))


if __name__ == "__main__":
    main()
