# SPDX-License-Identifier: Apache-2.0
"""The steps of gpu_check.py that check: facts of the GPU, case tables, graphs, recordings, sanitizers."""
import pathlib
import re
import shutil
import subprocess
import tempfile
import time

from gpu_check_lib import find_tool, last_json, run_process, tail


def device(check):
    if check.emulated:
        return
    check.run("device", "driver, GPU, NVRTC", [check.tool("bench_cuda_probe"), "device"], 60, check.judge_json)
    for argv in (["nvidia-smi"], [find_tool("nvcc") or "nvcc", "--version"], ["c++", "--version"], ["sh", "-c", "env | sort | grep -E 'CUDA|PATH|VIRTUAL'"]):
        check.log(argv, *run_process(argv, 20, check.env))  # what the machine is


def facts(check):
    """Layouts, conversions, special functions, sums and residency: what kernels and the emulator assume."""
    def judge(status, output):
        rows = last_json(output) or []
        wrong = [", ".join(f"{k} {v}" for k, v in row.items() if k != "ok") for row in rows if not row["ok"]]
        data = {row["fact"]: {k: v for k, v in row.items() if k != "fact"} for row in rows}
        if status == 0 and rows and not wrong:
            return "ok", f"{len(rows)} facts", data
        return "failed", "; ".join(wrong) or tail(output, status) or f"exit status {status}", data
    check.run("facts", "as kernels and emulator assume", [check.tool("bench_gpu_facts"), check.args.device], 120, judge)


def cases(check):
    ops = check.sample(5) if check.emulated else check.sample(len(check.ops))

    def judge(status, output):
        counts = re.search(r"(\d+) passed, (\d+) failed(?:, (\d+) unsupported)?", output)
        if counts is None:
            return "failed", tail(output, status) or f"exit status {status}", {}
        passed, failed, unsupported = (int(n or 0) for n in counts.groups())
        text = f"{passed} passed, {failed} failed, {unsupported} unsupported" + (": " + tail(output) if failed else "")
        result = "failed" if failed or status else "ok" if passed else "skipped"
        return result, text, {"passed": passed, "failed": failed, "unsupported": unsupported}

    def one(op):
        narrow = ["--case", check.ops[op][0], "--seeds", "1"] if check.emulated else []
        check.run("cases", op, [check.tool("flashinfer"), "cases", op, "--device", check.args.device, *narrow], 120, judge)
    check.at_once(one, ops)


def small(check):
    """The first row of a few ops: tables begin with a small one."""
    return [(op, check.ops[op][0]) for op in check.sample(2 if check.emulated else 9)]


def probes(check):
    if check.emulated:
        return
    for name, text in (("graph", "decode step captured and replayed, also after another plan"),
                       ("graph_record", "recorded under capture, flushed after a replay, replayed on the CPU"), ("fault", "a fault is a sentence, the CPU goes on")):
        check.run(name, text, [check.tool("bench_cuda_probe"), name], 60, check.judge_json)
    if find_tool("nvcc"):
        env = dict(check.env, FLASHINFER_TOOLCHAIN="nvcc", FLASHINFER_WORKSPACE_BASE=str(check.work / "nvcc"))
        for op, case in small(check)[::7]:
            check.run("nvcc", f"{op} {case}", [check.tool("flashinfer"), "cases", op, "--case", case, "--device", check.args.device], 60,
                     lambda s, o: ("ok", "", {}) if s == 0 and re.search(r"^1 passed, 0 failed$", o, re.M) else ("failed", tail(o, s), {}), env)


def sanitizer(check):
    if check.emulated:
        return
    tool = find_tool("compute-sanitizer")
    if tool is None:
        return check.add("sanitizer", "compute-sanitizer", "skipped", "is not installed")

    def one(row):
        kind, (op, case) = row
        check.run("sanitizer", f"{kind} {op} {case}", [tool, "--tool", kind, "--error-exitcode", "9", check.tool("flashinfer"), "cases", op,
                                                       "--case", case, "--device", check.args.device], 90)
    check.at_once(one, [(kind, row) for kind in ("memcheck", "racecheck", "synccheck", "initcheck") for row in small(check)])


def recordings(check):
    def one(row):
        op, case = row
        for here, there in ((check.args.device, "cpu"), ("cpu", check.args.device)):
            folder = tempfile.mkdtemp(dir=check.work)
            env = dict(check.env, FLASHINFER_LOGLEVEL="10", FLASHINFER_LOGDEST=folder + ".log", FLASHINFER_DUMP_DIR=folder)
            name = f"{op} {case}: {here} -> {there}"
            command = [check.tool("flashinfer"), "cases", op, "--case", case, "--seeds", "0", "--device", here]
            check.run("record", name, command, 60, env=env, quiet=True)
            check.run("replay", name, [check.tool("flashinfer"), "replay", "--dir", folder, "--device", there, "--json"], 60)
            shutil.rmtree(folder, ignore_errors=True)
    check.at_once(one, small(check))


def killed(check):
    """A process is killed while its kernel runs; what it recorded replays."""
    first, heads, kv_heads = (192, 1, 1) if check.emulated else (32768, 32, 2)  # long enough to be met in its kernel: 0.1 s on the emulator
    for attempt in range(10):  # a busy machine may come back to us after the kernel's end, which twice the tokens put off four times
        tokens = first << attempt // 3
        text = f"q=bf16:{tokens}x{heads}x128 k=bf16:{tokens}x{kv_heads}x128 v=bf16:{tokens}x{kv_heads}x128 causal=True"
        name = f"single_prefill of {tokens} tokens"
        folder = pathlib.Path(tempfile.mkdtemp(dir=check.work))
        env = dict(check.env, FLASHINFER_LOGLEVEL="10", FLASHINFER_LOGDEST=f"{folder}.log", FLASHINFER_DUMP_DIR=str(folder))
        begin = time.monotonic()
        child = subprocess.Popen([str(check.tool("flashinfer")), "cases", "single_prefill_with_kv_cache", "--args", text, "--seeds", "0", "--candidate",
                                  "cuda", "--device", check.args.device], env=env, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        session, log = folder / "session.jsonl", pathlib.Path(f"{folder}.log")
        # The arguments, with their statistics, are logged last before the launch.
        while child.poll() is None and time.monotonic() - begin < 90 * check.pace and not (log.exists() and "Positional input" in log.read_text(errors="replace")):
            time.sleep(0.001)
        time.sleep(0.005)
        child.kill()
        child.wait()
        states = re.findall(r'"execution_status": "(\w+)"', session.read_text(errors="replace")) if session.exists() else []
        if states == ["inputs_saved"]:
            break
    if states != ["inputs_saved"]:
        return check.add("killed", name, "failed", f"the recording holds {states or 'nothing'} instead of one call without an end")
    check.run("killed", name, [check.tool("flashinfer"), "replay", "--dir", folder, "--device", check.args.device, "--run-incomplete",
                             "--json"], 120, judge_incomplete)
    shutil.rmtree(folder, ignore_errors=True)


def judge_incomplete(status, output):
    call = last_json(output)["calls"][0]
    ran = call["outcome"] == "never_completed" and call["message"].endswith("it runs to its end now") and call["seconds"] > 0
    return "ok" if ran else "failed", call["message"], {"seconds": call["seconds"]}
