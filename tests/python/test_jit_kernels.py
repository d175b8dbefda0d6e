# SPDX-License-Identifier: Apache-2.0
"""Kernels of this library, and of attention variants, compiled before the first call (flashinfer.jit.gen_*_module)."""
import os
import shutil
import subprocess
import sys

import pytest
import torch
from conftest import environment

from flashinfer import jit
from flashinfer.jit import env

RUN = """
import warnings
warnings.simplefilter("error")
import torch, flashinfer
q, k = torch.ones(2, 64), torch.ones(9, 1, 64)
assert torch.equal(flashinfer.single_decode_with_kv_cache(q, k, k), q)
"""


def test_kernels_are_compiled_before_the_first_call(cache):
    f32 = torch.float32
    spec = jit.gen_single_decode_module(f32, f32, f32, 64, 64, 0, False, False)
    assert not spec.is_compiled
    with pytest.raises(RuntimeError, match="build\\(\\) it first"):
        spec.get_library_path()
    module = spec.build_and_load()
    assert spec.is_compiled and len(spec.get_library_paths()) == len(spec.kernels) > 0
    assert all(p.is_file() and p.is_relative_to(cache) for p in spec.get_library_paths())
    assert all(s.is_file() for s in spec.sources) and spec.get_compile_commands()[0]["arguments"]
    q, k = torch.ones(2, 64), torch.ones(9, 1, 64)
    assert torch.equal(module.single_decode_with_kv_cache(q, k, k), q)
    later = environment("ours", FLASHINFER_WORKSPACE_BASE=os.environ["FLASHINFER_WORKSPACE_BASE"], FLASHINFER_DISABLE_JIT="1")
    subprocess.run([sys.executable, "-c", RUN], env=later, check=True)  # finds it, and does not fall back to the reference


@pytest.mark.skipif(shutil.which("ninja") is None, reason="no ninja")
def test_ninja_compiles_kernels_again(cache):
    spec = jit.gen_act_and_mul_module("silu")
    assert not spec.is_compiled
    spec.write_ninja()
    assert spec.is_compiled
    assert spec.is_ninja_generated and spec.ninja_path.is_relative_to(cache), (cache, env.changed("FLASHINFER_JIT_DIR"))
    jit.core.run_ninja(spec.build_dir, spec.ninja_path, False)
    made = [spec.build_dir / p.parent.name / p.name for p in spec.get_library_paths()]
    assert made and all(again.read_bytes() == p.read_bytes() for again, p in zip(made, spec.get_library_paths()))


def test_precompiled_kernels(cache, tmp_path, monkeypatch):
    from flashinfer.aot import copy_built_kernels

    spec = jit.gen_quantization_module()
    assert {k["text"].partition("{")[0] for k in spec.kernels} == {"quantization.pack_bits"}
    spec.build()
    copy_built_kernels([spec], tmp_path / "ahead")
    jit.clear_cache_dir()
    monkeypatch.setenv("FLASHINFER_AOT_DIR", str(tmp_path / "ahead"))
    monkeypatch.setenv("FLASHINFER_DISABLE_JIT", "1")
    assert spec.is_compiled and spec.is_aot
    assert all(p.is_relative_to(tmp_path / "ahead") for p in spec.get_library_paths())


def test_missing_kernels_without_a_compiler(cache, monkeypatch):
    spec = jit.gen_act_and_mul_module("silu")
    monkeypatch.setenv("FLASHINFER_DISABLE_JIT", "1")
    with pytest.raises(jit.MissingJITCacheError, match="silu_and_mul"):
        spec.build_and_load()


ATTENTION = {
    "gen_single_prefill_module": ("fa2", "q", "kv", "q", 128, 64, 0, True, True, False),
    "gen_batch_decode_module": ("q", "kv", "q", "i", 64, 64, 0, True, False),
    "gen_batch_prefill_module": ("fa3", "q", "kv", "q", "i", 64, 64, 0, False, True, False),
    "gen_batch_mla_module": ("fa2", "q", "q", "q", "i", 512, 64, False),
    "gen_pod_module": ("q", "q", "q", 64, 0, False, False, False, "i", 0, False, False),
    "gen_batch_pod_module": ("q", "q", "q", 64, 0, False, False, False, "i", 0, False, False),
    "gen_batch_attention_module": ("q", "q", "q", "i", 64, 64, 0, True, False),
}


@pytest.mark.parametrize("q, kv", [("float16", "float16"), ("bfloat16", "float8_e4m3fn"), ("float32", "float32")])
@pytest.mark.parametrize("name", ATTENTION)
def test_attention_specs_are_for_their_dtypes(cache, name, q, kv):
    dtypes = {"q": getattr(torch, q), "kv": getattr(torch, kv), "i": torch.int32}
    spec = getattr(jit, name)(*[dtypes.get(a, a) if isinstance(a, str) else a for a in ATTENTION[name]])
    wanted = "q" if "kv" not in ATTENTION[name] else "kv"
    assert spec.kernels and all(f"q={q},kv={q if wanted == 'q' else kv}," in k["text"] for k in spec.kernels), spec.kernels


@pytest.mark.parametrize("name", ["norm", "page", "rope", "sampling", "topk", "quantization", "cascade", "mla"])
def test_family_specs(cache, name):
    spec = getattr(jit, f"gen_{name}_module")()
    assert spec.name == name and spec.kernels and not spec.is_compiled
    exported = spec.load()
    assert all(hasattr(exported, op.partition(".")[0]) for op in spec.ops)


def test_an_op_without_kernels_is_always_compiled(cache):
    spec = jit.gen_dsv3_fused_routing_module()
    spec.build()
    status = jit.jit_spec_registry.get_spec_status(spec.name)
    assert (spec.kernels, status.is_compiled, status.library_path) == ([], True, None)
    assert callable(spec.load().fused_topk_deepseek)


def test_families_without_kernels_say_so():
    for generate in (jit.gen_monomoe_module, jit.gen_trtllm_gen_fmha_module, jit.gen_flash_kda_m64_module):
        with pytest.raises(NotImplementedError, match="flashinfer.jit"):
            generate()
    with pytest.raises(ValueError, match="act_func_name is 'relu'"):
        jit.gen_act_and_mul_module("relu")


def test_generators_are_where_flashinfer_has_them():
    import flashinfer.gemm
    import flashinfer.norm
    from flashinfer.jit.norm import gen_norm_module

    assert jit.gen_norm_module is gen_norm_module
    with pytest.raises(AttributeError):
        jit.gen_no_such_module


# ---- variants ----
def test_the_sink_variant(cache):
    from flashinfer.jit.attention.variants import attention_sink_decl

    import flashinfer

    half, f = torch.float16, torch.float32
    spec = jit.gen_customize_single_prefill_module("fa2", "sink", f, f, f, 64, 64, ["sink"], ["float"], ["sm_scale"], ["double"],
                                                   "AttentionSink", attention_sink_decl["fa2"])
    assert not spec.is_compiled
    spec.build()
    assert spec.is_compiled and spec.get_library_path().is_file()
    g = torch.Generator().manual_seed(3)
    q, k, v, sink = (torch.randn(*s, generator=g) for s in ((4, 2, 64), (9, 2, 64), (9, 2, 64), (2,)))
    out = flashinfer.single_prefill_with_kv_cache_with_jit_module(spec.build_and_load(), q, k, v, sink, 0.2)
    logits = torch.einsum("qhd,khd->hqk", q.double(), k.double()) * 0.2
    weights = torch.softmax(torch.cat([logits, sink.double()[:, None, None].expand(2, 4, 1)], -1), -1)[..., :-1]
    torch.testing.assert_close(out, torch.einsum("hqk,khd->qhd", weights, v.double()).float(), rtol=1e-4, atol=1e-4)
    assert half not in spec.jit_args


def test_the_ranges_variant(cache):
    from flashinfer.jit.attention.variants import bidirectional_ranges_decl

    import flashinfer

    f = torch.float32
    spec = jit.gen_customize_single_prefill_module(
        "fa2", "ranges", f, f, f, 64, 64, ["bidirectional_ranges"], ["int32_t"], ["causal_window_left", "range_window_left", "sm_scale"],
        ["double"] * 3, "CausalBidirectionalRangesAttention", bidirectional_ranges_decl["fa2"])
    g = torch.Generator().manual_seed(4)
    q, k, v = (torch.randn(n, 2, 64, generator=g) for n in (6, 9, 9))
    ranges = torch.tensor([[-1, -1], [0, 8], [2, 6], [7, 8], [0, 0], [-1, -1]], dtype=torch.int32)
    out = flashinfer.single_prefill_with_kv_cache_with_jit_module(spec.build_and_load(), q, k, v, ranges, 2.0, 3.0, 0.3, mask_mode=2)
    logits = torch.einsum("qhd,khd->hqk", q.double(), k.double()) * 0.3
    position, key = torch.arange(6)[:, None] + 3, torch.arange(9)[None]
    seen = (key <= position) & (position - key <= 2)
    seen |= (key >= ranges[:, :1]) & (key <= ranges[:, 1:]) & (position - key < 3)
    weights = torch.softmax(logits.masked_fill(~seen, float("-inf")), -1)
    torch.testing.assert_close(out, torch.einsum("hqk,khd->qhd", weights, v.double()).float(), rtol=1e-4, atol=1e-4)


def test_an_error_in_a_variant_is_one_of_build(cache):
    f = torch.float32
    spec = jit.gen_customize_single_decode_module("wrong", f, f, f, 64, 64, [], [], [], [], "Wrong", "\nstruct Wrong { oops };")
    with pytest.raises(RuntimeError, match="variant_decl:2"):
        spec.build()
