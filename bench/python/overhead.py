# SPDX-License-Identifier: Apache-2.0
"""What Python adds to a call, in ratios and times of one run:

    FLASHINFER_BUILD_DIR=build/release PYTHONPATH=python python bench/python/overhead.py

call       flashinfer.rmsnorm(x, w, out=y) of one row of 64, level 0: all of it, the kernel included
import     `import flashinfer` after `import torch`
gil        two Python threads with one thread each against one alone (2.0: no waiting)
alternate  torch and this library in turn against each alone (1.00: neither slows the other)
"""
import argparse
import statistics
import subprocess
import sys
import threading
import time
import timeit


def best(f, seconds=0.3, repeat=7):
    """Seconds a call: the least of `repeat` runs."""
    n = 1
    while timeit.timeit(f, number=n) < seconds / repeat / 4:
        n *= 2
    return min(timeit.repeat(f, number=n, repeat=repeat)) / n


def call():
    import torch
    import tvm_ffi

    import flashinfer

    x, w = torch.randn(1, 64), torch.randn(64)
    y = torch.empty_like(x)

    def same_signature(input, weight, eps=1e-06, out=None, enable_pdl=None):
        return out

    nothing = tvm_ffi.get_global_func("testing.nop")
    rmsnorm = flashinfer.rmsnorm
    whole = best(lambda: rmsnorm(x, w, out=y))
    print(f"call       {whole * 1e6:.2f} us whole, no result to allocate; {best(lambda: rmsnorm(x, w)) * 1e6:.2f} us with one")
    print(f"           of it a Python function {best(lambda: same_signature(x, w, out=y)) * 1e6:.2f} us, the arguments through TVM-FFI "
          f"{best(lambda: nothing(x, w, 1e-6, y, None)) * 1e6:.2f} us")
    print(f"           torch.nn.functional.rms_norm of the same {best(lambda: torch.nn.functional.rms_norm(x, (64,), w)) * 1e6:.2f} us")


def import_time():
    code = "import time, torch; t = time.perf_counter(); import flashinfer; print(time.perf_counter() - t)"
    times = [float(subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout) for _ in range(3)]
    first = ("import time, torch, flashinfer; x = torch.ones(1, 64); t = time.perf_counter(); flashinfer.rmsnorm(x, x[0]); "
             "print(time.perf_counter() - t)")
    first = [float(subprocess.run([sys.executable, "-c", first], capture_output=True, text=True, check=True).stdout) for _ in range(3)]
    print(f"import     {statistics.median(times):.3f} s beyond torch; the first call {statistics.median(first):.3f} s (TVM-FFI, kernel cache)")


def gil():
    import torch

    import flashinfer

    x, w = torch.randn(512, 4096), torch.randn(4096)
    a, b = torch.randn(64, 2048).bfloat16(), torch.randn(2048, 2048).bfloat16().t()
    y, c = torch.empty_like(x), torch.empty(64, 2048, dtype=torch.bfloat16)
    for name, f in (("mm_bf16", lambda out: flashinfer.mm_bf16(a, b, out=out)), ("rmsnorm", lambda out: flashinfer.rmsnorm(x, w, out=out))):
        outs = [torch.empty_like(c if name == "mm_bf16" else y) for _ in range(2)]

        def work(i, n):
            with flashinfer.num_threads(1):
                for _ in range(n):
                    f(outs[i])

        def run(threads, n):
            jobs = [threading.Thread(target=work, args=(i, n)) for i in range(threads)]
            t = time.perf_counter()
            for j in jobs:
                j.start()
            for j in jobs:
                j.join()
            return time.perf_counter() - t

        n = max(1, int(0.3 / (run(1, 4) / 4)))
        one, two = min(run(1, n) for _ in range(5)), min(run(2, n) for _ in range(5))
        print(f"gil        {name}: {one / n * 1e3:.2f} ms a call; two threads do {2 * one / two:.2f} times the calls of one")


def alternate():
    import torch

    import flashinfer

    torch.manual_seed(0)
    for rows in (16, 256, 2048):
        w = torch.randn(4096)
        # Two sets of arrays each way, so that what stays in the caches is the same alone and in turn.
        (x, y), (x2, y2) = [(torch.randn(rows, 4096), torch.empty(rows, 4096)) for _ in range(2)]

        def theirs(x=x, y=y):
            torch.mul(x, 1.5, out=y)

        def theirs2(x=x2, y=y2):
            torch.mul(x, 1.5, out=y)

        def ours(x=x, y=y):
            flashinfer.rmsnorm(x, w, out=y)

        def ours2(x=x2, y=y2):
            flashinfer.rmsnorm(x, w, out=y)

        def another(x=x, y=y):  # of torch, with as much to do as ours
            torch.add(x, w, out=y)

        def another2(x=x2, y=y2):
            torch.add(x, w, out=y)

        n = max(20, int(0.05 / (best(theirs, 0.05, 3) + best(ours, 0.05, 3))))

        def run(fs):
            t = time.perf_counter()
            for _ in range(n):
                for f in fs:
                    f()
            return (time.perf_counter() - t) / n

        def ratio(f, f2, g, g2):
            """Times of f and g in turn over each with itself. The order of the arrays changes from run to run."""
            alone, turns = [], []
            for _ in range(15):
                alone.append((run([f, f2]) + run([g, g2])) / 2)
                turns.append((run([f, g2]) + run([g, f2])) / 2)
            return statistics.median(alone), statistics.median(turns)

        (a, b), (c, d) = ratio(theirs, theirs2, ours, ours2), ratio(theirs, theirs2, another, another2)
        print(f"alternate  {rows}x4096: {a * 1e6:.0f} us alone, {b * 1e6:.0f} us in turn, ratio {b / a:.2f}; two ops of torch {d / c:.2f}")


if __name__ == "__main__":
    parts = {"call": call, "import": import_time, "gil": gil, "alternate": alternate}
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("part", nargs="*", choices=[*parts, []], help="default: all")
    for part in parser.parse_args().part or parts:
        parts[part]()
