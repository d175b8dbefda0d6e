# SPDX-License-Identifier: Apache-2.0
"""HF transformers on this library.

    import flashinfer.integrations.transformers as fi
    model = AutoModelForCausalLM.from_pretrained(...)
    fi.apply(model)                                   # attention, norms, RoPE, gated activations, bf16 linear layers
    model.generate(...)

`register()` alone gives transformers the attention implementation "flashinfer" (`attn_implementation="flashinfer"`), also for continuous
batching, whose KV pages are read where they are. `kernelize(model)` alone maps norms and RoPE through the `kernels` package.
Inference only: gradients do not flow through the ops, so a call that needs them raises.
"""

from transformers import AttentionInterface, modeling_flash_attention_utils
from transformers.masking_utils import AttentionMaskInterface

from ._hf_attention import attention, varlen_attention
from ._hf_layers import kernelize, replace_gated_mlps
from ._hf_mask import mask
from ._hf_products import replace_products
from ._hf_steps import replace_steps

__all__ = ["NAME", "apply", "kernelize", "register", "varlen_attention"]

NAME = "flashinfer"


def register():
    """Makes `attn_implementation="flashinfer"` known to transformers. May be called again."""
    AttentionInterface.register(NAME, attention)
    AttentionMaskInterface.register(NAME, mask)
    # A name with "flash" in it is what continuous batching accepts beside its own; transformers then imports the implementation's
    # functions by name, from packages that it knows.
    loader = modeling_flash_attention_utils._lazy_imports
    if getattr(loader, "knows_flashinfer", False):
        return

    def imports(implementation, *args, **kwargs):
        if implementation != NAME:
            return loader(implementation, *args, **kwargs)
        utils = modeling_flash_attention_utils
        return None, varlen_attention, None, utils._pad_input, utils._unpad_input

    imports.knows_flashinfer = True
    modeling_flash_attention_utils._lazy_imports = imports


def apply(model, attention=True, layers=True):
    """Switches `model` to this library's attention and, with `layers`, its norms, RoPE, gated MLPs, gated-delta-rule and Mamba-2 layers
    and bf16 linear layers. Returns the model."""
    if attention:
        register()
        for module in {type(m): m for m in model.modules() if hasattr(m, "_compatible_flash_implementations")}.values():
            names = type(module)._compatible_flash_implementations
            if names is not None and NAME not in names:  # a list of those with attention sinks, among others: this one has them
                type(module)._compatible_flash_implementations = [*names, NAME]
        model.set_attn_implementation(NAME)
    if layers:
        kernelize(model)
        replace_gated_mlps(model)
        replace_steps(model)
        replace_products(model)
    return model
