# SPDX-License-Identifier: Apache-2.0
"""The native library: where it is, and its functions.

It is looked for, in this order, in

1. ``$FLASHINFER_BUILD_DIR/lib``, and nowhere else when that is set: a build folder (tests, developers),
2. ``lib/`` beside this file: an installed package,
3. ``build/*/lib`` of the checkout this file is in, the newest one without sanitizers.

`import flashinfer` loads ``libflashinfer.so`` alone, for the descriptions of the ops. TVM-FFI, and ``libflashinfer_tvm_ffi.so``
with the functions to call, come with the first call (`connect`): TVM-FFI imports torch when torch is installed, which a program
may not want. Both libraries stay loaded when the package is imported again.
"""
import ctypes
import glob
import json
import os
import sys
import threading
import warnings

from . import _cubin

_CORE = "libflashinfer.so"
_FFI = "libflashinfer_tvm_ffi.so"


def _is_plain(folder):
    """Whether the build of a folder `lib` can be loaded into any interpreter: one with sanitizers cannot."""
    try:
        with open(os.path.join(os.path.dirname(folder), "CMakeCache.txt"), encoding="utf-8", errors="replace") as file:
            return not any(line.startswith("FLASHINFER_SANITIZE:") and line.strip().partition("=")[2] for line in file)
    except OSError:
        return True


def _find_folder():
    here = os.path.dirname(os.path.abspath(__file__))
    checkout = os.path.dirname(os.path.dirname(here))
    build = os.environ.get("FLASHINFER_BUILD_DIR")
    if build:
        candidates = [os.path.join(build, "lib")]
    else:
        candidates = [os.path.join(here, "lib"),
                      *sorted(filter(_is_plain, glob.glob(os.path.join(checkout, "build", "*", "lib"))
                                     + glob.glob(os.path.join(checkout, "build", "lib"))), key=os.path.getmtime, reverse=True)]
    for folder in candidates:
        if os.path.exists(os.path.join(folder, _FFI)) and glob.glob(os.path.join(folder, _CORE + "*")):
            return folder
    looked = f"{_FFI} and {_CORE} are not in " + ", ".join(candidates)
    if build:
        raise ImportError(f"flashinfer: FLASHINFER_BUILD_DIR is {build!r}, but {looked}. Name a build folder, or unset it to use an "
                          "installed package or a build below the checkout.")
    raise ImportError(f"flashinfer: {looked}. In a checkout, `pip install .` builds and installs the package, `make` builds the library "
                      "below build/; FLASHINFER_BUILD_DIR names a build folder elsewhere.")


folder = _find_folder()
environment = dict(os.environ)  # before the library reads any of it: jit._library compares
core = ctypes.CDLL(min(glob.glob(os.path.join(folder, _CORE + "*"))), mode=ctypes.RTLD_GLOBAL)  # packages have the versioned name alone
core.flashinfer_describe_ops.restype = ctypes.c_char_p
core.flashinfer_version.restype = ctypes.c_char_p
core.flashinfer_set_python_prefix.restype = None
core.flashinfer_set_python_prefix(os.fsencode(sys.prefix))  # NVIDIA's wheels, where no environment is active
core.flashinfer_add_precompiled_folder.restype = None
_cubin.connect(core.flashinfer_version().decode(), core.flashinfer_add_precompiled_folder)


def commit():
    """The git commit that the library was built from, 12 digits, or "unknown"."""
    core.flashinfer_commit.restype = ctypes.c_char_p
    return core.flashinfer_commit().decode()


def version():
    return core.flashinfer_version().decode()


def describe():
    """All ops of the registry, as `flashinfer/ffi/describe.h` says."""
    return json.loads(core.flashinfer_describe_ops())


def observed():
    """True when calls are logged or recorded (by the environment, or because the program said so)."""
    return bool(core.flashinfer_observed())


_lock = threading.RLock()
_connected = None


class Connection:
    """TVM-FFI's module, once it is needed, and the library's functions in it."""

    def __init__(self):
        try:
            import tvm_ffi
        except ModuleNotFoundError as error:
            raise ImportError("flashinfer calls its library through the package apache-tvm-ffi: `pip install apache-tvm-ffi`") from error
        ctypes.CDLL(os.path.join(folder, _FFI), mode=ctypes.RTLD_GLOBAL)
        tvm_ffi.register_error("NotImplementedError", NotImplementedError)
        self.tvm_ffi = tvm_ffi
        self.tensor_type = tvm_ffi.Tensor
        self._functions = {}

    def function(self, name):
        """The library's function "flashinfer.<name>"."""
        found = self._functions.get(name)
        if found is None:
            found = self._functions[name] = self.tvm_ffi.get_global_func("flashinfer." + name)
        return found


def connect():
    """The one connection of this process."""
    global _connected
    if _connected is None:
        with _lock:
            if _connected is None:
                _connected = Connection()
    return _connected


def function(name):
    """The library's function "flashinfer.<name>"."""
    return connect().function(name)


def warn(message, kind=0):
    """A warning of the library, shown at the line that called the package."""
    depth, frame = 2, sys._getframe(1)
    package = os.path.dirname(os.path.abspath(__file__))
    while frame.f_back is not None and (frame.f_code.co_filename.startswith((package, "<flashinfer"))
                                        or "tvm_ffi" in frame.f_code.co_filename):
        frame, depth = frame.f_back, depth + 1
    warnings.warn(str(message), (UserWarning, DeprecationWarning, FutureWarning)[kind], stacklevel=depth)
