# SPDX-License-Identifier: Apache-2.0
"""Recordings replayed from Python: ours by ours, FlashInfer's by ours, ours read by FlashInfer, torch and safetensors."""
import json
import os
import pathlib
import subprocess
import sys
import textwrap

import flashinfer
import pytest
import torch
from conftest import environment
from flashinfer.api_logging import replay_from_dump, replay_sequence

ORACLE = pathlib.Path(__file__).parent / "oracle"
sys.path.insert(0, str(ORACLE))  # calls.py, which recordings name as the module `calls`


def record(who, code, folder, **variables):
    env = environment(who, FLASHINFER_LOGLEVEL=10, FLASHINFER_LOGDEST=folder / "log", FLASHINFER_DUMP_DIR=folder / "dumps", **variables)
    code = f"import sys; sys.path.insert(0, {str(ORACLE)!r})\n" + textwrap.dedent(code)
    done = subprocess.run([sys.executable, "-c", code], env=env, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr
    return done.stdout


OURS = """
    import torch, flashinfer
    torch.manual_seed(1)
    x = torch.randn(4, 64, dtype=torch.bfloat16)
    w = torch.ones(64, dtype=torch.bfloat16)
    flashinfer.rmsnorm(x, w, eps=1e-5)
    flashinfer.rmsnorm(x, w, out=torch.empty_like(x))
    flashinfer.fused_add_rmsnorm(x.clone(), x.clone(), w)
    flashinfer.sampling_from_probs(torch.full((4, 32), 1 / 32))
    flashinfer.sampling_from_probs(torch.full((4, 32), 1 / 32), generator=torch.Generator().manual_seed(3))
    a = torch.randn(2, 8, 16).to(torch.float8_e4m3fn)
    b = torch.randn(2, 32, 16).to(torch.float8_e4m3fn).transpose(1, 2)
    one = torch.ones(1)
    flashinfer.bmm_fp8(a, b, one, one, torch.bfloat16, torch.empty(2, 8, 32, dtype=torch.bfloat16), backend="cublas")
    ws = torch.zeros(1 << 20, dtype=torch.uint8)
    d = flashinfer.decode.BatchDecodeWithPagedKVCacheWrapper(ws, "NHD")
    indptr, indices, last = (torch.tensor(v, dtype=torch.int32) for v in ([0, 2, 5], [0, 1, 2, 3, 4], [3, 7]))
    d.plan(indptr, indices, last, 4, 2, 64, 16, data_type=torch.bfloat16, q_data_type=torch.bfloat16)
    d.run(torch.randn(2, 4, 64, dtype=torch.bfloat16), torch.randn(8, 2, 16, 2, 64, dtype=torch.bfloat16), return_lse=True)
"""


@pytest.fixture(scope="module")
def ours(tmp_path_factory):
    folder = tmp_path_factory.mktemp("ours")
    record("ours", OURS, folder)
    return folder / "dumps"


def dump_of(session, name, index=-1):
    return sorted(p for p in session.iterdir() if f"_{name}_call" in p.name)[index]


def outcomes(results):
    def of(r):
        return r.get("comparison_match") or r.get("error") or r.get("execution_error") or r.get("differences")

    return {os.path.basename(r["dump_dir"]).partition("_pid")[2].partition("_")[2]: of(r) for r in results}


def test_a_session_of_ours(ours):
    seen = outcomes(replay_sequence(ours, device="cpu"))
    assert len(seen) == 9 and set(seen.values()) == {True}, seen


def test_the_fp8_product_as_documented(ours):
    r = replay_from_dump(dump_of(ours, "bmm_fp8"), compare_outputs=True, device="cpu", run=False)
    assert set(r) == {"args", "kwargs", "metadata", "expected_tensors", "expected_metadata"}
    assert r["kwargs"] == {"backend": "cublas"} and r["args"][4] is torch.bfloat16
    assert r["args"][1].stride() == (512, 1, 16)  # as the caller had it
    again = flashinfer.bmm_fp8(*r["args"], **r["kwargs"])
    assert torch.equal(again, r["expected_tensors"]["result"])
    assert again.data_ptr() == r["args"][5].data_ptr()
    r = replay_from_dump(dump_of(ours, "bmm_fp8"), compare_outputs=True, device="cpu", run=True)
    assert r["comparison_match"] is True and torch.equal(r["execution_result"], again)


def test_one_run_alone(ours):
    r = replay_from_dump(dump_of(ours, "BatchDecodeWithPagedKVCacheWrapper.run"), True, "cpu")
    assert type(r["args"][0]) is flashinfer.decode.BatchDecodeWithPagedKVCacheWrapper
    out, lse = type(r["args"][0]).run(*r["args"], **r["kwargs"])
    assert torch.equal(out, r["expected_tensors"]["result_0"]) and torch.equal(lse, r["expected_tensors"]["result_1"])


def test_methods_share_the_object_of_their_constructor(ours):
    objects = {}
    for method in ("__init__", "plan", "run"):
        r = replay_from_dump(dump_of(ours, "BatchDecodeWithPagedKVCacheWrapper." + method), True, "cpu", True, objects)
        assert r["comparison_match"] is True, r
    assert len(objects) == 1 and next(iter(objects.values())) is r["args"][0]


def test_what_was_tampered_with_is_seen(ours, tmp_path):
    folder = tmp_path / "dump"
    folder.mkdir()
    source = dump_of(ours, "rmsnorm", 0)
    for name in ("metadata.jsonl", "inputs.pt", "outputs.pt"):
        (folder / name).write_bytes((source / name).read_bytes())
    result = torch.load(folder / "outputs.pt")
    result["result"][1, 2] += 1
    torch.save(result, folder / "outputs.pt")
    with pytest.raises(ValueError, match="checksum of result"):
        replay_from_dump(folder, True, "cpu", True)
    record = json.loads((folder / "metadata.jsonl").read_text().splitlines()[-1])
    for detail in record["tensor_details"].values():
        detail.pop("checksum", None)
    (folder / "metadata.jsonl").write_text(json.dumps(record) + "\n")
    r = replay_from_dump(folder, True, "cpu", True)
    assert r["comparison_match"] is False
    assert "result differs in 1 of 256 elements, worst at [1, 2]" in r["differences"][0]
    assert replay_from_dump(folder, True, "cpu", True, atol=2.0)["comparison_match"] is True


def test_what_cannot_be_read(tmp_path):
    with pytest.raises(FileNotFoundError):
        replay_from_dump(tmp_path, device="cpu")
    empty = tmp_path / "empty"
    empty.mkdir()
    (empty / "metadata.jsonl").write_text("")
    with pytest.raises(ValueError, match="the process ended before the call's first record"):
        replay_from_dump(empty, device="cpu")


@pytest.mark.skipif(torch.cuda.is_available(), reason="this machine has a GPU")
def test_a_replay_without_a_gpu_needs_a_device(ours):
    with pytest.raises(ValueError, match="cuda"):
        replay_from_dump(dump_of(ours, "rmsnorm"))


def test_only_what_is_allowed_runs(tmp_path):
    record("ours", "import calls, torch; calls.one(torch.ones(2)); calls.nothing()", tmp_path)
    refused = replay_sequence(tmp_path / "dumps", device="cpu")
    assert all("allow" in r["execution_error"] and "comparison_match" not in r for r in refused)
    one, nothing = replay_sequence(tmp_path / "dumps", device="cpu", allow=["calls:one", "calls:nothing"])
    assert one["comparison_match"] is True
    assert nothing["comparison_match"] is None and "no output" in nothing["not_compared"]


# What cannot be the same again, with the reason; None is "nothing to compare".
NOT_THE_SAME = {
    "anything_call0006": "a device follows `device`, and what has no encoding of its own is known by its text",
    "anything_call0007": "objects of which only the texts are known",
    "anything_call0008": None, "changing_default_call0001": None, "changing_default_call0002": None, "nothing_call0001": None,
    "run_call0001": "FlashInfer's names: a method of a class that is no wrapper has the name of a function",
    "FooWrapper.one_call0001": "and a function that takes a wrapper the name of a method",
    "MoELayer.__call___call0001": "no constructor of it was recorded",
    "one_call0040": "nested too deep",
    "unreadable_call0001": "not stored", "unreadable_call0002": "not stored",
}
ONLY = {
    "ours": {"one_call0001": "an integer of more than 64 bits is known by its text"},
    "theirs": {"fp4_call0001": "FlashInfer keeps the text of it", "fp4_call0002": "the same", "generator_call0001": "the same",
               "fail_call0001": "FlashInfer does not tell that it failed",
               **{f"one_call00{i}": "an element type whose files the library does not read" for i in range(19, 24)}},
}


def allowed():
    names = "one defaults anything changing_default nothing makes_list makes_dict pair fail outer generator fp4 unreadable".split()
    classes = "FooWrapper.__init__ FooWrapper.run DerivedFooWrapper.__init__ DerivedFooWrapper.run MoELayer.__call__".split()
    return [f"calls:{name}" for name in names + classes]


@pytest.mark.parametrize("who", ["ours", "theirs"])
def test_every_kind_of_value(who, tmp_path):
    record(who, "import calls; calls.main()", tmp_path)
    seen = outcomes(replay_sequence(tmp_path / "dumps", device="cpu", allow=allowed()))
    expected = NOT_THE_SAME | ONLY[who]
    assert len(seen) > 70
    assert {k: v for k, v in seen.items() if v is not True and k not in expected} == {}
    assert [k for k in expected if seen[k] is True] == []
    assert [k for k, why in expected.items() if (why is None) != (seen[k] is None)] == []


def test_ours_is_read_by_torch_and_the_oracle(ours):
    found = json.loads(subprocess.run([sys.executable, "-c", textwrap.dedent("""
        import json, os, sys, torch
        from flashinfer.api_logging import replay_from_dump
        out = {}
        for name in sorted(os.listdir(sys.argv[1])):
            folder = os.path.join(sys.argv[1], name)
            if not os.path.isdir(folder) or "__init__" in name: continue  # theirs reads no call without tensors
            r = replay_from_dump(folder, compare_outputs=True, device="cpu", run=False)
            shapes = lambda v: [list(x.shape) if isinstance(x, torch.Tensor) else type(x).__name__ for x in v]
            out[r["metadata"]["function_name"]] = [shapes(r["args"]), sorted(r["kwargs"]), shapes(r["expected_tensors"].values())]
        print("@" + json.dumps(out))
    """), str(ours)], env=environment("theirs"), capture_output=True, text=True, check=True).stdout.partition("@")[2])
    assert found["rmsnorm"] == [[[4, 64], [64]], ["out"], [[4, 64]]]
    assert found["bmm_fp8"] == [[[2, 8, 16], [2, 16, 32], [1], [1], "dtype", [2, 8, 32]], ["backend"], [[2, 8, 32]]]
    assert found["BatchDecodeWithPagedKVCacheWrapper.run"][0][1:] == [[2, 4, 64], [8, 2, 16, 2, 64]]


def test_safetensors(tmp_path):
    record("ours", "import torch, flashinfer; x = torch.ones(2, 8); flashinfer.rmsnorm(x, x[0])", tmp_path, FLASHINFER_DUMP_SAFETENSORS=1)
    from safetensors.torch import load_file

    folder = dump_of(tmp_path / "dumps", "rmsnorm")
    assert torch.equal(load_file(folder / "inputs.safetensors")["arg_0"], torch.ones(2, 8))
    assert replay_from_dump(folder, True, "cpu", True)["comparison_match"] is True
