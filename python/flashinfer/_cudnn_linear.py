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
