# SPDX-License-Identifier: Apache-2.0
"""Sizes of buffers of the indexer, and buckets of token counts for fused MoE: powers of two up to 256 tokens, multiples of 256 up to 2048, of 512 up to 4096, then powers
of two again. A tactic that is best for one count is taken for all of its bucket."""
from .utils import ceil_div, next_positive_power_of_2, round_up


def map_to_hybrid_bucket_uncapped(x):
    """The smallest bucket that holds x tokens."""
    if x <= 256 or x > 4096:
        return next_positive_power_of_2(x)
    return round_up(x, 256 if x <= 2048 else 512)


def map_to_hybrid_bucket(x, max_num_tokens):
    """The same, at most `max_num_tokens`."""
    return min(map_to_hybrid_bucket_uncapped(x), max_num_tokens)


def make_hybrid_bucket_mapper(max_num_tokens):
    """`map_to_hybrid_bucket` with its second argument."""
    return lambda x: map_to_hybrid_bucket(x, max_num_tokens)


def get_hybrid_num_tokens_buckets(max_num_tokens, min_num_tokens=1):
    """All buckets from that of `min_num_tokens` to `max_num_tokens`, which is the last one."""
    found, x = [], min_num_tokens
    while x <= max_num_tokens:
        found.append(map_to_hybrid_bucket(x, max_num_tokens))
        x = found[-1] + 1
    return tuple(found)


def padded_seq_len(max_seq_len):
    """The least width of indexer scores for sequences of `max_seq_len` tokens: a multiple of 256."""
    return round_up(max_seq_len, 256)


def min_block_table_width(seq_len, block_size):
    """Pages that a sequence of `seq_len` tokens needs: `seq_len / block_size`, rounded up."""
    return ceil_div(seq_len, block_size)


def make_random_topk_ids(num_experts, num_tokens, top_k, device, generator=None):
    """int32 [num_tokens, top_k]: for each token `top_k` experts of `num_experts`, no one twice.

    Raises:
        ValueError: top_k is more than num_experts
    """
    import torch

    if top_k > num_experts:
        raise ValueError(f"make_random_topk_ids: top_k is {top_k}, but must be at most num_experts, {num_experts}")
    return torch.rand(num_tokens, num_experts, device=device, generator=generator).topk(top_k, dim=1).indices.to(torch.int32)
