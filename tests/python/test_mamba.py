# SPDX-License-Identifier: Apache-2.0
"""State-space ops against the recurrence in torch's double precision, written anew; what they leave alone; their errors."""
import pytest
import torch

from flashinfer import mamba

HEADS, DIM, STATE, GROUPS = 8, 16, 32, 2


def inputs(*lead, dtype=torch.bfloat16, state=torch.float32, slots=6, seed=0):
    """Arguments as models pass them: A, dt, D and dt_bias are one number a head, expanded."""
    torch.manual_seed(seed)
    x, z = torch.randn(2, *lead, HEADS, DIM).to(dtype)
    dt = torch.randn(*lead, HEADS).to(dtype)[..., None].expand(*lead, HEADS, DIM)
    a = (-torch.rand(HEADS) * 8 - 0.1)[:, None, None].expand(HEADS, DIM, STATE)
    d, bias = (torch.randn(HEADS).to(dtype)[:, None].expand(HEADS, DIM) for _ in range(2))
    b, c = torch.randn(2, *lead, GROUPS, STATE).to(dtype)
    return dict(state=torch.randn(slots, HEADS, DIM, STATE).to(state), x=x, dt=dt, A=a, B=b, C=c, D=d, z=z, dt_bias=bias, dt_softplus=True)


def recurrence(state, x, dt, A, B, C, D, z, dt_bias, **_):
    """[T, heads, dim] of one sequence; the outputs and the states after each token, in double precision."""
    state, x, dt, A, B, C, D, z, dt_bias = (t.double() for t in (state, x, dt, A, B, C, D, z, dt_bias))
    outputs, states = [], []
    for t in range(x.shape[0]):
        step = torch.nn.functional.softplus(dt[t] + dt_bias)
        b, c = (m[t].repeat_interleave(HEADS // GROUPS, 0)[:, None] for m in (B, C))
        state = state * torch.exp(A * step[..., None]) + (step * x[t])[..., None] * b
        outputs.append(((state * c).sum(-1) + D * x[t]) * torch.nn.functional.silu(z[t]))
        states.append(state)
    return torch.stack(outputs), torch.stack(states)


def one(arguments, i, state, tokens=slice(None)):
    """Arguments of the recurrence for sequence i of [b, T, ...]."""
    return recurrence(**{**arguments, "state": state, **{n: arguments[n][i][tokens] for n in ("x", "dt", "B", "C", "z")}})


def close(got, expected, rtol=1e-2, atol=1e-2):
    torch.testing.assert_close(got.double(), expected, rtol=rtol, atol=atol)


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.float16])
def test_tokens_of_several_sequences_with_slots(dtype):
    args = inputs(3, 4, state=dtype)
    before, slots = args["state"].clone(), torch.tensor([4, -1, 0])
    out = torch.empty_like(args["x"])
    assert mamba.selective_state_update(**args, state_batch_indices=slots, cache_steps=4, out=out) is out
    for i, slot in enumerate(slots.tolist()):
        outputs, states = one(args, i, before[slot] if slot >= 0 else torch.zeros_like(before[0]))
        close(out[i], outputs)
        if slot >= 0:
            close(args["state"][slot], states[-1], 1e-2, 1e-3)
    untouched = [1, 2, 3, 5]
    assert torch.equal(args["state"][untouched], before[untouched])


def test_one_call_equals_a_call_for_each_token_and_sequences_do_not_see_each_other():
    args = inputs(3, 40, dtype=torch.float32)
    args["x"][1, 3] = float("nan")
    pools = [args["state"].clone() for _ in range(3)]
    whole = mamba.selective_state_update(**{**args, "state": pools[0]}, cache_steps=40)
    assert whole[1].isnan().any() and not whole[0].isnan().any() and not whole[2].isnan().any()
    part = lambda index: {**args, **{n: args[n][index] for n in ("x", "dt", "B", "C", "z")}}
    for t in range(40):
        out = mamba.selective_state_update(**{**part((slice(None), t)), "state": pools[1]})
        torch.testing.assert_close(out, whole[:, t], rtol=0, atol=0, equal_nan=True)
    torch.testing.assert_close(pools[1], pools[0], rtol=0, atol=0, equal_nan=True)
    # The same sequences one after the other, in another order.
    packed = {n: torch.cat([args[n][i] for i in (2, 0)]) for n in ("x", "dt", "B", "C", "z")}
    out = mamba.selective_state_update(**{**args, **packed, "state": pools[2]}, cu_seqlens=torch.tensor([0, 40, 80]),
                                       state_batch_indices=torch.tensor([2, 0]), cache_steps=40)
    assert torch.equal(out.view(2, 40, HEADS, DIM), whole[[2, 0]]) and torch.equal(pools[2][[0, 2]], pools[0][[0, 2]])


def test_states_after_each_token():
    args = inputs(2, 3)
    before, cache = args["state"].clone(), torch.full((3, 4, HEADS, DIM, STATE), 7.0)
    mamba.selective_state_update(**args, cache_steps=3, intermediate_states_buffer=cache, intermediate_state_indices=torch.tensor([2, -1]),
                                 disable_state_update=True)
    close(cache[2, :3], one(args, 0, before[0])[1], 1e-5, 1e-5)
    assert torch.equal(args["state"], before) and (cache[:2] == 7).all() and (cache[2, 3] == 7).all()
    # Speculative decoding: start from the slot of the last accepted token, a slot for each new one.
    slots, dst = torch.tensor([[3, 4, 5], [0, 0, 0]], dtype=torch.int32), torch.tensor([[0, -1, 3], [1, 1, 2]], dtype=torch.int32)
    mamba.selective_state_update(**args, cache_steps=3, state_batch_indices=slots, dst_state_batch_indices=dst,
                                 num_accepted_tokens=torch.tensor([2, 0]))
    states = one(args, 0, before[4])[1]
    close(args["state"][0], states[0], 1e-5, 1e-5), close(args["state"][3], states[2], 1e-5, 1e-5)
    assert torch.equal(args["state"][4:], before[4:])


def test_int16_states():
    args = inputs(2, 3, state=torch.int16)
    scale = torch.rand(6, HEADS, DIM) * 1e-4 + 1e-5
    args["state"].random_(-32767, 32768)
    before = args["state"].double() * scale[..., None].double()
    out = mamba.selective_state_update(**args, cache_steps=3, state_scale=scale)
    for i in range(2):
        outputs, states = one(args, i, before[i])
        close(out[i], outputs)
        largest = states[-1].abs().amax(-1)
        close(scale[i], largest / 32767, 1e-5, 0)
        error = (args["state"][i].double() - states[-1] * (32767 / largest)[..., None]).abs()
        assert error.max() <= 0.51 and args["state"][i].abs().amax(-1).eq(32767).all()


def test_random_rounding_is_unbiased_and_repeats():
    args = {**inputs(1, dtype=torch.float32, state=torch.float16), "x": torch.zeros(1, HEADS, DIM)}
    args["dt"] = torch.full((1, HEADS, DIM), 0.01)
    args["state"].copy_(args["state"].abs() + 0.5)
    exact = one({n: t[:, None] if n in ("x", "dt", "B", "C", "z") else t for n, t in args.items()}, 0, args["state"][0])[1][0]
    total, results = torch.zeros_like(exact), []
    for seed in [*range(64), 63]:
        state = args["state"].clone()
        mamba.selective_state_update(**{**args, "state": state}, rand_seed=torch.tensor([seed]))
        results.append(state)
        total += state[0].double()
    assert torch.equal(results[-1], results[-2]) and not torch.equal(results[0][0], results[1][0])
    ulp = 2.0 ** (exact.log2().floor() - 10)
    assert ((results[0][0].double() - exact).abs() < ulp).all() and torch.equal(results[0][1:], args["state"][1:])
    assert abs(((total / 65 - exact) / ulp).mean()) < 0.01  # rounding to nearest of a value is off by up to 0.5


@pytest.mark.parametrize("dtype, channels", [(torch.bfloat16, 8192), (torch.float16, 8192), (torch.float32, 8192), (torch.bfloat16, 8200)])
def test_long_convolution_past_the_caches(dtype, channels):
    """Results of 16 MB and more are stored around the caches where all tokens begin lines (not of 8200 channels): the bytes of short calls."""
    torch.manual_seed(4)
    x = torch.randn(1100, channels).to(dtype).t()
    weight, bias = torch.randn(channels, 4).to(dtype), torch.randn(channels).to(dtype)
    whole = mamba.causal_conv1d_fn(x[None], weight, bias, activation="silu")[0]
    for part in (slice(0, 1000), slice(1000, 2024)):
        short = mamba.causal_conv1d_fn(x[None, part], weight[part], bias[part], activation="silu")[0]
        assert torch.equal(short, whole[part])
    close(whole[:40, :200], convolution(x[:40, :200].double(), weight[:40], bias[:40], torch.zeros(40, 3)), 1e-2, 1e-2)


@pytest.mark.parametrize("error, message, change", [
    (ValueError, r"state_batch_indices\[1\] is 6, but must be in \[0, 6\)", dict(state_batch_indices=torch.tensor([0, 6]))),
    (ValueError, r"state_batch_indices\[0\] is -2", dict(state_batch_indices=torch.tensor([-2, 1]))),
    (ValueError, "dst_state_batch_indices is .* dtype of state_batch_indices",
     dict(state_batch_indices=torch.tensor([0, 1]), dst_state_batch_indices=torch.tensor([2, 3], dtype=torch.int32))),
    (ValueError, "state has 6 slots, fewer than the 7 sequences", {**{n: v for n, v in inputs(7).items() if n != "state"}}),
    (ValueError, "x is .* extents .2, 1, 8, 16.", dict(x=torch.zeros(2, 8, 17, dtype=torch.bfloat16))),
    (ValueError, "B has 3 groups", dict(B=torch.zeros(2, 3, 32, dtype=torch.bfloat16))),
    (ValueError, "D.*float32.*bfloat16", dict(D=torch.zeros(HEADS, DIM))),
    (ValueError, "state_scale is given", dict(state_scale=torch.zeros(6, HEADS, DIM))),
    (ValueError, "algorithm", dict(algorithm="fast")),
    (ValueError, "backend", dict(backend="fast")),
    (TypeError, "rand_seed is .*int32", dict(rand_seed=torch.zeros(1, dtype=torch.int32))),
    (ValueError, "rand_seed is .* one element", dict(rand_seed=torch.zeros(2, dtype=torch.int64))),
    (ValueError, "only float16 states", dict(rand_seed=torch.zeros(1, dtype=torch.int64))),
    (ValueError, "philox_rounds is 0", dict(rand_seed=torch.zeros(1, dtype=torch.int64), philox_rounds=0)),
    (ValueError, "cu_seqlens ends at 1, but x has 2", dict(cu_seqlens=torch.tensor([0, 1]), cache_steps=2)),
    (ValueError, "cache_steps is 0", dict(cu_seqlens=torch.tensor([0, 2]))),
    (ValueError, "more than cache_steps, 1", dict(cu_seqlens=torch.tensor([0, 2]), cache_steps=1)),
    (ValueError, "cache_steps is 0", inputs(2, 3)),
    (ValueError, r"num_accepted_tokens\[0\] is 3", dict(state_batch_indices=torch.zeros(2, 2, dtype=torch.int64), num_accepted_tokens=torch.tensor([3, 1]))),
])
def test_errors_come_before_anything_is_written(error, message, change):
    args = {**inputs(2), **change}
    before = args["state"].clone()
    with pytest.raises(error, match=message):
        mamba.selective_state_update(**args)
    assert torch.equal(args["state"], before)


def convolution(x, weight, bias, before):
    """[channels, tokens] of one sequence with the `width - 1` inputs before it, in double precision."""
    x = torch.cat([before, x], 1).double()
    return torch.nn.functional.silu(torch.nn.functional.conv1d(x[None], weight.double()[:, None], bias.double(), groups=x.shape[0])[0])


@pytest.mark.parametrize("channels_last", [True, False])
def test_convolution_of_sequences_and_their_next_tokens(channels_last):
    torch.manual_seed(3)
    x, weight, bias, states = torch.randn(48, 300), torch.randn(48, 4), torch.randn(48), torch.randn(4, 48, 3)
    x = x.t().contiguous().t() if channels_last else x
    lengths, slots, before = [0, 137, 137, 139, 300], [2, 0, 3, -1], states.clone()
    start = torch.tensor(lengths, dtype=torch.int32)
    out = mamba.causal_conv1d_fn(x, weight, bias, start, torch.tensor(slots, dtype=torch.int32), torch.tensor([True, True, False, True]), states)
    assert out.stride() == x.stride() and (out[:, 139:] == 0).all()
    for (begin, end), slot, continues in ((lengths[0:2], 2, 1), (lengths[2:4], 3, 0)):
        old = before[slot] * continues
        close(out[:, begin:end], convolution(x[:, begin:end], weight, bias, old), 1e-5, 1e-5)
        assert torch.equal(states[slot], torch.cat([old, x[:, begin:end]], 1)[:, -3:])
    assert torch.equal(states[[0, 1]], before[[0, 1]])  # no tokens, no sequence
    # The next tokens, one at a time, give the bits of the whole.
    whole = mamba.causal_conv1d_fn(x[None, :, :20].contiguous(), weight, bias)
    state = torch.zeros(1, 48, 3)
    steps = [mamba.causal_conv1d_update(x[None, :, t].contiguous(), state, weight, bias, "silu") for t in range(20)]
    assert torch.equal(torch.stack(steps, 2), whole) and torch.equal(state[0], x[:, 17:20])


@pytest.mark.parametrize("error, message, change", [
    (ValueError, r"cache_indices\[1\] is 4, but must be in \[0, 4\)", dict(cache_indices=torch.tensor([0, 4]))),
    (ValueError, "query_start_loc ends at 8, but x has 9", dict(query_start_loc=torch.tensor([0, 3, 8]))),
    (ValueError, "query_start_loc", dict(query_start_loc=torch.tensor([0, 9, 9 - 1]))),
    (ValueError, "weight is .* width must be 2, 3 or 4", dict(weight=torch.zeros(6, 5))),
    (ValueError, "conv_states is .* must be .slots, 6, 3.", dict(conv_states=torch.zeros(4, 6, 4))),
    (ValueError, "activation is 'relu'", dict(activation="relu")),
    (ValueError, "has_initial_state is given without conv_states", dict(conv_states=None)),
    (ValueError, "x is .* side by side", dict(x=torch.zeros(12, 18)[::2, ::2])),
    (ValueError, "bias is .* must be .6.", dict(bias=torch.zeros(5))),
])
def test_errors_of_the_convolution(error, message, change):
    args = dict(x=torch.zeros(6, 9), weight=torch.zeros(6, 4), query_start_loc=torch.tensor([0, 3, 9]), conv_states=torch.ones(4, 6, 3),
                has_initial_state=torch.tensor([True, False]))
    args.update(change)
    with pytest.raises(error, match=message):
        mamba.causal_conv1d_fn(**args)
    for message, wrong in (("conv_state has 1 slots, fewer than the 2", dict(conv_state=torch.zeros(1, 6, 3))), ("cache_seqlens.0. is -1", dict(
            cache_seqlens=torch.tensor([-1, 0]))), ("rows must have 4 elements for 2 tokens", dict(num_accepted_tokens=torch.tensor([1, 1])))):
        with pytest.raises(ValueError, match=message):
            mamba.causal_conv1d_update(**{**dict(x=torch.zeros(2, 6, 2), conv_state=torch.ones(4, 6, 3), weight=torch.zeros(6, 4)), **wrong})


def scan_inputs(tokens, dtype=torch.bfloat16):
    args = inputs(1, tokens, dtype=dtype)
    return dict(x=args["x"], dt=args["dt"][..., 0], A=args["A"][:, 0, 0].contiguous(), B=args["B"], C=args["C"], D=args["D"][:, 0].contiguous(), z=args["z"],
                dt_bias=args["dt_bias"][:, 0].contiguous(), dt_softplus=True), args


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float32])
def test_scan_of_packed_sequences(dtype):
    scan, args = scan_inputs(200, dtype)
    lengths, before = [0, 1, 1, 130, 200], torch.randn(4, HEADS, DIM, STATE)
    ids = torch.repeat_interleave(torch.arange(4), torch.tensor(lengths).diff())[None]
    kernel = mamba.SSDCombined(128, HEADS, DIM, STATE, GROUPS, dtype, torch.float32, has_initial_states=True, has_varlen=True, has_z=True)
    checkpoints = torch.full((3, HEADS, DIM, STATE), 7.0)
    chunks = torch.tensor([0, 0, 1, 1]), torch.tensor([0, 1, 0, 2])
    sums = torch.zeros(5, dtype=torch.int32)
    y, final = kernel.run(**scan, initial_states=before, seq_idx=ids, checkpoint_token_indices=torch.tensor([-1, 1, 65, 131]),
                          checkpoint_state_slots=torch.tensor([0, -1, 2, 1]), checkpoint_states=checkpoints, seq_chunk_cumsum=sums,
                          update_seq_chunk_cumsum=True, chunk_indices=chunks[0], chunk_offsets=chunks[1])
    assert sums.tolist() == [0, 1, 1, 3, 4] and (checkpoints[0] == 7).all()
    rtol, atol = (1e-4, 1e-4) if dtype == torch.float32 else (2e-2, 6e-2)
    for i, (begin, end) in enumerate(zip(lengths, lengths[1:])):
        if begin == end:
            assert torch.equal(final[i], before[i])
            continue
        outputs, states = one(args, 0, before[i], slice(begin, end))
        close(y[0, begin:end], outputs, rtol, atol), close(final[i], states[-1], rtol, atol)
        if i >= 2:
            close(checkpoints[2 if i == 2 else 1], states[{2: 63, 3: 0}[i]], rtol, atol)
    # Cut at a border of chunks, with states in f32, and in another batch: the same bits. A checkpoint is the state of the prefix.
    plain = mamba.SSDCombined(128, HEADS, DIM, STATE, GROUPS, dtype, torch.float32, has_initial_states=True, has_z=True)
    part = lambda index: {n: scan[n][:, index] if n in ("x", "dt", "B", "C", "z") else v for n, v in scan.items()}
    head, middle = plain.run(**part(slice(1, 65)), initial_states=before[2:3])
    tail, end = plain.run(**part(slice(65, 130)), initial_states=middle)
    assert torch.equal(torch.cat([head, tail], 1), y[:, 1:130]) and torch.equal(end[0], final[2]) and torch.equal(middle[0], checkpoints[2])
    assert plain.run(**part(slice(1, 65)), return_final_states=False)[1] is None


@pytest.mark.parametrize("token", [0, 37, 66])
def test_scan_keeps_nan_from_earlier_tokens(token):
    args, _ = scan_inputs(70)
    before = mamba.ssd_combined_fwd(**args)[0]
    args["x"] = args["x"].clone()
    args["x"][0, token, 1, 3] = float("nan")
    after = mamba.ssd_combined_fwd(**args)[0]
    assert torch.equal(after[:, :token], before[:, :token]) and after[0, token:, 1, 3].isnan().all()
    others = torch.ones(HEADS, dtype=torch.bool).index_fill(0, torch.tensor([1]), False)
    assert torch.equal(after[:, :, others], before[:, :, others])


def test_scan_clamps_steps_and_refuses():
    scan, args = scan_inputs(70)
    y, final = mamba.ssd_combined_fwd(**{**scan, "dt_softplus": False}, dt_limit=(0.0, 0.25))
    step = (args["dt"][..., :1].double() + args["dt_bias"][:, :1].double()).clamp(0, 0.25).expand_as(args["dt"])
    inverse = torch.log(torch.expm1(step))  # of softplus
    outputs, states = one({**args, "dt": inverse, "dt_bias": torch.zeros(HEADS, DIM)}, 0, torch.zeros(HEADS, DIM, STATE))
    close(y[0], outputs, 2e-2, 3e-2), close(final[0], states[-1], 2e-2, 3e-2)
    kernel = mamba.SSDCombined(128, HEADS, DIM, STATE, GROUPS, has_z=True, has_varlen=True)
    for message, change in (("x is .* but must be", dict(x=scan["x"][..., :8])), ("initial_states is given", dict(initial_states=final)),
                            ("seq_idx goes from 0 to 0", dict(seq_idx=torch.arange(70)[None] % 2 * (torch.arange(70)[None] < 69))),
                            ("come together", dict(checkpoint_states=final)),
                            ("checkpoint_token_indices.0. is 71", dict(checkpoint_states=final, checkpoint_token_indices=torch.tensor([71]),
                                                                       checkpoint_state_slots=torch.tensor([0])))):
        with pytest.raises(ValueError, match=message):
            kernel.run(**{**scan, **change})
    with pytest.raises(ValueError, match="cu_seqlens ends at 69"):
        mamba.ssd_chunk_scan(**scan, cu_seqlens=torch.tensor([0, 69]))


def test_scan_writes_its_result_by_chunks():
    scan, _ = scan_inputs(96)
    kernel = mamba.SSDCombined(32, HEADS, DIM, STATE, GROUPS, has_z=True)
    want, final = kernel.run(**scan)
    out = torch.full((1, HEADS, DIM, 3, 32), 7.0, dtype=torch.bfloat16)
    y, states = kernel.run(**scan, out=out)
    assert torch.equal(y, want) and torch.equal(states, final) and y.untyped_storage().data_ptr() == out.untyped_storage().data_ptr()
    assert all(torch.equal(out[0, :, :, t // 32, t % 32], want[0, t]) for t in range(96))
    for wrong in (out[:, :, :, :2], out.transpose(1, 2), out.float()):
        with pytest.raises(ValueError, match="SSDCombined.run: out is .* but must be contiguous torch.bfloat16"):
            kernel.run(**scan, out=wrong)
    with pytest.raises(ValueError, match="whole chunks of the 70 tokens"):
        kernel.run(**scan_inputs(70)[0], out=out)


RING, NEW = 12, 4  # rows of a ring, tokens of a call: a window of 8


def rings(dtype=torch.float32, slots=5):
    """A pool of states with rings, and tokens of three sequences."""
    args = inputs(3, NEW, state=torch.float32, slots=slots, seed=4)
    state, scale = args.pop("state"), None
    if dtype.itemsize == 1:
        largest = 127 if dtype == torch.int8 else 448
        scale = state.abs().amax(-1) / largest
        state = (state / scale[..., None]).round() if dtype == torch.int8 else state / scale[..., None]
    return dict(args, state=state.to(dtype), state_scale=scale, x_cache=torch.randn(slots, HEADS, RING, DIM).bfloat16(),
                B_cache=torch.randn(slots, GROUPS, RING, STATE).bfloat16(), dt_cache=torch.rand(slots, HEADS, RING),
                ring_start=torch.randint(0, RING, (slots,), dtype=torch.int32), prev_num_accepted_tokens=torch.tensor([4, 8, 0, 5, 3], dtype=torch.int32)[:slots],
                out=torch.empty_like(args["x"]))


def replayed(args, slot, count):
    """The state of a slot after `count` rows of its ring, in double precision."""
    state = args["state"][slot].double()
    if args["state_scale"] is not None:
        state = state * args["state_scale"][slot].double()[..., None]
    for t in range(count):
        row = (int(args["ring_start"][slot]) + t) % RING
        step, x = args["dt_cache"][slot, :, row].double(), args["x_cache"][slot, :, row].double()
        b = args["B_cache"][slot, :, row].double().repeat_interleave(HEADS // GROUPS, 0)
        state = state * torch.exp(args["A"][:, :1, :1].double() * step[:, None, None]) + (step[:, None] * x)[..., None] * b[:, None]
    return state


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.int8, torch.float8_e4m3fn])
def test_replayed_tokens_come_before_the_new_ones(dtype):
    args, slots = rings(dtype), torch.tensor([3, -1, 0])
    before = {n: x.clone() for n, x in args.items() if isinstance(x, torch.Tensor)} | {"state_scale": None if args["state_scale"] is None else args["state_scale"].clone()}
    assert mamba.checkpointing_ssu(**args, state_batch_indices=slots) is args["out"]
    assert (args["out"][1] == 0).all()
    for i, slot in ((0, 3), (2, 0)):
        k, start = int(args["prev_num_accepted_tokens"][slot]), int(args["ring_start"][slot])
        begin = replayed(before, slot, k)
        outputs, _ = one(args, i, begin)
        close(args["out"][i], outputs)
        rows = [(start + k + t) % RING for t in range(NEW)]
        assert torch.equal(args["x_cache"][slot][:, rows], args["x"][i].transpose(0, 1)) and torch.equal(args["B_cache"][slot][:, rows], args["B"][i].transpose(0, 1))
        close(args["dt_cache"][slot][:, rows].T, torch.nn.functional.softplus(args["dt"][i, :, :, 0].double() + args["dt_bias"][:, 0].double()), 1e-5, 1e-5)
        rest = [r for r in range(RING) if r not in rows]
        assert all(torch.equal(args[n][slot][:, rest], before[n][slot][:, rest]) for n in ("x_cache", "B_cache", "dt_cache"))
        if slot == 3:  # 5 + 4 > 8: the state after the old tokens is stored
            stored = args["state"][slot].double()
            if args["state_scale"] is not None:
                stored = stored * args["state_scale"][slot].double()[..., None]
            bound = {torch.float32: 1e-5, torch.bfloat16: 1e-2, torch.int8: 2e-2}.get(dtype, 1e-1)
            close(stored, begin, bound, bound)
    kept = [0, 1, 2, 4]
    assert torch.equal(args["state"].view(torch.uint8)[kept], before["state"].view(torch.uint8)[kept])
    assert all(torch.equal(args[n][[1, 2, 4]], before[n][[1, 2, 4]]) for n in ("x_cache", "B_cache", "dt_cache"))


def test_e4m3_states_are_rounded_with_random_bits():
    """Between the two neighbours of the exact value, on average at it, for normal and subnormal numbers; the same bits again for the same seed."""
    args = rings(torch.float8_e4m3fn)
    args["state"][3, :, :, ::4] = 0
    for name in ("x_cache", "B_cache"):
        args[name][3] *= 2.0 ** -7
    before = {n: x.clone() for n, x in args.items() if isinstance(x, torch.Tensor)}
    exact, total, results = replayed(before, 3, int(args["prev_num_accepted_tokens"][3])), 0, []
    for seed in [*range(128), 127]:
        mamba.checkpointing_ssu(**{**args, **{n: before[n].clone() for n in ("x_cache", "B_cache", "dt_cache")}, "state": (state := before["state"].clone()),
                                   "state_scale": (scale := before["state_scale"].clone())},
                                state_batch_indices=torch.tensor([3, -1, -1]), rand_seed=torch.tensor([seed]))
        results.append(state[3].float().double())
        total = total + results[-1]
    assert torch.equal(results[-1], results[-2]) and not torch.equal(results[0], results[1])
    exact = exact / scale[3].double()[..., None]
    assert (exact.abs() < 2.0 ** -6).any() and (exact.abs() > 1).any()
    ulp = 2.0 ** (exact.abs().log2().floor().clamp(min=-6) - 3)
    assert all(((r - exact).abs() <= ulp * 1.001).all() for r in results)
    error = (total / 129 - exact) / ulp
    assert abs(error.mean()) < 0.01 and error.abs().max() < 0.25  # to nearest, the largest would be 0.5


@pytest.mark.parametrize("error, message, change", [
    (ValueError, r"state_batch_indices\[0\] is 5", dict(state_batch_indices=torch.tensor([5, 0, 1]))),
    (ValueError, r"ring_start\[1\] is 12", dict(ring_start=torch.tensor([0, 12, 0, 0, 0], dtype=torch.int32))),
    (ValueError, r"prev_num_accepted_tokens\[0\] is 9", dict(prev_num_accepted_tokens=torch.tensor([9, 0, 0, 0, 0], dtype=torch.int32))),
    (ValueError, r"A is .* must be 1 or have stride 0 \(broadcasted\)", dict(A=-torch.rand(HEADS, DIM, STATE))),
    (ValueError, "state_scale is given", dict(state_scale=torch.ones(5, HEADS, DIM))),
    (ValueError, "max_seqlen is given", dict(max_seqlen=3)),
    (ValueError, "random rounding is for f16 and e4m3", dict(rand_seed=torch.tensor([3]))),
    (ValueError, "algorithm", dict(algorithm="fast")),
])
def test_errors_of_replay(error, message, change):
    args = {**rings(), **change}
    before = {n: args[n].clone() for n in ("state", "x_cache", "dt_cache")}
    with pytest.raises(error, match=message):
        mamba.checkpointing_ssu(**args)
    assert all(torch.equal(args[n], x) for n, x in before.items())
    small = {n: (x[:, :, :7] if n in ("x_cache", "B_cache", "dt_cache") else x) for n, x in rings().items()}
    with pytest.raises(AssertionError, match="rings of 7 rows and 4 tokens"):
        mamba.checkpointing_ssu(**small)


@pytest.mark.parametrize("dtype", [torch.float32, torch.int8])
def test_states_within_a_ring_go_to_other_slots(dtype):
    layers = [rings(dtype) for _ in range(2)]
    a = layers[0]["A"][:, 0, 0].contiguous()
    before = [layer["state"].clone() for layer in layers]
    pointers = lambda name: torch.tensor([layer[name].data_ptr() for layer in layers])
    strides = lambda name: torch.tensor([layer[name].stride(0) for layer in layers])
    tables = [f(name) for name in ("state", "x_cache", "B_cache", "dt_cache") for f in (pointers, strides)]
    scales = [pointers("state_scale"), strides("state_scale")] if dtype == torch.int8 else [torch.zeros(2, dtype=torch.int64)] * 2
    src, dst = torch.tensor([[0, 1, 3], [2, 0, -1]], dtype=torch.int32), torch.tensor([[4, 2, 2], [4, 3, 1]], dtype=torch.int32)
    start, length = torch.tensor([11, 3, 0], dtype=torch.int32), torch.tensor([5, 0, 8], dtype=torch.int32)
    options = dict(state_dtype=dtype, input_dtype=torch.bfloat16, matrixA_dtype=torch.float32, dim=DIM, dstate=STATE, num_heads=HEADS,
                   heads_per_group=HEADS // GROUPS, max_window=8, ring_buffer_len=RING)
    call = lambda active, **change: mamba.replayssm_materialize(
        *tables, torch.tensor([a.data_ptr()] * 2), *scales, src, dst, change.pop("ring_start", start), length,
        torch.tensor(active, dtype=torch.int32), **{**options, **change})
    for message, wrong in (("ring_start 12", dict(ring_start=torch.tensor([12, 0, 0]))), ("max_window is 17", dict(max_window=17)), ("divide", dict(heads_per_group=3))):
        with pytest.raises(ValueError, match=message):
            call([1, 0, -1], **wrong)
    call([1, 0, -1])
    for i, layer in enumerate(layers):
        layer["ring_start"], layer["ring_start"][:] = layer["ring_start"].clone(), 11
        old = {**layer, "state": before[i]}
        stored = layer["state"][dst[i, 0]].double()
        if dtype == torch.int8:
            old["state_scale"], stored = layer["state_scale"], stored * layer["state_scale"][dst[i, 0]].double()[..., None]
        close(stored, replayed(old, int(src[i, 0]), 5), *((2e-2, 2e-2) if dtype == torch.int8 else (1e-5, 1e-5)))
        assert torch.equal(layer["state"][dst[i, 1]], before[i][src[i, 1]])
        rest = [s for s in range(5) if s not in dst[i, :2].tolist()]
        assert torch.equal(layer["state"][rest], before[i][rest])
