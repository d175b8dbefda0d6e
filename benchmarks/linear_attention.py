# SPDX-License-Identifier: Apache-2.0
"""Delta-rule prefill (gdn: one decay a head; kda: one a key channel) against torch; accuracy of Mamba-2's scan (ssd), too.

    PYTHONPATH=python python benchmarks/linear_attention.py accuracy --tokens 8192   # errors against the recurrence in double precision
    PYTHONPATH=python python benchmarks/linear_attention.py time --tokens 2048       # in turns: ours, the same chunks in torch, the recurrence in torch

Errors are the largest ones, divided by the largest value; `times` is ours through that of the recurrence in float32."""
import argparse
import statistics
import time

import torch

import flashinfer.gdn_prefill
import flashinfer.kda
import flashinfer.mamba

WIDTH = 128


def arguments(kind, tokens, heads, dtype, seed=0):
    """Unit keys and queries [tokens, heads, width] of `dtype`, decays in f32 as their logarithms, gates."""
    generator = torch.Generator().manual_seed(seed)
    draw = lambda *shape: torch.randn(shape, generator=generator)
    unit = lambda x: x / x.norm(dim=-1, keepdim=True)
    q, k = (unit(draw(tokens, heads, WIDTH)).to(dtype) for _ in range(2))
    gate = -torch.rand((tokens, heads, WIDTH) if kind == "kda" else (tokens, heads), generator=generator) * 0.1
    v, beta = draw(tokens, heads, WIDTH).to(dtype), torch.rand(tokens, heads, generator=generator).to(dtype)
    return q, k, v, gate.to(dtype) if kind != "ssd" else -0.1 * beta.float(), beta


def ours(kind, q, k, v, gate, beta):
    tokens, heads = q.shape[:2]
    state = torch.zeros(1, heads, WIDTH, WIDTH)
    starts = torch.tensor([0, tokens], dtype=torch.int32)
    if kind == "ssd":
        out, state = flashinfer.mamba.ssd_chunk_scan(v[None], beta[None], torch.full((heads,), -0.1), k[None], q[None], state_dtype=torch.float32)[:2]
        return out[0], state[0]
    if kind == "kda":
        return flashinfer.kda.kda_recurrence(q, k, v, gate, beta, starts, use_qk_l2norm=False, state=state), state[0]
    out, state = flashinfer.gdn_prefill.chunk_gated_delta_rule(q, k, v, gate.float().exp(), beta.float(), output_final_state=True, cu_seqlens=starts)
    return out, state[0]


def recurrence(q, k, v, gate, beta, dtype, delta=True):
    """Token by token in `dtype`; outputs [tokens, heads, width] and the state [heads, V, K]. delta: what the state has of k already is taken
    from v, and q is scaled; else as Mamba's scan."""
    q, k, v, gate, beta = (x.to(dtype) for x in (q, k, v, gate, beta))
    decay = gate.exp()[:, :, None] if gate.dim() == 3 else gate.exp()[:, :, None, None]
    state, out, scale = torch.zeros(q.shape[1], WIDTH, WIDTH, dtype=dtype), [], WIDTH ** -0.5 if delta else 1.0
    for t in range(q.shape[0]):
        state = state * decay[t]
        correction = beta[t][:, None] * (v[t] - (state @ k[t][..., None])[..., 0] if delta else v[t])
        state = state + correction[..., None] * k[t][:, None]
        out.append((state @ q[t][..., None])[..., 0] * scale)
    return torch.stack(out), state


def chunks(q, k, v, gate, beta):
    """The chunk algorithm in torch, in f32."""
    size = 64 if gate.dim() == 2 else 32
    q, k, v, beta = (x.float().transpose(0, 1) for x in (q, k, v, beta))
    gate = gate.float().transpose(0, 1)
    gate = gate[..., None].expand(q.shape) if gate.dim() == 2 else gate
    state, out = torch.zeros(q.shape[0], WIDTH, WIDTH), []
    for first in range(0, q.shape[1], size):
        part = slice(first, first + size)
        qc, kc, vc, b, total = q[:, part] * WIDTH ** -0.5, k[:, part], v[:, part], beta[:, part, None], gate[:, part].cumsum(1)
        if size == 64:  # one decay a head: a factor of the products
            factor = (total[:, :, None, 0] - total[:, None, :, 0]).tril().exp().tril()
            a, p = factor * (kc @ kc.mT), factor * (qc @ kc.mT)
        else:
            between = (total[:, :, None] - total[:, None]).clamp(max=0).exp() * kc[:, None]
            a, p = torch.einsum("hik,hijk->hij", kc, between), torch.einsum("hik,hijk->hij", qc, between).tril()
        eye = torch.eye(a.shape[1])
        right = b * (vc - (kc * total.exp()) @ state.mT)
        u = torch.linalg.solve_triangular(eye + (b * a).tril(-1), right, upper=False)
        out.append((qc * total.exp()) @ state.mT + p @ u)
        state = state * total[:, -1:].exp() + u.mT @ (kc * (total[:, -1:] - total).exp())
    return torch.cat(out, 1).transpose(0, 1), state


def error(got, exact):
    return ((got.double() - exact).abs().max() / exact.abs().max()).item()


def accuracy(options):
    torch.set_num_threads(1)  # the recurrence's operations are small
    print(f"{'':14}{'output':>12}{'recurrence':>12}{'times':>7}{'state':>12}{'recurrence':>12}{'times':>7}")
    for kind in ("gdn", "kda", "ssd"):
        for dtype in (torch.float32, torch.bfloat16):
            args = arguments(kind, options.tokens, options.heads, dtype)
            exact, single = (recurrence(*args, t, kind != "ssd") for t in (torch.float64, torch.float32))
            mine = ours(kind, *args)
            row = ""
            for i in range(2):
                theirs = single[i].to(mine[i].dtype)  # rounded once, like ours
                row += f"{error(mine[i], exact[i]):12.2e}{error(theirs, exact[i]):12.2e}{error(mine[i], exact[i]) / error(theirs, exact[i]):7.2f}"
            print(f"{kind} {str(dtype).removeprefix('torch.'):<10}{row}", flush=True)


def timed(options):
    torch.set_num_threads(options.threads)
    print(f"{options.tokens} tokens, {options.heads} heads, {options.threads} threads; seconds, medians of {options.rounds} rounds in turns")
    for kind in ("gdn", "kda"):
        args = arguments(kind, options.tokens, options.heads, torch.bfloat16)
        programs = {"ours": lambda: ours(kind, *args), "chunks": lambda: chunks(*args), "recurrence": lambda: recurrence(*args, torch.float32)}
        seconds = {name: [] for name in programs}
        for _ in range(options.rounds + 1):
            for name, program in programs.items():
                begin = time.perf_counter()
                program()
                seconds[name].append(time.perf_counter() - begin)
        middle = {name: statistics.median(s[1:]) for name, s in seconds.items()}
        print(f"{kind}: " + ", ".join(f"{name} {s:.4f} ({s / middle['ours']:.1f}x)" for name, s in middle.items()))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=("accuracy", "time"))
    parser.add_argument("--tokens", type=int, default=2048)
    parser.add_argument("--heads", type=int, default=4)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--threads", type=int, default=torch.get_num_threads())
    options = parser.parse_args()
    with torch.no_grad():
        (accuracy if options.what == "accuracy" else timed)(options)


if __name__ == "__main__":
    main()
