# SPDX-License-Identifier: Apache-2.0
"""Helpers without kernels against FlashInfer's own package: the script oracle/helpers.py prints what each call gives in both."""
import subprocess
import sys
import threading
import zlib

import pytest
import torch
from conftest import ROOT, environment

import flashinfer
from flashinfer import utils
from flashinfer.utils import BackendSupportedError, backend_requirement, experimental_backend, supported_compute_capability


def lines(who):
    done = subprocess.run([sys.executable, "-W", "ignore", str(ROOT / "tests/python/oracle/helpers.py")], env=environment(who), cwd="/",
                          capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return done.stdout.splitlines()


def test_every_call_gives_what_upstream_gives():
    ours, theirs = lines("ours"), lines("theirs")
    assert len(theirs) > 390
    assert [(a, b) for a, b in zip(ours, theirs) if a != b] == [] and len(ours) == len(theirs)


# ---- backend_requirement: upstream asks GPUs alone, so that the expectations are written out ----
@supported_compute_capability([80])
def check_a(x, backend="a"):
    return x.shape[0] > 5


@supported_compute_capability([75, 80])
def check_b(x, backend="a"):
    return x.shape[0] > 10


@backend_requirement({"a": check_a, "b": check_b}, common_check=lambda x, backend: x.dim() == 2)
def product(x, backend="a"):
    """Doc."""
    return backend


@backend_requirement({"a": check_a, "b": check_b}, heuristic_func=lambda found, x, backend: found[::-1])
def automatic(x, backend="auto"):
    return automatic.suitable_auto_backends


def test_a_call_is_checked():
    assert product(torch.zeros(6, 2)) == "a" and product(torch.zeros(11, 2), backend="b") == "b" and product.__doc__ == "Doc."
    assert product(torch.zeros(2), "b", skip_check=True) == "b"
    for x, backend in ((torch.zeros(6), "a"), (torch.zeros(5, 2), "a"), (torch.zeros(6, 2), "b")):
        with pytest.raises(ValueError, match="Problem size is not supported for product"):
            product(x, backend=backend)
    with pytest.raises(BackendSupportedError, match="product does not support backend 'c'$"):
        product(torch.zeros(6, 2), backend="c")


def test_automatic_choice_is_ordered_by_the_heuristic():
    assert automatic(torch.zeros(20, 2)) == ["b", "a"] and automatic(torch.zeros(8, 2)) == ["a"]
    with pytest.raises(BackendSupportedError, match="No suitable auto backends found for automatic"):
        automatic(torch.zeros(1, 2))


def test_capabilities_are_compared_on_gpus(monkeypatch):
    from flashinfer import _support

    monkeypatch.setattr(_support, "_capability", lambda arguments: 75)
    with pytest.raises(BackendSupportedError, match="product does not support backend 'a' with capability 75"):
        product(torch.zeros(6, 2))
    assert automatic(torch.zeros(20, 2)) == ["b"]

    @backend_requirement({}, common_check=supported_compute_capability([90])(lambda x: True))
    def single(x):
        return 1

    with pytest.raises(BackendSupportedError, match=r"single does not support compute capability 75; supported compute capabilities: \[90\]"):
        single(torch.zeros(1))


def test_without_back_ends_the_common_check_must_know_capabilities():
    def bare(x):
        return 1

    def check(x):
        return True

    with pytest.raises(ValueError, match="Invalid @backend_requirement decorator usage: no backend choices and no common_check for bare"):
        backend_requirement({})(bare)(3)
    single = backend_requirement({}, common_check=check)(bare)
    with pytest.raises(ValueError, match="call: check does not have is_compute_capability_supported decorator"):
        single(3)
    assert single(3, skip_check=True) == 1
    assert backend_requirement({}, common_check=supported_compute_capability([90])(check))(bare)(3) == 1


def test_experimental_back_ends_are_named_to_be_used(monkeypatch):
    @backend_requirement({"new": experimental_backend(lambda x, backend: True)}, heuristic_func=lambda found, x, backend: found)
    def fresh(x, backend="auto"):
        return backend

    monkeypatch.delenv("FLASHINFER_ALLOW_EXPERIMENTAL_AUTO_BACKENDS", raising=False)
    with pytest.raises(BackendSupportedError, match="FLASHINFER_ALLOW_EXPERIMENTAL_AUTO_BACKENDS=1"):
        fresh(torch.zeros(1))
    assert fresh.experimental_backends == {"new"} and fresh.dropped_experimental_backends == ["new"]
    with pytest.warns(UserWarning, match="fresh: the back end 'new'"):
        assert fresh(torch.zeros(1), backend="new") == "new"
    monkeypatch.setenv("FLASHINFER_ALLOW_EXPERIMENTAL_AUTO_BACKENDS", "1")
    assert fresh(torch.zeros(1)) == "auto"


def test_two_threads_do_not_see_each_others_choice():
    barrier, seen = threading.Barrier(2), {}

    @backend_requirement({"a": check_a, "b": check_b}, heuristic_func=lambda found, x, backend: found)
    def waits(x, backend="auto"):
        barrier.wait()
        seen[x.shape[0]] = waits.suitable_auto_backends

    threads = [threading.Thread(target=waits, args=(torch.zeros(n, 2),)) for n in (8, 20)]
    [t.start() for t in threads]
    [t.join() for t in threads]
    assert seen == {8: ["a"], 20: ["a", "b"]}


# ---- devices and levels ----
def test_questions_about_the_cpu_have_answers():
    cpu = torch.device("cpu")
    assert utils.determine_gemm_backend(cpu) == "cpu" and utils.get_device_index(cpu) == 0
    assert utils.get_device_index(torch.device("cuda:1")) == 1 and not utils.is_cvt_rs_supported(cpu)
    for question in (utils.get_device_name, utils.get_device_sm_count, utils.get_device_properties, utils.get_default_generators):
        with pytest.raises(ValueError, match="must be a cuda device"):
            question(cpu)


def test_set_log_level():
    import logging

    before = logging.getLogger("flashinfer").level
    try:
        utils.set_log_level("WARN")
        assert logging.getLogger("flashinfer").level == logging.WARNING
        with pytest.raises(ValueError, match="level is 'loud', but must be one of trace, debug, info"):
            utils.set_log_level("loud")
    finally:
        logging.getLogger("flashinfer").setLevel(before)


# ---- top-k for clusters, reorderings against the ops ----
def test_cluster_forms_are_top_k():
    x = torch.randn(3, 50)
    indices, values = flashinfer.topk.topk_clusters_exact(x, 4, output_values=True, out_dtype=torch.int64)
    assert indices.dtype == torch.int64 and torch.equal(x.gather(1, indices), values)
    assert torch.equal(values.sort(descending=True).values, x.topk(4).values)
    assert flashinfer.topk.topk_clusters_exact(x, 4)[1] is None


def test_row_indices_are_those_of_the_ops():
    w = torch.randint(0, 255, (128, 32), dtype=torch.uint8)
    assert torch.equal(w[utils.get_shuffle_matrix_a_row_indices(w, 128)], flashinfer.shuffle_matrix_a(w, 128))
    assert torch.equal(w[flashinfer.fused_moe.core.get_reorder_rows_for_gated_act_gemm_row_indices(w)],
                       flashinfer.reorder_rows_for_gated_act_gemm(w))


def test_weights_interleaved_for_sm90():
    """The checksums are those of FlashInfer's three kernels, compiled for a CPU."""
    interleave = flashinfer.fused_moe.interleave_moe_weights_for_sm90_mixed_gemm
    given = (torch.arange(32 * 64) ** 2 // 7 % 256).to(torch.uint8).view(1, 32, 64)
    assert [zlib.crc32(interleave(given, kind).numpy().tobytes()) for kind in ("fp4", "int4", "fp4_fp8")] == [2438750310, 1536823774, 2305973518]
    for bad, kind, text in ((given[0], "fp4", "must be 3D"), (given.int(), "fp4", "must be uint8"), (given, "fp8", "quant_type"), (given[:, :24], "int4", "multiple of 16"),
                            (given[..., :48], "fp4", "multiple of 16 and k/2 of 32")):
        with pytest.raises(ValueError, match=text):
            interleave(bad, kind)


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
@pytest.mark.parametrize("kind", ["fp4", "int4"])
def test_interleaved_experts_give_the_bits_of_plain_ones(kind, dtype):
    e, k, inter = 3, 256, 128
    codes = [torch.randint(0, 256, (e, *shape), dtype=torch.uint8) for shape in ((2 * inter, k // 2), (k, inter // 2))]
    group = 32 if kind == "fp4" else 128
    scales = [torch.randint(118, 123, (e, c.shape[1], c.shape[2] * 2 // group), dtype=torch.uint8) if kind == "fp4" else torch.rand(e, c.shape[1], c.shape[2] * 2 // group).bfloat16()
              for c in codes]
    x, ids, weights = torch.randn(5, k).to(dtype), torch.tensor([[0, 2], [2, 0], [0, 0], [2, 2], [0, 2]]).int(), torch.rand(5, 2)
    rest = [] if kind == "fp4" else [(torch.rand(1, k) + 0.5).bfloat16(), (torch.rand(1, inter) + 0.5).bfloat16(), *[torch.empty(0, dtype=dtype)] * 2, torch.rand(e), torch.rand(e)]

    def run(codes, scales, rest, **more):
        return flashinfer.fused_moe.cutlass_fused_moe(x, ids, weights, *codes, dtype, quant_scales=[*scales, *rest], use_w4_group_scaling=True, **more)[0]

    sm90 = [flashinfer.fused_moe.interleave_moe_weights_for_sm90_mixed_gemm(c, kind) for c in codes]
    if kind == "fp4":  # as engines pass them
        folded = [flashinfer.fused_moe.interleave_moe_scales_for_sm90_mixed_gemm(s).view(torch.int32) for s in scales]
    else:  # bfloat16 bits in tensors of the activations' type
        folded = [flashinfer.fused_moe.interleave_moe_scales_for_sm90_mixed_gemm(s.view(dtype), 128) for s in scales]
    packed = {} if kind == "fp4" else {"use_packed_weights": True}
    assert torch.equal(run(sm90, folded, [*(r.view(dtype) if r.dtype == torch.bfloat16 else r for r in rest)], **packed), run(codes, scales, rest))
    with pytest.raises(ValueError, match="both are interleaved for SM90, or none"):
        run(sm90, [folded[0], scales[1]], rest)
    with pytest.raises(ValueError, match="both are interleaved for SM90, or none" if kind == "fp4" else "group scales of gemm2"):
        run(codes, [scales[0], folded[1]], rest)
    with pytest.raises(ValueError, match="as interleave_moe_scales_for_sm90_mixed_gemm returns"):
        run(sm90, [folded[1], folded[1]], rest)
    if kind == "fp4":
        with pytest.raises(ValueError, match="use_packed_weights is True, but weights are not 4-bit integers"):
            run(codes, scales, rest, use_packed_weights=True)
