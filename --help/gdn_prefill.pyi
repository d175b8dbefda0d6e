# Made by tools/make_stubs.py from the library's registry.
from enum import IntEnum
from typing import Any, Literal, NamedTuple, NoReturn, Optional, Protocol, TypeVar, Union

import torch

class Array(Protocol):
    """Anything that speaks DLPack: a torch.Tensor, a numpy.ndarray, ..."""

    def __dlpack__(self, *args: Any, **kwargs: Any) -> Any: ...

_T = TypeVar("_T", bound=Array)

def chunk_gated_delta_rule(q: _T, k: Array, v: Array, g: Optional[Array] = None, beta: Optional[Array] = None, scale: Optional[float] = None, initial_state: Optional[Array] = None, output_final_state: bool = False, cu_seqlens: Optional[Array] = None, use_qk_l2norm_in_kernel: bool = False, output: Optional[Array] = None, output_state: Optional[Array] = None, state_checkpoints: Optional[Array] = None, checkpoint_cu_starts: Optional[Array] = None, checkpoint_every_n_tokens: int = 0, use_cp: Any = 'auto', state_indices: Optional[Array] = None, _cp_chunk_len: Optional[int] = None, backend: Union[Literal['auto', 'flashinfer', 'cake_gdn', 'cudnn'], str] = 'auto', max_seqlen: Optional[int] = None) -> Union[_T, Any]:
    """The gated delta rule over packed sequences, by chunks: S <- g S, S <- S + beta (v - S k) k^T, o = S (scale q).

    Args:
        q: Tensor [t hq k]; float32|float16|bfloat16; queries
        k: Tensor [t hk k]; dtype of q; keys
        v: Tensor [t hv v]; dtype of q; values
        g: Tensor or None; float32; factor of the state before each token's update; 1 when absent
        beta: Tensor or None; float32; gate of each token's update; 1 when absent
        scale: float or None; factor of the queries; 1 / sqrt(K) when absent
        initial_state: Tensor or None; float32|float16|bfloat16|float8_e4m3fn|float8_e5m2; pool of states, or the states that sequences begin with
        output_final_state: bool; also return the state of each sequence
        cu_seqlens: Tensor [n] or None; int32|int64; first token of each sequence, and their number at the end
        use_qk_l2norm_in_kernel: bool; divides each row of q and k by its norm
        output: Tensor or None; float32|float16|bfloat16; written; made when absent; the result
        output_state: Tensor or None; float32|float16|bfloat16|float8_e4m3fn|float8_e5m2; written; made when absent; may be initial_state itself; states of the sequences after their last tokens
        state_checkpoints: Tensor or None; float32|float16|bfloat16|float8_e4m3fn|float8_e5m2; read and written; takes states along the sequences
        checkpoint_cu_starts: Tensor [starts] or None; int32|int64; first checkpoint of each sequence
        checkpoint_every_n_tokens: int; tokens between two checkpoints, a multiple of 64; 0: none
        use_cp: object; of FlashInfer's context parallelism; without effect
        state_indices: Tensor [sequences] or None; int32|int64; the slot of each row or sequence
        _cp_chunk_len: int or None; of FlashInfer's context parallelism; without effect
        backend: str; one of auto, flashinfer, cake_gdn, cudnn; the implementation by name; 'auto' lets the library choose
        max_seqlen: int or None; tokens of the longest sequence; checked, without effect

    Returns:
        output: Tensor; float32|float16|bfloat16; the result
        output_state: Tensor; float32|float16|bfloat16|float8_e4m3fn|float8_e5m2; may be initial_state itself; states of the sequences after their last tokens, when requested

    Raises:
        TypeError: an argument is missing, unknown or of another type
        ValueError: shapes, dtypes or values that do not fit together; the message names them
        KeyError or ValueError: a name that is not one of those listed
        NotImplementedError: a call that no implementation of this library supports; the message says why
    """
    ...

from flashinfer.gdn_prefill import chunk_gated_delta_rule as chunk_gated_delta_rule