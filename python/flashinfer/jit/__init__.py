# SPDX-License-Identifier: Apache-2.0
"""Just-in-time compilation, by FlashInfer's names (docs/jit.md).

- `gen_jit_spec(name, sources, ...)` describes a library of a program's own C++ or CUDA sources; `build_and_load()` compiles it when
  sources, headers, flags or compilers changed, and returns its exported functions.
- `gen_<family>_module(...)` describe kernels of this library; `build()` compiles them before the first call.
- `gen_customize_*_module(...)` describe attention with a variant of the program's own (docs/attention-variants.md).
- `env` has the folders, `jit_spec_registry` what was described, `current_compilation_context` the GPU architectures.
"""
from ..compilation_context import CompilationContext
from . import env
from .activation import gen_act_and_mul_module, get_act_and_mul_cu_str
from .attention import (gen_batch_attention_module, gen_batch_decode_module, gen_batch_mla_module, gen_batch_pod_module,
                        gen_batch_prefill_module, gen_cudnn_fmha_module, gen_customize_batch_decode_module,
                        gen_customize_batch_prefill_module, gen_customize_single_decode_module, gen_customize_single_prefill_module,
                        gen_fmha_cutlass_sm100a_module, gen_fmha_v2_module, gen_pod_module, gen_single_decode_module,
                        gen_single_prefill_module, gen_trtllm_fmha_v2_sm120_module, gen_trtllm_gen_fmha_module, get_batch_attention_uri,
                        get_batch_decode_uri, get_batch_mla_uri, get_batch_prefill_uri, get_pod_uri, get_single_decode_uri,
                        get_single_prefill_uri)
from .bgmv_moe import gen_bgmv_moe_module, load_bgmv_moe_module
from .comm import (gen_comm_alltoall_module, gen_dcp_alltoall_module, gen_moe_alltoall_module, gen_pcie_ipc_comm_module,
                   gen_trtllm_comm_module, gen_trtllm_mnnvl_comm_module, gen_vllm_comm_module)
from .core import (JitSpec, JitSpecNvcc, JitSpecRegistry, JitSpecStatus, MissingJITCacheError, build_jit_specs, clear_cache_dir,
                   current_compilation_context, gen_jit_spec, jit_spec_registry, sm100a_nvcc_flags, sm100f_nvcc_flags,
                   sm103a_nvcc_flags, sm107a_nvcc_flags, sm110a_nvcc_flags, sm120a_nvcc_flags, sm120f_nvcc_flags, sm121a_nvcc_flags,
                   sm90a_nvcc_flags)
from .cubin_loader import setup_cubin_loader
from .cute_dsl_core import JitSpecCuteDsl
from .dsv3_optimizations import gen_dsv3_fused_routing_module, gen_dsv3_router_gemm_module
from .fp4_kv_dequantization import gen_fp4_kv_dequantization_module
from .fp4_kv_quantization import gen_fp4_kv_quantization_module
from .hash_topk import gen_hash_topk_module
from .kernels import JitSpecKernels
from .moe_utils import gen_moe_utils_module
from .monomoe import gen_monomoe_module, load_monomoe_module
from .nvfp4_attention_sm120 import gen_nvfp4_attention_sm120_module
from .tinygemm2 import gen_tinygemm2_module, gen_tinygemm2_sm100_module

# Generators that FlashInfer has in submodules alone; `flashinfer.norm.gen_norm_module` and the like are these.
_ELSEWHERE = {
    "cascade": "gen_cascade_module", "page": "gen_page_module", "rope": "gen_rope_module", "sampling": "gen_sampling_module",
    "topk": "gen_topk_module", "norm": "gen_norm_module", "quantization": "gen_quantization_module", "mla": "gen_mla_module",
    "mhc": "gen_mhc_module", "rmsnorm_silu": "gen_rmsnorm_silu_module select_knobs", "xqa": "gen_xqa_module gen_xqa_module_mla",
    "fp8_quantization": "gen_mxfp8_quantization_sm100_module", "mla_kv_pack": "gen_mla_kv_pack_fp8_module",
    "gated_act_mxfp8": "gen_gated_act_mxfp8_module", "dsv3_optimizations": "gen_concat_mla_module",
    "fp4_quantization": " ".join(f"gen_fp4_quantization_sm{a}_module" for a in ("90", "100", "103", "107", "110", "120", "120f", "121")),
    "fused_moe": "gen_trtllm_gen_fused_moe_sm100_module gen_trtllm_gen_routing_module " + " ".join(
        f"gen_cutlass_fused_moe_sm{a}_module" for a in ("89", "90", "100", "103", "120")),
    "comm": "gen_mixed_comm_module gen_pcie_ipc_ag_rs_module gen_ulysses_a2a_module gen_dcp_alltoall_helix_module gen_dcp_lse_reduce_module",
    "mamba": "gen_selective_state_update_module gen_selective_state_update_sm90_module gen_selective_state_update_sm100_module",
    "utils": "write_if_different",
}
# FlashInfer's names without a counterpart: specialised kernels of single GPUs and models.
_MISSING = frozenset(
    "gen_alphamoe_fused_router_module gen_alphamoe_nvfp4_sm100_module gen_alphamoe_sm100_module gen_blackwell_msa_module "
    "gen_cake_bgmv_moe_module gen_cake_fused_moe_warp_decode_module gen_cake_kda_affine_module gen_cake_kda_m128_unbounded_softplus_module "
    "gen_cake_megamoe_topk_reduce_module gen_cake_sampling_module gen_flash_kda_m128_module gen_flash_kda_m128_n16_module "
    "gen_flash_kda_m64_module gen_prims_ts_q_token_kv_block_sparse_metadata_module get_blackwell_msa_module get_blackwell_msa_uri "
    "get_cake_fused_moe_warp_decode_module get_cake_fused_moe_warp_decode_uri get_cake_kda_affine_module get_cake_kda_prefill_module "
    "get_cake_megamoe_topk_reduce_module get_cake_megamoe_topk_reduce_uri get_cake_sampling_uri get_flash_kda_prefill_module "
    "load_blackwell_msa_module load_cake_bgmv_moe_module load_cake_fused_moe_warp_decode_module "
    "load_cake_kda_m128_unbounded_softplus_module load_cake_megamoe_topk_reduce_module load_cake_sampling_module load_flash_kda_m128_module "
    "load_flash_kda_m128_n16_module load_flash_kda_m64_module run_cake_megamoe_topk_reduce "
    "is_cake_megamoe_topk_reduce_module_loaded cake_kda_affine_is_available".split())
_home = {name: module for module, names in _ELSEWHERE.items() for name in names.split()}


def _submodule(package, paths, name):
    """FlashInfer has imported its submodules when it is imported itself, so that programs write flashinfer.jit.norm."""
    import importlib
    from importlib.machinery import PathFinder

    if name.startswith("_") or PathFinder.find_spec(f"{package}.{name}", paths) is None:
        return None
    return importlib.import_module(f"{package}.{name}")


def __getattr__(name):
    if name in _home:
        import importlib

        return getattr(importlib.import_module(f"{__name__}.{_home[name]}"), name)
    if name in _MISSING:
        import sys

        from .. import _modules

        return _modules.shown(__name__, name, _modules.missing(__name__, name), sys._getframe(1))
    if name == "cuda_lib_path":
        from .cpp_ext import get_cuda_path

        return get_cuda_path() + "/lib64"
    if (module := _submodule(__name__, __path__, name)) is not None:
        return module
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__():
    return sorted({*globals(), *_home})
