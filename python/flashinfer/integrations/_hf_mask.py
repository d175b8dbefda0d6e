# SPDX-License-Identifier: Apache-2.0
"""The attention masks of transformers, in the cheapest form that says the same: none, lengths, or one bit a query and key."""

import torch
from transformers.masking_utils import sdpa_mask


def mask(batch_size, q_length, kv_length, q_offset=0, kv_offset=0, mask_function=None, attention_mask=None, local_size=None,
         allow_is_causal_skip=True, allow_is_bidirectional_skip=False, **kwargs):
    """What `attention` gets as `attention_mask`: None where `is_causal` and `sliding_window` say all, a bool [B, kv_length] of padded
    tokens beside these, else a bool [B, 1, q_length, kv_length], True where a query sees a key."""
    padding = attention_mask
    if padding is not None:
        padding = padding[:, -kv_length:] if padding.shape[-1] > kv_length and kv_offset else padding[:, kv_offset:kv_offset + kv_length]
        padding = padding.bool()
    standard = allow_is_causal_skip or allow_is_bidirectional_skip  # no function of the model's own beside the pattern
    aligned = q_offset + q_length == kv_offset + kv_length  # the last query is at the last key
    filled = padding is None or padding.shape[-1] == kv_length
    if standard and isinstance(q_offset, int) and (aligned or allow_is_bidirectional_skip) and filled:
        if local_size is None or kv_length + kv_offset <= local_size or (allow_is_causal_skip and _is_sliding(mask_function, local_size)):
            return None if padding is None or bool(padding.all()) else padding
    return sdpa_mask(batch_size, q_length, kv_length, q_offset=q_offset, kv_offset=kv_offset, mask_function=mask_function,
                     attention_mask=attention_mask, local_size=local_size, allow_is_causal_skip=False,
                     allow_is_bidirectional_skip=False, **kwargs)


def _is_sliding(function, size):
    """Whether the causal pattern with the local size is a window, not chunks: the first query after a chunk sees the key before it."""
    at = lambda q, kv: bool(function(torch.tensor(0), torch.tensor(0), torch.tensor(q), torch.tensor(kv)))
    try:
        return at(size, 1) and not at(size, 0) and at(size, size)
    except (IndexError, RuntimeError):  # the function reads tables of fewer positions
        return False
