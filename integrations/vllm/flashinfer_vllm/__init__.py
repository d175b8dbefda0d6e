# SPDX-License-Identifier: Apache-2.0
"""vLLM on CPUs with flashinfer-cpp. vLLM calls `register` in each of its processes (entry point vllm.general_plugins).

FLASHINFER_VLLM=0 leaves vLLM as it is; FLASHINFER_VLLM=attention,mla,linear,norm,activation,rope,waiting names the parts that are replaced."""

import importlib
import os

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


def register():
    """Replaces vLLM's CPU attention and layers in this process. Does nothing where vLLM does not run on a CPU."""
    from vllm.platforms import current_platform

    wanted = parts()
    if not wanted or not current_platform.is_cpu():
        return
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
