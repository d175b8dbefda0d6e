# SPDX-License-Identifier: Apache-2.0
"""flashinfer.testing: times of CPU calls, and counts of work (numbers worked out by hand from the formulas)."""
import random
import statistics
import time
import warnings

import numpy as np
import pytest
import torch

import flashinfer
from flashinfer.testing import utils as testing


def nap():
    time.sleep(2e-3)


@pytest.mark.parametrize("bench", [testing.bench_time, testing.bench_gpu_time, testing.bench_gpu_time_with_cuda_event])
def test_times_are_milliseconds(bench):
    start = time.perf_counter()
    times = bench(nap, dry_run_iters=1, repeat_iters=5)
    assert len(times) == 5
    assert 2.0 <= statistics.median(times) and sum(times) < (time.perf_counter() - start) * 1e3


def test_counts_come_from_the_time_when_not_given():
    calls = []
    times = testing.bench_time(lambda: (calls.append(1), nap()), dry_run_time_ms=4, repeat_time_ms=12, cold_cache=False)
    assert 1 <= len(times) <= 6
    assert len(times) < len(calls) <= len(times) + 6


def test_arguments_and_an_op_of_ours():
    x, w, out = torch.full((64, 512), 3.0), torch.full((512,), 0.5), torch.zeros(64, 512)
    times = testing.bench_gpu_time(flashinfer.rmsnorm, 1, 3, input_args=(x, w), input_kwargs={"out": out})
    assert len(times) == 3 and min(times) > 0
    torch.testing.assert_close(out, torch.full_like(out, 0.5))


def test_caches_are_emptied_before_each_call(monkeypatch):
    events, memset = [], testing.ctypes.memset
    monkeypatch.setattr(testing.ctypes, "memset", lambda to, value, n: (events.append(n), memset(to, value, n)))
    for cold in (True, False):
        events.clear()
        testing.bench_time(lambda: events.append("call"), 1, 2, cold_cache=cold)
        size = 2 * testing._cache_bytes()
        assert events == ["call"] + ([size, "call"] if cold else ["call"]) * (3 + 1 + 2)  # estimate, dry, measured
    assert 1 << 20 <= testing._cache_bytes() <= 1 << 32


def test_what_is_not_available_is_said_once():
    testing._warned.clear()
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        for _ in range(2):
            testing.bench_gpu_time(nap, 0, 1, enable_cupti=True, use_cuda_graph=True, l2_flush=True)
            testing.bench_gpu_time_with_cudagraph(nap, 0, 1)
            testing.bench_gpu_time_with_cupti(nap, 0, 1)
    assert [w.category for w in caught] == [DeprecationWarning, UserWarning, UserWarning]
    assert "CUPTI" in str(caught[1].message) and "graph" in str(caught[2].message)
    assert all(w.filename == __file__ for w in caught)


def test_bad_counts():
    with pytest.raises(ValueError, match="repeat_iters is 0"):
        testing.bench_time(nap, repeat_iters=0)


def test_sleep_and_seed(monkeypatch):
    slept = []
    with monkeypatch.context() as m:
        m.setattr(testing.time, "sleep", slept.append)
        for ms in (4, 1e9, float("inf")):
            testing.sleep_after_kernel_run(ms)
    assert slept == [pytest.approx(0.02), 1.0, 0.01]
    draws = []
    for _ in range(2):
        testing.set_seed(7)
        draws.append((random.random(), float(np.random.rand()), float(torch.rand(()))))
    assert draws[0] == draws[1]


def test_flops():
    # 2 requests, 3 queries, 10 keys, 8 heads, dims 64 and 128: 2*2*3*10*8*(64+128); causal: 2*3*(20-3)*8*(64+128)
    assert testing.attention_flops(2, 3, 10, 64, 128, 8, False) == 184320
    assert testing.attention_flops(2, 3, 10, 64, 128, 8, True) == 156672
    lengths = torch.tensor([3, 4]), torch.tensor([10, 20])
    assert testing.attention_flops_with_actual_seq_lens(*lengths, 64, 128, 8, False) == 337920
    assert testing.attention_flops_with_actual_seq_lens(*lengths, 64, 128, 8, True) == 299520
    assert testing.attention_tflops_per_sec(2, 3, 10, 64, 128, 8, True, 0.5) == pytest.approx(156672 / 0.5e-3 / 1e12)
    assert testing.attention_tflops_per_sec_with_actual_seq_lens(*lengths, 64, 128, 8, True, 0.5) == pytest.approx(299520 / 0.5e-3 / 1e12)
    with pytest.raises(ValueError, match="qo_seqlen is 4, but must not be above kv_seqlen 3"):
        testing.attention_flops(1, 4, 3, 64, 64, 1, True)


def test_bytes():
    # bf16: q 2*3*8*64*2, o 2*3*8*128*2, k 2*10*4*64*2, v 2*10*4*128*2
    assert testing.attention_tb_per_sec(2, 3, 10, 64, 128, 8, 4, 0.5) == pytest.approx((6144 + 12288 + 10240 + 20480) / 0.5e-3 / 1e12)
    mixed = testing.attention_tb_per_sec(2, 3, 10, 64, 128, 8, 4, 0.5, torch.float32, torch.float8_e4m3fn, np.float16, "bfloat16")
    assert mixed == pytest.approx((12288 + 12288 + 5120 + 20480) / 0.5e-3 / 1e12)
    actual = testing.attention_tb_per_sec_with_actual_seq_lens([3, 4], [10, 20], 64, 128, 8, 4, 0.5)
    assert actual == pytest.approx((7168 + 14336 + 15360 + 30720) / 0.5e-3 / 1e12)
    with pytest.raises(TypeError, match="complex"):
        testing.attention_tb_per_sec(1, 1, 1, 64, 64, 1, 1, 1.0, "complex")
