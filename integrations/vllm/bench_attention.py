# SPDX-License-Identifier: Apache-2.0
"""Times vLLM's CPU attention and this plugin's on one step of prompts (or of single tokens), in turns in one process: the cache is written, attention runs.

    python bench_attention.py [--requests 8] [--tokens 700] [--earlier 0] [--heads 9,3,64] [--rounds 30] [--threads 2]

The step's metadata (vLLM's schedule, the plugin's plan) is made once, as for the layers of a step, and is not timed."""

import argparse
import statistics
import time
import types

import torch

BLOCK = 128  # vLLM's on CPUs


def ceil_div(a, b):
    return -(-a // b)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--requests", type=int, default=8)
    parser.add_argument("--tokens", type=int, default=700, help="new tokens of each request; 1: decode")
    parser.add_argument("--earlier", type=int, default=0, help="tokens of each request that are in the cache")
    parser.add_argument("--heads", default="9,3,64", help="query heads, KV heads, head dim")
    parser.add_argument("--rounds", type=int, default=30)
    parser.add_argument("--threads", type=int, default=2)
    a = parser.parse_args()
    torch.set_num_threads(a.threads)
    from vllm import _custom_ops as ops
    from vllm.v1.attention.backends.cpu_attn import _get_attn_isa

    import flashinfer

    heads, kv_heads, dim = map(int, a.heads.split(","))
    n, length = a.requests * a.tokens, a.tokens + a.earlier
    per = ceil_div(length, BLOCK)
    blocks = a.requests * per
    g = torch.Generator().manual_seed(0)
    rows = lambda h: torch.randn(n, h, dim, generator=g).bfloat16()
    q, k, v = rows(heads), rows(kv_heads), rows(kv_heads)
    table = torch.randperm(blocks, generator=g).int().view(a.requests, per)
    lengths = torch.full((a.requests,), length, dtype=torch.int32)
    starts = torch.arange(a.requests + 1, dtype=torch.int32) * a.tokens
    places = torch.arange(a.earlier, length)
    slots = (table[:, places // BLOCK].long() * BLOCK + places % BLOCK).flatten()
    scale, isa = dim**-0.5, _get_attn_isa(torch.bfloat16, BLOCK, dim, "auto")
    fill = torch.randn(blocks, kv_heads, BLOCK, 2 * dim, generator=g).bfloat16()

    theirs = [x.clone() for x in fill.view(blocks, kv_heads, 2 * BLOCK, dim).chunk(2, dim=2)]
    schedule = ops.cpu_attn_get_scheduler_metadata(
        num_reqs=a.requests, num_heads=heads, num_kv_heads=kv_heads, head_dim=dim, seq_lens=lengths, dtype=torch.bfloat16, query_start_loc=starts, causal=True,
        sliding_window_size=-1, isa=isa, enable_kv_split=True, dynamic_causal=None, kv_cache_dtype="auto")
    out = {name: torch.empty_like(q) for name in ("vllm", "plugin")}

    def vllm():
        ops.cpu_attn_reshape_and_cache(k, v, *theirs, slots, isa, k_scale=1.0, v_scale=1.0, kv_cache_dtype="auto")
        ops.cpu_attention_with_kv_cache(
            query=q, key_cache=theirs[0], value_cache=theirs[1], output=out["vllm"], query_start_loc=starts, seq_lens=lengths, scale=scale, causal=True,
            alibi_slopes=None, sliding_window=-1, block_table=table, softcap=0, scheduler_metadata=schedule, s_aux=None, dynamic_causal=None, k_scale=1.0,
            v_scale=1.0, kv_cache_dtype="auto")

    ours = tuple(x.clone() for x in fill.view(blocks, kv_heads, 2 * BLOCK, dim).chunk(2, dim=2))
    step = types.SimpleNamespace(indptr=torch.arange(a.requests + 1, dtype=torch.int32) * per, indices=table.flatten(), last=(lengths - 1) % BLOCK + 1)
    batch, positions = flashinfer.get_batch_indices_positions(starts, lengths, n)
    kinds = {"q_data_type": torch.bfloat16, "kv_data_type": torch.bfloat16, "sm_scale": scale}
    workspace = torch.empty(0, dtype=torch.uint8)
    if a.tokens == 1:
        wrapper = flashinfer.BatchDecodeWithPagedKVCacheWrapper(workspace, "HND")
        wrapper.plan(step.indptr, step.indices, step.last, heads, kv_heads, dim, BLOCK, **kinds)
    else:
        wrapper = flashinfer.BatchPrefillWithPagedKVCacheWrapper(workspace, "HND")
        wrapper.plan(starts, step.indptr, step.indices, step.last, heads, kv_heads, dim, BLOCK, causal=True, **kinds)

    def plugin():
        flashinfer.append_paged_kv_cache(k, v, batch, positions, ours, step.indices, step.indptr, step.last, "HND")
        wrapper.run(q, ours, out=out["plugin"])

    times = {f: [] for f in (vllm, plugin)}
    for i in range(a.rounds + 2):
        for f in times:
            begin = time.perf_counter()
            f()
            if i >= 2:
                times[f].append(time.perf_counter() - begin)
    if a.earlier == 0:  # vLLM's cache packs keys: what the plugin's fill means there is another cache
        difference = (out["vllm"].float() - out["plugin"].float()).abs().max().item()
        assert difference < 0.05, f"the results differ by {difference}"
    middle = {f.__name__: statistics.median(t) for f, t in times.items()}
    best = {f.__name__: statistics.quantiles(t, n=10)[0] for f, t in times.items()}
    pairs = statistics.median(x / y for x, y in zip(times[vllm], times[plugin]))
    print(f"{a.requests} x {a.tokens} tokens behind {a.earlier}, {heads}/{kv_heads} heads of {dim}, {a.threads} threads, vLLM's kernel {isa}: "
          f"vLLM {1e3 * middle['vllm']:.2f} ms, plugin {1e3 * middle['plugin']:.2f} ms; {pairs:.2f} times by pairs, {best['vllm'] / best['plugin']:.2f} by fastest tenths")


if __name__ == "__main__":
    main()
