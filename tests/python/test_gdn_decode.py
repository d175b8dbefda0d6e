# SPDX-License-Identifier: Apache-2.0
"""The decode ops of the gated delta rule as an engine calls them: slots, what comes back, what keeps its bytes, errors. Results against
double precision are the rows of flashinfer/ops/linear_attention/gdn/cases.cc."""
import pytest
import torch

import flashinfer
from flashinfer.gdn_decode import (gated_delta_rule_decode, gated_delta_rule_decode_pretranspose, gated_delta_rule_mtp,
                                   gated_delta_rule_replayssm_commit)

H, HV, K, V = 2, 4, 64, 8


def inputs(batch, tokens, dtype=torch.bfloat16, seed=0, width=K, rows=V):
    g = torch.Generator().manual_seed(seed)
    make = lambda *shape: torch.randn(*shape, generator=g).to(dtype)  # noqa: E731
    return dict(q=make(batch, tokens, H, width), k=make(batch, tokens, H, width), v=make(batch, tokens, HV, rows),
                a=make(batch, tokens, HV), b=make(batch, tokens, HV), A_log=torch.randn(HV, generator=g), dt_bias=torch.randn(HV, generator=g))


def pool(slots, dtype=torch.float32, seed=7, width=K, rows=V):
    return torch.randn(slots, HV, rows, width, generator=torch.Generator().manual_seed(seed)).to(dtype)


def token(x, t):
    return {k: v[:, t:t + 1] if v.dim() > 1 else v for k, v in x.items()}


def test_the_state_is_updated_in_place_and_returned():
    x, state = inputs(3, 1), pool(3)
    out, returned = gated_delta_rule_decode_pretranspose(**x, state=state, output=(given := torch.empty(3, 1, HV, V, dtype=torch.bfloat16)))
    assert out is given and returned is state
    out, returned = gated_delta_rule_decode(**x, state=(columns := pool(3).transpose(-1, -2).contiguous()))
    assert returned is columns
    torch.testing.assert_close(columns.transpose(-1, -2), state, rtol=1e-5, atol=1e-5)
    torch.testing.assert_close(out, given)
    slots = pool(5)
    _, returned = gated_delta_rule_decode_pretranspose(**x, state=None, initial_state=slots, initial_state_indices=torch.tensor([4, 0, 2]))
    assert returned is slots


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
@pytest.mark.parametrize("width", [K, 24])
def test_slots(dtype, width):
    x, slots = inputs(4, 1, width=width), pool(7, dtype, width=width)
    read, write = torch.tensor([5, -1, 0, 2], dtype=torch.int32), torch.tensor([5, 1, 3, -1], dtype=torch.int32)
    direct = slots[read.long().clamp(min=0)].clone()
    want, _ = gated_delta_rule_decode_pretranspose(**x, state=direct)
    before = slots.clone()
    out, _ = gated_delta_rule_decode_pretranspose(**x, state=None, initial_state=slots, initial_state_indices=read, output_state_indices=write)
    assert torch.equal(out[[0, 2, 3]], want[[0, 2, 3]]) and not out[1].any()
    assert torch.equal(slots[5], direct[0]) and torch.equal(slots[3], direct[2])
    untouched = [0, 1, 2, 4, 6]
    assert torch.equal(slots[untouched], before[untouched])


def test_padded_and_far_slots():
    x = inputs(2, 1)
    memory = torch.zeros(3, HV * V * K + 40)
    slots = memory[:, :HV * V * K].unflatten(1, (HV, V, K))
    slots.copy_(pool(3))
    tight = slots.contiguous()
    indices = torch.tensor([2, 0])
    for p in (slots, tight):
        gated_delta_rule_decode_pretranspose(**x, state=None, initial_state=p, initial_state_indices=indices)
    assert torch.equal(slots, tight) and not memory[:, HV * V * K:].any()
    # Slot 3972 at a stride of 540672 elements is past 2^31; only the pages of two slots get memory.
    far = torch.empty_strided((3973, HV, V, K), (540672, V * K, K, 1), dtype=torch.bfloat16)
    far[3972], far[0] = tight[0], tight[1]
    near = far[[3972, 0]].clone()
    gated_delta_rule_decode_pretranspose(**x, state=None, initial_state=far, initial_state_indices=torch.tensor([3972, 0]))
    gated_delta_rule_decode_pretranspose(**x, state=near)
    assert torch.equal(far[[3972, 0]], near)


def test_rows_that_share_a_slot():
    x, slots = inputs(4, 1), pool(4)
    before = slots.clone()
    read, write = torch.tensor([2, 1, 0, 1]), torch.tensor([1, 2, 3, 3])
    out, _ = gated_delta_rule_decode_pretranspose(**x, state=None, initial_state=slots, initial_state_indices=read, output_state_indices=write)
    alone = before[read].clone()
    want, _ = gated_delta_rule_decode_pretranspose(**x, state=alone)
    assert torch.equal(out, want)
    assert torch.equal(slots, torch.stack([before[0], alone[0], alone[1], alone[3]]))


@pytest.mark.parametrize("width", [K, 24])
def test_tokens_of_one_call_are_tokens_of_several(width):
    x = inputs(2, 5, width=width)
    indices = torch.tensor([1, 2], dtype=torch.int32)
    once, steps, buffer = pool(3, width=width), pool(3, width=width), torch.empty(2, 6, HV, V, width)
    out, returned = gated_delta_rule_mtp(**x, initial_state=once, initial_state_indices=indices, disable_state_update=False,
                                         intermediate_states_buffer=buffer)
    assert returned is once
    for t in range(5):
        want, _ = gated_delta_rule_decode_pretranspose(**token(x, t), state=None, initial_state=steps, initial_state_indices=indices)
        assert torch.equal(out[:, t:t + 1], want)
        assert torch.equal(buffer[:, t], steps[1:])
    assert torch.equal(once, steps)
    frozen = pool(3, width=width)
    again, _ = gated_delta_rule_mtp(**x, initial_state=frozen, initial_state_indices=indices, disable_state_update=True)
    assert torch.equal(again, out) and torch.equal(frozen, pool(3, width=width))


def test_the_name_that_sglang_imports_for_bf16_states():
    from flashinfer.gdn_kernels.gdn_decode_bf16_state import gated_delta_rule_mtp as mtp_bf16

    x, slots, indices = inputs(2, 3), pool(4, torch.bfloat16), torch.tensor([3, 1], dtype=torch.int32)
    want, _ = gated_delta_rule_mtp(**x, initial_state=slots, initial_state_indices=indices, disable_state_update=True)
    states = torch.zeros(2, 3, HV, V, K, dtype=torch.bfloat16)
    out = mtp_bf16(**x, softplus_beta=1.0, softplus_threshold=20.0, initial_state_source=slots, initial_state_indices=indices, scale=None, output=None,
                   use_qk_l2norm_in_kernel=True, intermediate_states_buffer=states, disable_state_update=True)
    assert torch.equal(out, want) and torch.equal(slots, pool(4, torch.bfloat16)) and states.any()
    with pytest.raises(NotImplementedError, match="softplus_beta is 2.0, but only 1.0"):
        mtp_bf16(**x, softplus_beta=2.0, initial_state_source=slots)
    with pytest.raises(ValueError, match="initial_state_source is torch.float32, but must be torch.bfloat16"):
        mtp_bf16(**x, initial_state_source=slots.float())


def test_a_slot_for_each_token():
    x, slots = inputs(2, 3), pool(9)
    where = torch.tensor([[4, -1, 5], [6, 7, 1]], dtype=torch.int32)
    states = torch.empty(2, 3, HV, V, K)
    before = slots.clone()
    common = dict(initial_state_indices=torch.tensor([1, 2]))
    gated_delta_rule_mtp(**x, **common, initial_state=before.clone(), disable_state_update=True, intermediate_states_buffer=states)
    gated_delta_rule_mtp(**x, **common, initial_state=slots, disable_state_update=False, ssm_state_indices=where)
    want = before.clone()
    for i, t in ((0, 0), (0, 2), (1, 0), (1, 1), (1, 2)):
        want[where[i, t]] = states[i, t]
    assert torch.equal(slots, want)


def test_nan_stays_in_its_row():
    x, slots = inputs(3, 1), pool(3)
    x["k"][1] = float("nan")
    clean, state = inputs(3, 1), pool(3)
    out, _ = gated_delta_rule_decode_pretranspose(**x, state=slots)
    want, _ = gated_delta_rule_decode_pretranspose(**clean, state=state)
    for got, expected in ((out, want), (slots, state)):
        assert torch.equal(got[[0, 2]], expected[[0, 2]]) and got[1].isnan().all()


def test_replay_cache_and_commit():
    x = inputs(3, 4, width=128, rows=128)
    slots = pool(5, width=128, rows=128)
    before = slots.clone()
    cache = dict(replayssm_rawv=torch.zeros(5, HV, 4, 128, dtype=torch.bfloat16), replayssm_rawk=torch.zeros(5, H, 4, 128, dtype=torch.bfloat16),
                 replayssm_g=torch.zeros(5, HV, 4), replayssm_beta=torch.zeros(5, HV, 4))
    indices = torch.tensor([3, -1, 1], dtype=torch.int32)
    gated_delta_rule_mtp(**x, initial_state=slots, initial_state_indices=indices, disable_state_update=True, cache_replayssm=True, **cache)
    assert torch.equal(slots, before)
    for name, buffer in cache.items():
        assert not buffer[[0, 2, 4]].any() and buffer[[1, 3]].any(), name
    assert torch.equal(cache["replayssm_rawv"][3], x["v"][0].transpose(0, 1))
    states = torch.empty(3, 4, HV, 128, 128)
    gated_delta_rule_mtp(**x, initial_state=before.clone(), initial_state_indices=indices, disable_state_update=True,
                         intermediate_states_buffer=states)
    layers = [t[None] for t in (slots, *cache.values())]
    lens = torch.tensor([2, 4, 3], dtype=torch.int32)
    gated_delta_rule_replayssm_commit(*layers, indices, lens, track_state_indices=torch.tensor([0, 2, -1], dtype=torch.int32),
                                      track_steps=torch.tensor([0, 1, 0], dtype=torch.int32))
    torch.testing.assert_close(slots[3], states[0, 1], rtol=1e-5, atol=1e-5)
    torch.testing.assert_close(slots[0], states[0, 0], rtol=1e-5, atol=1e-5)
    torch.testing.assert_close(slots[1], states[2, 2], rtol=1e-5, atol=1e-5)
    assert torch.equal(slots[[2, 4]], before[[2, 4]])


@pytest.mark.parametrize("layout", ["SD", "DS"])
def test_fused_step(layout):
    g = torch.Generator().manual_seed(3)
    make = lambda *shape: torch.randn(*shape, generator=g).bfloat16()  # noqa: E731
    hidden, w_ba, qkv, weight, bias = make(3, 40), make(40, 2 * HV) * 0.1, make(3, 2 * H * K + HV * V), make(2 * H * K + HV * V, 4), make(2 * H * K + HV * V)
    conv = make(5, qkv.shape[1], 3) if layout == "SD" else make(5, 3, qkv.shape[1]).transpose(1, 2)
    states, x = pool(5), inputs(3, 1)
    x["dt_bias"][1] = 100.0  # softplus far above its threshold
    conv_before, before = conv.clone(), states.clone()
    indices = torch.tensor([4, -1, 2], dtype=torch.int32)
    out, conv_returned, returned = flashinfer.gdn_fused_decode_step(hidden, w_ba, qkv, weight, bias, conv, x["A_log"], x["dt_bias"], None, states, indices)
    assert conv_returned is conv and returned is states and out.isfinite().all() and not out[1].any()
    live = [0, 2]
    window = torch.cat([conv_before[indices[live].long()], qkv[live][:, :, None]], dim=2)
    y = torch.nn.functional.silu((window.float() * weight.float()).sum(-1) + bias.float()).bfloat16()
    q, k, v = (t.unflatten(1, (n, -1))[:, None] for t, n in zip(y.split([H * K, H * K, HV * V], dim=1), (H, H, HV)))
    b, a = (hidden[live].float() @ w_ba.float()).bfloat16().chunk(2, dim=1)
    state = before[[4, 2]].clone()
    want, _ = gated_delta_rule_decode_pretranspose(q.contiguous(), k.contiguous(), v.contiguous(), state, x["A_log"], a[:, None].contiguous(), x["dt_bias"],
                                                   b[:, None].contiguous())
    torch.testing.assert_close(out[live], want, rtol=5e-3, atol=5e-3)
    torch.testing.assert_close(states[[4, 2]], state, rtol=5e-3, atol=5e-3)
    assert torch.equal(conv[[4, 2]], window[:, :, 1:])
    rest = [0, 1, 3]
    assert torch.equal(states[rest], before[rest]) and torch.equal(conv[rest], conv_before[rest])


def test_fused_step_supported():
    assert flashinfer.gdn_fused_decode_step_supported(1)
    assert flashinfer.gdn_fused_decode_step_supported(7, 64, 8, 768, 1, 4, 128, conv_state_layout="DS")
    assert not flashinfer.gdn_fused_decode_step_supported(1, n_ba=95)
    assert not flashinfer.gdn_fused_decode_step_supported(1, conv_state_len=4)


def fused(**changes):
    g = dict(hidden_states=torch.zeros(2, 40), w_ba=torch.zeros(40, 2 * HV), mixed_qkv=torch.zeros(2, 2 * H * K + HV * V),
             conv_weight=torch.zeros(2 * H * K + HV * V, 4), conv_state=torch.zeros(3, 2 * H * K + HV * V, 3))
    x = {k: v.bfloat16() for k, v in g.items()} | dict(conv_bias=None, A_log=torch.zeros(HV), dt_bias=torch.zeros(HV), scale=None, ssm_state=pool(3),
                                                       state_indices=i32(0, 1))
    flashinfer.gdn_fused_decode_step(**{**x, **changes})


def pretranspose(**changes):
    x = dict(inputs(2, changes.pop("tokens", 1)), state=pool(2))
    gated_delta_rule_decode_pretranspose(**{**x, **changes})


def mtp(**changes):
    x = dict(inputs(2, changes.pop("tokens", 3)), initial_state=pool(3), initial_state_indices=torch.tensor([0, 1]), disable_state_update=True)
    gated_delta_rule_mtp(**{**x, **changes})


def commit(**changes):
    x = dict(checkpoint_state=torch.zeros(1, 3, HV, 128, 128), rawv_cache=torch.zeros(1, 3, HV, 2, 128, dtype=torch.bfloat16),
             rawk_cache=torch.zeros(1, 3, H, 2, 128, dtype=torch.bfloat16), g_cache=torch.zeros(1, 3, HV, 2), beta_cache=torch.zeros(1, 3, HV, 2),
             state_indices=torch.tensor([0, 1], dtype=torch.int32), accept_lens=torch.tensor([1, 2], dtype=torch.int32))
    gated_delta_rule_replayssm_commit(**{**x, **changes})


i32 = lambda *x: torch.tensor(x, dtype=torch.int32)  # noqa: E731


@pytest.mark.parametrize("call, kind, text", [
    (lambda: pretranspose(initial_state=pool(3)), AssertionError, "initial_state_indices is None"),
    (lambda: pretranspose(initial_state_indices=i32(0, 1)), AssertionError, "initial_state is None"),
    (lambda: pretranspose(state=None), ValueError, "state is None"),
    (lambda: pretranspose(initial_state=pool(3), initial_state_indices=i32(0, 3)), ValueError,
     r"initial_state_indices\[1\] is 3, but initial_state has 3 slots"),
    (lambda: pretranspose(initial_state=pool(3), initial_state_indices=i32(0, 1), output_state_indices=i32(9, 1)), ValueError,
     r"output_state_indices\[0\] is 9"),
    (lambda: pretranspose(output_state_indices=i32(0, 1)), ValueError, "output_state_indices is given"),
    (lambda: pretranspose(disable_state_update=True), ValueError, r"q.shape\[1\] is 1"),
    (lambda: pretranspose(intermediate_states_buffer=torch.zeros(2, 1, HV, V, K)), ValueError, "intermediate_states_buffer is given"),
    (lambda: pretranspose(tokens=2), AssertionError, r"q.shape\[1\] is 2"),
    (lambda: pretranspose(backend="triton"), ValueError, "backend is 'triton'"),
    (lambda: pretranspose(state=pool(2, torch.float16)), ValueError, "state.dtype is float16"),
    (lambda: pretranspose(state=pool(2).transpose(-1, -2).contiguous()), ValueError, r"state.shape\[2\] is 64"),
    (lambda: pretranspose(v=torch.zeros(2, 1, 3, V, dtype=torch.bfloat16)), ValueError, r"state.shape\[1\] is 4"),
    (lambda: mtp(ssm_state_indices=torch.zeros(2, 3, dtype=torch.int32)), ValueError, "disable_state_update is True"),
    (lambda: mtp(ssm_state_indices=torch.full((2, 3), 3, dtype=torch.int32), disable_state_update=False), ValueError, r"ssm_state_indices\[0, 0\] is 3"),
    (lambda: mtp(intermediate_states_buffer=torch.zeros(2, 2, HV, V, K)), ValueError, r"must be float32\[>= 2, >= 3, 4, 8, 64\]"),
    (lambda: mtp(replayssm_g=torch.zeros(3, HV, 3)), AssertionError, "replayssm_g is given"),
    (lambda: mtp(cache_replayssm=True), AssertionError, "replayssm_rawv is None"),
    (lambda: commit(null_block_id=-2), ValueError, "null_block_id is -2"),
    (lambda: commit(track_steps=i32(0, 0)), ValueError, "track_state_indices is None"),
    (lambda: commit(accept_lens=i32(1, 3)), ValueError, r"accept_lens\[1\] is 3"),
    (lambda: commit(state_indices=i32(1, 1)), ValueError, "are both 1"),
    (lambda: commit(state_indices=i32(1, 3)), ValueError, r"state_indices\[1\] is 3, but checkpoint_state has 3 slots"),
    (lambda: commit(backend="cake_gdn"), ValueError, "backend is 'cake_gdn'"),
    (lambda: fused(state_indices=i32(0, 3)), ValueError, r"state_indices\[1\] is 3, but ssm_state has 3 slots"),
    (lambda: fused(ssm_state=pool(3, width=48)), ValueError, r"mixed_qkv.shape\[1\] is 288, but must be 2 H K"),
    (lambda: fused(w_ba=torch.zeros(40, 6).bfloat16()), ValueError, "w_ba.shape"),
    (lambda: fused(conv_state=torch.zeros(3, 288, 2).bfloat16()), ValueError, r"conv_state.shape\[2\] is 2, but must be 3"),
])
def test_errors(call, kind, text):
    with pytest.raises(kind, match=text):
        call()


def test_nothing_is_written_before_an_error():
    slots, x = pool(3), inputs(2, 1)
    out = torch.full((2, 1, HV, V), 5.0, dtype=torch.bfloat16)
    with pytest.raises(ValueError):
        gated_delta_rule_decode_pretranspose(**x, state=None, output=out, initial_state=slots, initial_state_indices=torch.tensor([0, 3]))
    assert torch.equal(slots, pool(3)) and (out == 5).all()


def test_the_update_of_mtp_is_off_by_default():
    slots, x = pool(3), inputs(1, 2)
    with pytest.warns(UserWarning, match="disable_state_update"):
        gated_delta_rule_mtp(**x, initial_state=slots, initial_state_indices=torch.tensor([1]))
    assert torch.equal(slots, pool(3))


def test_names():
    assert flashinfer.gdn_decode.gated_delta_rule_mtp is gated_delta_rule_mtp


@pytest.mark.parametrize("dtype, tokens", [(torch.float32, 1), (torch.bfloat16, 1), (torch.bfloat16, 3)])
@pytest.mark.parametrize("fallen", ["read", "write"])
def test_rows_of_padding_touch_no_slot(dtype, tokens, fallen):
    """Padded batches have index -1: no slot changes, slot 0 neither, where FlashInfer writes that."""
    from flashinfer.gdn_kernels.gdn_decode_bf16_state import gated_delta_rule_mtp as mtp_bf16

    none, some = torch.full((3,), -1, dtype=torch.int32), torch.tensor([0, 2, 1], dtype=torch.int32)
    read, write = (none, None) if fallen == "read" else (some, none)
    x = inputs(3, tokens)
    calls = [lambda p: gated_delta_rule_decode_pretranspose(**x, state=None, initial_state=p, initial_state_indices=read, output_state_indices=write),
             lambda p: gated_delta_rule_mtp(**x, initial_state=p, initial_state_indices=read, output_state_indices=write, disable_state_update=False)]
    if dtype == torch.bfloat16:
        names = dict(initial_state_source=None, initial_state_indices=read, output_state_indices=write, disable_state_update=False)
        calls.append(lambda p: mtp_bf16(**x, **{**names, "initial_state_source": p}))
    for call in calls:
        slots = pool(4, dtype)
        before = slots.clone()
        out = call(slots)
        out = out[0] if isinstance(out, tuple) else out
        assert torch.equal(slots.view(torch.uint8), before.view(torch.uint8))
        assert out.any() == (fallen == "write")
