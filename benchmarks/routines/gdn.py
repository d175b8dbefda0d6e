# SPDX-License-Identifier: Apache-2.0
"""The gated delta rule: a token, a few tokens, or whole prompts of each request."""
import torch

from routines.case import Case, Check, dtype


def _function(args, module, name):
    """The function; NotImplementedError where this library has only its name."""
    found = getattr(module, name)
    if hasattr(found, "not_available"):
        raise NotImplementedError(f"routine {args.routine} is not available in this library: {found.not_available}")
    return found


def _row(args, state_kind, **more):
    return {"state_dtype": state_kind, "input_dtype": dtype(args.input_dtype), "use_qk_l2norm": not args.no_qk_l2norm, **more}


def _tokens(args, device, *lead):
    """q, k, v and the two gates of each token."""
    kind, heads = dtype(args.input_dtype), max(args.num_q_heads, args.num_v_heads)

    def random(*shape):
        return torch.randn(*lead, *shape, device=device).to(kind)

    return [*(random(n, args.head_size) for n in (args.num_q_heads, args.num_k_heads, args.num_v_heads)), random(heads), random(heads)]


def _step(args, device):
    """A state [requests (twice as many with --pool_mode split), heads, d, d] of each request, changed by one or --seq_len tokens."""
    from flashinfer import gdn_decode

    tokens = (args.seq_len or 4) if args.routine.endswith("mtp") else 1
    b, d, heads, several = args.batch_size, args.head_size, max(args.num_q_heads, args.num_v_heads), args.routine.endswith("mtp")
    state_kind, split = dtype(args.state_dtype), args.pool_mode == "split"
    layout = "pretranspose" if several else args.state_layout
    q, k, v, a, beta = _tokens(args, device, b, tokens)
    a_log, bias = (torch.randn(heads, device=device) for _ in range(2))
    state = torch.randn(2 * b if split else b, heads, d, d, device=device).to(state_kind)
    where = torch.arange(b, dtype=torch.int32, device=device)
    norm, scale, bf16 = not args.no_qk_l2norm, d ** -0.5, state_kind == torch.bfloat16
    writes = args.update_state or not several or bf16
    steps = torch.zeros(b, tokens, heads, d, d, device=device) if several and args.cache_intermediate_states else None
    if layout == "nontranspose":
        function = _function(args, gdn_decode, "gated_delta_rule_decode")

        def call(state, q, k, v, a, beta):
            return function(q, k, v, state, a_log, a, bias, beta, scale, None, norm)
    elif several and not bf16:
        function = _function(args, gdn_decode, "gated_delta_rule_mtp")

        def call(state, q, k, v, a, beta):
            return function(q, k, v, state, where, a_log, a, bias, beta, scale, None, intermediate_states_buffer=steps,
                            disable_state_update=not writes, use_qk_l2norm=norm)
    else:
        function = _function(args, gdn_decode, "gated_delta_rule_decode_pretranspose")
        pool = {"initial_state_indices": where, "output_state_indices": where + b if split else None}

        def call(state, q, k, v, a, beta):
            if split or bf16:
                return function(q, k, v, None, a_log, a, bias, beta, scale, None, norm, initial_state=state, **pool)
            return function(q, k, v, state, a_log, a, bias, beta, scale, None, norm)

    moved = sum(t.nbytes for t in (q, k, v, a, beta)) + b * tokens * heads * d * q.itemsize
    moved += b * heads * d * d * state_kind.itemsize * (2 if writes else 1) + (steps.nbytes if steps is not None else 0)
    row = _row(args, state_kind, state_layout=layout, update_state=writes, pool_mode=args.pool_mode, seq_len=tokens if several else None)
    return Case(call, (state, q, k, v, a, beta), 6.0 * b * tokens * heads * d * d, moved, row,
                Check(2e-2, 2e-2, share=1e-3, view=lambda out: [out[0].float()]), changes_inputs=True, uses_pdl=False)


def _prompts(args, device):
    """--s_qo tokens of each request, one after the other, from a state of zeros; k is normalised, gates are numbers in (0, 1)."""
    from flashinfer import gdn_prefill

    function = _function(args, gdn_prefill, "chunk_gated_delta_rule")
    b, d, heads, tokens = args.batch_size, args.head_size, max(args.num_q_heads, args.num_v_heads), args.batch_size * args.s_qo
    q, k, v, _, _ = _tokens(args, device, tokens)
    k = torch.nn.functional.normalize(k.float(), dim=-1).to(k.dtype)
    g, beta = (torch.rand(tokens, heads, device=device) for _ in range(2))
    starts = torch.arange(b + 1, dtype=torch.int64, device=device) * args.s_qo
    out = torch.empty(tokens, heads, d, dtype=q.dtype, device=device)
    state = torch.empty(b, heads, d, d, device=device)

    def call(q, k, v, g, beta):
        return function(q, k, v, g, beta, d ** -0.5, None, True, starts, False, output=out, output_state=state)

    return Case(call, (q, k, v, g, beta), 4.0 * tokens * heads * d * d, None, {**_row(args, torch.float32), "seq_len": args.s_qo,
                                                                               "use_qk_l2norm": False},
                Check(2e-2, 2e-2, share=1e-3), uses_pdl=False)


def make(args, device):
    return (_prompts if args.routine == "chunk_gated_delta_rule" else _step)(args, device)
