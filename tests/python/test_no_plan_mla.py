# SPDX-License-Identifier: Apache-2.0
"""Latent attention without plan(): against the wrapper and torch, as engines call it, and its errors."""
import math

import pytest
import torch

import flashinfer
from dense_attention import attention, causal
from flashinfer import decode, mla
from flashinfer.xqa import xqa_mla

WS = torch.zeros(0, dtype=torch.uint8)
SCALE = 1 / math.sqrt(192)


@pytest.fixture
def latent():
    torch.manual_seed(0)
    return dict(cache=torch.randn(9, 16, 192, dtype=torch.bfloat16), tables=torch.randperm(9, dtype=torch.int32).view(3, 3),
                lens=torch.tensor([48, 7, 23], dtype=torch.int32), query=torch.randn(3, 2, 16, 192, dtype=torch.bfloat16))


def trtllm_mla(x, query=None, **more):
    arguments = dict(query=x["query"] if query is None else query, kv_cache=x["cache"].unsqueeze(1), workspace_buffer=WS, qk_nope_head_dim=128,
                     kv_lora_rank=128, qk_rope_head_dim=64, block_tables=x["tables"], seq_lens=x["lens"], max_seq_len=48, bmm1_scale=SCALE)
    return decode.trtllm_batch_decode_with_kv_cache_mla(**{**arguments, **more})


def test_mla_gives_what_the_wrapper_gives(latent):
    w = flashinfer.BatchMLAPagedAttentionWrapper(WS)
    metadata = flashinfer.mla.MLAPlanMetadata.dense(torch.tensor([0, 2, 4, 6], dtype=torch.int32), latent["tables"], latent["lens"])
    w.plan(metadata=metadata, num_heads=16, head_dim_ckv=128, head_dim_kpe=64, page_size=16, causal=True, sm_scale=SCALE,
           q_data_type=torch.bfloat16, kv_data_type=torch.bfloat16, lse_mode="base2")
    out, lse = w.run(query=latent["query"].view(6, 16, 192), kv_cache=latent["cache"], return_lse=True)
    ours, ours_lse = trtllm_mla(latent, return_lse=True)
    assert ours.shape == (3, 2, 16, 128) and torch.equal(ours.view(6, 16, 128), out)
    assert ours_lse.shape == (6, 16) and torch.equal(ours_lse, lse)
    natural = torch.empty(3, 2, 16)
    trtllm_mla(latent, lse=natural, return_lse=True, return_lse_base="basee")
    torch.testing.assert_close(natural.view(6, 16), lse * math.log(2))
    assert mla.trtllm_prefill_with_kv_cache_mla is decode.trtllm_batch_decode_with_kv_cache_mla


def test_mla_of_listed_tokens(latent):
    tokens = torch.full((3, 2, 48), 10 ** 6, dtype=torch.int32)  # behind a row's keys there may be anything
    for b, keys in enumerate(latent["lens"].tolist()):
        of_request = [int(latent["tables"][b][j // 16]) * 16 + j % 16 for j in range(keys)]
        for i in range(2):
            tokens[b, i, :keys - 1 + i] = torch.tensor(of_request[:keys - 1 + i])
    listed = trtllm_mla(latent, block_tables=tokens, sparse_mla_top_k=48)
    torch.testing.assert_close(listed, trtllm_mla(latent), rtol=2e-2, atol=2e-3)
    tokens[1, 0] = -1  # a row without a token
    assert trtllm_mla(latent, block_tables=tokens, sparse_mla_top_k=48)[1, 0].abs().max() == 0


def test_xqa_mla(latent):
    query = latent["query"][:, :1]
    out = decode.xqa_batch_decode_with_kv_cache_mla(query, latent["cache"], WS, 128, 128, 64, latent["tables"], latent["lens"], 48, bmm1_scale=SCALE)
    assert out.shape == (3, 1, 16, 128) and torch.equal(out, trtllm_mla(latent, query))
    heads = torch.empty(3, 16, 128, dtype=torch.bfloat16)
    assert trtllm_mla(latent, query, out=heads) is heads and torch.equal(heads, out[:, 0])
    plain = torch.empty(3, 1, 16, 128, dtype=torch.bfloat16)
    assert xqa_mla(query, latent["cache"], latent["cache"][..., :128], latent["tables"], latent["lens"].view(3, 1).to(torch.uint32), plain, WS,
                   torch.zeros(0, dtype=torch.uint32), 16, q_scale=SCALE) is None
    torch.testing.assert_close(plain, out, rtol=2e-2, atol=2e-3)


@pytest.mark.parametrize("error, message, change", [
    (ValueError, r"kv_cache.shape\[-1\] is 192, but kv_lora_rank \+ qk_rope_head_dim is 128 \+ 32|query.shape", dict(qk_rope_head_dim=32)),
    (ValueError, r"seq_lens\[0\] is 48, but block_tables has room for 0..32", dict(block_tables=torch.zeros(3, 2, dtype=torch.int32))),
    (ValueError, "has page 9, but kv_cache has 9 pages", dict(block_tables=torch.full((3, 3), 9, dtype=torch.int32))),
    (ValueError, "max_seq_len is 40, but request 0 has 48", dict(max_seq_len=40)),
    (ValueError, "return_lse_base", dict(return_lse_base="10")),
    (ValueError, "seq_lens is missing", dict(seq_lens=None)),
    (ValueError, "has token 144, but kv_cache has 144", dict(block_tables=torch.full((3, 2, 4), 144, dtype=torch.int32), sparse_mla_top_k=4)),
    (ValueError, "kv_cache is uint8.9, 1, 16, 656., but rows of bytes have 656, for kv_lora_rank 512", dict(kv_cache=torch.zeros(9, 1, 16, 656, dtype=torch.uint8),
                                                                                                     sparse_mla_top_k=4))])
def test_errors_of_mla(latent, error, message, change):
    with pytest.raises(error, match=message):
        trtllm_mla(latent, **change)


def test_shares_of_a_latent_context_add_up():
    """The same for MLA, whose rows say what the last row of their request sees."""
    torch.manual_seed(12)
    q, latent = torch.randn(2, 3, 16, 192).bfloat16(), torch.randn(2, 48, 192).bfloat16()
    ends = torch.tensor([41, 8])  # tokens that the last of three query rows sees

    def share(rank, world, **more):
        lens = torch.tensor([len(range(rank, int(n), world)) for n in ends]).int()
        cache = torch.zeros(6, 16, 192).bfloat16()
        for b in range(2):
            cache.view(2, 48, 192)[b, :lens[b]] = latent[b, rank:int(ends[b]):world]
        return mla.trtllm_batch_decode_with_kv_cache_mla(**dict(dict(
            query=q, kv_cache=cache, workspace_buffer=WS, qk_nope_head_dim=64, kv_lora_rank=128, qk_rope_head_dim=64,
            block_tables=torch.arange(6).int().view(2, 3), seq_lens=lens, max_seq_len=48, bmm1_scale=SCALE, return_lse=True, enable_dcp=True, cp_world=world,
            cp_rank=rank, causal_seqlens_kv_global=ends.int()), **more))

    (out_a, lse_a), (out_b, lse_b) = share(0, 2), share(1, 2)
    merged, lse = flashinfer.merge_state(out_a.flatten(0, 1), lse_a, out_b.flatten(0, 1), lse_b)
    whole, whole_lse = share(0, 1, enable_dcp=False, causal_seqlens_kv_global=None)
    torch.testing.assert_close(merged.double(), whole.flatten(0, 1).double(), rtol=2e-2, atol=1e-2)
    torch.testing.assert_close(lse, whole_lse, rtol=1e-3, atol=1e-3)
    for b in range(2):
        keys = int(ends[b])
        want, _ = attention(q[b], latent[b, :keys, None], latent[b, :keys, None, :128], SCALE, causal(3, keys))
        torch.testing.assert_close(merged[3 * b:3 * b + 3].double(), want, rtol=2e-2, atol=1e-2)
    for message, change in (("enable_dcp=True requires return_lse=True", dict(return_lse=False)), ("DCP arguments require enable_dcp=True; got cp_world=2", dict(enable_dcp=False)),
                            ("cp_rank must satisfy 0 <= cp_rank < cp_world, got cp_rank=2, cp_world=2", dict(cp_rank=2)),
                            ("causal_seqlens_kv_global is required when enable_dcp=True", dict(causal_seqlens_kv_global=None)),
                            (r"causal_seqlens_kv_global is int32\[1\]", dict(causal_seqlens_kv_global=torch.tensor([4]).int())),
                            ("but row 2 of the request sees 22 keys", dict(causal_seqlens_kv_global=torch.tensor([43, 8]).int())),
                            ("is for dense attention, but sparse_mla_top_k is 4", dict(sparse_mla_top_k=4))):
        with pytest.raises(ValueError, match=message):
            share(0, 2, **change)


@pytest.mark.parametrize("heads_first", [False, True])
def test_latent_rows_of_bytes(heads_first):
    """DeepSeek V3.2's rows: 512 e4m3, four float32 scales, 64 bf16."""
    torch.manual_seed(4)
    latent, rope, scales = torch.randn(96, 512) * 3, torch.randn(96, 64).bfloat16(), torch.rand(96, 4) * 0.1 + 0.02
    codes = latent.to(torch.float8_e4m3fn)
    rows = torch.cat((codes.view(torch.uint8), scales.view(torch.uint8), rope.view(torch.uint8)), 1)
    exact = torch.cat(((codes.double().view(96, 4, 128) * scales[..., None].double()).view(96, 512), rope.double()), 1)
    q, lists = torch.randn(3, 2, 8, 576).bfloat16(), torch.randint(-10, 96, (3, 2, 24)).int()
    cache = rows.view(6, 1, 16, 656) if heads_first else rows.view(6, 16, 656)
    out, lse = decode.trtllm_batch_decode_with_kv_cache_mla(q, cache, WS, 512, 512, 64, lists, None, 24, sparse_mla_top_k=24, bmm1_scale=0.03, return_lse=True, backend="sparse")
    for b in range(3):
        for i in range(2):
            keys = exact[lists[b, i][lists[b, i] >= 0].long()][:, None]
            want, want_lse = attention(q[b, i][None], keys, keys[..., :512], 0.03, torch.ones(1, len(keys), dtype=torch.bool))
            torch.testing.assert_close(out[b, i].double(), want[0], rtol=2e-2, atol=1e-2)
            torch.testing.assert_close(lse[2 * b + i].double(), want_lse[0], rtol=3e-3, atol=3e-3)


def test_latent_pages_given_twice(latent):
    twice = torch.stack((latent["tables"], latent["tables"]), 1)
    assert torch.equal(trtllm_mla(latent, block_tables=twice, uses_shared_paged_kv_idx=False), trtllm_mla(latent))
    twice[:, 0], twice[:, 1] = 0, 1
    with pytest.raises(ValueError, match=r"block_tables\[0\]\[:, 0\] is 0 and 1, but keys and values are on the same pages"):
        trtllm_mla(latent, block_tables=twice, uses_shared_paged_kv_idx=False)


@pytest.fixture
def cutlass():
    torch.manual_seed(9)
    x = dict(q_nope=torch.randn(2, 4, 512).bfloat16(), q_pe=torch.randn(2, 4, 64).bfloat16(), ckv_cache=torch.randn(6, 16, 512).bfloat16(),
             kpe_cache=torch.randn(6, 16, 64).bfloat16(), kv_len=torch.tensor([40, 9], dtype=torch.int32),
             page_table=torch.tensor([[4, 1, 0], [2, 5, 3]], dtype=torch.int32))
    return flashinfer.mla.BatchMLAPagedAttentionWrapper(WS, backend="cutlass"), x


def test_cutlass_mla_needs_no_plan(cutlass):
    wrapper, x = cutlass
    out, lse = wrapper.run(**x, return_lse=True)
    planned = flashinfer.mla.BatchMLAPagedAttentionWrapper(WS)
    planned.plan(torch.tensor([0, 1, 2]), torch.tensor([0, 3, 4]), torch.tensor([4, 1, 0, 2]), x["kv_len"], 4, 512, 64, 16, False, SCALE, torch.bfloat16, torch.bfloat16)
    tensors = {n: x[n] for n in ("q_nope", "q_pe", "ckv_cache", "kpe_cache")}
    assert all(map(torch.equal, planned.run(**tensors, return_lse=True), (out, lse)))
    narrow, wide = torch.empty(2, 4, 512, dtype=torch.float8_e4m3fn), torch.empty(2, 4, 512)
    assert wrapper.run(**x, out=narrow, o_scale=0.01) is narrow
    wrapper.run(**x, out=wide)
    torch.testing.assert_close(narrow.float() * 0.01, wide, rtol=0.07, atol=1e-4)


@pytest.mark.parametrize("message, change", [
    ("out tensor must be provided", dict(o_scale=0.1)), ("out must be an FP8 tensor", dict(o_scale=0.1, out=torch.empty(2, 4, 512).bfloat16())),
    ("o_scale is missing", dict(out=torch.empty(2, 4, 512, dtype=torch.float8_e4m3fn))), ("kv_len is missing", dict(kv_len=None)),
    *(("o_scale must be a finite positive value", dict(o_scale=s, out=torch.empty(2, 4, 512, dtype=torch.float8_e4m3fn))) for s in (0.0, -1.0, math.inf, math.nan)),
    (r"page_table is int32\[2\], but must be \[2, pages\]", dict(page_table=torch.zeros(2, dtype=torch.int32))), ("has room for 0..32", dict(page_table=torch.zeros(2, 2, dtype=torch.int32))),
    ("q_pe is", dict(q_pe=torch.randn(2, 4, 32).bfloat16()))])
def test_errors_of_cutlass_mla(cutlass, message, change):
    wrapper, x = cutlass
    with pytest.raises(ValueError, match=message):
        wrapper.run(**{**x, **change})


def test_what_belongs_to_cutlass_mla_alone(cutlass):
    _, x = cutlass
    other = flashinfer.mla.BatchMLAPagedAttentionWrapper(WS, backend="fa2")
    with pytest.raises(ValueError, match="o_scale is only supported with the cutlass back end, but backend is 'fa2'"):
        other.run(x["q_nope"], x["q_pe"], x["ckv_cache"], x["kpe_cache"], out=torch.empty(2, 4, 512, dtype=torch.float8_e4m3fn), o_scale=0.1)
    with pytest.raises(RuntimeError, match="plan.. has not been called"):
        other.run(**x)


def test_mixed_dtypes_of_concat_mla_k_are_flashinfers_error():
    k, nope = torch.empty(4, 8, 192).bfloat16(), torch.empty(4, 8, 128).bfloat16()
    with pytest.raises(RuntimeError, match="k_rope.dtype is float16, but k.dtype is bfloat16"):
        flashinfer.concat_ops.concat_mla_k(k, nope, torch.empty(4, 1, 64).half())
