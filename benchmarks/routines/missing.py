# SPDX-License-Identifier: Apache-2.0
"""Routines of functions that this library does not have; their flags are read, so that a wrong command is still an error."""
_KDA = "recurrent_kda is a kernel of one GPU generation"
_COMM = "communication between processes is not implemented; torch.distributed has all-reduce and all-to-all"
_ONE_GPU = ("its function is a kernel of one GPU generation; cutlass_fused_moe, trtllm_fp4_block_scale_moe and "
            "trtllm_fp8_block_scale_moe compute mixtures of experts")
REASONS = {
    "moe_a2a_dispatch_combine": _COMM, "allreduce_fusion": _COMM, "mixed_comm": _COMM,
    "recurrent_kda_prefill": _KDA,
    "cute_dsl_fp4_block_scale_moe": _ONE_GPU, "b12x_fused_moe": _ONE_GPU, "unified_nvfp4_moe": _ONE_GPU,
}


def make(args, device):
    raise NotImplementedError(f"routine {args.routine} is not available in this library: {REASONS[args.routine]}")
