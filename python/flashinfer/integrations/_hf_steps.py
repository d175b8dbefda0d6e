# SPDX-License-Identifier: Apache-2.0
"""One token of a gated-delta-rule layer (Qwen3-Next, Qwen3.5 and kin) or a Mamba-2 layer (Mamba2, Bamba, Zamba2, Nemotron-H and kin) of transformers'
models: the ops take its projections as they are, gates before their activations and heads that share their queries or B and C, where the model's own
code makes them in some 25 operations."""

import types

import torch

import flashinfer
import flashinfer.gdn_decode
import flashinfer.mamba

from ._hf_layers import checked, has_own_forward, known

_DELTA = ("conv1d", "A_log", "dt_bias", "norm", "out_proj", "num_k_heads", "num_v_heads", "head_k_dim", "head_v_dim", "layer_idx", "activation")
_DELTA_PROJECTIONS = ({"in_proj_qkv", "in_proj_z", "in_proj_b", "in_proj_a"}, {"in_proj_qkvz", "in_proj_ba"})
_MAMBA = ("conv1d", "in_proj", "out_proj", "A_log", "D", "dt_bias", "norm", "num_heads", "head_dim", "ssm_state_size", "n_groups", "intermediate_size", "conv_dim",
          "layer_idx", "activation")


def replace_steps(model):
    """Gated-delta-rule and Mamba-2 layers compute a token that follows others by `_delta_step` and `_mamba_step`. Returns the model."""
    for module in model.modules():
        names = set(dict(module.named_children()))
        has = lambda members: all(hasattr(module, name) for name in members)
        if not has_own_forward(module):
            continue
        if any(names >= p for p in _DELTA_PROJECTIONS) and has(_DELTA):
            module.forward = types.MethodType(_forward(_delta_step), module)
        elif has(_MAMBA) and not hasattr(module, "mup_vector"):  # Falcon-H1 multiplies its projections
            module.forward = types.MethodType(_forward(_mamba_step), module)
    return model


def _states(layer, x, cache, mask, kwargs):
    """The layer's states in `cache`, (convolution's, recurrence's), if a step can take them; else None."""
    packed = any(kwargs.get(name) is not None for name in ("cu_seqlens", "seq_idx", "cu_seq_lens_q"))
    if cache is None or mask is not None or packed or x.shape[1] != 1 or x.numel() == 0 or layer.activation not in ("silu", "swish"):
        return None
    if torch.is_grad_enabled() and (x.requires_grad or layer.A_log.requires_grad) or cache.is_recording_past(layer.layer_idx):
        return None
    conv, state = cache.get_conv_state(layer.layer_idx, state_idx=0), cache.get_recurrent_state(layer.layer_idx, state_idx=0)
    if conv is None or state is None or conv.dtype != x.dtype or state.dtype != torch.float32 or not state.is_contiguous():
        return None
    return (conv, state) if 2 <= layer.conv1d.weight.shape[-1] <= 4 else None


def _projected(layer, x):
    """Rows of q | k | v, [batch, channels]; z, b and a."""
    if hasattr(layer, "in_proj_qkv"):
        return layer.in_proj_qkv(x)[:, 0], layer.in_proj_z(x), layer.in_proj_b(x), layer.in_proj_a(x)
    q, k, v, z, b, a = layer.fix_query_key_value_ordering(layer.in_proj_qkvz(x), layer.in_proj_ba(x))
    return torch.cat([part.reshape(x.shape[0], -1) for part in (q, k, v)], -1), z, b, a


def _delta_step(layer, x, conv, state):
    """[batch, 1, hidden]; the states are advanced in place."""
    batch, keys, width, values = x.shape[0], layer.num_k_heads, layer.head_k_dim, layer.head_v_dim
    rows, z, b, a = _projected(layer, x)
    rows = flashinfer.mamba.causal_conv1d_update(rows, conv, layer.conv1d.weight.detach().squeeze(1), layer.conv1d.bias, "silu")
    q, k, v = rows.split([keys * width, keys * width, layer.num_v_heads * values], -1)
    out, _ = flashinfer.gdn_decode.gated_delta_rule_decode(q.view(batch, 1, keys, width), k.view(batch, 1, keys, width), v.view(batch, 1, -1, values), state,
                                                           layer.A_log.detach().float(), a, layer.dt_bias.detach().float(), b, use_qk_l2norm=True)
    return layer.out_proj(layer.norm(out.view(-1, values), z.reshape(-1, values)).view(batch, 1, -1))


def _mamba_step(layer, x, conv, state):
    """[batch, 1, hidden]; the states are advanced in place. The norm's gate is the op's z where the norm's groups are whole rows."""
    batch, heads, width, groups = x.shape[0], layer.num_heads, layer.head_dim, layer.n_groups
    z, rows, dt = layer.in_proj(x)[:, 0].split([layer.intermediate_size, layer.conv_dim, heads], -1)
    rows = flashinfer.mamba.causal_conv1d_update(rows, conv, layer.conv1d.weight.detach().squeeze(1), layer.conv1d.bias, layer.activation)
    y, b, c = rows.split([layer.intermediate_size, groups * layer.ssm_state_size, groups * layer.ssm_state_size], -1)
    whole = getattr(layer.norm, "group_size", layer.intermediate_size) == layer.intermediate_size and layer.norm.weight.dtype == x.dtype
    columns = lambda weight: weight.detach().to(dt.dtype)[:, None].expand(-1, width)
    decay = -layer.A_log.detach().float().exp()
    out = flashinfer.mamba.selective_state_update(
        state, y.view(batch, heads, width), dt[..., None].expand(-1, -1, width), decay[:, None, None].expand(-1, width, layer.ssm_state_size),
        b.view(batch, groups, -1), c.view(batch, groups, -1), columns(layer.D), z=z.view(batch, heads, width) if whole else None,
        dt_bias=columns(layer.dt_bias), dt_softplus=True).view(batch, -1)
    out = flashinfer.rmsnorm(out, layer.norm.weight.detach(), layer.norm.variance_epsilon) if whole else layer.norm(out, z)
    return layer.out_proj(out[:, None])


def _forward(step):
    def forward(self, hidden_states, cache_params=None, attention_mask=None, **kwargs):
        original = type(self).forward
        theirs = lambda: original(self, hidden_states, cache_params, attention_mask, **kwargs)
        states = _states(self, hidden_states, cache_params, attention_mask, kwargs)
        if states is None:
            return theirs()
        kind = (type(self), "step")
        if known(kind) is None:  # the model's own code advances the cache in the call that compares both
            states = tuple(s.clone() for s in states)
        return checked(kind, lambda: step(self, hidden_states, *states), theirs)

    return forward
