# SPDX-License-Identifier: Apache-2.0
"""One token of a gated-delta-rule layer of transformers' models (Qwen3-Next, Qwen3.5 and kin): the ops take its projections as they are,
gates before their activations and query heads that several value heads share, where the model's own code makes them in some 25 operations."""

import types

import torch

import flashinfer
import flashinfer.gdn_decode
import flashinfer.mamba

from ._hf_layers import checked, known

_MEMBERS = ("conv1d", "A_log", "dt_bias", "norm", "out_proj", "num_k_heads", "num_v_heads", "head_k_dim", "head_v_dim", "layer_idx", "activation")
_PROJECTIONS = ({"in_proj_qkv", "in_proj_z", "in_proj_b", "in_proj_a"}, {"in_proj_qkvz", "in_proj_ba"})


def replace_delta_steps(model):
    """Gated-delta-rule layers compute a token that follows others by `_step`. Returns the model."""
    for module in model.modules():
        names = set(dict(module.named_children()))
        own = getattr(module.forward, "__func__", None) is type(module).forward  # kernelize() binds it to the module, too
        if own and any(names >= p for p in _PROJECTIONS) and all(hasattr(module, name) for name in _MEMBERS):
            module.forward = types.MethodType(_forward, module)
    return model


def _states(layer, x, cache, mask, kwargs):
    """The layer's states in `cache`, (convolution's, recurrence's), if `_step` can take them; else None."""
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


def _step(layer, x, conv, state):
    """[batch, 1, hidden]; the states are advanced in place."""
    batch, keys, width, values = x.shape[0], layer.num_k_heads, layer.head_k_dim, layer.head_v_dim
    rows, z, b, a = _projected(layer, x)
    rows = flashinfer.mamba.causal_conv1d_update(rows, conv, layer.conv1d.weight.detach().squeeze(1), layer.conv1d.bias, "silu")
    q, k, v = rows.split([keys * width, keys * width, layer.num_v_heads * values], -1)
    out, _ = flashinfer.gdn_decode.gated_delta_rule_decode(q.view(batch, 1, keys, width), k.view(batch, 1, keys, width), v.view(batch, 1, -1, values), state,
                                                           layer.A_log.detach().float(), a, layer.dt_bias.detach().float(), b, use_qk_l2norm=True)
    return layer.out_proj(layer.norm(out.view(-1, values), z.reshape(-1, values)).view(batch, 1, -1))


def _forward(self, hidden_states, cache_params=None, attention_mask=None, **kwargs):
    original = type(self).forward
    theirs = lambda: original(self, hidden_states, cache_params, attention_mask, **kwargs)
    states = _states(self, hidden_states, cache_params, attention_mask, kwargs)
    if states is None:
        return theirs()
    kind = (type(self), "step")
    if known(kind) is None:  # the model's own code advances the cache in the call that compares both
        states = tuple(s.clone() for s in states)
    return checked(kind, lambda: _step(self, hidden_states, *states), theirs)
