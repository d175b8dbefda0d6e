#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The speed of precompiled kernels without a compiler, over that of kernels compiled for this machine, in turns.

    cmake --build build/release --target aot
    python3 tools/bench_precompiled.py

A round runs `flashinfer bench` of an op twice, once with the JIT (-march=native) and once with FLASHINFER_DISABLE_JIT=1 and the precompiled
kernels alone, the order changing from round to round. A row's speed is the median of its rounds' ratios of times; below the limit, or run by
another candidate than the JIT's, it fails. Measure on a quiet machine."""
import argparse
import json
import os
import pathlib
import statistics
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[1]
OPS = ("BatchPrefillWithPagedKVCacheWrapper.run", "mm_bf16", "mm_gguf")  # prefill, GEMM and GEMV, quantised weights


def measure(command, op, seconds, environment):
    """{case: (candidate, seconds)}"""
    done = subprocess.run([command, "bench", "--op", op, "--seconds", str(seconds), "--json"], text=True, capture_output=True, env=environment)
    if done.returncode:
        sys.exit(f"{command} bench --op {op}: {done.stdout}{done.stderr}")
    return {r["case"]: (r["candidate"], r["median_s"]) for r in json.loads(done.stdout)}


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--build", type=pathlib.Path, default=ROOT / "build/release")
    parser.add_argument("--aot", type=pathlib.Path, help="the folder of precompiled kernels; default: aot in the build folder")
    parser.add_argument("--isa", default="native", help="FLASHINFER_CPU_ISA of the precompiled side: x86-64-v4, ...")
    parser.add_argument("--ops", nargs="*", default=OPS)
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--seconds", type=float, default=0.5, help="time for each row, side and round")
    parser.add_argument("--limit", type=float, default=0.97, help="the relative speed below which a row fails")
    o = parser.parse_args()
    aot = (o.aot or o.build / "aot").resolve()
    if not aot.is_dir():
        sys.exit(f"{aot} is not there: cmake --build {o.build} --target aot")
    kept = {k: v for k, v in os.environ.items() if k not in ("FLASHINFER_CPU_ISA", "FLASHINFER_AOT_DIR", "FLASHINFER_DISABLE_JIT")}
    slow, compared = [], 0
    with tempfile.TemporaryDirectory() as empty:
        sides = {"jit": kept, "precompiled": {**kept, "FLASHINFER_DISABLE_JIT": "1", "FLASHINFER_AOT_DIR": str(aot), "FLASHINFER_CPU_ISA": o.isa,
                                              "FLASHINFER_WORKSPACE_BASE": empty}}
        for op in o.ops:
            measure(o.build / "bin/flashinfer", op, 0, kept)  # what is missing is compiled
            found = {}
            for i in range(o.rounds):
                order = list(sides) if i % 2 else list(sides)[::-1]
                times = {side: measure(o.build / "bin/flashinfer", op, o.seconds, sides[side]) for side in order}
                for case, (candidate, seconds) in times["jit"].items():
                    other, ahead = times["precompiled"][case]
                    found.setdefault(case, []).append(seconds / ahead if other == candidate else 0)
            for case, values in found.items():
                speed = statistics.median(values)
                note = "  NOT PRECOMPILED" if speed == 0 else "  SLOWER" if speed < o.limit else ""
                print(f"{op:42} {case:24} {speed:6.3f}  ({min(values):.3f} to {max(values):.3f}){note}", flush=True)
                compared += 1
                if speed < o.limit:
                    slow.append(f"{op} {case}")
    if slow:
        sys.exit(f"{len(slow)} of {compared} rows are below {o.limit} of the JIT's speed: " + ", ".join(slow))
    print(f"{compared} rows, none below {o.limit} of the JIT's speed")


if __name__ == "__main__":
    main()
