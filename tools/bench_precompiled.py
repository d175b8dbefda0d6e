#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The speed of precompiled kernels without a compiler, over that of kernels compiled for this machine, in turns.

    cmake --build build/release --target aot
    python3 tools/bench_precompiled.py

A round runs rows of bench/attention.txt and bench/products.txt twice, once with the JIT (-march=native) and once with FLASHINFER_DISABLE_JIT=1 and the precompiled
kernels alone, the order changing from round to round. A row's speed is the median of its rounds' ratios of
times, of the fastest tenth of the calls (other programs lengthen the others); below the limit, or run by
another candidate than the JIT's, it fails. Measure on a quiet machine."""
import argparse
import csv
import os
import pathlib
import re
import statistics
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[1]
# List, and the labels of its rows: prefill, GEMM and GEMV, quantised weights.
ROWS = (("attention", r"prefill D \d+, (512|1024) tokens"), ("products", r"(1|8|128) x 14336 x 4096, .*|512 x .*, packed|512 x 4096 x 4096, .*"))
OPS = ("BatchPrefillWithPagedKVCacheWrapper.run", "mm_bf16", "mm_gguf")


def rows(ops):
    """The options of each row, without what is measured beside it."""
    for name, labels in ROWS:
        for line in (ROOT / f"bench/{name}.txt").read_text().splitlines():
            found = re.fullmatch(r'--op (\S+) --label "([^"]*)" --args ("[^"]*").*', line)
            if found and found[1] in ops and re.fullmatch(labels, found[2]):
                yield f'--op {found[1]} --label "{found[1]} {found[2]}" --args {found[3]}'


def measure(command, wanted, seconds, environment):
    """{row: (candidate, seconds)}"""
    with tempfile.TemporaryDirectory() as folder:
        table, listed = pathlib.Path(folder, "rows.csv"), pathlib.Path(folder, "rows.txt")
        listed.write_text("\n".join(wanted) + "\n")
        done = subprocess.run([command, "bench", "--testlist", listed, "--seconds", str(seconds), "--csv", table], text=True, capture_output=True, env=environment)
        if done.returncode:
            sys.exit(f"{command} bench: {done.stdout}{done.stderr}")
        with open(table, newline="") as f:
            return {r["case"]: (r["candidate"], float(r["p10_s"])) for r in csv.DictReader(f)}


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
        wanted, program, found = list(rows(o.ops)), o.build / "bin/flashinfer", {}
        measure(program, wanted, 0, kept)  # what is missing is compiled
        for i in range(o.rounds):
            order = list(sides) if i % 2 else list(sides)[::-1]
            times = {side: measure(program, wanted, o.seconds, sides[side]) for side in order}
            for case, (candidate, seconds) in times["jit"].items():
                other, ahead = times["precompiled"][case]
                found.setdefault(case, []).append(seconds / ahead if other == candidate else 0)
        for case, values in found.items():
            speed = statistics.median(values)
            note = "  NOT PRECOMPILED" if speed == 0 else "  SLOWER" if speed < o.limit else ""
            print(f"{case:72} {speed:6.3f}  ({min(values):.3f} to {max(values):.3f}){note}", flush=True)
            compared += 1
            if speed < o.limit:
                slow.append(case)
    if slow:
        sys.exit(f"{len(slow)} of {compared} rows are below {o.limit} of the JIT's speed: " + ", ".join(slow))
    if not compared:
        sys.exit("no rows were compared")
    print(f"{compared} rows, none below {o.limit} of the JIT's speed")


if __name__ == "__main__":
    main()
