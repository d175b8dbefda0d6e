# SPDX-License-Identifier: Apache-2.0
"""The package of precompiled GPU kernels, flashinfer-cpp-cubin (packaging/cubin): the module `flashinfer_cubin`, where it is installed.

FlashInfer's own flashinfer-cubin has the same module. Its cubins are of other kernels, so it is left alone without a word."""
import os
import warnings

_DISTRIBUTION = "flashinfer-cpp-cubin"
folder = None  # of the kernels, when they are used


def connect(version, add):
    """Gives the kernels' folder to `add`, when the package is of this `version`."""
    global folder
    try:
        import flashinfer_cubin
    except ModuleNotFoundError:
        return
    if getattr(flashinfer_cubin, "DISTRIBUTION", None) != _DISTRIBUTION:
        return
    if flashinfer_cubin.__version__ != version and os.environ.get("FLASHINFER_DISABLE_VERSION_CHECK") != "1":
        warnings.warn(f"{_DISTRIBUTION} {flashinfer_cubin.__version__} is not used: flashinfer-cpp is {version}, and its kernels may be others. Install "
                      f"{_DISTRIBUTION} {version} (`make cubin-wheel` of its sources), or uninstall it; FLASHINFER_DISABLE_VERSION_CHECK=1 leaves it to the "
                      "library, which compares each kernel.", RuntimeWarning, stacklevel=3)
        return
    folder = flashinfer_cubin.get_cubin_dir()
    add(os.fsencode(folder))
