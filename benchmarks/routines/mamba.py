# SPDX-License-Identifier: Apache-2.0
"""The state-space step of Mamba 2: one token or several of each request, or packed sequences."""
import torch

from flashinfer import mamba
from routines.case import Case, Check, dtype


def _scalars(values, *shape):
    """One value for each head, seen as [..., nheads, *shape]."""
    return values.view(*values.shape, *(1 for _ in shape)).expand(*values.shape, *shape)


def make(args, device):
    """State [slots, nheads, dim, dstate]; x [requests, (steps,) nheads, dim], or [tokens, nheads, dim] of packed sequences."""
    heads, dim, width, steps = args.nheads, args.dim, args.dstate, args.cache_steps
    kind, weight, state_kind = dtype(args.input_dtype), dtype(args.weight_dtype), dtype(args.state_dtype)
    if args.varlen and steps < 1:
        raise ValueError(f"--cache_steps is {steps}, but --varlen needs the tokens of a sequence, at least 1")
    tokens = args.batch_size * max(1, steps)
    lead = (tokens,) if args.varlen else (args.batch_size, steps) if steps else (args.batch_size,)
    slots = max(384, 10 * args.batch_size) if device.type == "cuda" else 2 * tokens
    state = torch.randn(slots, heads, dim, width, device=device).to(state_kind)
    x = torch.randn(*lead, heads, dim, device=device).to(kind)
    b, c = (torch.randn(*lead, args.ngroups, width, device=device).to(kind) for _ in range(2))
    z = torch.randn(*lead, heads, dim, device=device).to(kind) if args.has_z else None
    dt = _scalars(torch.randn(*lead, heads, device=device).to(weight), dim)
    a = _scalars(-torch.rand(heads, device=device) - 1, dim, width)
    d, bias = _scalars(torch.randn(heads, device=device).to(weight), dim), _scalars((torch.rand(heads, device=device) - 4).to(weight), dim)
    where = torch.randperm(slots, device=device)
    options = {"dt_bias": bias, "dt_softplus": args.dt_softplus, "cache_steps": steps, "algorithm": args.algorithm}
    if args.varlen:
        options.update(state_batch_indices=where[:tokens].view(-1, steps).int(), dst_state_batch_indices=where[tokens:2 * tokens].view(
            -1, steps).int(), num_accepted_tokens=torch.ones(args.batch_size, dtype=torch.int32, device=device),
            cu_seqlens=torch.arange(args.batch_size + 1, dtype=torch.int32, device=device) * steps)
    else:
        options["state_batch_indices"] = where[:args.batch_size]

    def call(state, x, dt, b, c, z):
        return mamba.selective_state_update(state, x, dt, a, b, c, d, z=z, **options)

    moved = sum(t.nbytes for t in (x, b, c, x)) + (z.nbytes if z is not None else 0) + tokens * heads * weight.itemsize
    moved += heads * (4 + 2 * weight.itemsize) + 2 * args.batch_size * heads * dim * width * state_kind.itemsize
    row = {"state_dtype": state_kind, "weight_dtype": weight, "input_dtype": kind}
    return Case(call, (state, x, dt, b, c, z), 5.0 * tokens * heads * dim * width, moved, row, Check(2e-2, 2e-2, share=1e-3),
                changes_inputs=True, uses_pdl=False)
