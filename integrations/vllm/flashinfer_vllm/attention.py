# SPDX-License-Identifier: Apache-2.0
"""vLLM's attention over its KV blocks on the paged wrappers.

vLLM's CPU block is [Hkv, block_size * 2, D]: the keys of its tokens, then their values. That is a paged cache in "HND" layout with
strides, so blocks are pages as they are. vLLM's own kernels pack keys for the processor inside a block; here they are plain rows.
One step has one set of index arrays; layers with the same window, cap and scale share a plan."""

from dataclasses import dataclass, field

import torch
from vllm.v1.attention.backend import AttentionType
from vllm.v1.attention.backends.cpu_attn import CPUAttentionBackend, CPUAttentionBackendImpl, CPUAttentionMetadataBuilder

import flashinfer

_ENCODERS = (AttentionType.ENCODER, AttentionType.ENCODER_ONLY)


class FlashInferAttentionBackend(CPUAttentionBackend):
    forward_includes_kv_cache_update = True
    supported_kv_cache_dtypes = ["auto"]

    @staticmethod
    def get_supported_kernel_block_sizes(kv_cache_spec=None):
        from vllm.v1.attention.backend import MultipleOf

        return [MultipleOf(1)]

    @classmethod
    def get_supported_head_sizes(cls):
        return []  # any

    @classmethod
    def supports_sink(cls):
        return True

    @staticmethod
    def get_impl_cls():
        return FlashInferAttentionImpl

    @staticmethod
    def get_builder_cls():
        return FlashInferAttentionMetadataBuilder


@dataclass
class FlashInferAttentionMetadata:
    """One step of one group of layers. Index arrays are i32 on the host."""

    num_actual_tokens: int
    query_start_loc: torch.Tensor  # [B + 1] first row of each request
    indptr: torch.Tensor  # [B + 1] into indices
    indices: torch.Tensor  # the blocks of each request, in order
    last_page_len: torch.Tensor  # [B]
    batch_indices: torch.Tensor  # [T] request and place in it of each new token
    positions: torch.Tensor
    causal: bool
    one_row: bool  # each request has one new token
    workspace: torch.Tensor
    plans: dict = field(default_factory=dict)


class FlashInferAttentionMetadataBuilder(CPUAttentionMetadataBuilder):
    def __init__(self, kv_cache_spec, layer_names, vllm_config, device):
        super().__init__(kv_cache_spec, layer_names, vllm_config, device)
        self.workspace = torch.empty(0, dtype=torch.uint8)  # the library allocates what it needs

    def build(self, common_prefix_len, common_attn_metadata, fast_build=False):
        m = common_attn_metadata
        if isinstance(m.causal, torch.Tensor):
            raise NotImplementedError("flashinfer-cpp's attention has one causal flag for a batch, but vLLM passes one for each request")
        starts = m.query_start_loc.to("cpu", torch.int32)
        blocks = (m.seq_lens.to(torch.int64) + self.block_size - 1) // self.block_size
        indptr = torch.zeros(len(blocks) + 1, dtype=torch.int32)
        torch.cumsum(blocks, 0, out=indptr[1:])
        table = m.block_table_tensor
        indices = table[torch.arange(table.shape[1]) < blocks[:, None]].to(torch.int32) if table.numel() else indptr[:0]
        batch_indices, positions = flashinfer.get_batch_indices_positions(starts, m.seq_lens.to(torch.int32), int(starts[-1]))
        return FlashInferAttentionMetadata(
            num_actual_tokens=m.num_actual_tokens, query_start_loc=starts, indptr=indptr, indices=indices,
            last_page_len=((m.seq_lens - 1) % self.block_size + 1).to(torch.int32), batch_indices=batch_indices, positions=positions,
            causal=bool(m.causal), one_row=m.max_query_len == 1, workspace=self.workspace)


class FlashInferAttentionImpl(CPUAttentionBackendImpl):
    def __init__(self, *args, **kwargs):
        super().__init__(*args, **kwargs)
        if self.alibi_slopes is not None:
            raise NotImplementedError("flashinfer-cpp's vLLM attention has no ALiBi slopes: start vLLM with FLASHINFER_VLLM=linear,norm,activation,rope,waiting")
        if self.is_fp8_kv_cache:
            raise NotImplementedError(f"flashinfer-cpp's vLLM attention has no KV cache of {self.kv_cache_dtype}: start vLLM with kv_cache_dtype=auto")
        if self.attn_type == AttentionType.ENCODER_DECODER:
            raise NotImplementedError("flashinfer-cpp's vLLM attention has no cross attention: start vLLM with FLASHINFER_VLLM=linear,norm,activation,rope,waiting")
        # vLLM counts the query's own token in the window
        window = self.sliding_window[0] if isinstance(self.sliding_window, tuple) else self.sliding_window
        self.options = {"window_left": window - 1 if window > 0 else -1, "logits_soft_cap": self.logits_soft_cap or None, "sm_scale": self.scale}

    def forward(self, layer, query, key, value, kv_cache, attn_metadata, output, output_scale=None, output_block_scale=None):
        """query [T, H, D], key and value [T, Hkv, D], kv_cache [blocks, Hkv, block_size, 2 D]; writes and returns `output` [T, H, D]."""
        if output_scale is not None or output_block_scale is not None:
            raise NotImplementedError("flashinfer-cpp's vLLM attention has no quantised output")
        if attn_metadata is None:  # a run that sizes memory
            return output
        n = attn_metadata.num_actual_tokens
        q, out = query[:n], output[:n].view(n, self.num_heads, self.head_size)
        if self.attn_type in _ENCODERS:
            self._run(attn_metadata, self._ragged_plan, q, (key[:n], value[:n]), out)
        else:
            cache = _halves(kv_cache)
            if self.kv_sharing_target_layer_name is None and n:
                m = attn_metadata
                flashinfer.append_paged_kv_cache(key[:n], value[:n], m.batch_indices, m.positions, cache, m.indices, m.indptr, m.last_page_len, "HND")
            self._run(attn_metadata, self._paged_plan, q, (cache,), out)
        return output

    def _run(self, m, make, q, kv, out):
        key = (make.__name__, q.shape, *self.options.values())
        wrapper = m.plans.get(key)
        if wrapper is None:
            wrapper = m.plans[key] = make(m, q, kv)
        if self.sinks is None:
            wrapper.run(q, *kv, out=out)
        else:  # one more key with a logit and no value; the LSE is in base 2
            plain, lse = wrapper.run(q, *kv, return_lse=True)
            out.copy_(plain * torch.sigmoid(lse * 0.6931471805599453 - self.sinks.float()).unsqueeze(-1))

    def _paged_plan(self, m, q, kv):
        keys = kv[0][0]
        heads = (self.num_heads, self.num_kv_heads, self.head_size, keys.shape[2])
        types = {"q_data_type": q.dtype, "kv_data_type": keys.dtype, **self.options}
        if m.one_row and m.causal:
            w = flashinfer.BatchDecodeWithPagedKVCacheWrapper(m.workspace, "HND")
            w.plan(m.indptr, m.indices, m.last_page_len, *heads, **types)
        else:
            w = flashinfer.BatchPrefillWithPagedKVCacheWrapper(m.workspace, "HND")
            w.plan(m.query_start_loc, m.indptr, m.indices, m.last_page_len, *heads, causal=m.causal, **types)
        return w

    def _ragged_plan(self, m, q, kv):
        w = flashinfer.BatchPrefillWithRaggedKVCacheWrapper(m.workspace, "NHD")
        w.plan(m.query_start_loc, m.query_start_loc, self.num_heads, self.num_kv_heads, self.head_size, causal=False, q_data_type=q.dtype,
               kv_data_type=kv[0].dtype, **self.options)
        return w


def _halves(kv_cache):
    """Keys and values [blocks, Hkv, block_size, D], views of vLLM's blocks."""
    blocks, heads, size, _ = kv_cache.shape
    return kv_cache.view(blocks, heads, 2 * size, -1).chunk(2, dim=2)
