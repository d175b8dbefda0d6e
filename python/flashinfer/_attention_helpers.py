# SPDX-License-Identifier: Apache-2.0
"""Functions and values of `flashinfer.prefill` and `flashinfer.mla` that are no ops."""
import dataclasses
import functools


def make_hashable_cache(function):
    """functools.cache for a function whose arguments may be lists: they are passed as tuples."""

    def hashable(value):
        return tuple(map(hashable, value)) if isinstance(value, list) else value

    cached = functools.cache(function)

    @functools.wraps(function)
    def call(*args, **kwargs):
        return cached(*map(hashable, args), **{name: hashable(value) for name, value in kwargs.items()})

    return call


def fmha_varlen_plan(module, qo_segment_offsets, kv_segment_offsets, num_qo_heads, causal):
    """An empty list for `plan_info` of `fmha_varlen`, which plans in each call. `module` is not used.

    Raises:
        ValueError: offsets of different numbers of requests, no heads
    """
    if len(qo_segment_offsets) != len(kv_segment_offsets):
        raise ValueError(f"fmha_varlen_plan: kv_segment_offsets has {len(kv_segment_offsets)} offsets, but qo_segment_offsets has "
                         f"{len(qo_segment_offsets)}")
    if num_qo_heads < 1:
        raise ValueError(f"fmha_varlen_plan: num_qo_heads is {num_qo_heads}, but must be at least 1")
    return []


@make_hashable_cache
def get_customize_batch_prefill_module(backend, uri, dtype_q, dtype_kv, dtype_o, idtype, head_dim_qk, head_dim_vo, additional_tensor_names,
                                       additional_tensor_dtypes, additional_scalar_names, additional_scalar_dtypes, variant_name, variant_decl,
                                       pos_encoding_mode=0, use_sliding_window=False, use_logits_soft_cap=False, use_fp16_qk_reduction=False,
                                       fp8_enabled=False, paged_kv_stride_mode="runtime", module_surface="full"):
    """The module of `flashinfer.jit.gen_customize_batch_prefill_module` with these arguments, built once."""
    from .jit import gen_customize_batch_prefill_module

    return gen_customize_batch_prefill_module(
        backend, uri, dtype_q, dtype_kv, dtype_o, idtype, head_dim_qk, head_dim_vo, list(additional_tensor_names), list(additional_tensor_dtypes),
        list(additional_scalar_names), list(additional_scalar_dtypes), variant_name, variant_decl, pos_encoding_mode=pos_encoding_mode,
        use_sliding_window=use_sliding_window, use_logits_soft_cap=use_logits_soft_cap, use_fp16_qk_reduction=use_fp16_qk_reduction,
        fp8_enabled=fp8_enabled, paged_kv_stride_mode=paged_kv_stride_mode, module_surface=module_surface).build_and_load()


@dataclasses.dataclass(frozen=True)
class MLAHeadDimensions:
    """Channels of a head of multi-head latent attention."""

    qk_nope_head_dim: int  # of queries and keys without position
    qk_rope_head_dim: int  # of queries and keys with position
    v_head_dim: int
    kv_lora_rank: int  # of the compressed keys and values that all heads share


@dataclasses.dataclass(frozen=True)
class MLALayerDimensions:
    """A layer of multi-head latent attention."""

    head_dimensions: MLAHeadDimensions
    num_heads: int


deepseek_mla_dimensions = MLAHeadDimensions(qk_nope_head_dim=128, qk_rope_head_dim=64, v_head_dim=128, kv_lora_rank=512)
smaller_mla_dimensions = MLAHeadDimensions(qk_nope_head_dim=64, qk_rope_head_dim=64, v_head_dim=128, kv_lora_rank=256)
supported_mla_layer_dimensions = [MLALayerDimensions(deepseek_mla_dimensions, 128), MLALayerDimensions(deepseek_mla_dimensions, 64),
                                  MLALayerDimensions(smaller_mla_dimensions, 32)]
