# SPDX-License-Identifier: Apache-2.0
"""Kimi delta attention against the recurrence in torch's double precision, written anew; slots, draft tokens, checkpoints; errors."""
import pytest
import torch

from flashinfer import kda, kda_decode

HEADS, VALUE_HEADS, WIDTH = 2, 4, 64


def tokens(batch, count, seed=0):
    torch.manual_seed(seed)
    rows = lambda heads: torch.randn(batch, count, heads, WIDTH).bfloat16()
    return dict(q=rows(HEADS), k=rows(HEADS), v=rows(VALUE_HEADS), g=-rows(VALUE_HEADS).abs(), beta=torch.rand(batch, count, VALUE_HEADS).bfloat16())


def recurrence(state, q, k, v, g, beta, gate=lambda g: g):
    """[tokens, heads, width] of one sequence; the outputs and the states after each token."""
    state, q, k, v, g, beta = (x.double() for x in (state, q, k, v, g, beta))
    unit = lambda x: (x * torch.rsqrt((x * x).sum(-1, keepdim=True) + 1e-6)).repeat_interleave(VALUE_HEADS // HEADS, 1)
    q, k, outputs, states = unit(q) * WIDTH ** -0.5, unit(k), [], []
    for t in range(q.shape[0]):
        state = state * gate(g[t]).exp()[:, None]
        d = beta[t][:, None] * (v[t] - (state * k[t][:, None]).sum(-1))
        state = state + d[..., None] * k[t][:, None]
        outputs.append((state * q[t][:, None]).sum(-1))
        states.append(state)
    return torch.stack(outputs), torch.stack(states)


def pool(slots, dtype=torch.bfloat16):
    return torch.randn(slots, VALUE_HEADS, WIDTH, WIDTH).to(dtype)


def part(args, i, index=slice(None)):
    return {n: x[i, index] for n, x in args.items()}


def close(got, expected, rtol=5e-3, atol=5e-3):
    torch.testing.assert_close(got.double(), expected, rtol=rtol, atol=atol)


@pytest.mark.parametrize("function", [kda.recurrent_kda, kda_decode.recurrent_kda])
def test_decode_with_and_without_slots(function):
    args, states = tokens(3, 1), pool(5)
    before, out = states.clone(), torch.empty(3, 1, VALUE_HEADS, WIDTH, dtype=torch.bfloat16)
    got, final = function(**args, initial_state=states, ssm_state_indices=torch.tensor([4, -1, 0]), output=out, output_final_state=True)
    assert got is out and final is states and (out[1] == 0).all() and torch.equal(states[1:4], before[1:4])
    for i, slot in ((0, 4), (2, 0)):
        outputs, after = recurrence(before[slot], **part(args, i))
        close(out[i], outputs), close(states[slot], after[-1], 1e-2, 1e-2)
    dense = before[[4, 1, 0]].contiguous()
    assert torch.equal(function(**args, initial_state=dense)[0][[0, 2]], out[[0, 2]]) and torch.equal(dense[[0, 2]], states[[4, 0]])


@pytest.mark.parametrize("bound", [None, -5.0])
def test_prefill_of_sequences_gates_and_checkpoints(bound):
    args, starts = tokens(1, 150), torch.tensor([0, 0, 33, 150])
    a_log, bias, states = torch.randn(HEADS), torch.randn(HEADS * WIDTH), pool(3, torch.float32)
    rate, shift = (x.double().repeat_interleave(VALUE_HEADS // HEADS, 0) for x in (a_log.exp()[:, None], bias.view(HEADS, WIDTH)))
    gate = (lambda g: -rate * torch.nn.functional.softplus(g + shift)) if bound is None else (lambda g: bound * torch.sigmoid(rate * (g + shift)))
    before, checkpoints = states.clone(), torch.full((7, VALUE_HEADS, WIDTH, WIDTH), 9.0)
    wrapper = kda.RecurrentKDAPrefillWrapper("cpu")
    wrapper.plan(starts)
    gates = dict(A_log=a_log, dt_bias=bias, use_gate_in_kernel=True, lower_bound=bound)
    out, final, same = wrapper.run(**args, **gates, initial_state=states, output_final_state=True, state_checkpoints=checkpoints,
                                   checkpoint_cu_starts=torch.tensor([0, 0, 2, 6]), checkpoint_every_n_tokens=32)
    assert same is checkpoints and final is states and torch.equal(states[0], before[0]) and (checkpoints[6] == 9).all()
    for i, row in ((1, 0), (2, 2)):
        begin, end = starts[i].item(), starts[i + 1].item()
        outputs, after = recurrence(before[i], **part(args, 0, slice(begin, end)), gate=gate)
        close(out[0, begin:end], outputs), close(states[i], after[-1], 1e-4, 1e-4)
        assert torch.equal(checkpoints[row], before[i])
        for j in range(1, -(-(end - begin) // 32)):
            close(checkpoints[row + j], after[j * 32 - 1], 1e-4, 1e-4)
    # A checkpoint has the bits of the final state of its prefix; a call in two has those of the whole.
    prefix = before[2:3].clone()
    first = kda.recurrent_kda(**{n: x[:, 33:97] for n, x in args.items()}, **gates, initial_state=prefix)[0]
    assert torch.equal(prefix[0], checkpoints[4]) and torch.equal(first[0], out[0, 33:97])
    second = kda.recurrent_kda(**{n: x[:, 97:] for n, x in args.items()}, **gates, initial_state=prefix)[0]
    assert torch.equal(prefix[0], states[2]) and torch.equal(second[0], out[0, 97:])
    for message, changed in (("non-decreasing", [0, 3, 2]), ("number of sequences is fixed", [0, 150]), ("total token count is fixed", [0, 0, 33, 151]),
                             ("chunk count is fixed", [0, 65, 131, 150])):
        with pytest.raises(ValueError, match=message):
            wrapper.plan(torch.tensor(changed))


def test_draft_tokens_start_from_the_accepted_one():
    args, states = tokens(2, 3), pool(8)
    before, slots = states.clone(), torch.tensor([[1, 2, 3], [4, 5, 6]], dtype=torch.int32)
    out, final = kda.recurrent_kda(**args, initial_state=states, ssm_state_indices=slots, num_spec_tokens=2, num_accepted_tokens=torch.tensor([3, 0]))
    assert final is None and torch.equal(states[[0, 7]], before[[0, 7]])
    for i, start in ((0, 3), (1, 4)):
        outputs, after = recurrence(before[start], **part(args, i))
        close(out[i], outputs)
        for t in range(3):
            close(states[slots[i, t]], after[t], 1e-2, 1e-2)
    frozen = states.clone()
    verified, _ = kda.recurrent_kda(**args, initial_state=states, ssm_state_indices=torch.tensor([1, 2]), disable_state_update=True)
    assert torch.equal(states, frozen)
    close(verified[0], recurrence(states[1], **part(args, 0))[0])


def test_start_states_of_another_pool_and_packed_arguments():
    args, source, target = tokens(2, 1), pool(3), torch.zeros(4, VALUE_HEADS, WIDTH, WIDTH).bfloat16()
    kept = source.clone()
    out, final = kda.recurrent_kda(**args, initial_state=target, initial_state_source=source, initial_state_indices=torch.tensor([2, 0]),
                                   ssm_state_indices=torch.tensor([1, 3]), output_final_state=True)
    assert final is target and torch.equal(source, kept) and (target[[0, 2]] == 0).all()
    close(out[0], recurrence(source[2], **part(args, 0))[0]), close(target[1], recurrence(source[2], **part(args, 0))[1][-1], 1e-2, 1e-2)
    mixed, gate, beta = torch.randn(2, 4608).bfloat16(), torch.randn(2, 1536).bfloat16(), torch.randn(2, 12).bfloat16()
    a_log, bias, states = torch.randn(12), torch.randn(1536), torch.randn(3, 12, 128, 128).bfloat16()
    want = states.clone()
    q, k, v = (x.reshape(2, 1, 12, 128) for x in mixed.view(2, 3, 12, 128).unbind(1))
    expected = kda.recurrent_kda(q, k, v, gate.view(2, 1, 12, 128), beta.view(2, 1, 12), a_log, bias, initial_state=want, use_gate_in_kernel=True,
                                 lower_bound=-5.0, beta_is_logit=True, ssm_state_indices=torch.tensor([0, -1]))[0]
    assert torch.equal(kda_decode.packed_kda_decode(mixed, gate, beta, a_log, bias, states, torch.tensor([0, -1])), expected)
    assert torch.equal(states, want) and not expected[1].any()


@pytest.mark.parametrize("error, message, change", [
    (TypeError, "k is torch.float32, but must be bfloat16", dict(k=torch.zeros(2, 1, HEADS, WIDTH))),
    (ValueError, "v has width 32", dict(v=torch.zeros(2, 1, VALUE_HEADS, 32).bfloat16())),
    (ValueError, "multiple of the 2 heads", dict(v=torch.zeros(2, 1, 3, WIDTH).bfloat16())),
    (ValueError, "A_log is None", dict(use_gate_in_kernel=True)),
    (ValueError, "lower_bound is -5.0, but use_gate_in_kernel is False", dict(lower_bound=-5.0)),
    (ValueError, "lower_bound is 1", dict(A_log=torch.zeros(HEADS), use_gate_in_kernel=True, lower_bound=1.0)),
    (ValueError, "must be given together", dict(initial_state_indices=torch.tensor([0, 1]))),
    (ValueError, "num_spec_tokens must be >= 1, but is 0", dict(num_spec_tokens=0)),
    (ValueError, "ssm_state_indices is required", dict(num_spec_tokens=2)),
    (ValueError, r"must equal 1\+num_spec_tokens", dict(num_spec_tokens=2, ssm_state_indices=torch.zeros(2, 2, dtype=torch.int32))),
    (ValueError, "q has 2 rows, but must have one with cu_seqlens", dict(cu_seqlens=torch.tensor([0, 1]))),
    (ValueError, r"read_indices\[1\] is 2, but state has 2 slots", dict(ssm_state_indices=torch.tensor([0, 2]))),
    (ValueError, "must be contiguous", dict(initial_state=pool(4)[::2])),
    (ValueError, "backend is 'fast'", dict(backend="fast")),
    (ValueError, "must both be provided", dict(checkpoint_every_n_tokens=32)),
    (ValueError, "disable_state_update is True", dict(disable_state_update=True, output_final_state=True)),
])
def test_errors_come_before_anything_is_written(error, message, change):
    args = {**tokens(2, 1), "initial_state": pool(2), **change}
    before = args["initial_state"].clone()
    with pytest.raises(error, match=message):
        kda.recurrent_kda(**args)
    assert torch.equal(args["initial_state"], before)
