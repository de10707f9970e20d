#!/usr/bin/env python3
"""What this GPU does at most: bytes copied, bytes read, bf16 matrix work. Needs PyTorch, better with CuPy."""
import argparse
import statistics
import sys

import common
import torch

# Reads of 16 bytes, eight in flight a thread; a sum that depends on all keeps them.
READER = r"""
extern "C" __global__ void reader(const uint4 *data, unsigned long long count, unsigned *out) {
  unsigned long long stride = (unsigned long long)gridDim.x * blockDim.x;
  unsigned long long i = (unsigned long long)blockIdx.x * blockDim.x + threadIdx.x;
  unsigned sum = 0;
  for (; i + 7 * stride < count; i += 8 * stride) {
    uint4 v[8];
    #pragma unroll
    for (int j = 0; j < 8; ++j) v[j] = __ldcs(data + i + j * stride);
    #pragma unroll
    for (int j = 0; j < 8; ++j) sum ^= v[j].x ^ v[j].y ^ v[j].z ^ v[j].w;
  }
  for (; i < count; i += stride) { uint4 w = data[i]; sum ^= w.x ^ w.y ^ w.z ^ w.w; }
  if (sum == 0x12345678u) out[0] = sum;
}
"""


def seconds_of(function, repeats=10):
    """Median by events, after three runs that do not count."""
    for _ in range(3):
        function()
    times = []
    for _ in range(repeats):
        start, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
        start.record()
        function()
        end.record()
        end.synchronize()
        times.append(start.elapsed_time(end) * 1e-3)
    return statistics.median(times)


def copy_rate(size):
    a = torch.randint(0, 1 << 30, (size // 4,), dtype=torch.int32, device="cuda")
    b = torch.empty_like(a)
    return 2 * size / seconds_of(lambda: b.copy_(a))


def sum_rate(size):
    a = torch.randn(size // 4, device="cuda")
    return size / seconds_of(a.sum)


def read_rate(size):
    """By a kernel of our own, with the best of a few grids."""
    import cupy
    kernel = cupy.RawKernel(READER, "reader")
    data = torch.randint(0, 1 << 30, (size // 4,), dtype=torch.int32, device="cuda")
    out = torch.zeros(1, dtype=torch.int32, device="cuda")
    processors = torch.cuda.get_device_properties(0).multi_processor_count
    best = 0.0
    stream = cupy.cuda.ExternalStream(torch.cuda.current_stream().cuda_stream)
    with stream:
        for blocks, threads in ((4, 256), (8, 256), (2, 512), (4, 512)):
            arguments = (data.data_ptr(), size // 16, out.data_ptr())
            arguments = (cupy.uint64(arguments[0]), cupy.uint64(arguments[1]), cupy.uint64(arguments[2]))
            time = seconds_of(lambda b=blocks, t=threads, a=arguments: kernel((b * processors,), (t,), a), 5)
            best = max(best, size / time)
    return best


def matmul_rate(size):
    a, b = (torch.randn(size, size, device="cuda", dtype=torch.bfloat16) for _ in range(2))
    out = torch.empty_like(a)
    return 2 * size**3 / seconds_of(lambda: torch.matmul(a, b, out=out))


def main():
    args = common.stage_parser(argparse.ArgumentParser(description=__doc__.splitlines()[0])).parse_args()
    results = common.Results(args.output)
    if not torch.cuda.is_available():
        results.fail("probes", "PyTorch sees no GPU")
        return 1
    probes = {"copy_GBps": (copy_rate, 4 << 30, 1e-9), "torch_sum_GBps": (sum_rate, 4 << 30, 1e-9),
              "reader_GBps": (read_rate, 4 << 30, 1e-9), "matmul_TFLOPs": (matmul_rate, 8192, 1e-12),
              "matmul_4096_TFLOPs": (matmul_rate, 4096, 1e-12)}
    for name, (function, size, unit) in probes.items():
        try:
            results.set(name, function(size) * unit)
        except Exception as error:  # one probe's failure must not cost the others
            results.fail(name, f"{type(error).__name__}: {error}"[:300])
        torch.cuda.empty_cache()
    values = results.values
    reads = [values[name] for name in ("torch_sum_GBps", "reader_GBps", "copy_GBps") if name in values]
    results.set("read_GBps", max(reads, default=0.0))
    results.set("peak_TFLOPs", max((values[name] for name in values if name.startswith("matmul")), default=0.0))
    results.set("summary", f"copy {values.get('copy_GBps', 0):.0f} GB/s (read + written), read "
                           f"{values['read_GBps']:.0f} GB/s, bf16 matrix product {values['peak_TFLOPs']:.0f} TFLOP/s")
    print(f"probes: {values['summary']}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
