# Made by tools/make_stubs.py from the library's registry.
from enum import IntEnum
from typing import Any, Literal, NamedTuple, NoReturn, Optional, Protocol, TypeVar, Union

import torch

class Array(Protocol):
    """Anything that speaks DLPack: a torch.Tensor, a numpy.ndarray, ..."""

    def __dlpack__(self, *args: Any, **kwargs: Any) -> Any: ...

_T = TypeVar("_T", bound=Array)

def kda_recurrence(q: _T, k: Array, v: Array, g: Array, beta: Array, cu_seqlens: Array, A_log: Optional[Array] = None, dt_bias: Optional[Array] = None, scale: Optional[float] = None, use_qk_l2norm: bool = True, use_gate: bool = False, lower_bound: Optional[float] = None, beta_is_logit: bool = False, state: Optional[Array] = None, source: Optional[Array] = None, read_indices: Optional[Array] = None, write_indices: Optional[Array] = None, after_indices: Optional[Array] = None, after_states: Optional[Array] = None, disable_state_update: bool = False, correction_cache: Optional[Array] = None, kg_cache: Optional[Array] = None, output: Optional[Array] = None) -> _T:
    """The delta rule with a decay of each key channel: S = S e^g; S += beta (v - S k) k^T; output = S q. Not in FlashInfer, whose recurrent_kda calls it.

    Args:
        q: Tensor [n h k]; float32|float16|bfloat16; queries
        k: Tensor [n h k]; dtype of q; keys
        v: Tensor [n hv v]; dtype of q; values
        g: Tensor [n hv k]; dtype of q; the decay of each token, or of each of its channels: itself, its ln, or what a gate makes its ln of
        beta: Tensor [n hv]; dtype of q; added to each element after scaling
        cu_seqlens: Tensor [m]; int32|int64; first token of each sequence, and their number at the end
        A_log: Tensor [h] or None; float32; ln of each head's decay rate
        dt_bias: Tensor [h k] or None; float32; added to dt; of the delta rule: each head's part of the decay's argument
        scale: float or None; factor of the queries; 1 / sqrt(K) when absent
        use_qk_l2norm: bool; divides each row of q and k by its norm
        use_gate: bool; g is the argument of the gate, whose result is ln of the decay
        lower_bound: float or None; the gate is this number, below 0, times a sigmoid
        beta_is_logit: bool; beta is taken through a sigmoid
        state: Tensor [p hv v k] or None; float32|float16|bfloat16; read and written; states, updated in place
        source: Tensor [r hv v k] or None; dtype of state; states to start from, read instead of state
        read_indices: Tensor [s] or None; int32|int64; the slot that each sequence reads; negative: its results are 0 and nothing is written
        write_indices: Tensor [s] or None; int32|int64; the slot that each sequence writes; negative: none; the one that it reads when absent
        after_indices: Tensor [n] or None; int32|int64; the slot for the state after each token; negative: none
        after_states: Tensor [c hv v k] or None; dtype of state; read and written; states after tokens
        disable_state_update: bool; the states stay as they are; only the output is computed
        correction_cache: Tensor [cs hv ct v] or None; float32; read and written; takes each token's correction of the state, beta (v - S k)
        kg_cache: Tensor [cs hv ct 2*k] or None; dtype of q; read and written; takes each token's key and gate as they came, side by side
        output: Tensor [n hv v] or None; dtype of q; written; made when absent; the result

    Returns:
        output: Tensor [n hv v]; dtype of q; the result

    Raises:
        TypeError: an argument is missing, unknown or of another type
        ValueError: shapes, dtypes or values that do not fit together; the message names them
        NotImplementedError: a call that no implementation of this library supports; the message says why
    """
    ...

from flashinfer._kda import RecurrentKDAPrefillWrapper as RecurrentKDAPrefillWrapper
from flashinfer._kda import recurrent_kda as recurrent_kda