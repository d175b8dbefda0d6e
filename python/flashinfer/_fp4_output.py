# SPDX-License-Identifier: Apache-2.0
"""Attention whose result is an FP4Tensor (`out_dtype="nvfp4"`, or `out` is one): the op computes f32, which nvfp4_quantize_into writes as
codes and scales."""
from ._layouts import FP4Tensor

OPS = frozenset(("trtllm_batch_decode_with_kv_cache", "trtllm_batch_context_with_kv_cache"))
_NAME = "nvfp4"


def is_wanted(given):
    """Whether the call of an op in OPS with these arguments (by name) has such a result."""
    return given.get("out_dtype") == _NAME or isinstance(given.get("out"), FP4Tensor)


def run(functions, name, given):
    """The call. `functions`: the package's, by name. ValueError: an `out` or `out_dtype` of another kind beside it, no o_sf_scale."""
    import torch

    query, out, dtype = given["query"], given.get("out"), given.get("out_dtype")
    scale, block = given.get("o_sf_scale"), given.get("o_sf_vec_size")
    if dtype not in (None, _NAME):
        raise ValueError(f"{name}: out is an FP4Tensor, but out_dtype is {dtype}")
    if out is not None and not isinstance(out, FP4Tensor):
        raise ValueError(f"{name}: out_dtype is nvfp4, but out is {type(out).__name__}, not an FP4Tensor")
    if scale is None:
        raise ValueError(f"{name}: o_sf_scale is needed when out_dtype is nvfp4")
    if block not in (None, 16):
        raise ValueError(f"{name}: o_sf_vec_size is {block}, but must be 16")
    rows, heads, dim = query.shape
    if dim % 16:
        raise ValueError(f"{name}: query.shape[2] is {dim}, but must be a multiple of 16 for an FP4 output")
    shape, columns = (rows, heads, dim // 2), -(-heads * dim // 64) * 4
    if out is None:
        scales = torch.empty(-(-rows // 128) * 128, columns, dtype=torch.float8_e4m3fn, device=query.device)
        out = FP4Tensor(torch.empty(shape, dtype=torch.uint8, device=query.device), scales) if rows else None
    elif out.data.shape != shape or out.scale.dim() != 2 or out.scale.shape[1] != columns:
        raise ValueError(f"{name}: out has data {list(out.data.shape)} and scale {list(out.scale.shape)}, but must have {list(shape)} and "
                         f"[rows, {columns}]")
    result = functions[name](**given | dict(out=None, out_dtype=torch.float32, o_sf_scale=None, o_sf_vec_size=None))
    values, *lse = result if isinstance(result, tuple) else (result,)
    functions["nvfp4_quantize_into"](values, float(scale), out.data, out.scale, out.scale_start_index)
    made = FP4Tensor(out.data, out.scale, out.scale_start_index, tuple(query.shape))
    return (made, *lse) if lse else made
