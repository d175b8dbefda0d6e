# SPDX-License-Identifier: Apache-2.0
"""Kimi delta attention against the recurrence in torch's double precision, written anew; slots, draft tokens, checkpoints; errors."""
import math

import pytest
import torch

from flashinfer import kda, kda_decode, kda_prefill

HEADS, VALUE_HEADS, WIDTH = 2, 4, 64


def tokens(batch, count, seed=0):
    torch.manual_seed(seed)
    rows = lambda heads: torch.randn(batch, count, heads, WIDTH).bfloat16()
    return dict(q=rows(HEADS), k=rows(HEADS), v=rows(VALUE_HEADS), g=-rows(VALUE_HEADS).abs(), beta=torch.rand(batch, count, VALUE_HEADS).bfloat16())


def recurrence(state, q, k, v, g, beta, gate=lambda g: g, dtype=torch.float64):
    """[tokens, heads, width] of one sequence; the outputs and the states after each token."""
    state, q, k, v, g, beta = (x.to(dtype) for x in (state, q, k, v, g, beta))
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


def test_f32_products_with_the_state_add_up_in_parts():
    """Of 128 terms each: in one chain the largest error is 3.6e-7 of the largest output here, in parts of 32 terms below 2.4e-7."""
    g = torch.Generator().manual_seed(0)
    q, k = (torch.nn.functional.normalize(torch.randn(512, 1, 128, generator=g), dim=-1) for _ in range(2))
    v, gate, beta = torch.randn(512, 1, 128, generator=g), -0.1 * torch.rand(512, 1, 128, generator=g), torch.rand(512, 1, generator=g)
    out = kda.kda_recurrence(q, k, v, gate, beta, torch.tensor([0, 512]), use_qk_l2norm=False, scale=1.0)
    state, exact = torch.zeros(128, 128, dtype=torch.float64), []
    for t in range(512):
        state = state * gate[t].double().exp()
        state = state + torch.outer(beta[t].double() * (v[t, 0].double() - state @ k[t, 0].double()), k[t, 0].double())
        exact.append(state @ q[t, 0].double())
    exact = torch.stack(exact)
    assert (out[:, 0].double() - exact).abs().max() < 2.4e-7 * exact.abs().max()


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


def test_draft_tokens_of_rows_have_slots_in_order():
    args, states = tokens(2, 3), pool(7)
    given, slots = states.clone(), torch.arange(6, dtype=torch.int32).view(2, 3)
    want = kda.recurrent_kda(**args, initial_state=given, ssm_state_indices=slots, num_spec_tokens=2)[0]
    assert torch.equal(kda.recurrent_kda(**args, initial_state=states, num_spec_tokens=2)[0], want) and torch.equal(states, given)


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


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float32])
def test_chunks_of_other_lengths_and_strong_gates(dtype):
    """Gates from none to beyond exp's range; NaN goes to later tokens alone; a call may be cut at multiples of 16 tokens."""
    args = {n: x.to(dtype) for n, x in tokens(1, 149).items()}
    args["g"] = args["g"] * torch.tensor([0, 1e-3, 1, 40, 1e4]).repeat(VALUE_HEADS, 13)[:, :WIDTH].to(dtype)
    state = pool(1, torch.float32)
    outputs, states = recurrence(state[0], **part(args, 0))
    whole = state.clone()
    out, _ = kda.recurrent_kda(**args, initial_state=whole)
    bound = 5e-3 if dtype == torch.bfloat16 else 2e-5
    close(out[0], outputs, bound, bound), close(whole[0], states[-1], 1e-4, 1e-4)
    for cut in (16, 48, 128, 0):
        split = state.clone()
        first, second = (kda.recurrent_kda(**{n: x[:, s] for n, x in args.items()}, initial_state=split)[0] for s in (slice(0, cut), slice(cut, None)))
        assert torch.equal(torch.cat([first, second], 1), out) and torch.equal(split, whole)
    args["v"] = args["v"].clone()
    args["v"][0, 50, 1] = float("nan")
    after = kda.recurrent_kda(**args, initial_state=state.clone())[0]
    assert torch.equal(after[:, :50], out[:, :50]) and torch.equal(after[:, :, [0, 2, 3]], out[:, :, [0, 2, 3]]) and after[0, 50:, 1].isnan().all()


def test_errors_over_many_tokens_are_those_of_a_recurrence_in_f32():
    """Root mean squares, which are 1.2 (outputs) and 1.4 (state) times the recurrence's; benchmarks/linear_attention.py has 8192 tokens."""
    args, state = {n: x.float() for n, x in tokens(1, 700).items()}, pool(1, torch.float32)
    args["g"] = args["g"] * 0.1
    (exact, states), (single, singles) = (recurrence(state[0], **part(args, 0), dtype=d) for d in (torch.float64, torch.float32))
    out, _ = kda.recurrent_kda(**args, initial_state=state)
    error = lambda x, y: (x.double() - y).square().mean().sqrt()
    assert error(out[0], exact) < 2 * error(single, exact) and error(state[0], states[-1]) < 2 * error(singles[-1], states[-1])


def test_checkpoints_in_rows_of_a_pool():
    args, starts, states = tokens(1, 133), torch.tensor([0, 70, 133]), pool(2, torch.float32)
    rows, before = torch.full((6, VALUE_HEADS, WIDTH, WIDTH), 9.0), states.clone()
    options = dict(cu_seqlens=starts, state_checkpoints=rows, checkpoint_every_n_tokens=16, checkpoint_cu_starts=torch.tensor([0, 4, 7]),
                   checkpoint_state_indices=torch.tensor([5, -1, 0, 1, 2, -1, 3], dtype=torch.int32))
    assert kda.recurrent_kda(**args, initial_state=states, **options)[2] is rows
    assert (rows[4] == 9).all()
    for row, i, count in ((5, 0, 16), (0, 0, 48), (1, 0, 64), (2, 1, 16), (3, 1, 48)):
        prefix = before[i:i + 1].clone()
        kda.recurrent_kda(**{n: x[:, 70 * i:70 * i + count] for n, x in args.items()}, initial_state=prefix)
        assert torch.equal(rows[row], prefix[0]), (row, i, count)
    kept = rows.clone()
    for change in (dict(checkpoint_state_indices=torch.tensor([6, 0, 0, 0, 0, 0, 0])), dict(checkpoint_cu_starts=torch.tensor([0, 5, 8]))):
        with pytest.raises(ValueError, match="checkpoint_state_indices has"):
            kda.recurrent_kda(**args, initial_state=states, **{**options, **change})
    assert torch.equal(rows, kept)


@pytest.mark.parametrize("count", [3, 16])
def test_verification_keeps_corrections_and_keys(count):
    args, states = tokens(3, count), pool(4)
    corrections, keys = torch.full((4, VALUE_HEADS, 17, WIDTH), 9.0), torch.full((4, VALUE_HEADS, 17, 2 * WIDTH), 9.0).bfloat16()
    options = dict(initial_state=states, ssm_state_indices=torch.tensor([2, -1, 0]), disable_state_update=True)
    before = states.clone()
    out, final = kda.recurrent_kda(**args, **options, correction_cache=corrections, kg_cache=keys)
    assert final is None and torch.equal(states, before) and torch.equal(out, kda.recurrent_kda(**args, **options)[0])
    for i, slot in ((0, 2), (2, 0)):
        _, after = recurrence(before[slot], **part(args, i))
        previous = torch.cat([before[slot][None].double(), after[:-1]])
        k = args["k"][i].double()
        k = (k * torch.rsqrt((k * k).sum(-1, keepdim=True) + 1e-6)).repeat_interleave(2, 1)
        decayed = previous * args["g"][i].double().exp()[:, :, None]
        expected = args["beta"][i].double()[..., None] * (args["v"][i].double() - (decayed * k[:, :, None]).sum(-1))
        close(corrections[slot, :, :count].transpose(0, 1), expected, 1e-4, 1e-4)
        assert torch.equal(keys[slot, :, :count].transpose(0, 1), torch.cat([args["k"][i].repeat_interleave(2, 1), args["g"][i]], -1))
    for cache in (corrections, keys):
        assert (cache[[0, 2]][:, :, count:] == 9).all() and (cache[[1, 3]] == 9).all()
    for message, change in (("must be given together", dict(kg_cache=None)), ("disable_state_update", dict(disable_state_update=False)),
                            ("kg_cache has 2 slots", dict(correction_cache=corrections[:2], kg_cache=keys[:2])),
                            ("kg_cache has 2 rows", dict(correction_cache=corrections[:, :, :2], kg_cache=keys[:, :, :2]))):
        with pytest.raises(ValueError, match=message):
            kda.recurrent_kda(**args, **{**options, "correction_cache": corrections, "kg_cache": keys, **change})


def fused(rows, heads=2, width=64, length=3, dtype=torch.float32, slots=6):
    torch.manual_seed(3)
    bf = lambda *shape: torch.randn(*shape).bfloat16()
    conv = bf(slots, length, 3 * heads * width).transpose(1, 2)
    return dict(x=bf(rows, 3 * heads * width), weight=torch.randn(3, 4, heads * width), conv_state=conv, raw_gate=bf(1, rows, heads, width),
                raw_beta=bf(1, rows, heads), A_log=torch.randn(heads), dt_bias=torch.randn(heads * width), state=torch.randn(slots, heads, width, width).to(dtype),
                output_gate=bf(rows, heads, width), norm_weight=torch.rand(width))


def test_fused_steps_are_their_parts():
    args, slots = fused(4), torch.tensor([3, 0, 5, 1], dtype=torch.int32)
    conv, state, out = args["conv_state"].clone(), args["state"].clone(), torch.empty(1, 4, 2, 64, dtype=torch.bfloat16)
    assert kda_decode.fused_kda_decode(**args, state_indices=slots, output=out) is out
    inputs = torch.cat([conv[slots.long()], args["x"][..., None]], -1).float()
    weight = args["weight"].transpose(1, 2).reshape(-1, 4)
    q, k, v = torch.nn.functional.silu((inputs * weight).sum(-1)).bfloat16().view(4, 3, 1, 2, 64).unbind(1)
    o, _ = kda.recurrent_kda(q, k, v, args["raw_gate"][0][:, None], args["raw_beta"][0][:, None], args["A_log"], args["dt_bias"], initial_state=state,
                             use_gate_in_kernel=True, lower_bound=-5.0, beta_is_logit=True, ssm_state_indices=torch.where(slots > 0, slots, -1))
    o = o[:, 0].float()
    expected = o * torch.rsqrt(o.square().mean(-1, keepdim=True) + 1e-5) * args["norm_weight"] * args["output_gate"].float().sigmoid()
    expected[1] = 0
    torch.testing.assert_close(out[0].float(), expected, rtol=2e-2, atol=2e-2)
    torch.testing.assert_close(args["state"], state, rtol=2e-2, atol=2e-3)
    conv[[3, 5, 1]] = inputs[[0, 2, 3], :, 1:].bfloat16()
    assert torch.equal(args["conv_state"], conv)


def test_packed_fused_steps_continue_from_the_accepted_token():
    """Two rounds of draft tokens, of which some are accepted, give what the accepted tokens give one by one."""
    args = fused(6, length=5, slots=8)
    single = {**args, "conv_state": args["conv_state"][:, :, :3].clone(), "state": args["state"].clone()}
    slots, starts = torch.tensor([[1, 2, 3], [4, 5, 6]], dtype=torch.int32), torch.tensor([0, 3, 6], dtype=torch.int32)
    rounds = [torch.tensor([1, 1], dtype=torch.int32), torch.tensor([2, 3], dtype=torch.int32)]
    outs = [kda_decode.packed_fused_kda_decode(**args, state_indices=slots, query_start_loc=starts, num_accepted_tokens=n)[0] for n in rounds]
    rows = lambda r: {n: (x[r] if n in ("x", "output_gate") else x[:, r] if n in ("raw_gate", "raw_beta") else x) for n, x in single.items()}
    one = torch.tensor([1, 4], dtype=torch.int32)
    for t in range(3):
        got = kda_decode.fused_kda_decode(**rows([t, 3 + t]), state_indices=one)[0]
        torch.testing.assert_close(outs[0][[t, 3 + t]], got, rtol=2e-2, atol=2e-2)
        if t == 1:  # sequence 0 goes on from here, sequence 1 from its third token
            kept = single["conv_state"][1].clone(), single["state"][1].clone()
    single["conv_state"][1], single["state"][1] = kept
    for t in range(3):
        got = kda_decode.fused_kda_decode(**rows([t, 3 + t]), state_indices=one)[0]
        torch.testing.assert_close(outs[1][[t, 3 + t]], got, rtol=2e-2, atol=2e-2)


@pytest.mark.parametrize("message, change", [
    ("weight is", dict(weight=torch.zeros(3, 4, 64))),
    (r"state_indices\[0\] is 6", dict(state_indices=torch.tensor([6, 1], dtype=torch.int32))),
    ("conv_state is", dict(conv_state=torch.zeros(6, 384, 4).bfloat16())),
    ("lower_bound is 1", dict(lower_bound=1.0)),
    ("norm_eps is -1", dict(norm_eps=-1.0)),
    ("A_log is", dict(A_log=torch.zeros(3))),
    ("backend", dict(backend="fast")),
])
def test_errors_of_fused_steps(message, change):
    args = {**fused(2), "state_indices": torch.tensor([3, 1], dtype=torch.int32), **change}
    before = args["state"].clone(), args["conv_state"].clone()
    with pytest.raises(ValueError, match=message):
        kda_decode.fused_kda_decode(**args)
    assert torch.equal(args["state"], before[0]) and torch.equal(args["conv_state"], before[1])


@pytest.mark.parametrize("in_place", (True, False))
@pytest.mark.parametrize("prepare", (kda_prefill.prepare_bf16_kda_prefill, kda_prefill.prepare_tf32_kda_prefill))
def test_prepared_prefill_reads_its_tensors_at_each_launch(prepare, in_place):
    args, before, rows = tokens(1, 82), pool(4, torch.float32), torch.tensor([2, 1], dtype=torch.int32)
    storage = dict(args, g=torch.cat([args["g"], torch.full_like(args["g"][:, :3], 9)], 1))  # g has memory for 3 more tokens
    dt_bias, starts, states, out = torch.randn(HEADS, WIDTH), torch.tensor([0, 17, 82]), before.clone(), torch.empty_like(args["v"])
    final = states if in_place else pool(4, torch.float32)
    untouched, checkpoints = final.clone(), torch.full((4, VALUE_HEADS, WIDTH, WIDTH), 9.0).bfloat16()
    call = prepare(**storage, A_log=torch.zeros(HEADS), dt_bias=dt_bias, out=out, initial_state=states, final_state=final, cu_seqlens=starts,
                   sequence_lengths=(17, 65), state_indices=rows, state_checkpoints=checkpoints, checkpoint_cu_starts=torch.tensor([0, 1, 3]),
                   checkpoint_every_n_tokens=64)
    for launch in range(2):
        call.launch()
        for i, (first, last) in enumerate(((0, 17), (17, 82))):
            part_args = part(args, 0, slice(first, last))
            part_args["beta"] = part_args["beta"].double().sigmoid()
            bias = dt_bias.repeat_interleave(VALUE_HEADS // HEADS, 0).double()
            expected, after = recurrence(before[rows[i]], **part_args, gate=lambda g: -5 * (g + bias).sigmoid())
            close(out[0, first:last], expected, 1e-2, 1e-2)
            close(final[rows[i]], after[-1], 1e-4, 1e-4)
            assert torch.equal(checkpoints[i], before[rows[i]].bfloat16())
        close(checkpoints[2], after[63], 1e-2, 1e-2)
        assert torch.equal(final[[0, 3]], untouched[[0, 3]]) and (checkpoints[3] == 9).all() and (in_place or torch.equal(states, before))
        args["v"].copy_(torch.randn(args["v"].shape))
        args["beta"].copy_(torch.randn(args["beta"].shape))
        states.copy_(before)
    call.close()
    with pytest.raises(RuntimeError, match="launch was called after close"):
        call.launch()


def test_prepared_prefill_with_probabilities_and_without_states():
    args, out, final = tokens(2, 20), torch.empty(2, 20, VALUE_HEADS, WIDTH).bfloat16(), pool(2, torch.float32)
    probabilities = torch.rand(2, 20, VALUE_HEADS)
    gates = dict(A_log=torch.zeros(HEADS), dt_bias=torch.zeros(HEADS, WIDTH), lower_bound=None)
    kda_prefill.prepare_bf16_kda_prefill(**{**args, "beta": probabilities}, **gates, out=out, final_state=final, beta_is_logit=False).launch()
    for i in range(2):
        expected, after = recurrence(torch.zeros(VALUE_HEADS, WIDTH, WIDTH), **{**part(args, i), "beta": probabilities[i].bfloat16()},
                                     gate=lambda g: -torch.nn.functional.softplus(g))
        close(out[i], expected, 1e-2, 1e-2)
        close(final[i], after[-1], 1e-4, 1e-4)


@pytest.mark.parametrize("error, message, change", [
    (ValueError, r"sequence_lengths is \[2, 2\], but cu_seqlens gives \[1, 3\]", dict(sequence_lengths=(2, 2))),
    (ValueError, "sequence_lengths is required", dict(sequence_lengths=None)),
    (ValueError, r"cu_seqlens is \[0, 1, 3\]", dict(cu_seqlens=torch.tensor([0, 1, 3]), sequence_lengths=(1, 2))),
    (TypeError, "initial_state is torch.bfloat16, but must be float32", dict(initial_state=pool(2))),
    (ValueError, "final_state has shape", dict(final_state=pool(1, torch.float32))),
    (ValueError, "state_indices has 1 elements", dict(state_indices=torch.tensor([0]))),
    (ValueError, "out is torch.bfloat16", dict(out=torch.empty(1, 3, VALUE_HEADS, WIDTH).bfloat16())),
    (TypeError, "state_checkpoints is torch.float16", dict(state_checkpoints=pool(2, torch.float16), checkpoint_every_n_tokens=64)),
    (TypeError, "beta is torch.bfloat16, but must be float32", dict(beta_is_logit=False)),
    (TypeError, "plan_cache is int", dict(plan_cache=3)),
])
def test_prepared_prefill_checks_before_the_first_launch(error, message, change):
    args = dict(tokens(1, 4), A_log=torch.zeros(HEADS), dt_bias=torch.zeros(HEADS, WIDTH), out=torch.empty(1, 4, VALUE_HEADS, WIDTH).bfloat16(),
                cu_seqlens=torch.tensor([0, 1, 4]), sequence_lengths=(1, 3))
    with pytest.raises(error, match=message):
        kda_prefill.prepare_bf16_kda_prefill(**{**args, **change})


def test_batches_that_engines_pad_to_one_size():
    """Requests without tokens and slot -1, and tokens behind the last one: their outputs are zeros, and no state changes."""
    args, states = tokens(1, 5), pool(4)
    before, slots = states.clone(), torch.tensor([2, 1, 3, -1, -1], dtype=torch.int32)
    output = torch.full_like(args["v"], math.nan)
    kda.recurrent_kda(**args, initial_state=states, cu_seqlens=torch.tensor([0, 1, 2, 3, 3, 3]), ssm_state_indices=slots, output=output)
    for i, slot in enumerate(slots[:3].tolist()):
        out, after = recurrence(before[slot], **part(args, 0, slice(i, i + 1)))
        close(output[0, i:i + 1], out)
        close(states[slot], after[-1])
    assert not output[0, 3:].any() and torch.equal(states[0], before[0])


def test_no_lower_bound_is_the_softplus_gate():
    """None, where the default is a number, is a value of its own."""
    heads, width, g = 8, 128, torch.Generator().manual_seed(7)
    rand = lambda *shape: torch.randn(*shape, generator=g)
    args = dict(x=rand(1, 3 * heads * width).bfloat16(), weight=rand(3, 4, heads * width) / 10, raw_gate=rand(1, 1, heads, width).bfloat16(),
                raw_beta=rand(1, 1, heads).bfloat16(), A_log=rand(heads) / 2, dt_bias=rand(heads * width) / 10, state_indices=torch.tensor([1]).int(),
                output_gate=rand(1, heads, width).bfloat16(), norm_weight=rand(width))
    history, before = rand(2, 3 * heads * width, 3).bfloat16() / 10, rand(2, heads, width, width) / 100
    state = before.clone()
    kda_decode.fused_kda_decode(**args, conv_state=history.clone(), state=state, lower_bound=None)
    weights = args["weight"].double().permute(0, 2, 1).reshape(-1, 4)
    mixed = torch.nn.functional.silu((torch.cat((history[1], args["x"][0, :, None]), 1).double() * weights).sum(1)).bfloat16().double()
    key, value = (mixed.view(3, heads, width)[n] for n in (1, 2))
    key = key / (key.square().sum(-1, keepdim=True) + 1e-6).sqrt()
    gate = -args["A_log"].double().exp()[:, None] * torch.nn.functional.softplus(args["raw_gate"][0, 0].double() + args["dt_bias"].double().view(heads, width))
    decayed = before[1].double() * gate.exp()[:, None, :]
    delta = (value - torch.einsum("hvk,hk->hv", decayed, key)) * args["raw_beta"][0, 0].double().sigmoid()[:, None]
    torch.testing.assert_close(state[1].double(), decayed + delta[..., None] * key[:, None], rtol=1e-2, atol=2e-3)


def on_gpu(x):
    return x.to("meta") if isinstance(x, torch.Tensor) else x


@pytest.mark.parametrize("form", ["rows", "slots", "packed", "drafts", "drafts of rows", "accepted drafts", "verified", "from a source", "12 heads"])
def test_steps_on_a_gpu_leave_its_arrays_to_the_kernel(monkeypatch, form):
    """Tensors of the device "meta" have no elements: reading one on the host fails; arrays that are made on the CPU have another device."""
    calls = []
    monkeypatch.setattr(kda, "kda_recurrence", lambda *a, **k: calls.append([x for x in (*a, *k.values()) if isinstance(x, torch.Tensor)]))
    i32 = lambda *x: torch.zeros(*x, dtype=torch.int32)
    if form == "12 heads":
        kda_decode.packed_kda_decode(*map(on_gpu, (torch.zeros(2, 4608), torch.zeros(2, 1536), torch.zeros(2, 12), torch.zeros(12), torch.zeros(1536),
                                                   torch.zeros(3, 12, 128, 128), i32(2))))
    else:
        drafts = dict(num_spec_tokens=2, initial_state=pool(8))
        options = {"rows": dict(initial_state=pool(2), use_gate_in_kernel=True, A_log=torch.zeros(HEADS)), "slots": dict(initial_state=pool(5), ssm_state_indices=i32(2)),
                   "packed": dict(initial_state=pool(5), ssm_state_indices=i32(3), cu_seqlens=i32(4)),
                   "drafts": dict(drafts, ssm_state_indices=i32(2, 3), cu_seqlens=i32(3)), "drafts of rows": drafts,
                   "accepted drafts": dict(drafts, ssm_state_indices=i32(2, 3), num_accepted_tokens=i32(2)),
                   "verified": dict(initial_state=pool(5), ssm_state_indices=i32(2), cu_seqlens=i32(3), disable_state_update=True),
                   "from a source": dict(initial_state_source=pool(5), initial_state_indices=i32(2), output_final_state=True)}[form]
        shape = (1, 6) if "cu_seqlens" in options else (2, 3 if "num_spec_tokens" in options else 1)
        kda.recurrent_kda(**{n: on_gpu(x) for n, x in (tokens(*shape) | options).items()})
    assert len(calls) == 1 and {x.device.type for x in calls[0]} == {"meta"}


@pytest.mark.parametrize("error, message, change", [
    (TypeError, "k is torch.float32, but must be bfloat16", dict(k=torch.zeros(2, 1, HEADS, WIDTH))),
    (ValueError, "v has width 32", dict(v=torch.zeros(2, 1, VALUE_HEADS, 32).bfloat16())),
    (ValueError, "multiple of the 2 heads", dict(v=torch.zeros(2, 1, 3, WIDTH).bfloat16())),
    (ValueError, "A_log is None", dict(use_gate_in_kernel=True)),
    (ValueError, "lower_bound is -5.0, but use_gate_in_kernel is False", dict(lower_bound=-5.0)),
    (ValueError, "lower_bound is 1", dict(A_log=torch.zeros(HEADS), use_gate_in_kernel=True, lower_bound=1.0)),
    (ValueError, "must be given together", dict(initial_state_indices=torch.tensor([0, 1]))),
    (ValueError, "num_spec_tokens must be >= 1, but is 0", dict(num_spec_tokens=0)),
    (ValueError, "q has 1 tokens, but must have 1\\+num_spec_tokens, 3, without ssm_state_indices", dict(num_spec_tokens=2)),
    (ValueError, "ssm_state_indices is required", dict(num_spec_tokens=2, cu_seqlens=torch.tensor([0, 1]), **tokens(1, 1))),
    (ValueError, r"must equal 1\+num_spec_tokens", dict(num_spec_tokens=2, ssm_state_indices=torch.zeros(2, 2, dtype=torch.int32))),
    (ValueError, "q has 2 rows, but must have one with cu_seqlens", dict(cu_seqlens=torch.tensor([0, 1]))),
    (ValueError, "cu_seqlens ends at 4, but q has 5 tokens", dict(cu_seqlens=torch.tensor([0, 2, 4]), **tokens(1, 5))),
    (ValueError, r"read_indices\[1\] is 2, but state has 2 slots", dict(ssm_state_indices=torch.tensor([0, 2]))),
    (ValueError, "must be contiguous", dict(initial_state=pool(4)[::2])),
    (ValueError, "backend must be one of .*, but is 'fast'", dict(backend="fast")),
    (ValueError, "must both be provided", dict(checkpoint_every_n_tokens=32)),
    (ValueError, r"checkpoint_cu_starts\[2\] is 1, but sequence 1 has 1 checkpoints from row 1 on", dict(
        checkpoint_every_n_tokens=32, state_checkpoints=pool(4), checkpoint_cu_starts=torch.tensor([0, 1, 1]))),
    (ValueError, "disable_state_update is True", dict(disable_state_update=True, output_final_state=True)),
    (ValueError, "seq_order is only supported for packed sequences", dict(seq_order=torch.tensor([0, 1]).int())),
    (ValueError, r"seq_order is torch.int64 \(2,\), but must be int32 \(2,\)", dict(seq_order=torch.tensor([0, 1]), cu_seqlens=torch.tensor([0, 1, 2]), **tokens(1, 2))),
    (ValueError, r"seq_order is torch.int32 \(1,\), but must be int32 \(2,\)", dict(
        seq_order=torch.tensor([0]).int(), cu_seqlens=torch.tensor([0, 1, 2]), **tokens(1, 2))),
    (ValueError, "must be None with disable_state_update", dict(disable_state_update=True, seq_order=torch.tensor([0, 1]))),
])
def test_errors_come_before_anything_is_written(error, message, change):
    args = {**tokens(2, 1), "initial_state": pool(2), **change}
    before = args["initial_state"].clone()
    with pytest.raises(error, match=message):
        kda.recurrent_kda(**args)
    assert torch.equal(args["initial_state"], before)
