# SPDX-License-Identifier: Apache-2.0
"""vLLM's bf16 linear layers and vocabulary by mm_bf16, with weights that are packed when vLLM has loaded them."""

import torch
from vllm.model_executor.layers import utils

import flashinfer


class _Linear:
    """layer.cpu_linear of a weight [n, k]."""

    def __init__(self, weight):
        self.n, self.k = weight.shape
        self.packed = flashinfer.prepare_mm_weights(weight.t())

    def __call__(self, x, weight, bias):
        """x [..., k] -> [..., n]; `weight` is vLLM's, which is empty by now."""
        out = x.new_empty((*x.shape[:-1], self.n))
        if out.numel():
            flashinfer.mm_bf16(x.reshape(-1, self.k), self.packed, bias, out=out.view(-1, self.n))
        return out


def _dispatch(stock):
    def dispatch(layer, remove_weight):
        weight = layer.weight
        if weight.is_meta or weight.ndim != 2 or weight.dtype != torch.bfloat16:
            return stock(layer, remove_weight)
        layer.cpu_linear = _Linear(weight.detach())
        if remove_weight:
            layer.weight = torch.nn.Parameter(weight.new_empty(0), requires_grad=False)

    dispatch.stock = stock
    return dispatch


def register():
    """Replaces the function by which vLLM prepares the weights of a linear layer. May be called again."""
    if not hasattr(utils.dispatch_cpu_unquantized_gemm, "stock"):
        utils.dispatch_cpu_unquantized_gemm = _dispatch(utils.dispatch_cpu_unquantized_gemm)
