# SPDX-License-Identifier: Apache-2.0
"""benchmarks/flashinfer_benchmark.py: every routine, the flow of lists, the CSV file, what the reference check finds."""
import csv
import functools
import hashlib
import json
import os
import pathlib
import re
import shlex
import subprocess
import sys
import uuid

import pytest
import torch

import flashinfer
from flashinfer import api_logging
from conftest import ROOT

sys.path.insert(0, str(ROOT / "benchmarks"))
import flashinfer_benchmark as driver  # noqa: E402
from routines import case, columns, flags, ranks  # noqa: E402

NORM = "--routine rmsnorm --batch_size 4 --hidden_size 64 -n 1 -d 0"
# Of the file of FlashInfer's tool: 128 names, some of them repeated.
HEADER_SHA256 = "b2b9f0b9a07c8d14be4fd2385c0c8f63b92e88712019227dd188acc6dee71806"
# Commands of FlashInfer's documentation.
DOCUMENTED = [
    "--routine BatchDecodeWithPagedKVCacheWrapper --backends fa2 cudnn --batch_size 32 --s_kv 4096 --num_qo_heads 32 --num_kv_heads 8 "
    "--head_dim_qk 128 --head_dim_vo 128 --page_size 16 --refcheck -vv --generate_repro_command",
    "--routine mm_fp4 --m 4 --n 1024 --k 7168 --out_dtype bfloat16 --backends cudnn cutlass trtllm --use_128x4_sf_layout --use_nvfp4 "
    "--refcheck -vv --generate_repro_command --use_cupti --no_cuda_graph --num_iters 5",
    "--routine b12x_fused_moe --num_tokens 1 --hidden_size 1024 --intermediate_size 2688 --num_experts 512 --top_k 22 --activation-type Relu2",
]


@pytest.fixture(autouse=True)
def no_flush(monkeypatch):
    """What is tested is not the times: each would write twice the last-level cache."""
    from flashinfer.testing import _clock

    monkeypatch.setattr(_clock, "Evict", lambda: lambda: None)


def rows(path):
    with open(path, newline="") as f:
        header, *lines = csv.reader(f)
    return [dict(zip(reversed(header), reversed(line))) for line in lines]  # the first of repeated names


def run_list(tmp_path, text, *more):
    (tmp_path / "list").write_text(text)
    out = tmp_path / "out.csv"
    return driver.main(["--testlist", str(tmp_path / "list"), "--output_path", str(out), *more]), out


def run_quickly(tmp_path, lines):
    """One call of each command, in a process without the JIT: kernels that are not there yet would take a second or more each, so the
    reference computes. (the process, its CSV file)."""
    (tmp_path / "list").write_text("\n".join(line + " --warm_cache -n 1" + ("" if " -d " in line else " -d 0") for line in lines))
    out = tmp_path / "out.csv"
    done = subprocess.run([sys.executable, str(ROOT / "benchmarks/flashinfer_benchmark.py"), "--testlist", str(tmp_path / "list"),
                           "--output_path", str(out)], env={**os.environ, "FLASHINFER_DISABLE_JIT": "1"}, capture_output=True, text=True)
    return done, out


def test_the_sample_commands(tmp_path):
    """Those of FlashInfer's sample list, with small sizes: a row for each command and back end."""
    lines = (ROOT / "tests/data/sample_commands.txt").read_text().splitlines()
    assert len(lines) == 139
    full = [line + f" -vv --generate_repro_command --case_tag 'line {i}'" + (" -d 1" if "--autotune" in line else "") for i, line in enumerate(lines)]
    done, out = run_quickly(tmp_path, full)
    assert done.returncode == 0 and "[ERROR]" not in done.stdout, done.stdout
    assert done.stdout.count("the same mixture of NVFP4 experts is run by cutlass_fused_moe.") == 4
    assert hashlib.sha256(out.read_bytes().partition(b"\n")[0] + b"\n").hexdigest() == HEADER_SHA256
    got = rows(out)
    for i, line in enumerate(lines):
        args = driver.parse_args(shlex.split(line))
        mine = [r for r in got if r["case_tag"] == f"line {i}"]
        wanted = ["trtllm-native" if b == "trtllm-gen-native" else b for b in args.backends if b not in case.NEVER_ON_CPU]  # an old word
        assert [r["backend"] for r in mine] == wanted, line
        assert all(r["repro_command"].startswith(f"python3 flashinfer_benchmark.py {line} ") and float(r["median_time"]) > 0 for r in mine), line
    assert len(got) == done.stdout.count("[PERF]") > 150


def test_every_routine(tmp_path):
    lines = [line for line in driver.list_lines(ROOT / "benchmarks/testlist.txt") if not driver.communicates(line.split())]
    done, out = run_quickly(tmp_path, lines)
    text = done.stdout
    assert done.returncode == 0 and "[ERROR]" not in text, text + done.stderr
    got = rows(out)
    assert {r["routine"] for r in got} == {r for r, family in columns.FAMILY_OF.items() if family not in columns.COMMUNICATION}
    assert len(got) == text.count("[PERF]") - 2  # two commands also time torch
    assert all(float(r["median_time"]) > 0 and r["resolved_backend"] in ("cpu", "reference") for r in got)
    moved = {r["routine"] for r in got if float(r["tb_per_sec"]) == 0}
    assert moved == set()
    assert "[WARNING] triton for routine selective_state_update is not supported on compute capability cpu. Skipping." in text


def started(command, **env):
    """With the JIT, so that kernels need not be there yet: rank 1 says nothing, and the reference would warn."""
    return subprocess.Popen([sys.executable, str(ROOT / "benchmarks/flashinfer_benchmark.py"), *command], text=True, stdout=subprocess.PIPE,
                            stderr=subprocess.PIPE, env={**os.environ, **env})


def test_communication(tmp_path):
    """Two processes as torchrun starts them: rank 0 prints and writes, rank 1 takes part in the commands that communicate."""
    lines = [line for line in driver.list_lines(ROOT / "benchmarks/testlist.txt") if driver.communicates(line.split())]
    (tmp_path / "list").write_text("\n".join(line + " --warm_cache -n 2 -d 1" for line in [*lines, lines[0] + " --np 3", NORM]))
    launcher = {"WORLD_SIZE": "2", "LOCAL_WORLD_SIZE": "2", "MASTER_ADDR": "localhost", "MASTER_PORT": uuid.uuid4().hex}
    processes = [started(["--testlist", str(tmp_path / "list"), "--output_path", str(tmp_path / f"{rank}.csv")], RANK=str(rank), **launcher)
                 for rank in range(2)]
    (text, errors), (quiet, other_errors) = (p.communicate(timeout=200) for p in processes)
    said = [line for line in other_errors.splitlines() if not re.match("flashinfer: (compiling|waiting for another process that compiles) ", line)]
    assert (quiet, said) == ("", []) and [p.returncode for p in processes] == [1, 0] and not (tmp_path / "1.csv").exists(), errors
    assert text.count("[ERROR] Error: ") == 1 and "[ERROR] Error: --np is 3, but the launcher started 2 ranks" in text, text
    *got, norm = rows(tmp_path / "0.csv")
    assert norm["routine"] == "rmsnorm" and {r["routine"] for r in got} == {"allreduce_fusion", "mixed_comm", "moe_a2a_dispatch_combine"}
    reduced = [r for r in got if r["routine"] == "allreduce_fusion"]
    assert [r["resolved_backend"] for r in reduced] == [
        "trtllm_allreduce_oneshot", "trtllm_allreduce_twoshot", "mnnvl_ar_residual_rmsnorm_oneshot",
        "trtllm_ar_residual_rmsnorm_dynamic_fp8_oneshot", "trtllm_ar_residual_rmsnorm_dynamic_fp8_twoshot"]
    assert "[WARNING] mnnvl_ar_residual_rmsnorm_twoshot needs more tokens than ranks" in text
    for r in reduced:  # 2 (W - 1) / W of the input's bytes
        assert r["tflops"] == "nan" and float(r["tb_per_sec"]) * float(r["median_time"]) == pytest.approx(int(r["num_tokens"]) * 64 * 2 * 1e-9)
    mixed, experts = ([r for r in got if r["routine"] == name] for name in ("mixed_comm", "moe_a2a_dispatch_combine"))
    assert [(r["local_bs"], r["op_name"], r["local_tp_size"], r["local_dp_size"]) for r in mixed] == [
        *((n, op, "1", "2") for n in "34" for op in ("ALLGATHER", "REDUCESCATTER")), ("2", "ALLREDUCE", "2", "1")]
    for r in mixed:  # of each row of 64 elements: one of two parts to and from the other rank, or half of it and half of the sum
        assert float(r["tb_per_sec"]) * float(r["median_time"]) == pytest.approx(int(r["local_bs"]) * 64 * 2 * 1e-9)
    assert [(r["ep_size"], r["max_num_tokens"], r["quant_dtype"]) for r in experts] == [
        ("2", "7", "None"), ("2", "5", "fp8"), ("2", "5", "nvfp4"), ("2", "5", "fp8_block_scale")]
    assert [text.count(f"[PERF] {name} ") for name in ("a2a_dispatch", "moe_kernel", "a2a_combine", "a2a_total")] == [2, 1, 2, 4]
    # A token's row (64 of 128 codes in FP4 and 8 scale factors), 2 ids and weights, and the 256 bytes that come back, for 5 to 10 tokens a rank.
    assert 10 <= float(experts[2]["tb_per_sec"]) * float(experts[2]["median_time"]) * 1e9 / (64 + 8 + 16 + 256) <= 20


def test_ranks_started_by_the_tool(tmp_path):
    """--np of a command, and what a user reads whose ranks fail."""
    command = shlex.split("--routine allreduce_fusion --num_tokens 4 --hidden_size 16 --validate --warm_cache -n 1 -d 0 --np 2 --extra_columns")
    process = started([*command, "--output_path", str(tmp_path / "out.csv")])
    text, errors = process.communicate(timeout=200)
    assert process.returncode == 0 and text.count("[PERF]") == 2 == len(rows(tmp_path / "out.csv")), text + errors
    with pytest.raises(RuntimeError, match="rank 1 ended without a result, with status 3"):
        ranks.spawn(_one_dies, None, 2)
    with pytest.raises(ValueError, match="^--np is 0, but must be in "):
        driver.main([*command, "--np", "0"])
    with pytest.raises(NotImplementedError, match="allreduce_fusion is not available on GPUs"):
        driver.run_command(driver.parse_args([*command, "--device", "cuda"]), None)


def _one_dies(args, backend):
    if backend.Get_rank():
        os._exit(3)
    backend.barrier()


def test_launchers(monkeypatch):
    for names in ranks._LAUNCHERS:
        for name in names:
            monkeypatch.delenv(name, raising=False)
    assert ranks.launched() == (0, 1)
    monkeypatch.setenv("OMPI_COMM_WORLD_RANK", "0")
    monkeypatch.setenv("OMPI_COMM_WORLD_SIZE", "1")
    monkeypatch.setenv("RANK", "3")
    monkeypatch.setenv("WORLD_SIZE", "4")
    assert ranks.launched() == (3, 4)  # one rank alone counts as none
    monkeypatch.setenv("LOCAL_WORLD_SIZE", "2")
    with pytest.raises(ValueError, match="2 of 4 ranks are on this machine"):
        ranks.connect()


@pytest.mark.parametrize("line, function", [
    ("--routine allreduce_fusion", "allreduce_fusion"), ("--routine allreduce_fusion --pattern ar_residual_rmsnorm", "allreduce_fusion"),
    ("--routine allreduce_fusion --pattern ar_residual_rmsnorm_dynamic_fp8", "allreduce_fusion"),
    ("--routine moe_a2a_dispatch_combine --num_experts 4 --top_k 2 --quant_dtype nvfp4", "MoeAlltoAll.combine")])
def test_validation_finds_a_wrong_result(line, function, monkeypatch, capsys):
    """One rank, in this process."""
    import flashinfer.comm
    from flashinfer._comm_backends import SingleBackend
    from routines import comm

    args = driver.parse_args(shlex.split(line + " --num_tokens 4 --hidden_size 64 --validate --warm_cache -n 1 -d 0 --max_num_tokens 4"
                                         if "moe" in line else line + " --num_tokens 4 --hidden_size 64 --validate --warm_cache -n 1 -d 0"))
    assert [r["routine"] for r in comm.on_rank(args, SingleBackend())] == [args.routine] * (1 if "moe" in line else 2)
    owner, name = (flashinfer.comm.MoeAlltoAll, "combine") if "." in function else (flashinfer.comm, function)
    right = getattr(owner, name)

    def wrong(*positional, **named):
        y = right(*positional, **named)
        y.view(torch.uint8)[0, 1] ^= 0x40  # an exponent's bit of the first element
        return y

    monkeypatch.setattr(owner, name, wrong)
    with pytest.raises(AssertionError, match="output mismatch: rank 0: 1 / "):
        comm.on_rank(args, SingleBackend())
    args.allow_output_mismatch = True
    assert comm.on_rank(args, SingleBackend()) and "[ERROR] Output tensor mismatch" in capsys.readouterr().out


def test_the_header_is_flashinfers(tmp_path):
    status, out = run_list(tmp_path, "")
    assert status == 0
    assert hashlib.sha256(out.read_bytes()).hexdigest() == HEADER_SHA256
    assert [columns.COLUMNS.count(name) for name in ("num_tokens", "top_k", "num_experts", "ep_size", "routine")] == [3, 3, 2, 2, 1]


@pytest.mark.parametrize("line", DOCUMENTED)
def test_documented_commands_are_read(line):
    args = driver.parse_args(shlex.split(line))
    assert args.use_cupti is True
    if args.generate_repro_command:
        assert args.repro_command == "python3 flashinfer_benchmark.py " + line and args.verbose == 2
    else:
        assert args.activation_type.name == "Relu2"


SIZES = {"batch_size": 2, "s_kv": 40, "num_qo_heads": 8, "num_kv_heads": 2, "head_dim_qk": 64, "head_dim_vo": 64, "n": 128, "k": 256,
         "hidden_size": 128, "intermediate_size": 128, "num_experts": 32}


def test_documented_commands_run(tmp_path, capsys):
    """With smaller sizes, each as its own command; the stored command gives the row again."""
    attention, product, experts = (re.sub(r"--(\w+) \d+", lambda m: f"--{m[1]} {SIZES[m[1]]}" if m[1] in SIZES else m[0], line) for line in DOCUMENTED)
    for line, backends in ((attention, ["fa2", "cudnn"]), (product, ["cudnn", "cutlass", "trtllm"])):
        out, again = tmp_path / "out.csv", tmp_path / "again.csv"
        line += " -d 0 --warm_cache"
        assert driver.main([*shlex.split(line), "-n", "1", "--output_path", str(out)]) == 0
        first = rows(out)
        assert [r["backend"] for r in first] == backends and {r["resolved_backend"] for r in first} == {"cpu"}
        text = capsys.readouterr().out
        assert f"[INFO] To reproduce this test case, run the following command: {first[0]['repro_command']}\n" in text
        assert text.count("[PERF]") == len(backends) and "[ERROR]" not in text
        assert ("[WARNING] --use_cupti is deprecated" in text) == ("--use_cupti" in line)
        words = shlex.split(first[0]["repro_command"])
        assert words[:2] == ["python3", "flashinfer_benchmark.py"]
        assert driver.main([str(again) if w == str(out) else w for w in words[2:]]) == 0
        timed = {"median_time", "std_time", "tflops", "tb_per_sec", "repro_command"}
        assert [{k: v for k, v in r.items() if k not in timed} for r in rows(again)] == [{k: v for k, v in r.items() if k not in timed} for r in first]
        capsys.readouterr()
    for mode in ("nvfp4", "w4a16"):
        assert driver.main([*shlex.split(experts), "-n", "1", "-d", "0", "--warm_cache", "--refcheck", "--b12x_quant_mode", mode]) == 0


def test_warnings_and_files(tmp_path, capsys):
    """A flag without effect, times kept by --autotune_cache, a file that is written anew."""
    out, cache = tmp_path / "out.csv", tmp_path / "tactics.json"
    out.write_text("from another run\n")
    line = "--routine top_k_renorm_probs --batch_size 2 --vocab_size 300 -n 1 -d 0 --warm_cache --enable_pdl"
    assert driver.main([*shlex.split(line), "--output_path", str(out)]) == 0
    assert "from another run" not in out.read_text() and len(rows(out)) == 1
    ignored = "[WARNING] --enable_pdl provided but routine top_k_renorm_probs does not support PDL; flag is ignored."
    assert ignored in capsys.readouterr().out
    line = f"--routine mm_bf16 --m 4 --n 64 --k 64 -n 1 -d 1 --warm_cache --autotune_cache {cache}"
    assert driver.main(shlex.split(line + " --autotune")) == 0 and cache.exists()
    before = cache.read_bytes()
    assert driver.main(shlex.split(line)) == 0 and cache.read_bytes() == before  # alone it is only read
    capsys.readouterr()
    status, _ = run_list(tmp_path, "--routine nothing\n--routine rmsnorm --batch_size 2\n" + NORM)
    text = capsys.readouterr().out
    assert status == 1 and text.count("[ERROR] Error running test: ") == 2 and text.count("[PERF]") == 1


def test_traces(tmp_path, capsys):
    """--trace-out: lines of flashinfer-bench's data model, evaluated against the reference; none where there is nothing to evaluate."""
    out = tmp_path / "traces.jsonl"
    # So many values that some are rounded otherwise than the reference's, whatever instructions this CPU has.
    decode = ("--routine BatchDecodeWithPagedKVCacheWrapper --backends fa2 reference --batch_size 8 --s_kv 400 --num_qo_heads 4 --num_kv_heads 2 --head_dim_qk 64 "
              "--head_dim_vo 64 --page_size 16 --q_dtype float16 --kv_dtype float16 -n 1 -d 0 --warm_cache")
    for line in (NORM, decode, "--routine sampling_from_probs --batch_size 2 --vocab_size 300 -n 1 -d 0"):
        assert driver.main([*shlex.split(line), "--trace-out", str(out)]) == 0
    assert "[WARNING] sampling_from_probs is not in --trace-out: its results have no reference" in capsys.readouterr().out
    norm, *attention = map(json.loads, out.read_text().splitlines())
    assert list(norm) == ["definition", "workload", "solution", "evaluation"] and (norm["definition"], norm["solution"]) == ("rmsnorm_h64", "flashinfer-cpp_cpu")
    assert norm["workload"]["axes"] == {"batch_size": 4} and norm["workload"]["inputs"] == {"hidden_states": {"type": "random"}, "weight": {"type": "random"}}
    assert [t["solution"] for t in attention] == ["flashinfer-cpp_cpu", "flashinfer-cpp_reference"]
    assert {t["definition"] for t in attention} == {"gqa_paged_decode_h4_kv2_d64_ps16"} and attention[0]["workload"]["axes"]["batch_size"] == 8
    for t in (norm, *attention):
        e, p = t["evaluation"], t["evaluation"]["performance"]
        assert e["status"] == "PASSED" and " " not in e["environment"]["hardware"] and p["latency_ms"] > 0 and e["correctness"]["max_absolute_error"] < 0.02
        assert abs(p["speedup_factor"] - p["reference_latency_ms"] / p["latency_ms"]) < 1e-6 * p["speedup_factor"]
    assert attention[1]["evaluation"]["correctness"]["max_absolute_error"] == 0 < attention[0]["evaluation"]["correctness"]["max_absolute_error"]


def test_a_trace_of_a_wrong_result():
    from routines import trace_lines

    x, row = torch.arange(1.0, 9.0), {"median_time": 2.0}
    make = functools.partial(trace_lines.evaluation, case.Check(0.0, 0.1), [x], 4.0, row=row, device=torch.device("cpu"))
    right, wrong, other = make([x + 0.05]), make([x + 0.5]), make([x[:4]])
    assert [e["status"] for e in (right, wrong, other)] == ["PASSED", "INCORRECT_NUMERICAL", "INCORRECT_SHAPE"]
    assert right["performance"] == {"latency_ms": 2.0, "reference_latency_ms": 4.0, "speedup_factor": 2.0}
    assert wrong["performance"] is None and wrong["correctness"] == {"max_relative_error": 0.5, "max_absolute_error": 0.5, "extra": None}
    assert other["performance"] is None and other["correctness"] is None


def test_every_family_has_its_routines_and_flags():
    assert set(flags.FAMILY) == set(columns.FAMILIES) and len(columns.FAMILY_OF) == 75
    for routine, family in columns.FAMILY_OF.items():
        parser = driver._ListParser(allow_abbrev=False)
        flags.add(parser, routine, family)
        given = {a.option_strings[0] for a in parser._actions if a.option_strings}
        assert {"--refcheck", "--case_tag", "--enable_pdl"} < given


def test_a_list_goes_on_after_a_failure(tmp_path, capsys):
    status, out = run_list(tmp_path, f"# a comment\n\n{NORM} --case_tag 'a, \"b\"' --output_path elsewhere.csv\n{NORM} --no_such_flag\n"
                                     f"{NORM} --input_dtype float32\n  {NORM} --generate_repro_command --case_tag 'two words'\n")
    text = capsys.readouterr().out
    assert status == 1 and text.count("[ERROR] Error running test: ") == 2 and not pathlib.Path("elsewhere.csv").exists()
    assert "[ERROR] Error: unrecognized arguments: --no_such_flag" in text and "Unsupported input dtype: float32" in text
    first, second = rows(out)
    assert first["case_tag"] == 'a, "b"' and second["case_tag"] == "two words"
    assert second["repro_command"].endswith("--case_tag 'two words'")
    assert first["input_dtype"] == "torch.bfloat16" and first["refcheck"] == "False" and first["s_qo"] == "" and first["num_heads"] == "None"


def test_wrong_command_lines_end_with_2(capsys):
    for line in (["--routine", "nothing"], shlex.split(NORM) + ["--backends", "fa9"], ["--routine", "rmsnorm"]):
        with pytest.raises(SystemExit) as e:
            driver.main(line)
        assert e.value.code == 2


def test_back_ends_that_do_not_run_here(tmp_path, capsys):
    line = "--routine selective_state_update --batch_size 2 --nheads 8 --dim 64 --dstate 128 -n 1 -d 0 --backends triton"
    status, out = run_list(tmp_path, line)
    assert status == 0 and rows(out) == [] and "[ERROR] No backends to test. Exiting." in capsys.readouterr().out


def test_peers_of_a_product(tmp_path, capsys):
    """oneDNN comes with torch; a bias is more than it is compared with, and not every CPU has its products of bf16."""
    runs = torch.ops.mkldnn._is_mkldnn_bf16_supported()
    for more, found in (("", runs), ("--bias", False)):
        status, out = run_list(tmp_path, f"--routine mm_bf16 --m 4 --n 64 --k 64 -n 1 -d 0 --peers torch onednn {more}", "--extra_columns")
        (row,) = rows(out)
        assert status == 0 and float(row["torch_median_time"]) > 0 and (row["onednn_median_time"] != "") == found
    printed = capsys.readouterr().out
    assert "[INFO] onednn has nothing to compare with for mm_bf16." in printed
    assert ("[INFO] onednn fails (" in printed) == (not runs)


@pytest.fixture(scope="module")
def peers():
    import importlib.util

    spec = importlib.util.spec_from_file_location("peers", ROOT / "bench/peers.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    grad = torch.is_grad_enabled()
    yield module
    torch.set_grad_enabled(grad)


DECODE = ("plan.indptr=i32:3:range(0,2) plan.indices=i32:4:perm plan.last_page_len=i32:2:const(5) plan.page_size=16 q=bf16:2x8x64 "
          "paged_kv_cache=bf16:4x2x16x2x64")


def test_case_texts_of_peers(peers):
    f = peers.parse("a=bf16:4x8 b=bf16:1x5x32:packed(8,9) x=(f32:2,u8:[3,4]) name='a b' ids=i32:3:range(1,2)^t k=50")
    assert (f["a"].dtype, f["a"].shape, f["b"].packed(), f["name"], f["k"]) == ("bf16", [4, 8], (8, 9), "a b", "50")
    assert f["x"][1].values() == [3, 4] and f["ids"].values() == [1, 3, 5] and f["a"].packed() is None and f["a"].values() is None
    f = peers.parse(DECODE)
    assert peers.length(f["plan.indptr"], f["plan.last_page_len"], f["plan.page_size"]) == 21
    assert peers.length(peers.Array("i32:[0,1,3]"), f["plan.last_page_len"], "16") is None


@pytest.mark.parametrize("op, text, shape", [
    ("mm_bf16", "a=bf16:3x8 b=bf16:1x5x32:packed(8,9)", (3, 9)), ("rmsnorm", "input=bf16:3x8 weight=bf16:8", (3, 8)),
    ("silu_and_mul", "input=f32:3x8", (3, 4)), ("softmax", "logits=f32:3x8", (3, 8)),
    ("BatchDecodeWithPagedKVCacheWrapper.run", DECODE, None), ("mm_bf16", "a=bf16:3x8 b=bf16:8x9^t bias=bf16:9", ()), ("nothing", "a=1", ())])
def test_torch_as_a_peer(peers, op, text, shape):
    call = peers.TorchOnly(torch.get_num_threads()).row(op, peers.parse(text))
    if shape == ():  # more than it is compared with, or an op that it does not have
        assert call is None
    else:
        assert (shape is None or call().shape == shape) and bool(call().isfinite().all())


def test_models_without_llamacpp(tmp_path):
    """Libraries that are not installed are empty columns."""
    program = tmp_path / "llm"
    program.write_text("#!/bin/sh\necho '{\"prefill_512\": 10.0, \"decode_alone\": 20, \"decode_batch_8\": 30}'\n")
    program.chmod(0o755)
    command = [sys.executable, str(ROOT / "bench/llm_vs_llamacpp/run.py"), "--program", str(program), "--rounds", "2", "--python", "/bin/false"]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0 and "decode alone" in done.stdout, done.stderr
    if not (ROOT / ".cache/venv-llamacpp").exists():
        assert done.stdout.splitlines()[1].split() == ["prefill", "of", "512", "tokens", "10", "3.0"]


def test_candidates_and_extra_columns(tmp_path, capsys, monkeypatch):
    monkeypatch.setattr(case, "_peer_library", lambda name: (None, None))
    status, out = run_list(tmp_path, f"{NORM} --input_dtype float16 --backends ours --peers torch zentorch --enable_pdl --refcheck", "--extra_columns")
    first, second = rows(out)
    assert first["zentorch_median_time"] == "" and status == 0 and [first["resolved_backend"], second["resolved_backend"]] == ["cpu", "reference"]
    assert first["device"] == "cpu" and float(first["torch_median_time"]) > 0
    assert capsys.readouterr().out.count("[PERF]") == 3


@pytest.mark.parametrize("line, function", [
    (NORM, (flashinfer, "rmsnorm")),
    ("--routine mm_bf16 --m 4 --n 64 --k 64 -n 1 -d 0", (flashinfer.gemm, "mm_bf16")),
    ("--routine top_k_renorm_probs --batch_size 2 --vocab_size 300 -n 1 -d 0", (flashinfer.sampling, "top_k_renorm_probs")),
    ("--routine BatchPrefillWithRaggedKVCacheWrapper --batch_size 2 --s_qo 20 --s_kv 20 --num_qo_heads 4 --num_kv_heads 2 --head_dim_qk 64 "
     "--causal -n 1 -d 0", (flashinfer.BatchPrefillWithRaggedKVCacheWrapper, "run"))])
def test_refcheck_finds_a_wrong_result(line, function, monkeypatch, capsys):
    owner, name = function
    right, calls = getattr(owner, name), []

    def wrong(*args, **kwargs):
        calls.append(1)
        y = right(*args, **kwargs)
        return y + 0.5 if len(calls) == 1 else y  # the first call is the one that is compared

    monkeypatch.setattr(owner, name, wrong)
    with pytest.raises(AssertionError, match="output mismatch"):
        driver.main(shlex.split(line) + ["--refcheck"])
    assert "[ERROR] Output tensor mismatch between backends reference and " in capsys.readouterr().out
    calls.clear()
    assert driver.main(shlex.split(line) + ["--refcheck", "--allow_output_mismatch"]) == 0
    assert "[ERROR] Output tensor mismatch" in capsys.readouterr().out


def test_what_differs_is_counted():
    check = case.Check(0.0, 0.1)
    x = torch.arange(10.0)
    assert case.mismatch(check, [x], [x + 0.05]) is None
    assert case.mismatch(check, [x], [x + (x > 7) * 0.2])[0] == "2 / 10 (20.00%) elements are different"
    assert case.mismatch(case.Check(0, 0.1, share=0.2), [x], [x + (x > 7) * 0.2]) is None
    assert "cosine is -1.0" in case.mismatch(check, [x], [-x], 0.9)[0]
    assert "shapes" in case.mismatch(check, [x], [x[:5]])[0]
    assert case.mismatch(check, [x], [x * float("nan")])[1] == 1.0


def test_a_recorded_run_replays(tmp_path):
    env = {**os.environ, "FLASHINFER_LOGLEVEL": "10", "FLASHINFER_DUMP_DIR": str(tmp_path / "dumps"), "FLASHINFER_LOGDEST": str(tmp_path / "log")}
    command = [sys.executable, str(ROOT / "benchmarks/flashinfer_benchmark.py"), *shlex.split(DOCUMENTED[0].partition(" --batch_size")[0]),
               *shlex.split("--batch_size 2 --s_kv 40 --num_qo_heads 4 --num_kv_heads 2 --head_dim_qk 64 --page_size 16 -n 1 -d 0 --warm_cache --refcheck")]
    done = subprocess.run(command, env=env, capture_output=True, text=True)
    assert done.returncode == 0 and done.stdout.count("[PERF]") == 2, done.stdout + done.stderr
    results = api_logging.replay_sequence(str(tmp_path / "dumps"), "cpu")
    assert len(results) >= 6 and all("error" not in r and r.get("comparison_match", True) for r in results)
    assert sum(r.get("comparison_match", False) for r in results) >= 5
