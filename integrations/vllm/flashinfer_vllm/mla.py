# SPDX-License-Identifier: Apache-2.0
"""vLLM's multi-head latent attention (DeepSeek V2 and V3, Kimi) over its cache of latents.

vLLM's block is [block_size, kv_lora_rank + rope]: a page of BatchMLAPagedAttentionWrapper as it is, which runs decode with absorbed weights.
Prompts are attended with expanded heads by the ragged wrapper: 3.4 times fewer operations for each key than in the latent space, for
one product with kv_b_proj. A prompt that comes in parts has its earlier latents gathered and expanded again."""

from dataclasses import dataclass, field

import torch
from vllm.model_executor.layers.attention.mla_attention import MLACommonBackend, MLACommonMetadataBuilder
from vllm.v1.attention.backend import MultipleOf
from vllm.v1.attention.backends.mla.cpu_mla import CPUMLAImpl

import flashinfer

_EXPANDED_KEYS = 65536  # of one product with kv_b_proj and one call of attention, unless one request has more


class FlashInferMLABackend(MLACommonBackend):
    supported_dtypes = [torch.float16, torch.bfloat16, torch.float32]
    supported_kv_cache_dtypes = ["auto"]

    @staticmethod
    def get_name():
        return "CPU_MLA"

    @staticmethod
    def get_supported_kernel_block_sizes(kv_cache_spec=None):
        return [MultipleOf(1)]

    @classmethod
    def supports_block_size(cls, block_size):
        return True

    @staticmethod
    def get_impl_cls():
        return FlashInferMLAImpl

    @staticmethod
    def get_builder_cls():
        return FlashInferMLAMetadataBuilder


@dataclass
class _Prompts:
    """Some of a step's requests with several new tokens. Index arrays are i32 on the host."""

    tokens: slice  # of the step's prompt tokens
    qo_indptr: torch.Tensor  # [n + 1]
    kv_indptr: torch.Tensor  # [n + 1]
    slots: torch.Tensor | None  # [keys] rows of the cache; None where the new tokens are all keys


@dataclass
class _Step:
    """One step of one group of layers, which share its plans."""

    prompts: list
    workspace: torch.Tensor
    plans: dict = field(default_factory=dict)

    def plan(self, key, make):
        if key not in self.plans:
            self.plans[key] = make()
        return self.plans[key]


def _groups(lengths):
    """(first, end) of consecutive requests with at most _EXPANDED_KEYS keys together."""
    first, keys = 0, 0
    for i, n in enumerate(lengths):
        if i > first and keys + n > _EXPANDED_KEYS:
            yield first, i
            first, keys = i, 0
        keys += n
    if lengths:
        yield first, len(lengths)


def _starts(lengths):
    indptr = torch.zeros(len(lengths) + 1, dtype=torch.int32)
    torch.cumsum(torch.as_tensor(lengths), 0, out=indptr[1:])
    return indptr


def make_prompts(query_start_loc, seq_lens, block_table, block_size):
    """_Prompts of requests whose rows of queries begin at query_start_loc [B + 1], with seq_lens [B] keys in blocks block_table [B, n]."""
    starts, keys = query_start_loc.tolist(), seq_lens.tolist()
    result = []
    for first, end in _groups(keys):
        rows = [starts[i + 1] - starts[i] for i in range(first, end)]
        slots = None
        if rows != keys[first:end]:
            places = [torch.arange(n) for n in keys[first:end]]
            slots = torch.cat([block_table[first + i, p // block_size].long() * block_size + p % block_size for i, p in enumerate(places)])
        result.append(_Prompts(slice(starts[first], starts[end]), _starts(rows), _starts(keys[first:end]), slots))
    return result


class FlashInferMLAMetadataBuilder(MLACommonMetadataBuilder):
    def __init__(self, kv_cache_spec, layer_names, vllm_config, device, **more):
        super().__init__(kv_cache_spec, layer_names, vllm_config, device, **more)
        self.workspace = torch.empty(0, dtype=torch.uint8)  # the library allocates what it needs

    def build(self, common_prefix_len, common_attn_metadata, fast_build=False):
        m = super().build(common_prefix_len, common_attn_metadata, fast_build)
        prompts = []
        if m.prefill is not None:
            lengths = common_attn_metadata.seq_lens[m.num_decodes : m.num_decodes + m.num_prefills]
            prompts = make_prompts(m.prefill.query_start_loc, lengths, m.prefill.block_table, self.kv_cache_spec.block_size)
        m.flashinfer = _Step(prompts, self.workspace)
        return m


class FlashInferMLAImpl(CPUMLAImpl):
    def __init__(self, num_heads, head_size, scale, num_kv_heads, alibi_slopes, sliding_window, kv_cache_dtype, *more, **mla):
        super().__init__(num_heads, head_size, scale, num_kv_heads, alibi_slopes, sliding_window, kv_cache_dtype, *more, **mla)
        if kv_cache_dtype != "auto":
            raise NotImplementedError(f"flashinfer-cpp's vLLM attention has no latent cache of {kv_cache_dtype}: start vLLM with kv_cache_dtype=auto")
        self.pool = None  # pages of the cache, in order

    def do_kv_cache_update(self, kv_c_normed, k_pe, kv_cache, slot_mapping, kv_cache_dtype, k_scale):
        """kv_c_normed [T, rank], k_pe [T, 1, rope], kv_cache [blocks, block_size, rank + rope]; a slot below 0 is padding."""
        if kv_cache.numel() == 0 or slot_mapping.numel() == 0:
            return
        n, (blocks, size, _) = slot_mapping.numel(), kv_cache.shape
        if self.pool is None or len(self.pool[0]) != blocks:  # a slot is a place in one request that has all blocks
            self.pool = (torch.arange(blocks, dtype=torch.int32), torch.tensor([0, blocks], dtype=torch.int32), torch.tensor([size], dtype=torch.int32))
        slots = slot_mapping.flatten().to(torch.int32)
        ckv, kpe = kv_cache.split([self.kv_lora_rank, self.qk_rope_head_dim], dim=-1)
        flashinfer.append_paged_mla_kv_cache(kv_c_normed[:n], k_pe.reshape(-1, self.qk_rope_head_dim)[:n], slots.clamp(max=0), slots.clamp(min=0), ckv, kpe,
                                             *self.pool)

    def forward_mqa(self, q, kv_c_and_k_pe_cache, attn_metadata, layer):
        """q: ([B, H, rank], [B, H, rope]) or both in one; returns [B, H, rank]."""
        sizes = [self.kv_lora_rank, self.qk_rope_head_dim]
        nope, rope = q if isinstance(q, tuple) else q.split(sizes, dim=-1)
        ckv, kpe = kv_c_and_k_pe_cache.split(sizes, dim=-1)
        d = attn_metadata.decode
        wrapper = attn_metadata.flashinfer.plan(("decode", nope.shape, self.scale), lambda: self._decode_plan(attn_metadata.flashinfer, d, nope, ckv))
        return wrapper.run(nope, rope, ckv, kpe), None

    def _decode_plan(self, step, decode, nope, ckv):
        wrapper = flashinfer.mla.BatchMLAPagedAttentionWrapper(step.workspace)
        wrapper.plan(num_heads=self.num_heads, head_dim_ckv=self.kv_lora_rank, head_dim_kpe=self.qk_rope_head_dim, page_size=ckv.shape[1], causal=True,
                     sm_scale=self.scale, q_data_type=nope.dtype, kv_data_type=ckv.dtype,
                     metadata=flashinfer.mla.MLAPlanMetadata.dense(torch.arange(nope.shape[0] + 1, dtype=torch.int32), decode.block_table, decode.seq_lens))
        return wrapper

    def forward_mha(self, q, kv_c_normed, k_pe, kv_c_and_k_pe_cache, attn_metadata, k_scale, output, output_scale=None):
        """q [T, H, nope + rope], kv_c_normed [T, rank], k_pe [T, 1, rope] of the prompts' new tokens; writes output [T, H * v]."""
        if output_scale is not None:
            raise NotImplementedError("flashinfer-cpp's vLLM attention has no quantised output")
        out, step = output.view(-1, self.num_heads, self.v_head_dim), attn_metadata.flashinfer
        for i, p in enumerate(step.prompts):
            latent, rope = kv_c_normed[p.tokens], k_pe[p.tokens]
            if p.slots is not None:
                rows = kv_c_and_k_pe_cache.view(-1, self.head_size).index_select(0, p.slots)
                latent, rope = rows[:, : self.kv_lora_rank].contiguous(), rows[:, None, self.kv_lora_rank :]
            expanded = self.kv_b_proj(latent)[0].view(-1, self.num_heads, self.qk_nope_head_dim + self.v_head_dim)
            nope, value = expanded.split([self.qk_nope_head_dim, self.v_head_dim], dim=-1)
            key = nope.new_empty((*nope.shape[:2], self.qk_head_dim))
            flashinfer.concat_ops.concat_mla_k(key, nope, rope)
            wrapper = step.plan((i, q.dtype, self.scale), lambda p=p: self._prompt_plan(step, p, q.dtype))
            wrapper.run(q[p.tokens], key, value, out=out[p.tokens])

    def _prompt_plan(self, step, p, dtype):
        wrapper = flashinfer.BatchPrefillWithRaggedKVCacheWrapper(step.workspace, "NHD")
        wrapper.plan(p.qo_indptr, p.kv_indptr, self.num_heads, self.num_heads, self.qk_head_dim, head_dim_vo=self.v_head_dim, causal=True, sm_scale=self.scale,
                     q_data_type=dtype, kv_data_type=dtype)
        return wrapper
