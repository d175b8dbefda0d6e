# SPDX-License-Identifier: Apache-2.0
"""What the log and the recorder see of a call from Python: how arguments were passed, and what only torch knows of a tensor."""
import inspect
import re

import pytest
import torch

import flashinfer
from flashinfer import _native


@pytest.fixture
def log(tmp_path):
    """Calls are logged at a level; gives what was written since."""
    path = tmp_path / "log.txt"

    def start(level):
        _native.function("record_set")(f"dest={path}")
        _native.function("record_start")(level, str(tmp_path / "dumps"))
        begin = path.stat().st_size if path.exists() else 0
        return lambda: path.read_text()[begin:]

    yield start
    _native.function("record_stop")()
    _native.function("record_set")("dest=stdout")


def arguments(text, call):
    """The lines of one call's record."""
    return text[text.index(f"API Call: {call}\n"):].split("=" * 80)[0]


@pytest.fixture
def xw():
    torch.manual_seed(0)
    return torch.randn(1, 64), torch.randn(64)


def test_the_callers_split_is_kept(xw, log):
    x, w = xw
    flashinfer.rmsnorm(x, w)
    written = log(3)
    flashinfer.rmsnorm(x, w, 1e-6)  # the default's value, but passed
    first = arguments(written(), "rmsnorm")
    assert re.search(r"arg\[2\]:\n\s+1e-06", first) and "Keyword" not in first
    flashinfer.rmsnorm(x, weight=w, out=torch.empty_like(x))
    second = arguments(written()[len(first):], "rmsnorm")
    assert "arg[0]" in second and "arg[1]" not in second
    assert re.search(r"Keyword input arguments:\n\s+weight=(.|\n)*\n\s+out=", second)
    assert re.search(r"eps= \[DEFAULT\]\n\s+1e-06", second)


def test_what_only_torch_knows(xw, log):
    x, w = xw
    written = log(3)
    strange = torch.as_strided(torch.randn(64), (1, 64), (777, 1))
    flashinfer.rmsnorm(strange, torch.nn.Parameter(w))
    record = arguments(written(), "rmsnorm")
    assert "stride=(777, 1)" in record
    assert "requires_grad=False" in record.split("arg[1]")[0] and "requires_grad=True" in record.split("arg[1]")[1]


def test_results_are_the_same_while_observed(xw, log):
    x, w = xw
    numpy_x, numpy_w = x.numpy(), w.numpy()
    q, k = torch.randn(4, 64), torch.randn(7, 2, 64)
    before = flashinfer.rmsnorm(x, w), flashinfer.single_decode_with_kv_cache(q, k, k, return_lse=True)
    log(3)
    out = torch.empty_like(x)
    assert flashinfer.rmsnorm(x, w, out=out) is out and torch.equal(out, before[0])
    assert type(flashinfer.rmsnorm(numpy_x, numpy_w)) is type(numpy_x)
    after = flashinfer.single_decode_with_kv_cache(q, k, k, return_lse=True)
    assert isinstance(after, tuple) and all(torch.equal(a, b) for a, b in zip(after, before[1]))
    residual = torch.zeros_like(x)
    assert flashinfer.fused_add_rmsnorm(x.clone(), residual, w) is None and torch.equal(residual, x)


def test_functions_stay_who_they_are(xw, log):
    x, w = xw
    f, signature, doc = flashinfer.rmsnorm, inspect.signature(flashinfer.rmsnorm), flashinfer.rmsnorm.__doc__
    flashinfer.rmsnorm(x, w)
    written = log(3)
    assert flashinfer.rmsnorm is f and inspect.signature(f) == signature and f.__doc__ == doc
    f(x, w)  # a reference from before the log was turned on
    assert "API Call: rmsnorm" in written()
    _native.function("record_stop")()
    length = len(written())
    f(x, w)
    assert len(written()) == length and inspect.signature(f) == signature


def test_errors_are_the_same_while_observed(xw, log):
    x, w = xw
    log(3)
    with pytest.raises(TypeError, match="rmsnorm\\(\\) missing required arguments: 'weight'"):
        flashinfer.rmsnorm(x)
    with pytest.raises(TypeError, match="unexpected keyword argument 'colour'"):
        flashinfer.rmsnorm(x, w, colour=1)
    with pytest.raises(ValueError, match=r"weight.shape\[0\] is 3"):
        flashinfer.rmsnorm(x, w[:3])
    with pytest.raises(ValueError, match="rmsnorm: input is on the device meta"):
        flashinfer.rmsnorm(x.to("meta"), w)


def test_level_one_logs_names(xw, log):
    x, w = xw
    written = log(1)
    flashinfer.rmsnorm(x, w)
    assert written().count("FlashInfer API Call: rmsnorm") == 1 and "arg[0]" not in written()


def test_objects_and_their_methods(log):
    written = log(3)
    w = flashinfer.BatchDecodeWithPagedKVCacheWrapper(torch.empty(0, dtype=torch.uint8), kv_layout="NHD")
    index = [torch.tensor(v, dtype=torch.int32) for v in ([0, 2], [2, 0], [3])]
    w.plan(*index, 4, 2, 64, 4, q_data_type=torch.float32)
    q, pool = torch.randn(1, 4, 64), torch.randn(3, 2, 4, 2, 64)
    assert len(w.run_return_lse(q, pool)) == 2
    text = written()
    for method in ("__init__", "plan", "run"):
        assert f"API Call: BatchDecodeWithPagedKVCacheWrapper.{method}" in text
    assert re.search(r"q_data_type=\n\s+torch.float32", arguments(text, "BatchDecodeWithPagedKVCacheWrapper.plan"))
    assert re.search(r"return_lse=\n\s+True", arguments(text, "BatchDecodeWithPagedKVCacheWrapper.run"))


def test_enum_members(log):
    written = log(3)
    x = torch.randn(2, 16)
    values, indices = flashinfer.top_k(x, 3, tie_break=flashinfer.TopKTieBreak.LARGE)
    assert "TopKTieBreak.LARGE" in arguments(written(), "top_k")
    assert values.shape == indices.shape == (2, 3)
