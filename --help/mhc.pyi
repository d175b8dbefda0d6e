# Made by tools/make_stubs.py from the library's registry.
from enum import IntEnum
from typing import Any, Literal, NamedTuple, NoReturn, Optional, Protocol, TypeVar, Union

import torch

class Array(Protocol):
    """Anything that speaks DLPack: a torch.Tensor, a numpy.ndarray, ..."""

    def __dlpack__(self, *args: Any, **kwargs: Any) -> Any: ...

_T = TypeVar("_T", bound=Array)

def mhc_post(x: _T, residual: Array, post_layer_mix: Array, comb_res_mix: Array) -> _T:
    """out_j = x * post_layer_mix_j + sum_i residual_i * comb_res_mix_ij, of four residual streams.

    Args:
        x: Tensor; dtype of residual; the layer's result
        residual: Tensor; float32|float16|bfloat16; four residual streams
        post_layer_mix: Tensor; float32; how the layer's result is mixed into each stream
        comb_res_mix: Tensor; float32; how the residual streams are mixed among themselves

    Returns:
        out: Tensor; dtype of residual; the result

    Raises:
        TypeError: an argument is missing, unknown or of another type
        ValueError: shapes, dtypes or values that do not fit together; the message names them
        NotImplementedError: a call that no implementation of this library supports; the message says why
    """
    ...

def mhc_pre_big_fuse(dot_mix: _T, sqrsum: Array, residual: Array, mhc_scale: Array, mhc_base: Array, k: int, rms_eps: float = 1e-06, mhc_pre_eps: float = 1e-06, mhc_sinkhorn_eps: float = 1e-06, mhc_post_mult_value: float = 1.0, sinkhorn_repeat: int = 20, num_splits: int = 1, block_size: int = 0) -> tuple[_T, _T, _T]:
    """How four residual streams are mixed before and after a layer, and the layer's input.

    Args:
        dot_mix: Tensor; float32; raw mixes of each row: 4 of pre, 4 of post, 16 of comb
        sqrsum: Tensor; float32; sum of squares of each row
        residual: Tensor; float32|float16|bfloat16; four residual streams
        mhc_scale: Tensor [3]; float32; factors of the mixes of pre, post and comb
        mhc_base: Tensor [24]; float32; added to the mixes
        k: int; elements that sqrsum is the sum of
        rms_eps: float; added to the mean square
        mhc_pre_eps: float; added to the mixes of the layer's input
        mhc_sinkhorn_eps: float; added to the elements and sums of Sinkhorn's iteration
        mhc_post_mult_value: float; factor of post_mix
        sinkhorn_repeat: int; steps of Sinkhorn's iteration
        num_splits: int; parts whose sum the mixes are
        block_size: int; CUDA only

    Returns:
        post_mix: Tensor; float32
        comb_mix: Tensor; float32
        layer_input: Tensor; dtype of residual

    Raises:
        TypeError: an argument is missing, unknown or of another type
        ValueError: shapes, dtypes or values that do not fit together; the message names them
        NotImplementedError: a call that no implementation of this library supports; the message says why
    """
    ...

def mhc_pre_big_fuse_with_prenorm(dot_mix: _T, residual: Array, mhc_scale: Array, mhc_base: Array, rms_eps: float = 1e-06, mhc_pre_eps: float = 1e-06, mhc_sinkhorn_eps: float = 1e-06, mhc_post_mult_value: float = 1.0, sinkhorn_repeat: int = 20, block_size: int = 0) -> tuple[_T, _T, _T]:
    """mhc_pre_big_fuse with the sum of squares of residual.

    Args:
        dot_mix: Tensor; float32; raw mixes of each row: 4 of pre, 4 of post, 16 of comb
        residual: Tensor; float32|float16|bfloat16; four residual streams
        mhc_scale: Tensor [3]; float32; factors of the mixes of pre, post and comb
        mhc_base: Tensor [24]; float32; added to the mixes
        rms_eps: float; added to the mean square
        mhc_pre_eps: float; added to the mixes of the layer's input
        mhc_sinkhorn_eps: float; added to the elements and sums of Sinkhorn's iteration
        mhc_post_mult_value: float; factor of post_mix
        sinkhorn_repeat: int; steps of Sinkhorn's iteration
        block_size: int; CUDA only

    Returns:
        post_mix: Tensor; float32
        comb_mix: Tensor; float32
        layer_input: Tensor; dtype of residual

    Raises:
        TypeError: an argument is missing, unknown or of another type
        ValueError: shapes, dtypes or values that do not fit together; the message names them
        NotImplementedError: a call that no implementation of this library supports; the message says why
    """
    ...

