# SPDX-License-Identifier: Apache-2.0
"""Sizes of FP4 tensors, buckets, flags of the process and attributes of a thread that programs take from `flashinfer.fused_moe.utils`."""
import contextlib
import dataclasses
import enum
import functools
import math
import threading
from typing import Any

from .utils import next_positive_power_of_2, round_up

AuxStreamType = enum.Enum("AuxStreamType", ["Attention", "MoeShared", "MoeChunkingOverlap"])
MoeEventType = enum.Enum("EventType", ["Main", *AuxStreamType.__members__], start=0)


@dataclasses.dataclass
class Fp4QuantizedTensor:
    """Two e2m1 a byte and their scales."""

    fp4_tensor: Any
    scaling_factor: Any
    is_sf_swizzled: bool = True

    @property
    def shape(self):
        return self.fp4_tensor.shape


def nearest_in_buckets(x, buckets):
    """The smallest power of two from x on, within the first and the last of the sorted `buckets`."""
    return min(max(next_positive_power_of_2(x), buckets[0]), buckets[-1])


def compute_swizzled_sf_shape(row, col):
    """The rows and columns of scales in the layout 128x4."""
    return round_up(row, 128), round_up(col, 4)


def get_fp4_shape(input_shape, sf_vec_size, is_swizzled_layout=True):
    """The shape of the bytes of an FP4 tensor, and the number of its scales, one for `sf_vec_size` elements."""
    rows, columns = math.prod(input_shape[:-1]), input_shape[-1] // sf_vec_size
    padded = compute_swizzled_sf_shape(rows, columns) if is_swizzled_layout else (rows, columns)
    return [*input_shape[:-1], input_shape[-1] // 2], padded[0] * padded[1]


def fp4_scale_infer_shape(input_shapes):
    """Twice the number of scales of the first shape, which counts elements, in the layout 128x4 with blocks of 16."""
    return 2 * get_fp4_shape(input_shapes[0], 16)[1]


_flags = {"torch_compiling": False, "piecewise_cuda_graph": True}  # of the process
_attrs = threading.local()


def set_torch_compiling(enable):
    """What is_torch_compiling() gives, in every thread."""
    _flags["torch_compiling"] = enable


def is_torch_compiling():
    """What set_torch_compiling() was given last; False at first."""
    return _flags["torch_compiling"]


def set_piecewise_cuda_graph_flag(enable):
    """What get_piecewise_cuda_graph_flag() gives, in every thread."""
    _flags["piecewise_cuda_graph"] = enable


def get_piecewise_cuda_graph_flag():
    """What set_piecewise_cuda_graph_flag() was given last; True at first."""
    return _flags["piecewise_cuda_graph"]


def get_global_attrs():
    """An object whose attributes each thread has for itself."""
    return _attrs


def get_model_extra_attrs():
    """The attributes of the innermost model_extra_attrs() of this thread, or None."""
    return getattr(_attrs, "model_extra_attrs", None)


@contextlib.contextmanager
def model_extra_attrs(attrs):
    """get_model_extra_attrs() gives `attrs` in a block."""
    before = get_model_extra_attrs()
    _attrs.model_extra_attrs = attrs
    try:
        yield
    finally:
        _attrs.model_extra_attrs = before


def with_model_extra_attrs(get_attrs):
    """A decorator of methods: model_extra_attrs(get_attrs(self)) around each call."""

    def decorate(method):
        @functools.wraps(method)
        def wrapper(self, *args, **kwargs):
            with model_extra_attrs(get_attrs(self)):
                return method(self, *args, **kwargs)

        return wrapper

    return decorate
