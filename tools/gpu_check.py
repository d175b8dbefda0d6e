# SPDX-License-Identifier: Apache-2.0
"""Checks and times the library on a GPU (or, as far as it can, on the emulator), in three parts that can run alone, the most valuable
first. Every step is a process with a time limit, and its failure a row; the run itself ends within --budget seconds. Writes
gpu_check.json, gpu_check.md and, of what went wrong, gpu_check.log, all of them after every row. Needs Python alone; see gpu_check.sh."""
import argparse
import concurrent.futures
import datetime
import json
import os
import pathlib
import re
import shutil
import sys
import tempfile
import threading
import time

import gpu_check_steps as steps
import gpu_check_times as times
from gpu_check_lib import last_json, pack, run_process, tail

HERE = pathlib.Path(__file__).resolve().parent
# By part, in order: a step, and the seconds that it may take, so that one that hangs leaves time for the others.
PARTS = [[(steps.device, 40), (steps.facts, 60), (times.ceilings, 80), (steps.cases, 320)],
         [(times.timings, 400), (times.ncu, 140)],
         [(steps.probes, 90), (times.sweep, 120), (steps.sanitizer, 120), (steps.recordings, 70), (steps.killed, 60)]]
STEPS = {step.__name__: (step, seconds) for part in PARTS for step, seconds in part}
LOG_BYTES = 8 << 20  # of gpu_check.log


class Check:
    def __init__(self, args, pace=1.0):
        self.args, self.rows, self.start = args, [], time.monotonic()
        self.pace = pace  # how many times longer each process may take: a budget beyond the usual one is for a slower machine
        self.lock, self.step_end, self.logged = threading.Lock(), float("inf"), 0
        self.out = pathlib.Path(args.out)
        self.out.mkdir(parents=True, exist_ok=True)
        (self.out / "gpu_check.log").write_text("")
        self.emulated = args.device == "emu"
        self.work = pathlib.Path(tempfile.mkdtemp(prefix="gpu_check-"))
        self.env = dict(os.environ, FLASHINFER_WORKSPACE_BASE=os.environ.get("FLASHINFER_WORKSPACE_BASE", str(self.work / "cache")),
                        PYTHONDONTWRITEBYTECODE="1")
        for name in ("FLASHINFER_LOGLEVEL", "FLASHINFER_DUMP_DIR", "FLASHINFER_TOOLCHAIN", "FLASHINFER_DUMP_INCLUDE"):
            self.env.pop(name, None)
        if sys.prefix != sys.base_prefix:
            self.env.setdefault("VIRTUAL_ENV", sys.prefix)  # where NVRTC's wheel may be
        for variable, name in (("FLASHINFER_NVRTC", "libnvrtc"), ("FLASHINFER_CUBLASLT", "libcublasLt")):
            wheels = [p for folder in sys.path for p in sorted(pathlib.Path(folder or ".").glob(f"nvidia/*/lib/{name}.so.*"))]
            if wheels:
                self.env.setdefault(variable, str(wheels[-1]))
        self.torch, self.times, self.ops, self.tree = {}, {}, {}, None

    def left(self):
        return min(self.args.budget - (time.monotonic() - self.start), self.step_end - time.monotonic())

    def add(self, step, name, status, detail="", seconds=0.0, data=None):
        """A row; the files hold it at once, whatever becomes of this program."""
        with self.lock:
            self.rows.append({"step": step, "name": name, "status": status, "detail": detail, "seconds": round(seconds, 2), "data": data or {}})
            print(f"{status:7} {step}: {name} ({seconds:.1f} s) {detail}"[:240], flush=True)
            self.write()

    def log(self, argv, status, output):
        """The whole output of what went wrong (its end, when it is long), to find the cause without another run."""
        text = f"\n==== {' '.join(argv)}\n==== exit status {status}\n{(output or '')[-65536:]}\n"
        with self.lock:
            self.logged += len(text)
            if self.logged < LOG_BYTES:
                with open(self.out / "gpu_check.log", "a", errors="replace") as log:
                    log.write(text)

    def run(self, step, name, argv, timeout, judge=None, env=None, quiet=False):
        """One process, one row. judge(status, output) -> (row's status, detail, data); without one the exit status decides."""
        timeout = min(timeout * self.pace, self.left() - 5)
        if timeout < 2:
            return self.add(step, name, "skipped", "no time left")
        begin = time.monotonic()
        status, output = run_process([str(a) for a in argv], timeout, env or self.env)
        seconds = time.monotonic() - begin
        if status is None:
            self.log([str(a) for a in argv], f"none after {timeout:.0f} s", output)
            self.add(step, name, "failed", f"ran out of its {timeout:.0f} s; {tail(output)}", seconds)
            return output
        try:
            verdict = judge(status, output) if judge else self.judge_status(status, output)
        except Exception as error:  # a judge that stumbles over output is a failed row
            verdict = ("failed", f"{type(error).__name__}: {error}; {tail(output)}", {})
        if verdict[0] == "failed":
            self.log([str(a) for a in argv], status, output)
        if not (quiet and verdict[0] == "ok"):
            self.add(step, name, verdict[0], verdict[1], seconds, verdict[2])
        return output

    def tool(self, name):
        return self.tree / "bin" / name

    def build(self):
        if self.args.tree:
            self.tree = pathlib.Path(self.args.tree).resolve()
        elif (HERE / "bin" / "flashinfer").exists():  # a packed tree
            self.tree = HERE
        else:
            self.tree = HERE.parent / "build" / "gpu_check"
            jobs = os.cpu_count() or 1
            self.run("build", "configure", ["cmake", "-S", HERE.parent, "-B", self.tree, "-DCMAKE_BUILD_TYPE=Release", "-DBUILD_TESTING=OFF"], 60)
            self.run("build", "compile", ["cmake", "--build", self.tree, f"-j{jobs}", "--target", "flashinfer_cli", "bench_cuda_probe", "bench_gpu_facts"], 300)
        if (self.tree / "aot").exists():
            self.env.setdefault("FLASHINFER_AOT_DIR", str(self.tree / "aot"))
        self.env["LD_LIBRARY_PATH"] = f"{self.tree}/lib:" + self.env.get("LD_LIBRARY_PATH", "")

    @staticmethod
    def judge_status(status, output):
        return ("ok", "", {}) if status == 0 else ("failed", tail(output, status) or f"exit status {status}", {})

    @staticmethod
    def judge_json(status, output):
        data = last_json(output) or {}
        wrong = "" if status == 0 and data.get("ok") else data.get("error") or tail(output, status) or f"exit status {status}"
        return "failed" if wrong else "ok", wrong or ", ".join(
            f"{k} {v:.4g}" if isinstance(v, float) else f"{k} {v}" for k, v in data.items() if k != "ok"), data

    def list_ops(self):
        status, output = run_process([str(self.tool("flashinfer")), "cases", "--list", "--device", self.args.device], 60 * self.pace, self.env)
        for op, case in re.findall(r"^(\S+) (\S+): ", output or "", re.MULTILINE):
            self.ops.setdefault(op, []).append(case)
        if status != 0 or not self.ops:
            self.add("cases", "list", "failed", tail(output))

    def at_once(self, one, items):
        with concurrent.futures.ThreadPoolExecutor(self.args.jobs) as pool:
            list(pool.map(one, items))

    def sample(self, count):
        """At most `count` of the ops that --only names, spread over the list, in which families are together."""
        ops = [op for op in self.ops if re.search(self.args.only, op)]
        return ops[::max(1, len(ops) // max(1, count))][:count]

    # ---- results ----
    def summary(self):
        count = {s: sum(r["status"] == s for r in self.rows) for s in ("ok", "failed", "skipped")}
        goals = [goal for r in self.rows for goal in r["data"].get("goals", [])]
        met = sum(g.startswith("met") for g in goals)
        summary = f"{count['ok']} passed, {count['failed']} failed, {count['skipped']} skipped" + (f"; goals met: {met} of {len(goals)}" if goals else "")
        return count, summary

    def write(self):
        count, summary = self.summary()
        gpu = next((r["data"] for r in self.rows if r["step"] == "device"), {})
        when = datetime.datetime.now(datetime.timezone.utc).strftime("%Y-%m-%d")
        document = {"date": when, "device": self.args.device, "gpu": gpu, "summary": count, "seconds": round(time.monotonic() - self.start, 1),
                    "rows": self.rows}
        (self.out / "gpu_check.json").write_text(json.dumps(document, indent=1) + "\n")
        lines = [f"# {gpu.get('name', self.args.device)}, {when}", "", summary, "", "| | step | what | s | result |", "| --- | --- | --- | --- | --- |"]
        lines += ["| {} | {} | {} | {} | {} |".format(r["status"], r["step"], r["name"], r["seconds"], r["detail"].replace("|", "/")) for r in self.rows]
        (self.out / "gpu_check.md").write_text("\n".join(lines) + "\n")

    def end(self):
        self.write()
        count, summary = self.summary()
        print(summary, flush=True)
        return 1 if count["failed"] or not count["ok"] else 0


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--device", default="cuda:0", help="cuda:N, or emu: the steps that the emulator supports")
    parser.add_argument("--tree", help="a build folder, or a tree made by --pack (default: next to this script, else it is built)")
    parser.add_argument("--out", default=os.environ.get("OUT", "gpu_check"), help="folder of gpu_check.json and gpu_check.md (default $OUT, else gpu_check)")
    parser.add_argument("--part", type=int, choices=range(1, len(PARTS) + 1), help="facts and cases; timings and counters; everything else")
    parser.add_argument("--steps", help="of " + ", ".join(STEPS))
    parser.add_argument("--only", default="", metavar="REGEX", help="ops of cases, timings, recordings and sanitizers whose names match")
    parser.add_argument("--jobs", type=int, default=max(1, min(16, os.cpu_count() or 1)), help="ops whose cases run at once")
    parser.add_argument("--budget", type=float, help="seconds for all of it; what does not fit is skipped; more than the default (25 minutes for all steps) gives each process more, too")
    parser.add_argument("--pack", metavar="DIR", help="copy what another machine needs from the build folder --tree to DIR, and end")
    parser.add_argument("--cubins", metavar="ARCH", help="with --pack: compile the kernels of all cases for sm_90a, ... into it")
    args = parser.parse_args()
    if args.pack:
        return pack(args.tree or HERE.parent / "build" / "release", args.pack, args.cubins)
    names = args.steps.split(",") if args.steps else [s.__name__ for s, _ in PARTS[args.part - 1]] if args.part else list(STEPS)
    unknown = set(names) - set(STEPS)
    if unknown:
        parser.error(f"--steps {', '.join(sorted(unknown))}: none of {', '.join(STEPS)}")
    planned = sum(STEPS[name][1] for name in names)
    args.budget = args.budget or planned
    check = Check(args, max(1.0, args.budget / planned))
    try:
        check.build()
        check.list_ops()
        for name, (step, seconds) in STEPS.items():
            if name in names:
                check.step_end = time.monotonic() + seconds * args.budget / planned
                try:
                    step(check)
                except Exception as error:  # the other steps still count
                    check.add(name, "the step itself", "failed", f"{type(error).__name__}: {error}")
        return check.end()
    finally:
        shutil.rmtree(check.work, ignore_errors=True)


if __name__ == "__main__":
    sys.exit(main())
