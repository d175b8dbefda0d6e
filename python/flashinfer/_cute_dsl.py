# SPDX-License-Identifier: Apache-2.0
"""Functions and wrappers that FlashInfer has for kernels in CuTe DSL, of this library's ops. `enable_pdl` and workspaces are of GPU kernels;
nothing here."""
from ._four_over_six import _UNSET


def _shifted(weight, bias):
    """The weight that a norm multiplies by."""
    return weight if bias == 0 else weight.float() + bias


def rmsnorm_cute(input, weight, out, eps=1e-6, weight_bias=0.0, enable_pdl=False):
    """out = `rmsnorm` of input with weight + weight_bias. Any leading dimensions."""
    from . import rmsnorm

    rmsnorm(input, _shifted(weight, weight_bias), eps, out=out)


def qk_rmsnorm_cute(input, weight, output, eps=1e-6, weight_bias=0.0, enable_pdl=False):
    """`rmsnorm_cute` of [batch, heads, dim]."""
    rmsnorm_cute(input, weight, output, eps, weight_bias)


def rmsnorm_quant_cute(out, input, weight, scale, eps=1e-6, weight_bias=0.0, enable_pdl=False):
    """out = `rmsnorm_quant` of input with weight + weight_bias."""
    from . import rmsnorm_quant

    rmsnorm_quant(out, input, _shifted(weight, weight_bias), scale, eps)


def fused_add_rmsnorm_cute(input, residual, weight, eps=1e-6, weight_bias=0.0, enable_pdl=False):
    """residual += input; input = `rmsnorm` of residual with weight + weight_bias."""
    from . import fused_add_rmsnorm

    fused_add_rmsnorm(input, residual, _shifted(weight, weight_bias), eps)


def fused_add_rmsnorm_quant_cute(out, input, residual, weight, scale, eps=1e-6, weight_bias=0.0, enable_pdl=False):
    """residual += input; out = `rmsnorm_quant` of residual with weight + weight_bias."""
    from . import fused_add_rmsnorm_quant

    fused_add_rmsnorm_quant(out, input, residual, _shifted(weight, weight_bias), scale, eps)


def layernorm_cute(out, input, gamma, beta, eps=1e-6, enable_pdl=False):
    """out = `layernorm` of input."""
    from . import layernorm

    out.copy_(layernorm(input, gamma, beta, eps))


def _no_variant(who, variant):
    if variant is not None:
        raise NotImplementedError(f"{who}: variant is not available: jit_args of flashinfer.prefill's wrappers take one of your own")


def _global_scale(value, like):
    import torch

    return value.reshape(1).float() if torch.is_tensor(value) else torch.full((1,), float(value), device=like.device)


def nvfp4_quantize_cute_dsl(input, global_scale, sf_layout=0, enable_pdl=None, nvfp4_4over6=_UNSET, out=None):
    """`nvfp4_quantize` with SfLayout(sf_layout); `out` is a pair of tensors for both results."""
    from . import SfLayout, nvfp4_quantize

    made = nvfp4_quantize(input, _global_scale(global_scale, input), sfLayout=SfLayout(sf_layout), nvfp4_4over6=nvfp4_4over6)
    if out is None:
        return made
    for name, given, value in zip(("fp4_out", "sf_out"), out, made):
        if given.numel() != value.numel() or given.dtype != value.dtype:
            raise ValueError(f"nvfp4_quantize_cute_dsl: {name} is {given.dtype} of shape {tuple(given.shape)}, but must be {value.dtype} {list(value.shape)}")
        given.view(value.shape).copy_(value)
    return out


def nvfp4_quantize_per_token_cute_dsl(input, global_scale_inv, sf_layout=0, enable_pdl=None, out_scale=None, nvfp4_4over6=_UNSET):
    """`nvfp4_quantize` with per_token_activation: (codes, block scales, scales of the rows)."""
    from . import SfLayout, nvfp4_quantize

    return nvfp4_quantize(input, _global_scale(global_scale_inv, input), sfLayout=SfLayout(sf_layout), per_token_activation=True, out_scale=out_scale,
                          nvfp4_4over6=nvfp4_4over6)


def mxfp4_quantize_cute_dsl(input, sf_layout=0, enable_pdl=None):
    """`mxfp4_quantize` with SfLayout(sf_layout)."""
    from . import SfLayout, mxfp4_quantize

    return mxfp4_quantize(input, sfLayout=SfLayout(sf_layout))


def mxfp8_quantize_cute_dsl(input, is_sf_swizzled_layout=True, alignment=32, enable_pdl=None, is_sf_8x4_layout=False):
    """`mxfp8_quantize`; is_sf_8x4_layout: swizzled scale factors in tiles of 8x4."""
    from . import SfLayout, mxfp8_quantize

    layout = SfLayout.layout_8x4 if is_sf_swizzled_layout and is_sf_8x4_layout else None
    return mxfp8_quantize(input, is_sf_swizzled_layout, alignment, sf_swizzle_layout=layout)


class BatchMLADecodeCuteDSLWrapper:
    """`trtllm_batch_decode_with_kv_cache_mla` with a plan."""

    def __init__(self, workspace_buffer):
        self._workspace, self._plan = workspace_buffer, None

    def plan(self, kv_lora_rank=512, qk_rope_head_dim=64, num_heads=128, page_size=1, q_dtype=None, out_dtype=None, is_var_seq=True, enable_pdl=None,
             variant=None):
        """Keeps the extents, to which `run` compares its tensors. q_dtype: torch.bfloat16 when absent; out_dtype: that of q.

        Raises:
            NotImplementedError: variant, another out_dtype
        """
        import torch

        _no_variant("BatchMLADecodeCuteDSLWrapper.plan", variant)
        q_dtype = torch.bfloat16 if q_dtype is None else q_dtype
        if out_dtype not in (None, q_dtype):
            raise NotImplementedError(f"BatchMLADecodeCuteDSLWrapper.plan: out_dtype is {out_dtype}, but only that of q, {q_dtype}, is available")
        self._plan = kv_lora_rank, qk_rope_head_dim, num_heads, page_size, q_dtype

    def run(self, q, kv_cache, block_tables, seq_lens, max_seq_len, softmax_scale, output_scale=1.0, out=None):
        """[batch, queries, heads, kv_lora_rank] of q [batch, queries, heads, kv_lora_rank + qk_rope_head_dim], a cache of pages [pages, page_size, ...] or
        [pages, 1, page_size, ...], block_tables [batch, pages of a request] and seq_lens [batch].

        Raises:
            RuntimeError: no plan
            ValueError: tensors that are not the plan's
        """
        from .mla import trtllm_batch_decode_with_kv_cache_mla

        who = "BatchMLADecodeCuteDSLWrapper.run"
        if self._plan is None:
            raise RuntimeError(f"{who}: call plan() before")
        rank, rope, heads, page_size, dtype = self._plan
        for name, got, want in (("q.dtype", q.dtype, dtype), ("q's heads", q.shape[-2], heads), ("q's width", q.shape[-1], rank + rope),
                                ("kv_cache's page size", kv_cache.shape[-2], page_size)):
            if got != want:
                raise ValueError(f"{who}: {name} is {got}, but the plan has {want}")
        return trtllm_batch_decode_with_kv_cache_mla(q, kv_cache, self._workspace, rank, rank, rope, block_tables, seq_lens, max_seq_len, out=out,
                                                     bmm1_scale=softmax_scale, bmm2_scale=output_scale)


class BatchPrefillCuteDSLWrapper:
    """The batch prefill wrappers of `flashinfer.prefill`, ragged or, with page_size, paged."""

    def __init__(self, float_workspace_buffer, use_cuda_graph=False):
        if use_cuda_graph:
            raise NotImplementedError("BatchPrefillCuteDSLWrapper.__init__: use_cuda_graph is not available; flashinfer.prefill's wrappers have it")
        self._workspace, self._wrapper, self._paged = float_workspace_buffer, None, False

    def plan(self, qo_indptr, kv_indptr=None, num_qo_heads=None, num_kv_heads=None, head_dim_qk=None, head_dim_vo=None, causal=True, sm_scale=None,
             q_data_type=None, kv_data_type=None, window_left=-1, variant=None, window_right=-1, page_size=None, paged_kv_indptr=None, paged_kv_indices=None,
             paged_kv_last_page_len=None, kv_layout="NHD"):
        """Plans for rows of K and V (kv_indptr) or for pages (page_size and the three arrays). Dtypes: torch.float16 when absent.

        Raises:
            ValueError: kv_indptr beside page_size, or neither
            NotImplementedError: variant, window_right
        """
        import torch

        from . import prefill

        who = "BatchPrefillCuteDSLWrapper.plan"
        _no_variant(who, variant)
        if window_right not in (-1, None):
            raise NotImplementedError(f"{who}: window_right is {window_right}, but only -1 (none) is available; custom_mask of flashinfer.prefill's wrappers "
                                      "hides any keys")
        if (kv_indptr is None) == (page_size is None):
            raise ValueError(f"{who}: one of kv_indptr (rows) and page_size (pages) must be given")
        common = dict(causal=causal, sm_scale=sm_scale, window_left=window_left, q_data_type=torch.float16 if q_data_type is None else q_data_type,
                      kv_data_type=torch.float16 if kv_data_type is None else kv_data_type)
        paged = page_size is not None
        if paged:
            wrapper = prefill.BatchPrefillWithPagedKVCacheWrapper(self._workspace, kv_layout)
            wrapper.plan(qo_indptr, paged_kv_indptr, paged_kv_indices, paged_kv_last_page_len, num_qo_heads, num_kv_heads, head_dim_qk, page_size,
                         head_dim_vo=head_dim_vo, **common)
        else:
            wrapper = prefill.BatchPrefillWithRaggedKVCacheWrapper(self._workspace, "NHD")
            wrapper.plan(qo_indptr, kv_indptr, num_qo_heads, num_kv_heads, head_dim_qk, head_dim_vo, **common)
        self._wrapper, self._paged = wrapper, paged

    def _planned(self, who, paged):
        if self._wrapper is None or self._paged != paged:
            raise RuntimeError(f"BatchPrefillCuteDSLWrapper.{who}: call plan() {'with' if paged else 'without'} page_size before")
        return self._wrapper

    def run(self, q, k, v, out=None, return_lse=False, lse=None):
        """`BatchPrefillWithRaggedKVCacheWrapper.run`. RuntimeError: the plan is not one of rows."""
        return self._planned("run", False).run(q, k, v, out=out, return_lse=return_lse, lse=lse)

    def run_paged(self, q, paged_kv_cache, out=None, return_lse=False, lse=None):
        """`BatchPrefillWithPagedKVCacheWrapper.run`. RuntimeError: the plan is not one of pages."""
        return self._planned("run_paged", True).run(q, paged_kv_cache, out=out, return_lse=return_lse, lse=lse)
