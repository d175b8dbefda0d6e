# SPDX-License-Identifier: Apache-2.0
"""FlashInfer's functions of linear attention on cuDNN, by the ops of the same name. `batch_invariant` is always true here: no result
depends on the other requests of a batch."""


def cudnn_chunk_gated_delta_rule(q, k, v, g=None, beta=None, scale=None, initial_state=None, output_final_state=False, cu_seqlens=None,
                                 use_qk_l2norm_in_kernel=False, output=None, output_state=None, batch_invariant=False):
    """`flashinfer.gdn_prefill.chunk_gated_delta_rule`."""
    from .gdn_prefill import chunk_gated_delta_rule

    return chunk_gated_delta_rule(q, k, v, g=g, beta=beta, scale=scale, initial_state=initial_state, output_final_state=output_final_state,
                                  cu_seqlens=cu_seqlens, use_qk_l2norm_in_kernel=use_qk_l2norm_in_kernel, output=output, output_state=output_state)


def cudnn_chunk_gated_delta_rule2(q, k, v, g=None, beta=None, w=None, scale=None, initial_state=None, output_final_state=False, cu_seqlens=None,
                                  use_qk_l2norm_in_kernel=False, output=None, output_state=None, batch_invariant=False):
    """`flashinfer.gdn2_prefill.chunk_gated_delta_rule2`."""
    from .gdn2_prefill import chunk_gated_delta_rule2

    return chunk_gated_delta_rule2(q, k, v, g=g, beta=beta, w=w, scale=scale, initial_state=initial_state, output_final_state=output_final_state,
                                   cu_seqlens=cu_seqlens, use_qk_l2norm_in_kernel=use_qk_l2norm_in_kernel, output=output, output_state=output_state)


def cudnn_chunk_gated_delta_product(q, k, v, g=None, beta=None, num_householder=1, scale=None, initial_state=None, output_final_state=False,
                                    cu_seqlens=None, use_qk_l2norm_in_kernel=False, output=None, output_state=None, batch_invariant=False):
    """`flashinfer.gdp_prefill.chunk_gated_delta_product`."""
    from .gdp_prefill import chunk_gated_delta_product

    return chunk_gated_delta_product(q, k, v, g=g, beta=beta, num_householder=num_householder, scale=scale, initial_state=initial_state,
                                     output_final_state=output_final_state, cu_seqlens=cu_seqlens, use_qk_l2norm_in_kernel=use_qk_l2norm_in_kernel,
                                     output=output, output_state=output_state)


def cudnn_recurrent_kda(q, k, v, g, beta, A_log=None, dt_bias=None, scale=None, initial_state=None, output_final_state=False, use_qk_l2norm_in_kernel=True,
                        use_gate_in_kernel=False, lower_bound=None, cu_seqlens=None, beta_is_logit=False, output=None, output_state=None, batch_invariant=False):
    """`flashinfer.recurrent_kda`; tensors may be without the leading 1, and of bfloat16, float16 or float32 each. The final state is written to `output_state`, or else over `initial_state`.

    Raises:
        ValueError: cu_seqlens is None; output_state without initial_state's shape, or it is initial_state
    """
    import torch

    from . import _kda

    if cu_seqlens is None:
        raise ValueError("cudnn_recurrent_kda: cu_seqlens is required")
    state = initial_state
    if output_state is not None:
        if initial_state is not None and (output_state.shape != initial_state.shape or output_state.data_ptr() == initial_state.data_ptr()):
            raise ValueError(f"cudnn_recurrent_kda: output_state has shape {tuple(output_state.shape)}, but must have that of initial_state, "
                             f"{tuple(initial_state.shape)}, and other memory")
        state = output_state.zero_() if initial_state is None else output_state.copy_(initial_state)
    given = [t.unsqueeze(0) if q.dim() == 3 else t for t in (q, k, v, g, beta)]
    if any(t.dtype != torch.bfloat16 for t in given):  # the op takes one type
        given = [t.float() for t in given]
    made, final = _kda.recurrent_kda(*given, A_log, dt_bias, scale, state, output_final_state, use_qk_l2norm_in_kernel, use_gate_in_kernel, lower_bound,
                                     cu_seqlens, beta_is_logit=beta_is_logit)[:2]
    made = made.to(q.dtype).reshape(v.shape)
    return made if output is None else output.copy_(made), final if output_final_state else None
