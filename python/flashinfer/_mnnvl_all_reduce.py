# SPDX-License-Identifier: Apache-2.0
"""FlashInfer's functions of one MNNVLAllReduceFusionWorkspace (`flashinfer.comm.trtllm_mnnvl_ar`), by allreduce_fusion. docs/comm.md."""
from . import _make
from ._comm_backends import MPIBackend
from ._comm import AllReduceFusionPattern, MNNVLAllreduceFusionStrategy, QuantizationSFLayout, checking, compute_fp4_swizzled_layout_sf_size

_fusion = _make.package.exports["allreduce_fusion"]


class MNNVLQuantType:
    """What trtllm_mnnvl_fused_allreduce_add_rmsnorm_quant makes (`quant_type`)."""

    NONE = 0
    FP8 = 1
    NVFP4 = 2
    DYNAMIC_FP8 = 3


def mpi_barrier():
    """Waits for all ranks of MPI.

    Raises:
        ImportError: as MPIBackend
    """
    MPIBackend().barrier()


def _one_shot(strategy, input, workspace):
    """`use_oneshot` of allreduce_fusion; two shots need more tokens than ranks."""
    if strategy == MNNVLAllreduceFusionStrategy.AUTO:
        return None
    return strategy == MNNVLAllreduceFusionStrategy.ONESHOT or input.shape[0] <= workspace.world_size


def _eps(epsilon, input):
    import torch

    return torch.finfo(input.dtype).eps if epsilon is None else epsilon


def trtllm_mnnvl_allreduce(input, workspace, launch_with_pdl, output=None, strategy=MNNVLAllreduceFusionStrategy.AUTO):
    """The sum of all ranks' input: allreduce_fusion of pattern 0. Collective; arguments and errors as there.

    Args:
        input: [tokens, hidden]
        workspace: MNNVLAllReduceFusionWorkspace
        launch_with_pdl: of a GPU kernel; changes no result
        output: memory for the result
        strategy: MNNVLAllreduceFusionStrategy; changes no result

    Returns:
        as input
    """
    return _fusion(input, workspace, AllReduceFusionPattern.kAllReduce, launch_with_pdl, output=output, use_oneshot=_one_shot(strategy, input, workspace))


def trtllm_mnnvl_fused_allreduce_add_rmsnorm(input, residual_in, gamma, workspace, epsilon=None, output=None, residual_out=None, launch_with_pdl=False,
                                             strategy=MNNVLAllreduceFusionStrategy.AUTO, weight_bias=0.0):
    """allreduce_fusion of pattern 1. Collective; arguments and errors as there.

    Args:
        gamma: rms_gamma
        epsilon: None: the machine epsilon of input's dtype
        output: memory for the normalised rows
        residual_out: memory for the sum

    Returns:
        (the normalised rows, the sum with the residual)
    """
    import torch

    residual_out = torch.empty_like(residual_in) if residual_out is None else residual_out
    rows = _fusion(input, workspace, AllReduceFusionPattern.kARResidualRMSNorm, launch_with_pdl, residual_out=residual_out, norm_out=output, residual_in=residual_in,
                   rms_gamma=gamma, rms_eps=_eps(epsilon, input), use_oneshot=_one_shot(strategy, input, workspace), weight_bias=weight_bias)
    return (rows if output is None else output), residual_out


def trtllm_mnnvl_fused_allreduce_add_rmsnorm_quant(input, residual_in, gamma, workspace, epsilon=None, output=None, residual_out=None, quant_out=None, scale_out=None,
                                                   output_scale=None, layout_code=QuantizationSFLayout.SWIZZLED_128x4, quant_type=MNNVLQuantType.NONE,
                                                   launch_with_pdl=False, strategy=MNNVLAllreduceFusionStrategy.AUTO, weight_bias=0.0):
    """allreduce_fusion of patterns 2 to 5, 10 and 11. Collective; arguments and errors as there.

    Args:
        gamma: rms_gamma
        epsilon: None: the machine epsilon of input's dtype
        output: memory for the normalised rows, when they are wanted
        residual_out, quant_out, scale_out: memory for the other results
        output_scale: scale_factor; None: 1
        layout_code: of NVFP4's scales: 128x4 or in rows
        quant_type: FP8, NVFP4 or DYNAMIC_FP8 of MNNVLQuantType

    Returns:
        (codes, scales or None, the sum with the residual, the normalised rows or None)

    Raises:
        ValueError: another quant_type; the layout 8x4
    """
    import torch

    patterns = {MNNVLQuantType.FP8: (2, 4), MNNVLQuantType.NVFP4: (3, 5), MNNVLQuantType.DYNAMIC_FP8: (10, 11)}
    tokens, hidden = input.shape
    with checking(workspace, "trtllm_mnnvl_fused_allreduce_add_rmsnorm_quant"):
        if quant_type not in patterns:
            raise ValueError(f"trtllm_mnnvl_fused_allreduce_add_rmsnorm_quant: quant_type is {quant_type}, but must be 1 (FP8), 2 (NVFP4) or 3 (DYNAMIC_FP8)")
        if layout_code == QuantizationSFLayout.SWIZZLED_8x4:
            raise ValueError("trtllm_mnnvl_fused_allreduce_add_rmsnorm_quant: layout_code is 1 (8x4), but must be 0 (128x4) or 2 (linear)")
    new = lambda shape, dtype: torch.empty(shape, dtype=dtype, device=input.device)
    if quant_type == MNNVLQuantType.NVFP4:
        linear = layout_code == QuantizationSFLayout.LINEAR
        shape = (tokens, hidden // 16) if linear else (compute_fp4_swizzled_layout_sf_size(tokens, hidden // 16),)
        scale_out = new(shape, torch.float8_e4m3fn) if scale_out is None else scale_out
        quant_out = new((tokens, hidden // 2), torch.uint8) if quant_out is None else quant_out
    else:
        quant_out = new(input.shape, torch.float8_e4m3fn) if quant_out is None else quant_out
        scale_out = None if quant_type == MNNVLQuantType.FP8 else new((tokens, 1), torch.float32) if scale_out is None else scale_out
    residual_out = torch.empty_like(input) if residual_out is None else residual_out
    _fusion(input, workspace, patterns[quant_type][output is not None], launch_with_pdl, residual_out=residual_out, norm_out=output, quant_out=quant_out,
            scale_out=scale_out, residual_in=residual_in, rms_gamma=gamma, rms_eps=_eps(epsilon, input),
            scale_factor=None if quant_type == MNNVLQuantType.DYNAMIC_FP8 else 1.0 if output_scale is None else output_scale, layout_code=layout_code,
            use_oneshot=_one_shot(strategy, input, workspace), weight_bias=weight_bias)
    return quant_out, scale_out, residual_out, output
