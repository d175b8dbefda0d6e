# SPDX-License-Identifier: Apache-2.0
"""Norms and RoPE of transformers' models by the mapping of the `kernels` package, gated MLPs by their members.

Models share the names of layers, not always their arithmetic (weights that are stored less one, pairs of neighbours in RoPE). So the first
call of a layer's class computes both, ours and the model's own; where they differ by more than rounding, the model's own stays. Rounding is measured by
norms: where large terms of a sum cancel, a single element may be all rounding."""

import logging
import types

import torch
from transformers.utils import is_kernels_available

import flashinfer

from ._hf_products import product

_norms = {}  # class of a norm -> its op: weights as they are, or stored less one
_same = {}  # class of a layer (for a function: its original forward) -> whether ours computes the same


def known(kind):
    """Whether ours computes the same for this class; None before its first call."""
    return _same.get(kind)


def _error(a, b):
    """How far a is from b, as a share of b."""
    return float((a.float() - b.float()).norm() / b.float().norm().clamp_min(1e-30))


def checked(kind, ours, theirs, state=None, kept=None):
    """ours(), if it computes what theirs() does for this class. `state` is what ours updates in place, `kept` the copy that theirs does."""
    same = _same.get(kind)
    if same is False:
        return theirs()
    mine = ours()
    if same is None:
        other = theirs()
        pairs = [p for p in (zip(mine, other) if isinstance(mine, tuple) else [(mine, other)]) if p[1] is not None]
        bound = 2e-2 if pairs[0][0].dtype in (torch.bfloat16, torch.float16) else 1e-4
        _same[kind] = all(a.shape == b.shape and _error(a, b) <= bound for a, b in pairs)
        if not _same[kind]:
            if state is not None:
                state.copy_(kept)
            return other
    return mine


def has_own_forward(module):
    """Whether nothing has replaced the module's forward; kernelize() binds the class's own to modules, too."""
    return getattr(module.forward, "__func__", None) is type(module).forward


def _plain(*tensors):
    return not (torch.is_grad_enabled() and any(t.requires_grad for t in tensors))


class RMSNorm(torch.nn.Module):
    can_torch_compile = False
    has_backward = False

    def forward(self, hidden_states):
        original = type(self).forward
        eps = getattr(self, "variance_epsilon", getattr(self, "eps", None))
        if eps is None or getattr(self, "weight", None) is None or self.weight.dtype != hidden_states.dtype or hidden_states.numel() == 0:
            return original(self, hidden_states)

        rows = hidden_states.reshape(-1, hidden_states.shape[-1])
        by = lambda op: getattr(flashinfer, op)(rows, self.weight.detach(), eps).view(hidden_states.shape)
        theirs = lambda: original(self, hidden_states)
        if type(self) not in _norms:
            _norms[type(self)] = min(("rmsnorm", "gemma_rmsnorm"), key=lambda op: _error(by(op), theirs()))
        return checked(type(self), lambda: by(_norms[type(self)]), theirs)


class _Tables:
    """cos and sin of a forward in the form of the op, made once for all its layers."""

    def __init__(self):
        self.cos = self.sin = self.made = None

    def of(self, cos, sin, batch):
        if self.cos is not cos or self.sin is not sin:
            half = cos.shape[-1] // 2
            table = torch.cat([cos[..., :half], sin[..., :half]], -1).float()
            table = table.expand(batch, -1, -1).reshape(-1, 2 * half).contiguous()
            self.cos, self.sin, self.made = cos, sin, (table, torch.arange(len(table), device=cos.device))
        return self.made


_tables = _Tables()


class RotaryPosEmb(torch.nn.Module):
    can_torch_compile = False
    has_backward = False

    def forward(self, q, k, cos, sin, unsqueeze_dim=1):
        original = type(self).forward
        theirs = lambda: original(self, q, k, cos, sin, unsqueeze_dim)
        if unsqueeze_dim != 1 or cos.shape[-1] != q.shape[-1] or cos.ndim != 3 or q.numel() == 0:
            return theirs()

        def ours():
            batch, _, length, dim = q.shape
            table, positions = _tables.of(cos, sin, batch)
            rows = [x.transpose(1, 2).reshape(batch * length, -1) for x in (q, k)]
            turned = flashinfer.apply_rope_with_cos_sin_cache(positions, *rows, dim, table, True)
            return tuple(x.view(batch, length, -1, dim).transpose(1, 2) for x in turned)

        return checked(original, ours, theirs)


class _Layer:
    """What the `kernels` package calls a repository: it loads a class."""

    def __init__(self, layer):
        self.layer = layer

    def load(self):
        return self.layer


def mapping():
    """The layers by the names under which transformers' models ask for them, for CPU and CUDA."""
    from kernels import Mode

    from ._hf_linear import LAYERS

    layers = {"RMSNorm": RMSNorm, "rotary_pos_emb": RotaryPosEmb, **LAYERS}
    return {name: {device: {Mode.INFERENCE: _Layer(layer)} for device in ("cpu", "cuda")} for name, layer in layers.items()}


def kernelize(model):
    """Replaces what `model` asks for by name (norms, RoPE, functions of linear attention) if there is a version of `kernels` that transformers takes, and its
    other modules called ...RMSNorm. Returns the model, in eval mode."""
    model.eval()
    if is_kernels_available():
        _map(model)
    for module in model.modules():
        if type(module).__name__.endswith("RMSNorm") and has_own_forward(module):
            module.forward = types.MethodType(RMSNorm.forward, module)
    return model


def _map(model):
    from kernels import Mode, kernelize as replace, use_kernel_mapping

    log = logging.getLogger("kernels.layer.layer")  # warns of each layer that keeps its own forward
    level = log.level
    log.setLevel(logging.ERROR)
    try:
        with use_kernel_mapping(mapping(), inherit_mapping=False):
            replace(model, mode=Mode.INFERENCE, device=next(model.parameters()).device.type, use_fallback=True)
    finally:
        log.setLevel(level)


# ---- gated MLPs, which have no name in the mapping that a model asks for ----

_GATES = {"SiLUActivation": "silu_and_mul", "SiLU": "silu_and_mul", "GELUTanh": "gelu_tanh_and_mul", "PytorchGELUTanh": "gelu_tanh_and_mul",
          "GELUActivation": "gelu_and_mul"}


def replace_gated_mlps(model):
    """Modules of gate_proj, up_proj, down_proj (or gate_up_proj, down_proj) and a known activation compute it in one op."""
    for module in model.modules():
        gate = _GATES.get(type(getattr(module, "act_fn", getattr(module, "activation_fn", None))).__name__)
        members = dict(module.named_children())
        linear = lambda name: type(members.get(name)) is torch.nn.Linear
        if not gate or not linear("down_proj") or "forward" in vars(module):
            continue
        if linear("gate_proj") and linear("up_proj"):
            module.forward = types.MethodType(_two_products(getattr(flashinfer, gate)), module)
        elif linear("gate_up_proj"):
            module.forward = types.MethodType(_one_product(getattr(flashinfer, gate)), module)
    return model


def _two_products(gate):  # a call with more than x (Zamba2's adapter of a layer) is the model's own
    def forward(self, x, *args, **kwargs):
        original = type(self).forward
        if args or kwargs or not _plain(x, self.gate_proj.weight):
            return original(self, x, *args, **kwargs)

        def ours():
            rows, width = x.reshape(-1, x.shape[-1]), self.gate_proj.out_features
            both = rows.new_empty(rows.shape[0], 2 * width)
            for linear, part in ((self.gate_proj, both[:, :width]), (self.up_proj, both[:, width:])):
                product(linear, rows, part)
            return self.down_proj(gate(both)).view(*x.shape[:-1], -1)

        return checked((type(self), gate), ours, lambda: original(self, x))

    return forward


def _one_product(gate):
    def forward(self, x, *args, **kwargs):
        original = type(self).forward
        if args or kwargs or not _plain(x, self.gate_up_proj.weight):
            return original(self, x, *args, **kwargs)
        return checked((type(self), gate), lambda: self.down_proj(gate(self.gate_up_proj(x))), lambda: original(self, x))

    return forward
