# SPDX-License-Identifier: Apache-2.0
"""Downloads of cubins, of which this library makes none: its kernels are compiled where they run, or come with the package."""
import os
import pathlib
from typing import Union
from urllib.parse import urljoin

from .. import _modules

__getattr__ = _modules.refusing(__name__, "convert_to_ctypes_char_p get_meta_hash verify_symlinked_headers")

_NOTHING = ("nothing is downloaded here: kernels are compiled where they run, or come precompiled with the package (`flashinfer aot`); "
            "FlashInfer's cubins are not used")


def setup_cubin_loader(dll_path: str) -> None:
    """Does nothing: no library here asks for cubins."""


def get_artifact(file_name: str, sha256: str, session=None) -> bytes:
    """NotImplementedError."""
    raise NotImplementedError(f"{file_name}: {_NOTHING}")


def get_cubin(file_name: str, sha256: str, session=None) -> bytes:
    """NotImplementedError."""
    raise NotImplementedError(f"{file_name}: {_NOTHING}")


def load_cubin(cubin_path: str, sha256: str) -> bytes:
    """NotImplementedError."""
    raise NotImplementedError(f"{cubin_path}: {_NOTHING}")


def download_file(source: str, destination: str, retries: int = 4, delay: int = 5, timeout: int = 10, lock_timeout: int = 30, session=None):
    """NotImplementedError."""
    raise NotImplementedError(f"{source}: {_NOTHING}")


def verify_cubin(cubin_path: str, expected_sha256: str) -> bool:
    """Whether the file has this SHA-256."""
    import hashlib

    try:
        return hashlib.sha256(pathlib.Path(cubin_path).read_bytes()).hexdigest() == expected_sha256
    except OSError:
        return False


def safe_urljoin(base, path):
    """urljoin, with `base` taken as a folder."""
    return urljoin(base if base.endswith("/") else base + "/", path)


def ensure_symlink(link: Union[str, pathlib.Path], target: Union[str, pathlib.Path]) -> None:
    """Makes `link` point to `target`."""
    link, target = pathlib.Path(link), pathlib.Path(target)
    if link.is_symlink() and os.readlink(link) == str(target):
        return
    link.parent.mkdir(parents=True, exist_ok=True)
    if link.is_symlink():
        link.unlink()
    link.symlink_to(target)
