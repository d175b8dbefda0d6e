# SPDX-License-Identifier: Apache-2.0
"""mm_bf16 beside torch's F.linear on bf16: the two take turns in processes of their own (their thread pools would otherwise spin
against each other), so that every ratio compares neighbours in time. With one row, weights are memory traffic: the share of the
read bandwidth measured in the same turn is printed too.

    cmake --build build --target bench_gemm_vs_torch
    .venv/bin/python bench/gemm_vs_torch.py build/bin/bench_gemm_vs_torch [--turns 15] [--shape 512x14336x4096 ...]
"""
import argparse
import os
import statistics
import sys
import time

from side import Side

SHAPES = ["512x14336x4096", "1x14336x4096", "8x14336x4096", "512x576x576", "512x192x576", "512x1536x576", "512x576x1536",
          "8x576x576", "8x192x576", "8x1536x576", "8x576x1536", "8x49152x576", "1x576x1536", "1x49152x576", "16x1536x576",
          "64x1536x576"]


def torch_side(threads):
    import torch
    torch.set_num_threads(threads)
    sets = {}
    for line in sys.stdin:
        m, n, k, count = map(int, line.split())
        if (m, n, k) not in sets:
            sets.clear()
            copies = min(200, max(1, (128 << 20) // max(1, n * k * 2) + 1))
            weights = (torch.rand(copies * n, k) - 0.5).to(torch.bfloat16)
            sets[m, n, k] = [torch.randn(m, k).to(torch.bfloat16), weights, copies, 0]
        a, weights, copies, first = sets[m, n, k]
        sets[m, n, k][3] = first + count
        times = []
        for i in range(first, first + count):
            w = weights[i % copies * n:(i % copies + 1) * n]
            start = time.perf_counter()
            torch.nn.functional.linear(a, w)
            times.append(time.perf_counter() - start)
        print(f"{statistics.median(times):.9f}", flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("program", nargs="?", help="bench_gemm_vs_torch")
    parser.add_argument("--turns", type=int, default=15)
    parser.add_argument("--threads", type=int, default=len(os.sched_getaffinity(0)))
    parser.add_argument("--shape", action="append", help="MxNxK")
    parser.add_argument("--torch-side", action="store_true", help=argparse.SUPPRESS)
    o = parser.parse_args()
    if o.torch_side:
        return torch_side(o.threads)
    ours = Side([o.program], FLASHINFER_NUM_THREADS=str(o.threads))
    torch = Side([sys.executable, __file__, "--torch-side", "--threads", str(o.threads)])
    print(f"{o.threads} threads, medians of {o.turns} turns; ratios are torch / ours of one turn")
    print(f"{'m x n x k':>18} {'packed us':>11} {'GFLOP/s':>8} {'/read':>6} {'vs torch':>9} {'plain us':>11} {'vs torch':>9} "
          f"{'torch us':>11} {'GFLOP/s':>8} {'read GB/s':>10}")
    for shape in o.shape or SHAPES:
        m, n, k = map(int, shape.split("x"))
        calls = max(3, min(40, int(2e-2 * 2e11 / (2.0 * m * n * k))))
        lines = [f"mm {m} {n} {k} {calls} packed", f"read {m} {n} {k} {calls}", f"mm {m} {n} {k} {calls} plain"]
        for line in lines:
            ours.ask(line)  # compiles, allocates, touches
        torch.ask(f"{m} {n} {k} {calls}")
        turns = []
        for _ in range(o.turns):
            turns.append([ours.ask(line) for line in lines] + [torch.ask(f"{m} {n} {k} {calls}")])
        packed, read, plain, other = (statistics.median(t[i] for t in turns) for i in range(4))
        flops = 2.0 * m * n * k
        print(f"{shape:>18} {packed * 1e6:11.1f} {flops / packed * 1e-9:8.1f} {statistics.median(t[1] / t[0] for t in turns):6.2f} "
              f"{statistics.median(t[3] / t[0] for t in turns):9.2f} {plain * 1e6:11.1f} "
              f"{statistics.median(t[3] / t[2] for t in turns):9.2f} {other * 1e6:11.1f} {flops / other * 1e-9:8.1f} "
              f"{2.0 * n * k / read * 1e-9:10.1f}", flush=True)


if __name__ == "__main__":
    main()
