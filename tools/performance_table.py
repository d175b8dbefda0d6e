#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""performance_table.py FOLDER [--file docs/performance.md]: writes what one run measured into the document, between two marks (at its end the
first time), with the machine, the commit and the date: a table for each FOLDER/NAME.csv of `flashinfer bench --testlist bench/NAME.txt --csv`,
what the program NAME printed for each FOLDER/NAME.txt. `make bench` calls it."""
import argparse
import csv
import datetime
import os
import pathlib
import re
import subprocess

ROOT = pathlib.Path(__file__).resolve().parents[1]
BEGIN, END = "<!-- measured rows: make bench -->", "<!-- end of measured rows -->"
PEERS = ("torch", "onednn", "zentorch", "llama.cpp", "ik_llama.cpp")
WORDS = {"share_of_copy": "of the copy", "share_of_read": "of reading", "share_of_peak": "of the peak", "over_ratio": "over the other"}


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


def missed(row):
    """Whether the row has a goal that it does not reach; the goal's column."""
    goal = re.fullmatch(r"(\w+)(>=|<=)([\d.]+)", row.get("goal") or "")
    if not goal or not row.get(goal[1]):  # of a library that is not installed
        return False, goal and goal[1]
    value, bound = float(row[goal[1]]), float(goal[3])
    return (value < bound if goal[2] == ">=" else value > bound), goal[1]


def goal_text(row):
    goal = row.get("goal") or ""
    for name, words in {**WORDS, **{f"{p}_ratio": f"{p}'s time" for p in PEERS}}.items():
        goal = re.sub(rf"^{re.escape(name)}(>=|<=)", lambda m: f"{words} {m[1]} ", goal)
    return goal


def ratio(row, name, least=0.0):
    """Nothing below `least`, where something else is the row's limit, unless the row's goal is about it."""
    value = float(row.get(name) or 0)
    return f"{value:.2f}" if value > 0 and (value >= least or missed(row)[1] == name) else ""


# Heading, the column that a goal may name, the text of a row.
COLUMNS = [
    ("op", "", lambda r: r["op"]),
    ("row", "", lambda r: f"`{r['args']}`" if r["case"] == "given" else r["case"]),
    ("by", "", lambda r: r["candidate"]),
    ("median", "", lambda r: f"{microseconds(float(r['median_s']))} us"),
    ("p10-p90", "", lambda r: f"{microseconds(float(r['p10_s']))}-{microseconds(float(r['p90_s']))}"),
    ("GB/s", "", lambda r: f"{float(r['gb_per_s']):.1f}"),
    ("of the copy", "share_of_copy", lambda r: ratio(r, "share_of_copy", 0.1) if not float(r.get("share_of_read") or 0) else ""),
    ("of reading", "share_of_read", lambda r: ratio(r, "share_of_read", 0.1)),
    ("GFLOP/s", "", lambda r: f"{float(r['gflop_per_s']):.1f}" if ratio(r, "share_of_peak", 0.1) else ""),
    ("of the peak", "share_of_peak", lambda r: ratio(r, "share_of_peak", 0.1)),
    *[(f"{p}'s time", f"{p}_ratio", lambda r, p=p: ratio(r, f"{p}_ratio")) for p in PEERS],
    ("another row's time", "over_ratio", lambda r: f"{ratio(r, 'over_ratio')} ({r['over']})" if r.get("over") else ""),
    ("goal", "", goal_text),
]


def table(rows):
    """Only columns that a row has; values that miss the row's goal in bold."""
    lines = []
    for row in rows:
        bad, name = missed(row)
        lines.append([f"**{text}**" if text and bad and name == column else text
                      for text, column in ((show(row), column) for _, column, show in COLUMNS)])
    kept = [i for i in range(len(COLUMNS)) if any(line[i] for line in lines)]
    out = ["| " + " | ".join(COLUMNS[i][0] for i in kept) + " |", "|" + " --- |" * len(kept)]
    return "\n".join(out + ["| " + " | ".join(line[i] for i in kept) + " |" for line in lines])


def title(name):
    """What the list says of itself in its first comment."""
    path = ROOT / f"bench/{name}.txt"
    comments = [line[1:].strip() for line in path.read_text().splitlines() if line.startswith("#")] if path.exists() else []
    return next((c for c in comments if not c.startswith("SPDX")), name).rstrip(":.")


def printed(text):
    """What a program printed, without the library's warnings in frames and without what Google Benchmark prints beside medians."""
    text = re.sub(r"^={60,}\n(?:.*\n)*?={60,}\n", "", text, flags=re.M)
    lines = [line for line in text.strip().splitlines() if not re.match(r"\S+_(mean|stddev|cv)\s", line)]
    return "\n".join(re.sub(r"^(\S+?)/repeats:\d+_median", lambda m: m[1].ljust(len(m[0])), line) for line in lines)


def section(folder):
    parts, rows = [], 0
    for results in sorted(folder.glob("*.csv")):
        with open(results, newline="") as f:
            found = list(csv.DictReader(f))
        rows += len(found)
        if found:
            parts.append(f"### {title(results.stem)}\n\n`flashinfer bench --testlist bench/{results.stem}.txt`\n\n{table(found)}")
    for output in sorted(folder.glob("*.txt")):
        parts.append(f"### {output.stem}\n\n```\n{printed(output.read_text())}\n```")
    return "\n\n".join(parts), rows


HEAD = """## Measured

Written by `make bench` on {day}, commit {commit}, on {machine}. Everything in a row was measured in turns: a copy of as many bytes (rows of 16 MB and
more), summing the inputs ("reading"), other libraries and another row ("time": its median over the row's, so more than 1 is slower than this library).
The peak is of bf16 dots (vdpbf16ps), of f32 FMA where the inputs are f32 or f16; kernels on AMX tiles or 8-bit dots exceed 1. Shares below 0.1 are left out. Values in bold miss the row's goal.
"""


def main():
    parser = argparse.ArgumentParser(description=__doc__.split(":")[0])
    parser.add_argument("folder", type=pathlib.Path)
    parser.add_argument("--file", type=pathlib.Path, default=ROOT / "docs/performance.md")
    o = parser.parse_args()
    body, rows = section(o.folder)
    if not rows:
        parser.error(f"{o.folder} has no rows")
    text = o.file.read_text()
    if BEGIN not in text:
        text = f"{text.rstrip()}\n\n{BEGIN}\n{END}\n"
    before, _, rest = text.partition(BEGIN + "\n")
    after = rest.partition(END)[2]
    head = HEAD.format(day=datetime.date.today(), commit=commit(), machine=machine())
    o.file.write_text(f"{before}{BEGIN}\n{head}\n{body}\n{END}{after}")
    print(f"{o.file}: {rows} rows")


if __name__ == "__main__":
    main()
