# Made by tools/make_stubs.py from the library's registry.
from enum import IntEnum
from typing import Any, Literal, NamedTuple, NoReturn, Optional, Protocol, TypeVar, Union

import torch

class Array(Protocol):
    """Anything that speaks DLPack: a torch.Tensor, a numpy.ndarray, ..."""

    def __dlpack__(self, *args: Any, **kwargs: Any) -> Any: ...

_T = TypeVar("_T", bound=Array)

from flashinfer.logits_processor import FusionRule as FusionRule
from flashinfer.logits_processor import build as build_minp_sampling
from flashinfer.logits_processor import build as build_temperature_softmax
from flashinfer.logits_processor import build as build_topk_sampling
from flashinfer.logits_processor import build as build_topp_sampling
from flashinfer.logits_processor import get_default_fusion_rules as get_default_fusion_rules
from flashinfer.logits_processor import joint_topk_topp_sampleprobs_guard as joint_topk_topp_sampleprobs_guard