# SPDX-License-Identifier: Apache-2.0
"""Trace definitions of recurrent_kda and packed_kda_decode: valid, and their references compute what the functions do."""
import flashinfer.kda_decode
import flashinfer.trace
import pytest
import torch


def reference_of(definition):
    scope = {}
    exec(definition["reference"], scope)  # noqa: S102
    return scope["run"]


@pytest.mark.parametrize("gate", [None, "softplus", "bounded"])
@pytest.mark.parametrize("packed", [False, True])
def test_definitions_of_recurrent_kda_compute_it(gate, packed):
    torch.manual_seed(5)
    rows, tokens, heads, value_heads, d = (1, 7, 2, 4, 64) if packed else (2, 1, 2, 4, 64)
    call = {"q": torch.randn(rows, tokens, heads, d).bfloat16(), "k": torch.randn(rows, tokens, heads, d).bfloat16(),
            "v": torch.randn(rows, tokens, value_heads, d).bfloat16(), "g": -torch.rand(rows, tokens, value_heads, d).bfloat16(),
            "beta": torch.rand(rows, tokens, value_heads).bfloat16(), "output_final_state": True, "scale": 0.3,
            "initial_state": torch.randn(4 if packed else rows, value_heads, d, d) * 0.1}
    if gate:
        call |= {"A_log": torch.randn(heads), "dt_bias": torch.randn(heads * d).view(heads, d), "use_gate_in_kernel": True, "beta_is_logit": True}
        call |= {"lower_bound": -4.0} if gate == "bounded" else {}
    if packed:
        call |= {"cu_seqlens": torch.tensor([0, 3, 3, 7]), "ssm_state_indices": torch.tensor([2, -1, 0])}
    definition = flashinfer.recurrent_kda.fi_trace(strict=True, **call)
    assert definition["name"] == "recurrent_kda_q2_v4_d64" and flashinfer.trace.validate(definition) == []
    names = list(definition["inputs"])
    copy = {n: x.clone() if isinstance(x, torch.Tensor) else x for n, x in call.items()}
    out, states = reference_of(definition)(**{n: copy[n] for n in names if n in copy})
    want, want_states = flashinfer.recurrent_kda(**call)
    torch.testing.assert_close(out.float(), want.float(), rtol=1e-2, atol=1e-2)
    torch.testing.assert_close(states, want_states, rtol=1e-4, atol=1e-4)


def test_the_definition_of_packed_kda_decode_computes_it():
    torch.manual_seed(6)
    call = {"mixed_qkv": torch.randn(3, 4608).bfloat16(), "raw_gate": torch.randn(3, 1536).bfloat16(), "raw_beta": torch.randn(3, 12).bfloat16(),
            "A_log": torch.randn(12), "dt_bias": torch.randn(1536), "state": torch.randn(4, 12, 128, 128) * 0.1,
            "state_indices": torch.tensor([2, -1, 0], dtype=torch.int32)}
    definition = flashinfer.kda_decode.packed_kda_decode.fi_trace(strict=True, **call)
    assert definition["name"] == "packed_kda_decode_h12_d128" and flashinfer.trace.validate(definition) == []
    copy = {n: x.clone() for n, x in call.items()}
    out, states = reference_of(definition)(**copy)
    want = flashinfer.kda_decode.packed_kda_decode(**call)
    torch.testing.assert_close(out.float(), want.float(), rtol=1e-2, atol=1e-2)
    torch.testing.assert_close(states, call["state"], rtol=1e-4, atol=1e-4)
    assert not out[1].any()
