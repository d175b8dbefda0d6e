# SPDX-License-Identifier: Apache-2.0
"""Attention of one request in double precision, for tests of the attention functions."""
import math

import torch


def attention(q, k, v, scale, visible):
    """out [rows, H, Dv] and LSE to base 2 [rows, H] of one request in double precision; visible [rows, keys]."""
    group = q.shape[1] // k.shape[1]
    k, v = (t.double().repeat_interleave(group, 1) for t in (k, v))
    logits = torch.einsum("ihd,jhd->hij", q.double(), k) * scale
    logits = logits.masked_fill(~visible, -math.inf)
    out = torch.einsum("hij,jhd->ihd", torch.softmax(logits, -1).nan_to_num(), v)
    return out, torch.logsumexp(logits, -1).T / math.log(2)


def causal(rows, keys):
    return torch.arange(keys) <= torch.arange(rows)[:, None] + keys - rows
