# SPDX-License-Identifier: Apache-2.0
"""The attention functions without plan() that have the names of upstream's special kernels: against the wrappers and torch, as engines
call them, and their errors."""
import math

import pytest
import torch

import flashinfer
from dense_attention import attention, causal
from flashinfer import cudnn, decode, mla, prefill
from flashinfer.xqa import xqa

WS = torch.zeros(0, dtype=torch.uint8)
SCALE = 1 / math.sqrt(192)


@pytest.fixture
def pages():
    torch.manual_seed(1)
    k, v = torch.randn(2, 6, 16, 2, 64).bfloat16()
    return dict(k=k, v=v, tables=torch.tensor([[4, 1, 0], [2, 5, 3]], dtype=torch.int32), lens=torch.tensor([40, 9], dtype=torch.int32))


def rows_of(x, b):
    """K and V of request b."""
    return [t[x["tables"][b].long()].reshape(48, 2, 64)[:x["lens"][b]] for t in (x["k"], x["v"])]


def test_xqa_masks(pages):
    q = torch.randn(6, 4, 64).bfloat16()
    among = torch.tensor([[[1, 0, 0], [1, 1, 0], [1, 0, 1]], [[1, 1, 1], [0, 1, 0], [0, 1, 1]]], dtype=torch.bool)
    words = torch.zeros(2, 3, 2, dtype=torch.uint16)
    words[..., 0] = (among.int() * torch.tensor([1, 2, 4])).sum(-1).to(torch.uint16)
    call = (q, (pages["k"], pages["v"]), WS, pages["tables"], pages["lens"], 48, 0.125, 0.5)
    out = decode.xqa_batch_decode_with_kv_cache(*call, q_len_per_req=3, mask=words)
    output = torch.empty(2, 1, 3, 4, 64, dtype=torch.bfloat16)
    assert xqa(q.view(2, 1, 3, 4, 64), pages["k"], pages["v"], pages["tables"], pages["lens"].view(2, 1).to(torch.uint32), output, WS,
               torch.zeros(0, dtype=torch.uint32), 2, 16, rcp_out_scale=0.5, q_seq_len=3, mask=words) is None
    assert torch.equal(output.view(6, 4, 64), out)
    for b in range(2):
        k, v = rows_of(pages, b)
        visible = torch.ones(3, len(k), dtype=torch.bool)
        visible[:, -3:] = among[b]
        expected, _ = attention(q[3 * b:3 * b + 3], k, v, 0.125, visible)
        torch.testing.assert_close(out[3 * b:3 * b + 3].double(), expected * 0.5, rtol=1e-2, atol=2e-3)


def test_cudnn_decode(pages):
    q = torch.randn(4, 4, 64).bfloat16()
    hnd = [pages[n].transpose(1, 2) for n in "kv"]  # views: any strides
    out, lse = decode.cudnn_batch_decode_with_kv_cache(q, *hnd, 0.125, WS, max_sequence_kv=48, actual_seq_lens_kv=pages["lens"].view(2, 1, 1, 1),
                                                       block_tables=pages["tables"], q_len_per_req=2, return_lse=True,
                                                       batch_offsets_q=torch.tensor([0, 512, 1024]), batch_offsets_o=torch.tensor([0, 512]))
    for b in range(2):
        expected, expected_lse = attention(q[2 * b:2 * b + 2], *rows_of(pages, b), 0.125, causal(2, pages["lens"][b]))
        torch.testing.assert_close(out[2 * b:2 * b + 2].double(), expected, rtol=1e-2, atol=2e-3)
        torch.testing.assert_close(lse[2 * b:2 * b + 2].double(), expected_lse, rtol=1e-4, atol=1e-4)


def ragged(**more):
    torch.manual_seed(2)
    q, k, v = torch.randn(9, 4, 192).bfloat16(), torch.randn(20, 4, 192).bfloat16(), torch.randn(20, 4, 128).bfloat16()
    return q, k, v, torch.tensor([0, 4, 9], dtype=torch.int32), torch.tensor([0, 13, 20], dtype=torch.int32)


def test_cudnn_prefill_of_vision_models():
    q, k, v, qo, kv = ragged()
    lens = [(x[1:] - x[:-1]).view(2, 1, 1, 1) for x in (qo, kv)]
    call = dict(q=q, k_cache=k, v_cache=v, scale=SCALE, workspace_buffer=WS, max_token_per_sequence=6, max_sequence_kv=16, actual_seq_lens_q=lens[0],
                actual_seq_lens_kv=lens[1], causal=False, batch_offsets_q=qo * 768, batch_offsets_o=qo * 512, batch_offsets_k=kv * 768,
                batch_offsets_v=kv * 512, is_cuda_graph_compatible=True)
    out, lse = cudnn.cudnn_batch_prefill_with_kv_cache(**call, return_lse=True)
    assert lse.shape == (2, 6, 4) and lse[0, 4:].max() == lse[1, 5:].max() == -math.inf
    for b in range(2):
        rows, keys = slice(qo[b], qo[b + 1]), slice(kv[b], kv[b + 1])
        expected, expected_lse = attention(q[rows], k[keys], v[keys], SCALE, torch.ones(1, dtype=torch.bool))
        torch.testing.assert_close(out[rows].double(), expected, rtol=1e-2, atol=2e-3)
        torch.testing.assert_close(lse[b, :len(expected_lse)].double(), expected_lse, rtol=1e-4, atol=1e-4)
    again, none = prefill.cudnn_batch_prefill_with_kv_cache(**call, return_lse=False)
    assert none is None and torch.equal(again, out)
    given = torch.empty_like(out)
    again, none = prefill.cudnn_batch_prefill_with_kv_cache(**call, return_lse=False, out=given)
    assert again is given and none is None
    for name in ("batch_offsets_q", "actual_seq_lens_q"):
        with pytest.raises(ValueError, match="batch_offsets_q and batch_offsets_o" if name == "batch_offsets_q" else "actual_seq_lens_q is missing"):
            prefill.cudnn_batch_prefill_with_kv_cache(**{**call, name: None}, return_lse=False)
    with pytest.raises(ValueError, match="actual_seq_lens_kv.0. is 14, but batch_offsets_k gives request 0 13 rows"):
        prefill.cudnn_batch_prefill_with_kv_cache(**{**call, "actual_seq_lens_kv": lens[1] + 1}, return_lse=False)


def deepseek(**more):
    q, k, v, qo, kv = ragged()
    arguments = dict(query=q, key=k, value=v, workspace_buffer=WS, seq_lens=kv[1:] - kv[:-1], max_q_len=5, max_kv_len=13, bmm1_scale=SCALE, bmm2_scale=1.0,
                     o_sf_scale=1.0, batch_size=2, window_left=-1, cum_seq_lens_q=qo, cum_seq_lens_kv=kv, enable_pdl=False, is_causal=True, return_lse=True)
    return prefill.trtllm_ragged_attention_deepseek(**{**arguments, **more})


def test_ragged_deepseek_as_sglang_calls_it():
    q, k, v, qo, kv = ragged()
    w = flashinfer.BatchPrefillWithRaggedKVCacheWrapper(torch.zeros(16, dtype=torch.uint8))
    w.plan(qo, kv, 4, 4, 192, head_dim_vo=128, causal=True, sm_scale=SCALE, q_data_type=torch.bfloat16)
    out, lse = w.run(q, k, v, return_lse=True)
    for ours in (deepseek(), flashinfer.prefill.fmha_varlen(q, k, v, qo, kv, causal=True, return_lse=True)):
        assert torch.equal(ours[0], out) and torch.equal(ours[1], lse)
    given = torch.empty_like(out)
    assert deepseek(out=given, return_lse=False) is given and torch.equal(given, out)


def test_fmha_v2_deepseek():
    q, k, v = (torch.randn(2, 5, 3, d).bfloat16() for d in (64, 64, 32))
    out = torch.empty(2, 5, 3, 32, dtype=torch.bfloat16)
    assert prefill.fmha_v2_prefill_deepseek(q, k, v, out, 3, 64, 5, 0.0, scale_bmm1=0.125, scale_bmm2=2.0) is out
    for b in range(2):
        torch.testing.assert_close(out[b].double(), 2 * attention(q[b], k[b], v[b], 0.125, causal(5, 5))[0], rtol=1e-2, atol=4e-3)


def test_fmha_v2_sm120():
    q, k, v = (torch.randn(2, 5, 3, 64).to(torch.float8_e4m3fn) for _ in range(3))
    for causal_too in (True, False):
        out = torch.empty(2, 5, 3, 64, dtype=torch.bfloat16)
        factors = dict(scale_bmm1_d=torch.tensor([0.125]), scale_bmm2_d=torch.tensor([2.0]))
        assert prefill.fmha_v2_prefill_sm120(q, k, v, out, num_heads=3, head_dim=64, seq_len=5, scale_softmax=1.0, causal=causal_too, **factors) is out
        for b in range(2):
            see = causal(5, 5) if causal_too else torch.ones(5, 5, dtype=torch.bool)
            want = 2 * attention(q[b].float(), k[b].float(), v[b].float(), 0.125, see)[0]
            torch.testing.assert_close(out[b].double(), want, rtol=2e-2, atol=2e-2)


def test_cudnn_offsets_in_elements():
    # What programs pass to the wrappers with backend="cudnn": offsets in elements, lengths of rank 4.
    q, k, v, qo, kv = ragged()
    lengths_q, lengths_kv = ((x[1:] - x[:-1]).view(-1, 1, 1, 1) for x in (qo, kv))
    plain, cudnn = (flashinfer.BatchPrefillWithRaggedKVCacheWrapper(torch.zeros(16, dtype=torch.uint8), "NHD", backend=b) for b in ("auto", "cudnn"))
    options = dict(head_dim_vo=128, causal=True, sm_scale=SCALE, q_data_type=torch.bfloat16)
    plain.plan(qo, kv, 4, 4, 192, **options)
    elements = dict(seq_lens=lengths_kv, seq_lens_q=lengths_q, max_token_per_sequence=int(lengths_q.max()), max_sequence_kv=int(lengths_kv.max()),
                    v_indptr=kv * 4 * 128, o_indptr=qo * 4 * 128)
    cudnn.plan(qo * 4 * 192, kv * 4 * 192, 4, 4, 192, **options, **elements)
    assert torch.equal(cudnn.run(q, k, v), plain.run(q, k, v))
    with pytest.raises(ValueError, match=r"v_indptr\[0\] is 1, but must be row 0 of 512 elements, as in kv_indptr"):
        cudnn.plan(qo * 4 * 192, kv * 4 * 192, 4, 4, 192, **options, **dict(elements, v_indptr=kv * 4 * 128 + 1))
    q_offsets = qo * 4 * 192
    q_offsets[1] += 1
    with pytest.raises(ValueError, match=r"qo_indptr\[1\] is \d+, but its last entry says that it is in elements, of which a row has 768"):
        cudnn.plan(q_offsets, kv * 4 * 192, 4, 4, 192, **options, **elements)


@pytest.mark.parametrize("error, message, change", [
    (ValueError, "batch_size is 3, but cum_seq_lens_kv describes 2 requests", dict(batch_size=3)),
    (ValueError, "max_kv_len is 12, but request 0 has 13 tokens of keys", dict(max_kv_len=12)),
    (ValueError, "attention_sinks|sinks is", dict(attention_sinks=torch.zeros(5))),
    (ValueError, r"sage_attn_sfs\[0\] belongs to 8-bit codes, but query.dtype is bfloat16", dict(sage_attn_sfs=(torch.zeros(1), None, None, None))),
    (TypeError, r"sage_attn_sfs\[1\] must be a tensor or None, but is int", dict(sage_attn_sfs=(None, 3, None, None))),
    (ValueError, "query.dtype is int8, but key.dtype is bfloat16: both must be int8, or none", dict(query=torch.zeros(7, 4, 192, dtype=torch.int8))),
    (NotImplementedError, "uses_spcompress=True is not supported", dict(uses_spcompress=True))])
def test_errors_of_ragged_deepseek(error, message, change):
    with pytest.raises(error, match=message):
        deepseek(**change)


def test_errors_of_xqa_and_cudnn(pages):
    q = torch.randn(4, 4, 64).bfloat16()
    call = (q, (pages["k"], pages["v"]), WS, pages["tables"], pages["lens"], 48)
    with pytest.raises(ValueError, match="mask is missing: it says which of a request's 2 query rows see each other"):
        decode.xqa_batch_decode_with_kv_cache(*call, q_len_per_req=2)
    with pytest.raises(ValueError, match=r"mask is .* but must be uint16\[..., 2\] with 4 rows"):
        decode.xqa_batch_decode_with_kv_cache(*call, q_len_per_req=2, mask=torch.zeros(2, 2, 4, dtype=torch.uint16))
    with pytest.raises(ValueError, match="sinks is .* but there are 4 query heads"):
        decode.xqa_batch_decode_with_kv_cache(q[:2], *call[1:], sinks=torch.zeros(3))
    cudnn_call = (q, pages["k"].transpose(1, 2), pages["v"].transpose(1, 2), 0.125, WS)
    with pytest.raises(ValueError, match="block_tables is missing"):
        decode.cudnn_batch_decode_with_kv_cache(*cudnn_call, max_sequence_kv=48, actual_seq_lens_kv=pages["lens"], q_len_per_req=2)
    with pytest.raises(ValueError, match=r"batch_offsets_q\[1\] is 500, but request 1 begins at element 512"):
        decode.cudnn_batch_decode_with_kv_cache(*cudnn_call, max_sequence_kv=48, actual_seq_lens_kv=pages["lens"], block_tables=pages["tables"],
                                                q_len_per_req=2, batch_offsets_q=torch.tensor([0, 500]))


def test_xqa_results_of_8_bits(pages):
    q = torch.randn(2, 1, 4, 64).bfloat16()

    def results(dtype, **more):
        output = torch.empty(q.shape, dtype=dtype)
        xqa(q, pages["k"], pages["v"], pages["tables"], pages["lens"], output, WS, torch.zeros(0, dtype=torch.uint32), 2, 16, **more)
        return output

    wide = results(torch.float32, rcp_out_scale=4.0)
    assert torch.equal(results(torch.float8_e4m3fn, rcp_out_scale=4.0).float(), wide.clamp(-448, 448).to(torch.float8_e4m3fn).float())
    saturated = results(torch.float8_e4m3fn, rcp_out_scale=1e6)
    assert saturated.float().abs().max() == 448 and not saturated.float().isnan().any()
    with pytest.raises(ValueError, match="output"):
        results(torch.float8_e5m2)


@pytest.mark.parametrize("by_request", [False, True], ids=["flat", "by_request"])
@pytest.mark.parametrize("dtype", [torch.int8, torch.float8_e4m3fn], ids=str)
def test_attention_on_what_sage_quantisation_makes(dtype, by_request):
    torch.manual_seed(7)
    q, k, v, qo, kv = ragged()
    q, k, v = (x[..., :64].contiguous() for x in (q, k, v))
    cum = dict(cum_seq_lens_q=qo, cum_seq_lens_kv=kv) if by_request else {}
    q8, k8, v8, *scales = flashinfer.trtllm_sage_attention_quantize(q, k, v, q_block_size=4, k_block_size=4, qk_quant_dtype=dtype, **cum)
    sage = dict(query=q8, key=k8, value=v8, bmm1_scale=0.125, num_elts_per_sage_attn_blk=(4, 4, 0, 1))
    out, lse = deepseek(**sage, sage_attn_sfs=(scales[0], scales[1], None, scales[2]))
    assert out.dtype == torch.bfloat16

    def places(ends, block):
        if not by_request:
            return torch.arange(int(ends[-1])) // block
        return torch.cat([int(ends[b]) // block + b + torch.arange(int(ends[b + 1] - ends[b])) // block for b in range(2)])

    exact = [x.double() * s.double().T[places(ends, 4)][..., None] for x, s, ends in ((q8, scales[0], qo), (k8, scales[1], kv))]
    for b in range(2):
        rows, keys = slice(int(qo[b]), int(qo[b + 1])), slice(int(kv[b]), int(kv[b + 1]))
        want, want_lse = attention(exact[0][rows], exact[1][keys], v8.double()[keys] * scales[2].double(), 0.125, causal(rows.stop - rows.start, keys.stop - keys.start))
        torch.testing.assert_close(out[rows].double(), want, rtol=1e-2, atol=1e-3)
        torch.testing.assert_close(lse[rows].double(), want_lse, rtol=1e-4, atol=1e-4)
    for error, message, change in (
            (ValueError, "num_elts_per_sage_attn_blk.0. is 0", dict(num_elts_per_sage_attn_blk=(0, 4, 0, 1))),
            (ValueError, r"sage_attn_sfs\[1\] is float32\[4, 2\] .*but must be float32\[4, 5", dict(sage_attn_sfs=(scales[0], scales[1][:, :2], None, scales[2]))),
            (ValueError, r"sage_attn_sfs\[3\] is", dict(num_elts_per_sage_attn_blk=(4, 4, 0, 2))),
            (NotImplementedError, r"sage_attn_sfs\[2\] is not supported", dict(sage_attn_sfs=(scales[0], scales[1], scales[2], None)))):
        with pytest.raises(error, match=message):
            deepseek(**{**sage, "sage_attn_sfs": (scales[0], scales[1], None, scales[2]), **change})
    if dtype == torch.int8:
        with pytest.raises(ValueError, match="sage_attn_sfs is missing scales of query and key, which are int8"):
            deepseek(**sage)


def test_values_of_8_bits_beside_16_bit_keys():
    _, _, v, _, _ = ragged()
    v8 = v.to(torch.float8_e4m3fn)
    assert all(map(torch.equal, deepseek(value=v8), deepseek(value=v8.bfloat16())))


# ---- page tables of three dimensions, results of 8 bits ----
def sparse(x, query, **more):
    tables = torch.tensor([[[4, 1, 0], [2, 5, 3]], [[0, 3, 4], [5, 2, 2]]], dtype=torch.int32)
    arguments = dict(query=query, kv_cache=(x["k"], x["v"]), workspace_buffer=WS, block_tables=tables, seq_lens=torch.tensor([[40, 9], [17, 30]], dtype=torch.int32),
                     max_seq_len=48, bmm1_scale=0.125, kv_layout="NHD", enable_block_sparse_attention=True)
    return decode.trtllm_batch_decode_with_kv_cache(**{**arguments, **more}), tables


@pytest.mark.parametrize("rows", [1, 2])
def test_block_sparse_decode(pages, rows):
    q = torch.randn(2 * rows, 6, 64).bfloat16()
    sinks = torch.tensor([0.5, -1, 0, 2, 1, -2])
    (out, lse), tables = sparse(pages, q, q_len_per_req=rows, return_lse=True, sinks=sinks)
    for h in range(2):  # each KV head is a batch of its own
        heads = slice(3 * h, 3 * h + 3)
        one = [t[:, :, h:h + 1].contiguous() for t in (pages["k"], pages["v"])]
        want, want_lse = decode.trtllm_batch_decode_with_kv_cache(q[:, heads].contiguous(), tuple(one), WS, tables[h], torch.tensor([[40, 9], [17, 30]])[h].int(), 48,
                                                                  0.125, kv_layout="NHD", q_len_per_req=rows, return_lse=True, sinks=sinks[heads].contiguous())
        assert torch.equal(out[:, heads], want) and torch.equal(lse[:, heads], want_lse)


def test_decode_masks_and_rows(pages):
    q, among = torch.randn(6, 4, 64).bfloat16(), torch.tensor([[5, 3, 7], [1, 2, 6]])
    words = torch.zeros(2, 3, 2, dtype=torch.uint16)
    words[..., 0] = among.to(torch.uint16)
    call = (q, (pages["k"], pages["v"]), WS, pages["tables"], pages["lens"], 48, 0.125)
    masked = decode.trtllm_batch_decode_with_kv_cache(*call, q_len_per_req=3, mask=words, kv_layout="NHD")
    assert torch.equal(masked, decode.xqa_batch_decode_with_kv_cache(*call, q_len_per_req=3, mask=words))
    packed = dict(cum_seq_lens_q=torch.tensor([0, 3, 6]).int(), max_q_len=3, q_len_per_req=None, kv_layout="NHD")
    assert torch.equal(decode.trtllm_batch_decode_with_kv_cache(*call, **packed, mask=words.flatten(0, 1)), masked)
    causal_rows = decode.trtllm_batch_decode_with_kv_cache(*call, **packed)
    words[..., 0] = torch.tensor([1, 3, 7]).to(torch.uint16)
    assert torch.equal(decode.trtllm_batch_decode_with_kv_cache(*call, **packed, mask=words, skip_softmax_threshold_scale_factor=0.5), causal_rows)
    for message, change in (("q_len_per_req is None, so cum_seq_lens_q must", dict(q_len_per_req=None)), ("skip_softmax_threshold_scale_factor is 0", dict(skip_softmax_threshold_scale_factor=0.0)),
                            (r"mask is uint16\[2, 3, 2\], but must be uint16\[..., 2\] with 2 rows", dict(mask=words, q_len_per_req=1))):
        with pytest.raises(ValueError, match=message):
            decode.trtllm_batch_decode_with_kv_cache(q[:2] if "mask" in change else q, *call[1:], kv_layout="NHD", **change)


def test_shares_of_a_context_add_up(pages):
    """Two ranks with every other token each: their states merge into what one rank with all tokens gives."""
    torch.manual_seed(11)
    q, k, v = torch.randn(6, 4, 64).bfloat16(), torch.randn(2, 48, 2, 64).bfloat16(), torch.randn(2, 48, 2, 64).bfloat16()
    before = torch.tensor([30, 5])  # tokens before three query rows

    def share(rank, world):
        lens = torch.tensor([len(range(rank, int(n) + 3, world)) for n in before]).int()
        caches = [torch.zeros(6, 16, 2, 64).bfloat16() for _ in "kv"]
        for x, cache in zip((k, v), caches):
            for b in range(2):
                cache.view(2, 48, 2, 64)[b, :lens[b]] = x[b, rank:int(before[b]) + 3:world]
        return decode.trtllm_batch_decode_with_kv_cache(q, tuple(caches), WS, torch.arange(6).int().view(2, 3), lens, 48, 0.125, kv_layout="NHD", q_len_per_req=3,
                                                        return_lse=True, cp_world=world, cp_rank=rank, causal_seqlens_kv_global=before.int())

    whole, whole_lse = share(0, 1)
    merged, lse = flashinfer.merge_state(*share(0, 2), *share(1, 2))
    torch.testing.assert_close(merged.double(), whole.double(), rtol=2e-2, atol=1e-2)
    torch.testing.assert_close(lse, whole_lse, rtol=1e-3, atol=1e-3)
    for b in range(2):
        keys = int(before[b]) + 3
        want, _ = attention(q[3 * b:3 * b + 3], k[b, :keys], v[b, :keys], 0.125, causal(3, keys))
        torch.testing.assert_close(whole[3 * b:3 * b + 3].double(), want, rtol=1e-2, atol=1e-2)
    call = (torch.randn(2, 4, 64).bfloat16(), (pages["k"], pages["v"]), WS, pages["tables"], pages["lens"], 48, 0.125)
    before = dict(causal_seqlens_kv_global=torch.tensor([39, 8]).int())
    for message, change in (("cp_world and cp_rank require causal_seqlens_kv_global", dict(cp_world=2)), (r"cp_rank is 2, but must be in 0..1", dict(before, cp_world=2, cp_rank=2)),
                            ("window_left was given beside", dict(before, window_left=3)), ("but row 0 of the request sees 41 keys", dict(causal_seqlens_kv_global=torch.tensor([40, 8]))),
                            (r"causal_seqlens_kv_global is int64\[1\]", dict(causal_seqlens_kv_global=torch.tensor([4])))):
        with pytest.raises(ValueError, match=message):
            decode.trtllm_batch_decode_with_kv_cache(*call, kv_layout="NHD", **change)


def unpacked(result, heads, dim):
    """[rows, heads, dim] of an FP4Tensor, in units of 1 / o_sf_scale: codes times scales in tiles of 128 x 4."""
    values = torch.tensor([0.0, 0.5, 1.0, 1.5, 2.0, 3.0, 4.0, 6.0])
    data, rows = result.data.int(), result.data.shape[0]
    codes = torch.stack((data & 15, data >> 4), -1).flatten(-2)
    x = torch.where(codes > 7, -1, 1) * values[codes & 7]
    columns = result.scale.shape[1]
    flat = result.scale.float().view(-1, columns // 4, 32, 4, 4).permute(0, 3, 2, 1, 4).reshape(-1, columns)
    scales = flat[result.scale_start_index:result.scale_start_index + rows, :heads * dim // 16]
    return x * scales.reshape(rows, heads, dim // 16).repeat_interleave(16, -1)


@pytest.mark.parametrize("prefilled", [False, True])
def test_fp4_results(pages, prefilled):
    """Against the f32 result of the same call: within half a step of e2m1, at most 1 of 6 of the block's largest value."""
    q, lens, tables = torch.randn(4, 4, 64).bfloat16(), pages["lens"], pages["tables"]

    def call(**more):
        cache = (pages["k"], pages["v"])
        if prefilled:
            return prefill.trtllm_batch_context_with_kv_cache(q, cache, WS, tables, lens, 2, 48, 0.125, 1.0, 2, torch.tensor([0, 2, 4]).int(),
                                                              torch.tensor([0, 40, 49]).int(), kv_layout="NHD", **more)
        return decode.trtllm_batch_decode_with_kv_cache(q, cache, WS, tables, lens, 48, 0.125, kv_layout="NHD", q_len_per_req=2, **more)

    want, want_lse = call(out_dtype=torch.float32, return_lse=True)
    made = call(out_dtype="nvfp4", o_sf_scale=300.0, o_sf_vec_size=16)
    assert isinstance(made, flashinfer.utils.FP4Tensor) and made.data.shape == (4, 4, 32) and made.scale.shape == (128, 16)
    largest = want.view(4, 4, 4, 16).abs().amax(-1, keepdim=True).expand(4, 4, 4, 16).reshape(4, 4, 64)
    assert ((unpacked(made, 4, 64) / 300 - want).abs() <= largest / 5).all()
    mine = flashinfer.utils.FP4Tensor(torch.zeros(4, 4, 32, dtype=torch.uint8), torch.zeros(256, 16).to(torch.float8_e4m3fn), 125)
    result, lse = call(out=mine, o_sf_scale=300.0, return_lse=True)
    assert result.data is mine.data and result.scale is mine.scale and result.scale_start_index == 125 and torch.equal(lse, want_lse)
    assert torch.equal(unpacked(result, 4, 64), unpacked(made, 4, 64)) and mine.scale.float().count_nonzero() == 4 * 16
    for message, change in (("o_sf_scale is needed", dict(out_dtype="nvfp4")), ("o_sf_vec_size is 32, but must be 16", dict(out=mine, o_sf_scale=1.0, o_sf_vec_size=32)),
                            ("but out is Tensor", dict(out=want, out_dtype="nvfp4", o_sf_scale=1.0)), ("but out_dtype is (torch.)?float16", dict(out=mine, out_dtype=torch.float16, o_sf_scale=1.0)),
                            (r"out has data \[4, 4, 16\]", dict(out=flashinfer.utils.FP4Tensor(mine.data[..., :16], mine.scale), o_sf_scale=1.0)),
                            ("global_scale is 0", dict(out=mine, o_sf_scale=0.0))):
        with pytest.raises(ValueError, match=message):
            call(**change)


def test_longer_offsets_of_keys(pages):
    q = torch.randn(4, 4, 64).bfloat16()
    call = (q, (pages["k"], pages["v"]), WS, pages["tables"], pages["lens"], 2, 48, 0.125, 1.0, 2, torch.tensor([0, 2, 4]).int())
    want = prefill.trtllm_batch_context_with_kv_cache(*call, torch.tensor([0, 40, 49]).int(), kv_layout="NHD")
    assert torch.equal(prefill.trtllm_batch_context_with_kv_cache(*call, torch.arange(7).int(), kv_layout="NHD"), want)
    with pytest.raises(ValueError, match=r"cum_seq_lens_kv is int32\[2\], but there are 2 requests"):
        prefill.trtllm_batch_context_with_kv_cache(*call, torch.arange(2).int(), kv_layout="NHD")


@pytest.mark.parametrize("message, change", [
    ("only supported by the trtllm-gen", dict(backend="xqa")), ("no sliding window", dict(window_left=4)), ("skip_softmax", dict(skip_softmax_threshold_scale_factor=0.1)),
    ("shared paged-KV", dict(uses_shared_paged_kv_idx=False)), ("block_tables must be 3D", dict(block_tables=torch.zeros(2, 3, dtype=torch.int32))),
    ("block_tables.shape.0. is 1, but num_kv_heads is 2", dict(block_tables=torch.zeros(1, 2, 3, dtype=torch.int32))),
    ("needs seq_lens of shape", dict(seq_lens=torch.tensor([40, 9]))), (r"seq_lens\[1\]\[0\] is 49", dict(seq_lens=torch.tensor([[40, 9], [49, 3]]))),
    ("max_seq_len is 39, but request 0 has 40", dict(max_seq_len=39)), ("has page 6, but kv_cache has 6", dict(block_tables=torch.full((2, 2, 3), 6, dtype=torch.int32)))])
def test_errors_of_block_sparse_decode(pages, message, change):
    with pytest.raises(ValueError, match=message):
        sparse(pages, torch.randn(2, 6, 64).bfloat16(), **change)


def test_page_tables_of_keys_and_values(pages):
    q = torch.randn(2, 4, 64).bfloat16()
    mixed = torch.stack((pages["k"], pages["v"]), 1).flatten(0, 1)  # page p of K, then of V
    call = dict(query=q, workspace_buffer=WS, seq_lens=pages["lens"], max_seq_len=48, bmm1_scale=0.125, kv_layout="NHD")
    want = decode.trtllm_batch_decode_with_kv_cache(**call, kv_cache=(pages["k"], pages["v"]), block_tables=pages["tables"])
    both = torch.stack((2 * pages["tables"], 2 * pages["tables"] + 1), 1)
    separate = dict(call, kv_cache=(mixed, mixed), uses_shared_paged_kv_idx=False)
    assert torch.equal(decode.trtllm_batch_decode_with_kv_cache(**separate, block_tables=both), want)
    both[1, 1, 1] = 99  # behind the last page
    assert torch.equal(decode.trtllm_batch_decode_with_kv_cache(**separate, block_tables=both), want)
    order = torch.randperm(len(mixed))  # V's pages anywhere
    scattered = both.clone()
    scattered[:, 1] = torch.argsort(order)[both[:, 1].clamp(max=len(mixed) - 1).long()]
    elsewhere = dict(separate, kv_cache=(mixed, mixed[order]))
    assert torch.equal(decode.trtllm_batch_decode_with_kv_cache(**elsewhere, block_tables=scattered), want)
    assert torch.equal(decode.trtllm_batch_decode_with_kv_cache(**elsewhere, block_tables=scattered.long()), want)
    both[0, 1, 1] = 12
    with pytest.raises(ValueError, match=r"block_tables\[0\]\[1\]\[1\] is 12, but the cache has 12 pages"):
        decode.trtllm_batch_decode_with_kv_cache(**separate, block_tables=both)


def test_a_scale_for_exponents_of_base_2(pages):
    """bmm1_scale_log2 counts in place of bmm1_scale."""
    q = torch.randn(2, 4, 64).bfloat16()
    call = dict(query=q, kv_cache=(pages["k"], pages["v"]), workspace_buffer=WS, block_tables=pages["tables"], seq_lens=pages["lens"], max_seq_len=48,
                kv_layout="NHD")
    want = decode.trtllm_batch_decode_with_kv_cache(**call, bmm1_scale=0.2)
    for wrong in (7.0, torch.tensor([7.0])):
        got = decode.trtllm_batch_decode_with_kv_cache(**call, bmm1_scale=wrong, bmm1_scale_log2=torch.tensor([0.2 * math.log2(math.e)]))
        torch.testing.assert_close(got, want, rtol=1e-2, atol=1e-3)
    with pytest.raises(ValueError, match="bmm1_scale_log2"):
        decode.trtllm_batch_decode_with_kv_cache(**call, bmm1_scale_log2=torch.ones(2))


def test_decode_results_of_8_bits(pages):
    q = torch.randn(2, 4, 64).bfloat16()
    call = (q, (pages["k"], pages["v"]), WS, pages["tables"], pages["lens"], 48, 0.125, 3.0)
    for function, layout in ((decode.trtllm_batch_decode_with_kv_cache, dict(kv_layout="NHD")), (decode.xqa_batch_decode_with_kv_cache, {})):
        wide, narrow = torch.empty(2, 4, 64), torch.empty(2, 4, 64, dtype=torch.float8_e4m3fn)
        function(*call, out=wide, **layout)
        assert function(*call, out=narrow, o_scale=0.5, **layout) is narrow
        assert torch.equal(narrow.float(), wide.clamp(-448, 448).to(torch.float8_e4m3fn).float())
        with pytest.raises(NotImplementedError, match="o_scale is not supported: it belongs to an 8-bit output"):
            function(*call, out=wide, o_scale=0.5, **layout)
        with pytest.raises(ValueError, match="o_scale is -1"):
            function(*call, out=narrow, o_scale=-1.0, **layout)


def test_helpers_of_prefill_and_mla():
    offsets = torch.tensor([0, 3, 7], dtype=torch.int32)
    q, k = torch.randn(7, 2, 64).bfloat16(), torch.randn(7, 2, 64).bfloat16()
    plan = prefill.fmha_varlen_plan(None, offsets, offsets, 2, True)
    assert torch.equal(prefill.fmha_varlen(q, k, k, offsets, offsets, plan_info=plan, causal=True), prefill.fmha_varlen(q, k, k, offsets, offsets, causal=True))
    with pytest.raises(ValueError, match="kv_segment_offsets has 2 offsets, but qo_segment_offsets has 3"):
        prefill.fmha_varlen_plan(None, offsets, offsets[:2], 2, True)
    calls = []
    counted = prefill.make_hashable_cache(lambda names, scale=1: calls.append(names) or (names, scale))
    assert counted(["a", ["b"]], scale=2) == counted(["a", ["b"]], scale=2) == (("a", ("b",)), 2) and len(calls) == 1
    assert mla.supported_mla_layer_dimensions[0] == mla.MLALayerDimensions(mla.MLAHeadDimensions(128, 64, 128, 512), 128)


@pytest.mark.filterwarnings("ignore:.*backend=.*exists for cuda")
def test_choices_among_kernels_do_not_change_the_result():
    pool = torch.randn(6, 2, 2, 16, 64).bfloat16()
    call = (torch.randn(2, 4, 64).bfloat16(), pool, torch.zeros(16, dtype=torch.uint8), torch.tensor([[5, 1], [0, -1]]).int(), torch.tensor([20, 7]).int(), 32)
    want = decode.trtllm_batch_decode_with_kv_cache(*call)
    order = torch.tensor([1, 0], dtype=torch.int32)
    for more in (dict(bf16q_fp8kv_transform_mode="k_only"), dict(bf16q_fp8kv_transform_mode="separate_kv", backend="trtllm-gen"), dict(request_order=order, backend="cake")):
        assert torch.equal(decode.trtllm_batch_decode_with_kv_cache(*call, **more), want)
    for more, text in ((dict(bf16q_fp8kv_transform_mode="both"), "must be one of 'k_only' or 'separate_kv'"), (dict(bf16q_fp8kv_transform_mode="k_only", backend="xqa"), "only supported by backend='trtllm-gen'"),
                       (dict(request_order=order), "requires the explicit backend='cake'"), (dict(request_order=order.long(), backend="cake"), r"must be int32 \[2\]"),
                       (dict(request_order=order[:1], backend="cake"), r"must be int32 \[2\]")):
        with pytest.raises(ValueError, match=text):
            decode.trtllm_batch_decode_with_kv_cache(*call, **more)
