# SPDX-License-Identifier: Apache-2.0
"""Sparse attention, made from the library's registry; `segment_packbits`, which packs its masks, is that of `flashinfer.quantization`."""


def __getattr__(name):
    if name == "segment_packbits":
        from . import quantization

        return quantization.segment_packbits
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
