# SPDX-License-Identifier: Apache-2.0
"""flashinfer.gdn_kernels.gdn_decode_bf16_state, which SGLang imports beside flashinfer.gdn_decode: on the op `gated_delta_rule_mtp`."""


def gated_delta_rule_mtp_bf16(A_log, a, dt_bias, softplus_beta=1.0, softplus_threshold=20.0, q=None, k=None, v=None, b=None, initial_state_source=None,
                              initial_state_indices=None, output_state_indices=None, intermediate_states_buffer=None, accepted_steps=None,
                              ssm_state_indices=None, disable_state_update=False, use_qk_l2norm_in_kernel=True, scale=None, output=None,
                              disable_output=False, recovery_steps=0):
    """Several steps of the gated delta rule on slots of a pool of bf16 states.

    Args:
        A_log, a, dt_bias, b, q, k, v, scale, output: as of `gated_delta_rule_mtp`
        initial_state_source: Tensor [p hv v k]; bfloat16; read and written; pool of states
        initial_state_indices: Tensor [b] or None; the slot that each row reads; slot i for row i when absent
        output_state_indices, intermediate_states_buffer, ssm_state_indices, disable_state_update: as of `gated_delta_rule_mtp`
        use_qk_l2norm_in_kernel: bool; divides each row of q and k by its norm

    Returns:
        Tensor [b t hv v]; dtype of q; the result

    Raises:
        TypeError, ValueError: as of `gated_delta_rule_mtp`; an argument that is missing, states that are not bfloat16
        NotImplementedError: another softplus, accepted_steps, disable_output, recovery_steps
    """
    import torch

    from . import gdn_decode

    name = "gdn_kernels.gdn_decode_bf16_state.gated_delta_rule_mtp"
    for argument, given in {"q": q, "k": k, "v": v, "b": b, "initial_state_source": initial_state_source}.items():
        if given is None:
            raise ValueError(f"{name}: {argument} is None")
    if initial_state_source.dtype != torch.bfloat16:
        raise ValueError(f"{name}: initial_state_source is {initial_state_source.dtype}, but must be torch.bfloat16: flashinfer.gdn_decode takes float32")
    for argument, given, only in (("softplus_beta", softplus_beta, 1.0), ("softplus_threshold", softplus_threshold, 20.0),
                                  ("accepted_steps", accepted_steps, None), ("disable_output", disable_output, False), ("recovery_steps", recovery_steps, 0)):
        if given is not only and given != only:
            raise NotImplementedError(f"{name}: {argument} is {given}, but only {only} is implemented")
    indices = torch.arange(q.shape[0], dtype=torch.int32, device=q.device) if initial_state_indices is None else initial_state_indices
    return gdn_decode.gated_delta_rule_mtp(
        q, k, v, initial_state_source, indices, A_log, a, dt_bias, b, scale=scale, output=output, intermediate_states_buffer=intermediate_states_buffer,
        ssm_state_indices=ssm_state_indices, disable_state_update=disable_state_update, use_qk_l2norm=use_qk_l2norm_in_kernel,
        output_state_indices=output_state_indices)[0]
