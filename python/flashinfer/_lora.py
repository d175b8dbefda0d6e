# SPDX-License-Identifier: Apache-2.0
"""LoRA in mixtures of experts by tables of addresses.

`fill_w_ptr` writes the addresses of a tensor's matrices into a table and remembers the tensor, without keeping its memory alive. Functions
that take a table find the tensors again and call `bgmv_moe_shrink_weights` and `bgmv_moe_expand_weights`, which take tensors: so these are
what is logged, recorded and replayed. An address that was not written by `fill_w_ptr` in this process, or whose tensor is gone, is a
ValueError; nothing is ever read from an address.
"""

from . import _op

_BF16 = _op.Literal("torch.bfloat16")  # prints as torch's, whether torch is there or not
_known = {}  # address of a tensor -> (weak reference to its memory, dtype, offset, shape, strides)
_CLEAN_AT = 1024  # tensors that are remembered before those that are gone are dropped


def _op_of(name):
    from ._make import package

    return package.exports[name]


def _dtype(d):
    import torch

    return torch.bfloat16 if d is _BF16 else d


def _alive(entry):
    """The tensor of an entry, or None when its memory is gone."""
    import torch

    weak, dtype, offset, shape, strides = entry
    storage = torch.UntypedStorage._new_with_weak_ptr(weak.cdata)
    return None if storage is None else torch.empty(0, dtype=dtype, device=storage.device).set_(storage, offset, shape, strides)


def fill_w_ptr(w_ptr, weights, num_experts, slice_id):
    """Writes the addresses of the experts' matrices of the first adapter into row `slice_id` of a table.

    Args:
        w_ptr: int64 [slices, experts]
        weights: [adapters, experts, rows, columns], rows contiguous; its memory must live as long as the table is used
        num_experts: experts of `weights`
        slice_id: the row of the table

    Returns:
        the stride between adapters, in elements

    Raises:
        ValueError: inconsistent extents or dtypes
    """
    import torch
    from torch.multiprocessing.reductions import StorageWeakRef

    if w_ptr.dtype != torch.int64 or w_ptr.dim() != 2 or w_ptr.shape[1] != num_experts or not 0 <= slice_id < w_ptr.shape[0]:
        raise ValueError(f"fill_w_ptr: w_ptr is {w_ptr.dtype} of shape {tuple(w_ptr.shape)}, but must be torch.int64 [more than {slice_id} (slice_id), "
                         f"{num_experts} (num_experts)]")
    if weights.dim() != 4 or weights.shape[1] != num_experts or weights.stride(3) != 1:
        raise ValueError(f"fill_w_ptr: weights has shape {tuple(weights.shape)}, but must be [adapters, {num_experts} (num_experts), rows, columns] with "
                         "contiguous rows")
    if len(_known) >= _CLEAN_AT:
        for address in [a for a, entry in _known.items() if entry[0].expired()]:
            del _known[address]
    _known[weights.data_ptr()] = (StorageWeakRef(weights.untyped_storage()), weights.dtype, weights.storage_offset(), weights.shape, weights.stride())
    step = weights.stride(1) * weights.element_size()
    w_ptr[slice_id] = torch.tensor([weights.data_ptr() + e * step for e in range(num_experts)], dtype=torch.int64)
    return weights.stride(0)


def _tensors(function, name, w_ptr, lora_stride):
    """The tensors that a table stands for, one for each row."""
    found = []
    for s, row in enumerate(w_ptr.reshape(-1, w_ptr.shape[-1]).tolist()):
        entry = _known.get(row[0]) if row else None
        weights = _alive(entry) if entry else None
        if weights is None:
            raise ValueError(f"{function}: {name}[{s}] holds addresses that fill_w_ptr has not written, or whose tensor is gone")
        step = weights.stride(1) * weights.element_size()
        if len(row) != weights.shape[1] or any(a != row[0] + e * step for e, a in enumerate(row)) or lora_stride != weights.stride(0):
            raise ValueError(f"{function}: {name}[{s}] and a stride of {lora_stride} are not the {weights.shape[1]} experts and the stride of "
                             f"{weights.stride(0)} that fill_w_ptr wrote")
        found.append(weights)
    return found


def bgmv_moe_shrink(y, x, w_ptr, sorted_token_ids, expert_ids, lora_indices, lora_stride, *, per_pair_input=False):
    """y[slice, pair] += x[token] A[adapter, expert]^T, as `bgmv_moe_shrink_weights`, which is what is logged and recorded.

    Args:
        y: [slices, pairs, rank]
        x: [tokens, h]; with per_pair_input [pairs, h]
        w_ptr: int64 [slices, experts] of fill_w_ptr
        sorted_token_ids, expert_ids: [pairs]
        lora_indices: [tokens], negative: no adapter
        lora_stride: what fill_w_ptr returned
        per_pair_input: whether x has a row for each pair

    Raises:
        ValueError: addresses that fill_w_ptr has not written; inconsistent extents
    """
    weights = _tensors("bgmv_moe_shrink", "w_ptr", w_ptr, lora_stride)
    _op_of("bgmv_moe_shrink_weights")(y, x, weights, sorted_token_ids, expert_ids, lora_indices, per_pair_input)


def bgmv_moe_expand(y, x, w_ptr, sorted_token_ids, expert_ids, topk_weights, lora_indices, slice_start_loc, output_slices, lora_stride, *, finalize=True):
    """y[token, columns of slice] += topk_weight * x[slice, pair] B[adapter, expert]^T, or without `finalize` y[pair] = the product, as
    `bgmv_moe_expand_weights`, which is what is logged and recorded.

    Args:
        y: [tokens, columns]; without finalize [pairs, columns]
        x: [slices, pairs, rank]
        w_ptr: int64 [slices, experts] of fill_w_ptr
        sorted_token_ids, expert_ids, topk_weights: [pairs]
        lora_indices: [tokens], negative: no adapter
        slice_start_loc: [slices], the first column of each slice
        output_slices: columns of each slice
        lora_stride: what fill_w_ptr returned
        finalize: whether pairs are weighted and added to their token's row

    Raises:
        ValueError: addresses that fill_w_ptr has not written; inconsistent extents
    """
    weights = _tensors("bgmv_moe_expand", "w_ptr", w_ptr, lora_stride)
    _op_of("bgmv_moe_expand_weights")(y, x, weights, sorted_token_ids, expert_ids, topk_weights, lora_indices, slice_start_loc, list(output_slices), finalize)


def _banks(function, tables, rank, dtype):
    """The tensors of the tables of A and B."""
    found = []
    for name, w_ptr, stride, axis in tables:
        weights = _tensors(function, name, w_ptr, stride)
        for w in weights:
            if w.shape[axis] != rank or w.dtype != dtype:
                raise ValueError(f"{function}: {name} has matrices of {w.dtype} and rank {w.shape[axis]}, but lora_dtype is {dtype} and rank {rank}")
        found.append(weights)
    return found


def _pairs(topk_ids):
    """Tokens and experts of all choices; experts below 0 belong to no token."""
    import torch

    experts = topk_ids.reshape(-1).long()
    tokens = torch.arange(topk_ids.shape[0], device=topk_ids.device).repeat_interleave(topk_ids.shape[1])
    return torch.where(experts >= 0, tokens, -1), experts


def _steps(x, a, b, tokens, experts, weights, lora_ids, y, starts, finalize):
    """Both steps, the result of the first in float32."""
    import torch

    small = torch.zeros(len(a), len(tokens), a[0].shape[2], dtype=torch.float32, device=x.device)
    _op_of("bgmv_moe_shrink_weights")(small, x, a, tokens, experts, lora_ids, finalize)  # the rows of activations are those of pairs
    _op_of("bgmv_moe_expand_weights")(y, small, b, tokens, experts, weights, lora_ids, torch.tensor(starts), [m.shape[2] for m in b], finalize)


def bgmv_moe_gemm1_lora_delta(hidden_states, w_ptr_a, lora_stride_a, w_ptr_b, lora_stride_b, topk_ids, lora_ids, rank, intermediate_size, *, lora_dtype=_BF16,
                              scale=1.0, out_dtype=_BF16):
    """What adapters add to the first product of a mixture: `gemm1_lora_delta` of trtllm_*_routed_moe.

    delta[t, j] = scale * (B (A x[t])) of expert topk_ids[t, j] and adapter lora_ids[t], slice by slice; in float32, rounded once.

    Args:
        hidden_states: [t, h], converted to lora_dtype
        w_ptr_a, w_ptr_b: int64 [2, experts] of fill_w_ptr: A and B of both halves; or [experts]: one A, and B with the rows of both halves
        lora_stride_a, lora_stride_b: what fill_w_ptr returned
        topk_ids: [t, top_k]; negative: no expert
        lora_ids: [t]; negative: no adapter
        rank: rows of A
        intermediate_size: columns of a half
        lora_dtype: dtype of A and B
        scale: factor of the result
        out_dtype: dtype of the result

    Returns:
        [t, top_k, 2 * intermediate_size]

    Raises:
        ValueError: addresses that fill_w_ptr has not written; inconsistent extents or dtypes
    """
    import torch

    name, dtype = "bgmv_moe_gemm1_lora_delta", _dtype(lora_dtype)
    a, b = _banks(name, (("w_ptr_a", w_ptr_a, lora_stride_a, 2), ("w_ptr_b", w_ptr_b, lora_stride_b, 3)), rank, dtype)
    starts = [0]
    for m in b:
        starts.append(starts[-1] + m.shape[2])
    if len(a) != len(b) or starts.pop() != 2 * intermediate_size:
        raise ValueError(f"{name}: w_ptr_a has {len(a)} slices and w_ptr_b {len(b)}, whose matrices have {[m.shape[2] for m in b]} rows, but both need as "
                         f"many, with {2 * intermediate_size} (2 * intermediate_size) rows together")
    t, k = topk_ids.shape
    tokens, experts = _pairs(topk_ids)
    y = torch.zeros(t * k, 2 * intermediate_size, dtype=torch.float32, device=hidden_states.device)
    _steps(hidden_states.to(dtype), a, b, tokens, experts, torch.ones(t * k), lora_ids, y, starts, False)
    return (y * scale).to(_dtype(out_dtype)).view(t, k, 2 * intermediate_size)


def bgmv_moe_gemm2_lora_delta(gemm1_activation_output, expanded_idx_to_permuted_idx, w_ptr_a, lora_stride_a, w_ptr_b, lora_stride_b, topk_ids, topk_weights,
                              lora_ids, rank, hidden_size, *, lora_dtype=_BF16, scale=1.0, out_dtype=_BF16):
    """What adapters add to the result of a mixture, from the activations that trtllm_*_routed_moe returns with `gemm1_lora_delta`.

    delta[t] = scale * sum over j of topk_weights[t, j] * (B (A a[t, j])), a[t, j] the row expanded_idx_to_permuted_idx[t * top_k + j] of the
    activations, none where that is negative; in float32, rounded once.

    Args:
        gemm1_activation_output: [rows, intermediate_size], converted to lora_dtype
        expanded_idx_to_permuted_idx: [t * top_k]
        w_ptr_a, w_ptr_b: int64 [1, experts] of fill_w_ptr
        lora_stride_a, lora_stride_b: what fill_w_ptr returned
        topk_ids, topk_weights: [t, top_k]
        lora_ids: [t]; negative: no adapter
        rank: rows of A
        hidden_size: rows of B
        lora_dtype: dtype of A and B
        scale: factor of the result
        out_dtype: dtype of the result

    Returns:
        [t, hidden_size]

    Raises:
        ValueError: addresses that fill_w_ptr has not written; inconsistent extents or dtypes; an index that is not below the number of rows
    """
    import torch

    name, dtype = "bgmv_moe_gemm2_lora_delta", _dtype(lora_dtype)
    a, b = _banks(name, (("w_ptr_a", w_ptr_a, lora_stride_a, 2), ("w_ptr_b", w_ptr_b, lora_stride_b, 3)), rank, dtype)
    if len(a) != 1 or len(b) != 1 or b[0].shape[2] != hidden_size:
        raise ValueError(f"{name}: w_ptr_a has {len(a)} slices and w_ptr_b {len(b)}, of {b[0].shape[2]} rows, but each must have one, of {hidden_size} "
                         "(hidden_size) rows")
    t, k = topk_ids.shape
    place, rows = expanded_idx_to_permuted_idx.reshape(-1).long(), gemm1_activation_output.shape[0]
    if len(place) != t * k or (place >= rows).any():
        raise ValueError(f"{name}: expanded_idx_to_permuted_idx has {len(place)} entries, the largest {int(place.max()) if len(place) else None}, but must have "
                         f"{t * k} (tokens * top_k) below {rows} (rows of gemm1_activation_output)")
    tokens, experts = _pairs(topk_ids)
    tokens = torch.where(place >= 0, tokens, -1)
    x = gemm1_activation_output.to(dtype)[place.clamp(min=0)] if rows else gemm1_activation_output.new_zeros(t * k, gemm1_activation_output.shape[1], dtype=dtype)
    y = torch.zeros(t, hidden_size, dtype=torch.float32, device=x.device)
    _steps(x, a, b, tokens, experts, topk_weights.reshape(-1).float() * scale, lora_ids, y, [0], True)
    return y.to(_dtype(out_dtype))


class BGMVMoEPortablePlan:
    """A call of `bgmv_moe` with its memory; `prepare_bgmv_moe` makes it.

    Attributes:
        backend_used: "portable"
        shrink_out, y_accum: the memory
    """
    backend_used = "portable"

    def __init__(self, steps, shrink_out, y_accum):
        self._steps, self.shrink_out, self.y_accum = steps, shrink_out, y_accum

    def run(self):
        """Computes anew from what the tensors hold now, and returns y_accum: float32 [tokens, columns]."""
        x, a, b, tokens, experts, adapters, weights, starts = self._steps
        self.shrink_out.zero_()
        self.y_accum.zero_()
        _op_of("bgmv_moe_shrink_weights")(self.shrink_out, x, a, tokens, experts, adapters)
        _op_of("bgmv_moe_expand_weights")(self.y_accum, self.shrink_out, b, tokens, experts, weights, adapters, starts, [m.shape[2] for m in b])
        return self.y_accum


def prepare_bgmv_moe(x, lora_a_weights, lora_b_weights, sorted_token_ids, expert_ids, lora_indices, topk_weights, num_experts, *, backend="cake", fallback=True,
                     shrink_out=None, y_accum=None, grouped=None, order_remap=None):
    """`bgmv_moe` as an object that is run often.

    Args:
        x: [tokens, h]
        lora_a_weights, lora_b_weights: for each slice [adapters, experts, rank, h] and [adapters, experts, columns, rank]; one rank for all
        sorted_token_ids, expert_ids, topk_weights: [pairs]
        lora_indices: [tokens], negative: no adapter
        num_experts: experts of the weights
        backend: "cake"
        fallback: must be True: that back end is a GPU's, and what runs is the portable one
        shrink_out: [slices, pairs, rank] of the weights' dtype, made when absent
        y_accum: float32 [tokens, sum of columns], made when absent
        grouped, order_remap: orders of GPU kernels, which change no result; nothing here

    Returns:
        an object whose run() returns the result, float32 [tokens, sum of columns]

    Raises:
        ValueError: fallback=False, another backend, inconsistent extents or dtypes
    """
    import torch

    name = "prepare_bgmv_moe"
    if backend != "cake":
        raise ValueError(f"{name}: backend is {backend!r}, but must be 'cake'")
    if not fallback:
        raise ValueError(f"{name}: fallback is False, but the back end 'cake' is not here")
    a, b = list(lora_a_weights), list(lora_b_weights)
    if not a or len(a) != len(b) or any(m.dim() != 4 or m.shape[1] != num_experts for m in a + b) or len({m.shape[2] for m in a}) != 1:
        raise ValueError(f"{name}: lora_a_weights has shapes {[tuple(m.shape) for m in a]} and lora_b_weights {[tuple(m.shape) for m in b]}, but both must have a "
                         f"matrix for each slice, of {num_experts} (num_experts) experts and one rank")
    starts = [0]
    for m in b:
        starts.append(starts[-1] + m.shape[2])
    shapes = (len(a), sorted_token_ids.shape[0], a[0].shape[2]), (x.shape[0], starts.pop())
    made = []
    for argument, t, shape, dtype in (("shrink_out", shrink_out, shapes[0], a[0].dtype), ("y_accum", y_accum, shapes[1], torch.float32)):
        if t is None:
            t = torch.zeros(shape, dtype=dtype, device=x.device)
        elif tuple(t.shape) != shape or t.dtype != dtype:
            raise ValueError(f"{name}: {argument} is {t.dtype} of shape {tuple(t.shape)}, but must be {dtype} of {shape}")
        made.append(t)
    return BGMVMoEPortablePlan((x, a, b, sorted_token_ids, expert_ids, lora_indices, topk_weights, torch.tensor(starts)), *made)
