# SPDX-License-Identifier: Apache-2.0
"""trace_apply: functions and solutions in place of calls."""
import json

import pytest
import torch

import flashinfer
from flashinfer import trace, trace_apply


@pytest.fixture
def applied():
    yield
    trace_apply.disable_apply()


def test_trace_apply(applied):
    x, w, seen = torch.randn(2, 48), torch.ones(48), []

    def mine(hidden_states, weight):
        seen.append((hidden_states, weight))
        return flashinfer.rmsnorm(hidden_states, weight) + 1  # the library, not this function again

    plain = flashinfer.rmsnorm(x, w)
    assert trace_apply.enable_apply({"rmsnorm_h48": mine, "fused_add_rmsnorm_h48": lambda hidden_states, residual, weight: (residual, weight[0] + 0 * residual)}) >= 2
    torch.testing.assert_close(flashinfer.rmsnorm(x, weight=w), plain + 1)
    assert len(seen) == 1 and seen[0][1] is w
    out = torch.empty_like(x)
    assert flashinfer.rmsnorm(x, w, out=out) is out
    torch.testing.assert_close(out, plain + 1)
    flashinfer.rmsnorm(torch.ones(2, 64), torch.ones(64))
    residual = torch.full((2, 48), 3.0)
    y = x.clone()
    assert flashinfer.fused_add_rmsnorm(y, residual, w) is None
    assert (y == 3).all() and (residual == 1).all()  # in place, in the order of the definition's outputs
    assert trace_apply.stats() == {"flashinfer.norm.rmsnorm": {"hit": 2, "fallback_no_candidate": 1}, "flashinfer.norm.fused_add_rmsnorm": {"hit": 1}}

    def in_place(hidden_states, residual, weight):
        residual.zero_()

    trace_apply.enable_apply({"fused_add_rmsnorm_h48": in_place})
    assert flashinfer.fused_add_rmsnorm(y, residual, w) is None and (residual == 0).all()
    trace_apply.enable_apply({"rmsnorm_h48": lambda **inputs: 1 / 0})
    with pytest.raises(ZeroDivisionError):
        flashinfer.rmsnorm(x, w)
    assert trace_apply.stats_snapshot() == {"flashinfer.norm.rmsnorm": {"error": 1}}
    assert trace_apply.enable_apply({}) == 0 and not trace_apply.is_enabled()
    trace_apply.disable_apply()
    assert not trace_apply.is_enabled() and trace_apply.stats() == {}
    torch.testing.assert_close(flashinfer.rmsnorm(x, w), plain)


def test_a_function_of_the_program_in_place_of_the_library_s(applied, monkeypatch):
    def mine(input, weight, *args, **kwargs):
        return input - 1

    monkeypatch.setattr(flashinfer.norm, "rmsnorm", mine)
    trace_apply.enable_apply({"rmsnorm_h16": lambda hidden_states, weight: hidden_states * 3})
    assert flashinfer.norm.rmsnorm(torch.ones(4, 16), torch.ones(16)).eq(3).all()
    assert flashinfer.norm.rmsnorm(torch.ones(4, 8), torch.ones(8)).eq(0).all()
    assert trace_apply.stats() == {"flashinfer.norm.rmsnorm": {"hit": 1, "fallback_no_candidate": 1}}
    trace_apply.enable_apply({"rmsnorm_h8": lambda hidden_states, weight: hidden_states * 5})
    assert flashinfer.norm.rmsnorm(torch.ones(4, 16), torch.ones(16)).eq(0).all() and flashinfer.norm.rmsnorm(torch.ones(4, 8), torch.ones(8)).eq(5).all()
    trace_apply.disable_apply()
    assert flashinfer.norm.rmsnorm is mine


def test_a_wrapper(applied):
    """Inputs of plan(); a solution returns the log-sum-exp always, a call that does not ask for it gets the output alone."""
    q, cache = torch.randn(2, 4, 64), torch.randn(3, 2, 16, 2, 64)
    wrapper, seen = flashinfer.BatchDecodeWithPagedKVCacheWrapper(torch.empty(1 << 20, dtype=torch.uint8)), {}

    def mine(q, k_cache, v_cache, kv_indptr, kv_indices, sm_scale, return_lse=False):
        seen.update(k=k_cache, indptr=kv_indptr, indices=kv_indices, scale=sm_scale)
        return q + 1, torch.zeros(q.shape[:2])

    trace_apply.enable_apply({"gqa_paged_decode_h4_kv2_d64_ps16": mine})
    indptr, indices = torch.tensor([0, 2, 3], dtype=torch.int32), torch.arange(3, dtype=torch.int32)
    wrapper.plan(indptr, indices, torch.tensor([3, 5], dtype=torch.int32), 4, 2, 64, 16, q_data_type=torch.float32, sm_scale=0.5)
    assert torch.equal(wrapper.run(q, cache), q + 1)
    assert torch.equal(seen["k"], cache[:, 0]) and seen["indptr"] is indptr and seen["indices"] is indices and seen["scale"] == 0.5
    out, lse = wrapper.run(q, cache, return_lse=True)
    assert torch.equal(out, q + 1) and lse.shape == (2, 4)
    assert trace_apply.stats()["flashinfer.decode.BatchDecodeWithPagedKVCacheWrapper.run"] == {"hit": 2}


@pytest.mark.parametrize("solution, message", [
    (lambda **inputs: None, "returned nothing for output"),
    (lambda hidden_states, weight: hidden_states[:1], r"of shape \[1, 48\], but it is \[batch_size, hidden_size\] with batch_size = 2, hidden_size = 48"),
    (lambda hidden_states, weight: hidden_states[0], r"of shape \[48\]")])
def test_a_result_of_another_shape(applied, solution, message):
    """Also where it could be broadcast to the caller's output."""
    x, w = torch.randn(2, 48), torch.ones(48)
    trace_apply.enable_apply({"rmsnorm_h48": solution})
    for more in ({}, {"out": torch.empty_like(x)}):
        with pytest.raises(ValueError, match=message):
            flashinfer.rmsnorm(x, w, **more)
    x = torch.randn(2, 3, 48)  # one dimension more than the definition has
    trace_apply.enable_apply({"rmsnorm_h48": lambda hidden_states, weight: hidden_states[:1] + 0})
    with pytest.raises(ValueError, match="returned output of shape"):
        flashinfer.rmsnorm(x, w, out=torch.empty_like(x))
    with pytest.raises(TypeError, match="rmsnorm.fi_trace: save_dir is a tensor, but"):
        flashinfer.rmsnorm.fi_trace(x, w)


def test_solution(applied, cache):
    source = trace.SourceFile("main.py", "def run(hidden_states, weight):\n    return hidden_states * 2\n")
    spec = {"language": "python", "target_hardware": ["cpu"], "entry_point": "main.py::run", "dtypes": ["float32"]}
    solution = trace.Solution("double", "rmsnorm_h32", "me", trace.BuildSpec.from_dict(spec), [source])
    assert trace.Solution.from_dict(json.loads(json.dumps(solution.to_dict()))) == solution and len(solution.hash) == 64
    trace_apply.enable_apply({solution.definition: solution})
    x = torch.randn(2, 32)
    assert torch.equal(flashinfer.rmsnorm(x, torch.ones(32)), x * 2)
    half = flashinfer.rmsnorm(x.half(), torch.ones(32).half())
    assert not torch.equal(half, x.half() * 2)  # not one of its element types
    with pytest.raises(ValueError, match="relative"):
        trace.SourceFile("../main.py", "")
    with pytest.raises(ValueError, match="target_hardware"):
        trace.BuildSpec("python", [], "main.py::run")
    with pytest.raises(ValueError, match="file::symbol"):
        trace.BuildSpec("python", ["cpu"], "main.py")
    with pytest.raises(ValueError, match="not among"):
        trace.Solution("a", "b", "c", trace.BuildSpec("python", ["cpu"], "other.py::run"), [source])
