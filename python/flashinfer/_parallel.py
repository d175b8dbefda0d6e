# SPDX-License-Identifier: Apache-2.0
"""Attention of sequences that are divided among ranks (`flashinfer.parallel_attention`), over torch.distributed (gloo on CPUs).

Ulysses: ranks exchange their parts so that each has all tokens of some heads, and back. Ring: each rank keeps its queries, keys and values
pass from rank to rank, and the partial results are merged. Both: the tokens of a ring's rank are those of its Ulysses group.
"""
import dataclasses
from typing import Any, Optional


@dataclasses.dataclass
class UnevenCPConfig:
    """A sequence whose length is no multiple of the number of ranks: the last ranks hold padding at their ends."""

    seq_len: Optional[int] = None  # tokens
    seq_len_padded: Optional[int] = None  # with padding, a multiple of the number of ranks
    seq_len_cur_ring_group: Any = None  # [ring_size] tokens of each rank of the ring; None without a ring

    def reset(self):
        self.__init__()


@dataclasses.dataclass
class VarlenCPConfig:
    """Several sequences one after another. Ulysses: offsets [sequences + 1]. Ring: each sequence is divided, offsets [ring_size, sequences + 1]."""

    cu_seqlens_q_cur_ulysses_group: Any = None
    cu_seqlens_kv_cur_ulysses_group: Any = None
    max_seq_len_q_cur_ulysses_group: Optional[int] = None
    max_seq_len_kv_cur_ulysses_group: Optional[int] = None
    cu_seqlens_q_cur_ring_group: Any = None
    cu_seqlens_kv_cur_ring_group: Any = None
    max_seq_len_q_cur_ring_group: Optional[int] = None
    max_seq_len_kv_cur_ring_group: Optional[int] = None

    def set_varlen_cp_config(self, cu_seqlens_q_all_ranks, cu_seqlens_kv_all_ranks, max_seq_len_q, max_seq_len_kv, ulysses_group, ring_group):
        """Keeps what `ulysses_varlen_config` or `ring_varlen_config` returned. ValueError when both groups have several ranks."""
        if _size(ulysses_group) > 1 and _size(ring_group) > 1:
            raise ValueError("VarlenCPConfig: several sequences are divided by Ulysses or by a ring, not by both")
        kind = "ring" if _size(ring_group) > 1 else "ulysses"
        for name, value in (("cu_seqlens_q", cu_seqlens_q_all_ranks), ("cu_seqlens_kv", cu_seqlens_kv_all_ranks), ("max_seq_len_q", max_seq_len_q),
                            ("max_seq_len_kv", max_seq_len_kv)):
            setattr(self, f"{name}_cur_{kind}_group", value)

    def reset(self):
        self.__init__()


def _size(group):
    """Ranks of a group; None is a group of this rank alone."""
    import torch.distributed as dist

    return 1 if group is None else dist.get_world_size(group)


def _numbers(lengths):
    return [int(n) for n in lengths]


def _offsets(lengths):
    import torch

    return torch.tensor([0, *lengths], dtype=torch.int32).cumsum(0).int()


def get_parallel_groups(ulysses_size, ring_size, device_type="cuda"):
    """(ring group, Ulysses group) of this rank, None for one of size 1: the ranks of a Ulysses group follow each other, those of a ring are
    ulysses_size apart. All ranks call it.

    Raises:
        ValueError: the number of ranks is no multiple of ulysses_size * ring_size
    """
    import torch.distributed as dist

    world = dist.get_world_size()
    if world % (ulysses_size * ring_size):
        raise ValueError(f"get_parallel_groups: there are {world} ranks, but must be a multiple of ulysses_size * ring_size, {ulysses_size} * {ring_size}")
    found = {}
    for base in range(0, world, ulysses_size * ring_size):
        for kind, groups in (("ring", [range(base + u, base + ulysses_size * ring_size, ulysses_size) for u in range(ulysses_size)]),
                             ("ulysses", [range(base + r * ulysses_size, base + (r + 1) * ulysses_size) for r in range(ring_size)])):
            for ranks in groups:
                made = dist.new_group(list(ranks)) if len(ranks) > 1 else None
                if dist.get_rank() in ranks:
                    found[kind] = made
    return found["ring"], found["ulysses"]


def uneven_cp_config(seq_len, seq_len_padded, seq_len_cur_rank, ulysses_group=None, ring_group=None):
    """int32 [ring_size]: the tokens that each rank of the ring has after the exchange of its Ulysses group; None without a ring. All ranks of
    both groups call it."""
    import torch
    import torch.distributed as dist

    if ring_group is None:
        return None
    mine = torch.tensor([seq_len_cur_rank], dtype=torch.int32)
    if ulysses_group is not None:
        dist.all_reduce(mine, group=ulysses_group)
    parts = [torch.empty_like(mine) for _ in range(_size(ring_group))]
    dist.all_gather(parts, mine, group=ring_group)
    return torch.cat(parts)


def ulysses_varlen_config(seq_lens_q, seq_lens_kv):
    """(offsets of the queries, of the keys, the longest of both) of sequences one after another."""
    q, kv = _numbers(seq_lens_q), _numbers(seq_lens_kv)
    return _offsets(q), _offsets(kv), max(q, default=0), max(kv, default=0)


def _parts(length, world):
    """Tokens of each rank: as many as the first for all but the last ones."""
    each = -(-length // world)
    return [max(min(each, length - r * each), 0) for r in range(world)]


def ring_varlen_config(seq_lens_q, seq_lens_kv, ring_group):
    """(offsets of the queries [ring_size, sequences + 1], of the keys, the longest part of both) of sequences that are divided one by one."""
    import torch

    world, made = _size(ring_group), []
    for lengths in (_numbers(seq_lens_q), _numbers(seq_lens_kv)):
        parts = [_parts(n, world) for n in lengths]
        made.append((torch.stack([_offsets([p[r] for p in parts]) for r in range(world)]), torch.tensor(max((p[0] for p in parts), default=0))))
    return made[0][0], made[1][0], made[0][1], made[1][1]


def split_varlen_input(tensor, seq_len_list, world_size, rank, tensor_layout="HND"):
    """The part of `rank` of each sequence, one after another, then zeros so that all ranks have the same length.

    Args:
        tensor: [heads, tokens, d], with tensor_layout "NHD" [tokens, heads, d]
        seq_len_list: lengths of the sequences; their sum is tokens
    """
    import torch

    at = 1 if _is_hnd("split_varlen_input", tensor_layout) else 0
    lengths = _numbers(seq_len_list)
    if sum(lengths) != tensor.shape[at]:
        raise ValueError(f"split_varlen_input: seq_len_list has {sum(lengths)} tokens, but tensor has {tensor.shape[at]}")
    pieces, start = [], 0
    for length in lengths:
        parts = _parts(length, world_size)
        pieces.append(tensor.narrow(at, start + sum(parts[:rank]), parts[rank]))
        start += length
    mine, longest = torch.cat(pieces, at), sum(-(-n // world_size) for n in lengths)
    shape = list(tensor.shape)
    shape[at] = longest - mine.shape[at]
    return torch.cat((mine, mine.new_zeros(shape)), at)


def _is_hnd(who, layout):
    if layout not in ("HND", "NHD"):
        raise ValueError(f"{who}: tensor_layout is {layout!r}, but must be 'HND' or 'NHD'")
    return layout == "HND"


def _exchange(x, group, scatter, gather):
    """Divides `x` along `scatter` among the ranks, and joins what they sent along `gather`. gloo has no all-to-all: ranks send to each other."""
    import torch
    import torch.distributed as dist

    size, me = _size(group), dist.get_rank(group)
    parts = [p.contiguous() for p in x.chunk(size, scatter)]
    if len(parts) != size or x.shape[scatter] % size:
        raise ValueError(f"ParallelAttention: {x.shape[scatter]} heads or tokens cannot be divided among {size} ranks of the Ulysses group")
    got = [parts[r] if r == me else torch.empty_like(parts[r]) for r in range(size)]
    ops = [dist.P2POp(kind, buffer, dist.get_global_rank(group, r), group) for r in range(size) if r != me
           for kind, buffer in ((dist.isend, parts[r]), (dist.irecv, got[r]))]
    for work in dist.batch_isend_irecv(ops):
        work.wait()
    return torch.cat(got, gather)


class ParallelAttention:
    """Attention without a mask of tokens divided among ranks.

    Args:
        attn_type: a name of FlashInfer's kernels, or "auto"; the device decides here
        ulysses_group, ring_group: as of `get_parallel_groups`
        uneven_cp_config: a UnevenCPConfig, for a sequence with padding
        varlen_cp_config: a VarlenCPConfig, for several sequences
        fuse_qkv: whether queries, keys and values are exchanged at once; the result is the same
    """

    def __init__(self, attn_type, ulysses_group, ring_group, uneven_cp_config=None, varlen_cp_config=None, fuse_qkv=False):
        self.attn_type, self.fuse_qkv = attn_type, fuse_qkv
        self.ulysses_group, self.ring_group = ulysses_group, ring_group
        self.uneven_cp_config, self.varlen_cp_config = uneven_cp_config, varlen_cp_config
        if varlen_cp_config is not None and _size(ulysses_group) > 1 and _size(ring_group) > 1:
            raise ValueError("ParallelAttention: several sequences are divided by Ulysses or by a ring, not by both")

    def run(self, query, key, value, tensor_layout, attn_mask=None, **kwargs):
        """This rank's rows of softmax(q . k / sqrt(d)) . v over the keys of all ranks.

        Args:
            query: [heads, tokens of the rank, d], with tensor_layout "NHD" [tokens, heads, d]; float16, bfloat16 or float32
            key, value: the same with KV heads, a divisor of heads and with Ulysses a multiple of its ranks
            attn_mask: None
            sm_scale: instead of 1 / sqrt(d)

        Returns:
            as query; rows of padding are 0

        Raises:
            ValueError: shapes or layouts other than these
            NotImplementedError: a mask, or other keyword arguments
        """
        scale = kwargs.pop("sm_scale", None)
        if attn_mask is not None or kwargs:
            raise NotImplementedError(f"ParallelAttention: {', '.join(kwargs) or 'attn_mask'} is not available: attention is over all keys")
        hnd = _is_hnd("ParallelAttention", tensor_layout)
        q, k, v = (x.transpose(0, 1) if hnd else x for x in (query, key, value))
        if _size(self.ulysses_group) > 1:
            q, k, v = (_exchange(x, self.ulysses_group, 1, 0) for x in (q, k, v))
        out = self._ring(q.contiguous(), k.contiguous(), v.contiguous(), scale)
        if _size(self.ulysses_group) > 1:
            out = _exchange(out, self.ulysses_group, 0, 1)
        return out.transpose(0, 1).contiguous() if hnd else out

    def _offsets_of(self, rank, tokens):
        """Offsets of the sequences of a rank of the ring, of queries and of keys, without padding."""
        import torch

        varlen, uneven = self.varlen_cp_config, self.uneven_cp_config
        if varlen is not None:
            if _size(self.ring_group) > 1:
                return varlen.cu_seqlens_q_cur_ring_group[rank], varlen.cu_seqlens_kv_cur_ring_group[rank]
            return varlen.cu_seqlens_q_cur_ulysses_group, varlen.cu_seqlens_kv_cur_ulysses_group
        if uneven is not None:
            tokens = int(uneven.seq_len_cur_ring_group[rank]) if _size(self.ring_group) > 1 else uneven.seq_len
        both = torch.tensor([0, tokens], dtype=torch.int32)
        return both, both

    def _ring(self, q, k, v, scale):
        import torch
        import torch.distributed as dist

        from .cascade import merge_state
        from .prefill import BatchPrefillWithRaggedKVCacheWrapper

        size = _size(self.ring_group)
        me = dist.get_rank(self.ring_group) if size > 1 else 0
        wrapper = BatchPrefillWithRaggedKVCacheWrapper(torch.empty(0, dtype=torch.uint8), "NHD")
        rows = self._offsets_of(me, q.shape[0])[0].int().cpu()
        used, state = int(rows[-1]), None
        for step in range(size):
            keys = self._offsets_of((me - step) % size, k.shape[0])[1].int().cpu()
            wrapper.plan(rows, keys, q.shape[1], k.shape[1], q.shape[2], head_dim_vo=v.shape[2], causal=False, sm_scale=scale, q_data_type=q.dtype,
                         kv_data_type=k.dtype, o_data_type=torch.float32)
            sent = self._pass_on(k, v, me, size) if step + 1 < size else None
            part = wrapper.run(q[:used], k[:int(keys[-1])], v[:int(keys[-1])], return_lse=True)
            state = part if state is None else merge_state(*state, *part)
            if sent is not None:
                k, v = sent()
        out = q.new_zeros(q.shape[0], q.shape[1], v.shape[2])
        out[:used] = state[0].to(q.dtype)
        return out

    def _pass_on(self, k, v, me, size):
        """Starts sending keys and values to the next rank; the function returns those of the one before."""
        import torch
        import torch.distributed as dist

        group, came = self.ring_group, [torch.empty_like(k), torch.empty_like(v)]
        after, before = (dist.get_global_rank(group, (me + d) % size) for d in (1, -1))
        works = dist.batch_isend_irecv([dist.P2POp(kind, x, peer, group, tag) for tag, (own, other) in enumerate(zip((k, v), came))
                                        for kind, x, peer in ((dist.isend, own, after), (dist.irecv, other, before))])

        def wait():
            for work in works:
                work.wait()
            return came

        return wait
