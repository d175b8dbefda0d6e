#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""performance_table.py RESULTS.csv [--file docs/performance.md]: writes what one run of `flashinfer bench --csv` measured into the document,
between two marks (at its end the first time), with the machine, the commit and the date. `make bench` calls it."""
import argparse
import csv
import datetime
import os
import pathlib
import re
import subprocess

ROOT = pathlib.Path(__file__).resolve().parents[1]
BEGIN, END = "<!-- measured rows: make bench -->", "<!-- end of measured rows -->"


def machine():
    """The processor, its last-level cache, how busy it was."""
    info = pathlib.Path("/proc/cpuinfo").read_text() if pathlib.Path("/proc/cpuinfo").exists() else ""
    model = re.search(r"^model name\s*:\s*(.*)$", info, re.M)
    caches = sorted(pathlib.Path("/sys/devices/system/cpu/cpu0/cache").glob("index*/size"))
    cache = f", last-level cache {caches[-1].read_text().strip()}" if caches else ""
    cores = len(os.sched_getaffinity(0))
    return f"{model.group(1) if model else 'an unknown processor'}, {cores} cores{cache}, load {os.getloadavg()[0]:.1f} at the end of the run"


def commit():
    def git(*args):
        return subprocess.run(["git", "-C", str(ROOT), *args], capture_output=True, text=True).stdout.strip()

    return (git("rev-parse", "--short=12", "HEAD") or "unknown") + (", with changes" if git("status", "--porcelain", "-uno") else "")


def microseconds(seconds):
    return f"{seconds * 1e6:.0f}" if seconds >= 1e-3 else f"{seconds * 1e6:.3g}"


def table(rows, where, which, day):
    lines = ["## Rows of the case tables", "",
             f"Written by `make bench` on {day}, commit {which}, on {where}. A copy of as many bytes was measured in turns with each row of 16 MB and more.", "",
             "| op | row | by | median | p10-p90 | GB/s | of the copy | GFLOP/s | of the peak |", "| --- | --- | --- | --- | --- | --- | --- | --- | --- |"]
    for r in rows:
        number = {k: float(r[k]) for k in ("median_s", "p10_s", "p90_s", "gb_per_s", "share_of_copy", "gflop_per_s", "share_of_peak")}
        what = f"`{r['args']}`" if r["case"] == "given" else r["case"]
        peak = f"{number['share_of_peak']:.2f}" if number["share_of_peak"] > 0 else ""
        lines.append(f"| {r['op']} | {what} | {r['candidate']} | {microseconds(number['median_s'])} us | "
                     f"{microseconds(number['p10_s'])}-{microseconds(number['p90_s'])} | {number['gb_per_s']:.1f} | {number['share_of_copy']:.2f} | {number['gflop_per_s']:.1f} | {peak} |")
    return "\n".join(lines)


def main():
    parser = argparse.ArgumentParser(description=__doc__.split(":")[0])
    parser.add_argument("results", type=pathlib.Path)
    parser.add_argument("--file", type=pathlib.Path, default=ROOT / "docs/performance.md")
    o = parser.parse_args()
    with open(o.results, newline="") as f:
        rows = list(csv.DictReader(f))
    if not rows:
        parser.error(f"{o.results} has no rows")
    text = o.file.read_text()
    if BEGIN not in text:
        text = f"{text.rstrip()}\n\n{BEGIN}\n{END}\n"
    before, _, rest = text.partition(BEGIN + "\n")
    after = rest.partition(END)[2]
    o.file.write_text(f"{before}{BEGIN}\n{table(rows, machine(), commit(), datetime.date.today())}\n{END}{after}")
    print(f"{o.file}: {len(rows)} rows")


if __name__ == "__main__":
    main()
