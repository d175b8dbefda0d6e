# Made by tools/make_stubs.py from the library's registry.
from enum import IntEnum
from typing import Any, Literal, NamedTuple, NoReturn, Optional, Protocol, TypeVar, Union

import torch

class Array(Protocol):
    """Anything that speaks DLPack: a torch.Tensor, a numpy.ndarray, ..."""

    def __dlpack__(self, *args: Any, **kwargs: Any) -> Any: ...

_T = TypeVar("_T", bound=Array)

def add_rmsnorm_fp4quant(input: _T, residual: Array, weight: Array, y_fp4: Optional[Array] = None, block_scale: Optional[Array] = None, global_scale: Optional[Array] = None, eps: float = 1e-06, block_size: int = 16, scale_format: Optional[str] = None, is_sf_swizzled_layout: bool = False, output_both_sf_layouts: bool = False, block_scale_unswizzled: Optional[Array] = None, y_out: Optional[Array] = None, enable_pdl: Optional[bool] = None) -> Union[tuple[_T, _T], Any]:
    """residual += input, then rmsnorm of the sum as packed e2m1 codes with block scales.

    Args:
        input: Tensor [... d]; float16|bfloat16; rows to work on
        residual: Tensor [... d]; dtype of input; read and written; the stream that input is added to
        weight: Tensor [d]; float32|float16|bfloat16; factor of each element; in Gemma's norms 1 + weight is
        y_fp4: Tensor or None; uint8|float4_e2m1fn_x2; written; made when absent; the quantised result, two e2m1 codes a byte
        block_scale: Tensor or None; float8_e4m3fn|uint8; written; made when absent; scale factors of the blocks
        global_scale: Tensor or None; float32; one scale for the whole tensor
        eps: float; keeps the root (added to the variance or mean square) or the scale (least magnitude) from zero
        block_size: int; elements that share a scale
        scale_format: str or None; dtype of the scales: 'e4m3' or 'ue8m0'; by block_size when absent
        is_sf_swizzled_layout: bool; scale factors are stored in tiles instead of row by row
        output_both_sf_layouts: bool; also return the scale factors row by row
        block_scale_unswizzled: Tensor or None; float8_e4m3fn|uint8; written; made when absent; the same scale factors, linear
        y_out: Tensor [... d] or None; dtype of input; read and written; the result before it is quantised, written when given
        enable_pdl: bool or None; programmatic dependent launch; CUDA only, without effect on the CPU

    Returns:
        y_fp4: Tensor; uint8|float4_e2m1fn_x2; the quantised result, two e2m1 codes a byte
        block_scale: Tensor; float8_e4m3fn|uint8; scale factors of the blocks
        block_scale_unswizzled: Tensor; float8_e4m3fn|uint8; the same scale factors, linear, when requested

    Raises:
        TypeError: an argument is missing, unknown or of another type
        ValueError: shapes, dtypes or values that do not fit together; the message names them
        NotImplementedError: a call that no implementation of this library supports; the message says why
    """
    ...

def fused_add_rmsnorm(input: Array, residual: Array, weight: Array, eps: float = 1e-06, enable_pdl: Optional[bool] = None) -> None:
    """residual += input, then input = rmsnorm of the sum before its rounding: sum / sqrt(mean(sum^2) + eps) * weight.

    Args:
        input: Tensor [... d]; float32|float16|bfloat16; read and written; rows to work on
        residual: Tensor [... d]; dtype of input; read and written; the stream that input is added to
        weight: Tensor [d]; float32|float16|bfloat16; factor of each element; in Gemma's norms 1 + weight is
        eps: float; keeps the root (added to the variance or mean square) or the scale (least magnitude) from zero
        enable_pdl: bool or None; programmatic dependent launch; CUDA only, without effect on the CPU

    Raises:
        TypeError: an argument is missing, unknown or of another type
        ValueError: shapes, dtypes or values that do not fit together; the message names them
        NotImplementedError: a call that no implementation of this library supports; the message says why
    """
    ...

def fused_add_rmsnorm_fp8_block_quant(out: Array, block_scale: Array, normed_out: Array, input: Array, residual: Array, weight: Array, eps: float = 1e-06, enable_pdl: Optional[bool] = None) -> None:
    """residual += input, its rmsnorm, and that as e4m3 with a scale for 128 columns of a row.

    Args:
        out: Tensor [n d]; float8_e4m3fn; written; made when absent; the result
        block_scale: Tensor [groups rows]; float32; read and written; scale factors of the blocks
        normed_out: Tensor [n d]; dtype of input; written; made when absent; the normalised input, before it is quantised
        input: Tensor [n d]; float16|bfloat16; rows to work on
        residual: Tensor [n d]; dtype of input; read and written; the stream that input is added to
        weight: Tensor [d]; float32|float16|bfloat16; factor of each element; in Gemma's norms 1 + weight is
        eps: float; keeps the root (added to the variance or mean square) or the scale (least magnitude) from zero
        enable_pdl: bool or None; programmatic dependent launch; CUDA only, without effect on the CPU

    Raises:
        TypeError: an argument is missing, unknown or of another type
        ValueError: shapes, dtypes or values that do not fit together; the message names them
        NotImplementedError: a call that no implementation of this library supports; the message says why
    """
    ...

def fused_add_rmsnorm_quant(out: Array, input: Array, residual: Array, weight: Array, scale: Union[float, Array], eps: float = 1e-06, enable_pdl: Optional[bool] = None) -> None:
    """residual += input, then rmsnorm of the sum divided by a scale, as 8-bit floats.

    Args:
        out: Tensor [n d]; float8_e4m3fn|float8_e5m2; written; made when absent; the result
        input: Tensor [n d]; float32|float16|bfloat16; rows to work on
        residual: Tensor [n d]; dtype of input; read and written; the stream that input is added to
        weight: Tensor [d]; float32|float16|bfloat16; factor of each element; in Gemma's norms 1 + weight is
        scale: number or Tensor; scale of the quantised values
        eps: float; keeps the root (added to the variance or mean square) or the scale (least magnitude) from zero
        enable_pdl: bool or None; programmatic dependent launch; CUDA only, without effect on the CPU

    Raises:
        TypeError: an argument is missing, unknown or of another type
        ValueError: shapes, dtypes or values that do not fit together; the message names them
        NotImplementedError: a call that no implementation of this library supports; the message says why
    """
    ...

def fused_dit_gate_residual_layernorm_gamma_beta(input: _T, residual: Array, gate: Array, gamma: Array, beta: Array, *, gate_bias: Optional[Array] = None, epsilon: float = 1e-06, use_nvfp4: bool = False, use_mxfp8: bool = False, global_scaling_factor: Optional[Array] = None, input_global_scaling_factor: Optional[Array] = None, residual_out: Optional[Array] = None, norm_out: Optional[Array] = None, sf_out: Optional[Array] = None) -> tuple[_T, _T]:
    """residual_out = residual + input * (gate + gate_bias); norm_out = its LayerNorm * gamma + beta.

    Args:
        input: Tensor [b n d]; float32|float16|bfloat16; rows to work on
        residual: Tensor [b n d]; dtype of input; the stream that input is added to
        gate: Tensor [b n d]; dtype of input; factor of input
        gamma: Tensor [d]; float32; factor of each element
        beta: Tensor [d]; float32; added to each element after scaling
        gate_bias: Tensor or None; float32; added to gate
        epsilon: float; added to the variance
        use_nvfp4: bool; norm_out is quantised to NVFP4, packed into int32
        use_mxfp8: bool; norm_out is quantised to MXFP8, packed into int32
        global_scaling_factor: Tensor or None; float32; of an NVFP4 result: 448 * 6 / its largest magnitude
        input_global_scaling_factor: Tensor or None; float32; factor of input
        residual_out: Tensor [b n d] or None; dtype of input; written; made when absent; may be residual itself; receives the sum
        norm_out: Tensor or None; float32|float16|bfloat16|int32; written; made when absent; receives the norm of the sum
        sf_out: Tensor or None; float8_e4m3fn|uint8|int32; written; made when absent; receives the scale factors of a quantised result, in tiles of 128x4

    Returns:
        residual_out: Tensor [b n d]; dtype of input; may be residual itself; receives the sum
        norm_out: Tensor; float32|float16|bfloat16|int32; receives the norm of the sum

    Raises:
        TypeError: an argument is missing, unknown or of another type
        ValueError: shapes, dtypes or values that do not fit together; the message names them
        NotImplementedError: a call that no implementation of this library supports; the message says why
    """
    ...

def fused_dit_gate_residual_layernorm_scale_shift(input: _T, residual: Array, gate: Array, scale: Array, shift: Array, *, gate_bias: Optional[Array] = None, scale_bias: Optional[Array] = None, shift_bias: Optional[Array] = None, epsilon: float = 1e-06, use_nvfp4: bool = False, use_mxfp8: bool = False, global_scaling_factor: Optional[Array] = None, input_global_scaling_factor: Optional[Array] = None, residual_out: Optional[Array] = None, norm_out: Optional[Array] = None, sf_out: Optional[Array] = None) -> tuple[_T, _T]:
    """residual_out = residual + input * (gate + gate_bias); norm_out = its LayerNorm * (1 + scale + scale_bias) + shift + shift_bias.

    Args:
        input: Tensor [b n d]; float32|float16|bfloat16; rows to work on
        residual: Tensor [b n d]; dtype of input; the stream that input is added to
        gate: Tensor [b n d]; dtype of input; factor of input
        scale: Tensor [b n d]; dtype of input; 1 + scale is the factor of the norm
        shift: Tensor [b n d]; dtype of input; added to the result
        gate_bias: Tensor or None; float32; added to gate
        scale_bias: Tensor or None; float32; added to scale
        shift_bias: Tensor or None; float32; added to shift
        epsilon: float; added to the variance
        use_nvfp4: bool; norm_out is quantised to NVFP4, packed into int32
        use_mxfp8: bool; norm_out is quantised to MXFP8, packed into int32
        global_scaling_factor: Tensor or None; float32; of an NVFP4 result: 448 * 6 / its largest magnitude
        input_global_scaling_factor: Tensor or None; float32; factor of input
        residual_out: Tensor [b n d] or None; dtype of input; written; made when absent; may be residual itself; receives the sum
        norm_out: Tensor or None; float32|float16|bfloat16|int32; written; made when absent; receives the norm of the sum
        sf_out: Tensor or None; float8_e4m3fn|uint8|int32; written; made when absent; receives the scale factors of a quantised result, in tiles of 128x4

    Returns:
        residual_out: Tensor [b n d]; dtype of input; may be residual itself; receives the sum
        norm_out: Tensor; float32|float16|bfloat16|int32; receives the norm of the sum

    Raises:
        TypeError: an argument is missing, unknown or of another type
        ValueError: shapes, dtypes or values that do not fit together; the message names them
        NotImplementedError: a call that no implementation of this library supports; the message says why
    """
    ...

def fused_dit_residual_layernorm_scale_shift(input: _T, scale: Array, shift: Array, *, residual: Optional[Array] = None, scale_bias: Optional[Array] = None, shift_bias: Optional[Array] = None, epsilon: float = 1e-06, use_nvfp4: bool = False, use_mxfp8: bool = False, global_scaling_factor: Optional[Array] = None, input_global_scaling_factor: Optional[Array] = None, residual_out: Optional[Array] = None, norm_out: Optional[Array] = None, sf_out: Optional[Array] = None) -> tuple[_T, _T]:
    """residual_out = residual + input; norm_out = its LayerNorm * (1 + scale + scale_bias) + shift + shift_bias.

    Args:
        input: Tensor [b n d]; float32|float16|bfloat16; rows to work on
        scale: Tensor [b n d]; dtype of input; 1 + scale is the factor of the norm
        shift: Tensor [b n d]; dtype of input; added to the result
        residual: Tensor [b n d] or None; dtype of input; the stream that input is added to
        scale_bias: Tensor or None; float32; added to scale
        shift_bias: Tensor or None; float32; added to shift
        epsilon: float; added to the variance
        use_nvfp4: bool; norm_out is quantised to NVFP4, packed into int32
        use_mxfp8: bool; norm_out is quantised to MXFP8, packed into int32
        global_scaling_factor: Tensor or None; float32; of an NVFP4 result: 448 * 6 / its largest magnitude
        input_global_scaling_factor: Tensor or None; float32; factor of input
        residual_out: Tensor [b n d] or None; dtype of input; written; made when absent; may be residual itself; receives the sum
        norm_out: Tensor or None; float32|float16|bfloat16|int32; written; made when absent; receives the norm of the sum
        sf_out: Tensor or None; float8_e4m3fn|uint8|int32; written; made when absent; receives the scale factors of a quantised result, in tiles of 128x4

    Returns:
        residual_out: Tensor [b n d]; dtype of input; may be residual itself; receives the sum
        norm_out: Tensor; float32|float16|bfloat16|int32; receives the norm of the sum

    Raises:
        TypeError: an argument is missing, unknown or of another type
        ValueError: shapes, dtypes or values that do not fit together; the message names them
        NotImplementedError: a call that no implementation of this library supports; the message says why
    """
    ...

def fused_qk_rmsnorm_rope(qkv: _T, q_weight: Array, k_weight: Array, *, ppf: int, pph: int, ppw: int, num_frame_channels: int, num_height_channels: int, num_width_channels: int, num_heads_q: int, num_heads_k: int, num_heads_v: int, head_dim: int, eps: float = 1e-06, base: float = 10000.0, interleave: bool = True, factor: float = 1.0, low: float = 0.0, high: float = 0.0, attention_factor: float = 1.0, is_qk_norm: bool = True, output_fp8: bool = False, output_quant_scale: float = 1.0, v_quant_scale: float = 1.0, q_out: Optional[Array] = None, k_out: Optional[Array] = None, v_out: Optional[Array] = None) -> tuple[_T, _T, _T]:
    """RMSNorm of all heads of Q and of K, a rotation by a video's frame, height and width, and a copy of V.

    Args:
        qkv: Tensor; float32|float16|bfloat16; queries, keys and values of each row, head by head
        q_weight: Tensor; dtype of qkv; weight of the queries' norm
        k_weight: Tensor; dtype of qkv; weight of the keys' norm
        ppf: int; frames of a video
        pph: int; patches of a column of a frame
        ppw: int; patches of a row of a frame
        num_frame_channels: int; elements of a head that are rotated by the frame
        num_height_channels: int; elements of a head that are rotated by the height
        num_width_channels: int; elements of a head that are rotated by the width
        num_heads_q: int; query heads
        num_heads_k: int; key heads
        num_heads_v: int; value heads
        head_dim: int; elements of a head
        eps: float; keeps the root (added to the variance or mean square) or the scale (least magnitude) from zero
        base: float; base of the rotations' frequencies
        interleave: bool; whether pairs are (2j, 2j + 1), instead of (j, j + head_dim / 2)
        factor: float; YARN's scaling factor; only 1 is available
        low: float; YARN's lower threshold; without effect at factor 1
        high: float; YARN's upper threshold; without effect at factor 1
        attention_factor: float; factor of cos and sin; 1 without YARN
        is_qk_norm: bool; False: rotate only
        output_fp8: bool; whether results are e4m3
        output_quant_scale: float; factor of e4m3 queries and keys
        v_quant_scale: float; factor of e4m3 values
        q_out: Tensor or None; float32|float16|bfloat16|float8_e4m3fn|float8_e5m2; written; made when absent; receives the queries
        k_out: Tensor or None; float32|float16|bfloat16|float8_e4m3fn|float8_e5m2; written; made when absent; receives the keys
        v_out: Tensor or None; float32|float16|bfloat16|float8_e4m3fn|float8_e5m2; written; made when absent; receives the values

    Returns:
        q_out: Tensor; float32|float16|bfloat16|float8_e4m3fn|float8_e5m2; receives the queries
        k_out: Tensor; float32|float16|bfloat16|float8_e4m3fn|float8_e5m2; receives the keys
        v_out: Tensor; float32|float16|bfloat16|float8_e4m3fn|float8_e5m2; receives the values

    Raises:
        TypeError: an argument is missing, unknown or of another type
        ValueError: shapes, dtypes or values that do not fit together; the message names them
        NotImplementedError: a call that no implementation of this library supports; the message says why
    """
    ...

def fused_rmsnorm_silu(input: _T, weight: Array, eps: float = 1e-06, out: Optional[Array] = None, block_scale: Optional[Array] = None) -> Union[_T, Any]:
    """silu(rmsnorm(input)), also as 8-bit floats or packed e2m1 codes.

    Args:
        input: Tensor [n d]; float32|float16|bfloat16; rows to work on
        weight: Tensor [d]; float32|float16|bfloat16; factor of each element; in Gemma's norms 1 + weight is
        eps: float; keeps the root (added to the variance or mean square) or the scale (least magnitude) from zero
        out: Tensor or None; written; made when absent; the result
        block_scale: Tensor or None; float8_e4m3fn; written; made when absent; scale factors of the blocks

    Returns:
        out: Tensor; the result
        block_scale: Tensor; float8_e4m3fn; scale factors of the blocks, when requested

    Raises:
        TypeError: an argument is missing, unknown or of another type
        ValueError: shapes, dtypes or values that do not fit together; the message names them
        NotImplementedError: a call that no implementation of this library supports; the message says why
    """
    ...

def gemma_fused_add_rmsnorm(input: Array, residual: Array, weight: Array, eps: float = 1e-06, enable_pdl: Optional[bool] = None) -> None:
    """residual += input, then input = Gemma rmsnorm of the sum before its rounding: sum / sqrt(mean(sum^2) + eps) * (1 + weight).

    Args:
        input: Tensor [... d]; float32|float16|bfloat16; read and written; rows to work on
        residual: Tensor [... d]; dtype of input; read and written; the stream that input is added to
        weight: Tensor [d]; float32|float16|bfloat16; factor of each element; in Gemma's norms 1 + weight is
        eps: float; keeps the root (added to the variance or mean square) or the scale (least magnitude) from zero
        enable_pdl: bool or None; programmatic dependent launch; CUDA only, without effect on the CPU

    Raises:
        TypeError: an argument is missing, unknown or of another type
        ValueError: shapes, dtypes or values that do not fit together; the message names them
        NotImplementedError: a call that no implementation of this library supports; the message says why
    """
    ...

def gemma_rmsnorm(input: _T, weight: Array, eps: float = 1e-06, out: Optional[Array] = None, enable_pdl: Optional[bool] = None) -> _T:
    """Gemma's root mean square normalisation: input / sqrt(mean(input^2) + eps) * (1 + weight).

    Args:
        input: Tensor [... d]; float32|float16|bfloat16; rows to work on
        weight: Tensor [d]; float32|float16|bfloat16; factor of each element; in Gemma's norms 1 + weight is
        eps: float; keeps the root (added to the variance or mean square) or the scale (least magnitude) from zero
        out: Tensor [... d] or None; dtype of input; written; made when absent; may be input itself; the result
        enable_pdl: bool or None; programmatic dependent launch; CUDA only, without effect on the CPU

    Returns:
        out: Tensor [... d]; dtype of input; may be input itself; the result

    Raises:
        TypeError: an argument is missing, unknown or of another type
        ValueError: shapes, dtypes or values that do not fit together; the message names them
        NotImplementedError: a call that no implementation of this library supports; the message says why
    """
    ...

def layernorm(input: _T, gemma: Array, beta: Array, eps: float = 1e-06) -> _T:
    """Layer normalisation: (input - mean) / sqrt(var + eps) * gemma + beta, population variance.

    Args:
        input: Tensor [... d]; float32|float16|bfloat16; rows to work on
        gemma: Tensor [d]; float32; factor of each element
        beta: Tensor [d]; float32; added to each element after scaling
        eps: float; keeps the root (added to the variance or mean square) or the scale (least magnitude) from zero

    Returns:
        out: Tensor [... d]; dtype of input; may be input itself; the result

    Raises:
        TypeError: an argument is missing, unknown or of another type
        ValueError: shapes, dtypes or values that do not fit together; the message names them
        NotImplementedError: a call that no implementation of this library supports; the message says why
    """
    ...

def layernorm_quant(out: Array, input: Array, gemma: Array, beta: Array, scale: Union[float, Array], eps: float = 1e-06) -> None:
    """layernorm rounded to bf16 and divided by a scale, as 8-bit floats.

    Args:
        out: Tensor [n d]; float8_e4m3fn|float8_e5m2; written; made when absent; the result
        input: Tensor [n d]; float32|float16|bfloat16; rows to work on
        gemma: Tensor [d]; float32; factor of each element
        beta: Tensor [d]; float32; added to each element after scaling
        scale: number or Tensor; scale of the quantised values
        eps: float; keeps the root (added to the variance or mean square) or the scale (least magnitude) from zero

    Raises:
        TypeError: an argument is missing, unknown or of another type
        ValueError: shapes, dtypes or values that do not fit together; the message names them
        NotImplementedError: a call that no implementation of this library supports; the message says why
    """
    ...

def rmsnorm(input: _T, weight: Array, eps: float = 1e-06, out: Optional[Array] = None, enable_pdl: Optional[bool] = None) -> _T:
    """Root mean square normalisation: input / sqrt(mean(input^2) + eps) * weight.

    Args:
        input: Tensor [... d]; float32|float16|bfloat16; rows to work on
        weight: Tensor [d]; float32|float16|bfloat16; factor of each element; in Gemma's norms 1 + weight is
        eps: float; keeps the root (added to the variance or mean square) or the scale (least magnitude) from zero
        out: Tensor [... d] or None; dtype of input; written; made when absent; may be input itself; the result
        enable_pdl: bool or None; programmatic dependent launch; CUDA only, without effect on the CPU

    Returns:
        out: Tensor [... d]; dtype of input; may be input itself; the result

    Raises:
        TypeError: an argument is missing, unknown or of another type
        ValueError: shapes, dtypes or values that do not fit together; the message names them
        NotImplementedError: a call that no implementation of this library supports; the message says why
    """
    ...

def rmsnorm_fp4quant(input: _T, weight: Array, y_fp4: Optional[Array] = None, block_scale: Optional[Array] = None, global_scale: Optional[Array] = None, eps: float = 1e-06, block_size: int = 16, scale_format: Optional[str] = None, is_sf_swizzled_layout: bool = False, enable_pdl: Optional[bool] = None) -> tuple[_T, _T]:
    """rmsnorm as packed e2m1 codes with block scales.

    Args:
        input: Tensor [... d]; float16|bfloat16; rows to work on
        weight: Tensor [d]; float32|float16|bfloat16; factor of each element; in Gemma's norms 1 + weight is
        y_fp4: Tensor or None; uint8|float4_e2m1fn_x2; written; made when absent; the quantised result, two e2m1 codes a byte
        block_scale: Tensor or None; float8_e4m3fn|uint8; written; made when absent; scale factors of the blocks
        global_scale: Tensor or None; float32; one scale for the whole tensor
        eps: float; keeps the root (added to the variance or mean square) or the scale (least magnitude) from zero
        block_size: int; elements that share a scale
        scale_format: str or None; dtype of the scales: 'e4m3' or 'ue8m0'; by block_size when absent
        is_sf_swizzled_layout: bool; scale factors are stored in tiles instead of row by row
        enable_pdl: bool or None; programmatic dependent launch; CUDA only, without effect on the CPU

    Returns:
        y_fp4: Tensor; uint8|float4_e2m1fn_x2; the quantised result, two e2m1 codes a byte
        block_scale: Tensor; float8_e4m3fn|uint8; scale factors of the blocks

    Raises:
        TypeError: an argument is missing, unknown or of another type
        ValueError: shapes, dtypes or values that do not fit together; the message names them
        NotImplementedError: a call that no implementation of this library supports; the message says why
    """
    ...

def rmsnorm_quant(out: Array, input: Array, weight: Array, scale: Union[float, Array], eps: float = 1e-06, enable_pdl: Optional[bool] = None) -> None:
    """rmsnorm divided by a scale, as 8-bit floats.

    Args:
        out: Tensor [n d]; float8_e4m3fn|float8_e5m2; written; made when absent; the result
        input: Tensor [n d]; float32|float16|bfloat16; rows to work on
        weight: Tensor [d]; float32|float16|bfloat16; factor of each element; in Gemma's norms 1 + weight is
        scale: number or Tensor; scale of the quantised values
        eps: float; keeps the root (added to the variance or mean square) or the scale (least magnitude) from zero
        enable_pdl: bool or None; programmatic dependent launch; CUDA only, without effect on the CPU

    Raises:
        TypeError: an argument is missing, unknown or of another type
        ValueError: shapes, dtypes or values that do not fit together; the message names them
        NotImplementedError: a call that no implementation of this library supports; the message says why
    """
    ...

from flashinfer.jit.norm import gen_norm_module as gen_norm_module