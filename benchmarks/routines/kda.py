# SPDX-License-Identifier: Apache-2.0
"""Kimi delta attention: whole prompts of each request."""
import torch

from flashinfer import kda
from routines.case import Case, Check, dtype


def make(args, device):
    """--s_qo tokens of each request, its own row or, with --packed, one after the other; gates are computed in the kernel."""
    kind, b, h, d, tokens = dtype(args.input_dtype), args.batch_size, args.num_q_heads, args.head_size, args.batch_size * args.s_qo
    lead = (1, tokens) if args.packed else (b, args.s_qo)
    q, k, v, g = (torch.randn(*lead, h, d, device=device).to(kind) for _ in range(4))
    beta = torch.rand(*lead, h, device=device).to(kind)
    a_log, bias = torch.randn(h, device=device), torch.randn(h * d, device=device)
    starts = torch.arange(b + 1, dtype=getattr(torch, args.offsets_dtype), device=device) * args.s_qo if args.packed else None
    state = (torch.randn(b, h, d, d, device=device) * 0.1).to(dtype(args.state_dtype)) if args.has_initial_state else None

    def call(q, k, v, g, beta, state):
        return kda.recurrent_kda(q, k, v, g, beta, a_log, bias, None, state, True, use_gate_in_kernel=True, lower_bound=args.lower_bound,
                                 cu_seqlens=starts)[0]

    row = {"input_dtype": kind, "state_dtype": dtype(args.state_dtype), "seq_len": args.s_qo, "packed": args.packed,
           "has_initial_state": args.has_initial_state}
    return Case(call, (q, k, v, g, beta, state), 6.0 * tokens * h * d * d, None, row, Check(2e-2, 2e-2, share=1e-3), changes_inputs=True, uses_pdl=False)
