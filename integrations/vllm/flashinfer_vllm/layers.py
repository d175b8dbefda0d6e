# SPDX-License-Identifier: Apache-2.0
"""vLLM's norms, gated activations and RoPE on the library's ops, by CustomOp.register_oot."""

from vllm.model_executor.custom_op import CustomOp, op_registry_oot
from vllm.model_executor.layers.activation import GeluAndMul, SiluAndMul
from vllm.model_executor.layers.layernorm import GemmaRMSNorm, RMSNorm
from vllm.model_executor.layers.rotary_embedding.base import RotaryEmbedding

import flashinfer


def _rows(x):
    return x.reshape(-1, x.shape[-1])


class FlashInferRMSNorm(RMSNorm):
    def forward_cpu(self, x, residual=None):
        if not self.has_weight or self.variance_size_override is not None or x.numel() == 0 or x.dtype != self.weight.dtype:
            return self.forward_native(x, residual)
        if residual is None:
            return flashinfer.rmsnorm(_rows(x), self.weight.data, self.variance_epsilon).view(x.shape)
        flashinfer.fused_add_rmsnorm(_rows(x), _rows(residual), self.weight.data, self.variance_epsilon)
        return x, residual


class FlashInferGemmaRMSNorm(GemmaRMSNorm):
    def forward_cpu(self, x, residual=None):
        if x.numel() == 0 or x.dtype != self.weight.dtype:
            return self.forward_native(x, residual)
        if residual is None:
            return flashinfer.gemma_rmsnorm(_rows(x), self.weight.data, self.variance_epsilon).view(x.shape)
        flashinfer.gemma_fused_add_rmsnorm(_rows(x), _rows(residual), self.weight.data, self.variance_epsilon)
        return x, residual


class FlashInferSiluAndMul(SiluAndMul):
    def forward_cpu(self, x):
        return flashinfer.silu_and_mul(x)


class FlashInferGeluAndMul(GeluAndMul):
    def forward_cpu(self, x):
        return flashinfer.gelu_tanh_and_mul(x) if self.approximate == "tanh" else flashinfer.gelu_and_mul(x)


class FlashInferRotaryEmbedding(RotaryEmbedding):
    def forward_cpu(self, positions, query, key=None):
        if key is None or positions.ndim != 1:
            return super().forward_cpu(positions, query, key)
        if getattr(self, "_f32_cache", None) is None or self._f32_cache.shape != self.cos_sin_cache.shape:
            self._f32_cache = self.cos_sin_cache.float()  # the op's table is f32
        n = positions.shape[0]
        q, k = query.reshape(n, -1), key.reshape(n, -1)  # a copy where MLA passes a part of each head
        flashinfer.apply_rope_with_cos_sin_cache_inplace(positions, q, k, self.head_size, self._f32_cache, self.is_neox_style)
        return q.view(query.shape), k.view(key.shape)


_LAYERS = {
    "norm": {"RMSNorm": FlashInferRMSNorm, "GemmaRMSNorm": FlashInferGemmaRMSNorm},
    "activation": {"SiluAndMul": FlashInferSiluAndMul, "GeluAndMul": FlashInferGeluAndMul},
    "rope": {"RotaryEmbedding": FlashInferRotaryEmbedding},
}


def register(parts):
    """Makes vLLM build the layers of `parts` from the classes above. May be called again."""
    for part in parts:
        for name, layer in _LAYERS[part].items():
            if name not in op_registry_oot:
                CustomOp.register_oot(layer, name=name)
