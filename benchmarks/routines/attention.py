# SPDX-License-Identifier: Apache-2.0
"""Batch attention: decode and prefill over pages, prefill over ragged keys, MLA."""
import torch

import flashinfer
from flashinfer.testing.utils import attention_flops_with_actual_seq_lens, count_bytes
from routines.case import Case, Check, dtype

# Query rows that the check computes in double precision by torch.
_SAMPLES = 16
_NAMES = {"trtllm-gen-native": "trtllm-native", "prims_ts": "prims-ts"}


def _backends(args):
    for word in args.backends:
        if word == "trtllm-gen-native":
            print("[WARNING] Backend name 'trtllm-gen-native' has been renamed to 'trtllm-native' and will be removed in a future release.")
    return [_NAMES.get(word, word) for word in args.backends]


def _lengths(args, most, least=1):
    if args.random_actual_seq_len:
        return torch.randint(1, most + 1, (args.batch_size,)).clamp_min(least).tolist()
    return [most] * args.batch_size


def _indptr(counts, device):
    return torch.tensor([0, *counts], device=device).cumsum(0).int()


def _types(args):
    allowed = ("float16", "bfloat16", "fp8_e4m3")
    q = dtype(args.q_dtype, allowed, "q_dtype")
    return q, dtype(args.kv_dtype, allowed, "kv_dtype"), dtype(args.out_dtype, allowed, "out_dtype") if args.out_dtype else (
        torch.bfloat16 if q == torch.float8_e4m3fn else q)


def _random(kind, device, *shape):
    return (torch.randn(shape, device=device) * (0.5 if kind.itemsize == 1 else 1.0)).to(kind)


class _Pages:
    """A cache [pages, 2, page_size, heads, dim] (NHD) and its tables, pages of each request in random order."""

    def __init__(self, args, lengths, kind, device, *shape):
        size = args.page_size
        if size < 1:
            raise ValueError(f"--page_size is {size}, but must be at least 1")
        counts = [-(-n // size) for n in lengths]
        self.cache = _random(kind, device, sum(counts), *shape[:1], size, *shape[1:])
        self.indptr, self.size = _indptr(counts, device), size
        self.indices = torch.randperm(sum(counts), device=device).int()
        self.last = torch.tensor([n - (c - 1) * size for n, c in zip(lengths, counts)], dtype=torch.int32, device=device)
        self.lengths = torch.tensor(lengths, dtype=torch.int32, device=device)
        self.table = torch.zeros(len(lengths), max(counts), dtype=torch.int32, device=device)
        for i, (begin, end) in enumerate(zip(self.indptr.tolist(), self.indptr.tolist()[1:])):
            self.table[i, :end - begin] = self.indices[begin:end]

    def request(self, i):
        """The tokens of a request, contiguous: [halves, tokens, ...]."""
        begin, end = self.indptr[i:i + 2].tolist()
        rows = self.cache[self.indices[begin:end].long()].transpose(0, 1)
        return rows.flatten(1, 2)[:, :int(self.lengths[i])]


def _rows_of(queries):
    """Up to _SAMPLES query rows, spread over all: (row of the batch, request, row of the request)."""
    every = [(start + r, i, r) for i, (start, n) in enumerate(zip([sum(queries[:i]) for i in range(len(queries))], queries)) for r in range(n)]
    return every[::max(1, len(every) // _SAMPLES)][:_SAMPLES]


def _attend(q, k, v, visible, scale):
    """[heads, dim_vo] in double precision: a query row [heads, dim] over the first `visible` of k and v [tokens, kv heads, dim]."""
    group = q.shape[0] // k.shape[1]
    k, v = (x[:visible].double().repeat_interleave(group, 1) for x in (k, v))
    return torch.einsum("ht,thd->hd", torch.softmax(torch.einsum("hd,thd->ht", q.double(), k) * scale, -1), v)


def _check(q_type, kv_type, rows, expected):
    """Results of bf16 and f16 within 2e-2; FP8 queries and keys lose the products' bits too."""
    loose = 5e-2 if 1 in (q_type.itemsize, kv_type.itemsize) else 2e-2
    index = [r for r, _, _ in rows]
    return Check(loose, loose, view=lambda out: [out[0].reshape(-1, *out[0].shape[-2:])[index].float()],
                 expected=lambda: [torch.stack([expected(*row) for row in rows]).float()])


def _row(args, q_type, kv_type, out_type, causal, mean, **more):
    return {"page_size": args.page_size, "batch_size": args.batch_size, "s_qo": args.s_qo, "s_kv": args.s_kv,
            "num_qo_heads": args.num_qo_heads, "num_kv_heads": args.num_kv_heads, "causal": causal, "q_dtype": q_type, "kv_dtype": kv_type,
            "out_dtype": out_type, "avg_actual_seq_len": mean, "random_actual_seq_len": args.random_actual_seq_len, **more}


def _figures(args, queries, keys, dims, causal, types):
    """Operations of the pairs of queries and keys; q, k, v and the result once each."""
    q, kv, out = types
    moved = sum(queries) * args.num_qo_heads * (dims[0] * q.itemsize + dims[1] * out.itemsize)
    return {"flops": float(attention_flops_with_actual_seq_lens(queries, keys, *dims, args.num_qo_heads, causal)),
            "bytes": moved + sum(keys) * args.num_kv_heads * sum(dims) * kv.itemsize}


def _dims(args):
    if args.head_dim_qk is None:
        raise ValueError("--head_dim_qk is required for this routine")
    return args.head_dim_qk, args.head_dim_vo if args.head_dim_vo is not None else args.head_dim_qk


def _show(backend):
    return "auto(fa2)" if backend == "auto" else backend


def _workspace(device):
    return torch.empty(128 << 20, dtype=torch.uint8, device=device)


def _peer(q, k, v, queries, keys, causal, scale):
    """torch's attention of a batch of equal requests; k and v: [tokens, kv heads, dim] of each request."""
    if len(set(queries)) > 1 or len(set(keys)) > 1 or q.dtype.itemsize == 1 or causal and queries[0] != keys[0]:
        return {}
    qs = q.view(len(queries), queries[0], *q.shape[1:]).transpose(1, 2)
    ks, vs = (torch.stack(x).transpose(1, 2) for x in (k, v))
    return {"torch": lambda: torch.nn.functional.scaled_dot_product_attention(qs, ks, vs, is_causal=causal, scale=scale, enable_gqa=True)}


def _decode(args, device):
    q_type, kv_type, out_type = types = _types(args)
    dim, dim_vo = _dims(args)
    if args.s_qo > args.s_kv:
        raise ValueError("Causal decode requires s_qo <= s_kv.")
    keys = _lengths(args, args.s_kv, args.s_qo)
    queries = [args.s_qo] * args.batch_size
    causal = args.s_qo > 1 and args.spec_dec_mask == "causal"
    pages = _Pages(args, keys, kv_type, device, 2, args.num_kv_heads, dim)
    q, scale, workspace = _random(q_type, device, sum(queries), args.num_qo_heads, dim), dim ** -0.5, _workspace(device)
    if args.s_qo == 1:
        wrapper = flashinfer.BatchDecodeWithPagedKVCacheWrapper(workspace, "NHD")
        wrapper.plan(pages.indptr, pages.indices, pages.last, args.num_qo_heads, args.num_kv_heads, dim, args.page_size, q_data_type=q_type,
                     kv_data_type=kv_type, o_data_type=out_type)
    else:  # tokens of a draft: prefill of few rows
        wrapper = flashinfer.BatchPrefillWithPagedKVCacheWrapper(workspace, "NHD")
        wrapper.plan(_indptr(queries, device), pages.indptr, pages.indices, pages.last, args.num_qo_heads, args.num_kv_heads, dim,
                     args.page_size, causal=causal, q_data_type=q_type, kv_data_type=kv_type, o_data_type=out_type)

    def native(q, cache):
        return flashinfer.decode.trtllm_batch_decode_with_kv_cache(
            q, cache, workspace, pages.table, pages.lengths, args.s_kv, bmm1_scale=scale, bmm2_scale=1.0, kv_layout="NHD",
            q_len_per_req=args.s_qo, enable_pdl=args.enable_pdl, out_dtype=out_type)

    def cudnn(q, cache):
        return flashinfer.decode.cudnn_batch_decode_with_kv_cache(
            q, cache[:, 0].transpose(1, 2), cache[:, 1].transpose(1, 2), scale, workspace, max_sequence_kv=args.s_kv,
            actual_seq_lens_kv=pages.lengths.view(-1, 1, 1, 1), block_tables=pages.table)

    rows = _rows_of(queries)

    def expected(row, i, r):
        k, v = pages.request(i)
        return _attend(q[row], k, v, keys[i] - args.s_qo + r + 1 if causal else keys[i], scale)

    routes = {"trtllm-native": native} if args.s_qo == 1 or causal else {}
    if args.s_qo == 1 and 1 not in (q_type.itemsize, kv_type.itemsize) and out_type == q_type:
        routes["cudnn"] = cudnn
    kv = [pages.request(i) for i in range(args.batch_size)] if args.peers else []
    return Case(lambda q, cache: wrapper.run(q, cache, enable_pdl=args.enable_pdl), (q, pages.cache), routes=routes,
                row=_row(args, *types, causal, sum(keys) // args.batch_size, head_dim_qk=dim, head_dim_vo=dim_vo),
                check=_check(q_type, kv_type, rows, expected), show=_show, no_graph=("fa2",),
                peers=_peer(q, [x[0] for x in kv], [x[1] for x in kv], queries, keys, False, scale) if args.peers and args.s_qo == 1 else {},
                **_figures(args, queries, keys, (dim, dim_vo), causal, types))


def _prefill_lengths(args):
    queries = _lengths(args, args.s_qo)
    if args.s_qo == args.s_kv:
        return queries, queries
    return queries, [max(n, q) for n, q in zip(_lengths(args, args.s_kv), queries)]


def _prefill_paged(args, device):
    q_type, kv_type, out_type = types = _types(args)
    dim, dim_vo = _dims(args)
    queries, keys = _prefill_lengths(args)
    pages = _Pages(args, keys, kv_type, device, 2, args.num_kv_heads, dim)
    q, scale, workspace = _random(q_type, device, sum(queries), args.num_qo_heads, dim), dim ** -0.5, _workspace(device)
    indptr = _indptr(queries, device)
    wrapper = flashinfer.BatchPrefillWithPagedKVCacheWrapper(workspace, "NHD")
    wrapper.plan(indptr, pages.indptr, pages.indices, pages.last, args.num_qo_heads, args.num_kv_heads, dim, args.page_size,
                 causal=args.causal, q_data_type=q_type, kv_data_type=kv_type, o_data_type=out_type)

    def native(q, cache):
        return flashinfer.prefill.trtllm_batch_context_with_kv_cache(
            q, cache, workspace, pages.table, pages.lengths, max(queries), max(keys), scale, 1.0, args.batch_size, indptr,
            _indptr(keys, device), out_dtype=out_type, kv_layout="NHD", enable_pdl=args.enable_pdl)

    def expected(row, i, r):
        k, v = pages.request(i)
        return _attend(q[row], k, v, keys[i] - queries[i] + r + 1 if args.causal else keys[i], scale)

    kv = [pages.request(i) for i in range(args.batch_size)] if args.peers else []
    return Case(lambda q, cache: wrapper.run(q, cache, enable_pdl=args.enable_pdl), (q, pages.cache),
                routes={"trtllm-native": native} if args.causal else {},
                row=_row(args, *types, args.causal, sum(queries) // args.batch_size, head_dim_qk=dim, head_dim_vo=dim_vo),
                check=_check(q_type, kv_type, _rows_of(queries), expected), show=_show, no_graph=("fa2",),
                peers=_peer(q, [x[0] for x in kv], [x[1] for x in kv], queries, keys, args.causal, scale) if args.peers else {},
                **_figures(args, queries, keys, (dim, dim_vo), args.causal, types))


def _prefill_ragged(args, device):
    q_type, kv_type, out_type = types = _types(args)
    dim, dim_vo = _dims(args)
    queries, keys = _prefill_lengths(args)
    q = _random(q_type, device, sum(queries), args.num_qo_heads, dim)
    k = _random(kv_type, device, sum(keys), args.num_kv_heads, dim)
    v, scale = _random(kv_type, device, sum(keys), args.num_kv_heads, dim_vo), dim ** -0.5
    starts = _indptr(keys, device)
    wrapper = flashinfer.BatchPrefillWithRaggedKVCacheWrapper(_workspace(device), "NHD")
    wrapper.plan(_indptr(queries, device), starts, args.num_qo_heads, args.num_kv_heads, dim, dim_vo, causal=args.causal,
                 q_data_type=q_type, kv_data_type=kv_type, o_data_type=out_type)

    def request(i):
        begin, end = starts[i:i + 2].tolist()
        return k[begin:end], v[begin:end]

    def expected(row, i, r):
        return _attend(q[row], *request(i), keys[i] - queries[i] + r + 1 if args.causal else keys[i], scale)

    kv = [request(i) for i in range(args.batch_size)] if args.peers else []
    return Case(lambda q, k, v: wrapper.run(q, k, v, enable_pdl=args.enable_pdl), (q, k, v),
                row=_row(args, *types, args.causal, sum(queries) // args.batch_size, head_dim_qk=dim, head_dim_vo=dim_vo),
                check=_check(q_type, kv_type, _rows_of(queries), expected), show=_show, no_graph=("fa2",),
                peers=_peer(q, [x[0] for x in kv], [x[1] for x in kv], queries, keys, args.causal, scale) if args.peers else {},
                **_figures(args, queries, keys, (dim, dim_vo), args.causal, types))


def _mla(args, device):
    q_type, kv_type, out_type = types = _types(args)
    ckv, kpe = args.head_dim_ckv, args.head_dim_kpe
    if ckv is None or kpe is None:
        raise ValueError("--head_dim_ckv and --head_dim_kpe are required for this routine")
    keys, queries = _lengths(args, args.s_kv, args.s_qo), [args.s_qo] * args.batch_size
    pages = _Pages(args, keys, kv_type, device, 1, ckv + kpe)
    causal = args.s_qo > 1 or args.causal
    heads, scale = args.num_qo_heads, (128 + kpe) ** -0.5  # of the head before absorption
    q = _random(q_type, device, sum(queries), heads, ckv + kpe)
    wrapper = flashinfer.mla.BatchMLAPagedAttentionWrapper(_workspace(device))
    tables = flashinfer.mla.MLAPlanMetadata.csr(_indptr(queries, device), pages.indptr, pages.indices, pages.lengths)
    wrapper.plan(metadata=tables, num_heads=heads, head_dim_ckv=ckv, head_dim_kpe=kpe, page_size=args.page_size, causal=causal,
                 sm_scale=scale, q_data_type=q_type, kv_data_type=kv_type)
    cache = pages.cache[:, 0]

    def expected(row, i, r):
        k = pages.request(i)[0][:, None]
        return _attend(q[row], k, k[..., :ckv], keys[i] - args.s_qo + r + 1 if causal else keys[i], scale)

    pairs = sum(n * (2 * m - n + 1) / 2 for n, m in zip(queries, keys))
    moved = count_bytes(q) + sum(keys) * (ckv + kpe) * kv_type.itemsize + sum(queries) * heads * ckv * out_type.itemsize
    return Case(lambda q, cache: wrapper.run(q[..., :ckv], q[..., ckv:], cache[..., :ckv], cache[..., ckv:]), (q, cache),
                2 * pairs * heads * (2 * ckv + kpe), moved,
                _row(args, *types, causal, sum(keys) // args.batch_size, head_dim_ckv=ckv, head_dim_kpe=kpe,
                     is_var_seq=args.mla_is_var_seq or "", cute_dsl_impl=args.mla_cute_dsl_impl or ""),
                check=_check(q_type, kv_type, _rows_of(queries), expected), show=_show, no_graph=("fa2",))


_MAKERS = {"BatchDecodeWithPagedKVCacheWrapper": _decode, "BatchPrefillWithPagedKVCacheWrapper": _prefill_paged,
           "BatchPrefillWithRaggedKVCacheWrapper": _prefill_ragged, "BatchMLAPagedAttentionWrapper": _mla}


def make(args, device):
    args.backends = _backends(args)
    return _MAKERS[args.routine](args, device)
