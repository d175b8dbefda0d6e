# SPDX-License-Identifier: Apache-2.0
"""An argument that is wrong on one rank alone: that rank raises what is wrong, the others at once an error that names it, and none waits for its time limit."""
import os

import pytest
import rank_checks
import torch

import flashinfer.comm as comm
from flashinfer import moe_ep
from flashinfer.comm import mnnvl_cutedsl_ag, nvshmem_allreduce

RANKS, BF16 = 2, torch.bfloat16
X, IDS = torch.ones(2, 16, dtype=BF16), torch.tensor([[0, 2], [1, 3]], dtype=torch.int32)


def mapping(rank, **more):
    return comm.Mapping(world_size=RANKS, rank=rank, **({"tp_size": RANKS, "moe_ep_size": RANKS} if not more else more))


def config(backend):
    return comm.mnnvl.MnnvlConfig(backend)


def workspace(backend, rank, **more):
    return comm.create_allreduce_fusion_workspace(**{**dict(world_size=RANKS, rank=rank, max_token_num=6, hidden_dim=16, dtype=BF16, comm_backend=backend), **more})


def experts(backend, rank, tokens=6):
    return comm.MoeAlltoAll(mapping(rank), tokens, 2, 4, hidden_size=16, mnnvl_config=config(backend))


def dispatched(backend, rank):
    a2a = experts(backend, rank)
    a2a.dispatch(IDS, [X, IDS], 6)
    return a2a


def one_sided(backend, rank, num_experts=4):
    return moe_ep.NVLinkOneSidedAlltoAll(moe_ep.BootstrapConfig(world_size=RANKS, rank=rank), moe_ep.MoEEpCommParams(num_experts, 2, 6, 16),
                                         moe_ep.NVLinkOneSidedConfig(comm_backend=backend))


def mixed(backend, rank, tp=None, dtype=BF16):
    return comm.MixedCommHandler(rank, RANKS, rank, RANKS, 0, 1, tp, None if tp else RANKS, 1, 1, dtype, torch.device("cpu"), comm_backend=backend)


def buffers(backend):
    return comm.create_shared_buffer(1 << 16, backend), comm.create_shared_buffer(comm.vllm_meta_size(), backend)


def reducer(backend, rank):
    registered, meta = buffers(backend)
    fa = comm.vllm_init_custom_ar(meta, torch.empty(8), rank, True)
    comm.vllm_register_buffer(fa, registered)

    def reduce(elements, ctas=8):
        comm.vllm_all_reduce(fa, torch.ones(elements, dtype=BF16), torch.empty(elements, dtype=BF16), registered[rank], 1 << 16, ctas)

    return reduce


def older(backend, rank):
    return comm.trtllm_create_ipc_workspace_for_all_reduce_fusion(rank, RANKS, 6, 16, comm_backend=backend)[1]


def sum_by_older_names(table, rank, x):
    comm.trtllm_allreduce_fusion(x, RANKS, rank, 2, 16, table, False, True, False, 0, None, torch.empty_like(X), *[None] * 9)


def finalize(table, rank, scales):
    rows = [torch.zeros(2, 16, dtype=BF16) for _ in range(4)]
    comm.trtllm_moe_finalize_allreduce_fusion(rows[0], rows[1], X[0].clone(), torch.zeros(2, 1, dtype=torch.int32), rows[2], rows[3], None, None, table, False, rank,
                                              RANKS, 1e-5, None, scales, 2.0)


def second_reduce(backend, rank, elements, ctas=8):
    reduce = reducer(backend, rank)
    reduce(64)
    reduce(elements, ctas)


# What a rank calls; `w`: on this rank something is wrong.
CASES = {
    "workspace, a size": lambda b, r, w: workspace(b, r, max_token_num=0 if w else 6),
    "workspace, no number": lambda b, r, w: workspace(b, r, max_token_num="6" if w else 6),
    "workspace, device": lambda b, r, w: workspace(b, r, device="tpu" if w else None),
    "workspace, transport": lambda b, r, w: workspace(b, r, transport="smoke" if w else "auto"),
    "mnnvl workspace": lambda b, r, w: comm.MNNVLAllReduceFusionWorkspace(mapping(r), None if w else 6, 16, BF16, comm_backend=b),
    "older workspace": lambda b, r, w: comm.trtllm_create_ipc_workspace_for_all_reduce_fusion(r, RANKS, -1 if w else 6, 16, comm_backend=b),
    "older sum": lambda b, r, w: sum_by_older_names(older(b, r), r, [1] if w else X),
    "older finalize": lambda b, r, w: finalize(older(b, r), r, "x" if w else None),
    "mixed, dtype": lambda b, r, w: mixed(b, r, dtype=torch.float32 if w else BF16),
    "mixed, sizes": lambda b, r, w: mixed(b, r, tp=3 if w else None),
    "mixed, op": lambda b, r, w: comm.run_mixed_comm(0 if w else 1, mixed(b, r), X),
    "nvshmem, device": lambda b, r, w: nvshmem_allreduce.NVSHMEMAllReduce(r, RANKS, 100, BF16, "meta" if w else "cpu", b),
    "vllm, handle": lambda b, r, w: comm.vllm_init_custom_ar(buffers(b)[1], torch.empty(8), 0 if w else r, True),
    "vllm, first call": lambda b, r, w: reducer(b, r)(63 if w else 64),
    "vllm, later call": lambda b, r, w: second_reduce(b, r, 64, 99 if w else 8),
    "vllm, larger": lambda b, r, w: second_reduce(b, r, 8192, 0 if w else 8),
    "ulysses handle": lambda b, r, w: comm.init_ulysses_a2a(*buffers(b), 0 if w else r, RANKS, True),
    "ulysses": lambda b, r, w: comm.UlyssesCommunicator(b, max_elems="8" if w else 8, dtype=BF16),
    "buffer, a size": lambda b, r, w: comm.create_shared_buffer(0 if w else 64, b),
    "buffer, no number": lambda b, r, w: comm.create_shared_buffer("64" if w else 64, b),
    "experts": lambda b, r, w: experts(b, r, "6" if w else 6),
    "dispatch, index": lambda b, r, w: experts(b, r).dispatch(IDS, [X, IDS], 6, -1, 5 if w else 1),
    "dispatch, rows": lambda b, r, w: experts(b, r).dispatch(IDS, [X, IDS], 60000 if w else 6),
    "dispatch, payload": lambda b, r, w: experts(b, r).dispatch(IDS, [[1] if w else X, IDS], 6),
    "dispatch twice": lambda b, r, w: dispatched(b, r).dispatch(IDS, [X, IDS], 6) if w else dispatched(b, r).combine(torch.ones(RANKS, 6, 16, dtype=BF16), 6),
    "combine first": lambda b, r, w: experts(b, r).combine(X, 6) if w else dispatched(b, r),
    "combine, payload": lambda b, r, w: dispatched(b, r).combine("x" if w else torch.ones(RANKS, 6, 16, dtype=BF16), 6),
    "one-sided": lambda b, r, w: one_sided(b, r, 5 if w else 4),
    "one-sided, tokens": lambda b, r, w: one_sided(b, r).dispatch(X, IDS, max_tokens_per_rank=99 if w else 6),
    "contexts, type": lambda b, r, w: comm.decode_cp_a2a_alltoall(
        "x" if w else torch.ones(3, RANKS, 16, dtype=BF16), torch.ones(3, RANKS, 2),
        comm.decode_cp_a2a_allocate_mnnvl_workspace(mapping(r, cp_size=RANKS), mnnvl_config=config(b)), r, RANKS),
    "contexts merged, memory": lambda b, r, w: comm.decode_cp_a2a_lse_reduce_create_workspace(0 if w else 3, 1, RANKS, 16, BF16, b),
    "contexts merged, dtype": lambda b, r, w: comm.decode_cp_a2a_lse_reduce_create_workspace(3, 1, RANKS, 16, torch.float32 if w else BF16, b),
    "pcie": lambda b, r, w: comm.PcieIpcAllReduceWorkspace(b, "8" if w else 8),
    "pcie, type": lambda b, r, w: comm.PcieIpcAllReduceWorkspace(b, 64).all_reduce([1] if w else X[0].clone()),
    "gathered norms": lambda b, r, w: mnnvl_cutedsl_ag.MNNVLCuteDSLAllGatherDualNormWorkspace(RANKS, r, 0 if w else 4, 16, group=b),
}


def outcome(function, *args):
    try:
        return None, function(*args)
    except Exception as error:
        return error, None


def check_all(backend, rank):
    os.environ["FLASHINFER_COMM_TIMEOUT_S"] = "30"
    kept = []  # what a rank holds while others wait for it
    for name, call in CASES.items():
        error, result = outcome(call, backend, rank, rank == 1)
        kept.append((error, result))
        assert error is not None, f"{name}: no error"
        if rank != 1:
            assert "rank 1" in str(error) and "did not" not in str(error), (name, error)
    kept.clear()


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_what_is_wrong_on_one_rank_is_an_error_of_all():
    reports = rank_checks.run("spawn", RANKS, [check_all])
    assert reports == {("check_all", rank): None for rank in range(RANKS)}, "\n".join(filter(None, reports.values()))
