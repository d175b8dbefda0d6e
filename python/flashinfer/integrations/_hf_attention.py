# SPDX-License-Identifier: Apache-2.0
"""Attention as transformers calls it (q, k, v [B, H, L, D]) on the library's wrappers, without copies of keys and values:

- requests of one length: k and v are a paged cache in "HND" layout of one page a request, whatever their strides
- padded requests: a mask for one token each, else one call a request over its own tokens
- continuous batching: the pages of transformers' cache, or the ragged tokens that it gives where it has no pages

A plan depends on lengths, heads and dtypes and not on the layer: the layers of one forward share it."""

import threading
from collections import OrderedDict

import torch

import flashinfer

_UNSUPPORTED = {"position_bias": "a position bias", "head_mask": "a head mask"}
_PLANS = 8  # full and sliding layers of the last steps


def attention(module, query, key, value, attention_mask, dropout=0.0, scaling=None, sliding_window=None, softcap=None, is_causal=None,
              s_aux=None, cache=None, **kwargs):
    """query [B, H, Lq, D], key and value [B, Hkv, Lk, D(v)], f32, f16 or bf16; `attention_mask` from `_hf_mask.mask`. Returns
    ([B, Lq, H, Dv], None). Rows of a padded batch that see no key are 0."""
    for name, what in _UNSUPPORTED.items():
        if kwargs.get(name) is not None:
            raise NotImplementedError(f"flashinfer attention has no {name} ({what}): load the model with attn_implementation=\"eager\"")
    if torch.is_grad_enabled() and (query.requires_grad or key.requires_grad or value.requires_grad):
        raise RuntimeError("flashinfer attention has no backward: call the model under torch.no_grad() or torch.inference_mode()")
    if dropout:
        raise NotImplementedError(f"flashinfer attention has no dropout, but dropout is {dropout}: call model.eval()")
    causal = getattr(module, "is_causal", True) if is_causal is None else is_causal  # as in transformers' own functions
    sinks = getattr(module, "sinks", None) if s_aux is None else s_aux
    options = {"causal": bool(causal), "window_left": -1 if not sliding_window else sliding_window - 1,
               "logits_soft_cap": softcap or None, "sm_scale": query.shape[-1] ** -0.5 if scaling is None else float(scaling)}
    if cache is not None:
        return _continuous(module, query, key, value, cache, options, sinks, kwargs), None
    if kwargs.get("cu_seq_lens_q") is not None:  # packed sequences without a cache
        out = _ragged(_rows(query), _rows(key), _rows(value), kwargs["cu_seq_lens_q"], kwargs["cu_seq_lens_k"], options, sinks)
        return out.unsqueeze(0), None
    if attention_mask is None:
        return _equal_lengths(query, key, value, options, sinks), None
    return _masked(query, key, value, attention_mask, options, sinks), None


def varlen_attention(q, k, v, cu_seqlens_q, cu_seqlens_k, max_seqlen_q=None, max_seqlen_k=None, dropout_p=0.0, softmax_scale=None, causal=False,
                     window_size=(-1, -1), softcap=0.0, s_aux=None):
    """FlashAttention's function of packed sequences: q [T, H, D], k and v [S, Hkv, D], cu_seqlens i32 [B + 1]. Returns [T, H, Dv]."""
    if dropout_p:
        raise NotImplementedError(f"varlen_attention has no dropout, but dropout_p is {dropout_p}")
    if window_size[1] not in (-1, 0):
        raise NotImplementedError(f"varlen_attention has windows to the left only, but window_size is {tuple(window_size)}")
    options = {"causal": causal or window_size[1] == 0, "window_left": window_size[0], "logits_soft_cap": softcap or None,
               "sm_scale": q.shape[-1] ** -0.5 if softmax_scale is None else float(softmax_scale)}
    return _ragged(q, k, v, cu_seqlens_q, cu_seqlens_k, options, s_aux)


# ---- plans, shared by the layers of a forward ----


class _Plans(threading.local):
    def __init__(self):
        self.made = OrderedDict()
        self.workspace = torch.empty(0, dtype=torch.uint8)  # the library allocates what it needs

    def get(self, key, make):
        wrapper = self.made.pop(key, None)
        if wrapper is None:
            wrapper = make(self.workspace)
            if len(self.made) >= _PLANS:
                self.made.popitem(last=False)
        self.made[key] = wrapper
        return wrapper


_plans = _Plans()


def _signature(q, k, v, options):
    return (q.shape[-2], k.shape, k.dtype, v.shape[-1], q.shape[-1], q.dtype, q.device, *options.items())


def _with_sinks(out, lse, sinks):
    """A sink is one more key with the logit `sinks[h]` and no value; `lse` is in base 2."""
    if sinks is None:
        return out
    return (out * torch.sigmoid(lse * 0.6931471805599453 - sinks.float()).unsqueeze(-1)).to(out.dtype)


def _run(wrapper, q, kv, sinks):
    if sinks is None:
        return wrapper.run(q, *kv)
    return _with_sinks(*wrapper.run(q, *kv, return_lse=True), sinks)


def _paged(q, k, v, layout, indptr, indices, last_page_len, q_indptr, options, sinks, mask=None, key=()):
    """q [T, H, D] over the paged cache (k, v). Index arrays are host i32; `q_indptr` None: one row a request."""
    heads, kv_heads = q.shape[1], k.shape[1 if layout == "HND" else 2]
    page_size = k.shape[2 if layout == "HND" else 1]
    shared = {k: x for k, x in options.items() if k != "causal"}

    def make(workspace):
        if q_indptr is None and mask is None:
            w = flashinfer.BatchDecodeWithPagedKVCacheWrapper(workspace, layout)
            w.plan(indptr, indices, last_page_len, heads, kv_heads, q.shape[-1], page_size, q_data_type=q.dtype, kv_data_type=k.dtype, **shared)
            return w
        w = flashinfer.BatchPrefillWithPagedKVCacheWrapper(workspace, layout)
        rows = torch.arange(len(indptr), dtype=torch.int32) if q_indptr is None else q_indptr
        w.plan(rows, indptr, indices, last_page_len, heads, kv_heads, q.shape[-1], page_size, head_dim_vo=v.shape[-1], custom_mask=mask,
               causal=options["causal"] and mask is None, q_data_type=q.dtype, kv_data_type=k.dtype, **shared)
        return w

    return _run(_plans.get((layout, *key, *_signature(q, k, v, options)), make), q, ((k, v),), sinks)


def _ragged(q, k, v, q_indptr, kv_indptr, options, sinks):
    q_indptr, kv_indptr = q_indptr.to("cpu", torch.int32), kv_indptr.to("cpu", torch.int32)

    def make(workspace):
        w = flashinfer.BatchPrefillWithRaggedKVCacheWrapper(workspace, "NHD")
        w.plan(q_indptr, kv_indptr, q.shape[1], k.shape[1], q.shape[-1], v.shape[-1], q_data_type=q.dtype, kv_data_type=k.dtype, **options)
        return w

    key = ("ragged", tuple(q_indptr.tolist()), tuple(kv_indptr.tolist()), *_signature(q, k, v, options))
    return _run(_plans.get(key, make), q, (k, v), sinks)


# ---- the forms of a batch ----


def _rows(x):
    """[1, H, T, D] as [T, H, D]."""
    return x[0].transpose(0, 1)


def _equal_lengths(q, k, v, options, sinks, mask=None, key=()):
    """One page a request. `mask`: bool, a bit for each row and key, by requests."""
    batch, heads, length, dim = q.shape
    rows = q.transpose(1, 2).reshape(batch * length, heads, dim)
    if k.shape[-1] != v.shape[-1]:  # multi-head latent attention, expanded: no paged form has two head dims
        starts = torch.arange(batch + 1, dtype=torch.int32)
        flat = [x.transpose(1, 2).reshape(-1, x.shape[1], x.shape[-1]) for x in (k, v)]
        if mask is not None:
            return _each(q, k, v, [(b, 0, k.shape[2], 0) for b in range(batch)], options, sinks, mask)
        out = _ragged(rows, *flat, starts * length, starts * k.shape[2], options, sinks)
        return out.view(batch, length, heads, -1)
    pages = torch.arange(batch + 1, dtype=torch.int32)
    full = torch.full((batch,), k.shape[2], dtype=torch.int32)
    one = length == 1 and mask is None
    out = _paged(rows, k, v, "HND", pages, pages[:-1], full, None if one else pages * length, options, sinks, mask, (length, *key))
    return out.view(batch, length, heads, v.shape[-1])


def _each(q, k, v, spans, options, sinks, mask=None):
    """One call a request. spans: (request, first key, end of keys, first query)."""
    out = q.new_zeros(q.shape[0], q.shape[2], q.shape[1], v.shape[-1])
    for b, first, end, row in spans:
        if end > first:
            custom = None if mask is None else mask.view(q.shape[0], q.shape[2], k.shape[2])[b, row:, first:end].contiguous()
            o = flashinfer.single_prefill_with_kv_cache(q[b, :, row:].transpose(0, 1), k[b, :, first:end], v[b, :, first:end], kv_layout="HND",
                                                        custom_mask=custom, return_lse=sinks is not None,
                                                        **{**options, "causal": options["causal"] and mask is None})
            out[b, row:] = o if sinks is None else _with_sinks(*o, sinks)
    return out


def _bits(mask, q, k):
    """A dense mask [B or 1, 1, Lq, Lk] (bool, or f16/bf16/f32 of 0 and a huge negative number) as bool [B, Lq, Lk]."""
    if mask.shape[1] != 1:
        raise NotImplementedError(f"flashinfer attention has one mask for all heads, but attention_mask is {list(mask.shape)}")
    mask = mask[:, 0, :, :k.shape[2]]
    if mask.dtype != torch.bool:
        seen = mask == 0
        if not torch.equal(seen, mask > torch.finfo(mask.dtype).min / 4):
            raise NotImplementedError("flashinfer attention has no additive bias, but attention_mask has values beside 0 and the lowest")
        mask = seen
    return mask.expand(q.shape[0], -1, -1)


def _masked(q, k, v, attention_mask, options, sinks):
    if attention_mask.ndim == 4:
        bits = _bits(attention_mask, q, k)
        options = {**options, "causal": False, "window_left": -1}  # the mask has both
        return _equal_lengths(q, k, v, options, sinks, bits.reshape(-1), _content(attention_mask))
    padded = attention_mask  # bool [B, Lk]
    if q.shape[2] == 1 and k.shape[-1] == v.shape[-1]:
        seen = padded
        if options["window_left"] >= 0:
            seen = padded & (torch.arange(k.shape[2], device=padded.device) >= k.shape[2] - 1 - options["window_left"])
        return _equal_lengths(q, k, v, {**options, "window_left": -1}, sinks, seen.reshape(-1), _content(attention_mask))
    counts, first = padded.sum(1).tolist(), padded.int().argmax(1).tolist()
    gap = k.shape[2] - q.shape[2]  # keys before the first query
    spans = []
    for b, (count, start) in enumerate(zip(counts, first)):
        end = start + count
        if not bool(padded[b, start:end].all()):
            raise NotImplementedError(f"flashinfer attention takes padding before or after the tokens of a request, but attention_mask[{b}] has holes")
        # Queries after the last token are the padding's: they see all keys of the request and are not used.
        spans.append((b, start, k.shape[2] if options["causal"] else end, max(0, start - gap)))
    return _each(q, k, v, spans, options, sinks)


def _content(mask):
    """What tells two masks apart: a plan holds the bits of its mask."""
    return (hash(mask.cpu().contiguous().view(torch.uint8).numpy().tobytes()),)


def _continuous(module, query, key, value, cache, options, sinks, kwargs):
    """One step of continuous batching: [1, H, T, D] of the tokens of several requests. Keys and values go to the cache's pages."""
    allocator = cache.layer_to_allocator[module.layer_idx]
    lengths = kwargs["cu_seq_lens_k"][allocator.layer_type]
    read = kwargs["read_index"][allocator.index]
    if read.numel() == 0 or options["window_left"] >= 0:  # all keys are new, or in a ring that the new ones overwrite
        key, value = cache.update(key_states=key, value_states=value, layer_idx=module.layer_idx, kwargs=dict(kwargs))
        return _ragged(_rows(query), _rows(key), _rows(value), kwargs["cu_seq_lens_q"], lengths, options, sinks).unsqueeze(0)
    k_cache, v_cache = allocator.get_cache_for_block_table(module.layer_idx)  # [pages, page_size, Hkv, D]
    write = kwargs["write_index"][allocator.index]
    for pool, new in ((k_cache, key), (v_cache, value)):
        pool.view(-1, *pool.shape[2:]).index_copy_(0, write, _rows(new))
    size, starts, q_starts = k_cache.shape[1], lengths.tolist(), kwargs["cu_seq_lens_q"].to("cpu", torch.int32)

    pages, indptr, last = [], [0], []
    for begin, end in zip(starts, starts[1:]):  # a request's tokens fill its pages one after the other
        pages.append(read[begin:end:size] // size)
        indptr.append(indptr[-1] + len(pages[-1]))
        last.append((end - begin - 1) % size + 1 if end > begin else 0)
    as_i32 = lambda x: torch.tensor(x, dtype=torch.int32)
    indices = torch.cat(pages).to("cpu", torch.int32)
    one = bool((q_starts[1:] - q_starts[:-1] == 1).all())
    out = _paged(_rows(query), k_cache, v_cache, "NHD", as_i32(indptr), indices, as_i32(last), None if one else q_starts, options, sinks,
                 key=(tuple(indices.tolist()), tuple(starts), tuple(q_starts.tolist())))
    return out.unsqueeze(0)
