# Made by tools/make_stubs.py from the library's registry.
from enum import IntEnum
from typing import Any, Literal, NamedTuple, NoReturn, Optional, Protocol, TypeVar, Union

import torch

class Array(Protocol):
    """Anything that speaks DLPack: a torch.Tensor, a numpy.ndarray, ..."""

    def __dlpack__(self, *args: Any, **kwargs: Any) -> Any: ...

_T = TypeVar("_T", bound=Array)

def chunk_gated_delta_rule2(q: _T, k: Array, v: Array, g: Optional[Array] = None, beta: Optional[Array] = None, w: Optional[Array] = None, scale: Optional[float] = None, initial_state: Optional[Array] = None, output_final_state: bool = False, cu_seqlens: Optional[Array] = None, use_qk_l2norm_in_kernel: bool = False, output: Optional[Array] = None, output_state: Optional[Array] = None, *, backend: Union[Literal['auto', 'cudnn'], str] = 'auto') -> Union[_T, Any]:
    """The delta rule with gates of channels: S <- S diag(e^g), S <- S + (w o v - S (beta o k)) k^T, o = S (scale q).

    Args:
        q: Tensor [t hq k]; float32|float16|bfloat16; queries
        k: Tensor [t hk k]; dtype of q; keys
        v: Tensor [t hv v]; dtype of q; values
        g: Tensor or None; float32|float16|bfloat16; ln of each key channel's decay; 0 when absent
        beta: Tensor or None; dtype of q; gate of each key channel; 1 when absent
        w: Tensor or None; dtype of q; gate of each value channel; 1 when absent
        scale: float or None; factor of the queries; 1 / sqrt(K) when absent
        initial_state: Tensor or None; float32|float16|bfloat16|float8_e4m3fn|float8_e5m2; pool of states, or the states that sequences begin with
        output_final_state: bool; also return the state of each sequence
        cu_seqlens: Tensor [n] or None; int32|int64; first token of each sequence, and their number at the end
        use_qk_l2norm_in_kernel: bool; divides each row of q and k by its norm
        output: Tensor or None; float32|float16|bfloat16; written; made when absent; the result
        output_state: Tensor or None; float32|bfloat16; written; made when absent; states of the sequences after their last tokens
        backend: str; one of auto, cudnn; the implementation by name; 'auto' lets the library choose

    Returns:
        output: Tensor; float32|float16|bfloat16; the result
        output_state: Tensor; float32|bfloat16; states of the sequences after their last tokens, when requested

    Raises:
        TypeError: an argument is missing, unknown or of another type
        ValueError: shapes, dtypes or values that do not fit together; the message names them
        KeyError or ValueError: a name that is not one of those listed
        NotImplementedError: a call that no implementation of this library supports; the message says why
    """
    ...

from flashinfer.gdn2_prefill import chunk_gated_delta_rule2 as chunk_gated_delta_rule2