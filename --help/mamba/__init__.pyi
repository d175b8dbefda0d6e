# Made by tools/make_stubs.py from the library's registry.
from enum import IntEnum
from typing import Any, Literal, NamedTuple, NoReturn, Optional, Protocol, TypeVar, Union

import torch

class Array(Protocol):
    """Anything that speaks DLPack: a torch.Tensor, a numpy.ndarray, ..."""

    def __dlpack__(self, *args: Any, **kwargs: Any) -> Any: ...

_T = TypeVar("_T", bound=Array)

def cake_selective_state_update(state, x, dt, A, B, C, D, z=None, dt_bias=None, dt_softplus=False, state_batch_indices=None, pad_slot_id=-1, state_scale=None, out=None, disable_state_update=False, intermediate_states_buffer=None, intermediate_state_indices=None, intermediate_state_scales=None, rand_seed=None, philox_rounds=10, cache_steps=0, algorithm='auto', dst_state_batch_indices=None, cu_seqlens=None, num_accepted_tokens=None, backend='auto'):
    """Mamba's step: S = S exp(A dt) + dt x B; out = (sum over dstate of S C + D x) silu(z), with S in a pool.

    Args:
        state: Tensor; float32|float16|bfloat16|int16; read and written; states, updated in place
        x: Tensor; float32|float16|bfloat16; inputs
        dt: Tensor; float32|float16|bfloat16; time steps
        A: Tensor; float32; decay of the state: of each element, by e^(A dt)
        B: Tensor; dtype of x; what x is multiplied with on its way into the state
        C: Tensor; dtype of x; what the state is multiplied with on its way out
        D: Tensor; dtype of dt; factor of x that is added to the result
        z: Tensor or None; dtype of x; gate: the result is multiplied by silu(z)
        dt_bias: Tensor or None; float32|float16|bfloat16; added to dt; of the delta rule: each head's part of the decay's argument
        dt_softplus: bool; take softplus of dt + dt_bias
        state_batch_indices: Tensor or None; int32|int64; slot of each sequence; absent: sequence i has slot i
        pad_slot_id: int; slot of sequences that are padding: they read zeros and write nothing
        state_scale: Tensor or None; float32; read and written; decode scales of int16 states, one a row
        out: Tensor or None; dtype of x; written; made when absent; the result
        disable_state_update: bool; the states stay as they are; only the output is computed
        intermediate_states_buffer: Tensor or None; dtype of state; read and written; takes the state after each token
        intermediate_state_indices: Tensor or None; int32|int64; row of intermediate_states_buffer for each sequence; absent: its slot
        intermediate_state_scales: Tensor or None; float32; read and written; decode scales of int16 intermediate states
        rand_seed: Tensor or None; seed of the random bits with which states are rounded
        philox_rounds: int; rounds of the random number generator
        cache_steps: int; tokens of the longest sequence
        algorithm: str; one of auto, simple, vertical, horizontal, async_horizontal; a hint for GPUs; without effect here
        dst_state_batch_indices: Tensor or None; int32|int64; slots written: of each sequence, or, with several tokens, after each of its tokens
        cu_seqlens: Tensor or None; int32|int64; first token of each sequence, and their number at the end
        num_accepted_tokens: Tensor or None; int32|int64; tokens of the last step that count: a sequence starts from column max(it - 1, 0) of its slots
        backend: str; one of auto, flashinfer, cake, cuda, cpu, reference; the implementation by name; 'auto' lets the library choose

    Returns:
        out: Tensor; dtype of x; the result

    Raises:
        TypeError: an argument is missing, unknown or of another type
        ValueError: shapes, dtypes or values that do not fit together; the message names them
        KeyError or ValueError: a name that is not one of those listed
        NotImplementedError: a call that no implementation of this library supports; the message says why
    """
    ...

def causal_conv1d_fn(x: _T, weight: Array, bias: Optional[Array] = None, query_start_loc: Optional[Array] = None, cache_indices: Optional[Array] = None, has_initial_state: Optional[Array] = None, conv_states: Optional[Array] = None, activation: Optional[str] = 'silu', pad_slot_id: int = -1, out: Optional[Array] = None) -> _T:
    """activation(bias + sum over k of weight[:, k] * x[:, t - width + 1 + k]) for each channel, sequences with states.

    Args:
        x: Tensor; float32|float16|bfloat16; inputs
        weight: Tensor; float32|float16|bfloat16; filter of each channel; its last tap meets the newest input
        bias: Tensor or None; dtype of weight; added to each row of the product
        query_start_loc: Tensor or None; int32|int64; first token of each sequence, and their number at the end
        cache_indices: Tensor or None; int32|int64; slot of each sequence; absent: sequence i has slot i
        has_initial_state: Tensor or None; bool; whether a sequence continues from its slot; absent: none does
        conv_states: Tensor or None; dtype of x; read and written; the last width - 1 inputs of each channel, updated in place
        activation: str or None; 'silu' (also named 'swish') or None, of the result
        pad_slot_id: int; slot of sequences that are padding: they read zeros and write nothing
        out: Tensor or None; dtype of x; written; made when absent; the result

    Returns:
        out: Tensor; dtype of x; the result

    Raises:
        TypeError: an argument is missing, unknown or of another type
        ValueError: shapes, dtypes or values that do not fit together; the message names them
        NotImplementedError: a call that no implementation of this library supports; the message says why
    """
    ...

def causal_conv1d_update(x: _T, conv_state: Array, weight: Array, bias: Optional[Array] = None, activation: Optional[str] = None, cache_seqlens: Optional[Array] = None, conv_state_indices: Optional[Array] = None, pad_slot_id: int = -1, *, num_accepted_tokens: Optional[Array] = None, out: Optional[Array] = None) -> _T:
    """causal_conv1d_fn for the next tokens of sequences, whose last inputs are in conv_state.

    Args:
        x: Tensor; float32|float16|bfloat16; inputs
        conv_state: Tensor; dtype of x; read and written; the last inputs of each channel, updated in place
        weight: Tensor; float32|float16|bfloat16; filter of each channel; its last tap meets the newest input
        bias: Tensor or None; dtype of weight; added to each row of the product
        activation: str or None; 'silu' (also named 'swish') or None, of the result
        cache_seqlens: Tensor or None; int32|int64; tokens that each sequence had before: its state is a ring, whose position is this number modulo its length
        conv_state_indices: Tensor or None; int32|int64; slot of each sequence; absent: sequence i has slot i
        pad_slot_id: int; slot of sequences that are padding: they read zeros and write nothing
        num_accepted_tokens: Tensor or None; int32|int64; tokens of the last step that count: a sequence starts from column max(it - 1, 0) of its slots
        out: Tensor or None; dtype of x; written; made when absent; the result

    Returns:
        out: Tensor; dtype of x; the result

    Raises:
        TypeError: an argument is missing, unknown or of another type
        ValueError: shapes, dtypes or values that do not fit together; the message names them
        NotImplementedError: a call that no implementation of this library supports; the message says why
    """
    ...

def checkpointing_ssu(state: _T, x_cache: Array, B_cache: Array, dt_cache: Array, ring_start: Array, prev_num_accepted_tokens: Array, x: Array, dt: Array, A: Array, B: Array, C: Array, out: Optional[Array], D: Optional[Array] = None, z: Optional[Array] = None, dt_bias: Optional[Array] = None, dt_softplus: bool = False, state_batch_indices: Optional[Array] = None, pad_slot_id: int = -1, state_scale: Optional[Array] = None, rand_seed: Optional[Array] = None, philox_rounds: int = 10, d_split: Optional[int] = None, cu_seqlens: Optional[Array] = None, max_seqlen: Optional[int] = None, enable_pdl: bool = False, cb_scaled: Optional[Array] = None, cumAdt_vec: Optional[Array] = None, cb_old: Optional[Array] = None, precompute_heads_per_cta: int = 0, algorithm: Union[Literal['auto', 'monolith', 'two-kernel'], str] = 'auto') -> _T:
    """Mamba's step for draft tokens: replays the accepted tokens of a ring on the state, then takes the new ones.

    Args:
        state: Tensor [p nh dim ds]; float32|float16|bfloat16|float8_e4m3fn|int8; read and written; states, updated in place
        x_cache: Tensor [p nh ring dim]; float32|float16|bfloat16; read and written; x of the last tokens: a ring of each slot
        B_cache: Tensor [p ng ring ds]; dtype of x_cache; read and written; B of the last tokens: a ring of each slot
        dt_cache: Tensor [p nh ring]; float32; read and written; steps of the last tokens, after dt_bias and softplus: a ring of each slot
        ring_start: Tensor [p]; int32; row of each ring's oldest token
        prev_num_accepted_tokens: Tensor [p]; int32; how many tokens of each slot's ring are replayed
        x: Tensor [b t nh dim]; dtype of x_cache; inputs
        dt: Tensor; float32|float16|bfloat16; time steps
        A: Tensor; float32|float16|bfloat16; decay of the state: of each element, by e^(A dt)
        B: Tensor [b t ng ds]; dtype of x_cache; what x is multiplied with on its way into the state
        C: Tensor [b t ng ds]; dtype of x_cache; what the state is multiplied with on its way out
        out: Tensor or None; dtype of x_cache; written; made when absent; the result
        D: Tensor or None; float32|float16|bfloat16; factor of x that is added to the result
        z: Tensor [b t nh dim] or None; dtype of x_cache; gate: the result is multiplied by silu(z)
        dt_bias: Tensor or None; float32|float16|bfloat16; added to dt; of the delta rule: each head's part of the decay's argument
        dt_softplus: bool; take softplus of dt + dt_bias
        state_batch_indices: Tensor [n] or None; int32|int64; slot of each sequence; absent: sequence i has slot i
        pad_slot_id: int; slot of sequences that are padding: they read zeros and write nothing
        state_scale: Tensor [p nh dim] or None; float32; read and written; decode scales of int16 states, one a row
        rand_seed: Tensor or None; int64; seed of the random bits with which states are rounded
        philox_rounds: int; rounds of the random number generator
        d_split: int or None; a hint for GPUs; without effect
        cu_seqlens: Tensor [m] or None; int32; first token of each sequence, and their number at the end
        max_seqlen: int or None; bound of the sequences' lengths, with cu_seqlens
        enable_pdl: bool; programmatic dependent launch; CUDA only, without effect on the CPU
        cb_scaled: Tensor or None; float32|float16|bfloat16; scratch memory of GPU kernels; not used
        cumAdt_vec: Tensor or None; float32|float16|bfloat16; scratch memory of GPU kernels; not used
        cb_old: Tensor or None; float32|float16|bfloat16; scratch memory of GPU kernels; not used
        precompute_heads_per_cta: int; a hint for GPUs; without effect
        algorithm: str; one of auto, monolith, two-kernel; a hint for GPUs; without effect here

    Returns:
        out: Tensor; dtype of x_cache; the result

    Raises:
        TypeError: an argument is missing, unknown or of another type
        ValueError: shapes, dtypes or values that do not fit together; the message names them
        KeyError or ValueError: a name that is not one of those listed
        NotImplementedError: a call that no implementation of this library supports; the message says why
    """
    ...

def replayssm_materialize_layer(state: Array, x_cache: Array, B_cache: Array, dt_cache: Array, A: Array, src_slots: Array, dst_slots: Array, ring_start: Array, replay_prefix_len: Array, state_scale: Optional[Array] = None, pad_slot_id: int = -1, rand_seed: Optional[Array] = None, philox_rounds: int = 10) -> None:
    """States of one layer after some rows of their rings, to other slots. Not in FlashInfer, whose replayssm_materialize calls it.

    Args:
        state: Tensor [p nh dim ds]; float32|float16|bfloat16|float8_e4m3fn|int8; read and written; states, updated in place
        x_cache: Tensor [r nh ring dim]; float32|float16|bfloat16; x of the last tokens: a ring of each slot
        B_cache: Tensor [r ng ring ds]; dtype of x_cache; B of the last tokens: a ring of each slot
        dt_cache: Tensor [r nh ring]; float32; steps of the last tokens, after dt_bias and softplus: a ring of each slot
        A: Tensor [nh]; float32|float16|bfloat16; decay of the state: of each element, by e^(A dt)
        src_slots: Tensor [b]; int32|int64; the slot that each request starts from
        dst_slots: Tensor [b]; int32|int64; the slot that each request writes
        ring_start: Tensor [b]; int32|int64; row of each ring's oldest token
        replay_prefix_len: Tensor [b]; int32|int64; how many tokens of each ring are replayed
        state_scale: Tensor [p nh dim] or None; float32; read and written; decode scales of int16 states, one a row
        pad_slot_id: int; slot of sequences that are padding: they read zeros and write nothing
        rand_seed: Tensor or None; int64; seed of the random bits with which states are rounded
        philox_rounds: int; rounds of the random number generator

    Raises:
        TypeError: an argument is missing, unknown or of another type
        ValueError: shapes, dtypes or values that do not fit together; the message names them
        NotImplementedError: a call that no implementation of this library supports; the message says why
    """
    ...

def selective_state_update(state: _T, x: Array, dt: Array, A: Array, B: Array, C: Array, D: Array, z: Optional[Array] = None, dt_bias: Optional[Array] = None, dt_softplus: bool = False, state_batch_indices: Optional[Array] = None, pad_slot_id: int = -1, state_scale: Optional[Array] = None, out: Optional[Array] = None, disable_state_update: bool = False, intermediate_states_buffer: Optional[Array] = None, intermediate_state_indices: Optional[Array] = None, intermediate_state_scales: Optional[Array] = None, rand_seed: Optional[Array] = None, philox_rounds: int = 10, cache_steps: int = 0, algorithm: Union[Literal['auto', 'simple', 'vertical', 'horizontal', 'async_horizontal'], str] = 'auto', dst_state_batch_indices: Optional[Array] = None, cu_seqlens: Optional[Array] = None, num_accepted_tokens: Optional[Array] = None, backend: str = 'auto') -> _T:
    """Mamba's step: S = S exp(A dt) + dt x B; out = (sum over dstate of S C + D x) silu(z), with S in a pool.

    Args:
        state: Tensor; float32|float16|bfloat16|int16; read and written; states, updated in place
        x: Tensor; float32|float16|bfloat16; inputs
        dt: Tensor; float32|float16|bfloat16; time steps
        A: Tensor; float32; decay of the state: of each element, by e^(A dt)
        B: Tensor; dtype of x; what x is multiplied with on its way into the state
        C: Tensor; dtype of x; what the state is multiplied with on its way out
        D: Tensor; dtype of dt; factor of x that is added to the result
        z: Tensor or None; dtype of x; gate: the result is multiplied by silu(z)
        dt_bias: Tensor or None; float32|float16|bfloat16; added to dt; of the delta rule: each head's part of the decay's argument
        dt_softplus: bool; take softplus of dt + dt_bias
        state_batch_indices: Tensor or None; int32|int64; slot of each sequence; absent: sequence i has slot i
        pad_slot_id: int; slot of sequences that are padding: they read zeros and write nothing
        state_scale: Tensor or None; float32; read and written; decode scales of int16 states, one a row
        out: Tensor or None; dtype of x; written; made when absent; the result
        disable_state_update: bool; the states stay as they are; only the output is computed
        intermediate_states_buffer: Tensor or None; dtype of state; read and written; takes the state after each token
        intermediate_state_indices: Tensor or None; int32|int64; row of intermediate_states_buffer for each sequence; absent: its slot
        intermediate_state_scales: Tensor or None; float32; read and written; decode scales of int16 intermediate states
        rand_seed: Tensor or None; seed of the random bits with which states are rounded
        philox_rounds: int; rounds of the random number generator
        cache_steps: int; tokens of the longest sequence
        algorithm: str; one of auto, simple, vertical, horizontal, async_horizontal; a hint for GPUs; without effect here
        dst_state_batch_indices: Tensor or None; int32|int64; slots written: of each sequence, or, with several tokens, after each of its tokens
        cu_seqlens: Tensor or None; int32|int64; first token of each sequence, and their number at the end
        num_accepted_tokens: Tensor or None; int32|int64; tokens of the last step that count: a sequence starts from column max(it - 1, 0) of its slots
        backend: str; one of auto, flashinfer, cake, cuda, cpu, reference; the implementation by name; 'auto' lets the library choose

    Returns:
        out: Tensor; dtype of x; the result

    Raises:
        TypeError: an argument is missing, unknown or of another type
        ValueError: shapes, dtypes or values that do not fit together; the message names them
        KeyError or ValueError: a name that is not one of those listed
        NotImplementedError: a call that no implementation of this library supports; the message says why
    """
    ...

def ssd_chunk_scan(x: _T, dt: Array, A: Array, B: Array, C: Array, D: Optional[Array] = None, z: Optional[Array] = None, dt_bias: Optional[Array] = None, dt_softplus: bool = False, dt_min: Optional[float] = None, dt_max: Optional[float] = None, initial_states: Optional[Array] = None, cu_seqlens: Optional[Array] = None, checkpoint_token_indices: Optional[Array] = None, checkpoint_state_slots: Optional[Array] = None, checkpoint_states: Optional[Array] = None, out: Optional[Array] = None, return_final_states: bool = True, state_dtype: Union[torch.dtype, str] = torch.bfloat16) -> Union[_T, Any]:
    """Mamba-2 over whole sequences: S = e^(A dt) S + dt x B; out = (S C + D x) silu(z), in chunks. Not in FlashInfer, whose SSDCombined calls it.

    Args:
        x: Tensor [b s nh p]; float32|float16|bfloat16; inputs
        dt: Tensor [b s nh]; float32|float16|bfloat16; time steps
        A: Tensor [nh]; float32; decay of the state: of each element, by e^(A dt)
        B: Tensor [b s ng n]; dtype of x; what x is multiplied with on its way into the state
        C: Tensor [b s ng n]; dtype of x; what the state is multiplied with on its way out
        D: Tensor or None; float32|float16|bfloat16; factor of x that is added to the result
        z: Tensor [b s nh p] or None; dtype of x; gate: the result is multiplied by silu(z)
        dt_bias: Tensor [nh] or None; float32|float16|bfloat16; added to dt; of the delta rule: each head's part of the decay's argument
        dt_softplus: bool; take softplus of dt + dt_bias
        dt_min: float or None; lower bound of dt after dt_bias and softplus
        dt_max: float or None; upper bound of dt after dt_bias and softplus
        initial_states: Tensor or None; float32|float16|bfloat16; states before the first tokens; absent: zeros
        cu_seqlens: Tensor [m] or None; int32|int64; first token of each sequence, and their number at the end
        checkpoint_token_indices: Tensor or None; int32|int64; the token before which each sequence has its checkpoint, counted from the first of x; negative: none
        checkpoint_state_slots: Tensor or None; int32|int64; the slot that takes the state of each sequence at its checkpoint; negative: none
        checkpoint_states: Tensor or None; float32|float16|bfloat16; read and written; states at the checkpoints
        out: Tensor [b s nh p] or None; dtype of x; written; made when absent; the result
        return_final_states: bool; return the states after the last tokens, too
        state_dtype: dtype; element type of the states

    Returns:
        out: Tensor [b s nh p]; dtype of x; the result
        final_states: Tensor; float32|float16|bfloat16; dtype state_dtype; states after the last tokens, when requested

    Raises:
        TypeError: an argument is missing, unknown or of another type
        ValueError: shapes, dtypes or values that do not fit together; the message names them
        NotImplementedError: a call that no implementation of this library supports; the message says why
    """
    ...

from flashinfer._mamba import SSDCombined as SSDCombined
from flashinfer._mamba import allocate_checkpointing_ssu_scratch as allocate_checkpointing_ssu_scratch
from flashinfer.mamba import checkpointing_ssu as checkpointing_ssu
from flashinfer._mamba import compute_seq_chunk_cumsum as compute_seq_chunk_cumsum
from flashinfer._mamba import replayssm_materialize as replayssm_materialize
from flashinfer.mamba import selective_state_update as selective_state_update
from flashinfer._mamba import ssd_combined_fwd as ssd_combined_fwd
from flashinfer._mamba import tile_state_size as tile_state_size