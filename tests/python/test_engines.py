# SPDX-License-Identifier: Apache-2.0
"""Calls as serving engines write them: names that they read and set on wrappers, plans that they make from the parts of FlashInfer's."""
import functools
import gc
import importlib
import importlib.util
import inspect
import json
import subprocess
import sys
import weakref

import pytest
import torch
from conftest import ROOT, environment
from engine_wrappers import (BF16, D, HKV, HQ, INDPTR, INDPTR2, LAST, LAST2, PAGE, PAGES, PAGES2, ROWS, cache, decode_graph,
                             decode_of, i32, plan_decode, plan_prefill, prefill_graph, prefill_of, queries, workspace)  # noqa: F401,F811 (fixtures)

import flashinfer
from flashinfer.decode import fast_decode_plan

# ---- every private name that the engines' call sites touch ----
DECODE, PREFILL, RAGGED, MLA = "decode", "prefill", "ragged", "mla"
READ = {
    ("vLLM", DECODE): "_window_left _logits_soft_cap _sm_scale _float_workspace_buffer _int_workspace_buffer _pin_memory_int_workspace_buffer "
                      "_cached_module _fixed_batch_size _paged_kv_indptr_buf _paged_kv_indices_buf _paged_kv_last_page_len_buf "
                      "_qo_indptr_buf _backend device is_cuda_graph_enabled use_tensor_cores",
    ("vLLM", PREFILL): "_causal _window_left _logits_soft_cap _sm_scale _float_workspace_buffer _custom_mask_buf _qo_indptr_buf",
    ("SGLang", DECODE): "_cached_module _kv_layout _jit_module is_cuda_graph_enabled",
    ("SGLang", PREFILL): "_backend _cached_module _max_total_num_rows _qo_indptr_buf _paged_kv_indptr_buf _paged_kv_last_page_len_buf "
                         "_paged_kv_indices_buf _float_workspace_buffer _int_workspace_buffer _pin_memory_int_workspace_buffer "
                         "_kv_lens_buffer _plan_info _causal _sm_scale device is_cuda_graph_enabled",
    ("SGLang", MLA): "_use_cuda_graph _kv_indices_buf _cached_module _float_workspace_buffer _int_workspace_buffer "
                     "_pin_memory_int_workspace_buffer device",
    ("SGLang", RAGGED): "_backend _kv_layout _qo_indptr_buf _kv_indptr_buf",
    ("mini-sglang", DECODE): "_int_workspace_buffer",
    ("mini-sglang", PREFILL): "_int_workspace_buffer",
}
SET = {
    ("vLLM", DECODE): "_plan_info _pos_encoding_mode _window_left _logits_soft_cap _sm_scale _rope_scale _rope_theta _block_tables _max_kv_len",
    ("SGLang", DECODE): "begin_forward plan",
    ("SGLang", PREFILL): "_qo_indptr_last _max_q_len _max_kv_len _max_total_num_rows _batch_size _num_qo_heads _num_kv_heads _prefix_len_ptr "
                         "_token_pos_in_items_ptr _token_pos_in_items_len _max_item_len_ptr _cached_q_data_type _cached_kv_data_type "
                         "_cached_o_data_type _block_tables _plan_info begin_forward",
    ("SGLang", MLA): "_causal _page_size _sm_scale plan",
    ("mini-sglang", DECODE): "_int_workspace_buffer",
    ("TensorRT-LLM", MLA): "_qo_indptr_buf _kv_indptr_buf _kv_indices_buf _kv_len_arr_buf",
    ("RTP-LLM", DECODE): "_use_cuda_graph _paged_kv_indptr_buf _paged_kv_indices_buf _paged_kv_last_page_len_buf _fixed_batch_size _qo_indptr_buf",
    ("RTP-LLM", PREFILL): "_use_cuda_graph _qo_indptr_buf _paged_kv_indptr_buf _paged_kv_indices_buf _paged_kv_last_page_len_buf "
                          "_fixed_batch_size",
}


def planned(kind, workspace):
    if kind == DECODE:
        return plan_decode(decode_graph(workspace))
    if kind == PREFILL:
        return plan_prefill(prefill_graph(workspace))
    if kind == RAGGED:
        w = flashinfer.BatchPrefillWithRaggedKVCacheWrapper(workspace, "NHD", backend="fa2")
        w.plan(ROWS, i32(0, 5, 9, 16), HQ, HKV, D, causal=True, q_data_type=BF16)
        return w
    w = flashinfer.mla.BatchMLAPagedAttentionWrapper(workspace, backend="fa2")
    w.plan(i32(0, 1, 2, 3), INDPTR, PAGES, i32(5, 4, 7), 16, 512, 64, PAGE, False, 0.1, BF16, BF16)
    return w


@pytest.mark.parametrize("engine, kind, names", [(*key, names) for key, names in READ.items()])
@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_names_that_are_read(engine, kind, names, workspace):
    w = planned(kind, workspace)
    missing = [n for n in names.split() if not hasattr(w, n)]
    assert not missing, f"{engine} reads {missing}"


@pytest.mark.parametrize("engine, kind, names", [(*key, names) for key, names in SET.items()])
@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_names_that_are_set(engine, kind, names, workspace):
    w = planned(kind, workspace)
    for name in names.split():
        value = getattr(w, name) if name != "_plan_info" else (1, 2, 3)
        setattr(w, name, value)
        assert getattr(w, name) is value or getattr(w, name) == value, f"{engine} sets {name}"


# ---- values ----
@pytest.fixture(scope="module")
def attributes():
    """{who: what oracle/attributes.py prints}"""
    out = {}
    for who in ("theirs", "ours"):
        done = subprocess.run([sys.executable, str(ROOT / "tests/python/oracle/attributes.py"), who], env=environment(who), cwd="/", capture_output=True,
                              text=True)
        assert done.returncode == 0, done.stderr
        out[who] = json.loads(done.stdout)
    return out


def test_values_are_those_of_flashinfers_wrappers(attributes):
    theirs, ours = attributes["theirs"], attributes["ours"]
    assert theirs.keys() == ours.keys()
    different = {(who, when, name): (value, ours[who][when][name]) for who, parts in theirs.items() for when, values in parts.items()
                 for name, value in values.items() if ours[who][when][name] != value}
    assert not different and sum(len(values) for parts in theirs.values() for values in parts.values()) > 300


def test_values_of_a_decode_plan(workspace):
    w = decode_graph(workspace)
    assert w._float_workspace_buffer is workspace and w.device == workspace.device
    assert (w._kv_layout, w._backend, w._jit_module, w._cached_module, w._plan_info) == ("NHD", "auto", None, None, None)
    assert w._use_cuda_graph and w._fixed_batch_size == 3 and not hasattr(w, "_sm_scale")
    assert w._int_workspace_buffer.shape == (8 << 20,) and w._int_workspace_buffer is w._int_workspace_buffer
    assert w._int_workspace_buffer.dtype == w._pin_memory_int_workspace_buffer.dtype == torch.uint8
    plan_decode(w, sm_scale=0.5, window_left=6, fixed_split_size=-1)
    assert (w._sm_scale, w._window_left, w._logits_soft_cap, w._rope_scale, w._pos_encoding_mode) == (0.5, 6, 0.0, None, "NONE")
    assert (w._backend, w._batch_size, w._max_kv_len, w._is_causal) == ("fa2", 3, 7, False) and w._plan_info and w._cached_module
    assert (w._cached_q_data_type, w._cached_kv_data_type, w._cached_o_data_type) == (BF16,) * 3
    assert w._plan_info == [3, *[0] * 7, 1, 0] or w._use_tensor_cores and len(w._plan_info) == 15
    assert w._paged_kv_indptr_buf.tolist() == INDPTR.tolist() and w._paged_kv_last_page_len_buf.tolist() == LAST.tolist()
    assert w._paged_kv_indices_buf.shape == (16,) and w._paged_kv_indices_buf[:5].tolist() == PAGES.tolist()
    assert w._qo_indptr_buf.tolist() == [0, 1, 2, 3]
    fast_decode_plan(w, INDPTR2, PAGES2, LAST2, HQ, HKV, D, PAGE, sm_scale=0.25, logits_soft_cap=2.0)
    assert (w._sm_scale, w._logits_soft_cap, w._window_left) == (0.25, 2.0, -1) and w._paged_kv_last_page_len_buf.tolist() == LAST2.tolist()
    with pytest.warns(DeprecationWarning):  # by position, as older programs plan
        w.plan(INDPTR, PAGES, LAST, HQ, HKV, D, PAGE, "NONE", 5, 1.5, BF16)
    assert (w._window_left, w._logits_soft_cap, w._cached_q_data_type) == (5, 1.5, BF16)


@pytest.mark.parametrize("rows, heads, dim, dtype, tile", [(8, 2, 128, BF16, 16), (16, 4, 128, BF16, 64), (65, 2, 128, BF16, 128), (65, 2, 256, BF16, 64),
                                                           (128, 2, 512, torch.float8_e4m3fn, 32)])
def test_rows_of_a_query_tile(workspace, rows, heads, dim, dtype, tile):
    w = flashinfer.BatchPrefillWithRaggedKVCacheWrapper(workspace, "NHD")
    w.plan(i32(0, rows, 2 * rows), i32(0, 200, 400), heads, 2, dim, causal=True, q_data_type=BF16, kv_data_type=dtype)
    assert len(w._plan_info) == 15 and w._plan_info[:4] == [2 * -(-rows * (heads // 2) // tile), 2 * rows, 0, tile]


def test_values_of_a_prefill_plan(workspace):
    w = flashinfer.BatchPrefillWithPagedKVCacheWrapper(workspace, "HND")
    assert (w._kv_layout, w._use_cuda_graph, w._fixed_batch_size, w._max_total_num_rows, w._qo_indptr_buf) == ("HND", False, 0, None, None)
    plan_prefill(w, sm_scale=0.5, window_left=7, logits_soft_cap=3.0)
    assert w._causal is True and (w._sm_scale, w._window_left, w._logits_soft_cap) == (0.5, 7, 3.0)
    assert w._qo_indptr_buf is ROWS and w._paged_kv_indices_buf is PAGES, "on the wrapper's device they are the caller's"
    assert (w._qo_indptr_last, w._max_q_len, w._max_kv_len, w._custom_mask_buf) == (6, 3, 7, None)
    assert w._kv_lens_buffer[:4].tolist() == [5, 4, 7, 0]
    mask = torch.rand(1 * 5 + 2 * 4 + 3 * 7, generator=torch.Generator().manual_seed(3)) < 0.5
    plan_prefill(w, custom_mask=mask)
    packed, indptr = flashinfer.segment_packbits(mask, i32(0, 5, 13, 34), bitorder="little")
    assert torch.equal(w._custom_mask_buf, packed) and torch.equal(w._mask_indptr_buf, indptr)
    w.reset_workspace_buffer(torch.empty(1 << 12, dtype=torch.uint8), torch.empty(1 << 10, dtype=torch.uint8))
    assert w._float_workspace_buffer.numel() == 1 << 12 and w._int_workspace_buffer.numel() == 1 << 10


def test_values_are_the_same_while_calls_are_logged(workspace, tmp_path):
    program = ("import torch, flashinfer\n"
               "w = flashinfer.BatchPrefillWithPagedKVCacheWrapper(torch.empty(64, dtype=torch.uint8), kv_layout='HND')\n"
               "t = lambda *x: torch.tensor(x, dtype=torch.int32)\n"
               "w.plan(t(0, 1), paged_kv_indptr=t(0, 1), paged_kv_indices=t(0), paged_kv_last_page_len=t(3), num_qo_heads=8, num_kv_heads=2,\n"
               "       head_dim_qk=64, page_size=4, causal=True, sm_scale=0.5)\n"
               "print(w._kv_layout, w._causal, w._sm_scale, w._window_left, w._max_kv_len)\n")
    for level in (0, 3):
        done = subprocess.run([sys.executable, "-c", program], env=environment("ours", FLASHINFER_LOGLEVEL=level, FLASHINFER_LOGDEST=tmp_path / "log"),
                              capture_output=True, text=True)
        assert done.stdout == "HND True 0.5 -1 3\n", done.stderr


# ---- what engines ask for before they use it (vllm/utils/flashinfer.py; SGLang's layers): by hasattr, getattr with a default, or an import ----
WANTED = {
    "flashinfer": "fp4_quantize mxfp4_quantize nvfp4_batched_quantize nvfp4_block_scale_interleave nvfp4_quantize mxfp8_quantize scaled_fp4_grouped_quantize SfLayout "
                  "silu_and_mul_scaled_nvfp4_experts_quantize trtllm_fp4_block_scale_moe cute_dsl_fused_moe_nvfp4 packed_fused_kda_decode mm_fp4 mm_mxfp8 bmm_fp8 "
                  "shuffle_matrix_a shuffle_matrix_sf_a block_scale_interleave",
    "flashinfer.autotuner": "autotune AutoTuner",
    "flashinfer.comm": "Mapping",
    "flashinfer.comm.mnnvl": "MnnvlMemory",
    "flashinfer.comm.trtllm_moe_alltoall": "MoeAlltoAll",
    "flashinfer.concat_ops": "concat_mla_k",
    "flashinfer.cute_dsl.blockscaled_gemm": "grouped_gemm_nt_masked",
    "flashinfer.cute_dsl.utils": "convert_sf_to_mma_layout",
    "flashinfer.decode": "_get_range_buf get_seq_lens fast_decode_plan trtllm_batch_decode_with_kv_cache trtllm_batch_decode_with_kv_cache_mla "
                         "trtllm_batch_decode_sparse_mla_dsv4 xqa_batch_decode_with_kv_cache",
    "flashinfer.fp4_quantization": "block_scale_interleave nvfp4_block_scale_interleave",
    "flashinfer.fused_moe": "cutlass_fused_moe b12x_fused_moe trtllm_bf16_moe trtllm_bf16_routed_moe trtllm_fp8_block_scale_moe trtllm_fp8_per_tensor_scale_moe "
                            "trtllm_fp4_block_scale_moe trtllm_fp4_block_scale_routed_moe trtllm_mxint4_block_scale_moe interleave_moe_weights_for_sm90_mixed_gemm "
                            "CuteDslMoEWrapper",
    "flashinfer.fused_moe.core": "ActivationType MoeRunnerInputs _maybe_get_cached_w3_w1_permute_indices get_w2_permute_indices_with_cache "
                                 "get_reorder_rows_for_gated_act_gemm_row_indices cutlass_fused_moe",
    "flashinfer.fused_moe.utils": "get_hybrid_num_tokens_buckets",
    "flashinfer.gemm": "fp8_blockscale_gemm_sm90 mm_bf16_fp4 prepare_bf16_fp4_weights",
    "flashinfer.kda": "recurrent_kda",
    "flashinfer.kda_decode": "fused_kda_decode _FUSED_KDA_DECODE_AVAILABLE",
    "flashinfer.prefill": "trtllm_batch_context_with_kv_cache trtllm_ragged_attention_deepseek",
    "flashinfer.utils": "FP4Tensor get_shuffle_matrix_a_row_indices get_shuffle_matrix_sf_a_row_indices",
}


@pytest.mark.parametrize("module", WANTED)
def test_names_that_engines_ask_for(module):
    found = importlib.import_module(module)
    assert importlib.util.find_spec(module) is not None
    missing = [name for name in WANTED[module].split() if getattr(found, name, None) is None]
    assert not missing, f"{module} has no {missing}"
    exec(f"from {module} import {', '.join(WANTED[module].split())}")


def test_vllm_asks_for_scales_of_latent_caches():
    parameter = inspect.signature(flashinfer.mla.BatchMLAPagedAttentionWrapper.run).parameters["ckv_scale_arr"]
    assert parameter.kind is inspect.Parameter.KEYWORD_ONLY


def test_a_mixture_of_experts_as_sglang_and_vllm_call_it():
    """SGLang takes element 0 of the result, which of a tensor would be its first row; vLLM reads `output`."""
    x, w1, w2 = torch.randn(3, 64).bfloat16(), torch.randn(2, 128, 64).bfloat16(), torch.randn(2, 64, 64).bfloat16()
    call = dict(input=x, token_selected_experts=i32(0, 1, 0).view(3, 1), token_final_scales=torch.ones(3, 1), fc1_expert_weights=w1, fc2_expert_weights=w2,
                output_dtype=x.dtype, quant_scales=None, ep_size=1, ep_rank=0, tp_size=1, tp_rank=0, tune_max_num_tokens=4)
    made = flashinfer.fused_moe.cutlass_fused_moe(**call)
    assert type(made) is list and len(made) == 1 and made[0].shape == x.shape
    output = torch.empty_like(x)
    assert flashinfer.fused_moe.cutlass_fused_moe(**call, output=output)[0] is output and torch.equal(output, made[0])


# ---- vLLM ----
def test_vllm_prefill_and_decode(cache, workspace):
    """What its attention back end does at every step and layer."""
    scale, window_left, soft_cap = 0.3, -1, None
    prefill, decode = flashinfer.BatchPrefillWithPagedKVCacheWrapper(workspace, "NHD"), decode_graph(workspace)
    prefill.plan(ROWS, INDPTR, PAGES, LAST, HQ, HKV, D, PAGE, causal=True, sm_scale=scale, window_left=window_left, logits_soft_cap=soft_cap,
                 q_data_type=BF16, kv_data_type=BF16, o_data_type=BF16, fixed_split_size=-1, disable_split_kv=False)
    assert prefill._causal
    assert prefill._window_left == window_left
    assert prefill._logits_soft_cap == (soft_cap or 0.0)
    assert prefill._sm_scale == scale
    out = torch.empty(6, HQ, D, dtype=BF16)
    prefill.run(queries(6), cache, k_scale=1.0, v_scale=1.0, out=out)
    assert torch.equal(out, prefill_of(cache, queries(6), sm_scale=scale))
    vllm_fast_plan_decode(decode, INDPTR, PAGES, LAST, sm_scale=scale)
    assert decode._sm_scale == scale and decode._logits_soft_cap == 0.0
    assert torch.equal(decode.run(queries(3), cache), decode_of(cache, queries(3), sm_scale=scale))
    vllm_fast_plan_decode(decode, INDPTR2, PAGES2, LAST2, sm_scale=scale)
    assert torch.equal(decode.run(queries(3), cache), decode_of(cache, queries(3), INDPTR2, PAGES2, LAST2, sm_scale=scale))


def vllm_fast_plan_decode(self, indptr_cpu, indices, last_page_len_cpu, sm_scale, window_left=-1, logits_soft_cap=None):
    """The first plan is the real one; the others write the graph's buffers and call the module."""
    if getattr(self, "vllm_first_call", True):
        self.plan(indptr=indptr_cpu, indices=indices, last_page_len=last_page_len_cpu, num_qo_heads=HQ, num_kv_heads=HKV, head_dim=D, page_size=PAGE,
                  pos_encoding_mode="NONE", window_left=window_left, logits_soft_cap=logits_soft_cap, q_data_type=BF16, kv_data_type=BF16,
                  sm_scale=sm_scale, rope_scale=None, rope_theta=None, non_blocking=True, fixed_split_size=-1, disable_split_kv=False)
        self.vllm_first_call = False
        return
    assert self.is_cuda_graph_enabled
    batch_size = len(last_page_len_cpu)
    assert batch_size == self._fixed_batch_size and len(indices) <= len(self._paged_kv_indices_buf)
    self._paged_kv_indptr_buf.copy_(indptr_cpu, non_blocking=True)
    self._paged_kv_last_page_len_buf.copy_(last_page_len_cpu, non_blocking=True)
    self._paged_kv_indices_buf[:len(indices)].copy_(indices)
    seq_lens = flashinfer.get_seq_lens(indptr_cpu, last_page_len_cpu, PAGE)
    self._plan_info = self._cached_module.plan(
        self._float_workspace_buffer, self._int_workspace_buffer, self._pin_memory_int_workspace_buffer, torch.arange(batch_size + 1).int(),
        indptr_cpu, seq_lens, batch_size, batch_size, HQ, HKV, PAGE, self.is_cuda_graph_enabled, D, D, False, window_left, -1, False, 0)
    self._pos_encoding_mode = "NONE"
    self._window_left = window_left
    self._logits_soft_cap = logits_soft_cap or 0.0
    self._sm_scale = sm_scale
    self._rope_scale = None
    self._rope_theta = None


# ---- SGLang ----
def test_sglang_decode_graph(cache, workspace):
    w = decode_graph(workspace, backend="fa2")
    w.begin_forward(INDPTR, PAGES, LAST, HQ, HKV, D, PAGE, data_type=BF16, q_data_type=BF16, non_blocking=True, fixed_split_size=None,
                    disable_split_kv=False)
    w.begin_forward = functools.partial(fast_decode_plan, w)
    w.begin_forward(INDPTR2, PAGES2, LAST2, HQ, HKV, D, PAGE, data_type=BF16, q_data_type=BF16, non_blocking=True, fixed_split_size=None,
                    disable_split_kv=False, global_override_indptr_cpu=INDPTR2)
    assert torch.equal(w.forward(queries(3), cache, sm_scale=0.2), decode_of(cache, queries(3), INDPTR2, PAGES2, LAST2, sm_scale=0.2))


def sglang_fast_prefill_plan(self, qo_indptr, paged_kv_indptr, paged_kv_indices, paged_kv_last_page_len, *, q_data_type, kv_lens_host, causal=False):
    assert self.is_cuda_graph_enabled and getattr(self, "_backend", None) == "fa2" and getattr(self, "_cached_module", None) is not None
    total = int(qo_indptr[-1])
    self._qo_indptr_last, self._max_q_len, self._max_kv_len = total, 3, int(kv_lens_host.max())
    if self._max_total_num_rows is None:
        self._max_total_num_rows = total
    self._batch_size, self._num_qo_heads, self._num_kv_heads = len(paged_kv_last_page_len), HQ, HKV
    self._prefix_len_ptr = self._token_pos_in_items_ptr = self._max_item_len_ptr = self._block_tables = None
    self._token_pos_in_items_len = 0
    self._qo_indptr_buf.copy_(qo_indptr)
    self._paged_kv_indptr_buf.copy_(paged_kv_indptr)
    self._paged_kv_last_page_len_buf.copy_(paged_kv_last_page_len)
    self._paged_kv_indices_buf[:len(paged_kv_indices)].copy_(paged_kv_indices, non_blocking=paged_kv_indices.device == self.device)
    self._cached_q_data_type = self._cached_kv_data_type = q_data_type
    self._cached_o_data_type = None
    self._plan_info = self._cached_module.plan(
        self._float_workspace_buffer, self._int_workspace_buffer, self._pin_memory_int_workspace_buffer, qo_indptr, paged_kv_indptr, kv_lens_host,
        self._max_total_num_rows or total, self._batch_size, HQ, HKV, PAGE, self.is_cuda_graph_enabled, D, D, causal, -1, -1, False, 0)


def test_sglang_draft_extend_graph(cache, workspace):
    w = plan_prefill(prefill_graph(workspace))
    w.begin_forward = functools.partial(sglang_fast_prefill_plan, w)
    w.begin_forward(ROWS, INDPTR2, PAGES2, LAST2, q_data_type=BF16, kv_lens_host=i32(6, 4, 8))
    out = w.forward(queries(6), cache, causal=True, sm_scale=0.2)
    assert torch.equal(out, prefill_of(cache, queries(6), INDPTR2, PAGES2, LAST2, sm_scale=0.2))
    assert torch.equal(w.run(queries(6), cache), prefill_of(cache, queries(6), INDPTR2, PAGES2, LAST2)), "run() keeps the plan's mask"


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_sglang_mla_graph(workspace):
    torch.manual_seed(4)
    ckv, kpe, q, pe = (torch.randn(*s).to(BF16) for s in ((8, PAGE, 512), (8, PAGE, 64), (3, 16, 512), (3, 16, 64)))
    rows = i32(0, 1, 2, 3)

    def real(lengths, indptr, pages, scale):
        w = flashinfer.mla.BatchMLAPagedAttentionWrapper(workspace)
        w.plan(rows, indptr, pages, lengths, 16, 512, 64, PAGE, False, scale, BF16, BF16)
        return w.run(q, pe, ckv, kpe)

    w = flashinfer.mla.BatchMLAPagedAttentionWrapper(workspace, use_cuda_graph=True, qo_indptr=torch.zeros(4, dtype=torch.int32),
                                                     kv_indptr=torch.zeros(4, dtype=torch.int32), kv_indices=torch.zeros(16, dtype=torch.int32),
                                                     kv_len_arr=torch.zeros(3, dtype=torch.int32), backend="fa2")
    w.plan(rows, INDPTR, PAGES, i32(5, 4, 7), 16, 512, 64, PAGE, False, 0.1, BF16, BF16)
    assert torch.equal(w.run(q, pe, ckv, kpe), real(i32(5, 4, 7), INDPTR, PAGES, 0.1))

    def fast_mla_decode_plan(self, qo_indptr_cpu, kv_indptr_cpu, kv_indices, kv_len_arr_cpu, causal, sm_scale):
        self._causal, self._page_size, self._sm_scale = causal, PAGE, sm_scale
        self._cached_module.plan(self._float_workspace_buffer, self._int_workspace_buffer, self._pin_memory_int_workspace_buffer, qo_indptr_cpu,
                                 kv_indptr_cpu, kv_len_arr_cpu, 16, 512, causal)

    w.plan = functools.partial(fast_mla_decode_plan, w)
    assert w._use_cuda_graph
    w._kv_indices_buf[:5] = PAGES2
    w.plan(rows, INDPTR2, w._kv_indices_buf, i32(6, 4, 8), False, 0.3)
    assert torch.equal(w.run(q, pe, ckv, kpe), real(i32(6, 4, 8), INDPTR2, PAGES2, 0.3))


def test_mla_plan_of_metadata(workspace):
    torch.manual_seed(4)
    ckv, kpe, q, pe = (torch.randn(*s).to(BF16) for s in ((8, PAGE, 512), (8, PAGE, 64), (3, 16, 512), (3, 16, 64)))
    metadata = flashinfer.mla.MLAPlanMetadata
    rest = {"num_heads": 16, "head_dim_ckv": 512, "head_dim_kpe": 64, "page_size": PAGE, "causal": False, "q_data_type": BF16, "kv_data_type": BF16}

    def planned(sm_scale, pages):
        w = flashinfer.mla.BatchMLAPagedAttentionWrapper(workspace)
        w.plan(metadata=metadata.csr(i32(0, 1, 2, 3), INDPTR, pages, i32(5, 4, 7)), sm_scale=sm_scale, **rest)
        return w

    def run(w):
        return w.run(query=torch.cat([q, pe], -1), kv_cache=torch.cat([ckv, kpe], -1))

    w = planned(0.1, PAGES)
    assert w._kv_indices_buf is PAGES and w._kv_len_arr_buf.tolist() == [5, 4, 7] and w._sm_scale == 0.1 and w._plan_info
    w._sm_scale = 0.3
    w._kv_indices_buf = PAGES2
    assert torch.equal(run(w), run(planned(0.3, PAGES2)))
    w = flashinfer.mla.BatchMLAPagedAttentionWrapper(workspace)
    w.plan(metadata=metadata.dense(i32(0, 1, 2, 3), torch.zeros(3, 2, dtype=torch.int32), i32(5, 4, 7)), sm_scale=0.1, **rest)
    assert w._kv_indptr_buf is None and w._plan_info and w._cached_module


# ---- others ----
def test_mini_sglang_shares_the_int_workspace(workspace):
    prefill, decode = flashinfer.BatchPrefillWithPagedKVCacheWrapper(workspace, kv_layout="NHD", backend="fa2"), decode_graph(workspace)
    decode._int_workspace_buffer = prefill._int_workspace_buffer
    assert decode._int_workspace_buffer is prefill._int_workspace_buffer
    plan_decode(decode)
    assert decode._int_workspace_buffer is prefill._int_workspace_buffer


def test_buffers_given_after_the_constructor(cache, workspace):
    """RTP-LLM turns a wrapper into one for graphs when the first batch is known."""
    w = flashinfer.BatchPrefillWithPagedKVCacheWrapper(workspace, "NHD", backend="fa2")
    assert w._qo_indptr_buf is None and not w.is_cuda_graph_enabled
    w._use_cuda_graph = True
    w._qo_indptr_buf, w._paged_kv_indptr_buf = torch.zeros(4, dtype=torch.int32), torch.zeros(4, dtype=torch.int32)
    w._paged_kv_last_page_len_buf, w._paged_kv_indices_buf = torch.zeros(3, dtype=torch.int32), torch.zeros(16, dtype=torch.int32)
    w._fixed_batch_size = 3
    rows, indices = w._qo_indptr_buf, w._paged_kv_indices_buf
    plan_prefill(w)
    assert w.is_cuda_graph_enabled and w._qo_indptr_buf is rows and w._paged_kv_indices_buf is indices
    assert rows.tolist() == ROWS.tolist() and indices[:5].tolist() == PAGES.tolist(), "plan() writes the graph's buffers"
    assert torch.equal(w.run(queries(6), cache), prefill_of(cache, queries(6)))
    with pytest.raises(ValueError, match="pad it with empty requests"):
        w.plan(i32(0, 1), i32(0, 1), i32(0), i32(1), HQ, HKV, D, PAGE)


def test_what_is_set_after_plan_is_what_run_takes(cache, workspace):
    w = plan_prefill(flashinfer.BatchPrefillWithPagedKVCacheWrapper(workspace, "NHD"))
    q = queries(6)
    w._sm_scale = 0.7
    assert torch.equal(w.run(q, cache), prefill_of(cache, q, sm_scale=0.7)) and w._sm_scale == 0.7
    w._causal = False
    assert torch.equal(w.run(q, cache), prefill_of(cache, q, sm_scale=0.7, causal=False))
    w._paged_kv_indptr_buf, w._paged_kv_indices_buf, w._paged_kv_last_page_len_buf = INDPTR2, PAGES2, LAST2
    assert torch.equal(w.run(q, cache), prefill_of(cache, q, INDPTR2, PAGES2, LAST2, sm_scale=0.7, causal=False))
    assert "run" not in vars(w), "then run() is the class's again"
    plan_prefill(w)
    assert w._causal is True and w._sm_scale is None and torch.equal(w.run(q, cache), prefill_of(cache, q))
    mask = torch.rand(34, generator=torch.Generator().manual_seed(3)) < 0.5
    packed, indptr = flashinfer.segment_packbits(mask, i32(0, 5, 13, 34), bitorder="little")
    w._custom_mask_buf, w._mask_indptr_buf = packed, indptr
    assert torch.equal(w.run(q, cache), prefill_of(cache, q, custom_mask=mask))
    d = decode_graph(workspace)
    plan_decode(d, sm_scale=0.4)
    d._paged_kv_indptr_buf, d._paged_kv_indices_buf, d._paged_kv_last_page_len_buf = INDPTR2.clone(), PAGES2.clone(), LAST2.clone()
    assert torch.equal(d.run(queries(3), cache), decode_of(cache, queries(3), INDPTR2, PAGES2, LAST2, sm_scale=0.4))
    assert d.is_cuda_graph_enabled


def test_wrappers_are_freed(workspace):
    w = plan_decode(decode_graph(workspace))
    w._cached_module, w._sm_scale  # noqa: B018
    gone = weakref.ref(w)
    del w
    gc.collect()
    assert gone() is None
