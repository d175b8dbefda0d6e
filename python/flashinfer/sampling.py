# SPDX-License-Identifier: Apache-2.0
"""Softmax, sampling, filters of probabilities and logits, made from the library's registry; older names of two of them."""

from . import _modules

__getattr__ = _modules.names_of(__name__)


def get_seed_and_offset(increment, generator=None, device=None):
    """The seed and offset of a sampler that draws `increment` random numbers, from `generator` or torch's default one.

    The generator's own stream gives the seed, so that `manual_seed`, `get_state` and `set_state` decide it and each call advances it;
    the offset is `increment` rounded up to a multiple of 4. `device`: the generator's; only the CPU is supported.
    """
    import torch

    if device is not None and torch.device(device).type != "cpu":
        raise ValueError(f"get_seed_and_offset: device is {device}, but must be cpu: only the CPU's generators are supported")
    if generator is None:
        generator = torch.default_generator
    if not isinstance(generator, torch.Generator):
        raise TypeError(f"generator must be a torch.Generator, but is {type(generator).__name__}")
    seed = torch.empty((), dtype=torch.int64).random_(generator=generator).item()
    return seed, (increment + 3) // 4 * 4
