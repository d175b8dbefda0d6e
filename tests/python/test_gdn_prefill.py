# SPDX-License-Identifier: Apache-2.0
"""The packed forms of the gated delta rule as an engine calls them: checkpoints, pools, where sequences are cut, what keeps its bytes,
errors. Results against double precision are the rows of flashinfer/ops/linear_attention/gdn/prefill_cases.cc."""
import pytest
import torch

from flashinfer import chunk_gated_delta_product, chunk_gated_delta_rule2
from flashinfer.gdn_prefill import chunk_gated_delta_rule

K = V = 32


def inputs(tokens, heads=(1, 1, 2), dtype=torch.bfloat16, seed=0, updates=1):
    g = torch.Generator().manual_seed(seed)
    make = lambda t, h, n: torch.randn(t, h, n, generator=g).to(dtype)  # noqa: E731
    h = max(heads[0], heads[2])
    return dict(q=make(tokens, heads[0], K), k=make(tokens * updates, heads[1], K), v=make(tokens * updates, heads[2], V),
                g=torch.rand(tokens, h, generator=g), beta=torch.rand(tokens * updates, h, generator=g))


def starts(*lengths):
    return torch.tensor([0, *lengths], dtype=torch.int32).cumsum(0, dtype=torch.int32)


def part(x, begin, end, updates=1):
    return {k: v[begin * (u := updates if k in ("k", "v", "beta") else 1):end * u] for k, v in x.items()}


def run(x, *lengths, f=chunk_gated_delta_rule, **options):
    options = dict(use_qk_l2norm_in_kernel=True, output_final_state=True) | options
    return f(**x, cu_seqlens=starts(*lengths), **options)


def recurrence(x, state):
    """In double precision, q and k as they are."""
    x = {k: v.double() for k, v in x.items()}
    tokens, heads = x["g"].shape
    out = torch.zeros(tokens, heads, V, dtype=torch.float64)
    state = state.double().clone()
    for t in range(tokens):
        for h in range(heads):
            q, k, v = (x[n][t, h * x[n].shape[1] // heads] for n in ("q", "k", "v"))
            s = state[h] * x["g"][t, h]
            state[h] = s = s + x["beta"][t, h] * torch.outer(v - s @ k, k)
            out[t, h] = s @ q * K ** -0.5
    return out, state


def test_zeros_among_decays_are_exact():
    x = inputs(200, dtype=torch.float32)
    x["k"] /= x["k"].norm(dim=-1, keepdim=True)
    x["g"][torch.rand(200, 2, generator=torch.Generator().manual_seed(1)) < 0.1] = 0
    x["g"][64, 0] = x["g"][127, 0] = x["g"][0, 1] = 0
    state = torch.randn(1, 2, V, K)
    out, final = run(x, 200, initial_state=state, use_qk_l2norm_in_kernel=False)
    want, want_final = recurrence(x, state[0])
    torch.testing.assert_close(out.double(), want, rtol=1e-5, atol=1e-5)
    torch.testing.assert_close(final[0].double(), want_final, rtol=1e-5, atol=1e-5)
    # Nothing of before a zero gets past it, not even NaN of the initial state.
    state[0, 1] = 1e30
    _, again = run(x, 200, initial_state=state, use_qk_l2norm_in_kernel=False)
    assert torch.equal(again[0, 1], final[0, 1])


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.float16, torch.float8_e4m3fn, torch.float8_e5m2])
def test_checkpoints_are_final_states_of_prefixes(dtype):
    x = inputs(300)
    checkpoints = torch.zeros(5, 2, V, K).to(dtype)
    final = torch.empty(2, 2, V, K).to(dtype)
    _, returned = run(x, 170, 130, output_state=final, state_checkpoints=checkpoints, checkpoint_cu_starts=torch.tensor([0, 3, 5]), checkpoint_every_n_tokens=64)
    assert returned is final
    for row, begin, end in ((0, 0, 64), (1, 0, 128), (3, 170, 234), (4, 170, 298)):
        prefix = torch.empty(1, 2, V, K).to(dtype)
        run(part(x, begin, end), end - begin, output_state=prefix)
        assert torch.equal(checkpoints[row].view(torch.uint8), prefix[0].view(torch.uint8)), row
    assert not checkpoints[2].float().any()


def test_calls_cut_at_chunks_and_the_order_of_sequences_change_no_byte():
    x = inputs(192)
    out, final = run(x, 192)
    first, state = run(part(x, 0, 128), 128)
    second, state = run(part(x, 128, 192), 64, initial_state=state)
    assert torch.equal(out, torch.cat([first, second])) and torch.equal(final, state)
    a, b = part(x, 0, 70), part(x, 70, 192)
    swapped = {k: torch.cat([b[k], a[k]]) for k in x}
    out, final = run(x, 70, 122)
    other, other_final = run(swapped, 122, 70)
    assert torch.equal(out, torch.cat([other[122:], other[:122]])) and torch.equal(final, other_final[[1, 0]])


def test_empty_sequences():
    x, state = inputs(5), torch.randn(3, 2, V, K)
    _, final = run(x, 0, 5, 0, initial_state=state)
    assert torch.equal(final[[0, 2]], state[[0, 2]])
    _, final = run(x, 0, 5, 0)
    assert not final[[0, 2]].any()
    given = torch.full((3, 2, V, K), 7.0)
    _, returned = run(x, 0, 5, 0, initial_state=state, output_state=given)
    assert returned is given and (given[[0, 2]] == 7).all() and not (given[1] == 7).all()


def test_pools():
    x, pool = inputs(80), torch.randn(4, 2, V, K)
    slots = torch.tensor([3, 1])
    want, states = run(x, 30, 50, initial_state=pool[slots].contiguous())
    apart, before = torch.zeros(4, 2, V, K), pool.clone()
    out, _ = run(x, 30, 50, initial_state=pool, output_state=apart, state_indices=slots)
    assert torch.equal(out, want) and torch.equal(apart[slots], states) and not apart[[0, 2]].any() and torch.equal(pool, before)
    wide = torch.zeros(4, 2 * V * K + 24)[:, :2 * V * K].unflatten(1, (2, V, K))
    wide.copy_(pool)
    _, returned = run(x, 30, 50, initial_state=wide, output_state=wide, state_indices=slots)
    assert returned is wide and torch.equal(wide[slots], states) and torch.equal(wide[[0, 2]], pool[[0, 2]])


def test_nan_stays_in_its_sequence_and_head():
    x, clean = inputs(100), inputs(100)
    x["v"][10, 1] = float("nan")
    out, final = run(x, 40, 60)
    want, want_final = run(clean, 40, 60)
    assert torch.equal(out[40:], want[40:]) and torch.equal(out[:, 0], want[:, 0]) and torch.equal(out[:10], want[:10])
    assert torch.equal(final[1], want_final[1]) and final[0, 1].isnan().any()


def test_a_long_sequence():
    x = inputs(8192, heads=(1, 1, 1))
    x["g"] = 0.98 + 0.02 * x["g"]
    for name in ("q", "k"):
        x[name] = (x[name].float() / x[name].float().norm(dim=-1, keepdim=True)).bfloat16()
    out, final = run(x, 8192, use_qk_l2norm_in_kernel=False)
    want, want_final = recurrence(x, torch.zeros(1, V, K))
    torch.testing.assert_close(out.double(), want, rtol=2 ** -8, atol=1e-5)
    torch.testing.assert_close(final[0].double(), want_final, rtol=1e-4, atol=1e-5)


def test_rule2_is_the_rule_for_equal_gates():
    x = inputs(90, heads=(2, 2, 2), dtype=torch.float32)
    want, want_final = run(x, 40, 50)
    beta = x["beta"][:, :, None]
    y = dict(x, g=x["g"].log()[:, :, None].expand(-1, -1, K).contiguous(), beta=beta.expand(-1, -1, K).contiguous(), w=beta.expand(-1, -1, V).contiguous())
    # n = beta v - S (beta k): the same step when both gates are beta
    out, final = run(y, 40, 50, f=chunk_gated_delta_rule2)
    torch.testing.assert_close(out, want, rtol=1e-4, atol=1e-5)
    torch.testing.assert_close(final, want_final, rtol=1e-4, atol=1e-5)


def test_a_product_of_one_is_the_rule():
    x = inputs(90)
    want, want_final = run(x, 40, 50)
    out, final = run(x, 40, 50, f=chunk_gated_delta_product)
    assert torch.equal(out, want) and torch.equal(final, want_final)


def bad(f=chunk_gated_delta_rule, tokens=64, **changes):
    x = dict(inputs(tokens), cu_seqlens=starts(tokens)) | changes
    f(**x)


@pytest.mark.parametrize("call, kind, text", [
    (lambda: bad(cu_seqlens=None), AssertionError, "cu_seqlens is None"),
    (lambda: bad(cu_seqlens=torch.tensor([0])), ValueError, "cu_seqlens has 1 elements"),
    (lambda: bad(cu_seqlens=torch.tensor([0.0, 64.0])), ValueError, "cu_seqlens.dtype is float32"),
    (lambda: bad(cu_seqlens=torch.tensor([0, 63])), ValueError, r"cu_seqlens\[1\] is 63, but q has 64 tokens"),
    (lambda: bad(cu_seqlens=torch.tensor([0, 64, 60, 64])), ValueError, "must never decrease"),
    (lambda: bad(g=torch.ones(64, 1)), ValueError, r"g is float32\[64, 1\], but must be \[64, 2\]"),
    (lambda: bad(beta=torch.ones(63, 2)), ValueError, r"beta is float32\[63, 2\]"),
    (lambda: bad(k=torch.ones(64, 3, K, dtype=torch.bfloat16)), ValueError, "q, k and v have 1, 3 and 2 heads"),
    (lambda: bad(initial_state=torch.ones(2, 2, V, K)), ValueError, r"initial_state is float32\[2, 2, 32, 32\], but must be \[1, 2, 32, 32\]"),
    (lambda: bad(backend="triton"), ValueError, "backend is 'triton'"),
    (lambda: bad(use_cp="always"), ValueError, "use_cp is 'always', but must be True, False or 'auto'"),
    (lambda: bad(max_seqlen=-1), ValueError, "nonnegative integer"),
    (lambda: bad(max_seqlen=0), ValueError, "positive when q is nonempty"),
    (lambda: bad(max_seqlen=63), ValueError, "cannot be smaller than ceil"),
    (lambda: bad(max_seqlen=65), ValueError, "cannot exceed total_seq_len"),
    (lambda: bad(checkpoint_every_n_tokens=32), ValueError, "multiple of the chunk size"),
    (lambda: bad(checkpoint_every_n_tokens=-64), ValueError, "non-negative"),
    (lambda: bad(checkpoint_every_n_tokens=64), ValueError, "must both be provided"),
    (lambda: bad(checkpoint_cu_starts=starts(1)), ValueError, "must be None"),
    (lambda: bad(checkpoint_every_n_tokens=64, state_checkpoints=torch.zeros(1, 2, V, K).half(), checkpoint_cu_starts=starts(1)), ValueError,
     "state_checkpoints must have dtype float32"),
    (lambda: bad(checkpoint_every_n_tokens=64, state_checkpoints=torch.zeros(1, 2, V, K), checkpoint_cu_starts=starts(1, 1)), ValueError,
     "checkpoint_cu_starts has 3 elements"),
    (lambda: bad(checkpoint_every_n_tokens=64, state_checkpoints=torch.zeros(1, 2, V, K), checkpoint_cu_starts=torch.tensor([1, 2])), ValueError,
     r"checkpoint_cu_starts\[0\] is 1 and sequence 0 has 1 checkpoints"),
    (lambda: bad(checkpoint_every_n_tokens=64, state_checkpoints=torch.zeros(2, 2, V, K), checkpoint_cu_starts=torch.tensor([1, 1])), ValueError,
     r"checkpoint_cu_starts\[1\] is 1, but sequence 0 has 1 checkpoints from row 1 on"),
    (lambda: bad(initial_state=torch.zeros(3, 2, V, K), state_indices=torch.tensor([1]), output_final_state=True), ValueError, "explicit output_state pool"),
    (lambda: bad(initial_state=torch.zeros(3, 2, V, K), state_indices=torch.tensor([3])), ValueError, r"state_indices\[0\] is 3"),
    (lambda: bad(cu_seqlens=starts(60, 4), initial_state=torch.zeros(3, 2, V, K), state_indices=torch.tensor([1, 1])), ValueError, "1 twice"),
    (lambda: bad(chunk_gated_delta_product, num_householder=0), ValueError, "num_householder is 0"),
    (lambda: bad(chunk_gated_delta_product, num_householder=2), ValueError, r"k.shape\[0\] is 64, but must be 128"),
    (lambda: bad(chunk_gated_delta_rule2, g=None, beta=None, cu_seqlens=None), ValueError, "cu_seqlens is None"),
    (lambda: bad(chunk_gated_delta_product, cu_seqlens=None), ValueError, "cu_seqlens is None"),
    (lambda: bad(chunk_gated_delta_product, initial_state=torch.zeros(1, 2, V, K).half()), ValueError, "initial_state.dtype is float16"),
    (lambda: bad(chunk_gated_delta_rule2, beta=None), ValueError, r"g is float32\[64, 2\], but must be \[64, 2, 32\]"),
    (lambda: bad(chunk_gated_delta_rule2, g=None, beta=None, initial_state=(s := torch.zeros(1, 2, V, K)), output_state=s, output_final_state=True), ValueError,
     "shares memory with initial_state"),
])
def test_errors(call, kind, text):
    with pytest.raises(kind, match=text):
        call()
