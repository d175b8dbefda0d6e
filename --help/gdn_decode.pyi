# Made by tools/make_stubs.py from the library's registry.
from enum import IntEnum
from typing import Any, Literal, NamedTuple, NoReturn, Optional, Protocol, TypeVar, Union

import torch

class Array(Protocol):
    """Anything that speaks DLPack: a torch.Tensor, a numpy.ndarray, ..."""

    def __dlpack__(self, *args: Any, **kwargs: Any) -> Any: ...

_T = TypeVar("_T", bound=Array)

def gated_delta_rule_decode(q: _T, k: Array, v: Array, state: Array, A_log: Array, a: Array, dt_bias: Array, b: Array, scale: Optional[float] = None, output: Optional[Array] = None, use_qk_l2norm: bool = True, backend: Union[Literal['auto', 'flashinfer', 'cake_gdn', 'rubin'], str] = 'auto') -> Union[_T, Any]:
    """One step of the gated delta rule on states [B, HV, K, V], updated in place; returns (output, state).

    Args:
        q: Tensor [b t h k]; float32|float16|bfloat16; queries
        k: Tensor [b t h k]; dtype of q; keys
        v: Tensor [b t hv v]; dtype of q; values
        state: Tensor [b hv k v]; float32; read and written; states, updated in place
        A_log: Tensor [hv]; float32; ln of each head's decay rate
        a: Tensor [b t hv]; dtype of q; each token's part of the decay's argument
        dt_bias: Tensor [hv]; float32|bfloat16; added to dt; of the delta rule: each head's part of the decay's argument
        b: Tensor [b t hv]; dtype of q; the gate of each update before its sigmoid
        scale: float or None; factor of the queries; 1 / sqrt(K) when absent
        output: Tensor [b t hv v] or None; float32|float16|bfloat16; written; made when absent; the result
        use_qk_l2norm: bool; divides each row of q and k by its norm
        backend: str; one of auto, flashinfer, cake_gdn, rubin; the implementation by name; 'auto' lets the library choose

    Returns:
        output: Tensor [b t hv v]; float32|float16|bfloat16; the result
        state: Tensor [b hv k v]; float32; states, updated in place, when requested

    Raises:
        TypeError: an argument is missing, unknown or of another type
        ValueError: shapes, dtypes or values that do not fit together; the message names them
        KeyError or ValueError: a name that is not one of those listed
        NotImplementedError: a call that no implementation of this library supports; the message says why
    """
    ...

def gated_delta_rule_decode_pretranspose(q: _T, k: Array, v: Array, state: Optional[Array], A_log: Array, a: Array, dt_bias: Array, b: Array, scale: Optional[float] = None, output: Optional[Array] = None, use_qk_l2norm: bool = True, initial_state: Optional[Array] = None, initial_state_indices: Optional[Array] = None, output_state_indices: Optional[Array] = None, intermediate_states_buffer: Optional[Array] = None, disable_state_update: bool = False, backend: Union[Literal['auto', 'flashinfer', 'cake_gdn', 'rubin'], str] = 'auto') -> Union[_T, Any]:
    """Steps of the gated delta rule on states [B, HV, V, K] or slots of a pool of them, updated in place; returns (output, state).

    Args:
        q: Tensor [b t h k]; float32|float16|bfloat16; queries
        k: Tensor [b t h k]; dtype of q; keys
        v: Tensor [b t hv v]; dtype of q; values
        state: Tensor [b hv v k] or None; float32|bfloat16; read and written; states, updated in place
        A_log: Tensor [hv]; float32; ln of each head's decay rate
        a: Tensor [b t hv]; dtype of q; each token's part of the decay's argument
        dt_bias: Tensor [hv]; float32|bfloat16; added to dt; of the delta rule: each head's part of the decay's argument
        b: Tensor [b t hv]; dtype of q; the gate of each update before its sigmoid
        scale: float or None; factor of the queries; 1 / sqrt(K) when absent
        output: Tensor [b t hv v] or None; float32|float16|bfloat16; written; made when absent; the result
        use_qk_l2norm: bool; divides each row of q and k by its norm
        initial_state: Tensor [p hv v k] or None; float32|bfloat16; read and written; pool of states, or the states that sequences begin with
        initial_state_indices: Tensor [b] or None; int32|int64; the slot that each row reads; negative: none
        output_state_indices: Tensor [b] or None; int32|int64; the slot that each row writes; negative: none; the one that it reads when absent
        intermediate_states_buffer: Tensor or None; read and written; takes the state after each token
        disable_state_update: bool; the states stay as they are; only the output is computed
        backend: str; one of auto, flashinfer, cake_gdn, rubin; the implementation by name; 'auto' lets the library choose

    Returns:
        output: Tensor [b t hv v]; float32|float16|bfloat16; the result
        state: Tensor [b hv v k]; float32|bfloat16; states, updated in place, when requested
        initial_state: Tensor [p hv v k]; float32|bfloat16; pool of states, or the states that sequences begin with, when requested

    Raises:
        TypeError: an argument is missing, unknown or of another type
        ValueError: shapes, dtypes or values that do not fit together; the message names them
        KeyError or ValueError: a name that is not one of those listed
        NotImplementedError: a call that no implementation of this library supports; the message says why
    """
    ...

def gated_delta_rule_mtp(q: _T, k: Array, v: Array, initial_state: Array, initial_state_indices: Array, A_log: Array, a: Array, dt_bias: Array, b: Array, scale: Optional[float] = None, output: Optional[Array] = None, intermediate_states_buffer: Optional[Array] = None, ssm_state_indices: Optional[Array] = None, disable_state_update: Optional[bool] = None, use_qk_l2norm: bool = True, output_state_indices: Optional[Array] = None, cache_replayssm: bool = False, replayssm_rawv: Optional[Array] = None, replayssm_rawk: Optional[Array] = None, replayssm_g: Optional[Array] = None, replayssm_beta: Optional[Array] = None) -> Union[_T, Any]:
    """Several steps of the gated delta rule on slots of a pool, whose tokens may still be rejected; returns (output, pool).

    Args:
        q: Tensor [b t h k]; float32|float16|bfloat16; queries
        k: Tensor [b t h k]; dtype of q; keys
        v: Tensor [b t hv v]; dtype of q; values
        initial_state: Tensor [p hv v k]; float32|bfloat16; read and written; pool of states, or the states that sequences begin with
        initial_state_indices: Tensor [b]; int32|int64; the slot that each row reads; negative: none
        A_log: Tensor [hv]; float32; ln of each head's decay rate
        a: Tensor [b t hv]; dtype of q; each token's part of the decay's argument
        dt_bias: Tensor [hv]; float32|bfloat16; added to dt; of the delta rule: each head's part of the decay's argument
        b: Tensor [b t hv]; dtype of q; the gate of each update before its sigmoid
        scale: float or None; factor of the queries; 1 / sqrt(K) when absent
        output: Tensor [b t hv v] or None; float32|float16|bfloat16; written; made when absent; the result
        intermediate_states_buffer: Tensor or None; read and written; takes the state after each token
        ssm_state_indices: Tensor [b t] or None; int32; the slot for the state after each token; negative: none
        disable_state_update: bool or None; the states stay as they are; only the output is computed
        use_qk_l2norm: bool; divides each row of q and k by its norm
        output_state_indices: Tensor [b] or None; int32|int64; the slot that each row writes; negative: none; the one that it reads when absent
        cache_replayssm: bool; also stores what gated_delta_rule_replayssm_commit needs
        replayssm_rawv: Tensor [p hv t v] or None; bfloat16; read and written; values
        replayssm_rawk: Tensor [p h t k] or None; bfloat16; read and written; keys before their normalisation
        replayssm_g: Tensor [p hv t] or None; float32; read and written; ln of each token's decay
        replayssm_beta: Tensor [p hv t] or None; float32; read and written; the gate of each token's update

    Returns:
        output: Tensor [b t hv v]; float32|float16|bfloat16; the result
        initial_state: Tensor [p hv v k]; float32|bfloat16; pool of states, or the states that sequences begin with, when requested

    Raises:
        TypeError: an argument is missing, unknown or of another type
        ValueError: shapes, dtypes or values that do not fit together; the message names them
        NotImplementedError: a call that no implementation of this library supports; the message says why
    """
    ...

def gated_delta_rule_replayssm_commit(checkpoint_state: Array, rawv_cache: Array, rawk_cache: Array, g_cache: Array, beta_cache: Array, state_indices: Array, accept_lens: Array, *, track_state_indices: Optional[Array] = None, track_steps: Optional[Array] = None, use_qk_l2norm: bool = True, null_block_id: int = -1, backend: Union[Literal['auto', 'simt', 'tcgen05'], str] = 'auto') -> None:
    """Applies the accepted tokens of gated_delta_rule_mtp's replay cache to the states of all layers, in place.

    Args:
        checkpoint_state: Tensor [l p hv 128 128]; float32; read and written; states of all layers
        rawv_cache: Tensor [l p hv t 128]; bfloat16; values
        rawk_cache: Tensor [l p h t 128]; bfloat16; keys before their normalisation
        g_cache: Tensor [l p hv t]; float32; ln of each token's decay
        beta_cache: Tensor [l p hv t]; float32; the gate of each token's update
        state_indices: Tensor [b]; int32; the slot of each row or sequence
        accept_lens: Tensor [b]; int32; how many tokens of each row were accepted
        track_state_indices: Tensor [b] or None; int32; a further slot for the state after one of the tokens
        track_steps: Tensor [b] or None; int32; that token
        use_qk_l2norm: bool; divides each row of q and k by its norm
        null_block_id: int; slots up to this one are none
        backend: str; one of auto, simt, tcgen05; the implementation by name; 'auto' lets the library choose

    Raises:
        TypeError: an argument is missing, unknown or of another type
        ValueError: shapes, dtypes or values that do not fit together; the message names them
        KeyError or ValueError: a name that is not one of those listed
        NotImplementedError: a call that no implementation of this library supports; the message says why
    """
    ...

from flashinfer.gdn_decode import gated_delta_rule_decode as gated_delta_rule_decode
from flashinfer.gdn_decode import gated_delta_rule_decode_pretranspose as gated_delta_rule_decode_pretranspose
from flashinfer.gdn_decode import gated_delta_rule_mtp as gated_delta_rule_mtp
from flashinfer.gdn_decode import gated_delta_rule_replayssm_commit as gated_delta_rule_replayssm_commit