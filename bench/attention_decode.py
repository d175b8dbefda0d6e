# SPDX-License-Identifier: Apache-2.0
"""Batch decode over paged KV beside the page sum and torch, all of one turn: every ratio compares neighbours in time. Torch gets
contiguous [B, H, T, D] tensors: SDPA with enable_gqa, and with the heads of a group folded into query rows.

    cmake --build build --target bench_attention_decode
    .venv/bin/python bench/attention_decode.py build/bin/bench_attention_decode [--turns 5] [--row "8 4096 32 8 128 16 bf16" ...]
"""
import argparse
import os
import statistics
import sys
import time

from side import Side

# batch, keys, query heads, KV heads, D, page size, type of the cache
ROWS = ["1 16384 32 8 128 16 bf16", "8 4096 32 8 128 16 bf16", "64 2048 32 8 128 16 bf16", "8 4096 8 8 128 16 bf16", "8 4096 64 8 128 16 bf16",
        "8 4096 128 8 128 16 bf16", "8 4096 32 8 128 16 f16", "8 4096 32 8 128 16 f32"]


def torch_side(threads):
    import torch
    torch.set_num_threads(threads)
    sets = {}
    types = {"bf16": torch.bfloat16, "f16": torch.float16, "f32": torch.float32}
    for line in sys.stdin:
        *shape, what = line.split()
        key = tuple(shape)
        if key not in sets:
            sets.clear()
            batch, keys, hq, hkv, d = map(int, shape[:5])
            k, v = (torch.randn(1, hkv, keys, d).to(types[shape[6]]).repeat(batch, 1, 1, 1) for _ in range(2))
            sets[key] = torch.randn(batch, hq, 1, d).to(k.dtype), k, v
        q, k, v = sets[key]
        start = time.perf_counter()
        if what == "folded":
            q = q.reshape(q.shape[0], k.shape[1], -1, q.shape[3])
            torch.nn.functional.scaled_dot_product_attention(q, k, v)
        else:
            torch.nn.functional.scaled_dot_product_attention(q, k, v, enable_gqa=True)
        print(f"{time.perf_counter() - start:.9f}", flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("program", nargs="?", help="bench_attention_decode")
    parser.add_argument("--turns", type=int, default=5)
    parser.add_argument("--threads", type=int, default=len(os.sched_getaffinity(0)))
    parser.add_argument("--row", action="append", help="batch keys query_heads kv_heads D page_size type")
    parser.add_argument("--torch-side", action="store_true", help=argparse.SUPPRESS)
    o = parser.parse_args()
    if o.torch_side:
        return torch_side(o.threads)
    ours = Side([o.program, "--serve"], FLASHINFER_NUM_THREADS=str(o.threads))
    torch = Side([sys.executable, __file__, "--torch-side", "--threads", str(o.threads)])
    print(f"{o.threads} threads, medians of {o.turns} turns; ratios are of one turn")
    print(f"{'batch keys Hq Hkv D page type':>32} {'us':>9} {'KV GB/s':>8} {'/pages':>7} {'/SDPA':>7} {'/folded':>8}")
    for row in o.row or ROWS:
        batch, keys, _, hkv, d, _, kind = (int(x) if x.isdigit() else x for x in row.split())
        moved = batch * keys * hkv * d * 2 * {"f32": 4, "bf16": 2, "f16": 2}.get(kind, 1)
        turns = []
        for turn in range(-1, o.turns):  # the first compiles, allocates, touches
            t = [ours.ask(row + " run", 3), ours.ask(row + " pages", 3), torch.ask(row + " sdpa", 1), torch.ask(row + " folded", 1)]
            if turn >= 0:
                turns.append(t)
        mine = statistics.median(t[0] for t in turns)
        ratio = [statistics.median(t[i] / t[0] for t in turns) for i in (1, 2, 3)]
        print(f"{row:>32} {mine * 1e6:9.0f} {moved / mine * 1e-9:8.1f} {ratio[0]:7.2f} {ratio[1]:7.1f} {ratio[2]:8.1f}", flush=True)


if __name__ == "__main__":
    main()
