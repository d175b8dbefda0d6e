# Made by tools/make_stubs.py from the library's registry.
from enum import IntEnum
from typing import Any, Literal, NamedTuple, NoReturn, Optional, Protocol, TypeVar, Union

import torch

class Array(Protocol):
    """Anything that speaks DLPack: a torch.Tensor, a numpy.ndarray, ..."""

    def __dlpack__(self, *args: Any, **kwargs: Any) -> Any: ...

_T = TypeVar("_T", bound=Array)

from flashinfer._four_over_six import NVFP44Over6Config as NVFP44Over6Config
from flashinfer._four_over_six import NVFP44Over6ErrMode as NVFP44Over6ErrMode
from flashinfer._four_over_six import current_nvfp4_4over6_config as current_nvfp4_4over6_config
from flashinfer.quantization import make_nvfp4_global_scale as make_nvfp4_global_scale
from flashinfer._four_over_six import nvfp4_4over6_code as nvfp4_4over6_code
from flashinfer._four_over_six import nvfp4_4over6_from_code as nvfp4_4over6_from_code
from flashinfer._four_over_six import nvfp4_e4m3_max as nvfp4_e4m3_max
from flashinfer._four_over_six import nvfp4_per_token_scale_inv as nvfp4_per_token_scale_inv
from flashinfer._four_over_six import resolve_nvfp4_4over6 as resolve_nvfp4_4over6