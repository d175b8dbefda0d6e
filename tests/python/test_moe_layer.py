# SPDX-License-Identifier: Apache-2.0
"""MoELayer: its configurations as values, and its results against a reference in double precision."""
import dataclasses

import pytest
import torch

import flashinfer
from flashinfer import trace_apply
from flashinfer.autotuner import AutoTuner, autotune
from flashinfer.fused_moe import (GELU, ActivationConfig, BackendOptions, CutlassBf16Config, CutlassFp8BlockConfig, CutlassFp8PerTensorConfig, CutlassMxfp8Config,
                                  CutlassMxfp8Mxfp4Config, CutlassNvfp4Config, CutlassW4A8Config, CutlassW4A16Config, ExecutionConfig, ExpertConfig, GeGLU,
                                  Identity, MoEActivationPack, MoEConfig, MoEFinalizeConfig, MoELayer, MoEWeightPack, QuantConfig, QuantFormat, ReLU2,
                                  RoutingConfig, RoutingInputMode, RoutingMethodType, SM12xFp8Config, SiLU, SiTU, SwiGLU, SwiGLUStep, TrtllmBf16Config, TrtllmFp4Config,
                                  TrtllmFp8BlockConfig, TrtllmFp8PerTensorConfig, TrtllmMxInt4Config)

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
                         ({"finalize": MoEFinalizeConfig(False)}, "BF16 requires do_finalize=True"), ({"backend": BackendOptions()}, "there are no candidates"),
                         ({"backend": BackendOptions((SM12xFp8Config(),))}, "SM12xFp8Config: MoELayer does not have this back end"),
                         ({"activation": SwiGLUStep(), "backend": BackendOptions((TrtllmBf16Config(),))}, "SwiGLUStep is not available"),
                         ({"experts": ExpertConfig(INTER, 1, 2), "backend": BackendOptions((CutlassBf16Config(),))}, "experts 1 to 3 are no even share of 6")):
        with pytest.raises(NotImplementedError, match=why):
            MoELayer(dataclasses.replace(config, **changed))
    with pytest.raises(NotImplementedError, match="SM12xFp8Config: MoELayer does not have this back end"):
        SM12xFp8Config.prepare_weights(None, None)


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


# ---- quantised formats ----
F = QuantFormat
SCALES = dict(hidden_states_scale_global=64.0, intermediate_scale_global=16.0)
# back end, weights, inputs, how far the result may be off, which the rounding of activations alone decides
FORMATS = [(TrtllmFp4Config, F.NVFP4, F.NVFP4, 0.15), (TrtllmFp4Config, F.MXFP4, F.MXFP8, 0.05), (TrtllmFp4Config, F.MXFP4, F.BF16, 0.01),
           (TrtllmFp8BlockConfig, F.DeepSeekFp8, F.DeepSeekFp8, 0.05), (TrtllmFp8BlockConfig, F.MXFP8, F.MXFP8, 0.05),
           (TrtllmFp8PerTensorConfig, F.FP8PerTensor, F.FP8PerTensor, 0.05), (TrtllmMxInt4Config, F.MXINT4, F.BF16, 0.01),
           (CutlassNvfp4Config, F.NVFP4, F.NVFP4, 0.15), (CutlassMxfp8Config, F.MXFP8, F.MXFP8, 0.05), (CutlassMxfp8Mxfp4Config, F.MXFP4, F.MXFP8, 0.05),
           (CutlassW4A16Config, F.MXFP4, F.BF16, 0.01), (CutlassW4A8Config, F.INT4, F.FP8PerTensor, 0.05), (CutlassFp8BlockConfig, F.DeepSeekFp8, F.DeepSeekFp8, 0.05),
           (CutlassFp8PerTensorConfig, F.FP8PerTensor, F.FP8PerTensor, 0.05)]


def exact(fmt, *shape):
    """Numbers that a format holds exactly, times a power of two: its largest in each block of 16."""
    grid = torch.tensor([0, 0.5, 1, 1.5, 2, 3, 4, 6] if fmt in (F.NVFP4, F.MXFP4) else [0, 1, 2, 3, 4, 5, 6, 7.0])
    x = grid[torch.randint(0, 8, shape)] * (1 - 2 * torch.randint(0, 2, shape))
    x.view(-1, 16)[:, 5] = grid[-1]
    return (x / 64).bfloat16()


def quantised_case(backend, weight, inputs, activation=None, seed=0, **others):
    torch.manual_seed(seed)
    activation, quant = activation or SwiGLU(), QuantConfig(weight, inputs)
    x = exact(weight if inputs == F.BF16 else inputs, TOKENS, HIDDEN) * 8
    w1, w2 = exact(weight, EXPERTS, (2 if activation.is_gated else 1) * INTER, HIDDEN), exact(weight, EXPERTS, HIDDEN, INTER)
    ids, scales = torch.rand(TOKENS, EXPERTS).argsort(1)[:, :TOP_K].int(), torch.rand(TOKENS, TOP_K)
    sizes = dict(num_local_experts=EXPERTS, hidden_size=HIDDEN, intermediate_size=INTER, activation=activation)
    named = SCALES if weight == F.FP8PerTensor else {"quant": quant} if backend in (TrtllmFp4Config, TrtllmFp8BlockConfig) else {}
    weights = MoEWeightPack()
    weights.prepare_for(backend.runner, backend.prepare_weights(w1, w2, **sizes, **named))
    named = {k: v for k, v in named.items() if k != "intermediate_scale_global"}
    rows, row_scales = (x, None) if backend in (TrtllmMxInt4Config, CutlassW4A16Config, CutlassW4A8Config, CutlassFp8BlockConfig) else backend.prepare_activations(x, **named)
    layer = MoELayer(MoEConfig(RoutingConfig(EXPERTS, TOP_K), quant, ExpertConfig(INTER), activation, BackendOptions((backend(),)), **others))
    return layer, MoEActivationPack(rows, row_scales, ids, scales), weights, (x, w1, w2, ids, scales, activation)


@pytest.mark.parametrize("backend,weight,inputs,off", FORMATS, ids=lambda v: v.name if isinstance(v, QuantFormat) else "")
def test_quantised_formats(backend, weight, inputs, off):
    layer, pack, weights, made = quantised_case(backend, weight, inputs)
    expected = reference(*made)
    got = layer(pack, weights)
    assert got.dtype == torch.bfloat16 and layer.winner_backend == backend.runner
    assert (got.double() - expected).norm() < off * expected.norm()
    if not backend.__name__.startswith("Trtllm"):
        with pytest.raises(NotImplementedError, match="requires do_finalize=True"):
            quantised_case(backend, weight, inputs, finalize=MoEFinalizeConfig(do_finalize=False))
        return
    separate = quantised_case(backend, weight, inputs, finalize=MoEFinalizeConfig(do_finalize=False))[0](pack, weights)
    assert isinstance(separate, list) and [t.dtype for t in separate] == [torch.bfloat16, torch.bfloat16, torch.int32]
    summed = (separate[0].double()[separate[2].long().view(TOKENS, TOP_K)] * separate[1].double().unsqueeze(-1)).sum(1)
    assert (summed - expected).norm() < (off + 0.01) * expected.norm()


@pytest.mark.parametrize("backend,weight,inputs,name", [(TrtllmFp4Config, F.NVFP4, F.NVFP4, "trtllm_fp4_block_scale_routed_moe"),
                                                        (TrtllmMxInt4Config, F.MXINT4, F.BF16, "trtllm_mxint4_block_scale_routed_moe")], ids=["fp4", "mxint4"])
def test_functions_of_4_bits_return_lists(monkeypatch, tmp_path, backend, weight, inputs, name):
    """Engines take element 0: of one tensor that would be its first row."""
    function, calls = getattr(flashinfer, name), []
    monkeypatch.setattr(flashinfer, name, lambda **arguments: calls.append(arguments) or function(**arguments))
    layer, pack, weights, _ = quantised_case(backend, weight, inputs)
    expected = layer(pack, weights)
    made = function(**calls[0])
    assert type(made) is list and len(made) == 1 and torch.equal(made[0], expected)
    output = torch.empty_like(expected)
    assert function(**calls[0], output=output)[0] is output and torch.equal(output, expected)
    apart = function(**{**calls[0], "do_finalize": False})
    assert type(apart) is list and len(apart) == 3
    with flashinfer.testing.candidate("reference"):
        assert type(function(**calls[0])) is list
    trace_apply.enable_apply({"nothing": lambda **inputs: None})  # calls are observed
    try:
        observed = function(**calls[0])
    finally:
        trace_apply.disable_apply()
    assert type(observed) is list and torch.equal(observed[0], expected)


def test_quantised_activations_and_parameters():
    steep = SwiGLU(1.7, 1.0, 0.5)
    layer, pack, weights, made = quantised_case(TrtllmFp4Config, F.MXFP4, F.BF16, steep)
    expected = reference(*made)
    assert (layer(pack, weights).double() - expected).norm() < 0.01 * expected.norm()
    plain, pack, weights, made = quantised_case(TrtllmFp4Config, F.MXFP4, F.BF16)
    weights.get_view("trtllm_fp4_routed").update(gemm1_alpha=torch.full((EXPERTS,), 1.7), gemm1_beta=torch.ones(EXPERTS), gemm1_clamp_limit=torch.full((EXPERTS,), 0.5))
    assert (plain(pack, weights).double() - expected).norm() < 0.01 * expected.norm()
    layer, pack, weights, made = quantised_case(TrtllmFp8BlockConfig, F.MXFP8, F.MXFP8, ReLU2())
    expected = reference(*made)
    assert (layer(pack, weights).double() - expected).norm() < 0.06 * expected.norm()
    for error, why, call in (
            (NotImplementedError, "must be NVFP4, NVFP4 and BF16 or MXFP4", lambda: MoELayer(
                MoEConfig(RoutingConfig(EXPERTS, TOP_K), QuantConfig(F.NVFP4), ExpertConfig(INTER), backend=BackendOptions((TrtllmFp4Config(),))))),
            (NotImplementedError, "SiTU without linear_scale", lambda: quantised_case(TrtllmFp4Config, F.MXFP4, F.BF16, SiTU(linear_scale=None))),
            (NotImplementedError, "GeGLU is not available", lambda: quantised_case(TrtllmMxInt4Config, F.MXINT4, F.BF16, GeGLU())),
            (NotImplementedError, "alpha and beta of SwiGLU", lambda: quantised_case(TrtllmFp8PerTensorConfig, F.FP8PerTensor, F.FP8PerTensor, steep)),
            (ValueError, "weight and activation must be one of DeepSeekFp8 and DeepSeekFp8, MXFP8 and MXFP8", lambda: TrtllmFp8BlockConfig.prepare_weights(
                None, None, quant=QuantConfig(), num_local_experts=1, hidden_size=128, intermediate_size=128)),
            (ValueError, "hidden_size is 64, but must be a multiple of 128", lambda: TrtllmFp8BlockConfig.prepare_weights(
                torch.zeros(1, 256, 64).bfloat16(), torch.zeros(1, 64, 128).bfloat16(), quant=QuantConfig(F.MXFP8, F.MXFP8), num_local_experts=1, hidden_size=64,
                intermediate_size=128))):
        with pytest.raises(error, match=why):
            call()
