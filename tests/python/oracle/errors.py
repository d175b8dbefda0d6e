# SPDX-License-Identifier: Apache-2.0
"""Prints, as JSON, the error of every wrong call below under the package that is importable. FlashInfer's own runs without a GPU: its
kernels are replaced by objects that do nothing, so what is left are the checks before them."""
import inspect
import json
import sys
import warnings

import torch

warnings.simplefilter("ignore")
THEIRS = sys.argv[1] == "theirs"


class Nothing:
    def __getattr__(self, name):
        return lambda *args, **kwargs: None


if THEIRS:
    empty = torch.empty
    torch.empty = lambda *args, pin_memory=False, **kwargs: empty(*args, **kwargs)
import flashinfer  # noqa: E402

if THEIRS:
    changed = {"get_compute_capability": (10, 0), "determine_attention_backend": "fa2", "device_support_pdl": False}
    for module in [m for n, m in sys.modules.items() if n.startswith("flashinfer") and m is not None]:
        for name in list(vars(module)):
            if name.startswith("get_") and name.endswith("_module"):
                setattr(module, name, lambda *args, **kwargs: Nothing())
            elif name in changed:
                setattr(module, name, lambda *args, value=changed[name], **kwargs: value)


def F(*shape, d=torch.bfloat16):
    return (torch.rand(*shape) + 0.1).to(d)


def I(*values):  # noqa: E743
    return torch.tensor(values, dtype=torch.int32)


def u8(*shape):
    return torch.zeros(*shape, dtype=torch.uint8)


def e4(*shape):
    return torch.zeros(*shape).to(torch.float8_e4m3fn)


def P(*shape):
    return torch.rand(*shape).softmax(-1)


f32, ones = torch.float32, torch.ones
# Calls without a mistake.
RIGHT = {
    "rmsnorm": dict(input=F(4, 64), weight=F(64)),
    "fused_add_rmsnorm": dict(input=F(4, 64), residual=F(4, 64), weight=F(64)),
    "gemma_rmsnorm": dict(input=F(4, 64), weight=F(64)),
    "gemma_fused_add_rmsnorm": dict(input=F(4, 64), residual=F(4, 64), weight=F(64)),
    "layernorm": dict(input=F(4, 64), gemma=F(64, d=f32), beta=F(64, d=f32)),
    "rmsnorm_quant": dict(out=e4(4, 64), input=F(4, 64), weight=F(64), scale=ones(1)),
    "fused_add_rmsnorm_quant": dict(out=e4(4, 64), input=F(4, 64), residual=F(4, 64), weight=F(64), scale=ones(1)),
    "silu_and_mul": dict(input=F(4, 64)),
    "gelu_and_mul": dict(input=F(4, 64)),
    "gelu_tanh_and_mul": dict(input=F(4, 64)),
    "apply_rope": dict(q=F(4, 2, 64), k=F(4, 2, 64), indptr=I(0, 4), offsets=I(0)),
    "apply_rope_pos_ids": dict(q=F(4, 2, 64), k=F(4, 2, 64), pos_ids=I(0, 1, 2, 3)),
    "apply_rope_with_cos_sin_cache": dict(positions=I(0, 1, 2, 3), query=F(4, 128), key=F(4, 128), head_size=64, cos_sin_cache=ones(8, 64)),
    "rope_quantize_fp8": dict(q_rope=F(4, 2, 64), k_rope=F(4, 2, 64), q_nope=F(4, 2, 64), k_nope=F(4, 2, 64), cos_sin_cache=ones(8, 64), pos_ids=I(0,
        1, 2, 3), is_neox=False),
    "append_paged_kv_cache": dict(append_key=F(2, 2, 64), append_value=F(2, 2, 64), batch_indices=I(0, 1), positions=I(0, 1), paged_kv_cache=F(5, 2,
        4, 2, 64), kv_indices=I(0, 1, 2, 3, 4), kv_indptr=I(0, 2, 5), kv_last_page_len=I(1, 2)),
    "append_paged_mla_kv_cache": dict(append_ckv=F(2, 512), append_kpe=F(2, 64), batch_indices=I(0, 1), positions=I(0, 1), ckv_cache=F(5, 4, 512),
        kpe_cache=F(5, 4, 64), kv_indices=I(0, 1, 2, 3, 4), kv_indptr=I(0, 2, 5), kv_last_page_len=I(1, 2)),
    "get_seq_lens": dict(kv_indptr=I(0, 2, 5), kv_last_page_len=I(1, 2), page_size=4),
    "nvfp4_quantize_append_paged_kv_cache": dict(append_key=F(2, 2, 64), append_value=F(2, 2, 64), batch_indices=I(0, 1), positions=I(0, 1),
        paged_kv_cache=(u8(5, 4, 2, 32), u8(5, 4, 2, 32)), kv_cache_sf=(e4(5, 4, 2, 4), e4(5, 4, 2, 4)), kv_indices=I(0, 1, 2, 3, 4), kv_indptr=I(0,
        2, 5), kv_last_page_len=I(1, 2), k_scale=1.0, v_scale=1.0),
    "nvfp4_quantize_append_paged_kv_cache_with_slot_mapping": dict(append_key=F(2, 2, 64), append_value=F(2, 2, 64), slot_mapping=I(0, 1),
        paged_kv_cache=(u8(5, 4, 2, 32), u8(5, 4, 2, 32)), kv_cache_sf=(e4(5, 4, 2, 4), e4(5, 4, 2, 4)), k_scale=1.0, v_scale=1.0),
    "sampling_from_probs": dict(probs=P(4, 100)),
    "sampling_from_logits": dict(logits=P(4, 100)),
    "top_p_sampling_from_probs": dict(probs=P(4, 100), top_p=0.5),
    "top_k_sampling_from_probs": dict(probs=P(4, 100), top_k=5),
    "min_p_sampling_from_probs": dict(probs=P(4, 100), min_p=0.1),
    "top_k_top_p_sampling_from_probs": dict(probs=P(4, 100), top_k=5, top_p=0.5),
    "top_p_renorm_probs": dict(probs=P(4, 100), top_p=0.5),
    "top_k_renorm_probs": dict(probs=P(4, 100), top_k=5),
    "top_k_mask_logits": dict(logits=P(4, 100), top_k=5),
    "merge_state": dict(v_a=F(4, 2, 64), s_a=ones(4, 2), v_b=F(4, 2, 64), s_b=ones(4, 2)),
    "merge_state_in_place": dict(v=F(4, 2, 64), s=ones(4, 2), v_other=F(4, 2, 64), s_other=ones(4, 2)),
    "merge_states": dict(v=F(4, 3, 2, 64), s=ones(4, 3, 2)),
    "single_decode_with_kv_cache": dict(q=F(8, 64), k=F(10, 2, 64), v=F(10, 2, 64)),
    "single_prefill_with_kv_cache": dict(q=F(4, 8, 64), k=F(10, 2, 64), v=F(10, 2, 64)),
    "packbits": dict(x=torch.ones(20, dtype=torch.bool)),
    "segment_packbits": dict(x=torch.ones(20, dtype=torch.bool), indptr=I(0, 5, 20)),
    "nvfp4_kv_quantize": dict(input=F(128, 64), global_scale=ones(1)),
    "nvfp4_kv_dequantize": dict(fp4_data=u8(128, 32), block_scales=u8(128, 4), global_scale=ones(1)),
    "mm_fp4": dict(a=u8(128, 32), b=u8(64, 32).T, a_descale=e4(128, 4), b_descale=e4(128, 4).T, alpha=ones(1), out_dtype=torch.bfloat16),
    "mm_bf16": dict(a=F(16, 64), b=F(128, 64).T),
    "bmm_bf16": dict(A=F(2, 16, 64), B=F(2, 128, 64).transpose(1, 2)),
    "bmm_fp8": dict(A=e4(2, 16, 64), B=e4(2, 128, 64).transpose(1, 2), A_scale=ones(1), B_scale=ones(1), dtype=torch.bfloat16),
    "mm_mxfp8": dict(a=e4(128, 128), b=e4(128, 128).T, a_descale=u8(128*4), b_descale=u8(128*4)),
    "gemm_fp8_nt_groupwise": dict(a=e4(128, 256), b=e4(128, 256), a_scale=ones(2, 128), b_scale=ones(2, 1), scale_major_mode="MN"),
    "group_gemm_fp8_nt_groupwise": dict(a=e4(128, 256), b=e4(2, 128, 256), a_scale=ones(2, 128), b_scale=ones(2, 2, 1), m_indptr=I(0, 64, 128)),
    "fused_topk_deepseek": dict(scores=ones(4, 256), bias=ones(256), n_group=8, topk_group=4, topk=8, routed_scaling_factor=1.0, topk_values=ones(4,
        8), topk_indices=torch.zeros(4, 8, dtype=torch.int32)),
    "block_scale_interleave": dict(unswizzled_sf=u8(128, 4)),
    "shuffle_matrix_a": dict(input_tensor=u8(128, 64), epilogue_tile_m=64),
}
OTHERS = {"backend": "bogus", "kv_layout": "bogus", "pos_encoding_mode": "bogus", "bitorder": "bogus", "filter_apply_order": "bogus",
          "indices": torch.zeros(2, 2, dtype=torch.int32), "out_dtype": torch.int32, "quantize_dtype": torch.int8}


def mistakes(right, parameters):
    """(argument, what is wrong, value)"""
    for name, v in right.items():
        if isinstance(v, torch.Tensor):
            yield name, "rank + 1", v.unsqueeze(0)
            if v.dim() > 1:
                yield name, "rank - 1", v[0]
                yield name, "one row less", v[:-1]
            yield name, "one column less", v[..., :-1]
            for wrong in (torch.float64, torch.int64, torch.int8):
                yield name, str(wrong), v.float().to(wrong)
            yield name, "None", None
        elif isinstance(v, tuple):
            yield name, "None", None
            yield name, "one", v[0]
        elif isinstance(v, (int, float)) and not isinstance(v, bool):
            for wrong in (0, -1, float("nan"), None):
                yield name, repr(wrong), wrong
        elif isinstance(v, torch.dtype):
            yield name, "int32", torch.int32
    for name, v in OTHERS.items():
        if name in parameters and name not in right:
            yield name, "other", v


def outcome(function, arguments):
    try:
        function(**{k: v.clone() if isinstance(v, torch.Tensor) and v.is_contiguous() else v for k, v in arguments.items()})
    except Exception as error:
        return [type(error).__name__, str(error).partition("\n")[0]]
    return ["", ""]


out = {}
for who, right in RIGHT.items():
    function = next(getattr(m, who) for m in (flashinfer, flashinfer.gemm, flashinfer.quantization, flashinfer.rope, flashinfer.page, flashinfer.fused_moe) if hasattr(m, who))
    out[f"{who}: right"] = outcome(function, right)
    for name, what, value in mistakes(right, inspect.signature(function).parameters):
        out[f"{who}: {name}: {what}"] = outcome(function, {**right, name: value})
print(json.dumps(out))
