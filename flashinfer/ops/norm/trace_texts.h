// SPDX-License-Identifier: Apache-2.0
// Python of trace definitions.
#pragma once

namespace flashinfer::ops::norm {

inline constexpr char kRmsNormReference[] = R"py(import torch


def reference(hidden_states, weight, eps=1e-6):
    x = hidden_states.double()
    x = x * torch.rsqrt(x.square().mean(-1, keepdim=True) + eps)
    return (x * weight.double()).to(hidden_states.dtype)
)py";

inline constexpr char kFusedAddRmsNormReference[] = R"py(import torch


def reference(hidden_states, residual, weight, eps=1e-6):
    total = hidden_states.double() + residual.double()
    x = total * torch.rsqrt(total.square().mean(-1, keepdim=True) + eps)
    return (x * weight.double()).to(hidden_states.dtype), total.to(residual.dtype)
)py";

inline constexpr char kGemmaRmsNormReference[] = R"py(import torch


def reference(hidden_states, weight, eps=1e-6):
    x = hidden_states.double()
    x = x * torch.rsqrt(x.square().mean(-1, keepdim=True) + eps)
    return (x * (1 + weight.double())).to(hidden_states.dtype)
)py";

inline constexpr char kGemmaFusedAddRmsNormReference[] = R"py(import torch


def reference(hidden_states, residual, weight, eps=1e-6):
    total = hidden_states.double() + residual.double()
    x = total * torch.rsqrt(total.square().mean(-1, keepdim=True) + eps)
    return (x * (1 + weight.double())).to(hidden_states.dtype), total.to(residual.dtype)
)py";

}  // namespace flashinfer::ops::norm
