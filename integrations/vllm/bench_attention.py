# SPDX-License-Identifier: Apache-2.0
"""Times vLLM's CPU attention and this plugin's on one step of prompts (or of single tokens), in turns in one process: the cache is written, attention runs.

    python bench_attention.py [--requests 8] [--tokens 700] [--earlier 0] [--heads 9,3,64] [--rounds 30] [--threads 2]

The step's metadata (vLLM's schedule, the plugin's plan) is made once, as for the layers of a step, and is not timed."""

import argparse
import os
import statistics
import time

import torch

BLOCK = 128  # vLLM's on CPUs


class Step:
    """Requests with new tokens behind earlier ones, in blocks in any order; caches of equal numbers."""

    def __init__(self, a):
        self.heads, self.kv_heads, self.dim = map(int, a.heads.split(","))
        self.requests, self.rows, length = a.requests, a.requests * a.tokens, a.tokens + a.earlier
        self.per = -(-length // BLOCK)
        g = torch.Generator().manual_seed(0)
        rows = lambda heads: torch.randn(self.rows, heads, self.dim, generator=g).bfloat16()
        self.q, self.k, self.v = rows(self.heads), rows(self.kv_heads), rows(self.kv_heads)
        self.table = torch.randperm(a.requests * self.per, generator=g).int().view(a.requests, self.per)
        self.lengths = torch.full((a.requests,), length, dtype=torch.int32)
        self.starts = torch.arange(a.requests + 1, dtype=torch.int32) * a.tokens
        places = torch.arange(a.earlier, length)
        self.slots = (self.table[:, places // BLOCK].long() * BLOCK + places % BLOCK).flatten()
        self.scale, self.decode = self.dim**-0.5, a.tokens == 1
        self.fill = torch.randn(a.requests * self.per, self.kv_heads, 2 * BLOCK, self.dim, generator=g).bfloat16()

    def cache(self):
        return tuple(self.fill.clone().chunk(2, dim=2))


def vllm(s):
    """(its kernel's name, a call of its attention, the output)"""
    from vllm import _custom_ops as ops
    from vllm.v1.attention.backends.cpu_attn import _get_attn_isa

    isa, (keys, values), out = _get_attn_isa(torch.bfloat16, BLOCK, s.dim, "auto"), s.cache(), torch.empty_like(s.q)
    schedule = ops.cpu_attn_get_scheduler_metadata(
        num_reqs=s.requests, num_heads=s.heads, num_kv_heads=s.kv_heads, head_dim=s.dim, seq_lens=s.lengths, dtype=torch.bfloat16,
        query_start_loc=s.starts, causal=True, sliding_window_size=-1, isa=isa, enable_kv_split=True, dynamic_causal=None, kv_cache_dtype="auto")

    def call():
        ops.cpu_attn_reshape_and_cache(s.k, s.v, keys, values, s.slots, isa, k_scale=1.0, v_scale=1.0, kv_cache_dtype="auto")
        ops.cpu_attention_with_kv_cache(
            query=s.q, key_cache=keys, value_cache=values, output=out, query_start_loc=s.starts, seq_lens=s.lengths, scale=s.scale, causal=True,
            alibi_slopes=None, sliding_window=-1, block_table=s.table, softcap=0, scheduler_metadata=schedule, s_aux=None, dynamic_causal=None, k_scale=1.0,
            v_scale=1.0, kv_cache_dtype="auto")

    return isa, call, out


def plugin(s):
    """(a call of the plugin's attention, the output)"""
    import flashinfer

    cache, out, workspace = s.cache(), torch.empty_like(s.q), torch.empty(0, dtype=torch.uint8)
    indptr, indices, last = torch.arange(s.requests + 1, dtype=torch.int32) * s.per, s.table.flatten(), (s.lengths - 1) % BLOCK + 1
    batch, positions = flashinfer.get_batch_indices_positions(s.starts, s.lengths, s.rows)
    shape = (s.heads, s.kv_heads, s.dim, BLOCK)
    kinds = {"q_data_type": torch.bfloat16, "kv_data_type": torch.bfloat16, "sm_scale": s.scale}
    if s.decode:
        wrapper = flashinfer.BatchDecodeWithPagedKVCacheWrapper(workspace, "HND")
        wrapper.plan(indptr, indices, last, *shape, **kinds)
    else:
        wrapper = flashinfer.BatchPrefillWithPagedKVCacheWrapper(workspace, "HND")
        wrapper.plan(s.starts, indptr, indices, last, *shape, causal=True, **kinds)

    def call():
        flashinfer.append_paged_kv_cache(s.k, s.v, batch, positions, cache, indices, indptr, last, "HND")
        wrapper.run(s.q, cache, out=out)

    return call, out


def in_turns(calls, rounds):
    """Seconds of each call, by rounds; the first two rounds, which compile kernels and fill caches, are left out."""
    times = [[] for _ in calls]
    for i in range(rounds + 2):
        for call, seconds in zip(calls, times):
            begin = time.perf_counter()
            call()
            if i >= 2:
                seconds.append(time.perf_counter() - begin)
    return times


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--requests", type=int, default=8)
    parser.add_argument("--tokens", type=int, default=700, help="new tokens of each request; 1: decode")
    parser.add_argument("--earlier", type=int, default=0, help="tokens of each request that are in the cache")
    parser.add_argument("--heads", default="9,3,64", help="query heads, KV heads, head dim")
    parser.add_argument("--rounds", type=int, default=30)
    parser.add_argument("--threads", type=int, default=2)
    a = parser.parse_args()
    os.environ["FLASHINFER_NUM_THREADS"] = str(a.threads)  # read when flashinfer is imported, below
    torch.set_num_threads(a.threads)
    step = Step(a)
    isa, theirs, their_out = vllm(step)
    ours, our_out = plugin(step)
    times = in_turns([theirs, ours], a.rounds)
    if a.earlier == 0:  # vLLM packs keys in its blocks: what fills them means other numbers there
        difference = (their_out.float() - our_out.float()).abs().max().item()
        assert difference < 0.05, f"the results differ by {difference}"
    middle, best = ([f(t) * 1e3 for t in times] for f in (statistics.median, lambda t: statistics.quantiles(t, n=10)[0]))
    pairs = statistics.median(x / y for x, y in zip(*times))
    print(f"{a.requests} x {a.tokens} tokens behind {a.earlier}, {a.heads} heads and dim, {a.threads} threads, vLLM's kernel {isa}: medians {middle[0]:.2f} -> "
          f"{middle[1]:.2f} ms, {pairs:.2f} times by pairs, {best[0] / best[1]:.2f} by fastest tenths")


if __name__ == "__main__":
    main()
