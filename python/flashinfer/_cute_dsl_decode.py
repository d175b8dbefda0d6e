# SPDX-License-Identifier: Apache-2.0
"""Decode wrappers that FlashInfer has for kernels in CuTe DSL, of this library's ops: `trtllm_ragged_attention_deepseek` and
`trtllm_batch_context_with_kv_cache`, which take windows, sinks and rows that are not causal. Splits, reductions and workspaces are of GPU kernels."""
import functools
import math
import warnings


def _older_form(*names):
    """Takes keyword arguments by position too, in that order, with a DeprecationWarning; `is_causal` as window_right 0 or None.

    Raises:
        TypeError: more arguments than names, an argument twice, is_causal beside a window
    """
    def decorate(method):
        count = method.__code__.co_argcount

        @functools.wraps(method)
        def call(*args, **kwargs):
            extra = args[count:]
            who = f"{type(args[0]).__name__}.{method.__name__}"
            if extra:
                if len(extra) > len(names):
                    raise TypeError(f"{who} takes at most {len(names)} optional arguments by position, but {len(extra)} were given")
                warnings.warn(f"{who}: passing {', '.join(names[:len(extra)])} positionally is deprecated: pass them by name", DeprecationWarning, stacklevel=2)
                twice = [n for n in names[:len(extra)] if n in kwargs]
                if twice:
                    raise TypeError(f"{who} got multiple values for argument {twice[0]!r}")
                kwargs.update(zip(names, extra))
            if "is_causal" in kwargs:
                if {"window_left", "window_right"} & kwargs.keys():
                    raise TypeError(f"{who}: is_causal cannot be given beside window_left and window_right")
                warnings.warn(f"{who}: is_causal is deprecated: use window_right=0 or None", DeprecationWarning, stacklevel=2)
                kwargs["window_right"] = 0 if kwargs.pop("is_causal") else None
            return method(*args[:count], **kwargs)
        return call
    return decorate


def _planned(who, q, kv, o, sm_scale, window_left, window_right, reduction, head_dim):
    """What both plans keep."""
    import torch

    q = torch.float16 if q is None else q
    if kv not in (None, q):
        raise ValueError(f"{who}: kv_data_type is {kv}, but must be q_data_type, {q}")
    if window_right not in (None, 0, -1):
        raise NotImplementedError(f"{who}: window_right is {window_right}, but only 0 (causal) and None are available; custom_mask of flashinfer.prefill's "
                                  "wrappers hides any keys")
    if reduction not in ("auto", "kernel", "atomic", "none"):
        raise ValueError(f"{who}: reduction is {reduction!r}, but must be 'auto', 'kernel', 'atomic' or 'none'")
    eight_bits = q.itemsize == 1
    return dict(q_dtype=q, out_dtype=(torch.float16 if eight_bits else q) if o is None else o, sm_scale=1 / math.sqrt(head_dim) if sm_scale is None else sm_scale,
                window_left=-1 if window_left is None else window_left, causal=window_right == 0)


class _Wrapper:
    def __init__(self, float_workspace_buffer, use_cuda_graph=False):
        self._workspace, self._plan = float_workspace_buffer, None

    def _check(self, q, heads, dim):
        """The plan, after checks of q's dtype, heads and head dim."""
        who = f"{type(self).__name__}.run"
        if self._plan is None:
            raise RuntimeError(f"{who}: call plan() before")
        for name, got, want in (("q.dtype", q.dtype, self._plan["q_dtype"]), ("q's heads", q.shape[-2], heads), ("q's head dim", q.shape[-1], dim)):
            if got != want:
                raise ValueError(f"{who}: {name} is {got}, but the plan has {want}")
        return who

    def _memory(self, q, width, out, lse):
        """(out, lse), made where absent, and both as rows of tokens."""
        import torch

        out = torch.empty(*q.shape[:-1], width, dtype=self._plan["out_dtype"], device=q.device) if out is None else out
        return out, out.view(-1, *out.shape[-2:]), None if lse is None else lse.view(-1, lse.shape[-1])


class BatchDecodeCuteDSLWrapper(_Wrapper):
    """Decode of requests whose keys and values are rows of one length; q has shape [batch, queries of a request, heads, dim]."""

    @_older_form("q_data_type", "kv_data_type", "o_data_type", "sm_scale", "kv_splits", "reduction", "q_len_per_req", "is_causal")
    def plan(self, batch_size, max_kv_len, num_qo_heads, num_kv_heads, head_dim, *, q_data_type=None, kv_data_type=None, o_data_type=None, sm_scale=None,
             kv_splits=None, reduction="auto", q_len_per_req=1, window_left=None, window_right=0):
        """Keeps heads, dtypes (torch.float16 when absent), scale (1 / sqrt(head_dim)) and windows (None: none; window_right 0: causal); what else it
        is told has no effect.

        Raises:
            ValueError: another kv_data_type than q_data_type, an unknown reduction
            NotImplementedError: keys after a query's own, but not all of them
        """
        who = "BatchDecodeCuteDSLWrapper.plan"
        self._plan = _planned(who, q_data_type, kv_data_type, o_data_type, sm_scale, window_left, window_right, reduction, head_dim)
        self._shape = num_qo_heads, num_kv_heads, head_dim

    @_older_form("out", "sm_scale", "o_scale", "lse", "enable_pdl")
    def run(self, q, k, v, *, out=None, sm_scale=None, o_scale=None, lse=None, enable_pdl=True, sinks=None):
        """o_scale * softmax(sm_scale * q k^T) v of k and v [batch, keys, heads, dim]; `lse` [batch, queries, heads] is written in base 2.

        Raises:
            RuntimeError: no plan
            ValueError: tensors that are not the plan's
        """
        import torch

        from .prefill import trtllm_ragged_attention_deepseek

        heads, kv_heads, dim = self._shape if self._plan else (0, 0, 0)
        who = self._check(q, heads, dim)
        if q.dim() != 4 or k.dim() != 4 or v.dim() != 4 or k.shape[:3] != v.shape[:3] or len(k) != len(q) or k.shape[2] != kv_heads:
            raise ValueError(f"{who}: q, k, v have shapes {tuple(q.shape)}, {tuple(k.shape)}, {tuple(v.shape)}, but must be [batch, queries, {heads}, {dim}] and "
                             f"[batch, keys, {kv_heads}, {dim}]")
        batch, queries, keys = len(q), q.shape[1], k.shape[1]
        result, rows, lse_rows = self._memory(q, v.shape[-1], out, lse)
        starts = torch.arange(batch + 1, dtype=torch.int32)
        p = self._plan
        trtllm_ragged_attention_deepseek(
            q.reshape(-1, *q.shape[2:]), k.reshape(-1, *k.shape[2:]), v.reshape(-1, *v.shape[2:]), self._workspace,
            torch.full((batch,), keys, dtype=torch.int32), queries, keys, p["sm_scale"] if sm_scale is None else sm_scale,
            1.0 if o_scale is None else o_scale, -1, batch, p["window_left"], starts * queries, starts * keys, enable_pdl, p["causal"], lse is not None,
            attention_sinks=sinks, out=rows, lse=lse_rows)
        return result


class BatchDecodePagedCuteDSLWrapper(_Wrapper):
    """Decode over pages; q has shape [batch * queries of a request, heads, dim] or [batch, queries, heads, dim]."""

    @_older_form("q_data_type", "kv_data_type", "o_data_type", "sm_scale", "kv_splits", "reduction", "q_len_per_req", "is_causal", "max_kv_len", "non_blocking",
                 "precompile_skip_softmax_kernel")
    def plan(self, indptr, indices, seq_lens, num_qo_heads, num_kv_heads, head_dim, page_size, *, q_data_type=None, kv_data_type=None, o_data_type=None,
             sm_scale=None, kv_splits=None, reduction="auto", q_len_per_req=1, window_left=None, window_right=0, max_kv_len=None, non_blocking=True,
             precompile_skip_softmax_kernel=False):
        """Keeps the page table (indptr int32 [batch + 1] in pages, indices, seq_lens int32 [batch] in tokens) and what BatchDecodeCuteDSLWrapper.plan keeps.

        Raises:
            ValueError: arrays that do not fit together; as BatchDecodeCuteDSLWrapper.plan
            NotImplementedError: as there
        """
        import torch

        who = "BatchDecodePagedCuteDSLWrapper.plan"
        plan = _planned(who, q_data_type, kv_data_type, o_data_type, sm_scale, window_left, window_right, reduction, head_dim)
        pages = indptr.diff()
        if len(indptr) != len(seq_lens) + 1 or (pages < 0).any() or int(indptr[-1]) > len(indices):
            raise ValueError(f"{who}: indptr has {len(indptr)} entries up to {int(indptr[-1])}, but there are {len(seq_lens)} requests and {len(indices)} page ids")
        width = max(int(pages.max()) if len(pages) else 0, 1)
        tables = torch.zeros(len(seq_lens), width, dtype=torch.int32)
        for b, count in enumerate(pages.tolist()):
            tables[b, :count] = indices[int(indptr[b]):int(indptr[b]) + count]
        self._plan, self._shape = plan, (num_qo_heads, num_kv_heads, head_dim, page_size)
        self._tables, self._seq_lens = tables, seq_lens.clone()

    @_older_form("out", "sm_scale", "o_scale", "skip_softmax_threshold_scale_factor", "lse", "enable_pdl")
    def run(self, q, k_cache, v_cache, *, out=None, sm_scale=None, o_scale=None, skip_softmax_threshold_scale_factor=None, lse=None, enable_pdl=True, sinks=None):
        """o_scale * softmax(sm_scale * q k^T) v of caches [pages, page_size, heads, dim]; `lse`, [.., heads] as q, is written in base 2.

        Raises:
            RuntimeError: no plan
            ValueError: tensors that are not the plan's; a skip_softmax_threshold_scale_factor (nothing is skipped) that is not positive
        """
        import torch

        from .prefill import trtllm_batch_context_with_kv_cache

        heads, kv_heads, dim, page_size = self._shape if self._plan else (0, 0, 0, 0)
        who = self._check(q, heads, dim)
        for name, cache in (("k_cache", k_cache), ("v_cache", v_cache)):
            if cache.dim() != 4 or cache.shape[1:3] != (page_size, kv_heads):
                raise ValueError(f"{who}: {name} has shape {tuple(cache.shape)}, but must be [pages, {page_size}, {kv_heads}, dim]")
        batch = len(self._seq_lens)
        tokens = q.shape[0] * q.shape[1] if q.dim() == 4 else q.shape[0]
        if q.dim() == 4 and len(q) != batch or tokens % max(batch, 1):
            raise ValueError(f"{who}: q has shape {tuple(q.shape)}, but the plan has {batch} requests")
        queries = tokens // max(batch, 1)
        result, rows, lse_rows = self._memory(q, v_cache.shape[-1], out, lse)
        kv_ends = torch.zeros(batch + 1, dtype=torch.int32)
        kv_ends[1:] = self._seq_lens.cumsum(0)
        p = self._plan
        trtllm_batch_context_with_kv_cache(
            q.reshape(-1, *q.shape[-2:]), (k_cache, v_cache), self._workspace, self._tables, self._seq_lens, queries,
            int(self._seq_lens.max()) if batch else 0, p["sm_scale"] if sm_scale is None else sm_scale, 1.0 if o_scale is None else o_scale, batch,
            torch.arange(batch + 1, dtype=torch.int32) * queries, kv_ends, window_left=p["window_left"], out=rows, kv_layout="NHD", sinks=sinks,
            skip_softmax_threshold_scale_factor=skip_softmax_threshold_scale_factor, causal=p["causal"], lse=lse_rows, return_lse=lse is not None)
        return result
