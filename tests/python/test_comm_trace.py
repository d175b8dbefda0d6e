# SPDX-License-Identifier: Apache-2.0
"""Definitions of collectives: FlashInfer's structure, valid in strict mode, and what ranks with equal tensors compute."""
import pytest
import rank_checks
import torch

import flashinfer
import flashinfer.comm as comm
from definitions import Fake, executed
from flashinfer import trace

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
