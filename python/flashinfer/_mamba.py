# SPDX-License-Identifier: Apache-2.0
"""FlashInfer's interface to Mamba-2 over whole sequences, on the op `ssd_chunk_scan`; scratch memory that its kernels ask for."""
import math


def _sequence_starts(seq_idx, tokens, num_seqs):
    """[N + 1] int32 from the sequence of each token."""
    import torch

    if seq_idx.dim() != 2 or tuple(seq_idx.shape) != (1, tokens):
        raise ValueError(f"SSDCombined.run: seq_idx has shape {tuple(seq_idx.shape)}, but must be (1, {tokens}) (tokens of x)")
    ids = seq_idx[0].to(torch.int64)
    if tokens and (int(ids[0]) < 0 or int(ids[-1]) >= num_seqs or bool((ids[1:] < ids[:-1]).any())):
        raise ValueError(f"SSDCombined.run: seq_idx goes from {int(ids[0])} to {int(ids[-1])}, but must not decrease and must be in [0, {num_seqs})")
    starts = torch.searchsorted(ids, torch.arange(num_seqs + 1, device=ids.device))
    return starts.to(torch.int32)


def compute_seq_chunk_cumsum(seq_idx, chunk_indices, chunk_offsets, chunk_size, num_seqs, seq_chunk_cumsum=None, tile_state=None):
    """[num_seqs + 1] int32: how many logical chunks the sequences before each one have. Logical chunk i begins at token
    chunk_indices[i] * chunk_size + chunk_offsets[i] and belongs to the sequence that seq_idx [1, tokens] gives for it. `tile_state`, scratch
    of FlashInfer's kernel, is not used."""
    import torch

    begins = chunk_indices.to(torch.int64) * chunk_size + chunk_offsets.to(torch.int64)
    if begins.numel() and (int(begins.min()) < 0 or int(begins.max()) >= seq_idx.shape[1]):
        raise ValueError(f"compute_seq_chunk_cumsum: chunks begin at tokens {int(begins.min())} to {int(begins.max())}, but seq_idx has "
                         f"{seq_idx.shape[1]} tokens")
    ids = seq_idx[0].to(torch.int64)[begins]
    if ids.numel() and (int(ids.min()) < 0 or int(ids.max()) >= num_seqs):
        raise ValueError(f"compute_seq_chunk_cumsum: seq_idx has sequence {int(ids.max())}, but num_seqs is {num_seqs}")
    if seq_chunk_cumsum is None:
        seq_chunk_cumsum = torch.empty(num_seqs + 1, dtype=torch.int32, device=seq_idx.device)
    elif tuple(seq_chunk_cumsum.shape) != (num_seqs + 1,):
        raise ValueError(f"compute_seq_chunk_cumsum: seq_chunk_cumsum has shape {tuple(seq_chunk_cumsum.shape)}, but must be ({num_seqs + 1},)")
    seq_chunk_cumsum[0] = 0
    seq_chunk_cumsum[1:] = torch.bincount(ids, minlength=num_seqs).cumsum(0)
    return seq_chunk_cumsum


def tile_state_size(num_seqs):
    """Elements of `tile_state` in compute_seq_chunk_cumsum: one for each sequence and one more."""
    return num_seqs + 1


class SSDCombined:
    """Mamba-2 over whole sequences for heads of one shape; results do not depend on `chunk_size` and `backend`, and any number of tokens is
    allowed. `out` is [batch, tokens, heads, headdim]; the final states are a new tensor at each run."""

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
        low, high = dt_limit
        result = mamba.ssd_chunk_scan(
            x, dt, A, B, C, D=D, z=z, dt_bias=dt_bias, dt_softplus=dt_softplus, dt_min=None if low == -math.inf else low,
            dt_max=None if high == math.inf else high, initial_states=initial_states, cu_seqlens=starts,
            checkpoint_token_indices=checkpoint_token_indices, checkpoint_state_slots=checkpoint_state_slots, checkpoint_states=checkpoint_states,
            out=out, return_final_states=return_final_states, state_dtype=self.state_dtype)
        return result if return_final_states else (result, None)


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
