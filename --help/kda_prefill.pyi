# Made by tools/make_stubs.py from the library's registry.
from enum import IntEnum
from typing import Any, Literal, NamedTuple, NoReturn, Optional, Protocol, TypeVar, Union

import torch

class Array(Protocol):
    """Anything that speaks DLPack: a torch.Tensor, a numpy.ndarray, ..."""

    def __dlpack__(self, *args: Any, **kwargs: Any) -> Any: ...

_T = TypeVar("_T", bound=Array)

from flashinfer._kda import KDAPrefillPlanCache as KDAPrefillPlanCache
from flashinfer._kda import RecurrentKDAPrefillWorkspace as RecurrentKDAPrefillWorkspace
from flashinfer._availability import kda_prefill_supports_fp32_checkpoints as kda_prefill_supports_fp32_checkpoints
from flashinfer._kda_prepared import prepare_bf16_kda_prefill as prepare_bf16_kda_prefill
from flashinfer._kda_prepared import prepare_tf32_kda_prefill as prepare_tf32_kda_prefill