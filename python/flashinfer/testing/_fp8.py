# SPDX-License-Identifier: Apache-2.0
"""FP8 with one scale for each block, in plain torch, for the references of tests. Scales are powers of two, so that a division by
them is exact."""

_FP8_MAX = 448.0


def _power_of_two_scale(amax):
    """The least power of two s with amax / s <= 448; 1e-4 stands for a block of smaller numbers."""
    import torch

    return torch.exp2(torch.ceil(torch.log2(amax.clamp(min=1e-4) / _FP8_MAX)))


def _tiled(x, tile):
    """x with each extent split in (tiles, tile)."""
    return x.reshape([n for extent, t in zip(x.shape, tile) for n in (extent // t, t)])


def quantize_fp8(x, scale_shape, tile_shape, scale_major_mode):
    """(float8_e4m3fn [...] of x's shape, float32 scales): x = values * scale within each tile.

    Args:
        x: [m, k] or [b, m, k] of extents that are multiples of the tile's
        scale_shape: the shape of the scales: x's extents over the tile's, the last two swapped for "MN"
        tile_shape: extents of a tile, one for each of x's
        scale_major_mode: "K" or "MN", the extent that is contiguous in the scales

    Raises:
        ValueError: another mode, ranks or extents that do not fit
    """
    import torch

    _check_mode("quantize_fp8", scale_major_mode)
    if x.dim() not in (2, 3) or len(tile_shape) != x.dim() or any(n % t for n, t in zip(x.shape, tile_shape)):
        raise ValueError(f"quantize_fp8: x has shape {tuple(x.shape)}, which tiles of {tuple(tile_shape)} do not divide")
    tiles = _tiled(x.float(), tile_shape)
    scale = _power_of_two_scale(tiles.abs().amax(dim=tuple(range(1, 2 * x.dim(), 2)), keepdim=True))
    values = (tiles / scale).reshape(x.shape).to(torch.float8_e4m3fn)
    scale = scale.reshape([n // t for n, t in zip(x.shape, tile_shape)])
    scale = scale.transpose(-1, -2).contiguous() if scale_major_mode == "MN" else scale
    if tuple(scale.shape) != tuple(scale_shape):
        raise ValueError(f"quantize_fp8: scale_shape is {tuple(scale_shape)}, but must be {tuple(scale.shape)}")
    return values, scale


def dequantize_fp8(x, x_scale, scale_major_mode):
    """float32 of x's shape: what `quantize_fp8` gave, multiplied by its scales.

    Raises:
        ValueError: another mode, or scales that do not divide x
    """
    _check_mode("dequantize_fp8", scale_major_mode)
    scale = x_scale.transpose(-1, -2) if scale_major_mode == "MN" else x_scale
    if scale.dim() != x.dim() or any(n % s for n, s in zip(x.shape, scale.shape)):
        raise ValueError(f"dequantize_fp8: scales of shape {tuple(x_scale.shape)} do not divide x of {tuple(x.shape)}")
    tile = [n // s for n, s in zip(x.shape, scale.shape)]
    spread = scale.reshape([n for s in scale.shape for n in (s, 1)])
    return (_tiled(x.float(), tile) * spread).reshape(x.shape)


def _check_mode(function, mode):
    if mode not in ("K", "MN"):
        raise ValueError(f"{function}: scale_major_mode is {mode!r}, but must be 'K' or 'MN'")


def per_token_cast_to_fp8(x):
    """(float8_e4m3fn [m, n], float32 [m, n / 128]) of [m, n]: a scale for each 128 elements of a row; n is a multiple of 128."""
    assert x.dim() == 2 and x.shape[1] % 128 == 0, f"x has shape {tuple(x.shape)}, but must be [m, a multiple of 128]"
    return quantize_fp8(x, (x.shape[0], x.shape[1] // 128), (1, 128), "K")


def per_block_cast_to_fp8(x):
    """(float8_e4m3fn [m, n], float32 [ceil(m/128), ceil(n/128)]) of [m, n]: a scale for each block of 128 x 128 elements."""
    import torch

    assert x.dim() == 2, f"x has {x.dim()} dimensions, but must have 2"
    m, n = x.shape
    padded = torch.nn.functional.pad(x, (0, -n % 128, 0, -m % 128))
    values, scale = quantize_fp8(padded, (padded.shape[0] // 128, padded.shape[1] // 128), (128, 128), "K")
    return values[:m, :n].contiguous(), scale


def count_bytes(*tensors):
    """The bytes of tensors, and of those in lists and tuples."""
    return sum(count_bytes(*t) if isinstance(t, (list, tuple)) else t.numel() * t.element_size() for t in tensors if t is not None)
