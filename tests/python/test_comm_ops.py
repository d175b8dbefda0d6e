# SPDX-License-Identifier: Apache-2.0
"""flashinfer.comm between processes: Ulysses, mixed communication, sums of codes, and the older names of the all-reduces."""
import dataclasses
import itertools

import pytest
import rank_checks
import torch

import flashinfer.comm as comm
from flashinfer.comm import mixed_comm, nvshmem_allreduce

RANKS = 2
TOKENS, HIDDEN = 6, 64


def inputs(rank, *shape, dtype=torch.bfloat16):
    return torch.randn(shape or (TOKENS, HIDDEN), generator=torch.Generator().manual_seed(rank)).to(dtype)


def summed(*shape, dtype=torch.bfloat16):
    return (inputs(0, *shape, dtype=dtype).float() + inputs(1, *shape, dtype=dtype).float()).to(dtype)


def check_ulysses(backend, rank):
    whole = inputs(7, 3, 8, 6, 16)  # [batch, sequence, heads, d] of all ranks
    part, mine = whole[:, 4 * rank:4 * rank + 4].contiguous(), whole[:, :, 3 * rank:3 * rank + 3].contiguous()
    with comm.UlyssesCommunicator(backend, max_elems=3 * part.numel(), dtype=torch.bfloat16) as ulysses:
        assert (ulysses.backend, ulysses.world_size, ulysses.fallback_reason) == ("shm", RANKS, None)
        workspace, out = ulysses.create_workspace(), torch.empty_like(mine)
        assert workspace == comm.UlyssesWorkspace(max_elems=3 * part.numel(), dtype=torch.bfloat16, device="cpu")
        assert torch.equal(ulysses.scatter_heads(part), mine)
        assert ulysses.scatter_heads(part, out=out, workspace=workspace) is out and torch.equal(out, mine)
        assert torch.equal(ulysses.gather_heads(mine), part)
        q, k, v = (t.transpose(1, 2).contiguous().transpose(1, 2) for t in (part, part + 1, part + 2))  # other strides
        fused = ulysses.scatter_qkv_head_chunk(q, k, v, head_offset=1, head_count=2, workspace=workspace)
        assert torch.equal(fused, torch.cat([mine[:, :, 1:], mine[:, :, 1:] + 1, mine[:, :, 1:] + 2], -1))
        gathered = torch.zeros_like(part)
        for first, count in ((0, 1), (1, 2)):
            band = mine[:, :, first:first + count]
            assert ulysses.gather_output_head_chunk(band, local_heads=3, head_offset=first, out=gathered) is gathered
        assert torch.equal(gathered, part)
        # What is wrong on one rank ends the call of both, and the next one works.
        for wrong, text in ((part.float(), "x is torch.float32"), (part.repeat(4, 1, 1, 1), "but max_elems is"), (part[:, :, :3].contiguous(), "divisible by the 2 ranks")):
            with pytest.raises(ValueError if rank else RuntimeError, match=text if rank else "rank 1 raised ValueError"):
                ulysses.scatter_heads(wrong if rank else part)
            assert torch.equal(ulysses.gather_heads(mine), part)
    with pytest.raises(RuntimeError, match="use-after-close: the communicator is closed"):
        ulysses.gather_heads(mine)
    with pytest.raises(comm.UlyssesBackendError, match="needs GPUs"):
        comm.UlyssesCommunicator(backend, max_elems=8, dtype=torch.float16, backend="nvlink")
    with pytest.raises(ValueError, match="rank 1.*max_elems is 0"):
        comm.UlyssesCommunicator(backend, max_elems=1 - rank, dtype=torch.float16)
    with pytest.raises(ValueError, match="has .max_elems, dtype, backend."):
        comm.UlyssesCommunicator(backend, max_elems=8 + rank, dtype=torch.float16)
    assert comm.resolve_ulysses_backend(group=backend).backend == "nccl"
    with pytest.raises(ValueError, match="rank 1 has 'auto'"):
        comm.resolve_ulysses_backend("auto" if rank else "nccl", backend)


def check_ulysses_functions(backend, rank):
    buffers = comm.create_shared_buffer(1 << 16, backend), comm.create_shared_buffer(comm.vllm_meta_size(), backend)
    with pytest.raises(ValueError, match="full_nvlink=False is not supported"):
        comm.init_ulysses_a2a(*buffers, rank, RANKS, False)
    fa = comm.init_ulysses_a2a(*buffers, rank, RANKS, True)
    whole = inputs(7, 1, 4, 6, 8, dtype=torch.float32)
    part, mine = whole[:, 2 * rank:2 * rank + 2].contiguous(), whole[:, :, 3 * rank:3 * rank + 3].contiguous()
    for mode, (x, y) in enumerate(((part, mine), (mine, part))):
        out = torch.empty_like(y)
        comm.ulysses_a2a(fa, x, out, 1, 2, 6, 8, mode)
        assert torch.equal(out, y)
    with pytest.raises(ValueError, match="mode is 2"):
        comm.ulysses_a2a(fa, part, mine, 1, 2, 6, 8, 2)
    comm.dispose_ulysses_a2a(fa)
    with pytest.raises(ValueError, match="fa is"):
        comm.dispose_ulysses_a2a(fa)
    packed = comm.pack_strided_memory(buffers[0][rank], 64, 1024, 3, torch.float32, 0)
    packed[2, 15] = 3
    assert comm.pack_strided_memory(buffers[0][rank] + 2048 + 60, 4, 4, 1, torch.float32, 0).item() == 3
    comm.trtllm_lamport_initialize_all(*(buffers[0][rank] + 1024 * i for i in range(3)), 256, torch.float32)
    assert (torch.signbit(packed) & (packed == 0)).all()
    with pytest.raises(ValueError, match="there are no"):
        comm.trtllm_lamport_initialize(buffers[0][rank], 1 << 15, torch.float32)
    for pointers in buffers:
        comm.free_shared_buffer(pointers)


def check_mixed(backend, rank):
    def handler(tp, dp, **more):
        return comm.MixedCommHandler(rank, RANKS, rank, RANKS, 0, 1, tp, dp, 1, 1, torch.bfloat16, torch.device("cpu"), comm_backend=backend, **more)

    Op, x = mixed_comm.MixedCommOp, inputs(rank)
    h = handler(RANKS, None)
    assert (h.tp_size, h.dp_size, h.tp_rank, h.get_valid_op_list()) == (RANKS, 1, rank, [Op.ALLREDUCE])
    assert h.select_autotune_mode(Op.ALLREDUCE, x) == mixed_comm.MixedCommMode.NCCL_ONE
    for mode in (None, *h.get_valid_mode_list()):
        assert torch.equal(comm.run_mixed_comm(Op.ALLREDUCE, h, x, mode=mode), summed())
    with pytest.raises(ValueError, match="Invalid op: ALLGATHER"):
        comm.run_mixed_comm(Op.ALLGATHER, h, x)
    with pytest.raises(ValueError if rank else RuntimeError, match="x_in.dtype" if rank else "rank 1 raised ValueError: run_mixed_comm"):
        comm.run_mixed_comm(Op.ALLREDUCE, h, x.float() if rank else x)
    h.shutdown()
    with pytest.raises(AssertionError):
        h.shutdown()
    h = handler(None, RANKS, use_autotune=False)
    assert h.valid_op_list == h.get_valid_op_list() == [Op.ALLGATHER, Op.REDUCESCATTER] and h.dp_rank == rank
    assert torch.equal(comm.run_mixed_comm(Op.ALLGATHER, h, x), torch.cat([inputs(r) for r in range(RANKS)]))
    h.checkpoint_prepare()
    with pytest.raises(RuntimeError, match="workspace has no group"):
        comm.run_mixed_comm(Op.ALLGATHER, h, x)
    h.checkpoint_restore(backend)
    half, out = TOKENS // RANKS, torch.empty(TOKENS // RANKS, HIDDEN, dtype=torch.bfloat16)
    assert comm.run_mixed_comm(Op.REDUCESCATTER, h, x, out) is out and torch.equal(out, summed()[half * rank:half * (rank + 1)])
    with pytest.raises(ValueError, match="divisible by dp_size"):
        comm.run_mixed_comm(Op.REDUCESCATTER, h, x[:5])
    with pytest.raises(ValueError, match="x_out is"):
        comm.run_mixed_comm(Op.ALLGATHER, h, x, out)
    h.shutdown()
    with pytest.raises(ValueError, match="local_tp_size is 3"):
        handler(3, None)
    with pytest.raises((RuntimeError, NotImplementedError), match="cuda"):  # there is no GPU
        comm.MixedCommHandler(rank, RANKS, rank, RANKS, 0, 1, RANKS, None, 1, 1, torch.bfloat16, "cuda:0", comm_backend=backend)


def check_sums_and_products(backend, rank):
    x = inputs(rank)
    got = comm.quantized_all_reduce(x, backend, scale_group=64)
    torch.testing.assert_close(got.float(), summed().float(), rtol=0.1, atol=0.2)
    assert backend.allgather(got.view(torch.int16).tolist())[0] == got.view(torch.int16).tolist()
    assert comm.quantized_all_reduce(x, backend, scale_group=64, output=x) is x and torch.equal(x, got)
    with pytest.raises(ValueError, match="block_size .100. must be divisible"):
        comm.quantized_all_reduce(x, backend, block_size=100)
    w = inputs(9, HIDDEN, 24)
    rows = torch.cat([inputs(r) for r in range(RANKS)])
    assert torch.equal(comm.all_gather_matmul(inputs(rank), w, backend), rows @ w)
    with pytest.raises(ValueError if rank else RuntimeError, match="w torch.bfloat16" if rank else "rank 1 raised ValueError: all_gather_matmul"):
        comm.all_gather_matmul(inputs(rank), w.t() if rank else w, backend)
    nvshmem = nvshmem_allreduce.NVSHMEMAllReduce(rank, RANKS, TOKENS * HIDDEN, torch.bfloat16, "cpu", backend)
    out = torch.empty(TOKENS, HIDDEN, dtype=torch.bfloat16)
    nvshmem.all_reduce(inputs(rank), out)
    assert torch.equal(out, summed())
    with pytest.raises(ValueError, match="inp is torch.float32"):
        nvshmem.all_reduce(inputs(rank).float(), out)
    nvshmem.shutdown()


def check_trtllm(backend, rank):
    handles, table, sizes = comm.trtllm_create_ipc_workspace_for_all_reduce_fusion(rank, RANKS, TOKENS, HIDDEN, create_metadata=True, comm_backend=backend)
    assert table.dtype == torch.int64 and table.numel() == 3 * RANKS + 1 and sizes["buffer_size"] == RANKS * TOKENS * HIDDEN * 2
    workspace = comm.create_allreduce_fusion_workspace("trtllm", RANKS, rank, TOKENS, HIDDEN, torch.bfloat16, comm_backend=backend)
    residual, gamma, h, n = inputs(3), inputs(4, HIDDEN), *(torch.empty(TOKENS, HIDDEN, dtype=torch.bfloat16) for _ in range(2))
    common = dict(world_size=RANKS, world_rank=rank, workspace_ptrs=table, launch_with_pdl=False)
    rows = dict(token_num=TOKENS, hidden_dim=HIDDEN, **common)
    fusion = dict(trigger_completion_at_end=True, fp32_acc=False, use_oneshot=None, allreduce_out=None, quant_out=None, scale_out=None, rms_gamma=gamma, rms_eps=1e-5,
                  scale_factor=None, layout_code=None, **rows)
    comm.trtllm_allreduce_fusion(inputs(rank).view(-1), pattern_code=1, residual_in=residual, residual_out=h, norm_out=n, metadata=sizes, **fusion)
    want = torch.empty_like(h)
    assert torch.equal(comm.allreduce_fusion(inputs(rank), workspace, 1, residual_in=residual, residual_out=want, rms_gamma=gamma, rms_eps=1e-5), n) and torch.equal(want, h)
    with pytest.raises(ValueError, match="Workspace validation failed"):
        comm.trtllm_allreduce_fusion(inputs(rank), pattern_code=0, residual_in=None, residual_out=None, norm_out=None, metadata=sizes, **{**fusion, "token_num": 99})
    with pytest.raises(ValueError, match="pattern_code is 7"):
        comm.trtllm_allreduce_fusion(inputs(rank), pattern_code=7, residual_in=None, residual_out=None, norm_out=None, **fusion)

    experts = 2
    moe = dict(moe_reduction_device_num_experts=experts, moe_reduction_scale_input=inputs(rank + 20, experts, TOKENS, dtype=torch.float32),
               moe_reduction_active_experts_token_input=inputs(rank + 30, experts * TOKENS, HIDDEN), moe_reduction_token_input=inputs(rank + 40))
    comm.trtllm_moe_allreduce_fusion(residual_in=residual, rms_gamma=gamma, rms_eps=1e-5, scale_factor=1.0, layout_code=None, moe_allreduce_out=None, residual_out=h,
                                     norm_out=n, quant_out=None, scale_out=None, weight_bias=1.0, **moe, **rows)
    assert torch.equal(comm.allreduce_fusion(moe["moe_reduction_token_input"], workspace, 6, residual_in=residual, rms_gamma=gamma, rms_eps=1e-5, weight_bias=1.0, **moe), n)

    index = torch.arange(TOKENS * 2, dtype=torch.int32).view(TOKENS, 2)
    scales = inputs(rank + 50, TOKENS, 2, dtype=torch.float32)
    permuted = inputs(rank + 60, TOKENS * 2, HIDDEN)
    comm.trtllm_moe_finalize_allreduce_fusion(permuted, residual, gamma, index, n, h, None, None, eps=1e-5, shared_expert_output=None, expert_scale_factor=scales,
                                              routed_scaling_factor=2.5, **common)
    finalize = dict(residual_in=residual, rms_gamma=gamma, rms_eps=1e-5, expanded_idx_to_permuted_idx=index, expert_scale_factor=scales * 2.5)
    assert torch.equal(comm.allreduce_fusion(permuted, workspace, comm.AllReduceFusionPattern.kMoEFinalizeARResidualRMSNorm, **finalize), n)
    codes = comm.allreduce_fusion(permuted, workspace, comm.AllReduceFusionPattern.kMoEFinalizeARResidualRMSNormFP8Quant, scale_factor=0.5, **finalize)
    assert torch.equal(codes.float(), (n.float() / 0.5).clamp(-448, 448).to(torch.float8_e4m3fn).float())
    workspace.destroy()
    comm.trtllm_destroy_ipc_workspace_for_all_reduce_fusion(handles)
    with pytest.raises(ValueError, match="workspace_ptrs is not a tensor"):
        comm.trtllm_moe_finalize_allreduce_fusion(permuted, residual, gamma, index, n, h, None, None, eps=1e-5, shared_expert_output=None, expert_scale_factor=scales,
                                                  routed_scaling_factor=None, **common)
    with pytest.raises(ValueError, match="workspace is"):
        comm.trtllm_destroy_ipc_workspace_for_all_reduce(handles)


reports, test_between_processes = rank_checks.tests(globals(), "spawn", RANKS)


# ---- one process ----
def test_one_rank():
    x = inputs(0, 1, 4, 2, 8)
    with comm.UlyssesCommunicator(max_elems=64, dtype=torch.bfloat16) as ulysses:
        assert ulysses.scatter_heads(x) is x and ulysses.gather_heads(x) is x
    handler = comm.MixedCommHandler(0, 1, 0, 1, 0, 1, None, None, None, None, torch.float16, "cpu")
    rows = inputs(0, dtype=torch.float16)
    assert torch.equal(comm.run_mixed_comm(mixed_comm.MixedCommOp.ALLREDUCE, handler, rows), rows)
    handler.shutdown()


def test_groups_of_torch_distributed(tmp_path):
    """Their objects have methods such as allgather of their own."""
    dist = torch.distributed
    dist.init_process_group("gloo", init_method=f"file://{tmp_path}/store", rank=0, world_size=1)
    try:
        group, x = dist.group.WORLD, inputs(0, 1, 4, 2, 8)
        with comm.UlyssesCommunicator(group, max_elems=64, dtype=torch.bfloat16) as ulysses:
            assert ulysses.scatter_heads(x) is x
        comm.free_shared_buffer(comm.create_shared_buffer(64, group), group)
        assert comm.decode_cp_a2a_lse_reduce_create_workspace(4, 2, 1, 64, torch.bfloat16, group).shape[0] == 1
        rows = inputs(0, 3, 16, dtype=torch.float16)
        summed = torch.empty_like(rows)
        nvshmem_allreduce.NVSHMEMAllReduce(0, 1, 64, torch.float16, "cpu", group).all_reduce(rows, summed)
        assert torch.equal(summed, rows)
    finally:
        dist.destroy_process_group()


def topologies(n):
    """Ranks of one host whose GPUs all reach each other through NVLink."""
    names = [f"gpu-{r}" for r in range(n)]
    return [comm.UlyssesRankTopology(r, "host", r, names[r], str(r), *({o: True for o in names if o != names[r]} for _ in range(2))) for r in range(n)]


def changed(n, rank, **change):
    all_ranks = topologies(n)
    all_ranks[rank] = dataclasses.replace(all_ranks[rank], **change)
    return all_ranks


def cases():
    """Ranks, and words of the reason against NVLink; None: it is taken."""
    yield topologies(2), None
    yield topologies(8), None
    yield topologies(3), "world size 3"
    yield topologies(1), "world size 1"
    yield topologies(2)[::-1], "malformed"
    yield [topologies(2)[0], dataclasses.replace(topologies(2)[1], rank=5)], "malformed"
    yield changed(4, 2, hostname="other"), "multiple hosts"
    yield changed(4, 2, device_uuid="gpu-1"), "ranks 1 and 2 have the same physical GPU"
    yield changed(2, 1, device_uuid=""), "identity unknown: rank 1"
    yield changed(2, 1, probe_error="no driver"), "rank 1: no driver"
    yield changed(4, 3, peer_nvlink={"gpu-0": True, "gpu-1": True}), "no NVLink between rank 3 and rank 2"
    yield changed(2, 0, peer_p2p={"gpu-1": False}), "no P2P access from rank 0 to rank 1"
    yield changed(2, 0, pair_errors={"gpu-1": "lost"}), "NVLink probe failed between rank 0 and rank 1: lost"


def test_decisions_about_nvlink():
    for ranks, reason in cases():
        decision = comm.decide_ulysses_backend("auto", ranks)
        assert decision.backend == ("nccl" if reason else "nvlink") and (reason or f"{len(ranks)} ranks") in decision.reason, ranks
        assert comm.decide_ulysses_backend("nccl", ranks).backend == "nccl"
        if reason:
            with pytest.raises(comm.UlyssesBackendError, match=f"backend='nvlink' requested but.*{reason}"):
                comm.decide_ulysses_backend("nvlink", ranks)
    assert comm.decide_ulysses_backend("auto", topologies(3), (3,)).backend == "nvlink"
    with pytest.raises(ValueError, match="backend must be one of .*, not 'shm'"):
        comm.decide_ulysses_backend("shm", topologies(2))
    probed = comm.probe_ulysses_rank_topology("cpu", 3)
    assert probed.rank == 3 and probed.hostname and probed.probe_error


def test_numbers():
    assert [comm.AllReduceStrategyType.NCCL, comm.AllReduceStrategyType.TWOSHOT, comm.AllReduceStrategyConfig.PUSH_MODE] == [0, 5, 2]
    assert comm.AllReduceFusionOp.MOE_FINALIZE_ALLREDUCE_RESIDUAL_RMS_NORM == 9
    assert [*itertools.chain(mixed_comm.MixedCommOp, mixed_comm.MixedCommMode)] == [*range(5), *range(9)]
