# SPDX-License-Identifier: Apache-2.0
"""Which part of a model a rank has: `flashinfer.comm.Mapping`."""


class Mapping:
    """The place of a rank in tensor (tp), context (cp) and pipeline (pp) parallelism, and of experts within tp.

    rank = pp_rank * tp_size * cp_size + cp_rank * tp_size + tp_rank. Experts: moe_tp_size * moe_ep_size * moe_cluster_size = tp_size,
    moe_ep_rank = tp_rank mod moe_ep_size.

    Raises:
        ValueError: sizes whose product is not world_size, or a rank outside it
    """

    def __init__(self, world_size=1, rank=0, gpus_per_node=8, *, cp_size=1, cp_config=None, tp_size=1, pp_size=1, moe_cluster_size=-1,
                 moe_tp_size=-1, moe_ep_size=-1, attn_tp_size=-1, attn_cp_size=-1, auto_parallel=False, enable_attention_dp=False):
        cluster = 1 if moe_cluster_size == -1 else moe_cluster_size
        if moe_tp_size == -1 and moe_ep_size == -1:
            moe_tp_size, moe_ep_size = tp_size // cluster, 1
        elif moe_tp_size == -1:
            moe_tp_size = tp_size // (moe_ep_size * cluster)
        elif moe_ep_size == -1:
            moe_ep_size = tp_size // (moe_tp_size * cluster)
        if attn_tp_size == -1:
            attn_tp_size = cp_size * tp_size // attn_cp_size if attn_cp_size != -1 else tp_size
        if attn_cp_size == -1:
            attn_cp_size = cp_size * tp_size // attn_tp_size
        if not auto_parallel and tp_size * pp_size * cp_size != world_size:
            raise ValueError(f"world_size must equal to tp_size * pp_size * cp_size, but got {world_size} != {tp_size} * {pp_size} * {cp_size}")
        if not 0 <= rank < world_size:
            raise ValueError(f"rank is {rank}, but must be in [0, {world_size})")
        if moe_tp_size * moe_ep_size * cluster != tp_size:
            raise ValueError(f"tp_size must equal to moe_tp_size * moe_ep_size * moe_cluster_size, but got {tp_size} != "
                             f"{moe_tp_size} * {moe_ep_size} * {cluster}")
        if attn_tp_size * attn_cp_size != tp_size * cp_size:
            raise ValueError(f"tp_size * cp_size must equal to attn_tp_size * attn_cp_size, but got {tp_size} * {cp_size} != "
                             f"{attn_tp_size} * {attn_cp_size}")
        self.world_size, self.rank, self.gpus_per_node = world_size, rank, gpus_per_node
        self.tp_size, self.pp_size, self.cp_size, self.cp_config = tp_size, pp_size, cp_size, cp_config or {}
        self.moe_tp_size, self.moe_ep_size, self.moe_cluster_size = moe_tp_size, moe_ep_size, cluster
        self.attn_tp_size, self.attn_cp_size = attn_tp_size, attn_cp_size
        self.auto_parallel, self.enable_attention_dp = auto_parallel, enable_attention_dp

    # ---- this rank ----
    @property
    def tp_rank(self):
        return self.rank % self.tp_size

    @property
    def cp_rank(self):
        return self.rank % (self.tp_size * self.cp_size) // self.tp_size

    @property
    def pp_rank(self):
        return self.rank // (self.tp_size * self.cp_size)

    @property
    def moe_ep_rank(self):
        return self.tp_rank % self.moe_ep_size

    @property
    def moe_cluster_rank(self):
        return self.tp_rank % self.moe_cluster_size

    @property
    def moe_tp_rank(self):
        return self.tp_rank // (self.moe_ep_size * self.moe_cluster_size)

    @property
    def node_rank(self):
        return self.rank // self.gpus_per_node

    @property
    def local_rank(self):
        return self.rank % self.gpus_per_node

    @property
    def dp_size(self):
        return self.tp_size if self.enable_attention_dp else 1

    # ---- the ranks of its groups ----
    @property
    def tp_group(self):
        first = self.rank - self.tp_rank
        return list(range(first, first + self.tp_size))

    @property
    def cp_group(self):
        first = self.pp_rank * self.tp_size * self.cp_size + self.tp_rank
        return [first + i * self.tp_size for i in range(self.cp_size)]

    @property
    def pp_group(self):
        step = self.tp_size * self.cp_size
        return [self.rank % step + i * step for i in range(self.pp_size)]

    @property
    def moe_ep_group(self):
        first = self.rank - self.tp_rank + (self.moe_tp_rank * self.moe_cluster_size + self.moe_cluster_rank) * self.moe_ep_size
        return [first + i for i in range(self.moe_ep_size)]

    @property
    def moe_cluster_group(self):
        first = self.rank - self.tp_rank + self.moe_tp_rank * self.moe_cluster_size * self.moe_ep_size
        return [first + i for i in range(self.moe_cluster_size)]

    @property
    def moe_tp_group(self):
        first, step = self.rank - self.tp_rank + self.moe_ep_rank, self.moe_ep_size * self.moe_cluster_size
        return [first + i * step for i in range(self.moe_tp_size)]

    # ---- questions ----
    def has_tp(self):
        return self.tp_size > 1

    def has_cp(self):
        return self.cp_size > 1

    def has_pp(self):
        return self.pp_size > 1

    def has_moe_tp(self):
        return self.moe_tp_size > 1

    def has_moe_ep(self):
        return self.moe_ep_size > 1

    def has_moe_cluster(self):
        return self.moe_cluster_size > 1

    def is_first_pp_rank(self):
        return self.pp_rank == 0

    def is_last_pp_rank(self):
        return self.pp_rank == self.pp_size - 1

    def is_second_last_pp_rank(self):
        return self.pp_rank == self.pp_size - 2

    def prev_pp_rank(self):
        return (self.rank - self.tp_size * self.cp_size) % self.world_size

    def next_pp_rank(self):
        return (self.rank + self.tp_size * self.cp_size) % self.world_size

    def get_node_rank(self, rank):
        return rank // self.gpus_per_node

    def get_local_rank(self, rank):
        return rank % self.gpus_per_node

    def is_multi_node(self):
        return self.world_size > self.gpus_per_node

    def pp_layers(self, num_layers):
        """Layers of this rank: the first num_layers mod pp_size ranks have one more."""
        base, more = divmod(num_layers, self.pp_size)
        first = self.pp_rank * base + min(self.pp_rank, more)
        return list(range(first, first + base + (self.pp_rank < more)))

    def ep_experts(self, num_experts):
        """num_experts // moe_ep_size experts of this rank; the rest of the division belong to none (do not route by it)."""
        own = num_experts // self.moe_ep_size
        return list(range(self.moe_ep_rank * own, (self.moe_ep_rank + 1) * own))

    # ---- as a value ----
    def to_dict(self):
        names = ("world_size", "rank", "gpus_per_node", "cp_size", "cp_config", "tp_size", "pp_size", "moe_tp_size", "moe_cluster_size",
                 "moe_ep_size", "attn_tp_size", "attn_cp_size", "auto_parallel", "enable_attention_dp")
        return {name: getattr(self, name) for name in names}

    @classmethod
    def from_dict(cls, mapping):
        return cls(**mapping)

    def __eq__(self, other):
        return isinstance(other, Mapping) and self.to_dict() == other.to_dict()

    def __hash__(self):
        return hash(tuple((k, str(v)) for k, v in self.to_dict().items()))
