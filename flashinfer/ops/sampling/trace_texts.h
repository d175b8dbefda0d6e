// SPDX-License-Identifier: Apache-2.0
// Python of trace definitions. Samples are drawn with torch's generator: they agree in distribution, not one by one.
#pragma once

namespace flashinfer::ops::sampling {

inline constexpr char kFilters[] = R"py(import torch


def keep_top_k(probs, k):
    """Zeroes what is below each row's k-th largest element."""
    k = torch.as_tensor(k, device=probs.device).expand(probs.shape[0]).long().clamp(1, probs.shape[1])
    least = probs.sort(-1, descending=True).values.gather(-1, k[:, None] - 1)
    return torch.where(probs >= least, probs, torch.zeros_like(probs))


def keep_top_p(probs, p):
    """Zeroes what lies beyond the largest elements whose sum reaches p."""
    p = torch.as_tensor(p, device=probs.device).expand(probs.shape[0]).to(probs.dtype)
    ordered, order = probs.sort(-1, descending=True)
    ordered = torch.where(ordered.cumsum(-1) - ordered < p[:, None], ordered, torch.zeros_like(ordered))
    return torch.zeros_like(probs).scatter(-1, order, ordered)
)py";

inline constexpr char kTopKTopPReference[] = R"py(def reference(probs, top_k, top_p):
    kept = keep_top_k(probs.double(), top_k)
    kept = keep_top_p(kept / kept.sum(-1, keepdim=True), top_p)
    return torch.multinomial(kept, 1)[:, 0].to(torch.int64)
)py";

inline constexpr char kTopKTopPInit[] = R"py(import torch


def init(*, batch_size, vocab_size=128256, device="cuda" if torch.cuda.is_available() else "cpu", seed=0):
    """Probabilities of random logits; 50 words, 0.9 of the mass."""
    generator = torch.Generator().manual_seed(seed)
    probs = torch.softmax(torch.randn(batch_size, vocab_size, generator=generator), -1).to(device)
    return {"probs": probs, "top_k": torch.full((batch_size,), 50, dtype=torch.int32, device=device),
            "top_p": torch.full((batch_size,), 0.9, dtype=torch.float32, device=device)}
)py";

inline constexpr char kTopKReference[] = R"py(def reference(probs, top_k):
    return torch.multinomial(keep_top_k(probs.double(), top_k), 1)[:, 0].to(torch.int64)
)py";

inline constexpr char kTopPReference[] = R"py(def reference(probs, top_p):
    return torch.multinomial(keep_top_p(probs.double(), top_p), 1)[:, 0].to(torch.int64)
)py";

inline constexpr char kSoftmaxReference[] = R"py(import torch


def reference(logits, temperature=None):
    x = logits.double()
    if temperature is not None:
        t = torch.as_tensor(temperature, dtype=torch.float64, device=logits.device)
        x = x / (t[:, None] if t.dim() else t)
    return torch.softmax(x, -1).to(logits.dtype)
)py";

}  // namespace flashinfer::ops::sampling
