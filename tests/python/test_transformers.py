# SPDX-License-Identifier: Apache-2.0
"""HF transformers on the library: random models of several architectures give the logits and greedy tokens of transformers' own code."""

import pytest
import torch

transformers = pytest.importorskip("transformers")

import flashinfer  # noqa: E402
import flashinfer.integrations.transformers as fi  # noqa: E402
from flashinfer.integrations import _hf_layers  # noqa: E402

COMMON = dict(vocab_size=128, hidden_size=64, intermediate_size=96, num_hidden_layers=2, num_attention_heads=4, num_key_value_heads=2,
              max_position_embeddings=256, pad_token_id=0, bos_token_id=1, eos_token_id=None)
MLA = dict(COMMON, num_key_value_heads=4, moe_intermediate_size=32, n_routed_experts=4, n_group=2, topk_group=1, num_experts_per_tok=2, q_lora_rank=24,
           kv_lora_rank=16, qk_rope_head_dim=8, qk_nope_head_dim=16, v_head_dim=16, first_k_dense_replace=1, n_shared_experts=1)
WINDOW = dict(COMMON, sliding_window=8)
DELTA = dict(COMMON, head_dim=16, linear_num_key_heads=2, linear_num_value_heads=4, linear_key_head_dim=16, linear_value_head_dim=16,
             layer_types=["linear_attention", "full_attention"])
CONFIGS = {
    "Llama": COMMON,
    "Qwen3": dict(COMMON, head_dim=16),
    "Gemma2": dict(WINDOW, head_dim=16),  # soft cap
    "Gemma3Text": dict(WINDOW, head_dim=16),
    "Phi3": COMMON,  # one product for gate and up
    "Mistral": WINDOW,
    "GptOss": dict(WINDOW, head_dim=16, num_local_experts=4, num_experts_per_tok=2),  # sinks
    "DeepseekV3": MLA,
    "Mixtral": dict(COMMON, num_local_experts=4),
    "Olmo2": COMMON,
    "Granite": dict(COMMON, attention_multiplier=0.3),
    "Cohere2": WINDOW,
    "Qwen3Next": dict(DELTA, num_experts=4, num_experts_per_tok=2, moe_intermediate_size=32, shared_expert_intermediate_size=32),
    "Qwen3_5Text": DELTA,
    "OlmoHybrid": {k: v for k, v in DELTA.items() if k != "head_dim"},  # beta up to 2
    "KimiLinear": dict({k: v for k, v in MLA.items() if k != "n_routed_experts"}, num_local_experts=4, linear_head_dim=16, linear_num_heads=4,
                       layer_types=["linear_attention", "full_attention"]),
    "Mamba2": dict(vocab_size=128, hidden_size=64, num_hidden_layers=2, num_heads=8, head_dim=16, expand=2, state_size=16, n_groups=2, chunk_size=16,
                   pad_token_id=0, bos_token_id=1, eos_token_id=None),
    "Zamba2": dict(COMMON, mamba_headdim=16, n_mamba_heads=8, mamba_d_state=16, mamba_ngroups=2, chunk_size=16, layers_block_type=["mamba", "hybrid"]),  # adapters
    "NemotronH": dict(COMMON, mamba_num_heads=8, mamba_head_dim=16, ssm_state_size=16, n_groups=2, chunk_size=16, hybrid_override_pattern="M*"),
}


def model_of(name):
    """A model with transformers' own eager attention, and weights that give each token other logits."""
    torch.manual_seed(1)
    model = transformers.AutoModelForCausalLM.from_config(getattr(transformers, name + "Config")(**CONFIGS[name]), attn_implementation="eager")
    with torch.no_grad():
        for p in model.parameters():
            p.normal_(0, 0.08) if p.ndim > 1 else p.add_(torch.randn_like(p) * 0.1)
    return model.eval().float()


def counted(monkeypatch):
    """The names of ops that run, in a list that grows."""
    names = []
    for name in ("rmsnorm", "apply_rope_with_cos_sin_cache", "silu_and_mul"):
        op = getattr(fi_ops(), name)
        monkeypatch.setattr(fi_ops(), name, lambda *a, _op=op, _name=name, **k: names.append(_name) or _op(*a, **k))
    return names


def fi_ops():
    return _hf_layers.flashinfer


@pytest.mark.parametrize("name", CONFIGS)
@torch.no_grad()
def test_logits_and_tokens(name):
    model = model_of(name)
    ids = torch.randint(2, 128, (2, 21))
    padding = torch.ones_like(ids)
    padding[0, :6] = 0
    run = lambda: (model(ids).logits, model(ids, attention_mask=padding).logits,
                   model.generate(ids, attention_mask=padding, max_new_tokens=32, do_sample=False))
    whole, padded, tokens = run()
    fi.apply(model)
    assert model.config._attn_implementation == "flashinfer"
    ours, ours_padded, ours_tokens = run()
    assert (ours - whole).abs().max() < 1e-4
    assert (ours_padded - padded)[padding.bool()].abs().max() < 1e-4
    assert torch.equal(ours_tokens, tokens)
    assert all(_hf_layers._same.values()), _hf_layers._same


@torch.no_grad()
def test_layers_run_on_ops(monkeypatch):
    names = counted(monkeypatch)
    model = fi.apply(model_of("Llama"))
    model(torch.tensor([[5, 6, 7]]))  # compares with the model's own code
    names.clear()
    model(torch.tensor([[5, 6, 7]]))
    assert names.count("rmsnorm") == 5 and names.count("silu_and_mul") == 2
    if transformers.utils.is_kernels_available():
        assert names.count("apply_rope_with_cos_sin_cache") == 2


@pytest.mark.skipif(not transformers.utils.is_kernels_available(), reason="functions are replaced through the kernels package")
@pytest.mark.parametrize("name, ops", [("Qwen3Next", {"causal_conv1d_fn", "causal_conv1d_update", "chunk_gated_delta_rule", "gated_delta_rule_decode"}),
                                       ("KimiLinear", {"kda_recurrence", "causal_conv1d_fn", "causal_conv1d_update"}),
                                       ("Mamba2", {"causal_conv1d_fn", "causal_conv1d_update", "selective_state_update", "ssd_chunk_scan"})])
@torch.no_grad()
def test_linear_attention_runs_on_ops(monkeypatch, name, ops):
    ran = set()
    for module in (fi_ops().mamba, fi_ops().gdn_prefill, fi_ops().gdn_decode, fi_ops().kda):
        for op in ops & set(dir(module)):
            function = getattr(module, op)
            monkeypatch.setattr(module, op, lambda *a, _function=function, _op=op, **k: ran.add(_op) or _function(*a, **k))
    fi.apply(model_of(name)).generate(torch.tensor([[5, 6, 7]]), max_new_tokens=3, do_sample=False)
    assert ran == ops


@pytest.mark.parametrize("name", ["Qwen3Next", "Qwen3_5Text"])
@torch.no_grad()
def test_step_of_gated_delta_rule_takes_raw_gates(monkeypatch, name):
    """After the first one, which is compared, each token goes from the projections to the op without the model's own code."""
    raw, own = [], []
    decode, norm = fi_ops().gdn_decode.gated_delta_rule_decode, torch.nn.functional.softplus
    monkeypatch.setattr(fi_ops().gdn_decode, "gated_delta_rule_decode", lambda q, k, v, state, A_log, *a, **o: raw.append((q.shape[2], v.shape[2], A_log.any()))
                        or decode(q, k, v, state, A_log, *a, **o))
    monkeypatch.setattr(torch.nn.functional, "softplus", lambda *a, **o: own.append(1) or norm(*a, **o))
    model = fi.apply(model_of(name))
    model.generate(torch.tensor([[5, 6, 7]]), max_new_tokens=4, do_sample=False)  # the prompt, and at most one token for the comparison
    layer = next(m for m in model.modules() if hasattr(m, "A_log"))
    assert _hf_layers._same[(type(layer), "step")] and len(own) <= 2
    raw.clear(), own.clear()
    model.generate(torch.tensor([[5, 6, 7]]), max_new_tokens=4, do_sample=False)
    assert raw == [(2, 4, True)] * 3 and len(own) == 1  # three tokens behind the first; the prompt's gates


@pytest.mark.parametrize("name", ["Mamba2", "NemotronH"])
@torch.no_grad()
def test_step_of_mamba2_in_bf16(monkeypatch, name):
    """Each token behind the prompt goes from the projections to the ops. Weights as transformers draws them make states of which single elements of bf16
    results are all rounding: they are no reason to stay with the model's own code. States are f32, as in the model's own code."""
    states, theirs = [], []
    module = fi_ops().mamba
    update = module.selective_state_update
    monkeypatch.setattr(module, "selective_state_update", lambda state, *a, **o: states.append(state.dtype) or update(state, *a, **o))
    torch.manual_seed(0)
    config = getattr(transformers, name + "Config")(**CONFIGS[name])
    model = fi.apply(transformers.AutoModelForCausalLM.from_config(config, dtype=torch.bfloat16))
    run = lambda: model.generate(torch.randint(2, 128, (2, 30)), max_new_tokens=4, do_sample=False)
    run()
    layer = next(m for m in model.modules() if hasattr(m, "A_log"))
    assert _hf_layers._same[(type(layer), "step")]
    kind = type(layer).forward
    monkeypatch.setattr(type(layer), "forward", lambda self, x, *a, **o: theirs.append(x.shape[1]) or kind(self, x, *a, **o))
    states.clear()
    run()
    layers = sum(hasattr(m, "A_log") for m in model.modules())
    assert states == [torch.float32] * 3 * layers and theirs == [30] * layers


def test_rounding_where_terms_cancel_is_no_other_arithmetic():
    exact = torch.linspace(-300, 300, 4096)
    rounded = exact + torch.linspace(-0.5, 0.5, 4096).roll(1000)  # elements near 0 are all rounding
    kinds = [object(), object()]
    assert _hf_layers.checked(kinds[0], lambda: rounded.bfloat16(), lambda: exact.bfloat16()).equal(rounded.bfloat16()) and _hf_layers._same.pop(kinds[0])
    assert _hf_layers.checked(kinds[1], lambda: exact / 1000, lambda: exact / 1001).equal(exact / 1001) and not _hf_layers._same.pop(kinds[1])  # small, but another result


@torch.no_grad()
def test_linear_layers_of_bf16_run_by_mm_bf16(monkeypatch):
    model = model_of("Qwen3_5Text").bfloat16()
    ids, linear = torch.randint(2, 128, (2, 7)), torch.nn.Linear(24, 10).bfloat16()
    want, x = model(ids).logits, torch.randn(2, 3, 24).bfloat16()
    expected = linear(x)
    rows, mm = [], flashinfer.mm_bf16
    monkeypatch.setattr(flashinfer, "mm_bf16", lambda a, *args, **named: rows.append(a.shape[0]) or mm(a, *args, **named))
    torch.testing.assert_close(fi.replace_products(torch.nn.Sequential(linear))(x), expected)  # with a bias
    assert linear(x[:0]).shape == (0, 3, 10) and linear(x.repeat(11, 1, 1)).shape == (22, 3, 10) and rows == [6]  # 66 rows are torch's
    layers = [m for m in fi.apply(model).modules() if type(m) is torch.nn.Linear]
    assert all("forward" in vars(m) for m in layers)
    rows.clear()
    torch.testing.assert_close(model(ids).logits, want, rtol=0.05, atol=0.05)
    assert len(rows) >= len(layers) and set(rows) == {14}


@torch.no_grad()
def test_layer_with_other_arithmetic_stays():
    class HalvedRMSNorm(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.weight, self.variance_epsilon = torch.nn.Parameter(torch.ones(8)), 1e-6

        def forward(self, hidden_states):
            return hidden_states * torch.rsqrt(hidden_states.pow(2).mean(-1, keepdim=True) + self.variance_epsilon) * self.weight / 2

    norm, x = HalvedRMSNorm(), torch.randn(3, 8)
    for _ in range(2):
        assert torch.equal(_hf_layers.RMSNorm.forward(norm, x), HalvedRMSNorm.forward(norm, x))
    assert _hf_layers._same.pop(HalvedRMSNorm) is False


@pytest.mark.parametrize("name", ["Llama", "Gemma2", "GptOss"])
@torch.no_grad()
def test_continuous_batching(name):
    model = model_of(name)
    prompts = [torch.randint(2, 128, (n,)).tolist() for n in (5, 40, 17, 1)]
    alone = [model.generate(torch.tensor([p]), attention_mask=torch.ones(1, len(p)).long(), max_new_tokens=12, do_sample=False)[0, len(p):].tolist()
             for p in prompts]
    generation = transformers.GenerationConfig(max_new_tokens=12, do_sample=False, eos_token_id=-1, pad_token_id=0)
    batching = transformers.ContinuousBatchingConfig(page_size=16, num_blocks=64, max_batch_tokens=48)  # the longest prompt comes in parts
    results = fi.apply(model).generate_batch(prompts, generation_config=generation, continuous_batching_config=batching)
    assert [results[k].generated_tokens for k in sorted(results)] == alone


@torch.no_grad()
def test_packed_sequences():
    model = fi.apply(model_of("Llama"))
    a, b = torch.randint(2, 128, (1, 9)), torch.randint(2, 128, (1, 4))
    positions = torch.cat([torch.arange(9), torch.arange(4)])[None]
    packed = model(torch.cat([a, b], 1), position_ids=positions, use_cache=False).logits  # sequences told apart by their positions
    assert (packed[:, :9] - model(a).logits).abs().max() < 1e-4 and (packed[:, 9:] - model(b).logits).abs().max() < 1e-4


def test_unsupported_is_an_error():
    model = fi.apply(model_of("Llama"))
    with pytest.raises(RuntimeError, match="no backward: call the model under torch.no_grad"):
        model(torch.tensor([[5, 6]]))
    q = torch.randn(1, 4, 3, 16)
    module = model.model.layers[0].self_attn
    with torch.no_grad():
        with pytest.raises(NotImplementedError, match="dropout is 0.1"):
            fi.attention(module, q, q, q, None, dropout=0.1)
        with pytest.raises(NotImplementedError, match="position_bias"):
            fi.attention(module, q, q, q, None, position_bias=torch.zeros(1, 4, 3, 3))
        with pytest.raises(NotImplementedError, match="values beside 0 and the lowest"):
            fi.attention(module, q, q, q, torch.full((1, 1, 3, 3), -0.5))
        with pytest.raises(NotImplementedError, match=r"one mask for all heads, but attention_mask is \[1, 4, 3, 3\]"):
            fi.attention(module, q, q, q, torch.ones(1, 4, 3, 3).bool())
        with pytest.raises(NotImplementedError, match=r"attention_mask\[0\] has holes"):
            fi.attention(module, q, q, q, torch.tensor([[True, False, True]]))
