# SPDX-License-Identifier: Apache-2.0
"""The recipe "4 over 6" of NVFP4, as a value: each block's scale is the better of amax / 6 and amax / 4. NVFP4 quantisers take it as
nvfp4_4over6."""
import dataclasses
import enum
import os
import warnings
from typing import Union

from . import _op

_UNSET = _op.Literal("<nvfp4_4over6 unset: read FLASHINFER_NVFP4_4OVER6*>")
_KNOWN_BITS = 0b11111
# The variables that may change what quantising ops of FlashInfer give.
NVFP4_QUANT_ENV_VARS = ("FLASHINFER_DISABLE_FP4_QUANT_FAST_MATH", "FLASHINFER_NVFP4_4OVER6", "FLASHINFER_NVFP4_4OVER6_ERR_MODE",
                        "FLASHINFER_NVFP4_4OVER6_ERR_USE_FAST_MATH", "FLASHINFER_NVFP4_4OVER6_E4M3_USE_256")


class NVFP44Over6ErrMode(enum.IntEnum):
    """How the two candidates are compared: by the sum of absolute or of squared errors."""
    MAE = 0
    MSE = 1

    def __repr__(self):
        return f"NVFP44Over6ErrMode.{self.name}"


@dataclasses.dataclass(frozen=True, repr=False)
class NVFP44Over6Config:
    """A recipe.

    Args:
        e4m3_max: the largest block scale, 448 or 256
        err_mode: an NVFP44Over6ErrMode, or its name or number
        err_use_fast_math: compare in reduced precision

    Raises:
        ValueError: any other value
    """
    e4m3_max: int = 448
    err_mode: Union[NVFP44Over6ErrMode, str] = NVFP44Over6ErrMode.MAE
    err_use_fast_math: bool = False

    def __post_init__(self):
        if self.e4m3_max not in (256, 448):
            raise ValueError("NVFP4 4over6 E4M3 max must be either 256 or 448.")
        mode = self.err_mode
        if isinstance(mode, str) and mode not in NVFP44Over6ErrMode.__members__:
            raise ValueError(f"NVFP4 4over6 error mode is {mode!r}, but must be MAE or MSE.")
        object.__setattr__(self, "err_mode", NVFP44Over6ErrMode[mode] if isinstance(mode, str) else NVFP44Over6ErrMode(mode))

    @property
    def err_mode_name(self):
        return self.err_mode.name

    def __repr__(self):
        changed = (f for f in dataclasses.fields(self) if getattr(self, f.name) != f.default)
        return f"NVFP44Over6Config({', '.join(f'{f.name}={getattr(self, f.name)!r}' for f in changed)})"


def _flag(name):
    return os.environ.get(name, "0") == "1"


def current_nvfp4_4over6_config():
    """The recipe of the environment: FLASHINFER_NVFP4_4OVER6=1, and FLASHINFER_NVFP4_4OVER6_E4M3_USE_256, _ERR_MODE, _ERR_USE_FAST_MATH;
    None when it is off."""
    if not _flag("FLASHINFER_NVFP4_4OVER6"):
        return None
    return NVFP44Over6Config(256 if _flag("FLASHINFER_NVFP4_4OVER6_E4M3_USE_256") else 448, os.environ.get("FLASHINFER_NVFP4_4OVER6_ERR_MODE", "MAE"),
                             _flag("FLASHINFER_NVFP4_4OVER6_ERR_USE_FAST_MATH"))


def resolve_nvfp4_4over6(setting=_UNSET):
    """The recipe that an argument `nvfp4_4over6` means: a config itself, None, or, left out, that of the environment.

    Raises:
        TypeError: anything else
    """
    if setting is None or isinstance(setting, NVFP44Over6Config):
        return setting
    if repr(setting) != repr(_UNSET) or not isinstance(setting, _op.Literal):
        raise TypeError(f"nvfp4_4over6 must be an NVFP44Over6Config or None (or omitted); got {type(setting).__name__}.")
    found = current_nvfp4_4over6_config()
    if found is not None:
        warnings.warn(f"The FLASHINFER_NVFP4_4OVER6* environment variables are deprecated; pass nvfp4_4over6={found!r} explicitly instead.",
                      FutureWarning, stacklevel=2)
    return found


def nvfp4_4over6_code(config):
    """A recipe as a number: 0 for None, else bit 0, bit 1 for a maximum of 256, bits 2 and 3 the mode, bit 4 fast mathematics."""
    if config is None:
        return 0
    return 1 | (config.e4m3_max == 256) << 1 | int(config.err_mode) << 2 | bool(config.err_use_fast_math) << 4


def nvfp4_4over6_from_code(code):
    """The recipe of a number; -1 is the argument that was left out.

    Raises:
        ValueError: no such number
    """
    if code == -1:
        return _UNSET
    if code < 0:
        raise ValueError(f"Unsupported NVFP4 4over6 code {code}: the only negative code is -1 (read the environment).")
    if code & ~_KNOWN_BITS:
        raise ValueError(f"Unsupported NVFP4 4over6 code {code}: unknown bits set.")
    if not code & 1:
        return None
    mode = code >> 2 & 3
    if mode > 1:
        raise ValueError(f"Unsupported NVFP4 4over6 error mode {mode} (expected 0=MAE or 1=MSE).")
    return NVFP44Over6Config(256 if code & 2 else 448, mode, bool(code & 16))


def nvfp4_e4m3_max(nvfp4_4over6_config=None):
    """The largest block scale under a recipe: 448 without one."""
    return float(448 if nvfp4_4over6_config is None else nvfp4_4over6_config.e4m3_max)


def nvfp4_per_token_scale_inv(nvfp4_4over6_config):
    """1 / (largest block scale * 6)"""
    return 1 / (nvfp4_e4m3_max(nvfp4_4over6_config) * 6)
