# SPDX-License-Identifier: Apache-2.0
"""Functions made from the registry: signatures, results, kinds of arrays, docstrings."""
import inspect
import os
import pathlib
import subprocess
import sys

import numpy as np
import pytest
import torch

import flashinfer


def rms(x, w, eps=1e-6):
    x = x.double()
    return x / torch.sqrt((x * x).mean(-1, keepdim=True) + eps) * w.double()


@pytest.fixture
def xw():
    torch.manual_seed(0)
    return torch.randn(5, 64), torch.randn(64)


def test_signature_is_the_registrys():
    parameters = inspect.signature(flashinfer.rmsnorm).parameters
    assert list(parameters) == ["input", "weight", "eps", "out", "enable_pdl"]
    assert parameters["eps"].default == 1e-6 and parameters["out"].default is None
    assert parameters["weight"].default is inspect.Parameter.empty
    for name, value in vars(flashinfer).items():
        if inspect.isfunction(value) and not name.startswith("_"):
            assert inspect.signature(value) is not None


def test_skip_check_is_accepted_and_not_shown():
    a, b = torch.randn(3, 32).bfloat16(), torch.randn(32, 16).bfloat16()
    product = flashinfer.mm_bf16(a, b)
    assert torch.equal(flashinfer.mm_bf16(a, b, skip_check=True), product) and "skip_check" not in inspect.signature(flashinfer.mm_bf16).parameters
    package = sys.modules["flashinfer._make"].package
    package.set_apply(lambda op, args, kwargs: (False, None))  # the other code of functions
    try:
        assert torch.equal(flashinfer.mm_bf16(a, b, skip_check=False), product)
    finally:
        package.set_apply(None)
    with pytest.raises(TypeError, match="skip_check"):
        flashinfer.rmsnorm(a, torch.ones(32).bfloat16(), skip_check=True)


def test_modules_are_those_that_ops_name():
    import flashinfer.norm
    from flashinfer.norm import rmsnorm

    assert rmsnorm is flashinfer.rmsnorm is flashinfer.norm.rmsnorm
    assert rmsnorm.__module__ == "flashinfer.norm" and rmsnorm.__name__ == rmsnorm.__qualname__ == "rmsnorm"
    assert flashinfer.decode.BatchDecodeWithPagedKVCacheWrapper is flashinfer.BatchDecodeWithPagedKVCacheWrapper


def test_modules_are_there_without_an_import_of_their_own():
    program = """
import sys
import flashinfer
assert "flashinfer.testing" not in sys.modules
assert callable(flashinfer.testing.bench_time) and callable(flashinfer.logits_processor.LogitsPipe)
assert not hasattr(flashinfer, "nonsense") and not hasattr(flashinfer, "__main__")
"""
    subprocess.run([sys.executable, "-c", program], check=True, env={**os.environ, "PYTHONPATH": str(pathlib.Path(__file__).resolve().parents[2] / "python")})


def test_other_names_are_the_same_functions():
    assert flashinfer.block_scale_interleave.__name__ == "nvfp4_block_scale_interleave"
    assert flashinfer.gemm.group_gemm_mxfp8_mxfp4_nt_groupwise is flashinfer.group_gemm_mxfp4_nt_groupwise
    assert flashinfer.nvfp4_block_scale_interleave is flashinfer.quantization.block_scale_interleave


def test_a_name_with_another_default_is_a_function_of_its_own():
    assert inspect.signature(flashinfer.single_prefill_with_kv_cache_return_lse).parameters["return_lse"].default is True
    assert inspect.signature(flashinfer.single_prefill_with_kv_cache).parameters["return_lse"].default is False
    by_name = flashinfer._native.function("python.backend_unsupported_reason")  # the library finds the op of a name
    assert str(by_name("block_scale_interleave", "cpu", 0)) == ""
    with pytest.raises(ValueError, match="single_prefill_with_kv_cache_return_lse"):  # the default would be lost
        by_name("single_prefill_with_kv_cache_return_lse", "cpu", 0)


def test_an_op_may_belong_to_the_package_itself():
    weight = torch.arange(32 * 128, dtype=torch.uint8).view(torch.float8_e4m3fn).reshape(32, 128)
    function = flashinfer.prepare_low_latency_gemm_weights
    assert function.__module__ == "flashinfer" and sys.modules["flashinfer"] is flashinfer
    assert flashinfer.gemm.prepare_low_latency_gemm_weights is function  # modules have each other's names
    assert function(weight, {}).shape == (1, 32, 128)
    assert torch.compile(function, fullgraph=True, backend="aot_eager")(weight, {}).shape == (1, 32, 128)


def test_docstring_has_summary_shapes_dtypes_and_errors():
    doc = inspect.getdoc(flashinfer.rmsnorm)
    assert doc.startswith("Root mean square normalisation")
    assert "input: Tensor [... d]; float32|float16|bfloat16" in doc
    assert "Raises:" in doc and "ValueError" in doc


def test_positional_keyword_and_given_output(xw):
    x, w = xw
    y = flashinfer.rmsnorm(x, w, 1e-3)
    torch.testing.assert_close(y.double(), rms(x, w, 1e-3), rtol=1e-5, atol=1e-5)
    assert torch.equal(y, flashinfer.rmsnorm(weight=w, input=x, eps=1e-3))
    out = torch.zeros_like(x)
    assert flashinfer.rmsnorm(x, w, 1e-3, out=out) is out and torch.equal(out, y)
    assert flashinfer.rmsnorm(x, w, 1e-3, x) is x and torch.equal(x, y)


def test_in_place_function_returns_nothing(xw):
    x, w = xw
    residual = torch.randn_like(x)
    total = x + residual
    assert flashinfer.fused_add_rmsnorm(x, residual, w) is None
    torch.testing.assert_close(residual, total)
    torch.testing.assert_close(x.double(), rms(total, w), rtol=1e-5, atol=1e-5)


def test_several_outputs_and_those_that_are_asked_for(xw):
    q, k, v = torch.randn(4, 64), torch.randn(7, 2, 64), torch.randn(7, 2, 64)
    o = flashinfer.single_decode_with_kv_cache(q, k, v)
    o2, lse = flashinfer.single_decode_with_kv_cache(q, k, v, return_lse=True)
    assert isinstance(o, torch.Tensor) and torch.equal(o, o2) and lse.shape == (4,)
    indptr, lens = torch.tensor([0, 2, 5], dtype=torch.int32), torch.tensor([2, 3], dtype=torch.int32)
    batch = torch.full((5,), -1, dtype=torch.int32)
    got, positions = flashinfer.get_batch_indices_positions(indptr, lens, 5, batch_indices=batch)
    assert got is batch and batch.tolist() == [0, 0, 1, 1, 1] and positions.tolist() == [0, 1, 0, 1, 2]


def test_dtypes_as_torch_numpy_and_text():
    a, b = torch.randn(3, 64).bfloat16(), torch.randn(16, 64).bfloat16().t()
    for dtype in (torch.float32, "float32", np.float32, np.dtype("float32")):
        if "float32" in str(flashinfer.mm_bf16.__doc__):
            assert flashinfer.mm_bf16(a, b, out_dtype=dtype).dtype == torch.float32
    with pytest.raises(TypeError, match="dtype"):
        flashinfer.mm_bf16(a, b, out_dtype=3)


def test_numpy_in_numpy_out(xw):
    x, w = (t.numpy() for t in xw)
    y = flashinfer.rmsnorm(x, w)
    assert type(y) is np.ndarray and y.dtype == np.float32
    np.testing.assert_allclose(y, rms(*xw).numpy(), rtol=1e-5, atol=1e-5)
    out = np.zeros_like(x)
    assert flashinfer.rmsnorm(x, w, out=out) is out
    np.testing.assert_array_equal(out, y)


def test_read_only_arrays_are_read_and_not_written(xw):
    x, w = (t.numpy().copy() for t in xw)
    expected = flashinfer.rmsnorm(x, w)
    x.flags.writeable = w.flags.writeable = False
    np.testing.assert_array_equal(flashinfer.rmsnorm(x, w), expected)
    with pytest.raises(ValueError, match="rmsnorm: out is read-only"):
        flashinfer.rmsnorm(x, w, out=x)


def test_any_dlpack_array(xw):
    class Array:
        """Says nothing of itself but DLPack."""

        def __init__(self, tensor):
            self.tensor = tensor

        def __dlpack__(self, **options):
            return self.tensor.__dlpack__(**options)

        def __dlpack_device__(self):
            return self.tensor.__dlpack_device__()

    x, w = xw
    y = flashinfer.rmsnorm(Array(x), Array(w))
    assert torch.equal(torch.from_dlpack(y), flashinfer.rmsnorm(x, w))
    assert isinstance(flashinfer.rmsnorm(x, Array(w)), torch.Tensor)


def test_gradients_do_not_flow(xw):
    x, w = xw
    y = flashinfer.rmsnorm(x.requires_grad_(), torch.nn.Parameter(w))
    assert not y.requires_grad
    torch.testing.assert_close(y.double(), rms(x.detach(), w), rtol=1e-5, atol=1e-5)


def test_torch_seeds_decide_what_is_drawn():
    probs = torch.softmax(torch.randn(64, 1000), -1)

    def draw(**options):
        return flashinfer.sampling_from_probs(probs, **options)

    torch.manual_seed(5)
    first, second = draw(), draw()
    assert not torch.equal(first, second)
    torch.manual_seed(5)
    assert torch.equal(first, draw()) and torch.equal(second, draw())
    g = torch.Generator().manual_seed(5)
    state = g.get_state()
    a, b = draw(generator=g), draw(generator=g)
    g.set_state(state)
    assert torch.equal(a, draw(generator=g)) and not torch.equal(a, b)
    before = torch.get_rng_state()
    assert torch.equal(draw(seed=1, offset=0), draw(seed=1, offset=0))
    assert torch.equal(before, torch.get_rng_state())  # a seeded call draws from nothing


def run(code):
    package = pathlib.Path(flashinfer.__file__).resolve().parents[1]
    return subprocess.run([sys.executable, "-c", "import sys; sys.path.insert(0, sys.argv[1])\n" + code, str(package)],
                          capture_output=True, text=True, check=False)


def test_import_loads_neither_torch_nor_numpy():
    r = run("import flashinfer\nassert not {'torch', 'numpy', 'tvm_ffi'} & set(sys.modules), sys.modules.keys()\n"
            "assert callable(flashinfer.rmsnorm)")
    assert r.returncode == 0, r.stderr


def test_without_torch():
    r = run("sys.modules['torch'] = None\nimport numpy as np, flashinfer\n"
            "y = flashinfer.rmsnorm(np.ones((2, 8), np.float32), np.ones(8, np.float32))\n"
            "assert type(y) is np.ndarray and abs(y - 1).max() < 1e-5\n"
            "p = np.full((3, 4), 0.25, np.float32)\n"
            "assert flashinfer.sampling_from_probs(p).shape == (3,)\n"
            "assert flashinfer.utils.is_sm90a_supported('cpu') is False\n"
            "assert flashinfer.rmsnorm.is_compute_capability_supported(90) in (True, False)")
    assert r.returncode == 0, r.stderr


def test_torch_imported_after_the_first_call():
    r = run("import numpy as np, flashinfer\n"
            "flashinfer.rmsnorm(np.ones((2, 8), np.float32), np.ones(8, np.float32))\n"
            "import torch\n"
            "assert type(flashinfer.rmsnorm(torch.ones(2, 8), torch.ones(8))) is torch.Tensor\n"
            "f = torch.compile(lambda x, w: flashinfer.rmsnorm(x, w), fullgraph=True, backend='eager')\n"
            "assert torch.allclose(f(torch.ones(2, 8), torch.ones(8)), torch.ones(2, 8), atol=1e-5)")
    assert r.returncode == 0, r.stderr


def test_package_can_be_imported_again():
    r = run("import torch, flashinfer\nx, w = torch.ones(2, 8), torch.ones(8)\n"
            "a = flashinfer.rmsnorm(x, w)\n"
            "for name in [m for m in sys.modules if m.split('.')[0] == 'flashinfer']: del sys.modules[name]\n"
            "import flashinfer as again\nassert again is not flashinfer\n"
            "assert torch.equal(again.rmsnorm(x, w), a) and torch.equal(flashinfer.rmsnorm(x, w), a)")
    assert r.returncode == 0, r.stderr


def test_enums_are_made_from_the_schema():
    assert flashinfer.TopKTieBreak is flashinfer.topk.TopKTieBreak
    assert [(m.name, m.value) for m in flashinfer.TopKTieBreak] == [("NONE", 0), ("SMALL", 1), ("LARGE", 2)]
    assert inspect.signature(flashinfer.top_k).parameters["tie_break"].default is flashinfer.TopKTieBreak.NONE
    x = torch.zeros(1, 8)
    _, low = flashinfer.top_k(x, 3, tie_break=flashinfer.TopKTieBreak.SMALL)
    _, high = flashinfer.top_k(x, 3, tie_break=flashinfer.TopKTieBreak.LARGE)
    assert sorted(low[0].tolist()) == [0, 1, 2] and sorted(high[0].tolist()) == [5, 6, 7]


def test_torch_may_be_imported_later():
    code = """
import flashinfer
import torch
a = torch.ones(2, 32).bfloat16()
assert flashinfer.mm_bf16(a, a.T).dtype == torch.bfloat16
"""
    subprocess.run([sys.executable, "-c", code], check=True)
