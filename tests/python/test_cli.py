# SPDX-License-Identifier: Apache-2.0
"""The click group: the program's own commands, texts and exit codes, without a process."""
import csv
import json
import os
import pathlib
import re
import shlex
import subprocess
import sys

import pytest
from click.testing import CliRunner

import flashinfer
from flashinfer.__main__ import cli
from conftest import ROOT

PROGRAM = pathlib.Path(os.environ["FLASHINFER_BUILD_DIR"]) / "bin/flashinfer"


def invoke(*args):
    return CliRunner().invoke(cli, args)


def program(*args):
    return subprocess.run([PROGRAM, *args], capture_output=True, text=True)


def test_the_commands_are_the_programs():
    names = set(re.findall(r"^  ([a-z][a-z-]+)  ", program("--help").stdout.split("Subcommands:")[1], re.M))
    assert {"replay", "report", "show-config", "collect-env", "list-modules", "module-status", "clear-cache", "export-compile-commands", "aot",
            "bench", "list-cache", "download-cubin", "list-cubins", "clear-cubin", "install-cubin-wheel", "install-jit-cache-wheel",
            "download-kernels", "generate-tactics-blocklist"} <= names
    assert set(cli.commands) == names


def test_the_options_are_the_programs():
    for name, command in cli.commands.items():
        own = program(name, "--help").stdout
        written = {o for line in re.findall(r"^  (-[^ ]*)", own, re.M) for o in line.split(",")} - {"-h", "--help"}
        assert {o for p in command.params if p.param_type_name == "option" for o in p.opts} == written, name
        for p in command.params:
            assert not getattr(p, "help", "") or p.help.split("  [default")[0] in " ".join(own.split()), (name, p)


@pytest.mark.parametrize("args", [["list-ops"], ["list-ops", "--markdown"], ["aot", "--list"], ["aot", "--list", "--op", "rmsnorm,top_k"],
                                  ["list-modules", "no-such-module"], ["module-status", "--filter", "aot"], ["export", "--dir=/no", "--out=/no2"],
                                  ["replay", "--dir", "/no/such/folder"], ["bench", "--op", "no_such_op"], ["--version"],
                                  ["cases", "rmsnorm", "--list"], ["--download-cubin"], ["download-cubin"], ["clear-cubin"], ["list-cubins"],
                                  ["install-jit-cache-wheel", "--mode", "minimal", "--sm", "sm90a", "--cuda-version", "12.9", "--dry-run"],
                                  ["install-jit-cache-wheel", "--sm", "sm90a"], ["install-cubin-wheel", "--nightly"],
                                  ["download-kernels", "--sm", "sm80", "--sm", "sm90a", "--dry-run"],
                                  ["generate-tactics-blocklist", "--device", "cpu"]])
def test_same_text_and_exit_code(args):
    expected = program(*args)
    result = invoke(*args)
    assert (result.exit_code, result.stdout, result.stderr) == (expected.returncode, expected.stdout, expected.stderr)


@pytest.mark.parametrize("args, code, text", [
    ([], 0, "Usage: "), (["--help"], 0, "Usage: "), (["no-such-command"], 2, "No such command 'no-such-command'"),
    (["replay"], 2, "Error: Missing option '--dir'."), (["bench"], 2, "Missing option '--op'"),
    (["replay", "--jobs", "many", "--dir", "/tmp"], 2, "'many' is not a valid integer"),
    (["module-status", "--filter", "some"], 2, "'some' is not one of 'all', 'aot'"), (["list-ops", "--no"], 2, "No such option"),
    (["replay", "--jobs", "0", "--dir", "/tmp"], 2, "Value 0 not in range 1 to"),
    (["cases", "rmsnorm", "--case", "wde"], 2, "--case: none of the cases to run is named 'wde'"),
    (["cases", "--case", "wde"], 2, "--case: none of the cases to run is named 'wde'"),
    (["replay", "--dir", "/no/such/folder"], 2, "❌ Directory not found: /no/such/folder\n")])
def test_usage(args, code, text):
    result = invoke(*args)
    assert result.exit_code == code
    assert text in result.output


def test_positional_and_option_name_the_same_file(tmp_path, monkeypatch):
    monkeypatch.setenv("FLASHINFER_WORKSPACE_BASE", str(tmp_path))
    for args in ([str(tmp_path / "a.json")], ["-o", str(tmp_path / "b.json")], ["--output", str(tmp_path / "c.json")]):
        done = subprocess.run([sys.executable, "-m", "flashinfer", "export-compile-commands", *args], capture_output=True, text=True)
        assert (done.returncode, done.stdout) == (0, "No modules found to export.\n")


def test_collect_env_has_the_sections_and_pythons_part(monkeypatch):
    monkeypatch.setenv("FLASHINFER_SOME_TOKEN", "do-not-show")
    text = invoke("collect-env").stdout
    assert text.startswith("### FlashInfer environment report\n<!--")
    titles = re.findall(r"^==== (.*) ====$", text, re.M)
    assert titles == ["FlashInfer", "Python / Platform", "GPU / Driver", "CUDA Toolkit", "PyTorch", "cuDNN Frontend",
                      "GPU Libraries: loaded vs on disk", "Relevant Packages", "Environment Variables", "GPU Topology"]
    assert "do-not-show" not in text
    report = json.loads(invoke("collect-env", "--json").stdout)
    assert list(report) == titles
    assert report["Python / Platform"]["executable"] == sys.executable
    assert report["FlashInfer"]["flashinfer"] == flashinfer.__version__ and report["FlashInfer"]["flashinfer commit"] == flashinfer.__git_commit__
    assert re.match(r"\d+\.\d+", report["PyTorch"]["version"])
    assert report["Environment Variables"]["FLASHINFER_SOME_TOKEN"] == "<redacted>"


def test_show_config_tells_of_torch():
    text = invoke("show-config").stdout
    for section in ("Version Info", "Torch Version Info", "Environment Variables", "Artifact Path", "Downloaded Cubins", "Module Status"):
        assert f"=== {section} ===\n" in text


def test_module_entry_point_and_closed_pipe():
    listed = program("list-ops").stdout
    done = subprocess.run([sys.executable, "-m", "flashinfer", "list-ops"], capture_output=True, text=True)
    assert (done.returncode, done.stdout, done.stderr) == (0, listed, "")
    line = subprocess.run(f"'{sys.executable}' -m flashinfer list-ops | head -1", shell=True, capture_output=True, text=True)
    assert line.stdout == listed.splitlines()[0] + "\n"
    assert "Traceback" not in line.stderr


def test_a_name_that_is_not_utf8_reaches_the_command():
    done = subprocess.run([sys.executable, "-m", "flashinfer", "replay", "--dir", b"/no/\xff"], capture_output=True)
    assert done.returncode == 2
    assert rb"Directory not found: /no/\xff" in done.stdout


def test_replay_escapes_what_a_recording_says(tmp_path):
    """Names, keys and messages of a hostile recording reach no terminal as control characters and add no lines of ours."""
    attack = "\x1b[2J\u009b31m\u202eevil\n[2] rmsnorm (x): ✅ Passed"
    shown = r"\x1b[2J\x9b31m\u202eevil\n[2] rmsnorm (x): ✅ Passed"
    folder = os.fsencode(tmp_path) + b"/20260101_000000_000_pid1_x\x1b[1m\xff_call0001"
    os.mkdir(folder)
    record = {"function_name": attack, "execution_status": "inputs_saved", "call_sequence": 1}
    with open(folder + b"/metadata.jsonl", "w") as f:
        f.write(json.dumps(record) + "\n")
    with open(tmp_path / "session.jsonl", "w") as f:
        f.write(json.dumps({"function_name": attack, "dump_dir": "gone"}) + "\n")
    done = subprocess.run([PROGRAM, "replay", "--dir", tmp_path, "--run-incomplete"], capture_output=True)
    text = done.stdout.decode()  # strict: all of it is UTF-8
    assert not set(text) & set(map(chr, [*range(10), *range(11, 32), *range(127, 160), 0x202E]))
    assert len([line for line in text.splitlines() if line.startswith("[")]) == 1
    assert f"[1] {shown} (20260101_000000_000_pid1_x\\x1b[1m\\xff_call0001): ⚠️  Unknown: " in text
    assert text.count("note: ") == 1
    result = invoke("replay", "--dir", str(tmp_path), "--run-incomplete")
    assert (result.exit_code, result.stdout) == (done.returncode, text)
    report = json.loads(invoke("replay", "--dir", str(tmp_path), "--json").stdout)
    assert report["calls"][0]["function_name"] == attack  # JSON escapes by itself


def test_precompiling_for_gpus_needs_one_or_the_list(tmp_path):
    env = {k: v for k, v in os.environ.items() if k != "FLASHINFER_CUDA_ARCH_LIST"} | {"FLASHINFER_LIBCUDA": "/no/libcuda.so"}
    done = subprocess.run([PROGRAM, "aot", "--cuda", "--list"], capture_output=True, text=True, env=env)
    assert done.returncode == 2 and "FLASHINFER_CUDA_ARCH_LIST is not set, and there is no GPU to compile for" in done.stderr
    done = subprocess.run([PROGRAM, "aot", "--cuda", "--list", "--op", "rmsnorm", "--targets", "native"], capture_output=True, text=True,
                          env=env | {"FLASHINFER_CUDA_ARCH_LIST": "9.0a"})
    assert done.returncode == 0 and "aligned=" in done.stdout  # a member of the CUDA kernels' Config alone


def test_bench_of_a_list(tmp_path):
    """Candidates side by side, a file of commands in which two are wrong, CSV with the command of each row."""
    (tmp_path / "list").write_text("# rows\n\n--op rmsnorm --args 'input=f32:2x64 weight=f32:64' --candidates cpu,reference --refcheck --seconds 0\n"
                                   "--op no_such_op\n--op rmsnorm --no-such-flag\n")
    done = program("bench", "--testlist", str(tmp_path / "list"), "--csv", str(tmp_path / "out.csv"))
    assert done.returncode == 1 and done.stderr.count("[ERROR]") == 2 and "there is no op named 'no_such_op'" in done.stderr
    with open(tmp_path / "out.csv", newline="") as f:
        first, second = csv.DictReader(f)
    assert [first["candidate"], second["candidate"], first["check"]] == ["cpu", "reference", "ok"]
    assert float(first["over_first"]) == 0 and float(second["over_first"]) == pytest.approx(float(first["median_s"]) / float(second["median_s"]))
    assert first["repro_command"] == 'flashinfer bench --op rmsnorm --candidates cpu --args "input=f32:2x64 weight=f32:64"'
    wrong = program("bench", "--op", "rmsnorm", "--candidates", "nothing", "--seconds", "0")
    assert wrong.returncode == 2 and "only 'nothing' is requested" in wrong.stderr


def bench_rows(tmp_path, *args, status=0):
    done = program("bench", *args, "--seconds", "0", "--csv", str(tmp_path / "out.csv"))
    assert done.returncode == status, done.stdout + done.stderr
    with open(tmp_path / "out.csv", newline="") as f:
        return list(csv.DictReader(f)), done


def answering(tmp_path, *answers):
    """An interpreter whose libraries answer so, in place of Python's."""
    path = tmp_path / "interpreter"
    path.write_text("#!/bin/sh\necho ready\nwhile read what rest; do case $what in " +
                    " ".join(f"{what}) echo {text};;" for what, text in zip(("row", "run"), answers)) + " esac; done\n")
    path.chmod(0o755)
    return str(path)


NORM_ARGS = "input=f32:64x1024 weight=f32:1024"


def test_bench_in_turns(tmp_path):
    """Other libraries, another number of threads and reads, each a column."""
    (row,), done = bench_rows(tmp_path, "--op", "rmsnorm", "--args", NORM_ARGS, "--threads", "1", "--over-threads", "2", "--read", "--rotate", "1",
                              "--peers", "torch,llama.cpp", "--python", answering(tmp_path, "ready", "0.25"))
    assert float(row["torch_s"]) == float(row["llama.cpp_s"]) == 0.25 and float(row["torch_ratio"]) > 100
    assert row["onednn_s"] == row["zentorch_ratio"] == "" and row["threads"] == "1"
    assert row["over"] == "2 threads" and float(row["over_s"]) > 0 and float(row["over_ratio"]) > 0
    assert float(row["read_gb_per_s"]) > 0 and float(row["share_of_read"]) > 0
    assert row["repro_command"] == f'flashinfer bench --op rmsnorm --threads 1 --read --rotate 1 --over-threads 2 --args "{NORM_ARGS}"'
    assert "torch 250000 us, " in done.stdout and "2 threads " in done.stdout


@pytest.mark.parametrize("answers", [("error no such type", "1"), None])
def test_bench_without_a_peer(tmp_path, answers):
    """An error of the library, and no interpreter: an empty column."""
    python = answering(tmp_path, *answers) if answers else "/no/such/python"
    (row,), _ = bench_rows(tmp_path, "--op", "rmsnorm", "--args", NORM_ARGS, "--peers", "all", "--python", python)
    assert float(row["median_s"]) > 0 and row["torch_s"] == row["ik_llama.cpp_ratio"] == row["over"] == ""


def test_bench_against_wrong_rows(tmp_path):
    rows, done = bench_rows(tmp_path, "--op", "rmsnorm", "--args", NORM_ARGS, "--peers", "torch", "--python",
                            answering(tmp_path, "ready", "soon"), status=2)
    assert rows == [] and "torch answered 'soon' in place of a time" in done.stderr
    for more, text in ((("--peers", "numpy"), "there is no peer 'numpy', but torch, onednn"), (("--over-op", "nothing"), "no op named 'nothing'"),
                       (("--device", "emu", "--counts", "--read"), "--read, --rotate, --over and --peers are for the CPU")):
        assert text in bench_rows(tmp_path, "--op", "rmsnorm", "--args", NORM_ARGS, *more, status=2)[1].stderr


def test_rows_of_a_list_over_one_another(tmp_path):
    (tmp_path / "list").write_text(f"--op rmsnorm --args '{NORM_ARGS}' --over short --goal 'over_ratio>=0.5'\n"
                                   "--op rmsnorm --args 'input=f32:2x64 weight=f32:64' --label short\n--op rmsnorm --args 'x' --over nothing\n")
    rows, done = bench_rows(tmp_path, "--testlist", str(tmp_path / "list"), status=1)
    assert [(r["case"], r["over"], r["goal"]) for r in rows] == [("given", "short", "over_ratio>=0.5"), ("short", "", "")]
    assert float(rows[0]["over_s"]) < float(rows[0]["median_s"]) and float(rows[0]["over_ratio"]) < 1
    assert "no line has --args and the label 'nothing'" in done.stderr


def test_files_of_bench_name_rows_that_exist(tmp_path):
    """Rows of case tables, other lines of the list, and columns of the results."""
    program("bench", "--testlist", os.devnull, "--csv", str(tmp_path / "out.csv"))
    rows, columns = {}, (tmp_path / "out.csv").read_text().rstrip("\n").split(",")
    lists = {path: [shlex.split(line, comments=True) for line in path.read_text().splitlines()] for path in (ROOT / "bench").glob("*.txt")}
    assert len(lists) == 5
    for path, lines in lists.items():
        labels = [words[words.index("--label") + 1] for words in lines if "--label" in words]
        assert len(labels) == len(set(labels)), path
        for words in lines:
            assert "--over" not in words or words[words.index("--over") + 1] in labels, words
            assert "--goal" not in words or re.fullmatch(r"(\w+)[<>]=[\d.]+", words[words.index("--goal") + 1])[1] in columns, words
    for line in (ROOT / "bench/bandwidth.txt").read_text().splitlines():
        words = shlex.split(line, comments=True)
        if "--case" in words:
            op = words[words.index("--op") + 1]
            rows.setdefault(op, program("cases", op, "--list").stdout)
            assert f"{op} {words[words.index('--case') + 1]}: " in rows[op], line
    assert len(rows) > 10


def test_the_blocklist_of_a_gpu_leaves_nothing_out(tmp_path):
    driver = PROGRAM.parents[1] / "lib/fake_libcuda.so"
    if not driver.exists():
        pytest.skip(f"{driver} is not there: it is built with the tests")
    path = tmp_path / "folder/blocked.json"
    path.parent.mkdir()
    run = lambda *args, **env: subprocess.run([PROGRAM, "generate-tactics-blocklist", *args], capture_output=True, text=True, cwd=tmp_path,  # noqa: E731
                                              env={**os.environ, "FLASHINFER_LIBCUDA": str(driver), **env})
    done = run("-o", str(path), "--quant-modes", "Fp8-Block", "--quant-modes", "BF16-CUTLASS", "--num-tokens", "8", "--top-k", "2")
    assert done.returncode == 0, done.stderr
    written = json.loads(path.read_text())
    assert written["invalid_tactics"] == {} and written["_metadata"]["gpu"] in done.stdout
    assert run("--device", "cuda:0").returncode == 0 and len(list(tmp_path.glob("tactics_*.json"))) == 1
    blocklist = flashinfer.tactics_blocklist.TacticsBlocklist()
    written["_metadata"]["gpu"] = "*"
    path.write_text(json.dumps(written))
    assert blocklist.load(str(path)) and blocklist.filter("op", object(), [1, 2]) == [1, 2]
    for args, env, text in ((["--device", "cuda:77"], {}, "cuda:77 cannot be used"), (["--device", "gpu"], {}, "--device is gpu, but must be cuda:N"),
                            ([], {"FLASHINFER_LIBCUDA": "/no/libcuda.so"}, "cuda:0 cannot be used")):
        failed = run(*args, **env)
        assert failed.returncode != 0 and text in failed.stdout + failed.stderr, failed
