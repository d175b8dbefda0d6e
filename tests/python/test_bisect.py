# SPDX-License-Identifier: Apache-2.0
"""`flashinfer bisect`: planted differences between two builds and two candidates; and the line of progress, on a terminal and in a pipe."""
import json
import os
import pathlib
import pty
import re
import signal
import subprocess
import sys
import time

import pytest

from conftest import environment

BUILD = pathlib.Path(os.environ["FLASHINFER_BUILD_DIR"]).resolve()
PROGRAM = BUILD / "bin/flashinfer"
RECORD = """
import torch, flashinfer
torch.manual_seed(1)
x, w = torch.randn(3, 64), torch.rand(64)
for i in range(5): flashinfer.rmsnorm(x + i, w)
flashinfer.silu_and_mul(x)
y = x.clone()
flashinfer.fused_add_rmsnorm(y, x.clone(), w)
d = flashinfer.BatchDecodeWithPagedKVCacheWrapper(torch.empty(1 << 20, dtype=torch.uint8), "NHD")
d.plan(torch.tensor([0, 1, 3], dtype=torch.int32), torch.tensor([2, 0, 1], dtype=torch.int32), torch.tensor([4, 3], dtype=torch.int32), 4, 2, 64, 4,
       q_data_type=torch.float32, kv_data_type=torch.float32)
d.run(torch.randn(2, 4, 64), (torch.randn(3, 4, 2, 64), torch.randn(3, 4, 2, 64)))
flashinfer.rmsnorm(x, w)
"""
# A build that changes what it saved of one op's calls: a bit of the results, the record, or when it ends.
BAD = """#!{python}
import json, pathlib, subprocess, sys, time, zipfile
mode, op, arguments = {mode!r}, {op!r}, sys.argv[1:]
if mode == "slow" and "--save" in arguments: time.sleep(2.7)
code = subprocess.run([{program!r}, *arguments]).returncode
for folder in sorted(pathlib.Path(arguments[arguments.index("--save") + 1]).iterdir()) if "--save" in arguments else ():
    record = json.loads((folder / "metadata.jsonl").read_text())
    if record["function_name"] != op: continue
    if mode == "bit":
        with zipfile.ZipFile(folder / "outputs.pt") as f: files = {{n: f.read(n) for n in f.namelist()}}
        name = next(n for n in files if n.endswith("data/0"))
        files[name] = bytes([files[name][0] ^ 1]) + files[name][1:]
        with zipfile.ZipFile(folder / "outputs.pt", "w") as f:
            for n, data in files.items(): f.writestr(n, data)
    if mode == "missing": record |= {{"execution_status": "not_run", "error": {{"type": "unknown_op", "message": "no op of this name"}}}}
    if mode == "crash": record["execution_status"] = "inputs_saved"
    if mode == "raise": record |= {{"execution_status": "failed", "error": {{"type": "ValueError", "message": "planted"}}}}
    (folder / "metadata.jsonl").write_text(json.dumps(record))
    if mode == "crash": sys.exit(139)
sys.exit(code)
"""


@pytest.fixture(scope="module")
def recording(tmp_path_factory):
    folder = tmp_path_factory.mktemp("recorded")
    env = environment("ours", FLASHINFER_LOGLEVEL=10, FLASHINFER_LOGDEST=folder / "log", FLASHINFER_DUMP_DIR=folder / "dumps", FLASHINFER_DUMP_DEDUP=1)
    subprocess.run([sys.executable, "-c", RECORD], env=env, check=True, capture_output=True)
    return folder / "dumps"


@pytest.fixture
def bad(tmp_path):
    def make(mode, op=""):
        script = tmp_path / f"bad-{mode}"
        script.write_text(BAD.format(python=sys.executable, program=str(PROGRAM), mode=mode, op=op))
        script.chmod(0o755)
        return script
    return make


def bisect(folder, *args, cwd=None):
    return subprocess.run([PROGRAM, "bisect", "--dir", folder, *args], capture_output=True, text=True, cwd=cwd)


def test_a_build_that_differs_in_one_op(recording, bad, tmp_path):
    out = tmp_path / "one"
    done = bisect(recording, "--good", BUILD, "--bad", bad("bit", "silu_and_mul"), "--bitwise", "--out", out)
    assert done.returncode == 1, done.stdout + done.stderr
    assert re.search(r"^First difference: \[6\] silu_and_mul \(.*_silu_and_mul_call0001\), after 5 equal calls\n  result differs in 1 of 96 elements", done.stdout), done.stdout
    assert "version" in done.stderr and str(BUILD / "bin/flashinfer") in done.stderr
    assert (out / "inputs.pt").exists() and not (out / "chunks").exists()  # plain files, one call
    again = subprocess.run([PROGRAM, "replay", "--dir", out], capture_output=True, text=True)
    assert again.returncode == 0 and "✅ Replay passed" in again.stdout
    assert bisect(recording, "--bad", bad("bit", "silu_and_mul")).returncode == 0  # within the tolerance
    report = json.loads(bisect(recording, "--bad", bad("bit", "rmsnorm"), "--bitwise", "--filter", "*norm", "--json", cwd=tmp_path).stdout)
    assert (report["calls"], report["first"]["index"], report["first"]["function_name"]) == (7, 1, "rmsnorm")
    assert (tmp_path / report["first"]["reproducer"] / "metadata.jsonl").exists()  # bisect-<the call's folder>


def test_two_candidates(recording, tmp_path):
    sides = ("--good-candidate", "reference", "--bad-candidate", "cpu")
    done = bisect(recording, *sides, "--bitwise", "--out", tmp_path / "one")
    assert done.returncode == 1 and "First difference: [" in done.stdout and (tmp_path / "one/metadata.jsonl").exists()
    done = bisect(recording, *sides)
    assert done.returncode == 0 and "calls compared, all equal" in done.stdout, done.stdout + done.stderr
    done = bisect(recording, "--bad-candidate", "warp")
    assert done.returncode == 2 and "no recorded op has a candidate named warp; there are cpu, " in done.stderr


@pytest.mark.parametrize("mode, code, text", [
    ("missing", 2, "Not compared (1 call): silu_and_mul: bad: no op of this name\n10 of 11 calls compared, all equal"),
    ("raise", 1, "[6] silu_and_mul"), ("raise", 1, "the bad one raises ValueError: planted, but the good one returns"),
    ("crash", 1, "the bad one ends its process by signal 11, but the good one returns")])
def test_a_build_that_lacks_or_fails_in_an_op(recording, bad, tmp_path, mode, code, text):
    done = bisect(recording, "--good", PROGRAM, "--bad", bad(mode, "silu_and_mul"), "--out", tmp_path / "one")
    assert done.returncode == code and text in done.stdout, done.stdout + done.stderr


def test_calls_that_end_both_processes_are_passed_over(recording, bad):
    script = bad("crash", "silu_and_mul")
    other = script.with_name("other")
    other.write_text(script.read_text())
    other.chmod(0o755)
    done = bisect(recording, "--good", script, "--bad", other)
    assert done.returncode == 0 and "silu_and_mul: the call ends both processes\n10 of 11 calls compared, all equal" in done.stdout, done.stdout + done.stderr


def test_what_is_no_build(recording, tmp_path):
    def message(*args):
        done = bisect(recording, *args)
        assert done.returncode == 2 and not done.stdout
        return done.stderr

    (tmp_path / "empty").mkdir()
    old = tmp_path / "old"
    old.write_text("#!/bin/sh\necho 0.0.1\n")
    old.chmod(0o755)
    assert "bisect compares two: name --good and --bad" in message()
    assert f"--bad {tmp_path}/none is neither a folder nor a file" in message("--bad", tmp_path / "none")
    assert f"--bad {tmp_path}/empty has no flashinfer command (looked for {tmp_path}/empty/bin/flashinfer, " in message("--bad", tmp_path / "empty")
    assert "(version 0.0.1) has no `replay --save`" in message("--bad", old)
    assert "--version` fails (exit code 1)" in message("--bad", "/bin/false")
    assert f"are the same build: {PROGRAM}" in message("--good", BUILD, "--bad", BUILD / "lib/libflashinfer.so")
    assert "exists" in message("--good-candidate", "cpu", "--bad-candidate", "reference", "--out", tmp_path / "empty")


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_leaves_nothing_behind(recording, bad, tmp_path, number):
    scratch = tmp_path / "scratch"
    scratch.mkdir()
    process = subprocess.Popen([PROGRAM, "bisect", "--dir", recording, "--bad", bad("slow")], env=os.environ | {"TMPDIR": str(scratch)}, text=True,
                               stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    while not list(scratch.glob("*/good/*")) and process.poll() is None:
        time.sleep(0.02)
    time.sleep(0.3)  # the bad build's process has begun
    process.send_signal(number)
    out, err = process.communicate(timeout=60)
    assert process.returncode == 128 + number and out == "" and err.endswith(f"flashinfer bisect: stopped by signal {int(number)}\n"), out + err
    assert not list(scratch.iterdir())


def screen(text):
    """The lines that a terminal shows: a line is taken away by a carriage return and `erase to the end`."""
    return [re.sub(r"^.*\r\x1b\[K", "", line) for line in text.replace("\r\n", "\n").split("\n")]


def on_a_terminal(args, **variables):
    """What the command writes to a pseudo terminal that is its stdout and stderr."""
    master, slave = pty.openpty()
    process = subprocess.Popen(list(map(str, args)), stdout=slave, stderr=slave, env=os.environ | {"TERM": "xterm"} | variables)
    os.close(slave)
    text = b""
    try:
        while part := os.read(master, 4096):
            text += part
    except OSError:  # the last writer has closed it
        pass
    os.close(master)
    process.wait()
    return text.decode()


def test_progress(recording, bad):
    """A line of progress after two seconds on a terminal, gone at the end and never on a line of output; none in pipes or on a dumb terminal."""
    args = [PROGRAM, "bisect", "--dir", recording, "--bad", bad("slow"), "--filter", "silu*"]
    piped = subprocess.run(args, capture_output=True, text=True, env=os.environ | {"TERM": "xterm"})
    assert piped.returncode == 0 and "\r" not in piped.stdout + piped.stderr and "bisect " not in piped.stderr
    shown = on_a_terminal(args)
    assert re.search(r"\r\x1b\[Kbisect 0:02", shown), shown
    assert screen(shown) == (piped.stderr + piped.stdout).split("\n")
    dumb = on_a_terminal(args, TERM="dumb")
    assert "\r\x1b" not in dumb and screen(dumb) == screen(shown)
