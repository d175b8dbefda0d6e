# SPDX-License-Identifier: Apache-2.0
"""Checks and times the library on a GPU (or, as far as it can, on the emulator). Every step is a process with a time limit, and its
failure a row; the run itself ends within --budget seconds. Writes gpu_check.json, gpu_check.md and, of what went wrong, gpu_check.log, all
of them after every row. Needs Python alone; see gpu_check.sh."""
import argparse
import concurrent.futures
import datetime
import glob
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import threading
import time

from gpu_check_lib import last_json, pack, run_process, tail

HERE = pathlib.Path(__file__).resolve().parent
DECODE = ("init.float_workspace_buffer=u8:0 plan.q_data_type=bfloat16 plan.indptr=i32:[{indptr}] plan.indices=i32:16384:perm "
          "plan.last_page_len=i32:64:const(16) plan.num_qo_heads=32 plan.num_kv_heads=8 plan.head_dim=128 plan.page_size=16 "
          "q=bf16:64x32x128 paged_kv_cache=bf16:16384x2x16x8x128:uniform(-1,1)"
          ).format(indptr=",".join(str(256 * i) for i in range(65)))
PREFILL = "q=bf16:8192x32x128 k=bf16:8192x8x128 v=bf16:8192x8x128 causal=True"
GDN = ("q=bf16:64x1x16x128 k=bf16:64x1x16x128 v=bf16:64x1x32x128 state={state}:64x32x128x128 A_log=f32:32 a=bf16:64x1x32 dt_bias=f32:32 "
       "b=bf16:64x1x32")
SSU = ("state=bf16:64x128x64x128 x=bf16:64x128x64 dt=bf16:64x128x1 A=f32:128x1x1:uniform(-8,-0.1) B=bf16:64x8x128 C=bf16:64x8x128 D=bf16:128x1 "
       "dt_bias=f32:128x1 dt_softplus=True")
# Named here and not in the ops' tables: which shapes have a goal, and what of torch they are compared with, is this check's choice.
# name, op, case or args, rows of torch to compare with, goal: share of the copy rate, or of torch's matmul (None: no goal is set)
TIMED = [("rmsnorm 16384x4096", "rmsnorm", "bench", ["rmsnorm"], ("copy", 0.85)),
         ("fused_add_rmsnorm 16384x4096", "fused_add_rmsnorm", "bench", [], ("copy", 0.85)),
         ("silu_and_mul 16384x8192", "silu_and_mul", "bench", ["silu_and_mul"], ("copy", 0.85)),
         ("rope 8192x(32+8)x128", "apply_rope_pos_ids", "bench", [], ("copy", 0.85)),
         ("fp4_quantize 16384x4096", "fp4_quantize", "bench", [], ("copy", 0.85)),
         ("mxfp8_quantize 16384x4096", "mxfp8_quantize", "bench", [], ("copy", 0.85)),
         ("per_token_group_quant_8bit 16384x4096", "per_token_group_quant_8bit", "bench", [], ("copy", 0.85)),
         ("rmsnorm_quant 16384x4096", "rmsnorm_quant", "bench", [], ("copy", 0.85)),
         ("top_k 64x131072 k=2048", "top_k", "input=f32:64x131072 k=2048", [], None),
         ("append 8192x8x128", "append_paged_kv_cache", "bench", [], ("copy", 0.85)),
         ("decode bf16 32/8 D128 page 16 batch 64 kv 4k", "BatchDecodeWithPagedKVCacheWrapper.run", DECODE,
          ["decode_flash", "decode_cudnn"], ("copy", 0.85)),
         ("gdn decode f32 states 16/32 D128 batch 64", "gated_delta_rule_decode_pretranspose", GDN.format(state="f32"), [], ("copy", 0.85)),
         ("gdn decode bf16 states 16/32 D128 batch 64", "gated_delta_rule_decode_pretranspose", GDN.format(state="bf16"), [], ("copy", 0.85)),
         ("ssu decode bf16 states 128 x 64 x 128 batch 64", "selective_state_update", SSU, [], ("copy", 0.85)),
         ("gdn chunks 16/32 D128 2048 tokens", "chunk_gated_delta_rule", "bench", [], None),
         ("mm_bf16 8192^3 (cuBLASLt)", "mm_bf16", "a=bf16:8192x8192 b=bf16:8192x8192", ["matmul_8192"], None),
         ("softmax 256x131072", "softmax", "logits=f32:256x131072", ["softmax"], None),
         ("top_k_top_p 64x131072", "top_k_top_p_sampling_from_probs", "probs=f32:64x131072:uniform(0,1) top_k=40 top_p=0.9", [], None),
         ("prefill bf16 32/8 D128 causal 8k", "single_prefill_with_kv_cache", PREFILL, ["prefill_flash", "prefill_cudnn"],
          ("matmul", 0.40))]


# Seconds that a step may take, so that one that hangs leaves time for the others.
SHARES = {"device": 40, "probes": 100, "cases": 180, "timings": 200, "recordings": 90, "killed": 90, "sanitizer": 200}
LOG_BYTES = 8 << 20  # of gpu_check.log
PLACES = {"compute-sanitizer": ("/usr/local/cuda*/bin/compute-sanitizer", "/usr/local/cuda*/compute-sanitizer/compute-sanitizer",
                                "/opt/nvidia/*/*/compute-sanitizer", "/opt/nvidia/*/*/*/compute-sanitizer"),
          "nvcc": ("/usr/local/cuda*/bin/nvcc",)}


def find_tool(name):
    return shutil.which(name) or next((p for pattern in PLACES[name] for p in sorted(glob.glob(pattern)) if os.access(p, os.X_OK)), None)


class Check:
    def __init__(self, args):
        self.args, self.rows, self.start = args, [], time.monotonic()
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
        self.torch, self.ops, self.tree = {}, {}, None

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
        timeout = min(timeout, self.left() - 5)
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

    # ---- steps ----
    def build(self):
        if self.args.tree:
            self.tree = pathlib.Path(self.args.tree).resolve()
        elif (HERE / "bin" / "flashinfer").exists():  # a packed tree
            self.tree = HERE
        else:
            self.tree = HERE.parent / "build" / "gpu_check"
            jobs = os.cpu_count() or 1
            self.run("build", "configure", ["cmake", "-S", HERE.parent, "-B", self.tree, "-DCMAKE_BUILD_TYPE=Release", "-DBUILD_TESTING=OFF"], 60)
            self.run("build", "compile", ["cmake", "--build", self.tree, f"-j{jobs}", "--target", "flashinfer_cli", "bench_cuda_probe"], 300)
        self.env["LD_LIBRARY_PATH"] = f"{self.tree}/lib:" + self.env.get("LD_LIBRARY_PATH", "")

    def device(self):
        if self.emulated:
            return
        self.run("device", "driver, GPU, NVRTC", [self.tool("bench_cuda_probe"), "device"], 60, self.judge_json)
        for argv in (["nvidia-smi"], [find_tool("nvcc") or "nvcc", "--version"], ["c++", "--version"], ["sh", "-c", "env | sort | grep -E 'CUDA|PATH|VIRTUAL'"]):
            self.log(argv, *run_process(argv, 20, self.env))  # what the machine is

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
        status, output = run_process([str(self.tool("flashinfer")), "cases", "--list", "--device", self.args.device], 60, self.env)
        for op, case in re.findall(r"^(\S+) (\S+): ", output or "", re.MULTILINE):
            self.ops.setdefault(op, []).append(case)
        if status != 0 or not self.ops:
            self.add("cases", "list", "failed", tail(output))

    def cases(self):
        ops = self.sample(5) if self.emulated else self.sample(len(self.ops))

        def judge(status, output):
            counts = re.search(r"(\d+) passed, (\d+) failed(?:, (\d+) unsupported)?", output)
            if counts is None:
                return "failed", tail(output, status) or f"exit status {status}", {}
            passed, failed, unsupported = (int(n or 0) for n in counts.groups())
            text = f"{passed} passed, {failed} failed, {unsupported} unsupported" + (": " + tail(output) if failed else "")
            result = "failed" if failed or status else "ok" if passed else "skipped"
            return result, text, {"passed": passed, "failed": failed, "unsupported": unsupported}

        def one(op):
            narrow = ["--case", self.ops[op][0], "--seeds", "1"] if self.emulated else []
            self.run("cases", op, [self.tool("flashinfer"), "cases", op, "--device", self.args.device, *narrow], 120, judge)
        self.at_once(one, ops)

    def at_once(self, one, items):
        with concurrent.futures.ThreadPoolExecutor(self.args.jobs) as pool:
            list(pool.map(one, items))

    def sample(self, count):
        """At most `count` of the ops that --only names, spread over the list, in which families are together."""
        ops = [op for op in self.ops if re.search(self.args.only, op)]
        return ops[::max(1, len(ops) // max(1, count))][:count]

    def small(self):
        """The first row of a few ops: tables begin with a small one."""
        return [(op, self.ops[op][0]) for op in self.sample(2 if self.emulated else 9)]

    def probes(self):
        if self.emulated:
            return
        for name, text in (("graph", "decode step captured and replayed, also after another plan"),
                           ("graph_record", "recorded under capture, flushed after a replay, replayed on the CPU"), ("fault", "a fault is a sentence, the CPU goes on")):
            self.run(name, text, [self.tool("bench_cuda_probe"), name], 60, self.judge_json)
        if find_tool("nvcc"):
            env = dict(self.env, FLASHINFER_TOOLCHAIN="nvcc", FLASHINFER_WORKSPACE_BASE=str(self.work / "nvcc"))
            for op, case in self.small()[::7]:
                self.run("nvcc", f"{op} {case}", [self.tool("flashinfer"), "cases", op, "--case", case, "--device", self.args.device], 60,
                         lambda s, o: ("ok", "", {}) if s == 0 and re.search(r"^1 passed, 0 failed$", o, re.M) else ("failed", tail(o, s), {}), env)

    def recordings(self):
        def one(row):
            op, case = row
            for here, there in ((self.args.device, "cpu"), ("cpu", self.args.device)):
                folder = tempfile.mkdtemp(dir=self.work)
                env = dict(self.env, FLASHINFER_LOGLEVEL="10", FLASHINFER_LOGDEST=folder + ".log", FLASHINFER_DUMP_DIR=folder)
                name = f"{op} {case}: {here} -> {there}"
                command = [self.tool("flashinfer"), "cases", op, "--case", case, "--seeds", "0", "--device", here]
                self.run("record", name, command, 60, env=env, quiet=True)
                self.run("replay", name, [self.tool("flashinfer"), "replay", "--dir", folder, "--device", there, "--json"], 60)
                shutil.rmtree(folder, ignore_errors=True)
        self.at_once(one, self.small())

    def killed(self):
        """A process is killed while its kernel runs; what it recorded replays."""
        tokens, heads, kv_heads = (192, 1, 1) if self.emulated else (32768, 32, 2)  # long enough to be met in its kernel: 0.1 s on the emulator
        text = f"q=bf16:{tokens}x{heads}x128 k=bf16:{tokens}x{kv_heads}x128 v=bf16:{tokens}x{kv_heads}x128 causal=True"
        name = f"single_prefill of {tokens} tokens"
        for _ in range(10):  # a busy machine may come back to us after the kernel's end
            folder = pathlib.Path(tempfile.mkdtemp(dir=self.work))
            env = dict(self.env, FLASHINFER_LOGLEVEL="10", FLASHINFER_LOGDEST=f"{folder}.log", FLASHINFER_DUMP_DIR=str(folder))
            begin = time.monotonic()
            child = subprocess.Popen([str(self.tool("flashinfer")), "cases", "single_prefill_with_kv_cache", "--args", text, "--seeds", "0", "--candidate",
                                      "cuda", "--device", self.args.device], env=env, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
            session, log = folder / "session.jsonl", pathlib.Path(f"{folder}.log")
            # The arguments, with their statistics, are logged last before the launch.
            while child.poll() is None and time.monotonic() - begin < 90 and not (log.exists() and "Positional input" in log.read_text(errors="replace")):
                time.sleep(0.001)
            time.sleep(0.005)
            child.kill()
            child.wait()
            states = re.findall(r'"execution_status": "(\w+)"', session.read_text(errors="replace")) if session.exists() else []
            if states == ["inputs_saved"]:
                break
        if states != ["inputs_saved"]:
            return self.add("killed", name, "failed", f"the recording holds {states or 'nothing'} instead of one call without an end")
        self.run("killed", name, [self.tool("flashinfer"), "replay", "--dir", folder, "--device", self.args.device, "--run-incomplete",
                                 "--json"], 120, self.judge_incomplete)
        shutil.rmtree(folder, ignore_errors=True)

    @staticmethod
    def judge_incomplete(status, output):
        call = last_json(output)["calls"][0]
        ran = call["outcome"] == "never_completed" and call["message"].endswith("it runs to its end now") and call["seconds"] > 0
        return "ok" if ran else "failed", call["message"], {"seconds": call["seconds"]}

    def timings(self):
        if self.emulated:
            return self.run("counts", "rmsnorm", [self.tool("flashinfer"), "bench", "--op", "rmsnorm", "--device", "emu", "--counts", "--json",
                                                  "--args", "input=bf16:4x1024 weight=bf16:1024"], 30)
        for name in ("copy", "launch"):
            self.run("timing", name, [self.tool("bench_cuda_probe"), name], 60, self.judge_json)
        script = next((p for p in (HERE / "gpu_torch.py", HERE.parent / "bench" / "gpu_torch.py") if p.exists()), HERE / "gpu_torch.py")

        def judge_torch(status, output):
            self.torch = last_json(output) or {}
            wrong = self.torch.get("error", "")
            if "No module named 'torch'" in wrong:
                return "skipped", "torch is not installed", {}
            return ("ok" if status == 0 and self.torch else "failed"), wrong or (tail(output) if status else ""), self.torch
        self.run("timing", "torch", [sys.executable, script], 120, judge_torch, os.environ)  # its own libraries alone
        for name, op, what, torch_rows, goal in TIMED:
            if not re.search(self.args.only, op):
                continue
            which = ["--case", what] if what == "bench" else ["--args", what]
            self.run("timing", name, [self.tool("flashinfer"), "bench", "--op", op, *which, "--device", self.args.device, "--cold", "--seconds", "0.3",
                                      "--json"], 90, lambda s, o, t=torch_rows, g=goal: self.judge_timing(s, o, t, g))

    def judge_timing(self, status, output, torch_rows, goal):
        rows = last_json(output)
        if status != 0 or not rows:
            return "failed", tail(output, status) or f"exit status {status}", {}
        r = rows[0]
        data = {"us": r["median_s"] * 1e6, "gb_per_s": r["gb_per_s"], "tflop_per_s": r["gflop_per_s"] * 1e-3, "of_copy": r["share_of_copy"]}
        for t in torch_rows:
            if "seconds" in self.torch.get(t, {}):
                data[f"{t} / ours"] = self.torch[t]["seconds"] / r["median_s"]
        matmul = self.torch.get("matmul_8192", {}).get("tflop_per_s")
        if matmul:
            data["of_matmul"] = data["tflop_per_s"] / matmul
        share = data.get("of_" + goal[0]) if goal else None
        if goal:
            data["goal"] = "not measured" if share is None else ("met" if share >= goal[1] else "missed") + f": {share:.2f} of {goal[0]}, goal {goal[1]}"
        return "ok", ", ".join(f"{k} {v:.4g}" if isinstance(v, float) else f"{k} {v}" for k, v in data.items()), data

    def sanitizer(self):
        if self.emulated:
            return
        tool = find_tool("compute-sanitizer")
        if tool is None:
            return self.add("sanitizer", "compute-sanitizer", "skipped", "is not installed")

        def one(row):
            check, (op, case) = row
            self.run("sanitizer", f"{check} {op} {case}", [tool, "--tool", check, "--error-exitcode", "9", self.tool("flashinfer"), "cases", op,
                                                           "--case", case, "--device", self.args.device], 90)
        self.at_once(one, [(check, row) for check in ("memcheck", "racecheck") for row in self.small()])

    # ---- results ----
    def summary(self):
        count = {s: sum(r["status"] == s for r in self.rows) for s in ("ok", "failed", "skipped")}
        goals = [r["data"]["goal"] for r in self.rows if "goal" in r["data"]]
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


STEPS = ("build", "device", "probes", "cases", "timings", "recordings", "killed", "sanitizer")


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--device", default="cuda:0", help="cuda:N, or emu: the steps that the emulator supports")
    parser.add_argument("--tree", help="a build folder, or a tree made by --pack (default: next to this script, else it is built)")
    parser.add_argument("--out", default=os.environ.get("OUT", "gpu_check"), help="folder of gpu_check.json and gpu_check.md (default $OUT, else gpu_check)")
    parser.add_argument("--steps", default=",".join(STEPS), help="of " + ", ".join(STEPS))
    parser.add_argument("--only", default="", metavar="REGEX", help="ops of cases, timings, recordings and sanitizer whose names match")
    parser.add_argument("--jobs", type=int, default=max(1, min(8, os.cpu_count() or 1)), help="ops whose cases run at once")
    parser.add_argument("--budget", type=float, default=560, help="seconds for all of it; what does not fit is skipped (default 560)")
    parser.add_argument("--pack", metavar="DIR", help="copy what another machine needs from the build folder --tree to DIR, and end")
    args = parser.parse_args()
    if args.pack:
        return pack(args.tree or HERE.parent / "build" / "release", args.pack)
    unknown = set(args.steps.split(",")) - set(STEPS)
    if unknown:
        parser.error(f"--steps {', '.join(sorted(unknown))}: none of {', '.join(STEPS)}")
    check = Check(args)
    try:
        check.build()
        check.list_ops()
        for step in STEPS[1:]:
            if step in args.steps.split(","):
                check.step_end = time.monotonic() + SHARES[step] * args.budget / 560
                try:
                    getattr(check, step)()
                except Exception as error:  # the other steps still count
                    check.add(step, "the step itself", "failed", f"{type(error).__name__}: {error}")
        return check.end()
    finally:
        shutil.rmtree(check.work, ignore_errors=True)


if __name__ == "__main__":
    sys.exit(main())
