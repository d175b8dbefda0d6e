# SPDX-License-Identifier: Apache-2.0
"""Scores of sparse-attention indexers, in float32 on the tensors' device:

    score[row, key] = sum over heads h of weights[row, h] * max(0, q[row, h] . k[key])

FP8 and FP4 values are exact in float32, so nothing is rounded before the result.
"""
from ._buckets import padded_seq_len
from ._support import on_cpu
from .utils import ceil_div

_ELEMENTS = 1 << 24  # of the products of all heads that are in memory at once


def _check(who, name, x, dtype, shape):
    """`shape`: text, with None for any extent."""
    if x.dtype != dtype or x.dim() != len(shape) or any(want is not None and want != got for want, got in zip(shape, x.shape)):
        wanted = ", ".join("any" if n is None else str(n) for n in shape)
        raise ValueError(f"{who}: {name} is {x.dtype} of shape {tuple(x.shape)}, but must be {dtype} [{wanted}]")


def _scores(q, k, weights):
    """f32 [rows, keys] of q [rows, heads, d], k [keys, d] and weights [rows, heads]."""
    import torch

    out = torch.empty(q.shape[0], k.shape[0], dtype=torch.float32, device=q.device)
    step = max(64, _ELEMENTS // max(q.shape[0] * q.shape[1], 1))
    for first in range(0, k.shape[0], step):
        dots = torch.matmul(q, k[first:first + step].t()).relu_()
        out[:, first:first + step] = dots.mul_(weights[:, :, None]).sum(1)
    return out


def fp8_mqa_logits(q, kv, weights, ks, ke, clean_logits=False, max_seqlen_k=0, *, sm_count=None):
    """score[row, key] * scale[key] for ks[row] <= key < ke[row], else -inf.

    Args:
        q: float8_e4m3fn [rows, heads, d]
        kv: pair of float8_e4m3fn [keys, d] and float32 scales [keys]
        weights: float32 [rows, heads]
        ks, ke: int32 [rows], 0 <= ks <= ke <= keys
        clean_logits: without effect: every element is written
        max_seqlen_k: 0
        sm_count: of GPU kernels; nothing here

    Returns:
        float32 [rows, keys]

    Raises:
        ValueError: shapes, dtypes or ranges other than these
    """
    import torch

    who = "fp8_mqa_logits"
    values, scales = kv
    rows, heads, d = q.shape if q.dim() == 3 else (None,) * 3
    for name, x, dtype, shape in (("q", q, torch.float8_e4m3fn, (rows, heads, d)), ("kv[0]", values, torch.float8_e4m3fn, (None, d)),
                                  ("kv[1]", scales, torch.float32, (values.shape[0],)), ("weights", weights, torch.float32, (rows, heads)),
                                  ("ks", ks, torch.int32, (rows,)), ("ke", ke, torch.int32, (rows,))):
        _check(who, name, x, dtype, shape)
    if max_seqlen_k != 0:
        raise ValueError(f"{who}: max_seqlen_k is {max_seqlen_k}, but must be 0")
    keys = values.shape[0]
    if rows and not bool(((ks >= 0) & (ks <= ke) & (ke <= keys)).all()):
        raise ValueError(f"{who}: ks and ke must be ranges of the {keys} keys: 0 <= ks <= ke <= {keys}")
    position = torch.arange(keys, device=q.device)
    hidden = (position < ks[:, None]) | (position >= ke[:, None])
    return (_scores(q.float(), values.float(), weights) * scales).masked_fill_(hidden, float("-inf"))


def _paged_arguments(who, q, weights, block_tables, seq_lens, max_seq_len):
    """[batch][n] keys that each row sees: seq_lens is that of the newest token."""
    import torch

    batch, next_n, heads = q.shape[:3]
    _check(who, "weights", weights, torch.float32, (batch * next_n, heads))
    _check(who, "block_tables", block_tables, torch.int32, (batch, None))
    _check(who, "seq_lens", seq_lens, torch.int32, (batch,))
    _check_lengths(who, "seq_lens", seq_lens, max_seq_len)
    return [[max(n - next_n + 1 + t, 0) for t in range(next_n)] for n in seq_lens.tolist()]


def _check_lengths(who, name, lengths, most):
    if lengths.numel() and not 0 <= int(lengths.min()) <= int(lengths.max()) <= most:
        raise ValueError(f"{who}: {name} has values from {int(lengths.min())} to {int(lengths.max())}, but must be within [0, {most}], the longest")


def _paged_result(who, rows, max_seq_len, output_dtype, kinds, out, device):
    import torch

    if output_dtype not in kinds:
        raise ValueError(f"{who}: output_dtype is {output_dtype}, but must be {' or '.join(map(str, kinds))}")
    if out is None:
        out = torch.empty(rows, padded_seq_len(max_seq_len), dtype=output_dtype, device=device)
    elif out.dtype != output_dtype or out.dim() != 2 or out.shape[0] != rows or out.shape[1] < padded_seq_len(max_seq_len):
        raise ValueError(f"{who}: out is {out.dtype} of shape {tuple(out.shape)}, but must be {output_dtype} [{rows}, at least "
                         f"{padded_seq_len(max_seq_len)}] (padded_seq_len)")
    return out[:, :max_seq_len].fill_(float("-inf"))


def _paged(who, q, weights, block_tables, ends, result, keys_of, block_size, blocks):
    """Row b * n + t of `result`: scores of the first ends[b][t] keys. `keys_of(pages)`: f32 keys [keys, d], scales [keys] or None."""
    n = q.shape[1]
    for b, of_rows in enumerate(ends):
        longest = max(of_rows, default=0)
        count = ceil_div(longest, block_size)
        if count > block_tables.shape[1]:
            raise ValueError(f"{who}: request {b} has {longest} keys, which need {count} blocks of {block_size}, but the table has {block_tables.shape[1]} columns")
        pages = block_tables[b, :count].long()
        if count and not 0 <= int(pages.min()) <= int(pages.max()) < blocks:
            raise ValueError(f"{who}: the table of request {b} names blocks {int(pages.min())} to {int(pages.max())}, but there are {blocks}")
        if not count:
            continue
        keys, scales = keys_of(pages)
        found = _scores(q[b], keys[:longest], weights[b * n:(b + 1) * n])
        if scales is not None:
            found *= scales[:longest]
        for t, end in enumerate(of_rows):
            result[b * n + t, :end] = found[t, :end].to(result.dtype)
    return result


def _fp8_keys(who, kv_fused, d):
    """`keys_of` of a pool of FP8 values and float32 scales."""
    import torch

    _check(who, "kv_fused", kv_fused, torch.uint8, (None, None, 1, d + 4))
    blocks, block_size = kv_fused.shape[:2]
    flat = kv_fused.reshape(blocks, -1)

    def keys_of(pages):
        chosen = flat[pages]
        values, scales = chosen[:, :block_size * d], chosen[:, block_size * d:]
        return values.contiguous().view(torch.float8_e4m3fn).view(-1, d).float(), scales.contiguous().view(torch.float32).reshape(-1)

    return keys_of


@on_cpu()
def fp8_paged_mqa_logits(q, kv_fused, weights, block_tables, seq_lens, max_seq_len, *, output_dtype=None, epi_dtype=None, acc_dtype=None,
                         schedule_meta=None, out=None):
    """score[b * n + t, key] * scale[key] of paged keys.

    Args:
        q: float8_e4m3fn [batch, n, heads, d]: n tokens of each request, the oldest first
        kv_fused: uint8 [blocks, block_size, 1, d + 4]: of each block all values (e4m3), then block_size float32 scales
        weights: float32 [batch * n, heads]
        block_tables: int32 [batch, blocks of a request]
        seq_lens: int32 [batch], keys that the newest token sees
        max_seq_len: at least the largest of seq_lens
        output_dtype: torch.float32 (default), float16 or bfloat16
        epi_dtype, acc_dtype: of GPU kernels; sums are float32
        schedule_meta: of GPU kernels; nothing here
        out: output_dtype [batch * n, at least padded_seq_len(max_seq_len)]; made when absent

    Returns:
        output_dtype [batch * n, max_seq_len]; row b * n + t has scores at 0 .. seq_lens[b] - n + t, and -inf behind

    Raises:
        ValueError: shapes, dtypes or values other than these
    """
    import torch

    who = "fp8_paged_mqa_logits"
    _check(who, "q", q, torch.float8_e4m3fn, (None, None, None, None))
    keys_of = _fp8_keys(who, kv_fused, q.shape[3])
    ends = _paged_arguments(who, q, weights, block_tables, seq_lens, max_seq_len)
    kinds = (torch.float32, torch.float16, torch.bfloat16)
    result = _paged_result(who, q.shape[0] * q.shape[1], max_seq_len, output_dtype or torch.float32, kinds, out, q.device)
    return _paged(who, q.float(), weights, block_tables, ends, result, keys_of, kv_fused.shape[1], kv_fused.shape[0])


def deepgemm_fp8_paged_mqa_logits(q, kv_cache, weights, context_lens, block_table, schedule_meta, max_context_len, clean_logits=False, indices=None):
    """`fp8_paged_mqa_logits` by DeepGEMM's arguments (`flashinfer.paged_mqa`): context_lens, int32 [batch, n], has the keys of each row.

    Returns:
        float32 [batch * n, max_context_len], -inf behind a row's keys

    Raises:
        ValueError: as there; clean_logits or indices is given
    """
    import torch

    who = "fp8_paged_mqa_logits"
    if clean_logits or indices is not None:
        raise ValueError(f"{who}: clean_logits is {clean_logits} and indices {'given' if indices is not None else None}, but must be False and None")
    _check(who, "q", q, torch.float8_e4m3fn, (None, None, None, None))
    batch, n, heads, d = q.shape
    for name, x, dtype, shape in (("weights", weights, torch.float32, (batch * n, heads)), ("context_lens", context_lens, torch.int32, (batch, n)),
                                  ("block_table", block_table, torch.int32, (batch, None))):
        _check(who, name, x, dtype, shape)
    _check_lengths(who, "context_lens", context_lens, max_context_len)
    keys_of = _fp8_keys(who, kv_cache, d)
    result = _paged_result(who, batch * n, max_context_len, torch.float32, (torch.float32,), None, q.device)
    return _paged(who, q.float(), weights, block_table, context_lens.tolist(), result, keys_of, kv_cache.shape[1], kv_cache.shape[0])


def _fp4(codes, scales):
    """f32 [n, 2 * bytes] of MXFP4: two values a byte, the low nibble first, uint8 exponents of 32 values each."""
    import torch

    table = torch.tensor([0, 0.5, 1, 1.5, 2, 3, 4, 6, -0.0, -0.5, -1, -1.5, -2, -3, -4, -6], device=codes.device)
    values = table[torch.stack((codes & 15, codes >> 4), -1).long()].flatten(-2)
    factors = torch.where(scales == 255, float("nan"), torch.exp2(scales.float() - 127))
    return values * factors.repeat_interleave(32, -1)


@on_cpu()
def fp4_paged_mqa_logits(q, q_sf, kv_fused, weights, block_tables, seq_lens, max_seq_len, *, sf_vec_size=32, output_dtype=None, epi_dtype=None,
                         is_kv_sf_interleaved=False, schedule_meta=None, out=None):
    """As `fp8_paged_mqa_logits`, of MXFP4 queries and keys, whose block scales are part of the values.

    Args:
        q: uint8 [batch, n, heads, 64], two values of 128 a byte, the low nibble first
        q_sf: int32 [batch, n, heads], four ue8m0 scales, of 32 values each
        kv_fused: uint8 [blocks, block_size, 1, 68]: of each block all values, then four scales for each token
        sf_vec_size: 32
        output_dtype: torch.bfloat16 (default), float16 or float32
        is_kv_sf_interleaved: False; the interleaved order of scales is not documented
        others: as there

    Returns, Raises: as there; NotImplementedError: interleaved scales
    """
    import torch

    who = "fp4_paged_mqa_logits"
    if is_kv_sf_interleaved:
        raise NotImplementedError(f"{who}: is_kv_sf_interleaved is not available: pass scales token by token")
    if sf_vec_size != 32:
        raise ValueError(f"{who}: sf_vec_size is {sf_vec_size}, but must be 32")
    _check(who, "q", q, torch.uint8, (None, None, None, 64))
    _check(who, "q_sf", q_sf, torch.int32, q.shape[:3])
    _check(who, "kv_fused", kv_fused, torch.uint8, (None, None, 1, 68))
    ends = _paged_arguments(who, q, weights, block_tables, seq_lens, max_seq_len)
    blocks, block_size = kv_fused.shape[:2]
    flat = kv_fused.reshape(blocks, -1)

    def keys_of(pages):
        chosen = flat[pages]
        return _fp4(chosen[:, :block_size * 64].reshape(-1, 64), chosen[:, block_size * 64:].reshape(-1, 4)), None

    kinds = (torch.bfloat16, torch.float16, torch.float32)
    result = _paged_result(who, q.shape[0] * q.shape[1], max_seq_len, output_dtype or torch.bfloat16, kinds, out, q.device)
    queries = _fp4(q, q_sf.contiguous().view(torch.uint8).view(*q.shape[:3], 4))
    return _paged(who, queries, weights, block_tables, ends, result, keys_of, block_size, blocks)


def compute_paged_mqa_logits_schedule(seq_lens, device=None, *, next_n=1, variant="fp8", use_gpu_kernel=True, out=None):
    """int32 [2, 2] of zeros, for `schedule_meta`, which these functions do not read.

    Raises:
        ValueError: variant is neither "fp8" nor "fp4", next_n is less than 1
    """
    import torch

    who = "compute_paged_mqa_logits_schedule"
    if variant not in ("fp8", "fp4"):
        raise ValueError(f"{who}: variant is {variant!r}, but must be 'fp8' or 'fp4'")
    if next_n < 1:
        raise ValueError(f"{who}: next_n is {next_n}, but must be at least 1")
    _check(who, "seq_lens", seq_lens, torch.int32, (None,))
    return out.zero_() if out is not None else torch.zeros(2, 2, dtype=torch.int32, device=device or seq_lens.device)


def get_paged_mqa_logits_metadata(context_lens, block_kv, num_sms, indices=None, *, out=None):
    """int32 [num_sms + 1, 2] of zeros, for `schedule_meta`, which nothing reads.

    Raises:
        ValueError: context_lens is not int32 [batch, n], or indices is given
    """
    import torch

    who = "get_paged_mqa_logits_metadata"
    _check(who, "context_lens", context_lens, torch.int32, (None, None))
    if indices is not None:
        raise ValueError(f"{who}: indices is {indices!r}, but must be None")
    if out is not None:
        _check(who, "out", out, torch.int32, (num_sms + 1, 2))
        return out.zero_()
    return torch.zeros(num_sms + 1, 2, dtype=torch.int32, device=context_lens.device)
