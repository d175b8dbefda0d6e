# Made by tools/make_stubs.py from the library's registry.
from enum import IntEnum
from typing import Any, Literal, NamedTuple, NoReturn, Optional, Protocol, TypeVar, Union

import torch

class Array(Protocol):
    """Anything that speaks DLPack: a torch.Tensor, a numpy.ndarray, ..."""

    def __dlpack__(self, *args: Any, **kwargs: Any) -> Any: ...

_T = TypeVar("_T", bound=Array)

def concat_mla_k(k: Array, k_nope: Array, k_rope: Array, *, backend: Union[Literal['default'], str] = 'default') -> None:
    """k = (k_nope, k_rope of the token for every head).

    Args:
        k: Tensor [n h d]; float32|float16|bfloat16|float8_e4m3fn|float8_e5m2; read and written; keys
        k_nope: Tensor [n h dn]; float32|float16|bfloat16|float8_e4m3fn|float8_e5m2; the keys' part without position
        k_rope: Tensor [n 1 dr]; float32|float16|bfloat16|float8_e4m3fn|float8_e5m2; the keys' position part
        backend: str; one of default; the implementation by name; 'auto' lets the library choose

    Raises:
        TypeError: an argument is missing, unknown or of another type
        ValueError: shapes, dtypes or values that do not fit together; the message names them
        KeyError or ValueError: a name that is not one of those listed
        NotImplementedError: a call that no implementation of this library supports; the message says why
    """
    ...

