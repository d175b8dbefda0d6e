# SPDX-License-Identifier: Apache-2.0
"""Tensors that tactics are measured on, in place of inputs of another shape: (shapes, dtype, device) -> tensor."""


def autotuner_initializer_empty(shapes, dtype, device):
    """Memory as it is."""
    import torch

    return torch.empty(shapes, dtype=dtype, device=device)


def autotuner_initializer_zeros(shapes, dtype, device):
    """Zeros."""
    import torch

    return torch.zeros(shapes, dtype=dtype, device=device)


def autotuner_initializer_ones(shapes, dtype, device):
    """Ones."""
    import torch

    return torch.ones(shapes, dtype=dtype, device=device)


def autotuner_initializer_rand(shapes, dtype, device):
    """Uniform random numbers in [0, 1), for floating-point types that torch draws."""
    import torch

    return torch.rand(shapes, dtype=torch.float32, device=device).to(dtype) if dtype.itemsize == 1 and dtype.is_floating_point \
        else torch.rand(shapes, dtype=dtype, device=device)


def autotuner_initializer_rand_scaled(shapes, dtype, device):
    """Uniform random numbers in [-5, 5), cast to `dtype`: the default."""
    import torch

    return (torch.rand(shapes, device=device) * 10 - 5).to(dtype)


def autotuner_initializer_randn(shapes, dtype, device):
    """Normal random numbers, cast to `dtype`."""
    import torch

    return torch.randn(shapes, device=device).to(dtype)
