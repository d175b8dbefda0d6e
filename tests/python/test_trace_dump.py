# SPDX-License-Identifier: Apache-2.0
"""Files that calls and recordings write: definitions, data sets."""
import json
import pathlib
import subprocess
import sys

import pytest

from conftest import environment
from flashinfer import trace

CALLS = """
import sys, threading, torch, flashinfer
x = torch.randn(4, 64)
def work(d):
    flashinfer.rmsnorm(torch.randn(2, d), torch.ones(d))
threads = [threading.Thread(target=lambda: [work(16 * i) for i in range(1, 9)]) for _ in range(8)]
for t in threads: t.start()
for t in threads: t.join()
try: flashinfer.rmsnorm(x, torch.ones(63))
except Exception: pass
"""


@pytest.mark.parametrize("value, written", [("", False), ("0", False), ("1", True)])
def test_calls_write_definitions(tmp_path, value, written):
    variables = {"FLASHINFER_TRACE_DUMP_DIR": tmp_path / "out", "FLASHINFER_TRACE_DUMP": value}
    for p in [subprocess.Popen([sys.executable, "-c", CALLS], env=environment("ours", **variables)) for _ in range(1 + written)]:
        assert p.wait() == 0
    files = sorted(p.name for p in (tmp_path / "out").iterdir()) if written else []
    assert files == (sorted(f"rmsnorm_h{16 * i}.json" for i in range(1, 9)) if written else []) and (tmp_path / "out").exists() == written
    for f in files:
        assert json.loads((tmp_path / "out" / f).read_text())["name"] == f[:-5]


def test_the_variables_are_read_at_each_call(tmp_path):
    """Where FLASHINFER_TRACE_DUMP was set when the program began, if only to 0."""
    code = """
import os, sys, torch, flashinfer
def call(d, **variables):
    os.environ.update({f"FLASHINFER_TRACE_DUMP{k}": v for k, v in variables.items()})
    flashinfer.rmsnorm(torch.ones(2, d), torch.ones(d))
call(16)
call(48, **{"": "1"}), call(64, _DIR=sys.argv[1] + "/b", _STRICT="1"), call(80, **{"": "0"})
"""
    env = environment("ours", FLASHINFER_TRACE_DUMP="0", FLASHINFER_TRACE_DUMP_DIR=tmp_path / "a")
    subprocess.run([sys.executable, "-c", code, tmp_path], env=env, check=True)
    assert sorted(str(p.relative_to(tmp_path)) for p in tmp_path.rglob("*.json")) == ["a/rmsnorm_h48.json", "b/rmsnorm_h64.json"]
    assert "def run(" in json.loads((tmp_path / "b/rmsnorm_h64.json").read_text())["reference"]


def test_a_folder_that_cannot_be_written_warns_once(tmp_path):
    (tmp_path / "file").write_text("")
    code = ("import warnings, torch, flashinfer\nwith warnings.catch_warnings(record=True) as seen:\n    warnings.simplefilter('always')\n"
            "    for d in (16, 32): y = flashinfer.rmsnorm(torch.ones(2, d), torch.ones(d))\nassert y.shape == (2, 32)\nprint(*[w.message for w in seen], sep='\\n')")
    env = environment("ours", FLASHINFER_TRACE_DUMP="1", FLASHINFER_TRACE_DUMP_DIR=tmp_path / "file/below")
    out = subprocess.run([sys.executable, "-c", code], env=env, capture_output=True, text=True, check=True).stdout.splitlines()
    assert len(out) == 1 and out[0].startswith("rmsnorm: no trace definition is written: "), out


def test_workloads_of_a_recording(tmp_path):
    """A data set in flashinfer-bench's layout: valid definitions, workloads with all variable axes, index arrays as they were."""
    code = """
import torch, flashinfer
x, w = torch.randn(4, 64), torch.ones(64)
for rows in (4, 2, 4): flashinfer.rmsnorm(x[:rows].contiguous(), w)
flashinfer.rmsnorm(x.half(), w.half())
d = flashinfer.BatchDecodeWithPagedKVCacheWrapper(torch.empty(1 << 20, dtype=torch.uint8), "NHD")
d.plan(torch.tensor([0, 1, 3], dtype=torch.int32), torch.tensor([2, 0, 1], dtype=torch.int32), torch.tensor([4, 3], dtype=torch.int32), 4, 2, 64, 4,
       q_data_type=torch.float32, kv_data_type=torch.float32)
d.run(torch.randn(2, 4, 64), (torch.randn(3, 4, 2, 64), torch.randn(3, 4, 2, 64)))
"""
    env = environment("ours", FLASHINFER_LOGLEVEL=10, FLASHINFER_LOGDEST=tmp_path / "log", FLASHINFER_DUMP_DIR=tmp_path / "dumps")
    subprocess.run([sys.executable, "-c", code], env=env, check=True, capture_output=True)
    command = pathlib.Path(env["FLASHINFER_BUILD_DIR"]) / "bin/flashinfer"
    run = subprocess.run([command, "trace", "workloads", "--dir", tmp_path / "dumps", "--out", tmp_path / "set"], capture_output=True, text=True)
    assert run.returncode == 0 and "3 definitions and 4 workloads of 7 calls" in run.stdout, run.stdout + run.stderr
    definitions = {d["name"]: d for d in map(json.loads, (p.read_text() for p in (tmp_path / "set/definitions").rglob("*.json")))}
    assert all(trace.validate(d) == [] for d in definitions.values())
    lines = [json.loads(line) for p in (tmp_path / "set/workloads").rglob("*.jsonl") for line in p.read_text().splitlines()]
    assert len({line["workload"]["uuid"] for line in lines}) == len(lines) == 4
    for line in lines:
        definition = definitions[line["definition"]]
        assert line["workload"]["axes"].keys() == {a for a, e in definition["axes"].items() if e["type"] == "var"}
        assert line["workload"]["inputs"].keys() == definition["inputs"].keys() and line["solution"] is None and line["evaluation"] is None
    decode = next(line["workload"] for line in lines if "decode" in line["definition"])
    assert decode["axes"] == {"batch_size": 2, "num_pages": 3, "len_indptr": 3, "num_kv_indices": 3}
    from safetensors.torch import load_file

    entry = decode["inputs"]["kv_indices"]
    assert load_file(tmp_path / "set" / entry["path"])[entry["tensor_key"]].tolist() == [2, 0, 1]
    valid = subprocess.run([command, "trace", "validate", *(tmp_path / "set/definitions").rglob("*.json")], capture_output=True, text=True)
    assert valid.returncode == 0 and "3 of 3 valid" in valid.stdout
    wrong = tmp_path / "wrong.json"
    wrong.write_text("{}")
    assert subprocess.run([command, "trace", "validate", wrong], capture_output=True).returncode == 1
    listed = subprocess.run([command, "trace", "list"], capture_output=True, text=True).stdout
    assert "flashinfer.norm.rmsnorm  rmsnorm_h{hidden_size}\n" in listed


def test_traces_of_the_benchmark(tmp_path):
    """Lines of flashinfer-bench's data model: the row's call, its workload, the candidate beside the reference."""
    out = tmp_path / "traces.jsonl"
    command = pathlib.Path(environment("ours")["FLASHINFER_BUILD_DIR"]) / "bin/flashinfer"
    args = ["bench", "--op", "rmsnorm", "--args", "input=f32:4x256 weight=f32:256", "--seconds", "0.001", "--trace-out", out]
    for more in ([], ["--candidates", "reference"]):
        subprocess.run([command, *args, *more], check=True, capture_output=True)
    lines = [json.loads(line) for line in out.read_text().splitlines()]
    assert [line["solution"] for line in lines] == ["flashinfer-cpp_cpu", "flashinfer-cpp_reference"]
    for line in lines:
        assert list(line) == ["definition", "workload", "solution", "evaluation"] and line["definition"] == "rmsnorm_h256"
        assert line["workload"] == lines[0]["workload"] and line["workload"]["axes"] == {"batch_size": 4}
        assert line["workload"]["inputs"] == {"hidden_states": {"type": "random"}, "weight": {"type": "random"}}
        e = line["evaluation"]
        assert e["status"] == "PASSED" and e["log"] == "" and " " not in e["environment"]["hardware"] and "flashinfer-cpp" in e["environment"]["libs"]
        p = e["performance"]
        assert p["latency_ms"] > 0 and abs(p["speedup_factor"] - p["reference_latency_ms"] / p["latency_ms"]) < 1e-6 * p["speedup_factor"]
        assert e["correctness"]["max_relative_error"] < 1e-5
    assert lines[1]["evaluation"]["correctness"]["max_absolute_error"] == 0
    run = subprocess.run([command, "bench", "--op", "top_k", "--args", "input=f32:2x64 k=4", "--seconds", "0.001", "--trace-out", tmp_path / "no/folder"],
                         capture_output=True, text=True)
    assert run.returncode == 2 and "cannot be written" in run.stderr
