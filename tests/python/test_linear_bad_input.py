# SPDX-License-Identifier: Apache-2.0
"""Bad input of every op of linear attention: another layout or dtype of the state, slots that the pool does not have, lengths that decrease or do
not end at the tokens, NaN gates, outputs in the memory of states. Each is an error that names the argument and its value, and no tensor of
the call has changed then. What else an op refuses is in the tests of its family."""
import pytest
import torch

import flashinfer
from flashinfer import gdn_decode, gdn_prefill, kda, kda_decode, mamba

H, HV, K, V, B = 2, 4, 32, 16, 3  # query and value heads, widths, rows or sequences
NAN = float("nan")


def i32(*x):
    return torch.tensor(x, dtype=torch.int32)


def bf(*shape):
    return torch.randn(*shape).bfloat16()


def with_nan(x, *at):
    x = x.clone()
    x[at] = NAN
    return x


def decode(tokens=1):
    return dict(q=bf(B, tokens, H, K), k=bf(B, tokens, H, K), v=bf(B, tokens, HV, V), a=bf(B, tokens, HV), b=bf(B, tokens, HV), A_log=torch.randn(HV),
                dt_bias=torch.randn(HV), output=torch.zeros(B, tokens, HV, V).bfloat16())


def plain():
    return dict(decode(), state=torch.randn(B, HV, K, V))


def pretranspose():
    return dict(decode(), state=None, initial_state=torch.randn(5, HV, V, K), initial_state_indices=i32(4, -1, 2), output_state_indices=i32(4, 0, 1))


def mtp():
    return dict(decode(3), initial_state=torch.randn(5, HV, V, K), initial_state_indices=i32(4, -1, 2), output_state_indices=i32(4, 0, 1),
                disable_state_update=False)


def commit():
    return dict(checkpoint_state=torch.randn(2, 5, HV, 128, 128), rawv_cache=bf(2, 5, HV, 3, 128), rawk_cache=bf(2, 5, H, 3, 128),
                g_cache=-torch.rand(2, 5, HV, 3), beta_cache=torch.rand(2, 5, HV, 3), state_indices=i32(4, -1, 2), accept_lens=i32(2, 3, 0))


def fused_step():
    channels = 2 * H * K + HV * V
    return dict(hidden_states=bf(B, 24), w_ba=bf(24, 2 * HV), mixed_qkv=bf(B, channels), conv_weight=bf(channels, 4), conv_bias=None,
                conv_state=bf(5, channels, 3), A_log=torch.randn(HV), dt_bias=torch.randn(HV), scale=None, ssm_state=torch.randn(5, HV, V, K),
                state_indices=i32(4, -1, 2), out=torch.zeros(B, 1, HV, V).bfloat16())


def packed(updates=1, channels=False):
    tokens, one = 20, (K,) if channels else ()
    return dict(q=bf(tokens, H, K), k=bf(tokens * updates, H, K), v=bf(tokens * updates, HV, V), g=torch.rand(tokens, HV, *one),
                beta=bf(tokens, HV, K) if channels else torch.rand(tokens * updates, HV), initial_state=torch.randn(B, HV, V, K),
                output=torch.zeros(tokens, HV, V).bfloat16(), output_state=torch.zeros(B, HV, V, K), output_final_state=True, cu_seqlens=i32(0, 7, 7, 20))


def rule():
    return packed()


def rule2():
    return dict(packed(channels=True), w=bf(20, HV, V))


def product():
    return dict(packed(2), num_householder=2)


def recurrence():
    return dict(q=bf(20, H, K), k=bf(20, H, K), v=bf(20, HV, V), g=-bf(20, HV, K).abs(), beta=bf(20, HV), cu_seqlens=i32(0, 7, 12, 19),
                A_log=torch.randn(H), dt_bias=torch.randn(H, K), use_gate=True, state=torch.randn(5, HV, V, K), read_indices=i32(4, -1, 2),
                write_indices=i32(4, 0, 1), output=torch.zeros(20, HV, V).bfloat16())


def recurrent():
    return dict(q=bf(1, 20, H, K), k=bf(1, 20, H, K), v=bf(1, 20, HV, K), g=-bf(1, 20, HV, K).abs(), beta=bf(1, 20, HV), cu_seqlens=i32(0, 7, 12, 20),
                A_log=torch.randn(H), dt_bias=torch.randn(H, K), use_gate_in_kernel=True, initial_state=torch.randn(5, HV, K, K).bfloat16(),
                ssm_state_indices=i32(4, -1, 2), output=torch.zeros(1, 20, HV, K).bfloat16())


def fused_kda(rows=B, length=3, indices=(4, 0, 2)):
    return dict(x=bf(rows, 3 * H * K), weight=torch.randn(3, 4, H * K), conv_state=bf(5, 3 * H * K, length), raw_gate=bf(1, rows, H, K),
                raw_beta=bf(1, rows, H), A_log=torch.randn(H), dt_bias=torch.randn(H * K), state_indices=torch.tensor(indices, dtype=torch.int32),
                state=torch.randn(5, H, K, K), output_gate=bf(rows, H, K), norm_weight=torch.rand(K), output=torch.zeros(1, rows, H, K).bfloat16())


def packed_fused_kda():
    return dict(fused_kda(6, 5, ((1, 2, 3), (0, 4, 4))), query_start_loc=i32(0, 3, 6), num_accepted_tokens=i32(1, 1))


def packed_kda():
    return dict(mixed_qkv=bf(2, 4608), raw_gate=bf(2, 1536), raw_beta=bf(2, 12), A_log=torch.randn(12), dt_bias=torch.randn(1536), state=bf(3, 12, 128, 128),
                state_indices=i32(2, -1), output=torch.zeros(2, 1, 12, 128).bfloat16())


def update():
    return dict(state=torch.randn(5, HV, V, K), x=bf(B, HV, V), dt=bf(B, HV, V), A=-torch.rand(HV, 1, 1), B=bf(B, H, K), C=bf(B, H, K),
                D=bf(HV, V), dt_bias=bf(HV, V), dt_softplus=True, state_batch_indices=i32(4, -1, 2), out=torch.zeros(B, HV, V).bfloat16())


def update_packed():
    return dict(update(), x=bf(20, HV, V), dt=bf(20, HV, V), B=bf(20, H, K), C=bf(20, H, K), out=torch.zeros(20, HV, V).bfloat16(), cache_steps=8,
                cu_seqlens=i32(0, 7, 12, 20))


def ring():
    return dict(state=torch.randn(5, HV, V, K), x_cache=bf(5, HV, 12, V), B_cache=bf(5, H, 12, K), dt_cache=torch.rand(5, HV, 12),
                ring_start=i32(10, 0, 1, 2, 11), prev_num_accepted_tokens=i32(2, 3, 0, 0, 7), x=bf(B, 4, HV, V), dt=bf(B, 4, HV, 1),
                A=(-torch.rand(HV))[:, None, None].expand(HV, V, K), B=bf(B, 4, H, K), C=bf(B, 4, H, K), out=torch.zeros(B, 4, HV, V).bfloat16(),
                dt_bias=bf(HV, 1), state_batch_indices=i32(4, -1, 2))


def layer():
    x = ring()
    return dict({n: x[n] for n in ("state", "x_cache", "B_cache", "dt_cache")}, A=x["A"][:, 0, 0].contiguous(), src_slots=i32(4, -1), dst_slots=i32(1, 2),
                ring_start=i32(10, 0), replay_prefix_len=i32(3, 3))


def scan():
    return dict(x=bf(1, 20, HV, V), dt=torch.rand(1, 20, HV), A=-torch.rand(HV), B=bf(1, 20, H, K), C=bf(1, 20, H, K), dt_bias=torch.rand(HV),
                initial_states=torch.randn(B, HV, V, K), cu_seqlens=i32(0, 7, 7, 20), out=torch.zeros(1, 20, HV, V).bfloat16(), state_dtype=torch.float32)


def convolution():
    return dict(x=torch.randn(6, 9), weight=torch.randn(6, 4), query_start_loc=i32(0, 3, 9), cache_indices=i32(3, -1), conv_states=torch.randn(4, 6, 3),
                out=torch.zeros(6, 9))


def convolution_update():
    return dict(x=torch.randn(2, 6), conv_state=torch.randn(4, 6, 3), weight=torch.randn(6, 4), conv_state_indices=i32(3, -1), out=torch.zeros(2, 6))


GATES = {"A_log": (1,), "dt_bias": (1,), "a": (2, 0, 1), "b": (2, 0, 1)}  # and where a NaN is put
CHANNEL_GATES = {"A_log": (1,), "dt_bias": (1, 3), "g": (3, 1, 5), "beta": (18, 3)}
RAW_GATES = {"A_log": (1,), "dt_bias": (40,), "raw_gate": (0, 2, 1, 7), "raw_beta": (0, 2, 0)}
PACKED = [("cu_seqlens", i32(0, 9, 7, 20), r"cu_seqlens\[2\] is 7"), ("cu_seqlens", i32(0, 7, 7, 19), r"cu_seqlens.* 19, but . has 20 tokens")]
F16 = ".*float16"
# op: its arguments; gates; (argument, value or function of the arguments, message) of the rest
OPS = {
    "gated_delta_rule_decode": (gdn_decode.gated_delta_rule_decode, plain, GATES, [
        ("state", torch.randn(B, HV, V, K), "state.shape"), ("state", torch.randn(B, HV, K, V).half(), "state.dtype is float16"),
        ("output", lambda x: x["state"].flatten().view(torch.bfloat16)[:B * HV * V].view(B, 1, HV, V), "shares memory")]),
    "gated_delta_rule_decode_pretranspose": (gdn_decode.gated_delta_rule_decode_pretranspose, pretranspose, GATES, [
        ("initial_state", torch.randn(5, HV, K, V), "initial_state.shape"), ("initial_state", torch.randn(5, HV, V, K).half(), "initial_state.dtype is float16"),
        ("initial_state_indices", i32(4, -1, 5), r"initial_state_indices\[2\] is 5"), ("output_state_indices", i32(7, 0, 1), r"output_state_indices\[0\] is 7"),
        ("output", lambda x: x["initial_state"].flatten().view(torch.bfloat16)[:B * HV * V].view(B, 1, HV, V), "output .* shares memory with initial_state")]),
    "gated_delta_rule_mtp": (gdn_decode.gated_delta_rule_mtp, mtp, GATES, [
        ("initial_state", torch.randn(5, HV, K, V), "initial_state.shape"), ("initial_state", torch.randn(5, HV, V, K).half(), "initial_state.dtype is float16"),
        ("initial_state_indices", i32(4, -1, 5), r"initial_state_indices\[2\] is 5"), ("output_state_indices", i32(7, 0, 1), r"output_state_indices\[0\] is 7"),
        ("ssm_state_indices", i32(0, 1, 2, 3, 4, 0, 1, 2, 5).view(B, 3), r"ssm_state_indices\[2, 2\] is 5"),
        ("output", lambda x: x["initial_state"].flatten().view(torch.bfloat16)[:B * 3 * HV * V].view(B, 3, HV, V), "shares memory")]),
    "gated_delta_rule_replayssm_commit": (gdn_decode.gated_delta_rule_replayssm_commit, commit, {"g_cache": (1, 4, 0, 1), "beta_cache": (0, 4, 3, 0)}, [
        ("checkpoint_state", torch.randn(2, 5, HV, 128, 64), "checkpoint_state.shape"),
        ("checkpoint_state", torch.randn(2, 5, HV, 128, 128).half(), "checkpoint_state.dtype is float16"),
        ("state_indices", i32(5, -1, 2), r"state_indices\[0\] is 5"), ("accept_lens", i32(4, 0, 0), r"accept_lens\[0\] is 4"),
        ("g_cache", lambda x: x["checkpoint_state"].flatten()[:2 * 5 * HV * 3].view(2, 5, HV, 3), "shares memory")]),
    "gdn_fused_decode_step": (flashinfer.gdn_fused_decode_step, fused_step, {"A_log": (1,), "dt_bias": (1,)}, [
        ("hidden_states", lambda x: with_nan(x["hidden_states"], 2, 5), r"hidden_states w_ba\[2, 0\] is nan"),
        ("ssm_state", torch.randn(5, HV, V, K).half(), "ssm_state.dtype is float16"), ("conv_state", bf(5, 2 * H * K + HV * V, 4), r"conv_state.shape\[2\] is 4"),
        ("state_indices", i32(5, -1, 2), r"state_indices\[0\] is 5"),
        ("out", lambda x: x["ssm_state"].flatten().view(torch.bfloat16)[:B * HV * V].view(B, 1, HV, V), "shares memory")]),
    "chunk_gated_delta_rule": (gdn_prefill.chunk_gated_delta_rule, rule, {"g": (3, 1), "beta": (3, 1)}, [
        ("g", lambda x: -x["g"] - 0.5, r"g\[0, 0\] is -"), ("initial_state", torch.randn(B, HV, K, V), "initial_state is"),
        ("initial_state", torch.zeros(B, HV, V, K, dtype=torch.int32), "initial_state.dtype is int32"),
        ("state_indices", i32(0, 1, 3), r"state_indices\[2\] is 3"), *PACKED,
        ("output_state", lambda x: x["initial_state"].flatten().view(torch.bfloat16)[:B * HV * V * K].view(B, HV, V, K), "shares memory with initial_state")]),
    "chunk_gated_delta_rule2": (flashinfer.chunk_gated_delta_rule2, rule2, {"g": (3, 1, 5), "beta": (3, 1, 5), "w": (19, 0, 2)}, [
        ("initial_state", torch.randn(B, HV, K, V), "initial_state is"), ("output_state", torch.zeros(B, HV, V, K).half(), "output_state.dtype is float16"),
        *PACKED, ("output_state", lambda x: x["initial_state"], "shares memory with initial_state")]),
    "chunk_gated_delta_product": (flashinfer.chunk_gated_delta_product, product, {"g": (3, 1), "beta": (39, 1)}, [
        ("g", lambda x: -x["g"] - 0.5, r"g\[0, 0\] is -"), ("initial_state", torch.randn(B, HV, K, V), "initial_state is"), *PACKED,
        ("initial_state", torch.zeros(B, HV, V, K, dtype=torch.int32), "initial_state.dtype is int32"),
        ("output_state", lambda x: x["initial_state"], "shares memory with initial_state")]),
    "kda_recurrence": (kda.kda_recurrence, recurrence, CHANNEL_GATES, [
        ("state", torch.randn(5, HV, K, V), "state.shape"), ("state", torch.zeros(5, HV, V, K, dtype=torch.int32), "state.dtype is int32"),
        ("read_indices", i32(4, -1, 5), r"read_indices\[2\] is 5"), ("write_indices", i32(7, 0, 1), r"write_indices\[0\] is 7"),
        ("cu_seqlens", i32(0, 9, 7, 20), r"cu_seqlens\[2\] is 7"), ("cu_seqlens", i32(0, 7, 7, 21), "cu_seqlens ends at 21, but q has 20"),
        ("output", lambda x: x["state"].flatten().view(torch.bfloat16)[:20 * HV * V].view(20, HV, V), "shares memory")]),
    "recurrent_kda": (kda.recurrent_kda, recurrent, {"A_log": (1,), "dt_bias": (1, 3), "g": (0, 3, 1, 5), "beta": (0, 18, 3)}, [
        ("initial_state", torch.randn(5, HV, K, K + 1).bfloat16(), "state.shape"), ("initial_state", torch.zeros(5, HV, K, K, dtype=torch.int32), "state.dtype is int32"),
        ("ssm_state_indices", i32(4, -1, 5), r"indices\[2\] is 5"),
        ("cu_seqlens", i32(0, 9, 7, 20), r"cu_seqlens\[2\] is 7"), ("cu_seqlens", i32(0, 7, 7, 21), "cu_seqlens ends at 21, but q has 20"),
        ("output", lambda x: x["initial_state"].flatten()[:20 * HV * K].view(1, 20, HV, K), "shares memory")]),
    "packed_kda_decode": (kda_decode.packed_kda_decode, packed_kda, {"A_log": (1,), "dt_bias": (40,), "raw_gate": (0, 7), "raw_beta": (0, 3)}, [
        ("state", bf(3, 12, 128, 64), "state"), ("state", torch.zeros(3, 12, 128, 128, dtype=torch.int32), "state.dtype is int32"),
        ("state_indices", i32(3, -1), r"indices\[0\] is 3"),
        ("output", lambda x: x["state"].flatten()[:2 * 1536].view(2, 1, 12, 128), "shares memory")]),
    "fused_kda_decode": (kda_decode.fused_kda_decode, fused_kda, RAW_GATES, [
        ("state", torch.randn(5, H, K, K + 1), "state is"), ("state", torch.randn(5, H, K, K).half(), "state.dtype is float16"),
        ("state_indices", i32(5, 0, 2), r"state_indices\[0\] is 5"),
        ("output", lambda x: x["state"].flatten().view(torch.bfloat16)[:B * H * K].view(1, B, H, K), "shares memory")]),
    "packed_fused_kda_decode": (kda_decode.packed_fused_kda_decode, packed_fused_kda, RAW_GATES, [
        ("state", torch.randn(5, H, K, K).half(), "state.dtype is float16"), ("state_indices", i32(1, 2, 5, 0, 4, 4).view(2, 3), r"state_indices\[0, 2\] is 5"),
        ("query_start_loc", i32(0, 7, 6), r"query_start_loc\[2\] is 6"), ("query_start_loc", i32(0, 3, 7), "query_start_loc ends at 7, but x has 6"),
        ("conv_state", lambda x: x["state"].flatten().view(torch.bfloat16)[:5 * 3 * H * K * 5].view(5, 3 * H * K, 5), "shares memory")]),
    "selective_state_update": (mamba.selective_state_update, update, {"A": (1, 0, 0), "dt": (2, 1, 3), "dt_bias": (1, 3)}, [
        ("state", torch.randn(5, HV, K, V), "x is"), ("state", torch.zeros(5, HV, V, K, dtype=torch.int32), "state.dtype is int32"),
        ("state_batch_indices", i32(4, -1, 5), r"state_batch_indices\[2\] is 5"),
        ("out", lambda x: x["state"].flatten().view(torch.bfloat16)[:B * HV * V].view(B, HV, V), "shares memory")]),
    "selective_state_update, packed": (mamba.selective_state_update, update_packed, {"dt": (13, 1, 3)}, [
        ("cu_seqlens", i32(0, 9, 7, 20), r"cu_seqlens\[2\] is 7"), ("cu_seqlens", i32(0, 7, 7, 15), "cu_seqlens ends at 15, but x has 20")]),
    "checkpointing_ssu": (mamba.checkpointing_ssu, ring, {"dt": (2, 1, 3, 0), "dt_bias": (1, 0), "dt_cache": (4, 1, 2)}, [
        ("state", torch.randn(5, HV, K, V), "x_cache.shape"), ("state", torch.zeros(5, HV, V, K, dtype=torch.int32), "state.dtype is int32"),
        ("state_batch_indices", i32(4, -1, 5), r"state_batch_indices\[2\] is 5"),
        ("out", lambda x: x["state"].flatten().view(torch.bfloat16)[:B * 4 * HV * V].view(B, 4, HV, V), "shares memory")]),
    "replayssm_materialize_layer": (mamba.replayssm_materialize_layer, layer, {"A": (1,), "dt_cache": (4, 1, 0)}, [
        ("state", torch.randn(5, HV, K, V), "x_cache.shape"), ("src_slots", i32(5, -1), "src_slots has 5"), ("dst_slots", i32(5, 2), "dst_slots has 5"),
        ("x_cache", lambda x: x["state"].flatten().view(torch.bfloat16)[:5 * HV * 12 * V].view(5, HV, 12, V), "shares memory")]),
    "ssd_chunk_scan": (mamba.ssd_chunk_scan, scan, {"A": (1,), "dt": (0, 13, 1), "dt_bias": (1,)}, [
        ("initial_states", torch.randn(B, HV, K, V), "initial_states is"), ("initial_states", torch.randn(B, HV, V, K).half(), "initial_states is.*float16"),
        ("cu_seqlens", i32(0, 9, 7, 20), r"cu_seqlens\[2\] is 7"), ("cu_seqlens", i32(0, 7, 7, 19), "cu_seqlens ends at 19, but x has 20"),
        ("out", lambda x: x["initial_states"].flatten().view(torch.bfloat16)[:20 * HV * V].view(1, 20, HV, V), "shares memory")]),
    "causal_conv1d_fn": (mamba.causal_conv1d_fn, convolution, {}, [
        ("conv_states", torch.randn(4, 6, 4), "conv_states is"), ("conv_states", torch.randn(4, 6, 3).half(), "conv_states.dtype is float16"),
        ("cache_indices", i32(4, -1), r"cache_indices\[0\] is 4"), ("query_start_loc", i32(0, 10, 9), r"query_start_loc\[2\] is 9"),
        ("query_start_loc", i32(0, 3, 8), "query_start_loc ends at 8, but x has 9"), ("out", lambda x: x["conv_states"].flatten()[:54].view(6, 9), "shares memory")]),
    "causal_conv1d_update": (mamba.causal_conv1d_update, convolution_update, {}, [
        ("conv_state", torch.randn(4, 6, 1), "conv_state is"), ("conv_state", torch.randn(4, 6, 3).half(), "conv_state.dtype is float16"),
        ("conv_state_indices", i32(4, -1), r"conv_state_indices\[0\] is 4"), ("out", lambda x: x["conv_state"].flatten()[:12].view(2, 6), "shares memory")]),
}


def rows():
    for op, (_, _, gates, others) in OPS.items():
        for name, at in gates.items():
            where = r"\[" + ", ".join(map(str, at)) if "cache" not in name else ""
            yield op, name, lambda x, name=name, at=at: with_nan(x[name], *at), f"{RENAMED.get((op, name), name)}.*{NAMED.get((op, name), where)}.* nan"
        for name, value, message in others:
            yield op, name, value, message


# A function of Python passes these on to an op, which names them.
RENAMED = {("packed_kda_decode", "raw_gate"): "g", ("packed_kda_decode", "raw_beta"): "beta"}
NAMED = {("packed_kda_decode", n): "" for n in ("dt_bias", "raw_gate", "raw_beta")} | {("recurrent_kda", n): "" for n in ("g", "beta")} | \
        {(op, "dt_bias"): "" for op in ("fused_kda_decode", "packed_fused_kda_decode")}


@pytest.mark.parametrize("op", OPS)
def test_the_call_itself_is_fine(op):
    torch.manual_seed(0)
    OPS[op][0](**OPS[op][1]())


@pytest.mark.parametrize("op, name, value, message", [pytest.param(*row, id=f"{row[0]}-{row[1]}-{i}") for i, row in enumerate(rows())])
def test_bad_input_is_refused_before_anything_is_written(op, name, value, message):
    torch.manual_seed(0)
    function, make, _, _ = OPS[op]
    args = make()
    args[name] = value(args) if callable(value) else value
    tensors = {n: x for n, x in args.items() if isinstance(x, torch.Tensor)}
    before = {n: x.clone() for n, x in tensors.items()}
    with pytest.raises(ValueError, match=message):
        function(**args)
    for n, x in tensors.items():
        torch.testing.assert_close(x, before[n], rtol=0, atol=0, equal_nan=True, msg=n)


# Rows without a slot, and what no sequence has, hold anything.
PADDED = {
    "gated_delta_rule_decode_pretranspose": {"a": (1,), "b": (1,)},
    "gated_delta_rule_mtp": {"a": (1,), "b": (1,)},
    "gated_delta_rule_replayssm_commit": {"g_cache": (1, 4, 0, 2), "beta_cache": (1, 2)},
    "gdn_fused_decode_step": {"hidden_states": (1,)},
    "kda_recurrence": {"g": (slice(7, 12),), "beta": (19,)},
    "fused_kda_decode": {"raw_gate": (0, 1), "raw_beta": (0, 1)},
    "packed_fused_kda_decode": {"raw_gate": (0, 4), "raw_beta": (0, 5)},
    "selective_state_update": {"dt": (1,)},
    "selective_state_update, packed": {"dt": (slice(7, 12),)},
    "checkpointing_ssu": {"dt": (1,), "dt_cache": (4, 0, 7)},
    "replayssm_materialize_layer": {"dt_cache": (4, 0, 3)},
}


@pytest.mark.parametrize("op", PADDED)
def test_padded_rows_may_hold_nan(op):
    torch.manual_seed(0)
    args = OPS[op][1]()
    for name, at in PADDED[op].items():
        args[name] = with_nan(args[name], *at)
    OPS[op][0](**args)
    states = next(args[n] for n in ("state", "initial_state", "checkpoint_state", "ssm_state") if args.get(n) is not None)
    assert not states.isnan().any()
