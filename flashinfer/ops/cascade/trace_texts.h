// SPDX-License-Identifier: Apache-2.0
// Python of trace definitions. Log-sum-exps are to base 2.
#pragma once

namespace flashinfer::ops::cascade {

inline constexpr char kMergeStateReference[] = R"py(import torch


def reference(v_a, s_a, v_b, s_b):
    most = torch.maximum(s_a, s_b).double().nan_to_num(neginf=0.0)
    a, b = (torch.exp2(s.double() - most) for s in (s_a, s_b))
    total = a + b
    weight = torch.where(total > 0, total, torch.ones_like(total))
    merged = (v_a.double() * a[..., None] + v_b.double() * b[..., None]) / weight[..., None]
    return merged.to(v_a.dtype), (most + torch.log2(total)).float()
)py";

inline constexpr char kMergeStatesReference[] = R"py(import torch


def reference(v, s):
    most = s.double().amax(1, keepdim=True).nan_to_num(neginf=0.0)
    weights = torch.exp2(s.double() - most)
    total = weights.sum(1)
    divisor = torch.where(total > 0, total, torch.ones_like(total))
    merged = (v.double() * weights[..., None]).sum(1) / divisor[..., None]
    return merged.to(v.dtype), (most[:, 0] + torch.log2(total)).float()
)py";

}  // namespace flashinfer::ops::cascade
