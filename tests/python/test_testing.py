# SPDX-License-Identifier: Apache-2.0
"""flashinfer.testing: times of CPU calls, and counts of work (numbers worked out by hand from the formulas)."""
import contextlib
import functools
import random
import statistics
import time
import types
import warnings

import numpy as np
import pytest
import torch

import flashinfer
from flashinfer.testing import _clock, _cuda, _cupti
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
    events, memset = [], _clock.ctypes.memset
    monkeypatch.setattr(_clock.ctypes, "memset", lambda to, value, n: (events.append(n), memset(to, value, n)))
    for cold in (True, False):
        for dry, estimates in ((1, 0), (None, 3)):  # both counts given: no estimate
            events.clear()
            testing.bench_time(lambda: events.append("call"), dry, 2, 0, cold_cache=cold)
            size = 2 * _clock.cache_bytes()
            assert events == ["call"] + ([size, "call"] if cold else ["call"]) * (estimates + 1 + 2)  # estimate, dry, measured
    assert 1 << 20 <= _clock.cache_bytes() <= 1 << 32


def test_names_of_the_guide():
    calls = []
    assert len(testing.bench_gpu_time(lambda x, y: calls.append((x, y)), args=(1, 2), num_iters=4, dry_run_iters=0)) == 4
    assert calls == [(1, 2)] * 5


def test_what_is_not_available_is_said_once():
    _clock._warned.clear()
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        for _ in range(2):
            testing.bench_gpu_time(nap, 0, 1, enable_cupti=True, use_cuda_graph=True, l2_flush=True)
            testing.bench_gpu_time_with_cudagraph(nap, 0, 1)
            testing.bench_gpu_time_with_cupti(nap, 0, 1)
    assert [w.category for w in caught] == [DeprecationWarning, UserWarning, UserWarning]
    assert "CUPTI" in str(caught[1].message) and "graph" in str(caught[2].message)
    assert all(w.filename == __file__ for w in caught)


class GpuTensor(torch.Tensor):
    """A tensor that says it is on a GPU."""
    is_cuda = property(lambda self: True)


class FakeGpu:
    """torch.cuda with an L2 cache of 1000 bytes. A call of the function under test takes 2 ms of GPU time, a flush 3."""

    def __init__(self, monkeypatch):
        self.now, self.log, self.calls, gpu = 0.0, [], [], self

        class Event:
            def __init__(self, enable_timing):
                pass

            def record(self):
                self.at = gpu.now

            def elapsed_time(self, end):
                return end.at - self.at

        class Graph:
            def replay(self):
                for call in gpu.calls:
                    call()

        @contextlib.contextmanager
        def capture(graph):
            before = gpu.now, len(gpu.log)
            yield
            gpu.captured = gpu.log[before[1]:]
            del gpu.log[before[1]:]
            gpu.now, gpu.calls = before[0], [functools.partial(gpu.run, what) for what in gpu.captured]

        stream = types.SimpleNamespace(wait_stream=lambda other: None)
        for name, value in {"is_available": lambda: True, "is_initialized": lambda: True, "Event": Event, "synchronize": lambda: None,
                            "current_device": lambda: 0, "get_device_properties": lambda d: types.SimpleNamespace(L2_cache_size=1000),
                            "CUDAGraph": Graph, "graph": capture, "Stream": lambda: stream, "current_stream": lambda: stream,
                            "stream": lambda s: contextlib.nullcontext()}.items():
            monkeypatch.setattr(torch.cuda, name, value)
        monkeypatch.setattr(_cuda, "Flush", lambda: functools.partial(gpu.run, "flush", 3))

    def run(self, what, ms=2):
        self.log.append(what)
        self.now += ms

    def call(self, x):
        self.run(x.data_ptr())


def test_events_measure_calls_and_not_flushes(monkeypatch):
    gpu = FakeGpu(monkeypatch)
    x = torch.zeros(4).as_subclass(GpuTensor)
    assert testing.bench_gpu_time(gpu.call, 1, 3, input_args=(x,)) == [2.0] * 3
    assert gpu.log == [x.data_ptr()] + ["flush", x.data_ptr()] * (5 + 1 + 3)
    # An estimate of 5 ms with the flush: 25 / 5 unmeasured and 100 / 5 measured calls.
    assert len(testing.bench_gpu_time(gpu.call, input_args=(x,))) == 20
    gpu.log.clear()
    testing.bench_gpu_time(gpu.call, 0, 1, input_args=(x,), cold_l2_cache=False)
    assert "flush" not in gpu.log
    assert testing.bench_gpu_time(gpu.call, 0, 1, input_args=(torch.zeros(4),))[0] < 2  # on the CPU: by the clock


def test_a_graph_rotates_copies(monkeypatch):
    gpu = FakeGpu(monkeypatch)
    x = torch.zeros(300, dtype=torch.uint8).as_subclass(GpuTensor)  # 17 copies are 5100 bytes: five times 1000
    assert testing.bench_gpu_time(gpu.call, 1, 3, use_cuda_graph=True, input_args=(x,)) == [2.0] * 3
    assert len(gpu.captured) == len(set(gpu.captured)) == 17 and gpu.captured[0] == x.data_ptr()
    big = torch.zeros(5000, dtype=torch.uint8).as_subclass(GpuTensor)
    testing.bench_gpu_time(gpu.call, 1, 3, use_cuda_graph=True, input_args=(big,), num_iters_within_graph=4)
    assert gpu.captured == [big.data_ptr()] * 4
    assert [testing.calculate_rotation_count([t]) for t in (x, big, x[:0], x[:1], x.new_zeros(4000))] == [17, 1, 1, 1024, 2]


def test_a_graph_says_when_the_cache_stays_warm(monkeypatch):
    gpu = FakeGpu(monkeypatch)
    _clock._warned.clear()
    tiny = torch.zeros(1, dtype=torch.uint8).as_subclass(GpuTensor)
    with pytest.warns(UserWarning, match="1024 copies still fit the L2 cache; calls are timed by events"):
        assert testing.bench_gpu_time(gpu.call, 1, 3, use_cuda_graph=True, input_args=(tiny,)) == [2.0] * 3
    assert gpu.log[-2:] == ["flush", tiny.data_ptr()]
    with pytest.warns(UserWarning, match="have no GPU tensor"):
        testing.bench_gpu_time(lambda: gpu.run("call"), 1, 3, use_cuda_graph=True)
    monkeypatch.setattr(_cupti, "module", lambda: (None, "cupti-python is 12.9, but must be 13 or newer"))
    with pytest.warns(UserWarning, match="12.9.*timed by CUDA events"):
        testing.bench_gpu_time(gpu.call, 1, 3, enable_cupti=True, input_args=(tiny,))


def test_activities_of_a_call():
    # Two windows of CPU time; kernels overlap, so that the span (30 us) is less than their sum.
    kernel = lambda name, start, end, c: _cupti.Activity((name,), start, end, c)
    launches = [(5, 1), (7, 2), (105, 3), (106, 4), (50, 9)]
    both = [kernel("a", 1000, 21000, 1), kernel("b", 11000, 31000, 2), kernel("a", 41000, 51000, 3), kernel("b", 61000, 71000, 4),
            kernel("flush", 0, 900000, 9)]
    assert _cupti.spans([(0, 10), (100, 110)], launches, both) == [0.03, 0.03]
    with pytest.raises(ValueError, match="Inconsistent kernel names"):
        _cupti.spans([(0, 10), (100, 110)], launches, both[:3])
    with pytest.raises(ValueError, match="No kernel activities recorded for iteration 1"):
        _cupti.spans([(0, 10), (200, 210)], launches, both)


def test_kernels_of_the_profiler():
    x = torch.zeros(64, 64)
    mean = testing.bench_kineto(lambda: x.mul_(2) @ x, "aten::mm", 3, flush_l2=False, suppress_kineto_output=True)
    assert 0 < mean < 1
    both = testing.bench_kineto(lambda: x.mul_(2) @ x, ("aten::mm", "aten::mul_"), 3, flush_l2=False)
    assert len(both) == 2 and min(both) > 0
    with pytest.raises(ValueError, match="0 kernels have 'nothing'"):
        testing.bench_kineto(lambda: x.mul_(2), "nothing", 1, flush_l2=False)


def test_the_candidate_of_a_block():
    x, w = torch.randn(4, 64).bfloat16(), torch.ones(64).bfloat16()
    chosen = flashinfer.rmsnorm(x, w)
    with testing.candidate("reference"):
        torch.testing.assert_close(flashinfer.rmsnorm(x, w), chosen)
        with testing.candidate("cuda"), pytest.raises(NotImplementedError, match="only 'cuda' is requested"):
            flashinfer.rmsnorm(x, w)
        with testing.candidate(""):
            assert torch.equal(flashinfer.rmsnorm(x, w), chosen)
    assert torch.equal(flashinfer.rmsnorm(x, w), chosen)


def test_bad_counts():
    with pytest.raises(ValueError, match="repeat_iters is 0"):
        testing.bench_time(nap, repeat_iters=0)


def test_sleep_and_seed(monkeypatch):
    slept = []
    with monkeypatch.context() as m:
        m.setattr(_clock.time, "sleep", slept.append)
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
