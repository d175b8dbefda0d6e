# SPDX-License-Identifier: Apache-2.0
"""Products of few rows with bf16 linear layers of transformers' models on CPUs, by mm_bf16 on the weights as they are."""

import types

import torch

import flashinfer

MOST_ROWS = 64  # torch's products of a prompt's rows are as fast


def product(linear, rows, out=None):
    """rows [m, in_features] times the layer's weight, plus its bias: [m, out_features], in `out` if it is given, whose rows may have a stride."""
    weight = linear.weight
    grad = torch.is_grad_enabled() and (rows.requires_grad or weight.requires_grad)
    few = 0 < rows.numel() <= MOST_ROWS * linear.in_features
    if grad or not few or not rows.dtype == weight.dtype == torch.bfloat16 or not rows.device == weight.device == torch.device("cpu"):
        own = torch.nn.functional.linear(rows, weight, linear.bias)
        return own if out is None else out.copy_(own)
    out = rows.new_empty(rows.shape[0], linear.out_features) if out is None else out
    bias = None if linear.bias is None else linear.bias.detach()
    flashinfer.mm_bf16(rows, weight.detach().t(), bias, out=out)
    return out


def _forward(self, x):
    return product(self, x.reshape(-1, self.in_features)).view(*x.shape[:-1], self.out_features)


def replace_products(model):
    """Layers of the class torch.nn.Linear whose weights are bf16 on the CPU compute by `product`. Returns the model."""
    for module in model.modules():
        own = type(module) is torch.nn.Linear and "forward" not in vars(module)
        if own and module.weight.dtype == torch.bfloat16 and module.weight.device.type == "cpu":
            module.forward = types.MethodType(_forward, module)
    return model
