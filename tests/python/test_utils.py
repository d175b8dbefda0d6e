# SPDX-License-Identifier: Apache-2.0
import concurrent.futures
import types

import pytest
import torch

import flashinfer
from flashinfer import utils


def test_questions_about_devices_have_answers_without_a_gpu():
    with pytest.raises(ValueError, match="must be a cuda device, but is cpu"):
        utils.get_compute_capability(torch.device("cpu"))
    names = [n for n in dir(utils) if n.startswith("is_sm")]
    assert {"is_sm90a_supported", "is_sm100a_supported", "is_sm120a_supported", "is_sm121a_supported"} <= set(names)
    for name in names:
        assert getattr(utils, name)(torch.device("cpu")) is False


@pytest.mark.skipif(torch.cuda.is_available(), reason="this machine has a GPU")
def test_questions_about_a_gpu_that_is_not_there():
    for name in [n for n in dir(utils) if n.startswith("is_sm")]:
        assert getattr(utils, name)(torch.device("cuda")) is False
    with pytest.raises(ValueError, match="sees no GPU"):
        utils.get_compute_capability("cuda:0")


def test_the_rate_of_a_gpus_memory(monkeypatch):
    with pytest.raises(ValueError, match="Device must be a CUDA device, got cpu"):
        utils.get_gpu_memory_bandwidth(torch.device("cpu"))
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    monkeypatch.setattr(torch.cuda, "get_device_capability", lambda device=None: (9, 0))
    h200 = types.SimpleNamespace(memory_clock_rate=3201000, memory_bus_width=6144)  # kHz, bits
    monkeypatch.setattr(torch.cuda, "get_device_properties", lambda device: h200)
    assert utils.get_gpu_memory_bandwidth(torch.device("cuda:0")) == pytest.approx(4916.7, abs=0.1)
    del h200.memory_bus_width
    with pytest.raises(NotImplementedError, match="memory_bus_width"):
        utils.get_gpu_memory_bandwidth(torch.device("cuda:0"))


def test_answers_that_do_not_change_are_cached_as_in_flashinfer():
    utils.is_confidential_compute.cache_clear()
    assert utils.is_confidential_compute() is False and utils.get_globaltimer_kernel() is None


def test_sizes_and_flags_of_fused_moe():
    from flashinfer.fused_moe import utils as moe

    # What FlashInfer 0.7.2 answers.
    assert [moe.nearest_in_buckets(x, (4, 8, 16)) for x in (0, 3, 5, 8, 9, 17)] == [4, 4, 8, 8, 16, 16]
    assert moe.compute_swizzled_sf_shape(5, 6) == (128, 8) and moe.fp4_scale_infer_shape([(4, 16)]) == 1024
    assert moe.get_fp4_shape((2, 3, 40), 16) == ([2, 3, 20], 512) and moe.get_fp4_shape((2, 3, 40), 16, False) == ([2, 3, 20], 12)
    assert [e.value for e in moe.AuxStreamType] == [1, 2, 3] and [e.name for e in moe.EventType][:2] == ["Main", "Attention"] and moe.EventType.Main.value == 0
    assert moe.is_torch_compiling() is False and moe.get_piecewise_cuda_graph_flag() is True and moe.get_model_extra_attrs() is None
    moe.set_torch_compiling(True), moe.set_piecewise_cuda_graph_flag(False)
    with moe.model_extra_attrs({"outer": 1}), concurrent.futures.ThreadPoolExecutor(1) as other:  # flags are the process's, attributes the thread's
        ask = lambda: (moe.is_torch_compiling(), moe.get_piecewise_cuda_graph_flag(), moe.get_model_extra_attrs())  # noqa: E731
        assert other.submit(ask).result() == (True, False, None) and ask() == (True, False, {"outer": 1})
    moe.set_torch_compiling(False), moe.set_piecewise_cuda_graph_flag(True)

    class Model:
        @moe.with_model_extra_attrs(lambda self: {"of": self})
        def forward(self):
            with moe.model_extra_attrs({"inner": 1}):
                assert moe.get_model_extra_attrs() == {"inner": 1}
            return moe.get_model_extra_attrs()["of"]

    model = Model()
    assert model.forward() is model and moe.get_model_extra_attrs() is None
    assert moe.Fp4QuantizedTensor(torch.zeros(2, 8), None).shape == (2, 8)
    with pytest.raises(NotImplementedError, match="block_scale_interleave"):
        moe.swizzle_sf(None, 1, 1)


def test_attention_backend():
    args = 0, False, False, torch.float16, torch.float16
    backend = utils.determine_attention_backend(torch.device("cpu"), *args)
    assert backend == "cpu"
    flashinfer.BatchPrefillWithPagedKVCacheWrapper(torch.empty(0, dtype=torch.uint8), backend=backend)  # is legal
    assert utils.is_fa3_backend_supported(*args) and not utils.is_fa3_backend_supported(0, True, False, *args[3:])
    assert utils.is_fa3_prefill_head_dim_supported(192, 128) and not utils.is_fa3_prefill_head_dim_supported(80, 80)


def test_numbers():
    assert [utils.next_positive_power_of_2(x) for x in (-1, 0, 1, 3, 8)] == [1, 1, 1, 4, 8]
    assert [utils.last_positive_power_of_2(x) for x in (0, 1, 3, 8)] == [0, 1, 2, 8]
    assert utils.ceil_div(7, 2) == 4 and utils.round_up(7, 4) == 8
    assert utils.version_at_least("2.10.1", "2.9") and not utils.version_at_least("2.9.0+cpu", "2.10")


def test_tensors():
    assert utils.get_indptr(torch.tensor([3, 0, 4], dtype=torch.int32)).tolist() == [0, 3, 3, 7]
    assert utils.canonicalize_torch_dtype("float16") is torch.float16
    with pytest.raises(TypeError):
        utils.canonicalize_torch_dtype(3)
    slopes = utils.get_alibi_slopes(12)
    torch.testing.assert_close(slopes[:8], 2.0 ** -torch.arange(1.0, 9.0))
    torch.testing.assert_close(slopes[8:], 2.0 ** (-torch.tensor([1.0, 3, 5, 7]) / 2))
    x = torch.zeros(2, 3)
    utils.check_shape_dtype_device(x, (2, 3), torch.float32, torch.device("cpu"), "x")
    for bad in (((2, 4), None, None), (None, torch.float16, None), (None, None, torch.device("cuda:0"))):
        with pytest.raises(ValueError, match="of x: expected"):
            utils.check_shape_dtype_device(x, *bad, "x")


def test_what_the_gated_norm_supports():
    assert flashinfer.supports_rmsnorm_sigmoid_gate(torch.bfloat16, 64) and flashinfer.supports_rmsnorm_sigmoid_gate("float32", 111, "cpu")
    assert not flashinfer.supports_rmsnorm_sigmoid_gate(torch.float64, 64) and not flashinfer.supports_rmsnorm_sigmoid_gate(torch.float16, 0)
    assert not flashinfer.supports_rmsnorm_sigmoid_gate(torch.bfloat16, 64, "cuda:0")
    x, gate = torch.tensor([[3.0, 4.0]]), torch.zeros(1, 2)
    assert flashinfer.rmsnorm_sigmoid_gate(x, gate, eps=0.0) is None
    torch.testing.assert_close(x, torch.tensor([[3.0, 4.0]]) / 12.5 ** 0.5 / 2)


def test_what_the_residual_norms_support():
    branch, residual, weight = torch.randn(3, 65).bfloat16(), torch.randn(3, 65), torch.randn(65).bfloat16()
    alpha, beta = torch.randn(65), torch.randn(65)
    plain, following = flashinfer.supports_gated_residual_rmsnorm, flashinfer.supports_gated_residual_next_rmsnorm
    assert plain(branch, residual, weight, alpha, beta) and plain(branch, residual, None, alpha, beta)
    assert following(branch, residual, weight, 0.5, beta) and following(branch, residual, weight, alpha, beta, post_weight=weight)
    flashinfer.gated_residual_next_rmsnorm(branch, residual, weight, alpha, beta)
    for bad in ((branch, residual.double(), weight, alpha, beta), (branch, residual[:2], weight, alpha, beta),
                (branch, residual, weight.float(), alpha, beta), (branch, residual, weight, alpha[:64], beta),
                (branch, residual, weight, alpha, beta.half())):
        assert not plain(*bad) and not following(*bad)
        with pytest.raises((TypeError, ValueError)):
            flashinfer.gated_residual_rmsnorm(*bad)
    assert not following(branch, residual, weight, alpha, beta, post_weight=weight[:3]) and not following(branch, residual, None, alpha, beta)


@pytest.mark.parametrize("method, n_group, topk_group, text", [
    (2, 3, 1, "n_group is 3, but must divide 16 experts"), (2, 4, 5, r"topk_group is 5, but must be in \[1, 4\]"),
    (2, 4, 0, r"topk_group is 0, but must be in \[1, 4\]"), (2, 4, -1, "n_group is 4 and topk_group -1"), (2, -4, 0, "n_group is -4 and topk_group 0"),
    (2, 0, 2, r"topk_group is 2, but must be in \[1, 1\]"), (2, 8, 1, "top_k is 3, but 1 groups have 2 experts"),
    (1, 4, 2, "n_group is 4 and topk_group 2, but only DeepSeekV3 has groups")])
def test_routing_names_groups_that_do_not_fit(method, n_group, topk_group, text):
    with pytest.raises(ValueError, match=text):
        flashinfer.fused_moe.trtllm_gen_routing(torch.randn(5, 16), None, method, 3, n_group=n_group, topk_group=topk_group)


def test_many_results_have_names():
    logits = torch.randn(5, 16)
    r = flashinfer.fused_moe.trtllm_gen_routing(logits, None, 1, 3, tile_tokens_dim=4)
    assert type(r).__name__ == "TrtllmGenRoutingResult" and len(r) == 8
    assert r.topk_ids.tolist() == logits.topk(3).indices.tolist() and r.topk_weights.dtype is torch.bfloat16
    assert r.expanded_idx_to_permuted_idx.shape == (5, 3)
    places = r.expanded_idx_to_permuted_idx.long().flatten()
    assert (r.permuted_idx_to_token_idx[places] == torch.arange(5, dtype=torch.int32).repeat_interleave(3)).all()
    assert (r.cta_idx_xy_to_batch_idx[places // 4] == r.topk_ids.flatten()).all()
    tiles = int(r.num_non_exiting_ctas)
    assert int(r.total_num_padded_tokens) == 4 * tiles and (r.cta_idx_xy_to_batch_idx[tiles:] == -1).all()
    assert sum((r.cta_idx_xy_to_mn_limit[:tiles] - 4 * torch.arange(tiles, dtype=torch.int32)).tolist()) == 15
    compiled = torch.compile(lambda x: flashinfer.trtllm_gen_routing(x, None, 1, 3, tile_tokens_dim=4).topk_ids, fullgraph=True, backend="eager")
    assert (compiled(logits) == r.topk_ids).all()
