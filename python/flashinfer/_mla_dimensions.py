# SPDX-License-Identifier: Apache-2.0
"""The extents of multi-head latent attention in models, as values."""
import dataclasses


@dataclasses.dataclass(frozen=True)
class MLAHeadDimensions:
    """Of one head: what keys have from the compressed cache and with RoPE, values, and the rank of the cache."""
    qk_nope_head_dim: int
    qk_rope_head_dim: int
    v_head_dim: int
    kv_lora_rank: int


@dataclasses.dataclass(frozen=True)
class MLALayerDimensions:
    """Of a layer: its heads' and their number."""
    head_dimensions: MLAHeadDimensions
    num_heads: int


deepseek_mla_dimensions = MLAHeadDimensions(qk_nope_head_dim=128, qk_rope_head_dim=64, v_head_dim=128, kv_lora_rank=512)
smaller_mla_dimensions = MLAHeadDimensions(qk_nope_head_dim=64, qk_rope_head_dim=64, v_head_dim=128, kv_lora_rank=256)
supported_mla_layer_dimensions = [MLALayerDimensions(deepseek_mla_dimensions, 128), MLALayerDimensions(deepseek_mla_dimensions, 64),
                                  MLALayerDimensions(smaller_mla_dimensions, 32)]
