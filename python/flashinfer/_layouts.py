# SPDX-License-Identifier: Apache-2.0
"""Orders of rows that GPU kernels of fused MoE expect of weights and of their scales, and a tensor of 4-bit numbers with its scales."""


def get_shuffle_block_size(epilogue_tile_m):
    """Rows that are reordered among themselves: 32 for tiles of a multiple of 128 rows, else 16."""
    return 32 if epilogue_tile_m % 128 == 0 else 16


def get_shuffle_matrix_a_row_indices(input_tensor, epilogue_tile_m):
    """int64 [M]: `input_tensor[indices]` has the rows of an [M, K] weight as `shuffle_matrix_a` orders them: within each block of B
    rows (16 or 32), row r goes to (r % (B/8)) * 8 + r / (B/8).

    Raises:
        AssertionError: not two dimensions, or M is no multiple of B
    """
    import torch

    block = get_shuffle_block_size(epilogue_tile_m)
    assert input_tensor.dim() == 2, f"input_tensor should be a 2D tensor, not {input_tensor.dim()}"
    rows = input_tensor.shape[0]
    assert rows % block == 0, f"input_tensor.shape[0] must be multiples of {block}"
    return torch.arange(rows).view(-1, 8, block // 8).transpose(1, 2).reshape(-1)


def interleave_moe_scales_for_sm90_mixed_gemm(scales, group_size=32):
    """Scales [experts, n, k / group_size] of 4-bit weights in the order that FlashInfer's kernels for SM90 read, contiguous
    [experts, n / 64, k / 128, 64 / q, q * c]: c = 128 / group_size scales of 128 columns, of q = 16 / (bytes of a scale) / c rows that are
    64 / q apart. `cutlass_fused_moe` takes them with weights of `interleave_moe_weights_for_sm90_mixed_gemm`; in plain order both are
    faster. The order is that of FlashInfer's results.

    Raises:
        ValueError: not three dimensions, n is no multiple of 64, group_size does not divide 128, k is no multiple of 128, or 16 bytes hold
            no whole number of rows
    """
    who = "interleave_moe_scales_for_sm90_mixed_gemm"
    if scales.dim() != 3:
        raise ValueError(f"{who}: scales must be 3D (experts, rows, K/group_size), but is {tuple(scales.shape)}")
    experts, rows, columns = scales.shape
    if group_size <= 0 or 128 % group_size:
        raise ValueError(f"{who}: group_size={group_size} must be positive and divide 128")
    if rows % 64:
        raise ValueError(f"{who}: scale rows={rows} must be divisible by 64")
    each, size = 128 // group_size, scales.element_size()
    if columns % each:
        raise ValueError(f"{who}: K/group_size={columns} must be divisible by {each}, the scales of 128 columns")
    if size * each > 16:
        raise ValueError(f"{who}: scales.dtype is {scales.dtype}, of which 16 bytes hold fewer than the {each} scales of 128 columns (group_size={group_size})")
    apart = 64 * size * each // 16
    parts = scales.reshape(experts, rows // 64, 64 // apart, apart, columns // each, each)
    return parts.permute(0, 1, 4, 3, 2, 5).contiguous().view(experts, rows // 64, columns // each, apart, 16 // size)


def interleave_moe_weights_for_sm90_mixed_gemm(weight, quant_type="fp4"):
    """uint8 [experts, n, k/2] of two codes a byte in the order that FlashInfer's kernels for SM90 read: of each 16 rows, r and r + 8 lie
    together for each 64 columns c = 32 u + 16 h + d, in row r + 8 h.

    "fp4" (MXFP4 beside bf16): the 16 bits 8 u + d, d < 8, hold (r, c), (r + 8, c), (r, c + 8) and (r + 8, c + 8), bits of one code apart.
    "int4", "fp4_fp8": the 16 bits 8 u + 2 (d / 4) + s hold the codes of row r + 8 s in four columns; of "fp4_fp8", whose kernel FlashInfer calls
    Humming, the signs of these eight codes are in the order of columns, row r + 8 first. The orders are those of FlashInfer's results.
    `cutlass_fused_moe` takes "fp4" and "int4" with scales of `interleave_moe_scales_for_sm90_mixed_gemm`.

    Raises:
        ValueError: not uint8 of three dimensions, another quant_type, n is no multiple of 16, or k is no multiple of 64
    """
    import torch

    who = "interleave_moe_weights_for_sm90_mixed_gemm"
    if weight.dim() != 3:
        raise ValueError(f"{who}: weight must be 3D (num_experts, n, k/2); got shape {tuple(weight.shape)}")
    if weight.dtype != torch.uint8:
        raise ValueError(f"{who}: weight must be uint8 (packed 4-bit); got {weight.dtype}")
    if quant_type not in ("fp4", "fp4_fp8", "int4"):
        raise ValueError(f"{who}: quant_type must be 'fp4', 'fp4_fp8' or 'int4'; got {quant_type!r}")
    experts, n, half = weight.shape
    if n % 16 or half % 32:
        raise ValueError(f"{who}: weight is {tuple(weight.shape)}, but n must be a multiple of 16 and k/2 of 32")
    if quant_type != "fp4":
        parts = weight.reshape(experts, n // 16, 2, 8, half // 32, 2, 2, 4, 2)  # (a, s, i), (b, u, h, d / 4, byte)
        parts = parts.permute(0, 1, 6, 3, 4, 5, 7, 2, 8).reshape(weight.shape)
        if quant_type == "int4":
            return parts
        codes = torch.stack((parts & 15, parts >> 4), -1).reshape(-1, 2, 4)  # rows r and r + 8, four columns
        signs = (codes & 8).flip(1).transpose(1, 2).reshape(-1, 4, 2)
        codes = (codes & 7).reshape(-1, 4, 2) | signs
        return (codes[..., 0] | codes[..., 1] << 4).reshape(weight.shape)
    codes = torch.stack((weight & 15, weight >> 4), -1).int()
    codes = codes.reshape(experts, n // 16, 2, 8, half // 32, 2, 2, 2, 8)  # (a, s, i), (b, u, h, half of d, d)
    codes = codes.permute(2, 7, 0, 1, 6, 3, 4, 5, 8)
    (a, c), (b, d) = codes
    words = (c & 7) | (b & 7) << 3 | (a & 7) << 6 | (c >> 3) << 9 | (d >> 1 & 3) << 10 | (b >> 3) << 12 | (d & 1) << 13 | (d >> 3) << 14 | (a >> 3) << 15
    return torch.stack((words & 255, words >> 8), -1).to(torch.uint8).reshape(weight.shape)


def get_shuffle_matrix_sf_a_row_indices(input_tensor, epilogue_tile_m, num_elts_per_sf=16):
    """The same for [M, K / num_elts_per_sf] scales of uint8 or bfloat16, which have the order of the weight's rows.

    Raises:
        AssertionError: other dtypes, not two dimensions, M is no multiple of 128, or a scale is neither for 16 nor for 32 elements
    """
    import torch

    assert input_tensor.dtype in (torch.uint8, torch.bfloat16), f"input_tensor should be uint8 or bfloat16, not {input_tensor.dtype}"
    assert num_elts_per_sf in (16, 32), f"num_elts_per_sf is {num_elts_per_sf}, but must be 16 or 32"
    assert input_tensor.dim() == 2, f"input_tensor should be a 2D tensor, not {input_tensor.dim()}"
    assert input_tensor.shape[0] % 128 == 0, f"input_tensor.shape[0] is {input_tensor.shape[0]}, but must be a multiple of 128"
    return get_shuffle_matrix_a_row_indices(input_tensor, epilogue_tile_m)


def get_reorder_rows_for_gated_act_gemm_row_indices(x):
    """int64 [M] for an [M, K] weight of two halves: their rows by turns, 0, M/2, 1, M/2 + 1, ...

    Raises:
        AssertionError: not two dimensions, or M is odd
    """
    import torch

    assert x.dim() == 2, f"x should be a 2D tensor, not {x.dim()}"
    assert x.shape[0] % 2 == 0, f"x.shape[0] must be even, not {x.shape[0]}"
    return torch.arange(x.shape[0]).view(2, -1).T.reshape(-1)


def _shuffled(weight, epilogue_tile_m, num_elts_per_sf):
    if num_elts_per_sf is None:
        return get_shuffle_matrix_a_row_indices(weight, epilogue_tile_m)
    return get_shuffle_matrix_sf_a_row_indices(weight, epilogue_tile_m, num_elts_per_sf)


def get_w2_permute_indices_with_cache(_cache_permute_indices, dst_w2_weight, epilogue_tile_m, num_elts_per_sf=None, is_gated_act_gemm=None):
    """The order of the second weight's rows (`get_shuffle_matrix_a_row_indices`, or that of its scales), on the weight's device and
    kept in the dictionary `_cache_permute_indices` by shape. `is_gated_act_gemm` changes nothing: gated weights are the first ones."""
    key = ("w2", dst_w2_weight.shape, epilogue_tile_m, num_elts_per_sf, is_gated_act_gemm)
    if key not in _cache_permute_indices:
        _cache_permute_indices[key] = _shuffled(dst_w2_weight, epilogue_tile_m, num_elts_per_sf).to(dst_w2_weight.device)
    return _cache_permute_indices[key]


def _maybe_get_cached_w3_w1_permute_indices(_cache_permute_indices, dst_w3_w1_weight, epilogue_tile_m, num_elts_per_sf=None,
                                            is_gated_act_gemm=True):
    """The same for the first weight, whose two halves are by turns (`get_reorder_rows_for_gated_act_gemm_row_indices`) when it is gated."""
    key = ("w3_w1", dst_w3_w1_weight.shape, epilogue_tile_m, num_elts_per_sf, is_gated_act_gemm)
    if key not in _cache_permute_indices:
        order = _shuffled(dst_w3_w1_weight, epilogue_tile_m, num_elts_per_sf)
        if is_gated_act_gemm:
            order = get_reorder_rows_for_gated_act_gemm_row_indices(dst_w3_w1_weight)[order]
        _cache_permute_indices[key] = order.to(dst_w3_w1_weight.device)
    return _cache_permute_indices[key]


class FP4Tensor:
    """4-bit numbers, two a byte, with their block scales.

    Args:
        data: uint8 [..., n/2]
        scale: float8_e4m3fn [rows, ...] of a multiple of 128 rows
        scale_start_index: the row of `scale` that belongs to the first row of `data`
        original_shape: the shape of the numbers, whose last extent is odd or not; that of `data` is its half, rounded up

    Raises:
        ValueError: element types, rows or index other than these
    """

    def __init__(self, data, scale, scale_start_index=0, original_shape=None):
        import torch

        if data.dtype != torch.uint8:
            raise ValueError(f"data must be uint8 tensor, got {data.dtype}")
        if scale.dtype != torch.float8_e4m3fn:
            raise ValueError(f"scale must be float8_e4m3fn tensor, got {scale.dtype}")
        if scale.shape[0] % 128 != 0:
            raise ValueError(f"scale.shape[0] must be a multiple of 128, got {scale.shape[0]}")
        if not 0 <= scale_start_index < scale.shape[0]:
            raise ValueError("scale start index must be in the range [0, scale.shape[0]). "
                             f"scale_start_index={scale_start_index}, scale.shape[0]={scale.shape[0]}")
        if scale_start_index + data.shape[0] > scale.shape[0]:
            raise ValueError(f"scale start index + data.shape[0] must not exceed scale.shape[0]. scale_start_index={scale_start_index}, "
                             f"data.shape[0]={data.shape[0]}, scale.shape[0]={scale.shape[0]}")
        if original_shape is not None:
            if tuple(original_shape[:-1]) != tuple(data.shape[:-1]):
                raise ValueError("data and original_shape must have the same dimensions except the last one. "
                                 f"data.shape={data.shape}, original_shape={original_shape}")
            if data.shape[-1] != (original_shape[-1] + 1) // 2:
                raise ValueError(f"data last dimension must be ceil(original_shape[-1] / 2). data.shape[-1]={data.shape[-1]}, "
                                 f"original_shape[-1]={original_shape[-1]}, expected={(original_shape[-1] + 1) // 2}")
        self.data, self.scale, self.scale_start_index = data, scale, scale_start_index
        self.original_shape = original_shape
        self.dtype = "nvfp4"
