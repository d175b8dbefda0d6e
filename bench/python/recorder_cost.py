# SPDX-License-Identifier: Apache-2.0
"""What the log and the recorder cost a decorated Python function, beside FlashInfer's own: a 4 MB tensor passed twice and returned.

    FLASHINFER_BUILD_DIR=build/release python bench/python/recorder_cost.py

The interpreter must have FlashInfer's package as `flashinfer`; ours is put before it by PYTHONPATH. Each figure is the median of the
rounds, in which both take turns, so that they see the same machine. Level 10 is also put beside a plain write of the same bytes.
"""
import os
import pathlib
import shutil
import statistics
import subprocess
import sys
import tempfile
import time

ROOT = pathlib.Path(__file__).resolve().parents[2]
WORKER = """
import json, os, shutil, sys, time
import torch
from flashinfer.api_logging import flashinfer_api as api
@api
def f(a, b, scale=1.0):
    return a
x = torch.randn(1 << 20)
def once(n):
    begin = time.perf_counter()
    for _ in range(n):
        f(x, x)
    return (time.perf_counter() - begin) / n * 1e6
once(3)
for line in sys.stdin:
    once(2)  # the other process has run meanwhile
    print("@", once(int(line)), flush=True)
    dumps = os.environ.get("FLASHINFER_DUMP_DIR")
    if dumps: shutil.rmtree(dumps, ignore_errors=True)
"""


class Worker:
    def __init__(self, who, level, folder):
        env = {k: v for k, v in os.environ.items() if not k.startswith("FLASHINFER_LOG") and k != "PYTHONPATH"}
        env |= {"FLASHINFER_LOGLEVEL": str(level), "FLASHINFER_LOGDEST": f"{folder}/{who}.log",
                "FLASHINFER_DUMP_DIR": f"{folder}/{who}", "FLASHINFER_DUMP_MAX_COUNT": "1000000000", "FLASHINFER_DUMP_MAX_SIZE_GB": "1e9"}
        if who == "ours":
            env["PYTHONPATH"] = str(ROOT / "python")
        self.process = subprocess.Popen([sys.executable, "-c", WORKER], env=env, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)

    def time(self, n):
        self.process.stdin.write(f"{n}\n")
        self.process.stdin.flush()
        for line in self.process.stdout:  # the warning of level 10 comes first
            if line.startswith("@"):
                return float(line[1:])
        raise RuntimeError("the worker died")

    def close(self):
        self.process.stdin.close()
        self.process.wait()


def plain_write(folder, n):
    """Of the bytes that a call leaves: the inputs (one storage) and the output."""
    data = os.urandom(4 << 20)
    for name in ("warm0", "warm1"):
        with open(f"{folder}/{name}", "wb", buffering=0) as file:
            file.write(data)
    begin = time.perf_counter()
    for i in range(n):
        os.mkdir(f"{folder}/plain{i}")
        for name in ("inputs", "outputs"):
            with open(f"{folder}/plain{i}/{name}", "wb", buffering=0) as file:
                file.write(data)
    took = (time.perf_counter() - begin) / n * 1e6
    for i in range(n):
        shutil.rmtree(f"{folder}/plain{i}")
    return took


def measure(level, where, n, rounds):
    folder = tempfile.mkdtemp(dir=where)
    workers = {who: Worker(who, level, folder) for who in ("theirs", "ours")}
    times = {"theirs": [], "ours": [], "write": []}
    for _ in range(rounds):
        for who, worker in workers.items():
            times[who].append(worker.time(n))
        if level >= 10:
            times["write"].append(plain_write(folder, n))
    for worker in workers.values():
        worker.close()
    shutil.rmtree(folder)
    return {who: statistics.median(t) for who, t in times.items() if t}


def main():
    disk = tempfile.gettempdir()
    rows = [(0, disk, 200000, 5), (1, disk, 5000, 7), (3, disk, 2000, 7), (5, disk, 15, 9), (10, "/dev/shm", 12, 9), (10, disk, 12, 9)]
    wanted = [int(a) for a in sys.argv[1:]]
    print(f"{'level':5} {'where':9} {'theirs us':>10} {'ours us':>10} {'ratio':>6} {'write us':>9} {'ours/write':>10}")
    for level, where, n, rounds in rows:
        if wanted and level not in wanted:
            continue
        t = measure(level, where, n, rounds)
        line = f"{level:5} {where:9} {t['theirs']:10.2f} {t['ours']:10.2f} {t['theirs'] / t['ours']:6.1f}"
        if "write" in t:
            line += f" {t['write']:9.0f} {t['ours'] / t['write']:10.2f}"
        print(line, flush=True)


if __name__ == "__main__":
    main()
