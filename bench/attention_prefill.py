# SPDX-License-Identifier: Apache-2.0
"""Causal attention of many query tokens beside torch's SDPA and the arithmetic peak, all of one turn: every ratio compares neighbours
in time. Only useful operations are counted: 4 * D for every (query, visible key, head). Torch gets contiguous [B, H, T, D] tensors
and enable_gqa; with a context it gets the boolean mask that says the same. Ours reads scattered pages of 16.

    cmake --build build --target bench_attention_prefill
    .venv/bin/python bench/attention_prefill.py build/bin/bench_attention_prefill [--turns 5] [--row "bf16 bf16 32 8 128 1 4096 0" ...]
"""
import argparse
import os
import statistics
import sys
import time

from side import Side

# dtype, KV dtype, query heads, KV heads, D, batch, new tokens, context
ROWS = [f"bf16 bf16 32 8 {d} 1 {n} 0" for d in (64, 128, 256) for n in (512, 1024, 2048, 4096, 8192)] + [
    "bf16 bf16 32 8 128 4 128 8192", "f32 f32 32 8 128 1 1024 0", "f32 f32 32 8 128 1 4096 0", "f16 f16 32 8 128 1 4096 0",
    "bf16 e4m3 32 8 128 1 4096 0", "bf16 nvfp4 32 8 128 1 4096 0", "bf16 bf16 8 8 128 1 4096 0"]


def torch_side(threads):
    import torch
    torch.set_num_threads(threads)
    sets = {}
    types = {"bf16": torch.bfloat16, "f16": torch.float16, "f32": torch.float32}
    for line in sys.stdin:
        if line not in sets:
            sets.clear()
            kind, _, hq, hkv, d, batch, new, context = (x if i < 2 else int(x) for i, x in enumerate(line.split()))
            q = torch.randn(batch, hq, new, d).to(types[kind])
            k, v = (torch.randn(batch, hkv, new + context, d).to(types[kind]) for _ in range(2))
            mask = torch.ones(new, new + context, dtype=torch.bool).tril(context) if context else None
            sets[line] = q, k, v, mask
        q, k, v, mask = sets[line]
        start = time.perf_counter()
        torch.nn.functional.scaled_dot_product_attention(q, k, v, attn_mask=mask, is_causal=mask is None, enable_gqa=True)
        print(f"{time.perf_counter() - start:.9f}", flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("program", nargs="?", help="bench_attention_prefill")
    parser.add_argument("--turns", type=int, default=5)
    parser.add_argument("--threads", type=int, default=len(os.sched_getaffinity(0)))
    parser.add_argument("--row", action="append", help="DTYPE KV HQ HKV D BATCH NEW CONTEXT")
    parser.add_argument("--no-torch", action="store_true")
    parser.add_argument("--torch-side", action="store_true", help=argparse.SUPPRESS)
    o = parser.parse_args()
    if o.torch_side:
        return torch_side(o.threads)
    ours = Side([o.program], FLASHINFER_NUM_THREADS=str(o.threads))
    single = Side([o.program], FLASHINFER_NUM_THREADS="1")
    torch = None if o.no_torch else Side([sys.executable, __file__, "--torch-side", "--threads", str(o.threads)])
    print(f"{o.threads} threads, medians of {o.turns} turns; ratios are of one turn")
    print(f"{'dtype kv hq hkv D batch new context':>38} {'ms':>9} {'GFLOP/s':>8} {'peak':>6} {'/peak':>6} {'vs torch':>9} {'vs 1 thread':>12}")
    for row in o.row or ROWS:
        kind, kv, hq, _, d, batch, new, context = row.split()
        flops = 4.0 * int(d) * int(hq) * int(batch) * sum(int(context) + i + 1 for i in range(int(new)))
        with_torch = torch and kv == kind
        calls = max(1, min(9, int(2e10 / flops)))
        for side in (ours, single):
            side.ask("run " + row)  # compiles, allocates, touches
        if with_torch:
            torch.ask(row)
        turns = []
        for _ in range(o.turns):
            peak = ours.ask("peak " + ("dot" if kind == "bf16" else "fma"))
            mine = ours.ask("run " + row, calls)
            alone = single.ask("run " + row)
            turns.append((mine, peak, alone, torch.ask(row) if with_torch else float("nan")))
        mine, peak = statistics.median(t[0] for t in turns), statistics.median(t[1] for t in turns)
        share = statistics.median(flops / t[0] * 1e-9 / t[1] for t in turns) if peak else float("nan")
        print(f"{row:>38} {mine * 1e3:9.2f} {flops / mine * 1e-9:8.1f} {peak:6.0f} {share:6.3f} "
              f"{statistics.median(t[3] / t[0] for t in turns):9.2f} {statistics.median(t[2] / t[0] for t in turns):12.2f}", flush=True)


if __name__ == "__main__":
    main()
