# SPDX-License-Identifier: Apache-2.0
"""The selective state update."""
from ..kernels import family


def gen_selective_state_update_module(state_dtype, input_dtype, weight_dtype, matrixA_dtype, stateIndex_dtype, state_scale_dtype, dim, dstate, ntokens_mtp, cu_seqlens_dtype, num_accepted_tokens_dtype, philox_rounds=0):
    """Kernels of `selective_state_update`, for the dtypes of its case rows."""
    return family("selective_state_update", "selective_state_update")


def gen_selective_state_update_sm90_module(state_dtype, input_dtype, weight_dtype, matrixA_dtype, stateIndex_dtype, state_scale_dtype, dim, dstate, ntokens_mtp, cu_seqlens_dtype, num_accepted_tokens_dtype, philox_rounds=0):
    """Kernels of `selective_state_update`, for the dtypes of its case rows."""
    return family("selective_state_update", "selective_state_update")


def gen_selective_state_update_sm100_module(state_dtype, input_dtype, weight_dtype, matrixA_dtype, stateIndex_dtype, state_scale_dtype, dim, dstate, ntokens_mtp, cu_seqlens_dtype, num_accepted_tokens_dtype, philox_rounds=0):
    """Kernels of `selective_state_update`, for the dtypes of its case rows."""
    return family("selective_state_update", "selective_state_update")
