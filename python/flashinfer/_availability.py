# SPDX-License-Identifier: Apache-2.0
"""Questions about back ends of other implementations: none of them is here, so that programs take their other path."""
CUDNN_AVAILABLE = False
_FUSED_KDA_DECODE_AVAILABLE = True  # vLLM reads it in flashinfer.kda_decode


def is_cute_dsl_available():
    """False: no kernel is written in CuTe DSL."""
    return False


def is_cute_dsl_experimental_available():
    """False: no kernel is written in CuTe DSL."""
    return False


def is_cute_dsl_arch_supported(*args, **kwargs):
    """False: no kernel is written in CuTe DSL."""
    return False


def is_cuda_tile_available():
    """False: no kernel is written in cuTile."""
    return False


def is_prims_ts_available():
    """False: this back end is not here."""
    return False


def has_bgmv_moe():
    """Whether `bgmv_moe` can be called."""
    from ._make import package

    return "bgmv_moe" in package.exports


def has_monomoe():
    """Whether `mono_moe` can be called: always, with CPU tensors."""
    return True


def can_implement_filtered_topk():
    """False: top-k has no algorithm that filters; every size has the same one."""
    return False


def can_use_clusters_topk(algo, device, deterministic, tie_break, dsa_graph_safe):
    """False: top-k has no algorithm on thread-block clusters."""
    return False


def can_use_cub_topk(algo, input_tensor, tie_break, deterministic, sorted_output=False):
    """False: top-k does not use CUB."""
    return False


def ugpu_state_pool(pool_size, num_v_heads, head_size=128, device=None):
    """A pool of states for a GPU of two dies, each of which holds half of every state: always a ValueError, because states here are [slots, heads, V, K]."""
    raise ValueError(f"ugpu_state_pool: device is {device}, but pools in the memory of two dies are for one generation of GPUs; any tensor [{pool_size}, "
                     f"{num_v_heads}, {head_size}, {head_size}] is a pool of states here")


def gdn_fused_decode_step_supported(batch_size, hidden_size=5120, n_ba=96, qkv_dim=10240, num_qk_heads=16, num_v_heads=48, head_dim=128,
                                    conv_width=4, conv_state_len=3, device=None, conv_state_layout="SD"):
    """Whether gdn_fused_decode_step takes these extents: all that fit together."""
    return (batch_size > 0 and hidden_size > 0 and num_qk_heads > 0 and num_v_heads % num_qk_heads == 0 and n_ba == 2 * num_v_heads
            and qkv_dim == (2 * num_qk_heads + num_v_heads) * head_dim and 2 <= conv_width <= 4 and conv_state_len == conv_width - 1
            and conv_state_layout in ("SD", "DS"))


def kda_prefill_supports_fp32_checkpoints(device=None, *, lower_bound=None):
    """True: checkpoints have the dtype of the states, which may be float32."""
    return True


def is_trtllm_moe_supported(dtype_weights, dtype_act, quant_method=None):
    """Whether a function `trtllm_*_moe` takes weights and inputs of those DtypeTrtllmGen, whatever the method's name."""
    from .tllm_enums import DtypeTrtllmGen as D

    return dtype_act in {D.Bfloat16: (D.Bfloat16,), D.E4m3: (D.E4m3,), D.E2m1: (D.E2m1,), D.MxE4m3: (D.MxE4m3,),
                         D.MxE2m1: (D.MxE4m3, D.Bfloat16), D.MxInt4: (D.Bfloat16,)}.get(dtype_weights, ())


def have_nccl_ep():
    """False: expert parallelism is not here."""
    return False


def have_nixl_ep():
    """False: expert parallelism is not here."""
    return False


def available_backends():
    """None: expert parallelism is not here."""
    return []
