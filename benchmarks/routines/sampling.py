# SPDX-License-Identifier: Apache-2.0
"""Softmax, samplers, renormalisation, top-k and what selects tokens or pages by it."""
import torch

import flashinfer
from routines.case import Case, Check, dtype

sampling = flashinfer.sampling
_RANDOM = {
    "sampling_from_probs": lambda a, p, s: sampling.sampling_from_probs(p, **s),
    "sampling_from_logits": lambda a, p, s: sampling.sampling_from_logits(p, **s),
    "top_k_sampling_from_probs": lambda a, p, s: sampling.top_k_sampling_from_probs(p, a.top_k, **s),
    "top_p_sampling_from_probs": lambda a, p, s: sampling.top_p_sampling_from_probs(p, a.top_p, **s),
    "top_k_top_p_sampling_from_probs":
        lambda a, p, s: sampling.top_k_top_p_sampling_from_probs(p, a.top_k, a.top_p, filter_apply_order=a.filter_apply_order, **s),
    "top_k_top_p_sampling_from_logits":
        lambda a, p, s: sampling.top_k_top_p_sampling_from_logits(p, a.top_k, a.top_p, filter_apply_order=a.filter_apply_order, **s),
    "min_p_sampling_from_probs": lambda a, p, s: sampling.min_p_sampling_from_probs(p, a.min_p, **s),
}
_RENORM = {
    "top_k_renorm_probs": lambda a, p: sampling.top_k_renorm_probs(p, a.top_k),
    "top_p_renorm_probs": lambda a, p: sampling.top_p_renorm_probs(p, a.top_p),
    "top_k_mask_logits": lambda a, p: sampling.top_k_mask_logits(p, a.top_k),
}
# Columns beside the sizes; the others of the family stay empty.
_COLUMNS = {"softmax": "temperature", "top_k_sampling_from_probs": "top_k", "top_p_sampling_from_probs": "top_p", "top_k": "top_k",
            "top_k_top_p_sampling_from_probs": "top_k top_p filter_apply_order", "min_p_sampling_from_probs": "min_p",
            "top_k_top_p_sampling_from_logits": "top_k top_p filter_apply_order", "top_k_renorm_probs": "top_k",
            "top_p_renorm_probs": "top_p", "top_k_mask_logits": "top_k", "chain_speculative_sampling": "num_speculate_tokens",
            "top_k_page_table_transform": "top_k max_len num_rows", "top_k_ragged_transform": "top_k max_len num_rows",
            "top_k_varlen": "top_k"}
_ALL = "top_k top_p min_p temperature num_speculate_tokens filter_apply_order max_len num_rows".split()


def _logits(args, device, *shape):
    return torch.randn(*shape, device=device).to(dtype(args.input_dtype))


def _probs(device, *shape):
    p = torch.rand(*shape, device=device)
    return p / p.sum(-1, keepdim=True)


def _seeds(args):
    return {"seed": args.random_seed, "offset": 0}


def _softmax(args, device):
    x = _logits(args, device, args.batch_size, args.vocab_size)
    return Case(lambda x: sampling.softmax(x, args.temperature, enable_pdl=args.enable_pdl), (x,),
                check=Check(1e-3, 1e-5, expected=lambda: [torch.softmax(x.double() / args.temperature, -1).float()]),
                peers={"torch": lambda: torch.softmax(x / args.temperature, -1, dtype=torch.float32)},
                peer_row=("softmax", f"logits=f32:{args.batch_size}x{args.vocab_size}"))


def _random(args, device):
    shape = (args.batch_size, args.vocab_size)
    x = _logits(args, device, *shape) if args.routine.endswith("logits") else _probs(device, *shape)
    return Case(lambda x: _RANDOM[args.routine](args, x, _seeds(args)), (x,), uses_pdl=False)


def _renorm(args, device):
    shape = (args.batch_size, args.vocab_size)
    x = _logits(args, device, *shape) if args.routine.endswith("logits") else _probs(device, *shape).to(dtype(args.input_dtype))
    return Case(lambda x: _RENORM[args.routine](args, x), (x,), check=Check(1e-2, 1e-6 if x.dtype == torch.float32 else 1e-2), uses_pdl=False)


def _chain(args, device):
    b, n, v = args.batch_size, args.num_speculate_tokens, args.vocab_size
    ids = torch.randint(v, (b, n), device=device, dtype=torch.int32)
    return Case(lambda draft, ids, target: sampling.chain_speculative_sampling(draft, ids, target, **_seeds(args)),
                (_probs(device, b, n, v), ids, _probs(device, b, n + 1, v)), uses_pdl=False)


def _sorted(outputs):
    """Which of equal values is taken is left open; the values are not."""
    return [outputs[0].float().sort(-1).values]


def _top_k(args, device):
    x = _logits(args, device, args.batch_size, args.vocab_size)
    return Case(lambda x: flashinfer.top_k(x, args.top_k), (x,), uses_pdl=False, peers={"torch": lambda: torch.topk(x, args.top_k)},
                check=Check(0, 0, view=_sorted, expected=lambda: [torch.topk(x, args.top_k).values.float().sort(-1).values]))


def _rows(args, device):
    rows = args.num_rows if args.num_rows is not None else args.batch_size
    return rows, _logits(args, device, rows, args.max_len), torch.full((rows,), args.max_len, dtype=torch.int32, device=device)


def _page_table(args, device):
    rows, x, lengths = _rows(args, device)
    table = torch.randint(0, 1000, (args.batch_size, args.max_len), dtype=torch.int32, device=device)
    if rows != args.batch_size:
        raise ValueError(f"num_rows is {rows}, but must be batch_size, {args.batch_size}")
    return Case(lambda x, table, lengths: flashinfer.top_k_page_table_transform(x, table, lengths, args.top_k), (x, table, lengths),
                row={"num_rows": rows}, check=Check(0, 0, view=_sorted), uses_pdl=False)


def _ragged(args, device):
    rows, x, lengths = _rows(args, device)
    offsets = torch.arange(rows, dtype=torch.int32, device=device) * args.max_len
    return Case(lambda x, offsets, lengths: flashinfer.top_k_ragged_transform(x, offsets, lengths, args.top_k), (x, offsets, lengths),
                row={"num_rows": rows}, check=Check(0, 0, view=_sorted), uses_pdl=False)


def _varlen(args, device):
    x = _logits(args, device, args.batch_size, args.max_seq_len)
    lengths = torch.full((args.batch_size,), args.max_seq_len, dtype=torch.int32, device=device)
    return Case(lambda x, lengths: flashinfer.top_k_varlen(x, lengths, args.top_k), (x, lengths), row={"max_seq_len": args.max_seq_len},
                check=Check(0, 0, view=_sorted), uses_pdl=False)


def make(args, device):
    name = args.routine
    makers = {"softmax": _softmax, "chain_speculative_sampling": _chain, "top_k": _top_k, "top_k_page_table_transform": _page_table,
              "top_k_ragged_transform": _ragged, "top_k_varlen": _varlen}
    case = (makers.get(name) or (_random if name in _RANDOM else _renorm))(args, device)
    shown = _COLUMNS.get(name, "").split()
    for column in _ALL:  # a default that the routine does not use is no figure of it
        if column not in shown:
            case.row.setdefault(column, None)
            if hasattr(args, column):
                setattr(args, column, "")
    return case
