# SPDX-License-Identifier: Apache-2.0
"""Linear attention and state-space layers of transformers' models on the library's ops, through the mapping of the `kernels` package:
convolutions, the gated delta rule (Qwen3-Next and kin), Kimi delta attention and Mamba-2. Signatures are those of the functions that are replaced; calls with
packed sequences (cu_seqlens, seq_idx) stay with the model."""

import torch

import flashinfer
import flashinfer.gdn_decode
import flashinfer.gdn_prefill
import flashinfer.kda
import flashinfer.mamba

from ._hf_layers import checked, known


def _packed(kwargs):
    return any(kwargs.get(name) is not None for name in ("cu_seqlens", "seq_idx", "cu_seq_lens_q"))


def _kept(kind, state):
    """A copy of a state that the op updates in place, for the model's own code in the call that compares both."""
    return state if state is None or known(kind) is not None else state.clone()


def _sequences(layer, ours, kwargs, *args):
    """The result of `ours`, checked at the layer's first call; of the model's function where sequences are packed or empty."""
    original = type(layer).forward
    theirs = lambda: original(layer, *args, **kwargs)
    return theirs() if _packed(kwargs) or args[0].numel() == 0 else checked(original, ours, theirs)


class _Layer(torch.nn.Module):
    can_torch_compile = False
    has_backward = False


class CausalConv1dFn(_Layer):
    def forward(self, hidden_states, weight, bias=None, activation=None, **kwargs):
        original = type(self).forward
        theirs = lambda: original(self, hidden_states, weight, bias, activation, **kwargs)
        if _packed(kwargs) or hidden_states.numel() == 0 or not 2 <= weight.shape[-1] <= 4 or activation not in (None, "silu", "swish"):
            return theirs()
        return checked(original, lambda: flashinfer.mamba.causal_conv1d_fn(hidden_states, weight, bias, activation=activation), theirs)


class CausalConv1dUpdate(_Layer):
    def forward(self, hidden_states, conv_state, weight, bias=None, activation=None):
        original = type(self).forward
        state = _kept(original, conv_state)
        theirs = lambda: original(self, hidden_states, state, weight, bias, activation)
        if not 2 <= weight.shape[-1] <= 4 or conv_state.dtype != hidden_states.dtype or activation not in (None, "silu", "swish"):
            state = conv_state
            return theirs()
        return checked(original, lambda: flashinfer.mamba.causal_conv1d_update(hidden_states, conv_state, weight, bias, activation), theirs,
                       conv_state, state)


class ChunkGatedDeltaRule(_Layer):
    def forward(self, query, key, value, g, beta, chunk_size=64, initial_state=None, output_final_state=False, use_qk_l2norm_in_kernel=False,
                **kwargs):
        def ours():
            batch, length = query.shape[:2]
            q, k, v, decay, update = (x.reshape(batch * length, *x.shape[2:]).contiguous() for x in (query, key, value, g.float().exp(), beta.float()))
            starts = torch.arange(batch + 1, dtype=torch.int32, device=q.device) * length
            state = None if initial_state is None else initial_state.transpose(2, 3).contiguous().float()  # [K, V] there, [V, K] here
            out, state = flashinfer.gdn_prefill.chunk_gated_delta_rule(q, k, v, decay, update, initial_state=state, output_final_state=True, cu_seqlens=starts,
                                                                       use_qk_l2norm_in_kernel=use_qk_l2norm_in_kernel)
            return out.view(batch, length, *out.shape[1:]), state.transpose(2, 3).contiguous() if output_final_state else None

        return _sequences(self, ours, kwargs, query, key, value, g, beta, chunk_size, initial_state, output_final_state, use_qk_l2norm_in_kernel)


class RecurrentGatedDeltaRule(_Layer):
    def forward(self, query, key, value, g, beta, initial_state=None, output_final_state=False, use_qk_l2norm_in_kernel=False, **kwargs):
        original = type(self).forward
        state = _kept(original, initial_state)
        theirs = lambda: original(self, query, key, value, g, beta, state, output_final_state, use_qk_l2norm_in_kernel, **kwargs)
        # The op takes the gates before their activations: beta is a sigmoid's value only up to 1 (some models scale it by 2).
        if (_packed(kwargs) or query.shape[1] != 1 or initial_state is None or initial_state.dtype != torch.float32 or not initial_state.is_contiguous()
                or float(beta.max()) > 1):
            state = initial_state
            return theirs()

        def ours():
            decay, update = -g.float(), beta.float()
            a = torch.where(decay > 20, decay, torch.log(torch.expm1(decay)))  # softplus(a) = decay
            heads = torch.zeros(value.shape[2], device=value.device)
            out, new = flashinfer.gdn_decode.gated_delta_rule_decode(*(x.float().contiguous() for x in (query, key, value)), initial_state, heads, a, heads,
                                                                     torch.logit(update), use_qk_l2norm=use_qk_l2norm_in_kernel)
            return out.to(query.dtype), new if output_final_state else None

        return checked(original, ours, theirs)


def _kda(query, key, value, g, beta, initial_state, output_final_state, use_qk_l2norm_in_kernel):
    batch, length = query.shape[:2]
    q, k, v, gate, update = (x.float().reshape(batch * length, *x.shape[2:]).contiguous() for x in (query, key, value, g, beta))
    if initial_state is None:
        state = q.new_zeros(batch, v.shape[1], v.shape[2], k.shape[2])
    else:
        state = initial_state.transpose(2, 3).to(torch.float32, memory_format=torch.contiguous_format, copy=True)  # [K, V] there, [V, K] here
    starts = torch.arange(batch + 1, dtype=torch.int32, device=q.device) * length
    out = flashinfer.kda.kda_recurrence(q, k, v, gate, update, starts, use_qk_l2norm=use_qk_l2norm_in_kernel, state=state)
    return out.view(batch, length, *out.shape[1:]).to(query.dtype), state.transpose(2, 3).contiguous() if output_final_state else None


class ChunkKda(_Layer):
    def forward(self, query, key, value, g, beta, chunk_size=64, initial_state=None, output_final_state=False, use_qk_l2norm_in_kernel=False,
                **kwargs):
        ours = lambda: _kda(query, key, value, g, beta, initial_state, output_final_state, use_qk_l2norm_in_kernel)
        return _sequences(self, ours, kwargs, query, key, value, g, beta, chunk_size, initial_state, output_final_state, use_qk_l2norm_in_kernel)


class RecurrentKda(_Layer):
    def forward(self, query, key, value, g, beta, initial_state=None, output_final_state=False, use_qk_l2norm_in_kernel=False, **kwargs):
        ours = lambda: _kda(query, key, value, g, beta, initial_state, output_final_state, use_qk_l2norm_in_kernel)
        return _sequences(self, ours, kwargs, query, key, value, g, beta, initial_state, output_final_state, use_qk_l2norm_in_kernel)


class SelectiveStateUpdate(_Layer):
    def forward(self, state, hidden_states, dt, A, B, C, D=None, dt_bias=None, dt_softplus=False, z=None, **kwargs):
        original = type(self).forward
        kept = _kept(original, state)
        theirs = lambda: original(self, kept, hidden_states, dt, A, B, C, D, dt_bias, dt_softplus, z, **kwargs)
        if _packed(kwargs):
            kept = state
            return theirs()

        def ours():
            bias = None if dt_bias is None else dt_bias.to(dt.dtype)
            weight = None if D is None else D.to(dt.dtype)
            return flashinfer.mamba.selective_state_update(state, hidden_states, dt, A.float(), B, C, weight, z=z, dt_bias=bias, dt_softplus=dt_softplus)

        return checked(original, ours, theirs, state, kept)


class ChunkScan(_Layer):
    def forward(self, hidden_states, dt, A, B, C, chunk_size, D=None, dt_bias=None, initial_states=None, dt_softplus=False, dt_limit=(0.0, float("inf")),
                return_final_states=False, **kwargs):
        original = type(self).forward
        theirs = lambda: original(self, hidden_states, dt, A, B, C, chunk_size, D, dt_bias, initial_states, dt_softplus, dt_limit, return_final_states, **kwargs)
        if _packed(kwargs) or kwargs.get("z") is not None or hidden_states.numel() == 0:
            return theirs()

        def ours():
            x, step, b, c = (t.contiguous() for t in (hidden_states, dt, B, C))
            low, high = (None if abs(limit) == float("inf") else limit for limit in dt_limit)
            first = None if initial_states is None else initial_states.float()
            out, state = flashinfer.mamba.ssd_chunk_scan(x, step, A.float(), b, c, D=D, dt_bias=dt_bias, dt_softplus=dt_softplus, dt_min=low, dt_max=high,
                                                         initial_states=first, state_dtype=torch.float32)  # as in the model's own code
            return (out, state) if return_final_states else out

        return checked(original, ours, theirs)


LAYERS = {"causal_conv1d_fn": CausalConv1dFn, "causal_conv1d_update": CausalConv1dUpdate, "chunk_gated_delta_rule": ChunkGatedDeltaRule,
          "fused_recurrent_gated_delta_rule": RecurrentGatedDeltaRule, "selective_state_update": SelectiveStateUpdate,
          "mamba_chunk_scan_combined": ChunkScan, "chunk_kda": ChunkKda, "fused_recurrent_kda": RecurrentKda}
