# Made by tools/make_stubs.py from the library's registry.
from enum import IntEnum
from typing import Any, Literal, NamedTuple, NoReturn, Optional, Protocol, TypeVar, Union

import torch

class Array(Protocol):
    """Anything that speaks DLPack: a torch.Tensor, a numpy.ndarray, ..."""

    def __dlpack__(self, *args: Any, **kwargs: Any) -> Any: ...

_T = TypeVar("_T", bound=Array)

def chunk_gated_delta_product(q: _T, k: Array, v: Array, g: Optional[Array] = None, beta: Optional[Array] = None, num_householder: int = 1, scale: Optional[float] = None, initial_state: Optional[Array] = None, output_final_state: bool = False, cu_seqlens: Optional[Array] = None, use_qk_l2norm_in_kernel: bool = False, output: Optional[Array] = None, output_state: Optional[Array] = None, *, backend: Union[Literal['auto', 'cudnn'], str] = 'auto') -> Union[_T, Any]:
    """The gated delta rule with several updates a token, after one decay.

    Args:
        q: Tensor [t hq k]; float32|float16|bfloat16; queries
        k: Tensor [rows hk k]; dtype of q; keys
        v: Tensor [rows hv v]; dtype of q; values
        g: Tensor or None; float32; factor of the state before each token's updates; 1 when absent
        beta: Tensor or None; float32; gate of each update; 1 when absent
        num_householder: int; updates of the state a token
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

from flashinfer.gdp_prefill import chunk_gated_delta_product as chunk_gated_delta_product