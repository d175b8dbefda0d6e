# SPDX-License-Identifier: Apache-2.0
"""Definitions of collectives: FlashInfer's structure, valid in strict mode, and what ranks with equal tensors compute."""
import threading
import uuid

import pytest
import rank_checks
import torch

import flashinfer
import flashinfer.comm as comm
from definitions import Fake, executed
from flashinfer import _make, trace

RANKS, HIDDEN = 3, 32


def values(definition, part):
    return {key: (item["shape"], item["dtype"], item.get("optional", False)) for key, item in definition[part].items()}


def test_all_reduce():
    x, gamma = Fake((5, HIDDEN), "bfloat16"), Fake((HIDDEN,), "bfloat16")
    made = comm.allreduce_fusion.fi_trace(input=x, pattern=1, residual_in=x, rms_gamma=gamma, rms_eps=1e-5)
    rows = ["num_tokens", "hidden_dim"]
    assert made["name"] == "allreduce_fusion_h32" and made["op_type"] == "comm"
    assert made["tags"] == ["fi_api:flashinfer.comm.allreduce.allreduce_fusion", "status:verified", "stage:comm", "fused"]
    assert {name: axis["type"] for name, axis in made["axes"].items()} == {"num_tokens": "var", "hidden_dim": "const"}
    assert values(made, "inputs") == {
        "input": (rows, "bfloat16", False), "workspace": (None, "int64", False), "pattern": (None, "int32", False),
        "residual_in": (rows, "bfloat16", True), "rms_gamma": (["hidden_dim"], "bfloat16", True), "rms_eps": (None, "float32", True),
        "weight_bias": (None, "float32", True)}
    assert values(made, "outputs") == {"output": (rows, "bfloat16", False)}
    assert comm.allreduce_fusion.fi_trace(input=x, pattern=2, residual_in=x, rms_gamma=gamma) == {}  # codes need the caller's scales


def test_exchanges_of_a_context():
    o, stats, lse = Fake((2, 5, RANKS, HIDDEN), "float16"), Fake((2, 5, RANKS, 2), "float32"), Fake((2, 5, RANKS), "float32")
    made = comm.decode_cp_a2a_alltoall.fi_trace(partial_o=o, softmax_stats=stats, workspace=Fake((RANKS, 99), "int64"), cp_rank=0, cp_size=RANKS)
    rows, of_stats = ["batch_dim", "cp_size", "head_dim"], ["batch_dim", "cp_size", "stats_dim"]
    assert made["name"] == "decode_cp_a2a_alltoall_d32_s2"
    assert values(made, "inputs") == {
        "partial_o": (rows, "float16", False), "softmax_stats": (of_stats, "float32", False),
        "workspace": (["cp_size", "ws_elems_per_rank"], "int64", False), "cp_rank": (None, "int32", False), "cp_size": (None, "int32", False)}
    assert values(made, "outputs") == {"partial_o_out": (rows, "float16", False), "softmax_stats_out": (of_stats, "float32", False)}
    assert not any("param" in item for item in made["outputs"].values())
    made = comm.decode_cp_a2a_lse_reduce.fi_trace(partial_o=o, partial_lse=lse, workspace=Fake((RANKS, 99), "uint8"), cp_rank=0, cp_size=RANKS)
    assert made["name"] == "decode_cp_a2a_lse_reduce_d32"
    assert values(made, "inputs") == {
        "partial_o": (rows, "float16", False), "partial_lse": (rows[:2], "float32", False), "workspace": (["workspace_bytes"], "uint8", False),
        "cp_rank": (None, "int32", False), "cp_size": (None, "int32", False), "lse_mode": (None, "str", False)}
    assert values(made, "outputs") == {"output": (["batch_dim", "head_dim"], "float16", False)}


def tensors():
    g = torch.Generator().manual_seed(7)
    return torch.randn(5, RANKS, HIDDEN, generator=g).bfloat16(), torch.randn(5, RANKS, 2, generator=g)


def check_ranks_with_equal_tensors(backend, rank):
    """The strict reference of each rank's call computes what that rank gets."""
    o, stats = tensors()
    lse = stats[..., 0].contiguous()
    lse[3] = float("-inf")
    workspace = comm.decode_cp_a2a_allocate_mnnvl_workspace(comm.Mapping(world_size=RANKS, rank=rank, cp_size=RANKS),
                                                            mnnvl_config=comm.mnnvl.MnnvlConfig(backend))
    call = {"partial_o": o, "softmax_stats": stats, "workspace": workspace, "cp_rank": rank, "cp_size": RANKS}
    made = comm.decode_cp_a2a_alltoall.fi_trace(strict=True, **call)
    assert trace.validate(made) == []
    for got, want in zip(comm.decode_cp_a2a_alltoall(**call), executed(made["reference"])["run"](**call)):
        assert torch.equal(got, want)
    workspace = comm.decode_cp_a2a_lse_reduce_create_workspace(5, 1, RANKS, HIDDEN, torch.bfloat16, backend)
    call = {"partial_o": o, "partial_lse": lse, "workspace": workspace, "cp_rank": rank, "cp_size": RANKS}
    made = comm.decode_cp_a2a_lse_reduce.fi_trace(strict=True, **call)
    assert trace.validate(made) == []
    torch.testing.assert_close(comm.decode_cp_a2a_lse_reduce(**call), executed(made["reference"])["run"](**call), rtol=1e-2, atol=0)


reports, test_between_processes = rank_checks.tests(globals(), "spawn", RANKS)


@pytest.mark.parametrize("pattern", [0, 1])
def test_a_group_of_one_rank(pattern):
    x = torch.randn(4, HIDDEN, generator=torch.Generator().manual_seed(3))
    x[0, 0] = -0.0
    workspace = comm.create_allreduce_fusion_workspace(world_size=1, rank=0, max_token_num=4, hidden_dim=HIDDEN, dtype=torch.float32, device="cpu")
    more = {"residual_in": x.flip(0).contiguous(), "rms_gamma": x[1].contiguous(), "weight_bias": 1.0} if pattern else {}
    made = flashinfer.fi_trace(comm.allreduce_fusion, strict=True, input=x, workspace=workspace, pattern=pattern, **more)
    assert trace.validate(made) == [] and "workspace" not in made["inputs"]
    got, want = comm.allreduce_fusion(input=x, workspace=workspace, pattern=pattern, **more), executed(made["reference"])["run"](input=x, pattern=pattern, **more)
    torch.testing.assert_close(got, want)
    assert not got[0, 0].signbit() and not want[0, 0].signbit() or pattern
    workspace.destroy()


def of_one_rank(function, prefix, **call):
    """The call with a group of one rank, beside the strict reference of its definition."""
    workspace = comm.create_allreduce_fusion_workspace(world_size=1, rank=0, max_token_num=1, hidden_dim=1 << 16, dtype=torch.bfloat16, device="cpu")
    made = flashinfer.fi_trace(function, strict=True, **call)
    assert made["name"].startswith(prefix) and made["op_type"] == "comm" and trace.validate(made) == [] and "workspace" not in made["inputs"]
    got, want = function(**call, workspace=workspace), executed(made["reference"])["run"](**{k: v for k, v in call.items() if k in made["inputs"]})
    assert got.dtype == want.dtype and {name: len(o["shape"]) for name, o in made["outputs"].items()} == {next(iter(made["outputs"])): got.dim()}
    workspace.destroy()
    made = executed(made["init"])["init"](**{axis: 4 for axis, a in made["axes"].items() if a["type"] == "var"})
    function(**made)
    made["workspace"].destroy()
    return got, want


def test_gathers_and_sums_of_one_rank():
    x = torch.randn(4, HIDDEN, generator=torch.Generator().manual_seed(3)).bfloat16()
    x[0, 0] = -0.0
    for function, prefix, call in ((comm.all_gather, "all_gather_d32", {"input": x, "columns": [HIDDEN]}), (comm.reduce_scatter, "reduce_scatter_h32", {"input": x})):
        got, want = of_one_rank(function, prefix, **call)
        assert torch.equal(got, want) and torch.equal(got.signbit(), want.signbit())
    heads = x.view(1, 4, 4, 8)
    for name in ("ulysses_scatter_heads", "ulysses_gather_heads"):
        got, want = of_one_rank(_make.package.exports[name], f"{name}_h4_d8", x=heads)
        assert torch.equal(got, want)
    made = comm.UlyssesCommunicator.scatter_heads.fi_trace(x=heads)
    assert made["tags"][0] == "fi_api:flashinfer.comm.ulysses.UlyssesCommunicator.scatter_heads"


def test_sums_of_codes():
    x = torch.randn(5, 96, generator=torch.Generator().manual_seed(3)).bfloat16()
    got, want = of_one_rank(_make.package.exports["quantized_all_reduce_into"], "quantized_all_reduce_h96", inp=x, scale_group=64)
    assert torch.equal(got, want)
    assert comm.quantized_all_reduce.fi_trace(inp=x)["tags"] == ["fi_api:flashinfer.comm.quantized_allreduce.quantized_all_reduce", "stage:comm",
                                                                "quantization:float8_e4m3fn"]


@pytest.mark.parametrize("op, sizes", [(0, {"local_tp_size": 2}), (1, {"local_dp_size": 2}), (3, {"local_tp_size": 2, "inter_dp_size": 2})])
def test_mixed_of_equal_ranks(op, sizes):
    x = torch.randn(3, HIDDEN, generator=torch.Generator().manual_seed(3)).bfloat16()
    call, ranks = {"x_in": x, "op": op, **sizes}, 4 if len(sizes) > 1 else 2
    made = flashinfer.fi_trace(comm.run_mixed_comm, strict=True, **call)
    assert trace.validate(made) == [] and made["name"] == "mixed_comm_h32"
    want = executed(made["reference"])["run"](**call)
    assert made["axes"]["result_rows"] == {"type": "const", "value": want.shape[0]}
    outputs = [None] * ranks

    def rank(r, name):
        workspace = comm.TRTLLMAllReduceFusionWorkspace(ranks, r, 4, HIDDEN, torch.bfloat16, comm.ShmBackend(name, r, ranks), device="cpu")
        outputs[r] = _make.package.exports["mixed_comm_into"](x, workspace, op, sizes.get("local_tp_size", 1), sizes.get("local_dp_size", 1), 1, sizes.get("inter_dp_size", 1))
        workspace.destroy()

    name = uuid.uuid4().hex
    threads = [threading.Thread(target=rank, args=(r, name)) for r in range(ranks)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert all(torch.equal(o, want) for o in outputs)


def test_what_depends_on_earlier_calls_has_none():
    assert comm.moe_a2a_combine.fi_trace(payload=Fake((1, 4, HIDDEN), "bfloat16")) == {}
    assert comm.run_mixed_comm.fi_trace(x_in=Fake((4, HIDDEN), "bfloat16"), op=2) == {}  # which block depends on the rank
