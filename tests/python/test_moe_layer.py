# SPDX-License-Identifier: Apache-2.0
"""MoELayer: its configurations as values, and its results against a reference in double precision."""
import dataclasses

import pytest
import torch

from flashinfer.autotuner import AutoTuner, autotune
from flashinfer.fused_moe import (GELU, ActivationConfig, BackendOptions, CutlassBf16Config, CutlassNvfp4Config, ExecutionConfig, ExpertConfig, GeGLU,
                                  Identity, MoEActivationPack, MoEConfig, MoEFinalizeConfig, MoELayer, MoEWeightPack, QuantConfig, QuantFormat, ReLU2,
                                  RoutingConfig, RoutingInputMode, RoutingMethodType, SiLU, SwiGLU, SwiGLUStep, TrtllmBf16Config)

TOKENS, HIDDEN, INTER, EXPERTS, TOP_K = 9, 128, 128, 6, 2
BACKENDS = {"cutlass_bf16": CutlassBf16Config, "trtllm_bf16_routed": TrtllmBf16Config}


def activated(a, activation):
    """The activation of [t, columns], in double precision; halves are the linear one and the gate."""
    linear, gate = a.chunk(2, dim=1) if activation.is_gated else (None, a)
    if isinstance(activation, SwiGLU):
        gate, linear = gate.clamp(max=activation.limit), linear.clamp(-activation.limit, activation.limit)
        return gate * torch.sigmoid(activation.alpha * gate) * (linear + activation.beta)
    if isinstance(activation, GeGLU):
        return torch.nn.functional.gelu(gate) * linear
    if isinstance(activation, ReLU2):
        return gate.clamp(min=0) ** 2
    return {SiLU: torch.nn.functional.silu, GELU: torch.nn.functional.gelu, Identity: lambda x: x}[type(activation)](gate)


def reference(x, w1, w2, ids, scales, activation, offset=0):
    out = torch.zeros(x.shape, dtype=torch.float64)
    for token in range(x.shape[0]):
        for expert, scale in zip(ids[token].tolist(), scales[token].tolist()):
            if 0 <= expert - offset < w1.shape[0]:
                inner = activated(x[token:token + 1].double() @ w1[expert - offset].double().T, activation)
                out[token] += scale * (inner @ w2[expert - offset].double().T)[0]
    return out


def case(activation=None, local=EXPERTS, offset=0, seed=0):
    torch.manual_seed(seed)
    activation = activation or SwiGLU()
    x = torch.randn(TOKENS, HIDDEN).bfloat16()
    w1 = (torch.randn(local, (2 if activation.is_gated else 1) * INTER, HIDDEN) / HIDDEN ** 0.5).bfloat16()
    w2 = (torch.randn(local, HIDDEN, INTER) / INTER ** 0.5).bfloat16()
    ids = torch.rand(TOKENS, EXPERTS).argsort(1)[:, :TOP_K].int()
    scales = torch.rand(TOKENS, TOP_K).bfloat16().float()
    pack = MoEWeightPack()
    for key, backend in BACKENDS.items():
        pack.prepare_for(key, backend.prepare_weights(w1, w2, num_local_experts=local, hidden_size=HIDDEN, intermediate_size=INTER,
                                                      activation=activation))
    config = MoEConfig(RoutingConfig(EXPERTS, TOP_K), QuantConfig(), ExpertConfig(INTER, offset, local), activation)
    return config, x, w1, w2, ids, scales, pack


def close(actual, expected):
    assert actual.dtype == torch.bfloat16
    torch.testing.assert_close(actual.double(), expected, rtol=2e-2, atol=2e-2)


@pytest.mark.parametrize("backend, activation", [
    *((CutlassBf16Config(), a) for a in (SwiGLU(), SwiGLU(1.5, 0.5, 2.0), GeGLU(), ReLU2(), SiLU(), GELU(), Identity())),
    *((TrtllmBf16Config(), a) for a in (SwiGLU(), SwiGLU(1.5, 0.5, 2.0), ReLU2()))], ids=repr)
def test_each_backend_is_the_reference(backend, activation):
    config, x, w1, w2, ids, scales, pack = case(activation)
    layer = MoELayer(dataclasses.replace(config, backend=BackendOptions((backend,))))
    close(layer(MoEActivationPack(x, None, ids, scales), pack), reference(x, w1, w2, ids, scales, activation))
    assert layer.winner_backend == backend.runner


@pytest.mark.parametrize("backend", BACKENDS.values())
def test_a_share_of_the_experts(backend):
    config, x, w1, w2, ids, scales, pack = case(local=2, offset=4)
    layer = MoELayer(dataclasses.replace(config, backend=BackendOptions((backend(),))))
    close(layer(MoEActivationPack(x, None, ids, scales), pack), reference(x, w1, w2, ids, scales, SwiGLU(), 4))


@pytest.mark.parametrize("backend", BACKENDS.values())
def test_routing_from_logits(backend):
    config, x, w1, w2, _, _, pack = case()
    config = dataclasses.replace(config, routing=RoutingConfig(EXPERTS, TOP_K, RoutingMethodType.Renormalize), backend=BackendOptions((backend(),)))
    logits = torch.randn(TOKENS, EXPERTS)
    values, ids = logits.double().topk(TOP_K)
    act = MoEActivationPack(x, None, routing_input_mode=RoutingInputMode.FromLogits, routing_logits=logits)
    close(MoELayer(config)(act, pack), reference(x, w1, w2, ids, values.softmax(1), SwiGLU()))
    with pytest.raises(ValueError, match=r"routing_logits has shape \(9, 5\), but must be \[9, 6\]"):
        MoELayer(config)(MoEActivationPack(x, None, routing_input_mode=RoutingInputMode.FromLogits, routing_logits=logits[:, :5]), pack)


def test_the_measured_winner_runs(monkeypatch):
    config, x, w1, w2, ids, scales, pack = case()
    config = dataclasses.replace(config, execution=ExecutionConfig(tune_max_num_tokens=16))
    monkeypatch.setattr(AutoTuner, "_instance", None)
    seen = []

    def times(self, runner, inputs, tactic, tuning_config=None, **kwargs):
        assert runner(inputs).shape == inputs[0].shape and inputs[1].max() < EXPERTS
        seen.append((inputs[0].shape[0], runner.runner.backend_key))
        return {"cutlass_bf16": 1.0, "trtllm_bf16_routed": 2.0}[runner.runner.backend_key]

    monkeypatch.setattr(AutoTuner, "_profile_single_kernel", times)
    layer, act = MoELayer(config), MoEActivationPack(x, None, ids, scales)
    expected = layer(act, pack)
    assert layer.winner_backend == "trtllm_bf16_routed" and seen == []  # the first candidate
    with autotune():
        layer(act, pack)
    assert {n for n, _ in seen} == {1, 2, 4, 8, 16} and layer.winner_backend == "cutlass_bf16"
    close(layer(act, pack), reference(x, w1, w2, ids, scales, SwiGLU()))
    assert layer.winner_backend == "cutlass_bf16"
    # Weights of one back end alone: that one runs.
    only = MoEWeightPack({"trtllm_bf16_routed": pack.get_view("trtllm_bf16_routed")})
    assert torch.equal(layer(act, only), expected) and layer.winner_backend == "trtllm_bf16_routed"
    with pytest.raises(KeyError, match="Weights not prepared for backend"):
        layer(act, MoEWeightPack())
    layer.reset_winner()
    assert layer.winner_backend is None


def test_what_is_not_available_is_refused_with_each_reason():
    config, *_ = case()
    for changed, why in (({"quant": QuantConfig(QuantFormat.NVFP4, QuantFormat.NVFP4)}, "only BF16 weights"),
                         ({"finalize": MoEFinalizeConfig(False)}, "do_finalize=False"), ({"backend": BackendOptions()}, "there are no candidates"),
                         ({"backend": BackendOptions((CutlassNvfp4Config(),))}, "CutlassNvfp4Config: MoELayer does not have this back end"),
                         ({"activation": SwiGLUStep(), "backend": BackendOptions((TrtllmBf16Config(),))}, "SwiGLUStep is not available"),
                         ({"experts": ExpertConfig(INTER, 1, 2), "backend": BackendOptions((CutlassBf16Config(),))}, "experts 1 to 3 are no even share of 6")):
        with pytest.raises(NotImplementedError, match=why):
            MoELayer(dataclasses.replace(config, **changed))
    with pytest.raises(NotImplementedError, match="CutlassNvfp4Config: MoELayer computes with bf16 weights"):
        CutlassNvfp4Config.prepare_weights(None, None)


def test_configurations_are_values():
    config, *_ = case()
    assert config == case()[0] and hash(config) == hash(case()[0]) and config["routing"].top_k == TOP_K and set(dict(**config)) == set(config.keys())
    assert repr(RoutingConfig(8, 2)) == "RoutingConfig(num_experts=8, top_k=2)" and repr(ExpertConfig(4, 2)) == "ExpertConfig(intermediate_size=4, local_expert_offset=2)"
    assert repr(QuantConfig()) == "QuantConfig(weight=QuantFormat.BF16, activation=QuantFormat.BF16, output=QuantFormat.BF16)"
    with pytest.raises(dataclasses.FrozenInstanceError):
        config.routing.top_k = 3
    for make, error, text in ((ActivationConfig, TypeError, "construct a typed activation"), (lambda: SwiGLU(limit=-1), ValueError, "limit must be positive, got -1"),
                              (lambda: SwiGLU(alpha="x"), ValueError, "alpha must be a finite scalar"), (lambda: QuantConfig(1), TypeError, "must be a QuantFormat"),
                              (lambda: ExpertConfig(8, num_fused_shared_experts=-1), ValueError, "must be >= 0"),
                              (lambda: dataclasses.replace(config, experts=ExpertConfig(8, num_fused_shared_experts=1)), ValueError, "requires DeepSeekV3 routing")):
        with pytest.raises(error, match=text):
            make()
    assert [a.is_gated for a in (SwiGLU(), GeGLU(), SwiGLUStep(), ReLU2(), SiLU(), GELU(), Identity())] == [True] * 3 + [False] * 4


def test_the_inputs_of_a_call_are_checked():
    x, ids, scales = torch.zeros(4, 8), torch.zeros(4, 2, dtype=torch.int32), torch.zeros(4, 2)
    logits = {"routing_input_mode": RoutingInputMode.FromLogits}
    for arguments, options, error, text in (
            ((x, None), {}, ValueError, "PackedPrecomputed requires topk_ids"), ((x, None, ids.long(), scales), {}, TypeError, "got torch.int64"),
            ((x, None, ids[:3], scales), {}, ValueError, "matching"), ((x, None), logits, ValueError, "requires routing_logits"),
            ((x, None, ids), {**logits, "routing_logits": x}, ValueError, "leave them None"),
            ((x, None, ids, scales), {"routing_logits": x}, ValueError, "has its experts already")):
        with pytest.raises(error, match=text):
            MoEActivationPack(*arguments, **options)
