# SPDX-License-Identifier: Apache-2.0
"""FlashInfer's interface to Mamba-2 over whole sequences, on the op `ssd_chunk_scan`; scratch memory that its kernels ask for; states after some
rows of a replay ring, on the op `replayssm_materialize_layer`."""
import math


def _sequence_starts(seq_idx, tokens, num_seqs):
    """[N + 1] int32 from the sequence of each token."""
    import torch

    if seq_idx.dim() != 2 or tuple(seq_idx.shape) != (1, tokens):
        raise ValueError(f"SSDCombined.run: seq_idx has shape {tuple(seq_idx.shape)}, but must be (1, {tokens}) (tokens of x)")
    ids = seq_idx[0].to(torch.int64)
    readable = ids.device.type == "cpu"  # a GPU's are not waited for
    if readable and tokens and (int(ids[0]) < 0 or int(ids[-1]) >= num_seqs or bool((ids[1:] < ids[:-1]).any())):
        raise ValueError(f"SSDCombined.run: seq_idx goes from {int(ids[0])} to {int(ids[-1])}, but must not decrease and must be in [0, {num_seqs})")
    starts = torch.searchsorted(ids, torch.arange(num_seqs + 1, device=ids.device))
    return starts.to(torch.int32)


def compute_seq_chunk_cumsum(seq_idx, chunk_indices, chunk_offsets, chunk_size, num_seqs, seq_chunk_cumsum=None, tile_state=None):
    """[num_seqs + 1] int32: how many logical chunks the sequences before each one have. Logical chunk i begins at token
    chunk_indices[i] * chunk_size + chunk_offsets[i] and belongs to the sequence that seq_idx [1, tokens] gives for it. `tile_state`, scratch
    of FlashInfer's kernel, is not used."""
    import torch

    begins = chunk_indices.to(torch.int64) * chunk_size + chunk_offsets.to(torch.int64)
    readable = seq_idx.device.type == "cpu"  # a GPU's indices are not waited for
    if readable and begins.numel() and (int(begins.min()) < 0 or int(begins.max()) >= seq_idx.shape[1]):
        raise ValueError(f"compute_seq_chunk_cumsum: chunks begin at tokens {int(begins.min())} to {int(begins.max())}, but seq_idx has "
                         f"{seq_idx.shape[1]} tokens")
    ids = seq_idx[0].to(torch.int64).index_select(0, begins)
    if readable and ids.numel() and (int(ids.min()) < 0 or int(ids.max()) >= num_seqs):
        raise ValueError(f"compute_seq_chunk_cumsum: seq_idx has sequence {int(ids.max())}, but num_seqs is {num_seqs}")
    if seq_chunk_cumsum is None:
        seq_chunk_cumsum = torch.empty(num_seqs + 1, dtype=torch.int32, device=seq_idx.device)
    elif tuple(seq_chunk_cumsum.shape) != (num_seqs + 1,):
        raise ValueError(f"compute_seq_chunk_cumsum: seq_chunk_cumsum has shape {tuple(seq_chunk_cumsum.shape)}, but must be ({num_seqs + 1},)")
    counts = torch.zeros(num_seqs + 1, dtype=torch.int64, device=seq_idx.device).index_add_(0, ids + 1, torch.ones_like(ids))
    seq_chunk_cumsum.copy_(counts.cumsum(0))
    return seq_chunk_cumsum


def tile_state_size(num_seqs):
    """Elements of `tile_state` in compute_seq_chunk_cumsum: one for each sequence and one more."""
    return num_seqs + 1


class SSDCombined:
    """Mamba-2 over whole sequences for heads of one shape; results do not depend on `chunk_size` and `backend`, and any number of tokens is
    allowed. `out` is [batch, tokens, heads, headdim], or, as of FlashInfer's kernel, contiguous [batch, heads, headdim, chunks, chunk_size]; the final states are a new tensor at each run."""

    def __init__(self, chunk_size, nheads, headdim, dstate, ngroups, io_dtype=None, state_dtype=None, has_d=True, d_has_hdim=False,
                 has_initial_states=False, has_varlen=False, has_z=False, seq_idx_dtype=None, backend="cute"):
        import torch

        if backend not in ("cute", "auto"):
            raise ValueError(f"SSDCombined: backend is {backend!r}, but must be 'cute' or 'auto'")
        if ngroups < 1 or nheads % ngroups:
            raise ValueError(f"SSDCombined: ngroups is {ngroups}, but must divide nheads, {nheads}")
        self.chunk_size, self.nheads, self.headdim, self.dstate, self.ngroups = chunk_size, nheads, headdim, dstate, ngroups
        self.io_dtype, self.state_dtype = io_dtype or torch.bfloat16, state_dtype or torch.bfloat16
        self.has_d, self.d_has_hdim, self.has_z = has_d, d_has_hdim, has_z
        self.has_initial_states, self.has_varlen = has_initial_states, has_varlen
        self.seq_idx_dtype = seq_idx_dtype or torch.int64

    def _check(self, x, B, given):
        shape = (*x.shape[:2], self.nheads, self.headdim)
        if tuple(x.shape) != shape or x.dtype != self.io_dtype:
            raise ValueError(f"SSDCombined.run: x is {x.dtype} of shape {tuple(x.shape)}, but must be {self.io_dtype} [batch, tokens, {self.nheads}, "
                             f"{self.headdim}]")
        if tuple(B.shape[2:]) != (self.ngroups, self.dstate):
            raise ValueError(f"SSDCombined.run: B has shape {tuple(B.shape)}, but must be [batch, tokens, {self.ngroups}, {self.dstate}]")
        for name, (value, flag) in given.items():
            if value is not None and not getattr(self, flag):
                raise ValueError(f"SSDCombined.run: {name} is given, but {flag} is False")

    def run(self, x, dt, A, B, C, D=None, z=None, dt_bias=None, dt_softplus=False, dt_limit=(0.0, math.inf), initial_states=None, seq_idx=None,
            chunk_indices=None, chunk_offsets=None, seq_chunk_cumsum=None, update_seq_chunk_cumsum=False, checkpoint_token_indices=None,
            checkpoint_state_slots=None, checkpoint_states=None, out=None, return_final_states=True, num_seqs=None):
        """The result [batch, tokens, heads, headdim] and the final states [sequences, heads, headdim, dstate], or None. With `seq_idx` [1, tokens],
        x holds sequences one after the other; chunk_indices and chunk_offsets are needed to update seq_chunk_cumsum alone."""
        from . import mamba

        self._check(x, B, {"D": (D, "has_d"), "z": (z, "has_z"), "initial_states": (initial_states, "has_initial_states"),
                           "seq_idx": (seq_idx, "has_varlen")})
        starts = None
        if seq_idx is not None:
            tokens = x.shape[1]
            if num_seqs is None:
                num_seqs = initial_states.shape[0] if initial_states is not None else int(seq_idx.max()) + 1 if tokens else 0
            starts = _sequence_starts(seq_idx, tokens, num_seqs)
            if update_seq_chunk_cumsum and seq_chunk_cumsum is not None:
                compute_seq_chunk_cumsum(seq_idx, chunk_indices, chunk_offsets, self.chunk_size, num_seqs, seq_chunk_cumsum)
        by_chunks = None
        if out is not None and out.dim() == 5:
            by_chunks, out = self._by_tokens(x, out), None
        low, high = dt_limit
        result = mamba.ssd_chunk_scan(
            x, dt, A, B, C, D=D, z=z, dt_bias=dt_bias, dt_softplus=dt_softplus, dt_min=None if low == -math.inf else low,
            dt_max=None if high == math.inf else high, initial_states=initial_states, cu_seqlens=starts,
            checkpoint_token_indices=checkpoint_token_indices, checkpoint_state_slots=checkpoint_state_slots, checkpoint_states=checkpoint_states,
            out=out, return_final_states=return_final_states, state_dtype=self.state_dtype)
        y, final = result if return_final_states else (result, None)
        return (y, final) if by_chunks is None else (by_chunks.copy_(y), final)

    def _by_tokens(self, x, out):
        """The view [batch, tokens, heads, headdim] of [batch, heads, headdim, chunks, chunk_size]."""
        batch, tokens = x.shape[:2]
        shape = (batch, self.nheads, self.headdim, tokens // self.chunk_size, self.chunk_size)
        if tokens % self.chunk_size or tuple(out.shape) != shape or not out.is_contiguous() or out.dtype != self.io_dtype:
            raise ValueError(f"SSDCombined.run: out is {out.dtype} of shape {tuple(out.shape)}, but must be contiguous {self.io_dtype} {shape}, of whole "
                             f"chunks of the {tokens} tokens, or [batch, tokens, heads, headdim]")
        return out.permute(0, 3, 4, 1, 2).flatten(1, 2)


def ssd_combined_fwd(x, dt, A, B, C, D=None, z=None, dt_bias=None, dt_softplus=False, dt_limit=(0.0, math.inf), initial_states=None, seq_idx=None,
                     chunk_indices=None, chunk_offsets=None, seq_chunk_cumsum=None, update_seq_chunk_cumsum=False, checkpoint_token_indices=None,
                     checkpoint_state_slots=None, checkpoint_states=None, out=None, return_final_states=True, num_seqs=None):
    """SSDCombined.run for the shapes of its arguments and chunks of 128 tokens; states have the dtype of initial_states, else of
    checkpoint_states, else of x."""
    given = initial_states if initial_states is not None else checkpoint_states if checkpoint_states is not None else x
    scan = SSDCombined(128, x.shape[2], x.shape[3], B.shape[3], B.shape[2], x.dtype, given.dtype, D is not None, D is not None and D.dim() == 2,
                       initial_states is not None, seq_idx is not None, z is not None)
    return scan.run(x, dt, A, B, C, D, z, dt_bias, dt_softplus, dt_limit, initial_states, seq_idx, chunk_indices, chunk_offsets, seq_chunk_cumsum,
                    update_seq_chunk_cumsum, checkpoint_token_indices, checkpoint_state_slots, checkpoint_states, out, return_final_states, num_seqs)


def allocate_checkpointing_ssu_scratch(batch_size, num_heads, num_predicted_tokens, max_window, dtype, device):
    """cb_scaled, cumAdt_vec and cb_old of checkpointing_ssu, which the CPU does not use, in FlashInfer's shapes."""
    import torch

    padded = lambda n, unit: -(-n // unit) * unit
    tokens, window = padded(num_predicted_tokens, 16), padded(max_window, 8)
    return (torch.empty(batch_size, num_heads, 32, tokens // 2, dtype=dtype, device=device),
            torch.empty(batch_size, num_heads, tokens, dtype=torch.float32, device=device),
            torch.empty(batch_size, num_heads, 32, window // 2, dtype=dtype, device=device))


def _memory(address, shape, slot_stride, dtype):
    """A tensor over memory of the process: shape[0] slots, each without gaps."""
    import ctypes

    import torch

    inner = list(shape[1:])
    strides = [math.prod(inner[i + 1:]) for i in range(len(inner))]
    elements = (shape[0] - 1) * slot_stride + math.prod(inner)
    flat = torch.frombuffer((ctypes.c_char * (elements * dtype.itemsize)).from_address(address), dtype=torch.uint8).view(dtype)
    return flat.as_strided(tuple(shape), (slot_stride, *strides))


def _check_materialize(tables, requests, src_slots, dst_slots, state_dtype, scaled, heads, heads_per_group, max_window, ring_buffer_len, rand_seed,
                       philox_rounds):
    import torch

    function = "replayssm_materialize"
    layers = tables["state_ptrs"].numel()
    for name, table in tables.items():
        if table.device.type != "cpu":
            raise ValueError(f"{function}: {name} is on {table.device}, but only the CPU is supported")
        if table.dtype != torch.int64 or tuple(table.shape) != (layers,):
            raise ValueError(f"{function}: {name} is {table.dtype} {tuple(table.shape)}, but must be int64 ({layers},), an entry a layer")
    count = requests["ring_start"].numel()
    for name, x, shape in (*((n, x, (count,)) for n, x in requests.items()), ("src_slots", src_slots, (layers, count)), ("dst_slots", dst_slots, (layers, count))):
        if tuple(x.shape) != shape:
            raise ValueError(f"{function}: {name} has shape {tuple(x.shape)}, but must be {shape}")
    if heads_per_group < 1 or heads % heads_per_group:
        raise ValueError(f"{function}: heads_per_group is {heads_per_group}, but must divide num_heads, {heads}")
    if not 1 <= max_window <= 16 or ring_buffer_len < 1:
        raise ValueError(f"{function}: max_window is {max_window} and ring_buffer_len {ring_buffer_len}, but must be in [1, 16] and at least 1")
    if state_dtype not in (torch.float32, torch.bfloat16, torch.float16, torch.int8, torch.float8_e4m3fn):
        raise ValueError(f"{function}: state_dtype is {state_dtype}, but must be float32, bfloat16, float16, int8 or float8_e4m3fn")
    if scaled and bool((tables["state_scale_ptrs"] == 0).any()):
        raise ValueError(f"{function}: state_scale_ptrs has zeros, but {state_dtype} states have scales")
    if philox_rounds < 0 or (philox_rounds > 0 and rand_seed is None):
        raise ValueError(f"{function}: philox_rounds is {philox_rounds}, but rand_seed is None")
    active = requests["active_request_indices"].tolist()
    active = active[:active.index(-1)] if -1 in active else active
    if len(set(active)) != len(active) or any(not 0 <= i < count for i in active):
        raise ValueError(f"{function}: active_request_indices begins with {active}, but must have different requests of [0, {count})")
    for i in active:
        start, length = int(requests["ring_start"][i]), int(requests["replay_prefix_len"][i])
        if not 0 <= start < ring_buffer_len or not 0 <= length <= max_window:
            raise ValueError(f"{function}: request {i} has ring_start {start} and replay_prefix_len {length}, but must be in [0, {ring_buffer_len}) and "
                             f"[0, {max_window}]")
    return active


def replayssm_materialize(state_ptrs, state_slot_strides, x_cache_ptrs, x_cache_slot_strides, B_cache_ptrs, B_cache_slot_strides, dt_cache_ptrs,
                          dt_cache_slot_strides, A_ptrs, state_scale_ptrs, state_scale_slot_strides, src_slots, dst_slots, ring_start, replay_prefix_len,
                          active_request_indices, *, state_dtype, input_dtype, matrixA_dtype, dim, dstate, num_heads, heads_per_group, max_window,
                          ring_buffer_len, pad_slot_id=-1, rand_seed=None, philox_rounds=0, dependency_inputs=None, dependency_outputs=None):
    """Of every layer, slot dst_slots[layer, i] takes the state of src_slots[layer, i] after the first replay_prefix_len[i] rows of its ring from
    ring_start[i] on (0: a copy), for the requests i of active_request_indices up to its first -1. The tables have an address in memory and a
    stride of slots in elements for each layer: states [slots, num_heads, dim, dstate], rings of x [slots, num_heads, ring_buffer_len, dim], B
    [slots, groups, ring_buffer_len, dstate] and dt [slots, num_heads, ring_buffer_len], A [num_heads], scales [slots, num_heads, dim]. A slot
    pad_slot_id is passed over. Rings are read only. The dependency tensors are not looked at."""
    import torch

    from . import mamba

    scaled = state_dtype.itemsize == 1
    tables = dict(state_ptrs=state_ptrs, state_slot_strides=state_slot_strides, x_cache_ptrs=x_cache_ptrs, x_cache_slot_strides=x_cache_slot_strides,
                  B_cache_ptrs=B_cache_ptrs, B_cache_slot_strides=B_cache_slot_strides, dt_cache_ptrs=dt_cache_ptrs,
                  dt_cache_slot_strides=dt_cache_slot_strides, A_ptrs=A_ptrs, state_scale_ptrs=state_scale_ptrs,
                  state_scale_slot_strides=state_scale_slot_strides)
    requests = dict(ring_start=ring_start, replay_prefix_len=replay_prefix_len, active_request_indices=active_request_indices)
    active = _check_materialize(tables, requests, src_slots, dst_slots, state_dtype, scaled, num_heads, heads_per_group, max_window, ring_buffer_len,
                                rand_seed, philox_rounds)
    groups, index = num_heads // heads_per_group, torch.tensor(active, dtype=torch.int64)
    for layer in range(state_ptrs.numel()):
        entry = {name: int(table[layer]) for name, table in tables.items()}
        live = index[(src_slots[layer][index] != pad_slot_id) & (dst_slots[layer][index] != pad_slot_id)]
        if not live.numel():
            continue
        src, dst = src_slots[layer][live].to(torch.int64), dst_slots[layer][live].to(torch.int64)
        if int(min(src.min(), dst.min())) < 0:
            raise ValueError(f"replayssm_materialize: layer {layer} has slots {src.tolist()} and {dst.tolist()}, but none may be negative but pad_slot_id")
        rings = int(src.max()) + 1
        slots = max(rings, int(dst.max()) + 1)
        view = lambda name, count, *shape, dtype: _memory(entry[name + "_ptrs"], (count, *shape), entry[name + "_slot_strides"], dtype)
        mamba.replayssm_materialize_layer(
            view("state", slots, num_heads, dim, dstate, dtype=state_dtype), view("x_cache", rings, num_heads, ring_buffer_len, dim, dtype=input_dtype),
            view("B_cache", rings, groups, ring_buffer_len, dstate, dtype=input_dtype),
            view("dt_cache", rings, num_heads, ring_buffer_len, dtype=torch.float32), _memory(entry["A_ptrs"], (num_heads,), 1, matrixA_dtype), src, dst,
            ring_start[live].to(torch.int64), replay_prefix_len[live].to(torch.int64),
            state_scale=view("state_scale", slots, num_heads, dim, dtype=torch.float32) if scaled else None, pad_slot_id=pad_slot_id,
            rand_seed=rand_seed if philox_rounds else None, philox_rounds=philox_rounds or 10)
