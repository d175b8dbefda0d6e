# SPDX-License-Identifier: Apache-2.0
"""Dispatch and combine of a mixture of experts between processes of one thread each, beside torch.distributed's all_to_all (gloo) of the same rows,
in turns: medians of the slowest rank, gloo's also without what packs and adds rows. `moe_all_to_all.py [RANKS] [TOKENS] [HIDDEN]` (4 1024 4096), bf16, 64 experts, 8 a token.

gloo's side sends each token's row to each rank of its experts once, its experts' ids with it, and the rows back; then the source adds them."""
import os
import statistics
import sys
import tempfile
import time
import warnings

os.environ.update(FLASHINFER_NUM_THREADS="1", OMP_NUM_THREADS="1")

import torch
import torch.distributed as dist

import flashinfer.comm as comm

EXPERTS, TOP_K, ROUNDS = 64, 8, 9
exchanging = 0.0  # seconds of a call in all_to_all


def all_to_all(*arguments):
    global exchanging
    begin = time.perf_counter()
    dist.all_to_all_single(*arguments)
    exchanging += time.perf_counter() - begin


def of_gloo(x, ids, ranks):
    """Dispatch by all_to_all_single, the rows times 1, and combine."""
    owners = torch.zeros(x.shape[0], ranks, dtype=torch.bool).scatter_(1, ids.long() // (EXPERTS // ranks), True)
    rows = [owners[:, r].nonzero().flatten() for r in range(ranks)]
    sent = torch.tensor([len(r) for r in rows])
    received = torch.empty_like(sent)
    all_to_all(received, sent)
    order, sent, received = torch.cat(rows), sent.tolist(), received.tolist()
    got, got_ids = x.new_empty(sum(received), x.shape[1]), ids.new_empty(sum(received), TOP_K)
    all_to_all(got, x[order], received, sent)
    all_to_all(got_ids, ids[order], received, sent)
    back = x.new_empty(sum(sent), x.shape[1])
    all_to_all(back, got, sent, received)
    return torch.zeros(x.shape, dtype=torch.float32).index_add_(0, order, back.float()).to(x.dtype)


def run(rank, ranks, tokens, hidden, store):
    global exchanging
    torch.set_num_threads(1)
    dist.init_process_group("gloo", init_method=f"file://{store}", rank=rank, world_size=ranks)
    g = torch.Generator().manual_seed(rank)
    x = torch.randn(tokens, hidden, generator=g).bfloat16()
    ids = torch.rand(tokens, EXPERTS, generator=g).topk(TOP_K).indices.int()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        a2a = comm.MoeAlltoAll(comm.Mapping(world_size=ranks, rank=rank, tp_size=ranks, moe_ep_size=ranks), tokens, TOP_K, EXPERTS, hidden_size=hidden)

    def ours():
        return a2a.combine(a2a.dispatch(ids, [x, ids], tokens)[0], tokens)

    times = {ours: [], of_gloo: [], all_to_all: []}
    for i in range(ROUNDS + 1):
        for call, arguments in ((ours, ()), (of_gloo, (x, ids, ranks))):
            dist.barrier()
            exchanging = 0.0
            begin = time.perf_counter()
            result = call(*arguments)
            if i:
                times[call].append(time.perf_counter() - begin)
                times[all_to_all] += [exchanging] if call is of_gloo else []
            else:  # copies of a token, summed
                torch.testing.assert_close(result.float(), x.float() * (ids // (EXPERTS // ranks)).long().sort().values.diff(dim=1).ne(0).sum(1, True).add(1),
                                           rtol=1 / 128, atol=0)
    slowest = torch.tensor([statistics.median(t) for t in times.values()])
    dist.all_reduce(slowest, dist.ReduceOp.MAX)
    if rank == 0:
        us = [t * 1e6 for t in slowest.tolist()]
        print(f"{ranks} ranks, {tokens} tokens of {hidden} bf16, top {TOP_K} of {EXPERTS}: dispatch + combine {us[0]:.0f} us, gloo {us[1]:.0f} us "
              f"({us[1] / us[0]:.2f}x), its all_to_all alone {us[2]:.0f} us ({us[2] / us[0]:.2f}x)", flush=True)
    dist.barrier()
    os._exit(0)


def main():
    given = [int(a) for a in sys.argv[1:]]
    ranks, tokens, hidden = given + [4, 1024, 4096][len(given):]
    with tempfile.TemporaryDirectory() as folder:
        for rank in range(ranks):
            if os.fork() == 0:
                run(rank, ranks, tokens, hidden, f"{folder}/store")
        for _ in range(ranks):
            os.wait()


if __name__ == "__main__":
    main()
