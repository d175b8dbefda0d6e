# SPDX-License-Identifier: Apache-2.0
"""Experts and contexts on four processes: all-to-all, a mixture of experts that gives what one process computes, merged attention."""
import inspect
import os
import subprocess
import sys
import warnings

import pytest
import rank_checks
import torch

import flashinfer
import flashinfer.comm as comm
from flashinfer.comm import trtllm_moe_alltoall as functions

RANKS, EXPERTS, TOP_K, HIDDEN, MOST = 4, 10, 3, 64, 9


def mapping(rank):
    return comm.Mapping(world_size=RANKS, rank=rank, tp_size=RANKS, moe_ep_size=RANKS)


def made(backend, rank, **more):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)
        return comm.MoeAlltoAll(mapping(rank), MOST, TOP_K, EXPERTS, mnnvl_config=comm.mnnvl.MnnvlConfig(comm_backend=backend),
                                **({"hidden_size": HIDDEN} | more))


def tokens(rank):
    return MOST - 2 * rank


def inputs(rank, dtype=torch.bfloat16):
    g = torch.Generator().manual_seed(rank)
    ids = torch.stack([torch.randperm(EXPERTS, generator=g)[:TOP_K] for _ in range(tokens(rank))]).int()
    return torch.randn(tokens(rank), HIDDEN, generator=g).to(dtype), ids, torch.rand(tokens(rank), TOP_K, generator=g)


def first_expert(rank):
    """Experts are spread as evenly as possible; the first ranks have one more."""
    return sum(EXPERTS // RANKS + (r < EXPERTS % RANKS) for r in range(rank))


def sent(source, rank):
    """Tokens of `source` with an expert of `rank`."""
    ids = inputs(source)[1]
    return ((ids >= first_expert(rank)) & (ids < first_expert(rank + 1))).any(-1).nonzero().flatten()


# ---- what each rank checks ----
def check_dispatch_and_combine(backend, rank):
    a2a = made(backend, rank, eplb_stats_num_experts=6)
    x, ids, scales = inputs(rank)
    for in_workspace in (False, True):
        got = a2a.dispatch(ids, [x, ids, scales], MOST, invalid_token_expert_id=-1, expert_id_payload_index=1,
                           eplb_local_stats=torch.arange(6, dtype=torch.int32) + 10 * rank)
        assert [tuple(t.shape) for t in got] == [(RANKS, MOST, HIDDEN), (RANKS, MOST, TOP_K), (RANKS, MOST, TOP_K)]
        assert a2a.eplb_gathered_stats.tolist() == [[10 * r + i for i in range(6)] for r in range(RANKS)]
        for source in range(RANKS):
            rows = sent(source, rank)
            for tensor, want in zip(got, inputs(source)):
                assert torch.equal(tensor[source, :len(rows)], want[rows])
            assert (got[1][source, len(rows):] == -1).all()
        payload = a2a.get_combine_payload_tensor_in_workspace(MOST, HIDDEN, torch.bfloat16) if in_workspace else torch.empty(RANKS, MOST, HIDDEN).bfloat16()
        payload.copy_(got[0] * (rank + 1))
        memory = torch.empty(tokens(rank), HIDDEN).bfloat16()
        out = a2a.combine(payload, MOST, payload_in_workspace=in_workspace, output=memory)
        assert out is memory and a2a.eplb_gathered_stats is None
        want = torch.zeros(tokens(rank), HIDDEN)
        owner = torch.tensor([sum(e >= first_expert(r + 1) for r in range(RANKS)) for e in range(EXPERTS)])
        for t in range(tokens(rank)):
            for r in dict.fromkeys(owner[ids[t].long()].tolist()):  # in the order of the experts
                want[t] += (x[t] * (r + 1)).float()
        assert torch.equal(out, want.bfloat16())


def check_functions(backend, rank):
    size = functions.moe_a2a_get_workspace_size_per_rank(RANKS, MOST, 2 * HIDDEN + 4 * TOP_K, 2 * HIDDEN)
    comm.mnnvl.MnnvlMemory.set_comm_from_config(mapping(rank), comm.mnnvl.MnnvlConfig(comm_backend=backend))
    memory = comm.mnnvl.MnnvlMemory(mapping(rank), size)
    workspace = memory.as_torch_strided_tensor(torch.uint8)
    metainfo = functions.moe_a2a_initialize(workspace, rank, RANKS, MOST)
    x, ids, _ = inputs(rank)
    got, offset, stats = functions.moe_a2a_dispatch(ids, [x, ids], workspace, metainfo, MOST, rank, RANKS, TOP_K, EXPERTS)
    assert stats is None
    functions.moe_a2a_sanitize_expert_ids(got[1], workspace, metainfo, rank, EXPERTS)
    assert int((got[1] != EXPERTS).any(-1).sum()) == sum(len(sent(s, rank)) for s in range(RANKS))
    view = functions.moe_a2a_wrap_payload_tensor_in_workspace(workspace[rank], [RANKS, MOST], offset, offset + RANKS * MOST * HIDDEN * 2, torch.bfloat16)
    view.copy_(got[0])
    out = functions.moe_a2a_combine(view, tokens(rank), workspace, metainfo, MOST, rank, RANKS, TOP_K, offset, payload_in_workspace=True,
                                    output_dtype=torch.float32)
    copies = torch.stack([torch.isin(torch.arange(tokens(rank)), sent(rank, r)) for r in range(RANKS)]).sum(0)
    assert torch.equal(out, x.float() * copies[:, None])


def check_memory_for_the_functions(backend, rank):
    Memory, of = comm.mnnvl.MnnvlMemory, mapping(rank)
    Memory.initialize()
    Memory.set_comm_from_config(of, comm.mnnvl.MnnvlConfig(comm_backend=backend))
    assert Memory.get_comm(of) is backend and not Memory.supports_mnnvl() and not Memory.support_nvlink()
    size = comm.MoeAlltoAll.get_moe_workspace_size_per_rank(RANKS, TOP_K, MOST, HIDDEN)
    made = comm.MoeAlltoAll.get_workspace(size, rank, RANKS, MOST, of)
    assert made["mnnvl_mem"].mapped
    x, ids, _ = inputs(rank)
    got, offset, _ = functions.moe_a2a_dispatch(ids, [x], made["workspace"], made["metainfo"], MOST, rank, RANKS, TOP_K, EXPERTS)
    for source in range(RANKS):
        rows = sent(source, rank)
        assert torch.equal(got[0][source, :len(rows)], inputs(source)[0][rows])
    functions.moe_a2a_combine(got[0], tokens(rank), made["workspace"], made["metainfo"], MOST, rank, RANKS, TOP_K, offset)
    with pytest.raises(ValueError, match="rank 0: ep_rank is 1, ep_size 4"):
        comm.MoeAlltoAll.get_workspace(size, rank + 1, RANKS, MOST, of)


def check_checkpoints(backend, rank):
    a2a = made(backend, rank)
    x, ids, _ = inputs(rank)

    def sums():
        got, = a2a.dispatch(ids, [x], MOST)
        with pytest.raises(RuntimeError, match="checkpoint_prepare: the last dispatch has no combine yet"):
            a2a.checkpoint_prepare()
        return a2a.combine(got, MOST)

    before = sums()
    with pytest.raises(RuntimeError, match="there was no checkpoint_prepare"):
        a2a.checkpoint_restore(backend)
    a2a.checkpoint_prepare()
    a2a.checkpoint_prepare()
    with pytest.raises(RuntimeError, match="checkpoint_prepare has given the memory back"):
        a2a.dispatch(ids, [x], MOST)
    with pytest.raises(ValueError, match="MoeAlltoAll.checkpoint_restore: rank 0: mapping has moe_ep_size 4 and moe_ep_rank 3"):
        a2a.checkpoint_restore(backend.Split(0, -rank))  # the ranks in another order
    a2a.checkpoint_restore(backend.Split(0, rank))
    assert torch.equal(sums(), before)


def check_mask(backend, rank):
    a2a = made(backend, rank, enable_rank_mask=True)
    if rank == 2:
        return  # the others go on without it
    mask = comm.moe_a2a_active_rank_mask([0, 1, 3], RANKS)
    x, ids, _ = inputs(rank)
    got, = a2a.dispatch(ids, [x], MOST, active_rank_mask=mask)
    out = a2a.combine(got, MOST, output_dtype=torch.float32, active_rank_mask=mask)
    copies = torch.stack([torch.isin(torch.arange(tokens(rank)), sent(rank, r)) for r in (0, 1, 3)]).sum(0)
    assert torch.equal(out, x.float() * copies[:, None])
    with pytest.raises(ValueError, match="active_rank_mask is None, but rank 2 was left out of an earlier call"):
        a2a.dispatch(ids, [x], MOST)


def check_devices(backend, rank):
    """Ranks that choose different devices all get an error."""
    with pytest.raises(ValueError, match="the device of rank 1 is 'cuda', but that of rank 0 is 'cpu'"):
        made(backend, rank, device="cuda:0" if rank == 1 else "cpu")
    with pytest.raises(ValueError, match="rank 2: device is 'tpu'"):
        made(backend, rank, device="tpu" if rank == 2 else "cpu")


def experts(x, ids, scales, first, count, weights):
    """The weighted sum of the results of experts [first, first + count); other ids add nothing."""
    own = (ids >= first) & (ids < first + count)
    return flashinfer.fused_moe.cutlass_fused_moe(x, torch.where(own, ids - first, 0).int(), torch.where(own, scales, 0.0),
                                                  weights[0][first:first + count].contiguous(), weights[1][first:first + count].contiguous(), x.dtype, None)[0]


def check_a_mixture_of_experts_is_that_of_one_process(backend, rank):
    g = torch.Generator().manual_seed(99)
    weights = [torch.randn(EXPERTS, 2 * 48, HIDDEN, generator=g) / 8, torch.randn(EXPERTS, HIDDEN, 48, generator=g) / 8]
    a2a = made(backend, rank, workspace_size_per_rank=functions.moe_a2a_get_workspace_size_per_rank(RANKS, MOST, 4 * HIDDEN + 8 * TOP_K, 4 * HIDDEN))
    x, ids, scales = inputs(rank, torch.float32)
    rows, row_ids, row_scales = a2a.dispatch(ids, [x, ids, scales], MOST, invalid_token_expert_id=-1, expert_id_payload_index=1)
    first, count = first_expert(rank), first_expert(rank + 1) - first_expert(rank)
    row_scales = torch.where(row_ids >= 0, row_scales, 0.0)  # rows without a token hold anything
    rows = torch.where((row_ids >= 0).any(-1, keepdim=True), rows, 0.0)
    y = experts(rows.view(-1, HIDDEN), row_ids.view(-1, TOP_K), row_scales.view(-1, TOP_K), first, count, weights)
    out = a2a.combine(y.view(RANKS, MOST, HIDDEN), MOST)
    alone = experts(x, ids, scales, 0, EXPERTS, weights)
    assert alone.abs().max() > 0.1
    torch.testing.assert_close(out, alone, rtol=1e-5, atol=1e-5)


def check_errors(backend, rank):
    with pytest.raises(ValueError, match="rank 1: max_num_tokens is 9, top_k 3 and num_experts 2"):
        comm.MoeAlltoAll(mapping(rank), MOST, TOP_K, 2 if rank == 1 else EXPERTS, hidden_size=HIDDEN, mnnvl_config=comm.mnnvl.MnnvlConfig(backend))
    with pytest.raises(ValueError, match="hidden_size must be given"):
        made(backend, rank, hidden_size=None)
    a2a = made(backend, rank)
    x, ids, _ = inputs(rank)
    with pytest.raises(AssertionError, match="combine called before successful dispatch"):
        a2a.combine(torch.zeros(RANKS, MOST, HIDDEN).bfloat16(), MOST)
    with pytest.raises(RuntimeError, match="before successful dispatch"):
        a2a.get_combine_payload_tensor_in_workspace(MOST, HIDDEN, torch.bfloat16)
    with pytest.raises(ValueError, match="enable_rank_mask is False"):
        a2a.dispatch(ids, [x], MOST, active_rank_mask=comm.moe_a2a_active_rank_mask(range(RANKS), RANKS))
    with pytest.raises(ValueError, match="bytes a rank"):
        a2a.dispatch(ids, [x.float().repeat(1, 9)], MOST)
    got = a2a.dispatch(ids, [x], MOST)
    with pytest.raises(AssertionError, match="dispatch called twice without combine"):
        a2a.dispatch(ids, [x], MOST)
    a2a.combine(got[0], MOST)
    with pytest.raises(RuntimeError, match="moe_a2a_dispatch"):  # one sends another type
        a2a.dispatch(ids, [x.half() if rank == 3 else x], MOST)


def slices(rank, rows=(7, 5), d=24):
    g = torch.Generator().manual_seed(50 + rank)
    return torch.randn(*rows, RANKS, d, generator=g), torch.randn(*rows, RANKS, 2, generator=g), torch.randn(*rows, RANKS, generator=g) * 3


def check_context_parallel_alltoall(backend, rank):
    config = comm.mnnvl.MnnvlConfig(comm_backend=backend)
    workspace = comm.decode_cp_a2a_allocate_mnnvl_workspace(comm.Mapping(world_size=RANKS, rank=rank, cp_size=RANKS), mnnvl_config=config)
    comm.decode_cp_a2a_init_workspace(workspace, rank, RANKS)
    assert workspace.shape == (RANKS, comm.decode_cp_a2a_workspace_size(RANKS) // 8)
    for dtype, out in ((torch.bfloat16, None), (torch.float16, 1)):
        o, stats, _ = slices(rank)
        memory = (torch.empty_like(o.to(dtype)), torch.empty_like(stats)) if out else None
        got = comm.decode_cp_a2a_alltoall(o.to(dtype), stats, workspace, rank, RANKS, out=memory)
        assert memory is None or got[0] is memory[0] and got[1] is memory[1]
        for p in range(RANKS):
            theirs = slices(p)
            assert torch.equal(got[0][..., p, :], theirs[0][..., rank, :].to(dtype)) and torch.equal(got[1][..., p, :], theirs[1][..., rank, :])
    # A ValueError, and FlashInfer's RuntimeError.
    for name, wrong in (("partial_o", (o.double(), stats)), ("partial_o", (o.float(), stats)), ("softmax_stats", (o.half(), stats.half())),
                        ("softmax_stats", (o.half(), stats[..., :1].contiguous())), ("softmax_stats", (o.half(), torch.cat([stats, stats])))):
        for error in (ValueError, RuntimeError):
            with pytest.raises(error, match=f"decode_cp_a2a_alltoall.*: {name}"):
                comm.decode_cp_a2a_alltoall(*wrong, workspace, rank, RANKS)


def check_context_parallel_reduce(backend, rank):
    # A workspace for 3 rows: 35 go through it in pieces.
    workspace = comm.decode_cp_a2a_lse_reduce_create_workspace(3, 1, RANKS, 24, torch.bfloat16, backend)
    assert workspace.shape[1] * workspace.element_size() >= comm.decode_cp_a2a_lse_reduce_workspace_size(3, 1, RANKS, 24, torch.bfloat16)
    for mode, base in (("base2", 2.0), ("basee", torch.e)):
        all_o, all_lse = [], []
        for p in range(RANKS):
            o, _, lse = slices(p)
            lse[0, 0] = -torch.inf  # no rank has a key
            if p == 1:
                lse[1], o[1] = -torch.inf, torch.nan  # this one has none: its row is not read
                lse[2], lse[3], o[2:4] = torch.nan, torch.inf, torch.nan
            all_o.append(o.bfloat16()), all_lse.append(lse)
        got = comm.decode_cp_a2a_lse_reduce(all_o[rank], all_lse[rank], workspace, rank, RANKS, mode)
        o = torch.stack([t[..., rank, :] for t in all_o]).double()
        lse = torch.stack([t[..., rank] for t in all_lse]).double()
        lse = torch.where(lse < torch.inf, lse, -torch.inf)
        w = base ** (lse - lse.amax(0).clamp(min=-1e30))
        w = w / w.sum(0).clamp(min=1e-300)
        want = (torch.where((w > 0)[..., None], o, 0.0) * w[..., None]).sum(0)
        assert (got[0, 0] == 0).all()
        torch.testing.assert_close(got.double(), want, rtol=1 / 128, atol=1e-4)
    with pytest.raises(ValueError, match="lse_mode"):
        comm.decode_cp_a2a_lse_reduce(all_o[rank], all_lse[rank], workspace, rank, RANKS, "base10")


def check_vllm_all_reduce(backend, rank):
    pointers, buffer = comm.create_shared_buffer(comm.vllm_meta_size(), backend), comm.create_shared_buffer(1 << 21, backend)
    fa = comm.vllm_init_custom_ar(pointers, torch.empty(8, dtype=torch.uint8), rank, False)
    comm.vllm_register_buffer(fa, buffer)
    for dtype in (torch.bfloat16, torch.float16, torch.float32):
        for n in (8, 24, 512, 300_000):
            inputs = [torch.randn(n, generator=torch.Generator().manual_seed(n + r)).to(dtype) for r in range(RANKS)]
            out = torch.empty(n, dtype=dtype)
            comm.vllm_all_reduce(fa, inputs[rank], out, buffer[rank], 1 << 21, 36)
            want = inputs[0].float()
            for x in inputs[1:]:
                want = want + x.float()
            assert torch.equal(out, want.to(dtype))
    with pytest.raises(ValueError, match="not in a buffer"):
        comm.vllm_all_reduce(fa, out, out, 0, 0, 1)
    with pytest.raises(ValueError, match="reg_buffer_sz_bytes is 16"):
        comm.vllm_all_reduce(fa, out, out, buffer[rank], 16, 1)
    with pytest.raises(ValueError, match="multiple of 16 bytes"):
        comm.vllm_all_reduce(fa, out[:3], out[:3], buffer[rank], 1 << 21, 1)
    handles, offsets = zip(*backend.allgather(comm.vllm_get_graph_buffer_ipc_meta(fa)))
    comm.vllm_register_graph_buffers(fa, handles, offsets)
    with pytest.raises(ValueError, match="there are buffers of graphs"):
        comm.vllm_register_graph_buffers(fa, [[1]], offsets)
    comm.vllm_dispose(fa)
    with pytest.raises(ValueError, match="must be what vllm_init_custom_ar returned"):
        comm.vllm_dispose(fa)
    comm.free_shared_buffer(buffer)


reports, test_between_processes = rank_checks.tests(globals(), "fork", RANKS)  # torch is imported once


# ---- one process ----
def test_masks_are_upstreams():
    assert comm.moe_a2a_active_rank_mask([0, 1, 3], 4).tolist() == [11]
    assert comm.moe_a2a_active_rank_mask(torch.tensor([0, 63]), 64).tolist() == [9223372036854775809]
    with pytest.raises(AssertionError, match=r"rank 5 out of range \[0, 4\)"):
        comm.moe_a2a_active_rank_mask([5], 4)


def test_views_of_a_workspace():
    memory = torch.arange(4096).to(torch.uint8).view(4, 1024)
    wrap = functions.moe_a2a_wrap_payload_tensor_in_workspace
    view = wrap(memory, [4, 2], 1024 + 64, 1024 + 128, torch.bfloat16)
    assert (tuple(view.shape), view.dtype, view.data_ptr()) == ((4, 2, 4), torch.bfloat16, memory.data_ptr() + 1088)
    assert wrap(memory[0], [2], 64, 128, torch.float32).shape == (2, 8)
    with pytest.raises(AssertionError, match="slice must fall within the workspace size per rank"):
        wrap(memory, [4, 2], 1000, 1064, torch.bfloat16)


def test_shared_buffers_and_memory_without_ranks():
    addresses = comm.create_shared_buffer(100)
    assert len(addresses) == 1
    comm.free_shared_buffer(addresses)
    with pytest.raises(ValueError, match="create_shared_buffer returned"):
        comm.free_shared_buffer(addresses)
    with pytest.raises(ValueError, match="workspace is uint8"):
        functions.moe_a2a_initialize(torch.zeros(1, 1 << 16, dtype=torch.uint8), 0, 1, 4)
    assert comm.mnnvl.MnnvlConfig() == comm.mnnvl.MnnvlConfig(None, 0, 1 << 29)


def test_sizes_of_context_parallel_workspaces_are_upstreams():
    size = comm.decode_cp_a2a_lse_reduce_workspace_size
    assert comm.decode_cp_a2a_workspace_size(4) == 16778240 and size(8, 2, 4, 64, torch.bfloat16) == 16944
    for arguments, error, text in (((0, 2, 4, 64, torch.bfloat16), ValueError, "workspace geometry must be positive"),
                                   ((8, 2, 4, 63, torch.bfloat16), ValueError, "head_dim rows must be 16-byte aligned"),
                                   ((8, 2, 4, 64, torch.float32), TypeError, "dtype must be torch.float16 or torch.bfloat16"),
                                   ((8, 2, 65, 64, torch.bfloat16), ValueError, "cp_size must not exceed 64")):
        with pytest.raises(error, match=text):
            size(*arguments)


def test_calls_are_recorded_with_the_name_of_their_group(tmp_path):
    script = """
import torch, flashinfer.comm as comm
a2a = comm.MoeAlltoAll(comm.Mapping(), 4, 2, 4, hidden_size=16, mnnvl_config=comm.mnnvl.MnnvlConfig(comm.ShmBackend("a-group", 0, 1)))
x, ids = torch.ones(3, 16).bfloat16(), torch.tensor([[0, 1], [2, 3], [1, 0]], dtype=torch.int32)
got = a2a.dispatch(ids, [x, ids], 4, invalid_token_expert_id=-1, expert_id_payload_index=1)
assert got[1][0, 3].tolist() == [-1, -1] and torch.equal(a2a.combine(got[0], 4), x)
"""
    environment = {**os.environ, "FLASHINFER_LOGLEVEL": "10", "FLASHINFER_DUMP_DIR": str(tmp_path / "dump")}
    subprocess.run([sys.executable, "-W", "ignore", "-c", script], env=environment, check=True, stdout=subprocess.DEVNULL)
    calls = [line for line in (tmp_path / "dump/session.jsonl").read_text().splitlines() if '"a-group"' in line]
    assert all(any(name in line for line in calls) for name in ("initialize", "dispatch_into", "sanitize_expert_ids", "combine"))


def test_sizes_and_signatures():
    size = comm.MoeAlltoAll.get_moe_workspace_size_per_rank
    assert size(8, 2, 128, 1024) - size(8, 2, 128, 1024 - 64) == 8 * 128 * 4 * 64
    assert size(8, 2, 128, 1024, extra_payload_bytes_per_token=128) - size(8, 2, 128, 1024) == 8 * 128 * 128
    with pytest.raises(ValueError, match="ep_size is 65"):
        size(65, 2, 128, 1024)
    assert list(inspect.signature(comm.moe_a2a_combine).parameters)[:10] == [
        "payload", "local_num_tokens", "workspace", "metainfo", "runtime_max_tokens_per_rank", "ep_rank", "ep_size", "top_k", "combine_payload_offset",
        "payload_in_workspace"]
