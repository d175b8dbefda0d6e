# SPDX-License-Identifier: Apache-2.0
"""MLA decode beside torch on the CPU: two matrix products and a softmax a request, heads folded into rows, over contiguous latents
(torch has no pages: this is its best case). The two take turns in processes of their own, so that every ratio compares neighbours in
time; the dot peak and the page sum of the same turn are printed beside.

    cmake --build build --target bench_mla
    .venv/bin/python bench/mla_vs_torch.py build/bin/bench_mla [--turns 5] [--shape "128 4 2048 64" ...]
"""
import argparse
import os
import statistics
import sys
import time

from side import Side

SHAPES = ["128 1 4096 64", "128 4 2048 64", "16 1 8192 64", "16 8 4096 64", "8 8 4096 64", "2 8 4096 64", "1 8 4096 64", "1 8 4096 1",
          "16 8 4096 64 1 e4m3", "1 8 4096 64 1 e4m3"]  # heads batch kv_len page_size [q_len [type]]


def torch_side(threads):
    import torch
    torch.set_num_threads(threads)
    shape = kv = q = None
    for line in sys.stdin:
        if line != shape:
            shape = line
            heads, batch, length = map(int, line.split()[:3])
            kv = (torch.rand(batch, length, 576) - 0.5).to(torch.bfloat16)
            q = torch.randn(batch, heads, 576).to(torch.bfloat16)
        times = []
        for _ in range(3):
            start = time.perf_counter()
            p = torch.softmax(torch.matmul(q, kv.transpose(1, 2)).float() * 0.07, -1).to(torch.bfloat16)
            torch.matmul(p, kv[:, :, :512])
            times.append(time.perf_counter() - start)
        print(f"{statistics.median(times):.9f}", flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("program", nargs="?", help="bench_mla")
    parser.add_argument("--turns", type=int, default=5)
    parser.add_argument("--threads", type=int, default=len(os.sched_getaffinity(0)))
    parser.add_argument("--shape", action="append", help="'heads batch kv_len page_size [q_len [type]]'")
    parser.add_argument("--torch-side", action="store_true", help=argparse.SUPPRESS)
    o = parser.parse_args()
    if o.torch_side:
        return torch_side(o.threads)
    ours = Side([o.program, "-"], FLASHINFER_NUM_THREADS=str(o.threads))
    torch = Side([sys.executable, __file__, "--torch-side", "--threads", str(o.threads)])
    print(f"{o.threads} threads, medians of {o.turns} turns, ratios of one turn")
    print(f"{'heads batch kv page':>22} {'ms':>9} {'GFLOP/s':>8} {'/peak':>6} {'GB/s':>6} {'/pages':>7} {'torch ms':>9} {'torch/ours':>11}")
    for shape in o.shape or SHAPES:
        fields = shape.split()
        heads, batch, length = map(int, fields[:3])
        rows = int(fields[4]) if len(fields) > 4 else 1
        item = {"e4m3": 1, "f32": 4}.get(fields[5] if len(fields) > 5 else "", 2)
        ours.numbers(shape), torch.numbers(shape)
        turns = [ours.numbers(shape) + torch.numbers(shape) for _ in range(o.turns)]
        flops, size = 2.0 * batch * heads * rows * (length - (rows - 1) / 2) * 1088, batch * length * 576 * item
        call, other = (statistics.median(t[i] for t in turns) for i in (0, 3))
        peak = statistics.median(flops / t[0] * 1e-9 / t[1] if t[1] else 0 for t in turns)
        print(f"{shape:>22} {call * 1e3:9.3f} {flops / call * 1e-9:8.1f} {peak:6.2f} {size / call * 1e-9:6.1f} "
              f"{statistics.median(t[2] / t[0] for t in turns):7.2f} {other * 1e3:9.3f} {statistics.median(t[3] / t[0] for t in turns):11.2f}",
              flush=True)


if __name__ == "__main__":
    main()
