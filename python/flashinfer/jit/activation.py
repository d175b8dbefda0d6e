# SPDX-License-Identifier: Apache-2.0
"""Gated activations."""
from .kernels import family

_NAMES = ("silu", "gelu", "gelu_tanh")


def gen_act_and_mul_module(act_func_name):
    """Kernels of `silu_and_mul`, `gelu_and_mul` or `gelu_tanh_and_mul`. ValueError for another name."""
    if act_func_name not in _NAMES:
        raise ValueError(f"act_func_name is {act_func_name!r}, but must be one of {', '.join(map(repr, _NAMES))}")
    return family(f"{act_func_name}_and_mul", f"{act_func_name}_and_mul")


def get_act_and_mul_cu_str(act_func_name, act_func_def):
    """NotImplementedError: activations are no generated CUDA text here."""
    raise NotImplementedError("get_act_and_mul_cu_str: activations are not made from CUDA text here; gen_jit_spec compiles an op of your own")
