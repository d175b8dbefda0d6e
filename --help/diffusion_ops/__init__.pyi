# Made by tools/make_stubs.py from the library's registry.
from enum import IntEnum
from typing import Any, Literal, NamedTuple, NoReturn, Optional, Protocol, TypeVar, Union

import torch

class Array(Protocol):
    """Anything that speaks DLPack: a torch.Tensor, a numpy.ndarray, ..."""

    def __dlpack__(self, *args: Any, **kwargs: Any) -> Any: ...

_T = TypeVar("_T", bound=Array)

from flashinfer.norm import fused_dit_gate_residual_layernorm_gamma_beta as fused_dit_gate_residual_layernorm_gamma_beta
from flashinfer.norm import fused_dit_gate_residual_layernorm_scale_shift as fused_dit_gate_residual_layernorm_scale_shift
from flashinfer.norm import fused_dit_residual_layernorm_scale_shift as fused_dit_residual_layernorm_scale_shift
from flashinfer.norm import fused_qk_rmsnorm_rope as fused_qk_rmsnorm_rope
class MiniMaxH3PreAttentionOutput:
    """flashinfer.diffusion_ops.MiniMaxH3PreAttentionOutput is not available: this is for one model or one GPU generation; the ops take any sizes."""
    def __init__(self, *args: Any, **kwargs: Any) -> None: ...

class PreparedMiniMaxH3QkvQuantizePack:
    """flashinfer.diffusion_ops.PreparedMiniMaxH3QkvQuantizePack is not available: this is for one model or one GPU generation; the ops take any sizes."""
    def __init__(self, *args: Any, **kwargs: Any) -> None: ...

def minimax_h3_bf16_pre_attention(*args: Any, **kwargs: Any) -> NoReturn:
    """flashinfer.diffusion_ops.minimax_h3_bf16_pre_attention is not available: this is for one model or one GPU generation; the ops take any sizes."""
    ...

def minimax_h3_dense_attention(*args: Any, **kwargs: Any) -> NoReturn:
    """flashinfer.diffusion_ops.minimax_h3_dense_attention is not available: this is for one model or one GPU generation; the ops take any sizes."""
    ...

def minimax_h3_fc1_swiglu(*args: Any, **kwargs: Any) -> NoReturn:
    """flashinfer.diffusion_ops.minimax_h3_fc1_swiglu is not available: this is for one model or one GPU generation; the ops take any sizes."""
    ...

def minimax_h3_fc1_swiglu_fp8(*args: Any, **kwargs: Any) -> NoReturn:
    """flashinfer.diffusion_ops.minimax_h3_fc1_swiglu_fp8 is not available: this is for one model or one GPU generation; the ops take any sizes."""
    ...

def minimax_h3_fc1_swiglu_mxfp8(*args: Any, **kwargs: Any) -> NoReturn:
    """flashinfer.diffusion_ops.minimax_h3_fc1_swiglu_mxfp8 is not available: this is for one model or one GPU generation; the ops take any sizes."""
    ...

def minimax_h3_fc1_swiglu_nvfp4(*args: Any, **kwargs: Any) -> NoReturn:
    """flashinfer.diffusion_ops.minimax_h3_fc1_swiglu_nvfp4 is not available: this is for one model or one GPU generation; the ops take any sizes."""
    ...

def minimax_h3_fp8_out_proj(*args: Any, **kwargs: Any) -> NoReturn:
    """flashinfer.diffusion_ops.minimax_h3_fp8_out_proj is not available: this is for one model or one GPU generation; the ops take any sizes."""
    ...

def minimax_h3_fp8_pre_attention(*args: Any, **kwargs: Any) -> NoReturn:
    """flashinfer.diffusion_ops.minimax_h3_fp8_pre_attention is not available: this is for one model or one GPU generation; the ops take any sizes."""
    ...

def minimax_h3_nvfp4_out_proj(*args: Any, **kwargs: Any) -> NoReturn:
    """flashinfer.diffusion_ops.minimax_h3_nvfp4_out_proj is not available: this is for one model or one GPU generation; the ops take any sizes."""
    ...

def minimax_h3_nvfp4_pre_attention(*args: Any, **kwargs: Any) -> NoReturn:
    """flashinfer.diffusion_ops.minimax_h3_nvfp4_pre_attention is not available: this is for one model or one GPU generation; the ops take any sizes."""
    ...

def minimax_h3_out_proj(*args: Any, **kwargs: Any) -> NoReturn:
    """flashinfer.diffusion_ops.minimax_h3_out_proj is not available: this is for one model or one GPU generation; the ops take any sizes."""
    ...

def minimax_h3_out_proj_mxfp8(*args: Any, **kwargs: Any) -> NoReturn:
    """flashinfer.diffusion_ops.minimax_h3_out_proj_mxfp8 is not available: this is for one model or one GPU generation; the ops take any sizes."""
    ...

def minimax_h3_out_proj_nvfp4(*args: Any, **kwargs: Any) -> NoReturn:
    """flashinfer.diffusion_ops.minimax_h3_out_proj_nvfp4 is not available: this is for one model or one GPU generation; the ops take any sizes."""
    ...

def minimax_h3_out_proj_reference(*args: Any, **kwargs: Any) -> NoReturn:
    """flashinfer.diffusion_ops.minimax_h3_out_proj_reference is not available: this is for one model or one GPU generation; the ops take any sizes."""
    ...

def minimax_h3_qkv_quantize_pack(*args: Any, **kwargs: Any) -> NoReturn:
    """flashinfer.diffusion_ops.minimax_h3_qkv_quantize_pack is not available: this is for one model or one GPU generation; the ops take any sizes."""
    ...

def minimax_h3_sm120_varlen_attention_fp8(*args: Any, **kwargs: Any) -> NoReturn:
    """flashinfer.diffusion_ops.minimax_h3_sm120_varlen_attention_fp8 is not available: this is for one model or one GPU generation; the ops take any sizes."""
    ...

def minimax_h3_sm120_varlen_attention_nvfp4(*args: Any, **kwargs: Any) -> NoReturn:
    """flashinfer.diffusion_ops.minimax_h3_sm120_varlen_attention_nvfp4 is not available: this is for one model or one GPU generation; the ops take any sizes."""
    ...

def minimax_h3_sm120_varlen_attention_nvfp4_nodelta(*args: Any, **kwargs: Any) -> NoReturn:
    """flashinfer.diffusion_ops.minimax_h3_sm120_varlen_attention_nvfp4_nodelta is not available: this is for one model or one GPU generation; the ops take any sizes."""
    ...

def prepare_minimax_h3_fc1_weight_fp8(*args: Any, **kwargs: Any) -> NoReturn:
    """flashinfer.diffusion_ops.prepare_minimax_h3_fc1_weight_fp8 is not available: this is for one model or one GPU generation; the ops take any sizes."""
    ...

def prepare_minimax_h3_fc1_weight_mxfp8(*args: Any, **kwargs: Any) -> NoReturn:
    """flashinfer.diffusion_ops.prepare_minimax_h3_fc1_weight_mxfp8 is not available: this is for one model or one GPU generation; the ops take any sizes."""
    ...

def prepare_minimax_h3_fc1_weight_nvfp4(*args: Any, **kwargs: Any) -> NoReturn:
    """flashinfer.diffusion_ops.prepare_minimax_h3_fc1_weight_nvfp4 is not available: this is for one model or one GPU generation; the ops take any sizes."""
    ...

def prepare_minimax_h3_o_weight_mxfp8(*args: Any, **kwargs: Any) -> NoReturn:
    """flashinfer.diffusion_ops.prepare_minimax_h3_o_weight_mxfp8 is not available: this is for one model or one GPU generation; the ops take any sizes."""
    ...

def prepare_minimax_h3_o_weight_nvfp4(*args: Any, **kwargs: Any) -> NoReturn:
    """flashinfer.diffusion_ops.prepare_minimax_h3_o_weight_nvfp4 is not available: this is for one model or one GPU generation; the ops take any sizes."""
    ...

def prepare_minimax_h3_qkv_quantize_pack(*args: Any, **kwargs: Any) -> NoReturn:
    """flashinfer.diffusion_ops.prepare_minimax_h3_qkv_quantize_pack is not available: this is for one model or one GPU generation; the ops take any sizes."""
    ...

def quantize_minimax_h3_o_weight_fp8(*args: Any, **kwargs: Any) -> NoReturn:
    """flashinfer.diffusion_ops.quantize_minimax_h3_o_weight_fp8 is not available: this is for one model or one GPU generation; the ops take any sizes."""
    ...

def quantize_minimax_h3_o_weight_nvfp4(*args: Any, **kwargs: Any) -> NoReturn:
    """flashinfer.diffusion_ops.quantize_minimax_h3_o_weight_nvfp4 is not available: this is for one model or one GPU generation; the ops take any sizes."""
    ...

def quantize_minimax_h3_qkv_weight_fp8(*args: Any, **kwargs: Any) -> NoReturn:
    """flashinfer.diffusion_ops.quantize_minimax_h3_qkv_weight_fp8 is not available: this is for one model or one GPU generation; the ops take any sizes."""
    ...

def quantize_minimax_h3_qkv_weight_nvfp4(*args: Any, **kwargs: Any) -> NoReturn:
    """flashinfer.diffusion_ops.quantize_minimax_h3_qkv_weight_nvfp4 is not available: this is for one model or one GPU generation; the ops take any sizes."""
    ...
