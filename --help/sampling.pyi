# Made by tools/make_stubs.py from the library's registry.
from enum import IntEnum
from typing import Any, Literal, NamedTuple, NoReturn, Optional, Protocol, TypeVar, Union

import torch

class Array(Protocol):
    """Anything that speaks DLPack: a torch.Tensor, a numpy.ndarray, ..."""

    def __dlpack__(self, *args: Any, **kwargs: Any) -> Any: ...

_T = TypeVar("_T", bound=Array)

def chain_speculative_sampling(draft_probs: _T, draft_token_ids: Array, target_probs: Array, maybe_output_accepted_token_num: Optional[Array] = None, maybe_output_emitted_draft_token_num: Optional[Array] = None, deterministic: bool = True, generator: Optional[torch.Generator] = None, seed: Optional[Union[float, Array]] = None, offset: Optional[Union[float, Array]] = None) -> tuple[_T, _T, _T]:
    """Which draft tokens of a chain the target model accepts, and the token after them.

    Args:
        draft_probs: Tensor [b n v]; float32|float16|bfloat16; the draft model's probabilities of each proposed token
        draft_token_ids: Tensor [b n]; int32|int64; the proposed tokens
        target_probs: Tensor [b n+1 v]; dtype of draft_probs; the target model's probabilities, of one token more than were proposed
        maybe_output_accepted_token_num: Tensor [b] or None; int32|int64; read and written; proposed tokens that pass one by one; added to what it holds
        maybe_output_emitted_draft_token_num: Tensor [b] or None; int32|int64; read and written; how many proposed tokens were emitted; added to what it holds
        deterministic: bool; without effect: results here never depend on threads
        generator: Generator or None; where random numbers come from; torch's default generator when absent
        seed: number or Tensor or None; uint64|int64; of the random numbers, in place of a generator; one for all rows, or one a row
        offset: number or Tensor or None; uint64|int64; how many random numbers to skip

    Returns:
        output_token_ids: Tensor [b n+1]; int32
        output_accepted_token_num: Tensor [b]; int32
        output_emitted_draft_token_num: Tensor [b]; int32

    Raises:
        TypeError: an argument is missing, unknown or of another type
        ValueError: shapes, dtypes or values that do not fit together; the message names them
        NotImplementedError: a call that no implementation of this library supports; the message says why
    """
    ...

def get_seed_and_offset(increment, generator=None, device=None):
    """The seed and offset of a sampler that draws `increment` random numbers, from `generator` or torch's default one.

        The generator's own stream gives the seed, so that `manual_seed`, `get_state` and `set_state` decide it and each call advances it;
        the offset is `increment` rounded up to a multiple of 4. `device`: the generator's; only the CPU is supported.
    """
    ...

def min_p_sampling_from_probs(probs: _T, min_p: Union[float, Array], indices: Optional[Array] = None, deterministic: bool = True, generator: Optional[torch.Generator] = None, check_nan: bool = False, seed: Optional[Union[float, Array]] = None, offset: Optional[Union[float, Array]] = None, return_valid: bool = False) -> Union[_T, Any]:
    """One token of each row, drawn among those with at least min_p of the largest probability.

    Args:
        probs: Tensor [n v]; float32|float16|bfloat16; probabilities, one row a request; they need not sum to one
        min_p: number or Tensor; float32|float16|bfloat16|float64; tokens less probable than this times the most probable one are left out: a number, or one a row
        indices: Tensor [b] or None; int32|int64; pages, block columns or rows of probs, one after the other
        deterministic: bool; without effect: results here never depend on threads
        generator: Generator or None; where random numbers come from; torch's default generator when absent
        check_nan: bool; a NaN among the probabilities is a ValueError; costs one pass over them
        seed: number or Tensor or None; uint64|int64; of the random numbers, in place of a generator; one for all rows, or one a row
        offset: number or Tensor or None; uint64|int64; how many random numbers to skip
        return_valid: bool; also return whether each row had a distribution to draw from

    Returns:
        samples: Tensor; int32|int64
        valid: Tensor; bool, when requested

    Raises:
        TypeError: an argument is missing, unknown or of another type
        ValueError: shapes, dtypes or values that do not fit together; the message names them
        NotImplementedError: a call that no implementation of this library supports; the message says why
    """
    ...

def sampling_from_logits(logits: _T, indices: Optional[Array] = None, deterministic: bool = True, generator: Optional[torch.Generator] = None, check_nan: bool = False, seed: Optional[Union[float, Array]] = None, offset: Optional[Union[float, Array]] = None) -> _T:
    """One token of each row of logits, drawn from their softmax by Gumbel noise.

    Args:
        logits: Tensor [n v]; float32|float16|bfloat16; unnormalised log-probabilities, one row a request
        indices: Tensor [b] or None; int32|int64; pages, block columns or rows of probs, one after the other
        deterministic: bool; without effect: results here never depend on threads
        generator: Generator or None; where random numbers come from; torch's default generator when absent
        check_nan: bool; a NaN among the probabilities is a ValueError; costs one pass over them
        seed: number or Tensor or None; uint64|int64; of the random numbers, in place of a generator; one for all rows, or one a row
        offset: number or Tensor or None; uint64|int64; how many random numbers to skip

    Returns:
        samples: Tensor; int32|int64

    Raises:
        TypeError: an argument is missing, unknown or of another type
        ValueError: shapes, dtypes or values that do not fit together; the message names them
        NotImplementedError: a call that no implementation of this library supports; the message says why
    """
    ...

def sampling_from_probs(probs: _T, indices: Optional[Array] = None, deterministic: bool = True, generator: Optional[torch.Generator] = None, check_nan: bool = False, seed: Optional[Union[float, Array]] = None, offset: Optional[Union[float, Array]] = None, return_valid: bool = False) -> Union[_T, Any]:
    """One token of each row, drawn by inversion of the running sum of its probabilities.

    Args:
        probs: Tensor [n v]; float32|float16|bfloat16; probabilities, one row a request; they need not sum to one
        indices: Tensor [b] or None; int32|int64; pages, block columns or rows of probs, one after the other
        deterministic: bool; without effect: results here never depend on threads
        generator: Generator or None; where random numbers come from; torch's default generator when absent
        check_nan: bool; a NaN among the probabilities is a ValueError; costs one pass over them
        seed: number or Tensor or None; uint64|int64; of the random numbers, in place of a generator; one for all rows, or one a row
        offset: number or Tensor or None; uint64|int64; how many random numbers to skip
        return_valid: bool; also return whether each row had a distribution to draw from

    Returns:
        samples: Tensor; int32|int64
        valid: Tensor; bool, when requested

    Raises:
        TypeError: an argument is missing, unknown or of another type
        ValueError: shapes, dtypes or values that do not fit together; the message names them
        NotImplementedError: a call that no implementation of this library supports; the message says why
    """
    ...

def softmax(logits: _T, temperature: Optional[Union[float, Array]] = None, enable_pdl: Optional[bool] = None) -> _T:
    """exp(logits / temperature) over the sum of its row, in f32.

    Args:
        logits: Tensor [n v]; float32|float16|bfloat16; unnormalised log-probabilities, one row a request
        temperature: number or Tensor or None; float32|float16|bfloat16|float64; the logits are divided by this first: a number, or one a row; 1 when absent
        enable_pdl: bool or None; programmatic dependent launch; CUDA only, without effect on the CPU

    Returns:
        out: Tensor [n v]; float32; the result

    Raises:
        TypeError: an argument is missing, unknown or of another type
        ValueError: shapes, dtypes or values that do not fit together; the message names them
        NotImplementedError: a call that no implementation of this library supports; the message says why
    """
    ...

def top_k_mask_logits(logits: _T, top_k: Union[float, Array]) -> _T:
    """Keeps the k largest logits and their ties; the others become -inf.

    Args:
        logits: Tensor [n v]; float32|float16|bfloat16; unnormalised log-probabilities, one row a request
        top_k: number or Tensor; how many of the largest are kept: a number, or one a row

    Returns:
        masked_logits: Tensor [n v]; dtype of logits

    Raises:
        TypeError: an argument is missing, unknown or of another type
        ValueError: shapes, dtypes or values that do not fit together; the message names them
        NotImplementedError: a call that no implementation of this library supports; the message says why
    """
    ...

def top_k_renorm_probs(probs: _T, top_k: Union[float, Array], is_deterministic: bool = False) -> _T:
    """Keeps the k largest probabilities and their ties, divided by their sum.

    Args:
        probs: Tensor [n v]; float32|float16|bfloat16; probabilities, one row a request; they need not sum to one
        top_k: number or Tensor; how many of the largest are kept: a number, or one a row
        is_deterministic: bool; without effect: results here never depend on threads

    Returns:
        renorm_probs: Tensor [n v]; dtype of probs

    Raises:
        TypeError: an argument is missing, unknown or of another type
        ValueError: shapes, dtypes or values that do not fit together; the message names them
        NotImplementedError: a call that no implementation of this library supports; the message says why
    """
    ...

def top_k_sampling_from_probs(probs: _T, top_k: Union[float, Array], indices: Optional[Array] = None, deterministic: bool = True, generator: Optional[torch.Generator] = None, check_nan: bool = False, seed: Optional[Union[float, Array]] = None, offset: Optional[Union[float, Array]] = None, return_valid: bool = False) -> Union[_T, Any]:
    """One token of each row, drawn among its top k.

    Args:
        probs: Tensor [n v]; float32|float16|bfloat16; probabilities, one row a request; they need not sum to one
        top_k: number or Tensor; how many of the largest are kept: a number, or one a row
        indices: Tensor [b] or None; int32|int64; pages, block columns or rows of probs, one after the other
        deterministic: bool; without effect: results here never depend on threads
        generator: Generator or None; where random numbers come from; torch's default generator when absent
        check_nan: bool; a NaN among the probabilities is a ValueError; costs one pass over them
        seed: number or Tensor or None; uint64|int64; of the random numbers, in place of a generator; one for all rows, or one a row
        offset: number or Tensor or None; uint64|int64; how many random numbers to skip
        return_valid: bool; also return whether each row had a distribution to draw from

    Returns:
        samples: Tensor; int32|int64
        valid: Tensor; bool, when requested

    Raises:
        TypeError: an argument is missing, unknown or of another type
        ValueError: shapes, dtypes or values that do not fit together; the message names them
        NotImplementedError: a call that no implementation of this library supports; the message says why
    """
    ...

def top_k_top_p_sampling_from_logits(logits: _T, top_k: Union[float, Array], top_p: Union[float, Array], indices: Optional[Array] = None, filter_apply_order: Union[Literal['top_k_first', 'joint'], str] = 'top_k_first', deterministic: bool = True, generator: Optional[torch.Generator] = None, check_nan: bool = False, seed: Optional[Union[float, Array]] = None, offset: Optional[Union[float, Array]] = None) -> _T:
    """One token of each row of logits, drawn from their softmax among its top k and its top p of mass.

    Args:
        logits: Tensor [n v]; float32|float16|bfloat16; unnormalised log-probabilities, one row a request
        top_k: number or Tensor; how many of the largest are kept: a number, or one a row
        top_p: number or Tensor; float32|float16|bfloat16|float64; the smallest set of the most probable tokens whose mass reaches this is kept: a number, or one a row
        indices: Tensor [b] or None; int32|int64; pages, block columns or rows of probs, one after the other
        filter_apply_order: str; one of top_k_first, joint; 'top_k_first': top_p of the renormalised top k; 'joint': both of the whole distribution
        deterministic: bool; without effect: results here never depend on threads
        generator: Generator or None; where random numbers come from; torch's default generator when absent
        check_nan: bool; a NaN among the probabilities is a ValueError; costs one pass over them
        seed: number or Tensor or None; uint64|int64; of the random numbers, in place of a generator; one for all rows, or one a row
        offset: number or Tensor or None; uint64|int64; how many random numbers to skip

    Returns:
        samples: Tensor; int32|int64

    Raises:
        TypeError: an argument is missing, unknown or of another type
        ValueError: shapes, dtypes or values that do not fit together; the message names them
        KeyError or ValueError: a name that is not one of those listed
        NotImplementedError: a call that no implementation of this library supports; the message says why
    """
    ...

def top_k_top_p_sampling_from_probs(probs: _T, top_k: Union[float, Array], top_p: Union[float, Array], indices: Optional[Array] = None, filter_apply_order: Union[Literal['top_k_first', 'joint'], str] = 'top_k_first', deterministic: bool = True, generator: Optional[torch.Generator] = None, check_nan: bool = False, seed: Optional[Union[float, Array]] = None, offset: Optional[Union[float, Array]] = None, return_valid: bool = False) -> Union[_T, Any]:
    """One token of each row, drawn among its top k and its top p of mass.

    Args:
        probs: Tensor [n v]; float32|float16|bfloat16; probabilities, one row a request; they need not sum to one
        top_k: number or Tensor; how many of the largest are kept: a number, or one a row
        top_p: number or Tensor; float32|float16|bfloat16|float64; the smallest set of the most probable tokens whose mass reaches this is kept: a number, or one a row
        indices: Tensor [b] or None; int32|int64; pages, block columns or rows of probs, one after the other
        filter_apply_order: str; one of top_k_first, joint; 'top_k_first': top_p of the renormalised top k; 'joint': both of the whole distribution
        deterministic: bool; without effect: results here never depend on threads
        generator: Generator or None; where random numbers come from; torch's default generator when absent
        check_nan: bool; a NaN among the probabilities is a ValueError; costs one pass over them
        seed: number or Tensor or None; uint64|int64; of the random numbers, in place of a generator; one for all rows, or one a row
        offset: number or Tensor or None; uint64|int64; how many random numbers to skip
        return_valid: bool; also return whether each row had a distribution to draw from

    Returns:
        samples: Tensor; int32|int64
        valid: Tensor; bool, when requested

    Raises:
        TypeError: an argument is missing, unknown or of another type
        ValueError: shapes, dtypes or values that do not fit together; the message names them
        KeyError or ValueError: a name that is not one of those listed
        NotImplementedError: a call that no implementation of this library supports; the message says why
    """
    ...

def top_p_renorm_probs(probs: _T, top_p: Union[float, Array], is_deterministic: bool = False) -> _T:
    """Keeps the smallest set of largest probabilities whose mass reaches top_p, divided by its sum.

    Args:
        probs: Tensor [n v]; float32|float16|bfloat16; probabilities, one row a request; they need not sum to one
        top_p: number or Tensor; float32|float16|bfloat16|float64; the smallest set of the most probable tokens whose mass reaches this is kept: a number, or one a row
        is_deterministic: bool; without effect: results here never depend on threads

    Returns:
        renorm_probs: Tensor [n v]; float32

    Raises:
        TypeError: an argument is missing, unknown or of another type
        ValueError: shapes, dtypes or values that do not fit together; the message names them
        NotImplementedError: a call that no implementation of this library supports; the message says why
    """
    ...

def top_p_sampling_from_probs(probs: _T, top_p: Union[float, Array], indices: Optional[Array] = None, deterministic: bool = True, generator: Optional[torch.Generator] = None, check_nan: bool = False, seed: Optional[Union[float, Array]] = None, offset: Optional[Union[float, Array]] = None, return_valid: bool = False) -> Union[_T, Any]:
    """One token of each row, drawn among its top p of mass.

    Args:
        probs: Tensor [n v]; float32|float16|bfloat16; probabilities, one row a request; they need not sum to one
        top_p: number or Tensor; float32|float16|bfloat16|float64; the smallest set of the most probable tokens whose mass reaches this is kept: a number, or one a row
        indices: Tensor [b] or None; int32|int64; pages, block columns or rows of probs, one after the other
        deterministic: bool; without effect: results here never depend on threads
        generator: Generator or None; where random numbers come from; torch's default generator when absent
        check_nan: bool; a NaN among the probabilities is a ValueError; costs one pass over them
        seed: number or Tensor or None; uint64|int64; of the random numbers, in place of a generator; one for all rows, or one a row
        offset: number or Tensor or None; uint64|int64; how many random numbers to skip
        return_valid: bool; also return whether each row had a distribution to draw from

    Returns:
        samples: Tensor; int32|int64
        valid: Tensor; bool, when requested

    Raises:
        TypeError: an argument is missing, unknown or of another type
        ValueError: shapes, dtypes or values that do not fit together; the message names them
        NotImplementedError: a call that no implementation of this library supports; the message says why
    """
    ...

from flashinfer.sampling import top_k_renorm_probs as top_k_renorm_prob
from flashinfer.sampling import top_p_renorm_probs as top_p_renorm_prob