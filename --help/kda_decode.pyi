# Made by tools/make_stubs.py from the library's registry.
from enum import IntEnum
from typing import Any, Literal, NamedTuple, NoReturn, Optional, Protocol, TypeVar, Union

import torch

class Array(Protocol):
    """Anything that speaks DLPack: a torch.Tensor, a numpy.ndarray, ..."""

    def __dlpack__(self, *args: Any, **kwargs: Any) -> Any: ...

_T = TypeVar("_T", bound=Array)

def fused_kda_decode(x: _T, weight: Array, conv_state: Array, raw_gate: Array, raw_beta: Array, A_log: Array, dt_bias: Array, state_indices: Array, state: Array, output_gate: Array, norm_weight: Array, lower_bound: Optional[float] = -5.0, norm_eps: float = 1e-05, output: Optional[Array] = None, *, backend: Union[Literal['cute-dsl', 'cake', 'auto'], str] = 'cute-dsl', state_indices_mode: Optional[str] = None) -> _T:
    """Causal convolution, a step of Kimi delta attention and a gated RMS norm for one token of each row.

    Args:
        x: Tensor [r channels]; bfloat16; inputs
        weight: Tensor; float32; filter of each channel; its last tap meets the newest input
        conv_state: Tensor [p channels length]; bfloat16; read and written; the last inputs of each channel, updated in place
        raw_gate: Tensor [one r h d]; bfloat16; the argument of the gate, whose result is ln of the decay
        raw_beta: Tensor [one r h]; bfloat16; the gate of each update before its sigmoid
        A_log: Tensor; float32; ln of each head's decay rate
        dt_bias: Tensor; float32; added to dt; of the delta rule: each head's part of the decay's argument
        state_indices: Tensor [r]; int32; the slot of each row or sequence
        state: Tensor [p h d k]; float32|bfloat16; read and written; states, updated in place
        output_gate: Tensor; bfloat16; the result is multiplied by its sigmoid
        norm_weight: Tensor [d]; float32; factor of each channel after the norm
        lower_bound: float or None; the gate is this number, below 0, times a sigmoid
        norm_eps: float; added to the mean of squares
        output: Tensor or None; bfloat16; written; made when absent; the result
        backend: str; one of cute-dsl, cake, auto; the implementation by name; 'auto' lets the library choose
        state_indices_mode: str or None; what is known of state_indices; without effect

    Returns:
        output: Tensor; bfloat16; the result

    Raises:
        TypeError: an argument is missing, unknown or of another type
        ValueError: shapes, dtypes or values that do not fit together; the message names them
        KeyError or ValueError: a name that is not one of those listed
        NotImplementedError: a call that no implementation of this library supports; the message says why
    """
    ...

def packed_fused_kda_decode(x: _T, weight: Array, conv_state: Array, raw_gate: Array, raw_beta: Array, A_log: Array, dt_bias: Array, state_indices: Array, state: Array, output_gate: Array, norm_weight: Array, lower_bound: Optional[float] = -5.0, norm_eps: float = 1e-05, output: Optional[Array] = None, *, query_start_loc: Array, num_accepted_tokens: Array, t1_state_indices: Optional[Array] = None) -> _T:
    """fused_kda_decode for draft tokens: several of each sequence, with a state after each.

    Args:
        x: Tensor [r channels]; bfloat16; inputs
        weight: Tensor; float32; filter of each channel; its last tap meets the newest input
        conv_state: Tensor [p channels length]; bfloat16; read and written; the last inputs of each channel, updated in place
        raw_gate: Tensor [one r h d]; bfloat16; the argument of the gate, whose result is ln of the decay
        raw_beta: Tensor [one r h]; bfloat16; the gate of each update before its sigmoid
        A_log: Tensor; float32; ln of each head's decay rate
        dt_bias: Tensor; float32; added to dt; of the delta rule: each head's part of the decay's argument
        state_indices: Tensor [n t]; int32; the slot of each row or sequence
        state: Tensor [p h d k]; float32|bfloat16; read and written; states, updated in place
        output_gate: Tensor; bfloat16; the result is multiplied by its sigmoid
        norm_weight: Tensor [d]; float32; factor of each channel after the norm
        lower_bound: float or None; the gate is this number, below 0, times a sigmoid
        norm_eps: float; added to the mean of squares
        output: Tensor or None; bfloat16; written; made when absent; the result
        query_start_loc: Tensor [m]; int32; first token of each sequence, and their number at the end
        num_accepted_tokens: Tensor [n]; int32; tokens of the last step that count: a sequence starts from column max(it - 1, 0) of its slots
        t1_state_indices: Tensor [r] or None; int32; the slot of each row, with one token a sequence

    Returns:
        output: Tensor; bfloat16; the result

    Raises:
        TypeError: an argument is missing, unknown or of another type
        ValueError: shapes, dtypes or values that do not fit together; the message names them
        NotImplementedError: a call that no implementation of this library supports; the message says why
    """
    ...

from flashinfer.kda_decode import fused_kda_decode as fused_kda_decode
from flashinfer.kda_decode import packed_fused_kda_decode as packed_fused_kda_decode
from flashinfer._kda import packed_kda_decode as packed_kda_decode
from flashinfer._kda import recurrent_kda as recurrent_kda