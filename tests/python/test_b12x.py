# SPDX-License-Identifier: Apache-2.0
"""b12x_fused_moe, its wrapper and its back ends of MoELayer, against loops in double precision over the weights that NVFP4 keeps."""
import pytest
import torch

import flashinfer
from flashinfer import _expert_loop
from flashinfer.fused_moe import (B12xNvfp4Config, B12xW4A16Config, BackendOptions, ExpertConfig, GeGLU, GeGLUTanh, MoEActivationPack, MoEConfig,
                                  MoEFinalizeConfig, MoELayer, MoEWeightPack, QuantConfig, QuantFormat, ReLU2, RoutingConfig, SwiGLU)

TOKENS, HIDDEN, INTER, EXPERTS, TOP_K = 17, 128, 192, 6, 2
ACTIVATIONS = {"silu": SwiGLU(), "gelu_tanh": GeGLUTanh(), "relu2": ReLU2(), "swigluoai_uninterleave": SwiGLU(1.702, 1.0, 2.0)}


def kept(view, name):
    """[experts, rows, columns] of the quantised weights."""
    codes = view[name + "_weight"]
    tiles = _expert_loop.fp4_tiles("test", name, view[name + "_weight_sf"], codes)
    return torch.stack([_expert_loop.fp4_matrix(codes, tiles, e) for e in range(len(codes))]).double()


def activated(y, name):
    if name == "relu2":
        return y.relu() ** 2
    linear, gate = y.chunk(2)
    if name == "silu":
        return torch.nn.functional.silu(gate) * linear
    if name == "gelu_tanh":
        return torch.nn.functional.gelu(gate, approximate="tanh") * linear
    gate, linear = gate.clamp(max=2), linear.clamp(-2, 2)
    return gate * torch.sigmoid(1.702 * gate) * (linear + 1)


def reference(x, view, ids, scales, name):
    w1, w2, out = kept(view, "w1"), kept(view, "w2"), torch.zeros(x.shape, dtype=torch.float64)
    for t in range(len(x)):
        for e, scale in zip(ids[t].tolist(), scales[t].tolist()):
            if e >= 0:
                inner = activated(w1[e] @ x[t].double() * float(view["w1_alpha"][e]), name)
                out[t] += scale * float(view["w2_alpha"][e]) * (w2[e] @ inner)
    return out


def case(name):
    torch.manual_seed(0)
    x = torch.randn(TOKENS, HIDDEN).bfloat16() / 3
    w1 = torch.randn(EXPERTS, INTER * (1 if name == "relu2" else 2), HIDDEN).bfloat16() / 8
    w2 = torch.randn(EXPERTS, HIDDEN, INTER).bfloat16() / 8
    view = B12xNvfp4Config.prepare_weights(w1, w2, num_local_experts=EXPERTS, hidden_size=HIDDEN, intermediate_size=INTER, activation=name)
    assert (kept(view, "w1") - w1.double()).abs().max() < 0.1
    view |= {"w1_alpha": torch.linspace(0.75, 1.25, EXPERTS), "w2_alpha": torch.linspace(1.25, 0.75, EXPERTS)}
    ids = torch.rand(TOKENS, EXPERTS).argsort(1)[:, :TOP_K].int()
    ids[3, 1] = ids[5, 0] = ids[5, 1] = -1
    return x, view, ids, torch.rand(TOKENS, TOP_K)


@pytest.mark.parametrize("name", ACTIVATIONS)
def test_the_function_and_its_wrapper(name):
    x, view, ids, scales = case(name)
    want = reference(x, view, ids, scales, name)
    limit = 2.0 if name == "swigluoai_uninterleave" else None
    for mode, bound in (("w4a16", 0.01), ("nvfp4", 0.25)):  # four bits of the inputs
        got = flashinfer.b12x_fused_moe(x, token_selected_experts=ids, token_final_scales=scales, num_experts=EXPERTS, top_k=TOP_K, activation=name,
                                        swiglu_limit=limit, quant_mode=mode, **view)
        assert got.dtype == torch.bfloat16 and (got.double() - want).abs().max() < bound * want.abs().max() and not got[5].any()
        assert torch.nn.functional.cosine_similarity(got.double().flatten(), want.flatten(), 0) > (0.9999 if mode == "w4a16" else 0.98)
        wrapper = flashinfer.B12xMoEWrapper(EXPERTS, TOP_K, HIDDEN, INTER, activation=name, swiglu_limit=limit, quant_mode=mode)
        assert torch.equal(wrapper.run(x, token_selected_experts=ids, token_final_scales=scales, **view), got)


@pytest.mark.parametrize("backend, inputs", [(B12xNvfp4Config(), QuantFormat.NVFP4), (B12xW4A16Config(), QuantFormat.BF16)])
@pytest.mark.parametrize("name", ACTIVATIONS)
def test_the_layer(backend, inputs, name):
    x, view, ids, scales = case(name)
    config = MoEConfig(RoutingConfig(EXPERTS, TOP_K), QuantConfig(QuantFormat.NVFP4, inputs), ExpertConfig(INTER), ACTIVATIONS[name],
                       BackendOptions((backend,)))
    pack = MoEWeightPack()
    pack.prepare_for(backend.runner, view)
    ids = ids.clamp(min=0)
    got = MoELayer(config)(MoEActivationPack(x, None, ids, scales), pack)
    want = reference(x, view, ids, scales, name)
    assert (got.double() - want).abs().max() < (0.01 if inputs == QuantFormat.BF16 else 0.25) * want.abs().max()


def test_a_share_of_the_experts():
    x, view, ids, scales = case("silu")
    ids = ids.clamp(min=0)
    whole, config = reference(x, view, ids, scales, "silu"), []
    for first in (0, 3):
        config.append(MoEConfig(RoutingConfig(EXPERTS, TOP_K), QuantConfig(QuantFormat.NVFP4, QuantFormat.BF16), ExpertConfig(INTER, first, 3),
                                backend=BackendOptions((B12xW4A16Config(),))))
    parts = []
    for first, c in zip((0, 3), config):
        pack = MoEWeightPack()
        pack.prepare_for("b12x_w4a16", {k: (v[..., first:first + 3] if k.endswith("_sf") else v if v.numel() == 1 else v[first:first + 3]) for k, v in view.items()})
        parts.append(MoELayer(c)(MoEActivationPack(x, None, ids, scales), pack).double())
    assert (sum(parts) - whole).abs().max() < 0.02 * whole.abs().max()


def test_a_checkpoints_weights():
    torch.manual_seed(0)
    codes, scales = torch.randint(0, 256, (2, 64, 32)).to(torch.uint8), torch.rand(2, 64, 4).to(torch.float8_e4m3fn)
    second = torch.randint(0, 256, (2, 64, 16)).to(torch.uint8), torch.rand(2, 64, 2).to(torch.float8_e4m3fn)
    view = B12xW4A16Config.prepare_weights(codes, scales, torch.tensor([2.0, 3.0]), *second, torch.tensor(0.5), activation="silu")
    table = torch.tensor([0, 0.5, 1, 1.5, 2, 3, 4, 6, -0.0, -0.5, -1, -1.5, -2, -3, -4, -6]).double()
    values = table[torch.stack((codes & 15, codes >> 4), -1).long()].flatten(-2) * scales.double().repeat_interleave(16, -1)
    assert torch.equal(kept(view, "w1"), values) and view["w1_alpha"].tolist() == [2, 3] and view["w2_alpha"].tolist() == [0.5, 0.5]


def test_wrong_arguments():
    x, view, ids, scales = case("silu")
    routed = dict(token_selected_experts=ids, token_final_scales=scales, num_experts=EXPERTS, top_k=TOP_K)
    with pytest.raises(ValueError, match="fc2_input_scale is required"):
        flashinfer.b12x_fused_moe(x, **routed, **{**view, "fc2_input_scale": None})
    with pytest.raises(ValueError, match=r"w1_weight is torch.uint8 of shape \(6, 384, 64\), but must be torch.uint8 \[6, 192, 64\]"):
        flashinfer.b12x_fused_moe(x, **routed, **view, activation="relu2")
    with pytest.raises(ValueError, match="names expert 6, but there are 6"):
        flashinfer.b12x_fused_moe(x, **{**routed, "token_selected_experts": ids + 1}, **view)
    with pytest.raises(ValueError, match="activation is 'gelu'"):
        flashinfer.b12x_fused_moe(x, **routed, **view, activation="gelu")
    with pytest.raises(NotImplementedError, match="quant_mode 'mxfp4' is not available"):
        flashinfer.b12x_fused_moe(x, **routed, **view, quant_mode="mxfp4")
    with pytest.raises(ValueError, match="w2_weight_sf has [0-9]+ scale factors, but"):
        flashinfer.b12x_fused_moe(x, **routed, **{**view, "w2_weight_sf": view["w1_weight_sf"]})
    for activation, finalize, why in ((GeGLU(), True, "GeGLU is not available"), (SwiGLU(), False, "do_finalize")):
        with pytest.raises(NotImplementedError, match=why):
            MoELayer(MoEConfig(RoutingConfig(EXPERTS, TOP_K), QuantConfig(QuantFormat.NVFP4, QuantFormat.NVFP4), ExpertConfig(INTER), activation,
                               BackendOptions((B12xNvfp4Config(),)), finalize=MoEFinalizeConfig(do_finalize=finalize)))
