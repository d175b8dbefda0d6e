# Made by tools/make_stubs.py from the library's registry.
from enum import IntEnum
from typing import Any, Literal, NamedTuple, NoReturn, Optional, Protocol, TypeVar, Union

import torch

class Array(Protocol):
    """Anything that speaks DLPack: a torch.Tensor, a numpy.ndarray, ..."""

    def __dlpack__(self, *args: Any, **kwargs: Any) -> Any: ...

_T = TypeVar("_T", bound=Array)

from flashinfer.logits_processor import FusedProbsMinPSampleOp as FusedProbsMinPSampleOp
from flashinfer.logits_processor import FusedProbsTopKSampleOp as FusedProbsTopKSampleOp
from flashinfer.logits_processor import FusedProbsTopKTopPSampleOp as FusedProbsTopKTopPSampleOp
from flashinfer.logits_processor import FusedProbsTopPSampleOp as FusedProbsTopPSampleOp
from flashinfer.logits_processor import FusedTemperatureSoftmaxOp as FusedTemperatureSoftmaxOp
from flashinfer.logits_processor import LogitsSampleOp as LogitsSampleOp
from flashinfer.logits_processor import LogitsTopKOp as LogitsTopKOp
from flashinfer.logits_processor import MinPOp as MinPOp
from flashinfer.logits_processor import ProbsSampleOp as ProbsSampleOp
from flashinfer.logits_processor import ProbsTopKOp as ProbsTopKOp
from flashinfer.logits_processor import SoftmaxOp as SoftmaxOp
from flashinfer.logits_processor import TemperatureOp as TemperatureOp
from flashinfer.logits_processor import TopPOp as TopPOp