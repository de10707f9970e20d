#!/usr/bin/env python3
"""Which rounding model mma.sync.m16n8k16 with f32 sums follows on this GPU.

The instruction set leaves the order and rounding of the sums open. Random
operands of several kinds run on the GPU; candidate models compute the same
exactly in integers. A model: k in groups of G (each group with the sum so far
in one addition), every term cut at `extra` bits below an f32's last bit at the
largest term's exponent, the total rounded to f32. The printed table says how
many results each model gets, bit for bit. Needs numpy.
"""
import argparse
import itertools
import os
import sys

import common
from common import Failure
import numpy as np

M, N, K = 16, 8, 16
PTX = """.version 7.8
.target sm_80
.address_size 64
.visible .entry probe(.param .u64 pa, .param .u64 pb, .param .u64 pc, .param .u64 pd)
{
  .reg .b32 %a<4>, %b<2>, %i<4>;
  .reg .f32 %c<4>, %d<4>;
  .reg .b64 %p<5>;
  ld.param.u64 %p0, [pa];
  ld.param.u64 %p1, [pb];
  ld.param.u64 %p2, [pc];
  ld.param.u64 %p3, [pd];
  mov.u32 %i0, %ctaid.x;
  mov.u32 %i1, %tid.x;
  mad.lo.u32 %i2, %i0, 32, %i1;
  mad.wide.u32 %p0, %i2, 16, %p0;
  mad.wide.u32 %p1, %i2, 8, %p1;
  mad.wide.u32 %p2, %i2, 16, %p2;
  mad.wide.u32 %p3, %i2, 16, %p3;
  ld.global.v4.b32 {%a0, %a1, %a2, %a3}, [%p0];
  ld.global.v2.b32 {%b0, %b1}, [%p1];
  ld.global.v4.f32 {%c0, %c1, %c2, %c3}, [%p2];
  mma.sync.aligned.m16n8k16.row.col.f32.TYPE.TYPE.f32 {%d0, %d1, %d2, %d3}, {%a0, %a1, %a2, %a3}, {%b0, %b1},
    {%c0, %c1, %c2, %c3};
  st.global.v4.f32 [%p3], {%d0, %d1, %d2, %d3};
  ret;
}
"""


def bits16(values, kind):
    """16-bit patterns of float32 values, truncated: every pattern is as good as another."""
    if kind == "bf16":
        return (values.astype(np.float32).view(np.uint32) >> 16).astype(np.uint16)
    return values.astype(np.float16).view(np.uint16)


def decode16(bits, kind):
    """(signed significand, exponent of its last bit, exponent of 1.xxx) of 16-bit patterns."""
    fraction, bias = (7, 127) if kind == "bf16" else (10, 15)
    bits = bits.astype(np.int64)
    field = (bits >> fraction) & ((1 << (15 - fraction)) - 1)
    significand = (bits & ((1 << fraction) - 1)) + np.where(field > 0, 1 << fraction, 0)
    exponent = np.maximum(field, 1) - bias
    return np.where(bits >> 15, -significand, significand), exponent - fraction, exponent


def decode32(values):
    bits = values.view(np.uint32).astype(np.int64)
    field = (bits >> 23) & 255
    significand = (bits & 0x7FFFFF) + np.where(field > 0, 1 << 23, 0)
    exponent = np.maximum(field, 1) - 127
    return np.where(bits >> 31, -significand, significand), exponent - 23, exponent


def bit_length(magnitude):
    """Of int64 below 2^62; float64 loses bits above 53 only upwards, which is put right."""
    length = np.frexp(magnitude.astype(np.float64))[1].astype(np.int64)
    return np.where((magnitude > 0) & (magnitude < (np.int64(1) << np.maximum(length - 1, 0))), length - 1, length)


def to_f32(total, quantum, nearest):
    """total * 2^quantum as f32: the magnitude cut, or to nearest even."""
    magnitude = np.abs(total)
    shift = np.maximum(bit_length(magnitude) - 24, 0)
    kept = magnitude >> shift
    if nearest:
        rest = magnitude - (kept << shift)
        half = np.where(shift > 0, np.int64(1) << np.maximum(shift - 1, 0), 0)
        kept = kept + ((shift > 0) & ((rest > half) | ((rest == half) & (kept % 2 == 1))))
    value = np.ldexp(kept.astype(np.float64), (quantum + shift).astype(np.int32))
    return np.where(total < 0, -value, value).astype(np.float32)


def group_sum(terms, model):
    """Adds terms, (significand, last bit's exponent, exponent) each, as one aligned sum."""
    extra, cut_down, normalised, nearest = model
    tops = []
    for significand, last, exponent in terms:
        top = last + bit_length(np.abs(significand)) - 1 if normalised else exponent
        tops.append(np.where(significand == 0, -10000, top))
    largest = np.max(tops, axis=0)
    quantum = np.where(largest == -10000, 0, largest - 23 - extra)
    total = np.zeros_like(quantum)
    for significand, last, _ in terms:
        left = np.clip(last - quantum, 0, 62)
        right = np.clip(quantum - last, 0, 62)
        magnitude = np.abs(significand)
        cut = (magnitude << left) >> right
        if cut_down:  # two's complement: towards minus infinity
            cut = np.where((significand < 0) & ((cut << right) != (magnitude << left)), cut + 1, cut)
        total = total + np.where(significand < 0, -cut, cut)
    return to_f32(total, quantum, nearest)


def products(case):
    """The K products of every (mma, row, column): lists of (significand, last, exponent)."""
    out = []
    a, b = decode16(case["a"], case["kind"]), decode16(case["b"], case["kind"])
    for k in range(K):
        sa, la, ea = (part[:, :, k, None] for part in a)
        sb, lb, eb = (part[:, k, None, :] for part in b)
        out.append((sa * sb, la + lb, ea + eb))
    return out


def predict(case, model):
    """D of every mma by a model: (group, extra, cut_down, normalised, nearest, c_last)."""
    group, extra, cut_down, normalised, nearest, c_last = model
    terms, rounding = products(case), (extra, cut_down, normalised, nearest)
    value = np.zeros_like(case["c"]) if c_last else case["c"]
    for first in range(0, K, group):
        value = group_sum(terms[first:first + group] + [decode32(value)], rounding)
    return value + case["c"] if c_last else value


def sequential(case):
    """One fused multiply-add a k, ascending: products of 16-bit values are exact in float64, so is nearly each sum."""
    value = case["c"].astype(np.float64)
    for significand, last, _ in products(case):
        value = (value + np.ldexp(significand.astype(np.float64), last.astype(np.int32))).astype(np.float32)
        value = value.astype(np.float64)
    return value.astype(np.float32)


def exact(case):
    return predict(case, (16, 30, False, False, True, False))


def make_cases(count, kind, seed=1):
    """Named random operands: A [count, 16, 16], B [count, 16, 8] as bits, C [count, 16, 8]."""
    rng = np.random.default_rng(seed)
    shapes = {"a": (count, M, K), "b": (count, K, N), "c": (count, M, N)}

    def normal(name):
        return rng.standard_normal(shapes[name])

    def wide(name, most):
        return np.exp2(rng.uniform(-most, most, shapes[name])) * rng.choice([-1.0, 1.0], shapes[name])

    cases = {"normal": [normal("a"), normal("b"), normal("c")],
             "normal, C = 0": [normal("a"), normal("b"), np.zeros(shapes["c"])],
             "large C": [normal("a"), normal("b"), 1000 * normal("c")],
             "wide": [wide("a", 6), wide("b", 6), wide("c", 12)],
             "wide, C = 0": [wide("a", 6), wide("b", 6), np.zeros(shapes["c"])]}
    a, b = normal("a"), normal("b")
    b[:, K // 2:, :] = b[:, :K // 2, :]
    a[:, :, K // 2:] = -a[:, :, :K // 2] * (1 + 2.0**-6 * rng.integers(0, 2, (count, M, K // 2)))
    cases["cancelling"] = [a, b, 2.0**-8 * normal("c")]
    # Codes of a quantised weight against activations, as the linear kernels add them.
    cases["codes"] = [rng.integers(-8, 8, shapes["a"]).astype(float), normal("b"), np.zeros(shapes["c"])]
    return {name: {"kind": kind, "a": bits16(a, kind), "b": bits16(b, kind), "c": c.astype(np.float32)}
            for name, (a, b, c) in cases.items()}


def fragments(case):
    """A, B and C as the registers of 32 lanes."""
    g, q = np.arange(32) // 4, np.arange(32) % 4
    a, b, c = case["a"].astype(np.uint32), case["b"].astype(np.uint32), case["c"]

    def pair(matrix, rows, columns):
        return matrix[:, rows, columns] | matrix[:, rows, columns + 1] << 16

    def pair_k(matrix, rows, columns):
        return matrix[:, rows, columns] | matrix[:, rows + 1, columns] << 16

    registers_a = [pair(a, g, 2 * q), pair(a, g + 8, 2 * q), pair(a, g, 2 * q + 8), pair(a, g + 8, 2 * q + 8)]
    registers_b = [pair_k(b, 2 * q, g), pair_k(b, 2 * q + 8, g)]
    registers_c = [c[:, g, 2 * q], c[:, g, 2 * q + 1], c[:, g + 8, 2 * q], c[:, g + 8, 2 * q + 1]]
    return [np.ascontiguousarray(np.stack(registers, axis=2)) for registers in (registers_a, registers_b, registers_c)]


def from_fragments(data, count):
    registers = np.frombuffer(bytes(data), dtype=np.float32).reshape(count, 32, 4)
    g, q = np.arange(32) // 4, np.arange(32) % 4
    out = np.empty((count, M, N), dtype=np.float32)
    for index, (row, column) in enumerate(((g, 2 * q), (g, 2 * q + 1), (g + 8, 2 * q), (g + 8, 2 * q + 1))):
        out[:, row, column] = registers[:, :, index]
    return out


def on_gpu(gpu, case):
    count = len(case["a"])
    module = gpu.module(PTX.replace("TYPE", case["kind"]))
    buffers = [bytearray(part.tobytes()) for part in fragments(case)] + [bytearray(b"\xff" * (count * 512))]
    gpu.launch(module, "probe", (count, 1, 1), (32, 1, 1), 0, buffers)
    gpu.unload(module)
    return from_fragments(buffers[3], count)


def models():
    result = {}
    for group, extra, cut_down, normalised, nearest in itertools.product((4, 8, 16), (0, 1, 2, 3, 4, 30), (False, True),
                                                                        (False, True), (False, True)):
        if extra == 30 and (cut_down or normalised):
            continue  # nothing is cut: the same model
        result[f"groups of {group}, {extra} extra bits, terms {'floored' if cut_down else 'truncated'} at the largest "
               f"{'normalised' if normalised else 'raw'} exponent, sum {'to nearest' if nearest else 'truncated'}"] = (
                   group, extra, cut_down, normalised, nearest, False)
    for group, nearest in itertools.product((4, 8, 16), (False, True)):
        result[f"groups of {group}, exact, {'to nearest' if nearest else 'truncated'}, C added last to nearest"] = (
            group, 30, False, False, nearest, True)
    return result


def share(ours, theirs):
    """Equal bits as a part of all; zeros' signs do not count."""
    return float(np.mean((ours.view(np.uint32) == theirs.view(np.uint32)) | ((ours == 0) & (theirs == 0))))


def analyse(cases, found):
    """Rows of (name, share of equal bits over all cases, by case), best first."""
    rows = []
    functions = {name: (lambda case, model=model: predict(case, model)) for name, model in models().items()}
    functions["one fma a k, ascending"] = sequential
    functions["exact sum, to nearest"] = exact
    for name, function in functions.items():
        shares = {case: share(function(cases[case]), found[case]) for case in cases}
        rows.append((name, float(np.mean(list(shares.values()))), shares))
    return sorted(rows, key=lambda row: -row[1])


def main():
    parser = common.stage_parser(argparse.ArgumentParser(description=__doc__.splitlines()[0]))
    parser.add_argument("--count", type=int, default=24, help="instructions of each kind of operands")
    parser.add_argument("--plant", type=int, help="without a GPU: the model of this number plays the hardware")
    args = parser.parse_args()
    results = common.Results(args.output)
    gpu = None
    if args.plant is None:
        if args.backend != "cuda":
            print("mma: needs a GPU")
            return 0
        import driver
        try:
            gpu = driver.Gpu()
        except Failure as error:
            results.fail("mma", error)
            return 1
    table, raw = {}, {}
    for kind in ("bf16", "f16"):
        cases = make_cases(args.count, kind)
        try:
            if gpu:
                found = {name: on_gpu(gpu, case) for name, case in cases.items()}
            else:
                planted = list(models().values())[args.plant]
                found = {name: predict(case, planted) for name, case in cases.items()}
        except Failure as error:
            results.fail(f"mma {kind}", error)
            continue
        for name, case in cases.items():
            for part in "abc":
                raw[f"{kind} {name} {part}"] = case[part]
            raw[f"{kind} {name} d"] = found[name]
        rows = analyse(cases, found)
        table[kind] = [{"model": name, "equal": total, "by_case": shares} for name, total, shares in rows]
        results.set("models", table)
        print(f"mma.sync m16n8k16 {kind}, f32 sums, {args.count * 128} results of each of {len(cases)} kinds; "
              "equal bits:")
        names = ("one fma a k, ascending", "exact sum, to nearest")
        for name, total, shares in rows[:6] + [row for row in rows[6:] if row[0] in names]:
            print(f"  {100 * total:7.3f} % {name}  [" + ", ".join(f"{100 * x:.1f}" for x in shares.values()) + "]")
        worst = {name: float(np.max(np.abs(found[name] - exact(case)) /
                                    np.maximum(np.abs(exact(case)), 2.0**-100))) for name, case in cases.items()}
        print("  largest relative distance from the exact sum: " +
              ", ".join(f"{name} {value:.1e}" for name, value in worst.items()), flush=True)
    # Where no model fits, these say more without another hour of the machine.
    np.savez_compressed(os.path.splitext(args.output)[0] + ".npz", **raw)
    best = {kind: rows[0] for kind, rows in table.items()}
    results.set("summary", "; ".join(f"{kind}: {100 * row['equal']:.2f} % by {row['model']}"
                                     for kind, row in best.items()))
    return 0


if __name__ == "__main__":
    sys.exit(main())
