# SPDX-License-Identifier: Apache-2.0
"""Enums of fused MoE and of trtllm-gen tensors. Those that ops take are made from the library's registry."""
import enum

from ._make import package as _package

ActivationType, Fp8QuantizationType, SfLayout, WeightLayout = (
    _package.exports[name] for name in ("ActivationType", "Fp8QuantizationType", "SfLayout", "WeightLayout"))

# What the MoE functions take for constants of an activation that are not passed: max(float32) is no limit.
DEFAULT_SWIGLU_ALPHA, DEFAULT_SWIGLU_BETA, DEFAULT_SWIGLU_LIMIT = 1.0, 0.0, 3.4028234663852886e38
DEFAULT_SITU_BETA, DEFAULT_SITU_LINEAR_BETA = 4.0, 25.0


class GatedActType(enum.IntEnum):
    """Gated activations of the older MoE functions."""
    SwiGlu = 0
    GeGlu = 1


class RoutingMethodType(enum.IntEnum):
    """How a router's logits become experts and weights: `routing_method_type` of the MoE functions."""
    Default = 0           # softmax, then top k
    Renormalize = 1       # top k, then softmax
    DeepSeekV3 = 2        # sigmoid, bias, best groups, top k
    Llama4 = 3            # top 1, then sigmoid
    RenormalizeNaive = 4  # softmax, top k, divided by their sum
    TopK = 5
    SigmoidRenorm = 6
    MiniMax2 = 7
    Sigmoid = 8
    TopKSigmoid = 9
    Unspecified = 10


class RoutingInputMode(enum.IntEnum):
    """What an MoE function is given of the routing."""
    FromLogits = 0
    PackedPrecomputed = 1
    UnpackedPrecomputed = 2


class DtypeTrtllmGen(enum.IntEnum):
    """Element types of trtllm-gen kernels."""
    Bfloat16 = 1052672
    Bool = 65793
    E2m1 = 17826818
    E2m3 = 17827331
    E3m2 = 17827332
    E4m3 = 1050629
    E5m2 = 1050630
    Fp16 = 1052679
    Fp32 = 1056776
    Int8 = 1116169
    Int32 = 1122314
    Int64 = 1130507
    MxE2m1 = 17826828
    MxE4m3 = 17827853
    MxInt4 = 17892366
    UE8m0 = 2063
    UInt8 = 67600
    UInt16 = 69649
    UInt32 = 73746
    UInt64 = 81939
    UInt128 = 98324
    Void = 1048597


def normalize_activation_type(activation_type):
    """The ActivationType of a member or its number.

    Raises:
        ValueError: no such activation
    """
    try:
        return ActivationType(activation_type)
    except ValueError:
        raise ValueError(f"Unsupported activation_type {activation_type!r}") from None


def is_gated_activation(activation_type):
    """Whether the activation multiplies by a gate, so that the first weight has two halves."""
    return normalize_activation_type(activation_type).is_gated


def trtllm_gen_dtype_has_scale(dtype):
    """Whether tensors of this type have block scales."""
    return dtype in (DtypeTrtllmGen.MxE4m3, DtypeTrtllmGen.E2m1, DtypeTrtllmGen.MxE2m1, DtypeTrtllmGen.MxInt4)


def deduce_trtllm_gen_tensor_dtype(x, scale):
    """The element type of `x`, whose block scales are `scale`, or None: uint8 are two 4-bit floats with one scale for 16 elements
    (E2m1) or for more (MxE2m1), float8_e4m3fn with scales are MxE4m3.

    Raises:
        AssertionError: 4-bit floats without scales
        ValueError: any other element type
    """
    import torch

    if x.dtype == torch.uint8:
        assert scale is not None, "Scale tensor must be provided for float4x2 input"
        return DtypeTrtllmGen.E2m1 if scale.numel() and x.numel() * 2 // scale.numel() == 16 else DtypeTrtllmGen.MxE2m1
    if x.dtype == torch.float8_e4m3fn:
        return DtypeTrtllmGen.E4m3 if scale is None else DtypeTrtllmGen.MxE4m3
    if x.dtype == torch.bfloat16:
        return DtypeTrtllmGen.Bfloat16
    raise ValueError("Unsupported trtllm-gen input tensor.")
