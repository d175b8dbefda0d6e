# SPDX-License-Identifier: Apache-2.0
"""Kinds of tensors and the operators that pipelines of `flashinfer.logits_processor` are made of."""
import abc
import dataclasses
import enum
import numbers
import typing

from . import sampling


class TensorType(enum.Enum):
    LOGITS = 1
    PROBS = 2
    INDICES = 3

    def __str__(self):
        return self.name

    def __repr__(self):
        return f"TensorType.{self.name}"


class LegalizationError(Exception):
    """A processor that cannot take what comes before it."""


class CompileError(Exception):
    """Operators that do not fit together."""


@dataclasses.dataclass(frozen=True, eq=False)
class TaggedTensor:
    """An array and what it holds. torch's functions take it as the array."""

    data: typing.Any
    type: TensorType

    @classmethod
    def logits(cls, data):
        return cls(data, TensorType.LOGITS)

    @classmethod
    def probs(cls, data):
        return cls(data, TensorType.PROBS)

    @classmethod
    def indices(cls, data):
        return cls(data, TensorType.INDICES)

    @property
    def shape(self):
        return self.data.shape

    @property
    def dtype(self):
        return self.data.dtype

    @property
    def device(self):
        return self.data.device

    def size(self, dim=None):
        return self.data.size() if dim is None else self.data.size(dim)

    @classmethod
    def __torch_function__(cls, func, types, args=(), kwargs=None):
        def plain(x):
            return x.data if isinstance(x, TaggedTensor) else type(x)(map(plain, x)) if type(x) in (list, tuple) else x

        return func(*map(plain, args), **{k: plain(v) for k, v in (kwargs or {}).items()})

    def __repr__(self):
        return f"TaggedTensor(type={self.type}, shape={self.shape}, dtype={self.dtype}, device={self.device})"


# ---- operators ----
class Op(abc.ABC):
    """A step from one kind of tensor to another; `IN` and `OUT` are TensorTypes of the class."""

    IN = None
    OUT = None

    @abc.abstractmethod
    def __call__(self, tensor, **kwargs):
        ...

    def _validate_input_type(self, tensor):
        if tensor.type is not self.IN:
            raise ValueError(f"Operator {type(self).__name__} cannot accept input type {tensor.type}. Expected: {self.IN}")
        return tensor.type

    def __repr__(self):
        return f"{type(self).__name__}({self.IN} -> {self.OUT})"


class ParameterizedOp(Op):
    """An operator whose parameters come with the call, or from the processor as defaults."""

    def __init__(self, **default_params):
        self.default_params = default_params

    def _get_param(self, name, kwargs, required=True):
        value = kwargs.get(name)
        if value is None:
            value = self.default_params.get(name)
        if value is None and required:
            raise ValueError(f"Required parameter '{name}' not provided for {type(self).__name__}")
        return value


def _is_array(x):
    return hasattr(x, "__dlpack__")


def _checked(name, x, kind, fits, range_text):
    """A number in its range, or an array (which the library checks)."""
    if not _is_array(x) and (isinstance(x, bool) or not isinstance(x, kind) or not fits(x)):
        raise ValueError(f"{name} must be {range_text} or a tensor array, but is {x!r}")
    return x


_RULES = {
    "temperature": (numbers.Real, lambda x: x > 0, "positive float"),
    "top_k": (numbers.Integral, lambda x: x > 0, "a positive integer"),
    "top_p": (numbers.Real, lambda x: 0 < x <= 1, "float in (0, 1]"),
    "min_p": (numbers.Real, lambda x: 0 < x <= 1, "float in (0, 1]"),
}


class _Built(ParameterizedOp):
    """An operator that is one call of the library: `takes` names the thresholds, `passes` what goes on as it is."""

    takes = ()
    passes = ()

    def __call__(self, tensor, **kwargs):
        self._validate_input_type(tensor)
        found = [_checked(name.capitalize() if name == "temperature" else name, self._get_param(name, kwargs), *_RULES[name])
                 for name in self.takes]
        rest = {name: self._get_param(name, kwargs, required=False) for name in self.passes}
        return TaggedTensor(self.compute(tensor.data, *found, **{k: v for k, v in rest.items() if v is not None}), self.OUT)

    @abc.abstractmethod
    def compute(self, x, *found, **rest):
        ...


def _column(x, like):
    """A number as it is; one value a row as a column that broadcasts over the vocabulary."""
    if not _is_array(x):
        return x
    if x.ndim != 1 or x.shape[0] != like.shape[0]:
        raise ValueError(f"Sampling parameter batch size mismatch: {tuple(x.shape)} for {like.shape[0]} rows")
    return x[:, None]


def _operator(name, source, target, takes, passes, compute):
    return type(name, (_Built,), {"IN": source, "OUT": target, "takes": takes, "passes": passes, "compute": staticmethod(compute),
                                  "__module__": "flashinfer.logits_processor"})


def _scaled(x, temperature):
    y = x / _column(temperature, x)
    return y.to(x.dtype) if hasattr(y, "to") else y.astype(x.dtype)


def _min_p_renormed(x, min_p):
    import torch

    p = torch.as_tensor(x)
    limit = p.amax(dim=-1, keepdim=True) * _column(min_p, x)
    kept = torch.where(p >= limit, p, torch.zeros_like(p))
    kept = kept / kept.sum(dim=-1, keepdim=True)
    return kept if isinstance(x, torch.Tensor) else kept.numpy()


_L, _P, _I = TensorType
_DRAW = ("indices", "deterministic", "generator", "check_nan", "seed", "offset")
TemperatureOp = _operator("TemperatureOp", _L, _L, ("temperature",), (), _scaled)
SoftmaxOp = _operator("SoftmaxOp", _L, _P, (), ("enable_pdl",), lambda x, **o: sampling.softmax(x, **o))
ProbsTopKOp = _operator("ProbsTopKOp", _P, _P, ("top_k",), ("is_deterministic",), lambda x, k, **o: sampling.top_k_renorm_probs(x, k, **o))
LogitsTopKOp = _operator("LogitsTopKOp", _L, _L, ("top_k",), (), lambda x, k: sampling.top_k_mask_logits(x, k))
TopPOp = _operator("TopPOp", _P, _P, ("top_p",), ("is_deterministic",), lambda x, p, **o: sampling.top_p_renorm_probs(x, p, **o))
MinPOp = _operator("MinPOp", _P, _P, ("min_p",), (), _min_p_renormed)
ProbsSampleOp = _operator("ProbsSampleOp", _P, _I, (), _DRAW, lambda x, **o: sampling.sampling_from_probs(x, **o))
LogitsSampleOp = _operator("LogitsSampleOp", _L, _I, (), _DRAW, lambda x, **o: sampling.sampling_from_logits(x, **o))
FusedTemperatureSoftmaxOp = _operator("FusedTemperatureSoftmaxOp", _L, _P, ("temperature",), ("enable_pdl",),
                                      lambda x, t, **o: sampling.softmax(x, temperature=t, **o))
FusedProbsTopKSampleOp = _operator("FusedProbsTopKSampleOp", _P, _I, ("top_k",), _DRAW,
                                   lambda x, k, **o: sampling.top_k_sampling_from_probs(x, k, **o))
FusedProbsTopPSampleOp = _operator("FusedProbsTopPSampleOp", _P, _I, ("top_p",), _DRAW,
                                   lambda x, p, **o: sampling.top_p_sampling_from_probs(x, p, **o))
FusedProbsMinPSampleOp = _operator("FusedProbsMinPSampleOp", _P, _I, ("min_p",), _DRAW,
                                   lambda x, p, **o: sampling.min_p_sampling_from_probs(x, p, **o))
FusedProbsTopKTopPSampleOp = _operator(
    "FusedProbsTopKTopPSampleOp", _P, _I, ("top_k", "top_p"), _DRAW,
    lambda x, k, p, **o: sampling.top_k_top_p_sampling_from_probs(x, k, p, filter_apply_order="joint", **o))
FusedProbsTopKThenTopPSampleOp = _operator(
    "FusedProbsTopKThenTopPSampleOp", _P, _I, ("top_k", "top_p"), _DRAW,
    lambda x, k, p, **o: sampling.top_k_top_p_sampling_from_probs(x, k, p, filter_apply_order="top_k_first", **o))
FusedLogitsTopKTopPSampleOp = _operator(
    "FusedLogitsTopKTopPSampleOp", _L, _I, ("top_k", "top_p"), _DRAW,
    lambda x, k, p, **o: sampling.top_k_top_p_sampling_from_logits(x, k, p, filter_apply_order="joint", **o))
