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
    trace_apply.enable_apply({"rmsnorm_h48": lambda **inputs: 1 / 0})
    with pytest.raises(ZeroDivisionError):
        flashinfer.rmsnorm(x, w)
    assert trace_apply.stats_snapshot() == {"flashinfer.norm.rmsnorm": {"error": 1}}
    trace_apply.disable_apply()
    assert not trace_apply.is_enabled() and trace_apply.stats() == {}
    torch.testing.assert_close(flashinfer.rmsnorm(x, w), plain)


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
