# SPDX-License-Identifier: Apache-2.0
"""flashinfer.parallel_attention on four processes (gloo), against attention of the whole sequence."""
import sys

import pytest
import torch
import torch.distributed as dist
import torch.multiprocessing as mp
import torch.nn.functional as F
from conftest import ROOT

RANKS = 4


def sample(heads, kv_heads, tokens, d=64):
    g = torch.Generator().manual_seed(1)
    return [torch.randn(h, tokens, d, generator=g).bfloat16() for h in (heads, kv_heads, kv_heads)]


def attention(q, k, v, lengths=None):
    """Each sequence for itself."""
    group, parts = q.shape[0] // k.shape[0], []
    for a, b, c in zip(*(x.double().split(lengths or [x.shape[1]], 1) for x in (q, k, v))):
        parts.append(F.scaled_dot_product_attention(a[None], b.repeat_interleave(group, 0)[None], c.repeat_interleave(group, 0)[None])[0])
    return torch.cat(parts, 1)


def same(got, want, what):
    assert got.shape == want.shape and (got.double() - want).abs().max() < 0.02, what


def even(pa, rank, ulysses, ring, layout):
    q, k, v = sample(8, 4, 96)
    turned = (lambda x: x.transpose(0, 1).contiguous()) if layout == "NHD" else (lambda x: x)
    rings, groups = pa.get_parallel_groups(ulysses, ring, "cpu")
    parts = [turned(x.chunk(RANKS, 1)[rank]) for x in (q, k, v)]
    same(turned(pa.ParallelAttention("auto", groups, rings).run(*parts, layout)), attention(q, k, v).chunk(RANKS, 1)[rank], (ulysses, ring, layout))


def uneven(pa, rank, ulysses, ring):
    padding, (q, k, v) = 3, sample(8, 8, 96)
    rings, groups = pa.get_parallel_groups(ulysses, ring)
    mine = pa.uneven_cp_config(96 - padding, 96, 24 - (padding if rank == RANKS - 1 else 0), groups, rings)
    config = pa.UnevenCPConfig(96 - padding, 96, mine)
    got = pa.ParallelAttention("cutlass", groups, rings, uneven_cp_config=config).run(*(x.chunk(RANKS, 1)[rank] for x in (q, k, v)), "HND")
    want = F.pad(attention(*(x[:, :-padding] for x in (q, k, v))), (0, 0, 0, padding))
    same(got, want.chunk(RANKS, 1)[rank], ("uneven", ulysses, ring))


def several(pa, rank):
    lengths = [31, 24, 27, 10, 26]
    q, k, v = sample(4, 4, sum(lengths))
    rings, groups = pa.get_parallel_groups(1, RANKS)
    config = pa.VarlenCPConfig()
    config.set_varlen_cp_config(*pa.ring_varlen_config(torch.tensor(lengths), lengths, rings), groups, rings)
    parts = [pa.split_varlen_input(x, lengths, RANKS, rank) for x in (q, k, v)]
    got = pa.ParallelAttention("auto", groups, rings, varlen_cp_config=config).run(*parts, "HND")
    same(got, pa.split_varlen_input(attention(q, k, v, lengths), lengths, RANKS, rank), "ring of several sequences")
    lengths = [31, 65]
    q, k, v = sample(4, 4, 96)
    rings, groups = pa.get_parallel_groups(RANKS, 1)
    config = pa.VarlenCPConfig(*pa.ulysses_varlen_config(lengths, lengths))
    got = pa.ParallelAttention("auto", groups, rings, varlen_cp_config=config).run(*(x.chunk(RANKS, 1)[rank] for x in (q, k, v)), "HND")
    same(got, attention(q, k, v, lengths).chunk(RANKS, 1)[rank], "Ulysses of several sequences")


def run(rank, folder):
    torch.set_num_threads(1)
    sys.path.insert(0, str(ROOT / "python"))
    dist.init_process_group("gloo", init_method=f"file://{folder}/ranks", rank=rank, world_size=RANKS)
    from flashinfer import parallel_attention as pa

    for ulysses, ring in ((4, 1), (1, 4), (2, 2)):
        for layout in ("HND", "NHD"):
            even(pa, rank, ulysses, ring, layout)
        uneven(pa, rank, ulysses, ring)
    several(pa, rank)
    with pytest.raises(ValueError, match=r"there are 4 ranks, but must be a multiple of ulysses_size \* ring_size, 3 \* 1"):
        pa.get_parallel_groups(3, 1)
    dist.destroy_process_group()


def test_four_ranks(tmp_path):
    mp.spawn(run, (str(tmp_path),), RANKS)


def test_configurations():
    """The example of FlashInfer's documentation."""
    from flashinfer import parallel_attention as pa

    lengths = [1021, 1024, 1027]
    parts = [pa.split_varlen_input(torch.arange(sum(lengths)).float().view(1, -1, 1), lengths, 4, r) for r in range(4)]
    assert [p.shape[1] for p in parts] == [769] * 4 and parts[3][0, 253, 0] == 1021 + 768 and parts[3][0, 765:].sum() == 0
    cq, ckv, longest_q, longest_kv = pa.ulysses_varlen_config(lengths, [1, 2, 3])
    assert (cq.tolist(), ckv.tolist(), longest_q, longest_kv) == ([0, 1021, 2045, 3072], [0, 1, 3, 6], 1027, 3)
    with pytest.raises(ValueError, match="seq_len_list has 5 tokens, but tensor has 4"):
        pa.split_varlen_input(torch.zeros(1, 4, 1), [5], 2, 0)
    with pytest.raises(NotImplementedError, match="attn_mask is not available"):
        pa.ParallelAttention("auto", None, None).run(None, None, None, "HND", attn_mask=1)
