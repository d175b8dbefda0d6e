# SPDX-License-Identifier: Apache-2.0
"""Sparse attention, made from the library's registry; `segment_packbits`, which packs its masks, is that of `flashinfer.quantization`."""
from . import _modules

__getattr__ = _modules.names_of(__name__)
