# SPDX-License-Identifier: Apache-2.0
"""FlashInfer's collectives that are compositions here, on two processes: workspaces of PCIe, NVSHMEM's functions, norms around a gather or a sum."""
import pytest
import rank_checks
import torch

import flashinfer
import flashinfer.comm as comm
from flashinfer.comm import mnnvl_cutedsl_ag as gathered
from flashinfer.comm import mnnvl_cutedsl_moe_finalize as finalize
from flashinfer.comm import nvshmem, trtllm_mnnvl_ar

RANKS, TOKENS, HIDDEN = 2, 6, 64
BF16 = torch.bfloat16


def rand(seed, *shape, dtype=BF16):
    return torch.randn(shape or (TOKENS, HIDDEN), generator=torch.Generator().manual_seed(seed)).to(dtype)


def summed(*tensors):
    """In the order of ranks, rounded after each."""
    total = tensors[0]
    for t in tensors[1:]:
        total = (total.float() + t.float()).to(t.dtype)
    return total


def rms(x, weight, eps, before=False):
    x, weight = x.double(), weight.double()
    x = x * weight if before else x
    x = x * torch.rsqrt(x.square().mean(-1, keepdim=True) + eps)
    return x if before else x * weight


def check_pcie(backend, rank):
    x, rows = rand(rank), [rand(r) for r in range(RANKS)]
    with comm.PcieIpcAllReduceWorkspace(backend, 4096) as w:
        out = torch.empty_like(x)
        assert w.supports(x) and torch.equal(w.all_reduce(x), summed(*rows))
        assert w.all_reduce(x, out=out) is out and torch.equal(out, summed(*rows))
        assert torch.equal(w.all_reduce(x.half()), summed(*(r.half() for r in rows)))  # the other 16-bit type
        assert w.prepare([(TOKENS, HIDDEN), (1, 8)]) == {(TOKENS, HIDDEN): None, (1, 8): None} and w.element_size == 2
        w.rebind_stream()
        assert torch.equal(w.all_reduce(x, config=w.launch_config(x)), w.all_reduce(x, config=w.tuned_launch_config(x)))
        with pytest.raises(ValueError if rank else RuntimeError, match="inp of shape .99, 64. has 6336 elements" if rank else "rank 1 raised ValueError"):
            w.prepare([(99, HIDDEN)]) if rank else w.all_reduce(x)
        assert w.tune([HIDDEN], dtype=BF16, repeat=3) == {} and not w.supports(x.float()) and not w.supports(x[:, ::2]) and not w.supports(rand(0, 4097)[:3])
        with pytest.raises(ValueError if rank else RuntimeError, match="inp is torch.float32" if rank else "rank 1 raised ValueError: PcieIpcAllReduceWorkspace.all_reduce"):
            w.all_reduce(x.float() if rank else x)
        assert torch.equal(w.all_reduce(x), summed(*rows))
    with pytest.raises(RuntimeError, match="the workspace is destroyed"):
        w.all_reduce(x)
    with comm.PcieIpcAllGatherWorkspace(backend, 4096, torch.float32) as w:
        assert torch.equal(w.all_gather(x.float()), torch.cat(rows).float())
        with pytest.raises(ValueError, match="inp is torch.bfloat16"):
            w.all_gather(x)
    with comm.PcieIpcReduceScatterWorkspace(backend, 4096) as w:
        half = TOKENS // RANKS
        assert torch.equal(w.reduce_scatter(x), summed(*rows)[half * rank:half * (rank + 1)])
        with pytest.raises(ValueError, match=r"inp.shape\[0\] is 5, but must be a multiple of the 2 ranks"):
            w.reduce_scatter(x[:5])
    with pytest.raises(ValueError, match="rank 1: max_numel is 3, but must be a positive multiple of 8"):
        comm.PcieIpcAllReduceWorkspace(backend, 3 if rank else 8)
    with pytest.raises(ValueError, match="has .max_numel, dtype, max_blocks."):
        comm.PcieIpcAllReduceWorkspace(backend, 8 + 8 * rank)


def check_nvshmem(backend, rank):
    uid = backend.bcast(nvshmem.get_unique_id() if rank == 0 else nvshmem.alloc_empty_unique_id(), 0)
    with pytest.raises(RuntimeError, match=r"nvshmem.my_pe: init\(\) was not called"):
        nvshmem.my_pe()
    nvshmem.init(type(uid).from_data(uid._data), rank, RANKS)
    assert (nvshmem.my_pe(), nvshmem.n_pes()) == (rank, RANKS)
    for dtype in (BF16, torch.float32, torch.int64, torch.uint8):
        source, dest = (nvshmem.malloc((RANKS, 4), dtype, "cpu") for _ in range(2))
        source.copy_(torch.arange(4 * RANKS).view(RANKS, 4) + 100 * rank)
        nvshmem.alltoall(dest, source)
        assert dest.tolist() == [[100 * r + 4 * rank + i for i in range(4)] for r in range(RANKS)]
        nvshmem.barrier_all()
        nvshmem.free_tensor(source)
    with pytest.raises(ValueError, match="is not one of malloc"):
        nvshmem.free_tensor(torch.zeros(3))
    with pytest.raises(NotImplementedError, match="nvshmem.malloc: rank 0: device is cuda:0"):
        nvshmem.malloc((4,), BF16, "cuda:0")
    wrong = torch.zeros(RANKS, 3, dtype=torch.uint8)
    with pytest.raises(ValueError, match="an even number of bytes"):
        nvshmem.alltoall(wrong, wrong)
    nvshmem.barrier_all_on_current_stream()
    nvshmem.finalize()


def check_gathered_norms(backend, rank):
    columns = HIDDEN // RANKS
    whole, residual = rand(1), rand(2, TOKENS, HIDDEN, dtype=torch.float32)
    shard = whole[:, columns * rank:columns * (rank + 1)].contiguous()
    alpha, beta = rand(3, HIDDEN, dtype=torch.float32), rand(4, HIDDEN, dtype=torch.float32)
    next_weight, post_weight = rand(5, HIDDEN), rand(6, HIDDEN)
    w = gathered.MNNVLCuteDSLAllGatherDualNormWorkspace(RANKS, rank, TOKENS, HIDDEN, group=backend)
    assert w.check_support(True) and not w.check_support(rank == 0)
    w.compile()
    assert w.fits(shard) and not w.fits(whole)
    assert gathered.supports_all_gather_gated_residual_next_rmsnorm(w, shard, residual, alpha, beta, next_weight, post_weight)
    assert not gathered.supports_all_gather_gated_residual_next_rmsnorm(w, shard, residual, alpha, beta, next_weight[:8])
    new, ffn = gathered.all_gather_gated_residual_next_rmsnorm(shard, residual, alpha, beta, next_weight, w, post_eps=1e-5, next_eps=1e-6, next_gain_center=1.0,
                                                               post_weight=post_weight, post_gain_center=0.5)
    b = whole.double() * (post_weight.double() + 0.5)
    want = alpha.double() * residual.double() + beta.double() * b * torch.rsqrt(b.square().mean(-1, keepdim=True) + 1e-5)
    torch.testing.assert_close(new.double(), want, rtol=1e-5, atol=1e-5)
    torch.testing.assert_close(ffn.double(), rms(want, next_weight.double() + 1, 1e-6), rtol=1 / 128, atol=1e-4)
    with pytest.raises(ValueError if rank else RuntimeError, match="do not fit each other" if rank else "rank 1 raised ValueError: all_gather_gated"):
        gathered.all_gather_gated_residual_next_rmsnorm(whole if rank else shard, residual, alpha, beta, next_weight, w, post_eps=1e-5, next_eps=1e-6)
    w.destroy()
    w = gathered.MNNVLCuteDSLAllGatherNormQuantWorkspace(RANKS, rank, TOKENS, HIDDEN, group=backend)
    assert gathered.supports_all_gather_rmsnorm_fp4_quantize(w, shard, next_weight, torch.tensor([3.0]))
    assert not gathered.supports_all_gather_rmsnorm_fp4_quantize(w, whole, next_weight, torch.tensor([3.0]))
    for gain in (0.0, 1.0):
        codes, scales = gathered.all_gather_rmsnorm_fp4_quantize(shard, next_weight, torch.tensor([3.0]), w, eps=1e-6, gain_center=gain)
        assert codes.shape == (TOKENS, HIDDEN // 2) and scales.shape == (TOKENS, HIDDEN // 16)
        numbers = torch.tensor([0, 0.5, 1, 1.5, 2, 3, 4, 6, 0, -0.5, -1, -1.5, -2, -3, -4, -6], dtype=torch.float64)
        values = torch.stack([numbers[(codes & 15).long()], numbers[(codes >> 4).long()]], -1).flatten(1)
        factors = scales.view(torch.float8_e4m3fn).double() / 3
        y = rms(whole, next_weight.double() + gain, 1e-6)
        close = (values * factors.repeat_interleave(16, 1) - y).abs() <= factors.repeat_interleave(16, 1) * 1.02 + y.abs() / 64  # half of the step from 4 to 6
        assert close.all()
    w.destroy()
    with pytest.raises(ValueError, match="hidden_dim 63"):
        gathered.MNNVLCuteDSLAllGatherNormQuantWorkspace(RANKS, rank, TOKENS, 63, group=backend)


def routes(rank):
    """Rows of each token's three experts: some of this rank, some of none."""
    return torch.randint(-2, 12, (TOKENS, 3), generator=torch.Generator().manual_seed(40 + rank)).int()


def finalized(x, index, weights, gamma, eps, before):
    total = torch.zeros(TOKENS, HIDDEN, dtype=torch.float64)
    for t in range(TOKENS):
        for k in range(3):
            if 0 <= index[t, k] < x.shape[0]:
                total[t] += rms(x[index[t, k], :HIDDEN], gamma, eps, before) * weights[t, k].double()
    return total


def check_experts(backend, rank):
    gamma = rand(7, HIDDEN)
    rows, weights = [rand(50 + r, 10, HIDDEN + 8) for r in range(RANKS)], [rand(60 + r, TOKENS, 3, dtype=torch.float32) for r in range(RANKS)]
    w = finalize.MNNVLCuteDSLMoEFinalizeAllReduceWorkspace(RANKS, rank, TOKENS, HIDDEN, 3, group=backend)
    out = torch.empty(TOKENS, HIDDEN, dtype=BF16)
    assert finalize.supports_moe_finalize_rmsnorm_allreduce(w, rows[rank], weights[rank], routes(rank), gamma, out)
    assert not finalize.supports_moe_finalize_rmsnorm_allreduce(w, rows[rank], weights[rank], routes(rank).long(), gamma, out)
    for before in (True, False):
        finalize.moe_finalize_rmsnorm_allreduce(rows[rank], weights[rank], routes(rank), gamma, out, w, eps=1e-5, gain_center=0.25, weight_before_norm=before)
        want = sum(finalized(rows[r], routes(r), weights[r], gamma.double() + 0.25, 1e-5, before) for r in range(RANKS))
        torch.testing.assert_close(out.double(), want, rtol=1 / 64, atol=0.05)
        assert len(set(backend.allgather(bytes(out.view(torch.uint8).flatten().tolist())))) == 1
    w.destroy()

    with pytest.raises(RuntimeError, match="was not called"):
        comm.tp_moe_finalize_rmsnorm(rows[rank], weights[0], routes(0), gamma, out, eps=1e-5, gain_center=0.0, weight_before_norm=True)
    assert comm.init_tp_moe_finalize_rmsnorm(backend) and comm.supports_tp_moe_finalize_rmsnorm(rows[rank], weights[0], routes(0), gamma, out)
    for before in (True, False):
        comm.tp_moe_finalize_rmsnorm(rows[rank], weights[0], routes(0), gamma, out, eps=1e-5, gain_center=0.25, weight_before_norm=before)
        want = finalized(rows[0].double() + rows[1].double(), routes(0), weights[0], gamma.double() + 0.25, 1e-5, before)
        torch.testing.assert_close(out.double(), want, rtol=1 / 64, atol=0.02)
    with pytest.raises(ValueError if rank else RuntimeError, match="do not fit together" if rank else "rank 1 raised ValueError: tp_moe"):
        comm.tp_moe_finalize_rmsnorm(rows[rank], weights[0], routes(0).long() if rank else routes(0), gamma, out, eps=1e-5, gain_center=0.0, weight_before_norm=True)


def check_two_tracks(backend, rank):
    weight = rand(8, 2, HIDDEN)
    xs = [rand(70 + r, TOKENS, 2, HIDDEN) for r in range(RANKS)]
    residual = rand(9, TOKENS, 2, HIDDEN)
    w = comm.cake_fused_norm_combine_create_workspace(rank=rank, world_size=RANKS, max_tokens=TOKENS, hidden=HIDDEN, group=backend)
    norm, h, total = torch.empty_like(residual), torch.empty_like(residual), torch.empty(TOKENS, HIDDEN, dtype=BF16)
    comm.cake_fused_norm_combine(xs[rank], residual, weight, norm_out=norm, residual_out=h, collective_out=total, workspace=w, epsilon=1e-5)
    sums = [(x.float() + residual.float()).bfloat16() for x in xs]
    assert torch.equal(h, sums[rank])
    torch.testing.assert_close(norm.double(), rms(sums[rank], weight, 1e-5), rtol=1 / 128, atol=1e-6)
    torch.testing.assert_close(total.double(), sum(rms(s, weight, 1e-5).mean(1) for s in sums), rtol=1 / 64, atol=0.02)
    with pytest.raises(ValueError, match="cake_fused_norm_combine: x torch.float32"):
        comm.cake_fused_norm_combine(xs[rank].float(), residual, weight, norm_out=norm, residual_out=h, collective_out=total, workspace=w, epsilon=1e-5)
    assert isinstance(w, comm.CakeFusedNormCombineWorkspace) and w.rotation_bytes == 2 * RANKS * TOKENS * HIDDEN
    comm.cake_fused_norm_combine_destroy_workspace(w)
    assert w.closed
    assert comm.cake_fused_norm_combine_workspace_bytes(8, 10)["rotation_bytes"] == 2 * 8 * 10 * 2560


def check_mnnvl_functions(backend, rank):
    w = comm.create_allreduce_fusion_workspace("mnnvl", RANKS, rank, TOKENS, HIDDEN, BF16, comm_backend=backend)
    x, residual, gamma, Quant = rand(rank), rand(9), rand(8, HIDDEN), trtllm_mnnvl_ar.MNNVLQuantType
    for strategy in trtllm_mnnvl_ar.MNNVLAllreduceFusionStrategy:
        assert torch.equal(trtllm_mnnvl_ar.trtllm_mnnvl_allreduce(x, w, False, strategy=strategy), summed(rand(0), rand(1)))
    n, h = trtllm_mnnvl_ar.trtllm_mnnvl_fused_allreduce_add_rmsnorm(x, residual, gamma, w, weight_bias=1.0)
    assert torch.equal(h, (summed(rand(0), rand(1)).float() + residual.float()).bfloat16())
    torch.testing.assert_close(n.double(), rms(h, gamma.double() + 1, torch.finfo(BF16).eps), rtol=1 / 128, atol=0)
    quantised = trtllm_mnnvl_ar.trtllm_mnnvl_fused_allreduce_add_rmsnorm_quant
    codes, scales, residual_out, norm = quantised(x, residual, gamma, w, output_scale=0.5, quant_type=Quant.FP8, weight_bias=1.0)
    assert scales is None and norm is None and torch.equal(residual_out, h)
    assert torch.equal(codes.float(), (n.float() / 0.5).clamp(-448, 448).to(torch.float8_e4m3fn).float())
    out = torch.empty_like(x)
    codes, scales, _, norm = quantised(x, residual, gamma, w, output=out, quant_type=Quant.DYNAMIC_FP8, weight_bias=1.0)
    assert norm is out and torch.equal(out, n) and torch.equal(scales[:, 0], n.float().abs().amax(-1) / 448)
    for layout in (0, 2):
        codes, scales, _, _ = quantised(x, residual, gamma, w, output_scale=3.0, layout_code=layout, quant_type=Quant.NVFP4, weight_bias=1.0)
        want = flashinfer.fp4_quantize(n, torch.tensor([3.0]), 16, False, layout == 0)
        assert torch.equal(codes, want[0]) and torch.equal(scales.view(torch.uint8).flatten(), want[1].view(torch.uint8).flatten())
    with pytest.raises(ValueError if rank else RuntimeError, match="quant_type is 0" if rank else "rank 1 raised ValueError: trtllm_mnnvl"):
        quantised(x, residual, gamma, w, quant_type=Quant.NONE if rank else Quant.FP8)
    w.destroy()


def check_prepared_product(backend, rank):
    w, x = rand(9, HIDDEN, 24), rand(rank)
    product = comm.prepare_all_gather_matmul(x, w, backend)
    assert torch.equal(product(x), torch.cat([rand(0), rand(1)]) @ w)
    assert torch.equal(product(x[:2]), torch.cat([rand(0)[:2], rand(1)[:2]]) @ w)
    with pytest.raises(ValueError if rank else RuntimeError, match="at most 6 rows" if rank else "rank 1 raised ValueError: prepare_all_gather_matmul"):
        product(torch.cat([x, x]) if rank else x)


def check_heads(backend, rank):
    """What the class does in one call is these functions around an exchange."""
    q = rand(1, 2, 3, 4 * RANKS, 8)
    packed = comm.pack_ulysses_qkv_head_chunk(q, q + 1, q + 2, world_size=RANKS, head_offset=1, head_count=2)
    assert packed.shape == (2, 3, 2 * RANKS, 24) and torch.equal(packed[:, :, 2:4, 8:16], q[:, :, 5:7] + 1)
    out = torch.zeros(2, 3, 4 * RANKS, 8, dtype=BF16)
    comm.merge_ulysses_output_head_chunk(packed[..., :8], world_size=RANKS, local_heads=4, head_offset=1, out=out)
    assert torch.equal(out[:, :, 1:3], q[:, :, 1:3]) and torch.equal(out[:, :, 5:7], q[:, :, 5:7]) and not out[:, :, ::4].any()
    with pytest.raises(ValueError, match="head_offset is 3 and head_count 2"):
        comm.pack_ulysses_qkv_head_chunk(q, q, q, world_size=RANKS, head_offset=3, head_count=2)
    with pytest.raises(ValueError, match="head_offset is 3"):
        comm.merge_ulysses_output_head_chunk(packed[..., :8], world_size=RANKS, local_heads=4, head_offset=3, out=out)


reports, test_between_processes = rank_checks.tests(globals(), "spawn", RANKS)


def test_what_needs_no_group():
    assert comm.is_mnnvl_cutedsl_supported(2, 64, BF16, max_token_num=4) is False and comm.ULYSSES_BACKENDS == ("auto", "nvlink", "nccl")
    with pytest.raises(NotImplementedError, match="PcieIpcLaunchConfig is not available: it chooses among kernels"):
        comm.PcieIpcLaunchConfig()


@pytest.mark.parametrize("function, arguments, name", [
    (gathered.all_gather_gated_residual_next_rmsnorm, dict(branch_shard=(3, 32), residual=(3, 64)), "all_gather_gated_residual_next_rmsnorm_sh32_h64"),
    (comm.tp_moe_finalize_rmsnorm, dict(gemm2_permuted=(9, 80), expert_weights=(3, 4), norm_weight=(64,)), "tp_moe_finalize_rmsnorm_e4_h64_hp80"),
    (comm.PcieIpcAllReduceWorkspace.all_reduce, dict(inp=(3, 64)), "pcie_ipc_all_reduce_h64"),
    (comm.PcieIpcReduceScatterWorkspace.reduce_scatter, dict(inp=(4, 64)), "pcie_ipc_reduce_scatter_h64"),
])
def test_definitions(function, arguments, name):
    made = function.fi_trace(**{key: torch.empty(shape, device="meta", dtype=BF16) for key, shape in arguments.items()})
    assert made["name"] == name and "stage:comm" in made["tags"]
