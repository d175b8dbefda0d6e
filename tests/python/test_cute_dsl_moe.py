# SPDX-License-Identifier: Apache-2.0
"""cute_dsl_fused_moe and its kin, and the back ends of MoELayer whose weights are a checkpoint's, against loops in double precision."""
import json
import subprocess
import sys

import pytest
import torch
from conftest import environment

import flashinfer
from flashinfer import fused_moe
from flashinfer.fused_moe import (BackendOptions, ExpertConfig, MoEActivationPack, MoEConfig, MoELayer, MoEWeightPack, QuantConfig, QuantFormat, ReLU2,
                                  RoutingConfig, SiTU, SwiGLU)
from flashinfer.fused_moe.cute_dsl.moe_utils import normalize_cute_dsl_moe_activation_type, validate_cute_dsl_moe_situ_config
from flashinfer.tllm_enums import ActivationType

TOKENS, HIDDEN, INTER, EXPERTS, TOP_K = 7, 128, 192, 4, 2
F = QuantFormat
INVERSE = 1 / (448 * 6)  # of the largest number of NVFP4
E2M1 = torch.tensor([0, 0.5, 1, 1.5, 2, 3, 4, 6, -0.0, -0.5, -1, -1.5, -2, -3, -4, -6]).double()


# ---- a checkpoint's weights, and their values ----
def fp4(rows, columns, block, scale_type):
    """Codes, scales and values [experts, rows, columns]."""
    codes = torch.randint(0, 256, (EXPERTS, rows, columns // 2)).to(torch.uint8)
    if scale_type == torch.float8_e4m3fn:
        scales = (torch.rand(EXPERTS, rows, columns // block) * 0.05 + 0.01).to(scale_type)
        factors = scales.double()
    else:
        scales = torch.randint(121, 124, (EXPERTS, rows, columns // block)).to(torch.uint8)
        factors = torch.exp2(scales.double() - 127)
    values = E2M1[torch.stack((codes & 15, codes >> 4), -1).long()].flatten(-2)
    return codes, scales, values * factors.repeat_interleave(block, -1)


def mxfp8(rows, columns):
    codes = torch.randn(EXPERTS, rows, columns).to(torch.float8_e4m3fn)
    scales = torch.randint(122, 125, (EXPERTS, rows, columns // 32)).to(torch.uint8)
    return codes, scales, codes.double() * torch.exp2(scales.double() - 127).repeat_interleave(32, -1)


def activated(y, activation):
    if isinstance(activation, ReLU2):
        return y.relu() ** 2
    linear, gate = y.chunk(2)
    if isinstance(activation, SiTU):
        gate = activation.gate_scale * torch.tanh(gate / activation.gate_scale) * torch.sigmoid(gate)
        return gate * activation.linear_scale * torch.tanh(linear / activation.linear_scale)
    gate, linear = gate.clamp(max=activation.limit), linear.clamp(-activation.limit, activation.limit)
    return gate * torch.sigmoid(activation.alpha * gate) * (linear + activation.beta)


def reference(x, w1, w2, ids, scales, activation):
    """Weights of canonical order: linear rows, then the gate's."""
    out = torch.zeros(x.shape, dtype=torch.float64)
    for t in range(len(x)):
        for e, scale in zip(ids[t].tolist(), scales[t].tolist()):
            if 0 <= e < len(w1):
                out[t] += scale * (w2[e] @ activated(w1[e] @ x[t].double(), activation))
    return out


def routed(seed=0):
    torch.manual_seed(seed)
    x = (torch.randn(TOKENS, HIDDEN) / 3).bfloat16()
    return x, torch.rand(TOKENS, EXPERTS).argsort(1)[:, :TOP_K].int(), torch.rand(TOKENS, TOP_K)


def far(got, want):
    assert got.dtype == torch.bfloat16
    return float((got.double() - want).norm() / want.norm())


# ---- MoELayer ----
FACTOR = torch.linspace(0.5, 2.0, EXPERTS)
BACKENDS = [("CuTileBf16Config", F.BF16, F.BF16, 0.01), ("CuTileMxfp8Config", F.MXFP8, F.MXFP8, 0.05), ("CuTileMxfp8Bf16Config", F.MXFP8, F.BF16, 0.01),
            ("CuTileFp8PerTensorBf16Config", F.FP8PerTensor, F.BF16, 0.01), ("CuTileMxfp4Config", F.MXFP4, F.MXFP4, 0.35),
            ("CuTileMxfp4Mxfp8Config", F.MXFP4, F.MXFP8, 0.05), ("CuTileMxfp4Bf16Config", F.MXFP4, F.BF16, 0.01), ("CuTileNvfp4Config", F.NVFP4, F.NVFP4, 0.2),
            ("CuTileNvfp4Bf16Config", F.NVFP4, F.BF16, 0.01), ("SM12xNvfp4Config", F.NVFP4, F.NVFP4, 0.2), ("SM12xNvfp4Bf16Config", F.NVFP4, F.BF16, 0.01)]


def checkpoint(weight, gated):
    """Arguments of prepare_weights, and both weights' values."""
    arguments, values = [], []
    for rows, columns in ((INTER * (2 if gated else 1), HIDDEN), (HIDDEN, INTER)):
        if weight == F.BF16:
            made = (torch.randn(EXPERTS, rows, columns) / 10).bfloat16()
            arguments, values = [*arguments, made], [*values, made.double()]
        elif weight == F.FP8PerTensor:
            made = torch.randn(EXPERTS, rows, columns).to(torch.float8_e4m3fn)
            arguments, values = [*arguments, made, FACTOR / 10], [*values, made.double() * FACTOR[:, None, None].double() / 10]
        elif weight == F.MXFP8:
            codes, scales, v = mxfp8(rows, columns)
            arguments, values = [*arguments, codes, scales], [*values, v]
        else:
            codes, scales, v = fp4(rows, columns, *((16, torch.float8_e4m3fn) if weight == F.NVFP4 else (32, None)))
            arguments += [codes, scales] + ([FACTOR] if weight == F.NVFP4 else [])
            values.append(v * FACTOR[:, None, None].double() if weight == F.NVFP4 else v)
    return arguments, values


@pytest.mark.parametrize("activation", [SwiGLU(1.5, 0.5, 3.0), ReLU2()], ids=["swiglu", "relu2"])
@pytest.mark.parametrize("name, weight, inputs, off", BACKENDS)
def test_backends_of_checkpoints(name, weight, inputs, off, activation):
    x, ids, scales = routed()
    config, (arguments, values) = getattr(fused_moe, name), checkpoint(weight, activation.is_gated)
    weights = MoEWeightPack()
    weights.prepare_for(config.runner, config.prepare_weights(*arguments, num_local_experts=EXPERTS, hidden_size=HIDDEN, intermediate_size=INTER, activation=activation))
    layer = MoELayer(MoEConfig(RoutingConfig(EXPERTS, TOP_K), QuantConfig(weight, inputs), ExpertConfig(INTER), activation, BackendOptions((config(),))))
    assert far(layer(MoEActivationPack(x, None, ids, scales), weights), reference(x, *values, ids, scales, activation)) < off
    assert layer.winner_backend == config.runner and type(layer.runners[0]) is getattr(fused_moe, name.replace("Config", "Runner"))


def test_a_scale_for_each_half():
    x, ids, scales = routed()
    arguments, (w1, w2) = checkpoint(F.NVFP4, True)
    both = torch.stack((FACTOR, FACTOR.flip(0)), 1)  # linear, gate
    arguments[2] = both
    w1 = w1 / FACTOR[:, None, None].double() * both.double().repeat_interleave(INTER, 1)[:, :, None]
    sizes = dict(num_local_experts=EXPERTS, hidden_size=HIDDEN, intermediate_size=INTER)
    weights = MoEWeightPack()
    weights.prepare_for("cutile_nvfp4", fused_moe.CuTileNvfp4Config.prepare_weights(*arguments, **sizes))
    for backend in (fused_moe.CuTileNvfp4Bf16Config(), fused_moe.SM12xNvfp4Bf16Config()):  # both take one view
        layer = MoELayer(MoEConfig(RoutingConfig(EXPERTS, TOP_K), QuantConfig(F.NVFP4, F.BF16), ExpertConfig(INTER), backend=BackendOptions((backend,))))
        assert far(layer(MoEActivationPack(x, None, ids, scales), weights), reference(x, w1, w2, ids, scales, SwiGLU())) < 0.01
    inverse = [a if a.dtype != torch.float32 else 1 / a for a in arguments]
    other = fused_moe.CuTileNvfp4Config.prepare_weights(*inverse, source_format="compressed_tensors", **sizes)
    assert torch.allclose(other["w1_global_scale"], weights.get_view("cutile_nvfp4")["w1_global_scale"])


@pytest.mark.parametrize("theirs, ours, weight, inputs", [("CudnnFrostBf16Config", "CutlassBf16Config", F.BF16, F.BF16), ("CudnnFrostMxfp8Config", "CutlassMxfp8Config", F.MXFP8, F.MXFP8),
                                                          ("CudnnFrostMxfp8Mxfp4Config", "CutlassMxfp8Mxfp4Config", F.MXFP4, F.MXFP8),
                                                          ("CudnnFrostNvfp4Config", "CutlassNvfp4Config", F.NVFP4, F.NVFP4), ("PrimsTsConfig", "TrtllmBf16Config", F.BF16, F.BF16),
                                                          ("PrimsTsConfig", "TrtllmFp4Config", F.NVFP4, F.NVFP4)])
def test_backends_that_share_weights(theirs, ours, weight, inputs):
    x, ids, scales = routed()
    w1, w2 = ((torch.randn(EXPERTS, *shape) / 10).bfloat16() for shape in ((2 * INTER, HIDDEN), (HIDDEN, INTER)))
    quant, sizes = QuantConfig(weight, inputs), dict(num_local_experts=EXPERTS, hidden_size=HIDDEN, intermediate_size=INTER)
    named, results, weights = {"quant": quant}, [], MoEWeightPack()
    backends = [getattr(fused_moe, n) for n in (ours, theirs)]
    weights.prepare_for(backends[0].runner, backends[0].prepare_weights(w1, w2, **(named if ours == "TrtllmFp4Config" else {}), **sizes))
    if theirs == "PrimsTsConfig":
        weights.prepare_for("prims_ts", backends[1].prepare_weights(w1, w2, **named, **sizes))
    for backend in backends:
        rows = backends[1].prepare_activations(x, **named)
        layer = MoELayer(MoEConfig(RoutingConfig(EXPERTS, TOP_K), quant, ExpertConfig(INTER), backend=BackendOptions((backend(),))))
        results.append(layer(MoEActivationPack(*rows, ids, scales), weights))
        assert layer.winner_backend == backend.runner
    assert torch.equal(*results)


@pytest.mark.parametrize("activation", [SwiGLU(), SwiGLU(1.702, 1.0, 2.0), SiTU(2.0, 3.0), ReLU2()], ids=repr)
@pytest.mark.parametrize("weight, inputs, off", [(F.NVFP4, F.NVFP4, 0.25), (F.MXFP4, F.MXFP8, 0.05), (F.NVFP4, F.BF16, 0.01)])
def test_the_layer_and_the_function(weight, inputs, off, activation):
    """The function in the weights that it keeps: prepare_weights of what NVFP4 or MXFP4 holds exactly."""
    x, ids, scales = routed()
    ids[2, 0] = -1
    values = [fp4(r, c, *((16, torch.float8_e4m3fn) if weight == F.NVFP4 else (32, None)))[2] for r, c in ((INTER * (2 if activation.is_gated else 1), HIDDEN), (HIDDEN, INTER))]
    values = [v.bfloat16() for v in values]
    quant = QuantConfig(weight, inputs)
    view = fused_moe.CuteDslConfig.prepare_weights(*values, quant=quant, num_local_experts=EXPERTS, hidden_size=HIDDEN, intermediate_size=INTER, activation=activation)
    kept = [v.double() for v in values]
    want = reference(x, *kept, ids, scales, activation)
    rows = fused_moe.prepare.prepare_trtllm_fp4_activations(x, quant=quant) if inputs != F.BF16 else (x, None)
    kind = {"activation_type": int(activation.type)}
    if isinstance(activation, SiTU):
        kind = {"activation_type": int(ActivationType.Swiglu), "situ_beta": 2.0, "situ_linear_beta": 3.0}
    elif isinstance(activation, SwiGLU):
        kind |= {"swiglu_alpha": activation.alpha, "swiglu_beta": activation.beta, "swiglu_limit": activation.limit}
    mode = {F.NVFP4: "w4a4", F.MXFP8: "w4a8", F.BF16: "w4a16"}[inputs]
    arguments = {"fc2_input_scale": None, **view}
    got = flashinfer.cute_dsl_fused_moe(*rows, ids, scales, num_experts=EXPERTS, top_k=TOP_K, quant_mode=mode, **kind, **arguments)
    # weights are quantised again with scales of their own: a few percent
    assert far(got, want) < off + 0.12
    wrapper = fused_moe.CuteDslMoEWrapper(EXPERTS, TOP_K, HIDDEN, INTER, quant_mode=mode, **kind)
    assert torch.equal(wrapper.run(*rows, ids, scales, **arguments), got) and wrapper.gated == activation.is_gated
    if not isinstance(activation, SiTU):
        layer = MoELayer(MoEConfig(RoutingConfig(EXPERTS, TOP_K), quant, ExpertConfig(INTER), activation, BackendOptions((fused_moe.CuteDslConfig(),))))
        weights = MoEWeightPack()
        weights.prepare_for("cute_dsl", view)
        assert torch.equal(layer(MoEActivationPack(*rows, ids, scales), weights), got)


def unpacked(view, name):
    from flashinfer import _expert_loop

    w, tiles = view[f"{name}_weight"], _expert_loop.fp4_tiles("test", name, view[f"{name}_weight_sf"], view[f"{name}_weight"])
    return torch.stack([_expert_loop.fp4_matrix(w, tiles, e) for e in range(len(w))]).double()


def test_order_shares_and_scales():
    """w4a16 against the very weights: linear and gate rows by turns, shares of the experts, factors of both products."""
    x, ids, scales = routed()
    w1, w2 = ((torch.randn(EXPERTS, *shape) / 10).bfloat16() for shape in ((2 * INTER, HIDDEN), (HIDDEN, INTER)))
    view = fused_moe.CuteDslConfig.prepare_weights(w1, w2, quant=QuantConfig(F.NVFP4, F.BF16), num_local_experts=EXPERTS, hidden_size=HIDDEN, intermediate_size=INTER)
    view |= {"w1_alpha": FACTOR, "w2_alpha": FACTOR.flip(0).contiguous(), "fc2_input_scale": None}
    first = unpacked(view, "w1").unflatten(1, (-1, 2, 64)).transpose(1, 2).reshape(w1.shape)
    assert (first - w1.double()).abs().max() < 0.1
    want = reference(x, first * FACTOR[:, None, None].double(), unpacked(view, "w2") * FACTOR.flip(0)[:, None, None].double(), ids, scales, SwiGLU())
    whole = flashinfer.cute_dsl_fused_moe_nvfp4(x, None, ids, scales, num_experts=EXPERTS, top_k=TOP_K, quant_mode="w4a16", **view)
    assert far(whole, want) < 0.01
    out = torch.empty_like(whole)
    parts = []
    for offset in (0, 2):
        share = {k: v if v is None else v[..., offset:offset + 2] if k.endswith("_sf") else v[offset:offset + 2] for k, v in view.items()}
        parts.append(flashinfer.cute_dsl_fused_moe_nvfp4(x, None, ids, scales, num_experts=EXPERTS, top_k=TOP_K, num_local_experts=2, local_expert_offset=offset,
                                                         quant_mode="w4a16", **share).double())
    assert far(sum(parts).bfloat16(), want) < 0.01
    assert flashinfer.cute_dsl_fused_moe(x, None, ids, scales, num_experts=EXPERTS, top_k=TOP_K, quant_mode="w4a16", moe_output=out, **view) is out
    assert torch.equal(out, whole)


def test_scales_of_tokens():
    """Rows quantised one by one give what bf16 inputs give, nearly; wrong rows or scales would not."""
    x, ids, scales = routed()
    x = x * torch.logspace(-2, 2, TOKENS)[:, None].bfloat16()
    w1, w2 = ((torch.randn(EXPERTS, *shape) / 10).bfloat16() for shape in ((2 * INTER, HIDDEN), (HIDDEN, INTER)))
    view = fused_moe.CuteDslConfig.prepare_weights(w1, w2, num_local_experts=EXPERTS, hidden_size=HIDDEN, intermediate_size=INTER)
    exact = flashinfer.cute_dsl_fused_moe(x, None, ids, scales, num_experts=EXPERTS, top_k=TOP_K, quant_mode="w4a16", **{**view, "fc2_input_scale": None}).double()
    codes, sf, rows = flashinfer.nvfp4_quantize(x, torch.full((1,), INVERSE), sfLayout=flashinfer.SfLayout.layout_linear, per_token_activation=True)
    got = flashinfer.cute_dsl_fused_moe(codes, sf, ids, scales, num_experts=EXPERTS, top_k=TOP_K, per_token_scale=rows.reshape(-1), **view)
    for t in range(TOKENS):
        assert far(got[t], exact[t]) < 0.4 and torch.nn.functional.cosine_similarity(got[t].double(), exact[t], 0) > 0.95


@pytest.mark.parametrize("activation", [SwiGLU(), ReLU2()], ids=["swiglu", "relu2"])
def test_bf16(activation):
    x, ids, scales = routed()
    w1, w2 = ((torch.randn(EXPERTS, *shape) / 10).bfloat16() for shape in ((INTER * (2 if activation.is_gated else 1), HIDDEN), (HIDDEN, INTER)))
    order = w1.unflatten(1, (2, -1, 32)).transpose(1, 2).reshape(w1.shape) if activation.is_gated else w1
    arguments = dict(num_experts=EXPERTS, top_k=TOP_K, activation_type=int(activation.type))
    got = flashinfer.cute_dsl_fused_moe_bf16(x, ids, scales, order, w2, **arguments)
    assert far(got, reference(x, w1.double(), w2.double(), ids, scales, activation)) < 0.01
    wrapper = fused_moe.CuteDslBf16MoEWrapper(EXPERTS, TOP_K, HIDDEN, INTER, activation_type=int(activation.type))
    assert torch.equal(wrapper.run(x, ids, scales, order, w2), got)


def test_wrong_arguments():
    x, ids, scales = routed()
    w1, w2 = ((torch.randn(EXPERTS, *shape) / 10).bfloat16() for shape in ((2 * INTER, HIDDEN), (HIDDEN, INTER)))
    view = fused_moe.CuteDslConfig.prepare_weights(w1, w2, num_local_experts=EXPERTS, hidden_size=HIDDEN, intermediate_size=INTER)
    both = dict(num_experts=EXPERTS, top_k=TOP_K)
    for changed, text in (({"quant_mode": "w8a8"}, "quant_mode must be"), ({"quant_mode": "w4a16"}, "fc2_input_scale must be None"),
                          ({"fc2_input_scale": None}, "fc2_input_scale is required"), ({"situ_linear_beta": 1.0}, "requires situ_beta"),
                          ({"activation_type": 0}, "activation_type"), ({"swiglu_limit": -1.0}, "swiglu_limit must be positive"),
                          ({"local_expert_offset": 1}, "local_expert_offset is 1 and num_local_experts 4, but there are 4"),
                          ({"w1_alpha": torch.ones(2)}, r"w1_alpha is torch.float32 of shape \(2,\), but must be torch.float32 \[4\]"),
                          ({"w2_weight_sf": view["w1_weight_sf"]}, "w2_weight_sf has [0-9]+ scale factors"), ({"top_k": 3}, r"must be \(7, 3\)")):
        codes, sf = fused_moe.prepare.prepare_trtllm_fp4_activations(x, quant=QuantConfig(F.NVFP4, F.NVFP4))
        with pytest.raises(ValueError, match=text):
            flashinfer.cute_dsl_fused_moe(codes, sf, ids, scales, **{**both, **view, **changed})
    with pytest.raises(ValueError, match="names expert 7, but there are 4"):
        flashinfer.cute_dsl_fused_moe(codes, sf, ids + 4, scales, **both, **view)
    with pytest.raises(ValueError, match="x_sf is required"):
        flashinfer.cute_dsl_fused_moe(codes, None, ids, scales, **both, **view)
    with pytest.raises(ValueError, match=r"must be 'w4a4' or 'w4a16' \(got 'w4a8'\)"):
        flashinfer.cute_dsl_fused_moe_nvfp4(codes, sf, ids, scales, **both, **view, quant_mode="w4a8")
    assert normalize_cute_dsl_moe_activation_type(ActivationType.GegluTanh) == (ActivationType.GegluTanh, True)
    for kind, beta, linear, text in ((ActivationType.Swiglu, 0.0, None, "positive and finite"), (ActivationType.GegluTanh, 1.0, None, "require ActivationType.Swiglu")):
        with pytest.raises(ValueError, match=text):
            validate_cute_dsl_moe_situ_config(kind, beta, linear)
    prepare, sizes = fused_moe.CuTileNvfp4Config.prepare_weights, dict(num_local_experts=EXPERTS, hidden_size=HIDDEN, intermediate_size=INTER)
    arguments, _ = checkpoint(F.NVFP4, True)
    for at, value, error, text in ((2, torch.ones(3), ValueError, r"w1_global_scale has shape \(3,\)"), (1, arguments[1].float(), TypeError, "must be torch.float8_e4m3fn"),
                                   (0, arguments[0][:, :4], ValueError, "w1 and its scales have shapes"), (0, arguments[0].float(), TypeError, "must be torch.uint8")):
        with pytest.raises(error, match=text):
            prepare(*[value if i == at else a for i, a in enumerate(arguments)], **sizes)
    with pytest.raises(ValueError, match="source_format must be"):
        prepare(*arguments, source_format="x", **sizes)


VIEWS = """
import json, sys, warnings
warnings.filterwarnings("ignore")
import torch, flashinfer.fused_moe as m
torch.manual_seed(0)
E, H, I = 2, 128, 64
sizes = dict(num_local_experts=E, hidden_size=H, intermediate_size=I)
u8 = lambda *s: torch.randint(1, 120, s).to(torch.uint8)
f8 = lambda *s: u8(*s).view(torch.float8_e4m3fn)
w = lambda *s: torch.randn(*s).bfloat16()
made = {"bf16": m.CuTileBf16Config.prepare_weights(w(E, 2 * I, H), w(E, H, I), **sizes),
        "relu2": m.CuTileBf16Config.prepare_weights(w(E, I, H), w(E, H, I), activation=m.ReLU2(), **sizes),
        "fp8": m.CuTileFp8PerTensorBf16Config.prepare_weights(f8(E, 2 * I, H), torch.rand(E), f8(E, H, I), torch.rand(E), **sizes),
        "mxfp8": m.CuTileMxfp8Config.prepare_weights(f8(E, 2 * I, H), u8(E, 2 * I, H // 32), f8(E, H, I), u8(E, H, I // 32), **sizes),
        "mxfp4": m.CuTileMxfp4Bf16Config.prepare_weights(u8(E, 2 * I, H // 2), u8(E, 2 * I, H // 32), u8(E, H, I // 2), u8(E, H, I // 32), **sizes),
        "nvfp4": m.SM12xNvfp4Config.prepare_weights(u8(E, 2 * I, H // 2), f8(E, 2 * I, H // 16), torch.rand(E, 2), u8(E, H, I // 2), f8(E, H, I // 16), torch.rand(E), **sizes)}
print(json.dumps({k: {n: [list(t.shape), str(t.dtype), t.contiguous().view(torch.uint8).flatten().tolist()] for n, t in v.items()} for k, v in made.items()}))
"""


def test_views_are_flashinfers():
    """What the real package's prepare_weights gives on a CPU, byte by byte."""
    results = []
    for who in ("theirs", "ours"):
        done = subprocess.run([sys.executable, "-c", VIEWS], env=environment(who), cwd="/", capture_output=True, text=True)
        assert done.returncode == 0, done.stderr
        results.append(json.loads(done.stdout.splitlines()[-1]))
    for kind, view in results[0].items():
        assert view.keys() == results[1][kind].keys()
        for name, value in view.items():
            assert value == results[1][kind][name], f"{kind} {name}: {value[:2]} {results[1][kind][name][:2]}"


def test_names_that_flashinfer_has_with_cute_dsl():
    """vLLM and SGLang ask for them by hasattr."""
    for name in ("cute_dsl_fused_moe", "cute_dsl_fused_moe_nvfp4", "cute_dsl_fused_moe_mxfp8_mxfp4", "cute_dsl_fused_moe_bf16", "b12x_fused_moe", "CuteDslMoEWrapper",
                 "B12xMoEWrapper", "CuteDslMxfp8Mxfp4MoEWrapper", "CuteDslBf16MoEWrapper"):
        assert getattr(flashinfer, name) is getattr(fused_moe, name)
    assert flashinfer.norm.rmsnorm_cute is flashinfer.cute_dsl.rmsnorm_cute
    x = torch.randn(3, 64).bfloat16()
    q = flashinfer.quantization
    for layout in (0, 1, 2):
        sf = flashinfer.SfLayout(layout)
        for got, want in ((q.nvfp4_quantize_cute_dsl(x, 2.0, layout), q.nvfp4_quantize(x, torch.full((1,), 2.0), sfLayout=sf)),
                          (q.mxfp4_quantize_cute_dsl(x, layout), q.mxfp4_quantize(x, sfLayout=sf)),
                          (q.nvfp4_quantize_per_token_cute_dsl(x, INVERSE, layout), q.nvfp4_quantize(x, torch.full((1,), INVERSE), sfLayout=sf, per_token_activation=True)),
                          (q.mxfp8_quantize_cute_dsl(x, layout != 2, is_sf_8x4_layout=layout == 1), q.mxfp8_quantize(x, layout != 2, sf_swizzle_layout=None if layout == 2 else sf))):
            assert len(got) == len(want) and all(torch.equal(a.view(torch.uint8), b.view(torch.uint8)) for a, b in zip(got, want))
    out = torch.empty(3, 32, dtype=torch.uint8), torch.empty(3, 4, dtype=torch.uint8)
    made = q.nvfp4_quantize_cute_dsl(x, 1.0, 2, out=out)
    assert made is out and torch.equal(out[0], q.nvfp4_quantize(x, torch.ones(1), sfLayout=flashinfer.SfLayout.layout_linear)[0])
