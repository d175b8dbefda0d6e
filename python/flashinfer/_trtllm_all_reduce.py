# SPDX-License-Identifier: Apache-2.0
"""FlashInfer's older names of the fused all-reduces (`flashinfer.comm.trtllm_*`), by allreduce_fusion. docs/comm.md.

A workspace is an int64 tensor of addresses that a caller passes on; here it stands for the AllReduceFusionWorkspace that was made with it.
"""
from . import _comm_memory, _make
from ._comm import AllReduceFusionPattern, TRTLLMAllReduceFusionWorkspace, checking

_fusion = _make.package.exports["allreduce_fusion"]
_FLAGS, _ALIGN, _MOST_LAMPORT = 256, 1 << 21, 2**31 - (1 << 21)
_workspaces = {}  # address of the tensor of addresses -> the tensor, the workspace, the list that stands for it


class AllReduceStrategyType:
    """How a GPU sums; here it changes nothing."""

    NCCL, MIN_LATENCY, UB, AUTO, ONESHOT, TWOSHOT, LOWPRECISION = range(7)


class AllReduceStrategyConfig:
    """How a GPU copies; here it changes nothing."""

    USE_MEMCPY, PUSH_MODE = 1, 2


class AllReduceFusionOp:
    """What follows the sum, by the numbers of the oldest interface. allreduce_fusion takes AllReduceFusionPattern."""

    NONE = 0
    RESIDUAL_RMS_NORM = 1
    LAST_PROCESS_FOR_UB = 2
    RESIDUAL_RMS_PREPOST_NORM = 3
    RESIDUAL_RMS_NORM_QUANT_FP8 = 4
    RESIDUAL_RMS_NORM_QUANT_NVFP4 = 5
    RESIDUAL_RMS_NORM_OUT_QUANT_FP8 = 6
    RESIDUAL_RMS_NORM_OUT_QUANT_NVFP4 = 7
    MOE_ALLREDUCE_RESIDUAL_RMS_NORM = 8
    MOE_FINALIZE_ALLREDUCE_RESIDUAL_RMS_NORM = 9


def trtllm_create_ipc_workspace_for_all_reduce_fusion(tp_rank, tp_size, max_token_num, hidden_dim, use_fp32_lamport=False, group=None, create_metadata=False,
                                                      comm_backend=None, use_symm_dev_mem=False):
    """A workspace for inputs of up to [max_token_num, hidden_dim] 16-bit elements. Collective.

    Args:
        tp_rank: this rank
        tp_size: ranks
        max_token_num: rows of the largest input
        hidden_dim: its columns
        use_fp32_lamport: the elements are float32
        group: of torch.distributed
        create_metadata: whether to return the sizes too
        comm_backend: a communicator; None: of `group`, torch.distributed, MPI, or one rank
        use_symm_dev_mem: with create_metadata, a list of memory objects is returned before the sizes: there are none

    Returns:
        a list for trtllm_destroy_ipc_workspace_for_all_reduce_fusion, the tensor for `workspace_ptrs`, and what create_metadata adds. The sizes in it
        are those of FlashInfer's buffers on a GPU

    Raises:
        ValueError: sizes that are not possible, on any rank
    """
    import torch

    dtype = torch.float32 if use_fp32_lamport else torch.float16
    workspace = TRTLLMAllReduceFusionWorkspace(tp_size, tp_rank, max_token_num, hidden_dim, dtype, comm_backend, group)
    table = torch.zeros(3 * tp_size + 1, dtype=torch.int64)
    handles = [[table.data_ptr()]]
    _workspaces[table.data_ptr()] = table, workspace, handles
    if not create_metadata:
        return handles, table
    lamport = min(tp_size * max_token_num * hidden_dim * dtype.itemsize, _MOST_LAMPORT)
    metadata = {"tp_rank": tp_rank, "tp_size": tp_size, "max_token_num": max_token_num, "hidden_dim": hidden_dim, "use_fp32_lamport": use_fp32_lamport,
                "buffer_size": tp_size * max_token_num * hidden_dim * dtype.itemsize, "flag_size": tp_size * _FLAGS * 4, "lamport_comm_size": lamport,
                "lamport_buffer_size": (3 * lamport + _ALIGN - 1) // _ALIGN * _ALIGN}
    return (handles, table, [], metadata) if use_symm_dev_mem else (handles, table, metadata)


def trtllm_destroy_ipc_workspace_for_all_reduce_fusion(workspace, group=None):
    """Gives the memory back.

    Args:
        workspace: the list that trtllm_create_ipc_workspace_for_all_reduce_fusion returned
        group: not used

    Raises:
        ValueError: another list
    """
    known = _workspaces.get(workspace[0][0]) if workspace and workspace[0] else None
    if known is None:
        raise ValueError(f"trtllm_destroy_ipc_workspace_for_all_reduce_fusion: workspace is {workspace}, but must be what "
                         "trtllm_create_ipc_workspace_for_all_reduce_fusion returned")
    known[1].destroy()
    del _workspaces[workspace[0][0]]


def trtllm_destroy_ipc_workspace_for_all_reduce(workspace, group=None):
    """As trtllm_destroy_ipc_workspace_for_all_reduce_fusion."""
    trtllm_destroy_ipc_workspace_for_all_reduce_fusion(workspace, group)


def _workspace(workspace_ptrs, world_size, world_rank, function):
    known = _workspaces.get(workspace_ptrs.data_ptr())
    if known is None:
        raise ValueError(f"{function}: workspace_ptrs is not a tensor that trtllm_create_ipc_workspace_for_all_reduce_fusion returned")
    workspace = known[1]
    with checking(workspace, function):
        if (world_size, world_rank) != (workspace.world_size, workspace.rank):
            raise ValueError(f"{function}: world_size is {world_size} and world_rank {world_rank}, but the workspace has {workspace.world_size} and {workspace.rank}")
    return workspace


def _rows(tensor, token_num, hidden_dim):
    return None if tensor is None else tensor.view(token_num, hidden_dim)


def trtllm_lamport_initialize(buffer_ptr, size, dtype):
    """Fills `size` elements from the address `buffer_ptr` on, in a buffer of create_shared_buffer, with -0. No call here needs it.

    Raises:
        ValueError: memory outside such buffers
    """
    _comm_memory.memory_at(buffer_ptr, size * dtype.itemsize, "trtllm_lamport_initialize").view(dtype).fill_(-0.0)


def trtllm_lamport_initialize_all(buffer_0_ptr, buffer_1_ptr, buffer_2_ptr, size, dtype):
    """trtllm_lamport_initialize of three buffers."""
    for address in (buffer_0_ptr, buffer_1_ptr, buffer_2_ptr):
        trtllm_lamport_initialize(address, size, dtype)


def trtllm_allreduce_fusion(allreduce_in, world_size, world_rank, token_num, hidden_dim, workspace_ptrs, launch_with_pdl, trigger_completion_at_end, fp32_acc,
                            pattern_code, use_oneshot, allreduce_out, residual_in, residual_out, norm_out, quant_out, scale_out, rms_gamma, rms_eps, scale_factor,
                            layout_code, metadata=None, block_quant_group_size=None, weight_bias=None):
    """allreduce_fusion of patterns 0 to 5 and 8 to 11, by the older arguments. Collective.

    Args:
        allreduce_in: [token_num, hidden_dim]
        workspace_ptrs: of trtllm_create_ipc_workspace_for_all_reduce_fusion
        pattern_code: AllReduceFusionPattern
        allreduce_out: memory for the sum
        metadata: of the workspace: token_num, world_size and hidden_dim must fit it
        weight_bias: None: 0

    Raises:
        ValueError: arguments that do not fit together
        RuntimeError: a rank that calls something else, died or does not arrive in time
    """
    workspace = _workspace(workspace_ptrs, world_size, world_rank, "trtllm_allreduce_fusion")
    with checking(workspace, "trtllm_allreduce_fusion"):
        if pattern_code in (AllReduceFusionPattern.kMoEReductionARResidualRMSNorm, AllReduceFusionPattern.kMoEFinalizeARResidualRMSNorm,
                            AllReduceFusionPattern.kMoEFinalizeARResidualRMSNormFP8Quant):
            raise ValueError(f"trtllm_allreduce_fusion: pattern_code is {pattern_code}, but must be in [0, 5] or [8, 11]: "
                             "trtllm_moe_allreduce_fusion and trtllm_moe_finalize_allreduce_fusion are for experts")
        if metadata is not None and (token_num > metadata["max_token_num"] or world_size != metadata["tp_size"] or hidden_dim != metadata["hidden_dim"]):
            raise ValueError("trtllm_allreduce_fusion: Workspace validation failed: token_num is {}, world_size {} and hidden_dim {}, but the workspace was made for {}, {} "
                             "and {}".format(token_num, world_size, hidden_dim, *(metadata[n] for n in ("max_token_num", "tp_size", "hidden_dim"))))
        shape = token_num, hidden_dim
        rows = [_rows(t, *shape) for t in (allreduce_in, allreduce_out, residual_in, residual_out, norm_out)]
    x, output, residual, residual_to, norm = rows
    _fusion(x, workspace, pattern_code, launch_with_pdl, trigger_completion_at_end, output, residual_to, norm, quant_out, scale_out, residual, rms_gamma,
            1e-6 if rms_eps is None else rms_eps, scale_factor, layout_code, use_oneshot, fp32_acc, block_quant_group_size=block_quant_group_size,
            weight_bias=weight_bias or 0.0)


def trtllm_moe_allreduce_fusion(world_size, world_rank, token_num, hidden_dim, workspace_ptrs, launch_with_pdl, residual_in, rms_gamma, rms_eps, scale_factor,
                                moe_reduction_device_num_experts, moe_reduction_scale_input, moe_reduction_active_experts_token_input, moe_reduction_token_input,
                                layout_code, moe_allreduce_out, residual_out, norm_out, quant_out, scale_out, weight_bias=None, *, backend="trtllm"):
    """allreduce_fusion of pattern 6, by the older arguments. Collective; arguments and errors as there.

    Args:
        moe_allreduce_out: memory for the sum
        backend: "trtllm" or "cake"; changes no result
    """
    workspace = _workspace(workspace_ptrs, world_size, world_rank, "trtllm_moe_allreduce_fusion")
    with checking(workspace, "trtllm_moe_allreduce_fusion"):
        if backend not in ("trtllm", "cake"):
            raise ValueError(f"trtllm_moe_allreduce_fusion: backend is {backend!r}, but must be 'trtllm' or 'cake'")
        shape, experts = (token_num, hidden_dim), moe_reduction_device_num_experts
        token_input = _rows(moe_reduction_token_input, *shape)
        options = dict(output=_rows(moe_allreduce_out, *shape), residual_out=_rows(residual_out, *shape), norm_out=_rows(norm_out, *shape),
                       residual_in=_rows(residual_in, *shape), moe_reduction_scale_input=moe_reduction_scale_input.view(experts, token_num),
                       moe_reduction_active_experts_token_input=moe_reduction_active_experts_token_input.view(experts * token_num, hidden_dim))
    _fusion(token_input, workspace, AllReduceFusionPattern.kMoEReductionARResidualRMSNorm, launch_with_pdl, quant_out=quant_out, scale_out=scale_out,
            rms_gamma=rms_gamma, rms_eps=rms_eps, scale_factor=scale_factor, layout_code=layout_code, moe_reduction_device_num_experts=experts,
            moe_reduction_token_input=token_input, weight_bias=weight_bias or 0.0, **options)


def trtllm_moe_finalize_allreduce_fusion(allreduce_in, residual_in, norm_weight, expanded_idx_to_permuted_idx, norm_out, residual_out, quant_out, scale_out,
                                         workspace_ptrs, launch_with_pdl, world_rank, world_size, eps, shared_expert_output, expert_scale_factor,
                                         routed_scaling_factor, weight_bias=None, *, backend="trtllm"):
    """allreduce_fusion of pattern 7, by the older arguments. Collective; arguments and errors as there.

    Args:
        norm_weight: rms_gamma
        routed_scaling_factor: None or a number that expert_scale_factor is multiplied by, in float32
        backend: "trtllm" or "cake"; changes no result
    """
    import torch

    workspace = _workspace(workspace_ptrs, world_size, world_rank, "trtllm_moe_finalize_allreduce_fusion")
    scales = expert_scale_factor
    if routed_scaling_factor is not None:
        with checking(workspace, "trtllm_moe_finalize_allreduce_fusion"):
            of_experts = torch.ones_like(expanded_idx_to_permuted_idx, dtype=torch.float32) if scales is None else scales.float()
            scales = of_experts * routed_scaling_factor
    _fusion(allreduce_in, workspace, AllReduceFusionPattern.kMoEFinalizeARResidualRMSNorm, launch_with_pdl, residual_out=residual_out, norm_out=norm_out,
            quant_out=quant_out, scale_out=scale_out, residual_in=residual_in, rms_gamma=norm_weight, rms_eps=eps,
            expanded_idx_to_permuted_idx=expanded_idx_to_permuted_idx, expert_scale_factor=scales, shared_expert_output=shared_expert_output,
            weight_bias=weight_bias or 0.0, moe_finalize_backend=backend)
