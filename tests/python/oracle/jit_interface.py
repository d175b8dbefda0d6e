# SPDX-License-Identifier: Apache-2.0
"""Signatures and texts of the JIT interface of whichever `flashinfer` is imported, as JSON on the last line."""
import importlib
import inspect
import json
import os
import sys

MODULES = """jit jit.core jit.env jit.cpp_ext jit.utils jit.cubin_loader jit.activation jit.norm jit.page jit.rope jit.sampling jit.topk
jit.quantization jit.cascade jit.attention jit.attention.modules jit.attention.utils jit.attention.variants jit.fp4_quantization
jit.fp8_quantization jit.fp4_kv_quantization jit.fp4_kv_dequantization jit.fused_moe jit.gemm.core jit.gemm.fp8_blockscale jit.mla
jit.mla_kv_pack jit.dsv3_optimizations jit.tinygemm2 jit.xqa jit.hash_topk jit.mhc jit.bgmv_moe jit.moe_utils jit.monomoe jit.comm
jit.rmsnorm_silu jit.gated_act_mxfp8 jit.spdlog jit.tllm_utils jit.nvfp4_attention_sm120 jit.api_log_stats compilation_context artifacts
aot collect_env""".split()
CLASSES = {"jit.core": ("JitSpec", "JitSpecNvcc", "JitSpecRegistry", "JitSpecStatus", "MissingJITCacheError"),
           "compilation_context": ("CompilationContext",)}


def parameters(function):
    """[[name, kind, default as text or null], ...]; null when there is no signature."""
    try:
        found = inspect.signature(function).parameters.values()
    except (TypeError, ValueError):
        return None
    return [[p.name, p.kind.name, None if p.default is p.empty else repr(p.default)] for p in found]


def signatures(short):
    module = importlib.import_module("flashinfer." + short)
    found = {}
    for name in dir(module):
        value = getattr(module, name)
        if name.startswith("_") or not callable(value) or not str(getattr(value, "__module__", "")).startswith("flashinfer"):
            continue
        if not inspect.isclass(value):
            found[name] = {"parameters": parameters(value), "here": short == "jit" or value.__module__ == module.__name__,
                           "available": not hasattr(value, "not_available")}
    for name in CLASSES.get(short, ()):
        for attribute in dir(getattr(module, name)):
            value = getattr(getattr(module, name), attribute)
            if not attribute.startswith("_") or attribute == "__init__":
                found[f"{name}.{attribute}"] = {"parameters": parameters(value) if callable(value) else None, "here": True, "available": True}
    return found


def texts():
    """Names and texts that do not depend on a GPU."""
    import torch
    from flashinfer import jit
    from flashinfer.jit.attention import modules
    from flashinfer.jit.attention.utils import generate_additional_params
    from flashinfer.jit.core import refresh_current_compilation_context

    half, short, index = torch.float16, torch.bfloat16, torch.int32
    found = []
    for kv, window, cap, mode in ((half, False, True, 0), (torch.float8_e4m3fn, True, False, 1), (torch.uint8, True, True, 2)):
        found += [jit.get_single_decode_uri(half, kv, half, 64, 128, mode, window, cap), jit.get_batch_decode_uri(half, kv, short, index, 64, 64, mode, window, cap),
                  jit.get_pod_uri(half, kv, half, 128, mode, window, cap, False, index, 0, cap, window),
                  jit.get_batch_attention_uri(half, kv, half, index, 64, 64, mode, cap, window)]
        for backend in ("fa2", "fa3"):
            found += [jit.get_single_prefill_uri(backend, half, kv, half, 192, 128, mode, window, cap, False),
                      jit.get_batch_prefill_uri(backend, half, kv, half, index, 128, 128, mode, window, cap, True),
                      modules.get_batch_prefill_attention_sink_uri(backend, half, kv, half, index, 128, 128, mode, window),
                      jit.get_batch_mla_uri(backend, half, kv, half, index, 512, 64, window)]
    for sm90 in (False, True):
        found.append(generate_additional_params(["a", "maybe_b"], ["float", "int32_t"], ["s"], ["double"], sm90))
    for archs in ("7.5 8.0", "9.0", "10.0 8.9", "12.0", "12.1a 10.3f"):
        os.environ["FLASHINFER_CUDA_ARCH_LIST"] = archs
        context = refresh_current_compilation_context()
        found.append(context.get_nvcc_flags_list())
        found.append(sorted(map(list, context.TARGET_CUDA_ARCHS)))
        try:
            found.append(context.get_nvcc_flags_list(supported_major_versions=[9, 10]))
        except RuntimeError as e:
            found.append(str(e).partition(". ")[0].rstrip("."))
    found += [getattr(jit, f"sm{a}_nvcc_flags") for a in ("90a", "100a", "100f", "103a", "107a", "110a", "120a", "120f", "121a")]
    found.append({str(k): v for k, v in jit.utils.dtype_map.items()})
    found.append([jit.utils.filename_safe_dtype_map_kv(d) for d in (half, torch.uint8)])
    return found


if __name__ == "__main__":
    result = {"signatures": {short: signatures(short) for short in MODULES}, "texts": texts()}
    sys.stdout.write("\n" + json.dumps(result))
