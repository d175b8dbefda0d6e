# SPDX-License-Identifier: Apache-2.0
"""FlashInfer's downloads of cubins. This library downloads nothing: kernels are compiled where they run, or come precompiled with the packages
flashinfer-cpp and flashinfer-cpp-cubin. The files of the second are those that are asked about here; every download is already complete."""
import contextlib
import logging
import os
from dataclasses import dataclass

from .jit._library import call
from .jit.cubin_loader import download_file, safe_urljoin, verify_cubin  # noqa: F401: names of this module

logger = logging.getLogger("flashinfer.artifacts")
FLASHINFER_CUBINS_REPOSITORY = ""


def __getattr__(name):
    if name == "FLASHINFER_CUBIN_DIR":
        from .jit import env

        return env.FLASHINFER_CUBIN_DIR
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


@dataclass(frozen=True)
class ArtifactPath:
    """Folders of the repository: none."""


@dataclass(frozen=True)
class CheckSumHash:
    """Checksums of the repository's files: none."""

    map_checksums = {}


@contextlib.contextmanager
def temp_env_var(key: str, value: str):
    """Sets a variable of the environment for a while."""
    before = os.environ.get(key)
    os.environ[key] = value
    try:
        yield
    finally:
        if before is None:
            del os.environ[key]
        else:
            os.environ[key] = before


def get_available_cubin_files(source: str, retries: int = 3, delay: int = 5, timeout: int = 10) -> "tuple[str, ...]":
    return ()


def get_available_header_files(source: str, retries: int = 3, delay: int = 5, timeout: int = 10) -> "tuple[str, ...]":
    return ()


def get_checksums(subdirs):
    return {}


def get_subdir_file_list():
    """(path, SHA-256) of each cubin of the package flashinfer-cpp-cubin."""
    return iter([(c["path"], c["sha256"]) for c in call("cubins")])


def download_artifacts() -> None:
    """Returns: nothing needs downloading."""
    logger.info("nothing needs downloading")


def get_artifacts_status() -> "tuple[tuple[str, bool], ...]":
    """(path, whether it is there and whole) of each cubin of the package flashinfer-cpp-cubin."""
    return tuple((c["path"], c["present"]) for c in call("cubins"))


def clear_cubin():
    """Returns: nothing was downloaded. `flashinfer clear-cache` removes compiled kernels, `pip uninstall flashinfer-cpp-cubin` precompiled ones."""
