# SPDX-License-Identifier: Apache-2.0
"""Bad input: the exception of Python's kind, with the argument's name and both values."""
import warnings

import pytest
import torch

import flashinfer


@pytest.fixture
def xw():
    torch.manual_seed(0)
    return torch.randn(4, 64), torch.randn(64)


def test_calls_that_do_not_fit_the_signature(xw):
    x, w = xw
    with pytest.raises(TypeError, match="missing 1 required positional argument: 'weight'"):
        flashinfer.rmsnorm(x)
    with pytest.raises(TypeError, match="unexpected keyword argument 'colour'"):
        flashinfer.rmsnorm(x, w, colour=1)
    with pytest.raises(TypeError, match="multiple values for argument 'input'"):
        flashinfer.rmsnorm(x, w, input=x)
    with pytest.raises(TypeError, match="rmsnorm: input must be a tensor, but is str 'a'"):
        flashinfer.rmsnorm("a", w)
    with pytest.raises(TypeError, match="rmsnorm: eps must be a number, but is NoneType"):
        flashinfer.rmsnorm(x, w, eps=None)
    with pytest.raises(TypeError, match="rmsnorm: eps"):
        flashinfer.rmsnorm(x, w, eps=10**30)


def test_shapes_and_dtypes(xw):
    x, w = xw
    with pytest.raises(ValueError, match=r"rmsnorm: weight.shape\[0\] is 3, but d is 64 \(from input.shape\[1\]\)"):
        flashinfer.rmsnorm(x, w[:3])
    with pytest.raises(ValueError, match="rmsnorm: input.dtype is float64"):
        flashinfer.rmsnorm(x.double(), w)
    with pytest.raises(ValueError, match="rmsnorm: input: DLPack element type .* is not one this library knows"):
        flashinfer.rmsnorm(x.to(torch.complex64), w)
    with pytest.raises(ValueError, match=r"rmsnorm: input.stride\(-1\) is 2"):
        flashinfer.rmsnorm(torch.randn(4, 128)[:, ::2], w)
    with pytest.raises(ValueError, match="eps is nan"):
        flashinfer.rmsnorm(x, w, float("nan"))
    with pytest.raises(ValueError, match="shares memory"):
        flashinfer.rmsnorm(x, w, out=torch.as_strided(x, (4, 64), (32, 1)))


def test_tensors_without_data(xw):
    x, w = xw
    with pytest.raises(ValueError, match="rmsnorm: input is on the device meta, which has no data"):
        flashinfer.rmsnorm(x.to("meta"), w)
    with pytest.raises(ValueError, match=r"rmsnorm: weight is sparse \(torch.sparse_coo\), but must be dense"):
        flashinfer.rmsnorm(x, w.to_sparse())
    freed = x.clone()
    freed.untyped_storage().resize_(0)
    with pytest.raises(ValueError, match=r"rmsnorm: input is float32\[4, 64\], but its data pointer is null"):
        flashinfer.rmsnorm(freed, w)
    from torch._subclasses import FakeTensorMode

    with pytest.raises(ValueError, match="rmsnorm: input is a FakeTensor, which has no data"), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        flashinfer.rmsnorm(FakeTensorMode().from_tensor(x), w)


def test_views_that_negate_their_memory(xw):
    x, w = xw
    negative = torch.randn(4, 64, dtype=torch.complex64).conj().imag
    assert negative.is_neg()
    with pytest.raises(ValueError, match=r"rmsnorm: input is a view that negates its memory .*: pass input.resolve_neg\(\)"):
        flashinfer.rmsnorm(torch._neg_view(x), w)
    with pytest.raises(ValueError, match="rmsnorm: out is a view that negates"):
        flashinfer.rmsnorm(x, w, out=torch._neg_view(torch.zeros_like(x)))
    wrapper, pool = decode_wrapper(), torch.randn(5, 2, 4, 2, 64)
    plan(wrapper)
    with pytest.raises(ValueError, match="run: paged_kv_cache is a view that negates"):
        wrapper.run(torch.randn(2, 4, 64), (pool[:, 0], torch._neg_view(pool[:, 1])))
    with pytest.raises(ValueError, match="weight is a view that negates"):
        flashinfer.rmsnorm(x.numpy(), torch._neg_view(w))
    torch.testing.assert_close(flashinfer.rmsnorm(negative.resolve_neg().contiguous(), w), flashinfer.rmsnorm(negative * 1, w))


def test_arguments_of_the_wrong_kind_are_named(xw, fp8):
    x, w = xw
    a, b, scale, _, _ = fp8
    with pytest.raises(TypeError, match="bmm_fp8: dtype must be a dtype or the name of one, but is int 3"):
        flashinfer.bmm_fp8(a, b, scale, scale, 3)
    with pytest.raises(TypeError, match="sampling_from_probs: generator must be a torch.Generator, but is str"):
        flashinfer.sampling_from_probs(torch.rand(2, 8), generator="x")
    with pytest.raises(TypeError, match="rmsnorm: input must be a tensor, but is list"):
        flashinfer.rmsnorm([1.0, 2.0], w)


def test_wrappers_are_not_copied():
    import copy
    import pickle

    w = decode_wrapper()
    plan(w)
    for f in (copy.deepcopy, copy.copy, pickle.dumps):
        with pytest.raises(TypeError, match="a BatchDecodeWithPagedKVCacheWrapper cannot be copied or pickled"):
            f(w)
    v = decode_wrapper()
    v._handle = copy.copy(w._handle)  # TVM-FFI makes an empty one
    with pytest.raises(TypeError, match="copied or never made"):
        plan(v)


def test_arrays_that_cannot_be_handed_over(xw):
    x, w = (t.numpy() for t in xw)
    with pytest.raises(BufferError, match="rmsnorm: input: DLPack only supports native byte order"):
        flashinfer.rmsnorm(x.astype(">f4"), w)

    class Freed:
        def __dlpack__(self, **options):
            raise BufferError("the buffer was freed")

        def __dlpack_device__(self):
            return (1, 0)

    with pytest.raises(BufferError, match="rmsnorm: input: the buffer was freed"):
        flashinfer.rmsnorm(Freed(), w)


def test_errors_keep_no_foreign_stack(xw):
    x, w = xw
    with pytest.raises(Exception) as e, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        flashinfer.rmsnorm(torch.quantize_per_tensor(x, 0.1, 0, torch.qint8), w)
    assert "rmsnorm: input is quantized" in str(e.value)


def test_device_of_another_kind(xw):
    """A CUDA tensor on a machine without CUDA, as DLPack says it."""
    import ctypes

    x, w = xw
    capsule = x.__dlpack__()
    get = ctypes.pythonapi.PyCapsule_GetPointer
    get.restype, get.argtypes = ctypes.c_void_p, [ctypes.py_object, ctypes.c_char_p]
    # DLManagedTensor begins with the DLTensor: data, device {type, id}, ...
    device = ctypes.c_int32.from_address(get(capsule, b"dltensor") + 8)
    assert device.value == 1
    device.value = 2

    class OnGpu:
        def __dlpack__(self, **options):
            return capsule

        def __dlpack_device__(self):
            return (2, 0)

    with pytest.raises(NotImplementedError, match="rmsnorm: .*input is on cuda:0"):
        flashinfer.rmsnorm(OnGpu(), w.numpy())


# ---- back ends by name ----
@pytest.fixture
def fp8():
    torch.manual_seed(0)
    a = torch.randn(2, 4, 64).to(torch.float8_e4m3fn)
    b = torch.randn(2, 8, 64).to(torch.float8_e4m3fn).transpose(1, 2)
    return a, b, torch.tensor(1.0), torch.tensor(1.0), torch.bfloat16


def test_backend_of_another_device_warns_once(fp8):
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        expected = flashinfer.bmm_fp8(*fp8)
        assert torch.equal(flashinfer.bmm_fp8(*fp8, backend="cublas"), expected)  # the default
        assert not caught
        for _ in range(3):
            assert torch.equal(flashinfer.bmm_fp8(*fp8, backend="cutlass"), expected)
    assert len(caught) == 1 and issubclass(caught[0].category, UserWarning)
    assert "bmm_fp8: backend='cutlass' exists for cuda tensors only" in str(caught[0].message)
    assert caught[0].filename == __file__


def test_unknown_backend_and_one_that_is_unsupported(fp8):
    with pytest.raises(ValueError, match="bmm_fp8: backend is 'cubla', but must be one of auto, cublas,"):
        flashinfer.bmm_fp8(*fp8, backend="cubla")
    q, k = torch.randn(4, 64), torch.randn(7, 2, 64)
    with pytest.raises(ValueError, match="backend is 'fa9'"):
        flashinfer.single_prefill_with_kv_cache(q[None], k, k, backend="fa9")
    expected = flashinfer.bmm_fp8(*fp8)
    torch.testing.assert_close(flashinfer.bmm_fp8(*fp8, backend="reference"), expected, rtol=1e-2, atol=1e-2)


def test_backend_questions():
    f = flashinfer.bmm_fp8
    assert f.is_backend_supported("cpu") and f.is_backend_supported("auto")
    assert not f.is_backend_supported("cpu", 90) and not f.is_backend_supported("nope")
    assert f.is_backend_supported("cublas", 90) == f.is_compute_capability_supported(90)
    assert f.has_backend("cute-dsl") and not f.has_backend("auto") and not f.has_backend("nope") and f.has_backend_choices() and f.experimental_backends == frozenset()
    assert not flashinfer.rmsnorm.has_backend_choices() and not flashinfer.rmsnorm.has_backend("cuda")
    composed = flashinfer.mm_nvfp4_svdquant
    assert composed.has_backend("cutlass") and composed.is_backend_supported("cutlass") and not composed.is_compute_capability_supported(100)
    for name, backends in (("bmm_bf16", "cutile"), ("mm_bf16", "tinygemm cutile cute-dsl"), ("mm_fp4", "cake"), ("batch_deepgemm_fp8_nt_groupwise", "cake"),
                           ("group_gemm_fp8_nt_groupwise", "cutile")):  # those that FlashInfer 0.7 has added
        assert all(getattr(flashinfer.gemm, name).has_backend(b) for b in backends.split()), name
    reasons = f.backend_reasons()
    assert reasons["cpu"] == "" and set(reasons) >= {"auto", "cublas", "cudnn", "cutlass", "cpu", "reference"}
    assert "compute capability 9.0" in f.backend_reasons(90)["cpu"]


# ---- classes ----
def decode_wrapper():
    return flashinfer.BatchDecodeWithPagedKVCacheWrapper(torch.empty(1024, dtype=torch.uint8), "NHD")


def i32(*values):
    return torch.tensor(values, dtype=torch.int32)


def plan(w, **options):
    w.plan(i32(0, 3, 5), i32(4, 1, 0, 2, 3), i32(2, 3), 4, 2, 64, 4, q_data_type=torch.float32, **options)


def test_errors_of_wrappers():
    w, q, pool = decode_wrapper(), torch.randn(2, 4, 64), torch.randn(5, 2, 4, 2, 64)
    with pytest.raises(AssertionError, match="plan\\(\\) has not been called"):
        w.run(q, pool)
    plan(w)
    with pytest.raises(KeyError, match="paged_kv_cache must be a stacked tensor or a tuple"):
        w.run(q, [pool[:, 0], pool[:, 1]])
    with pytest.raises(ValueError, match="q.dtype is float16, but plan\\(\\) was given q_data_type=float32"):
        w.run(q.half(), pool)
    with pytest.raises(ValueError, match="q.shape\\[0\\] is 1"):
        w.run(q[:1], pool)
    with pytest.raises(AssertionError, match="window_left"):
        w.run(q, pool, window_left=3)
    with pytest.raises(KeyError, match="kv_layout is 'XYZ'"):
        flashinfer.BatchDecodeWithPagedKVCacheWrapper(torch.empty(0, dtype=torch.uint8), "XYZ")
    with pytest.raises(KeyError, match="pos_encoding_mode"):
        plan(w, pos_encoding_mode="SPIRAL")
    with pytest.raises(TypeError, match="missing"):
        w.plan(i32(0, 3, 5))


@pytest.mark.parametrize("argument, value", [("q_data_type", torch.int8), ("q_data_type", torch.uint8), ("kv_data_type", torch.int8),
                                             ("o_data_type", torch.float8_e5m2), ("o_data_type", torch.int64)])
def test_plan_rejects_a_dtype_that_run_does_not_support(argument, value):
    ints = [torch.tensor(x, dtype=torch.int32) for x in ([0, 2], [0, 1], [9])]
    workspace = torch.empty(1 << 10, dtype=torch.uint8)
    refused = pytest.raises(ValueError, match=rf"plan: {argument} is {str(value)[6:]}, but must be float32, float16")
    with refused:
        flashinfer.BatchDecodeWithPagedKVCacheWrapper(workspace).plan(*ints, 8, 2, 64, 16, **{argument: value})
    with refused:
        flashinfer.BatchPrefillWithPagedKVCacheWrapper(workspace).plan(ints[0], *ints, 8, 2, 64, 16, **{argument: value})


def test_dtypes_of_results_are_named_as_the_caller_named_them():
    q, pool = torch.randn(1, 8, 64), torch.randn(4, 2, 2, 16, 64)
    with pytest.raises(ValueError, match="o_dtype is int8, but must be float32, float16"):
        flashinfer.single_prefill_with_kv_cache(q, q, q, o_dtype=torch.int8)
    table, lengths = torch.zeros(1, 2, dtype=torch.int32), torch.tensor([20], dtype=torch.int32)
    with pytest.raises(ValueError, match="trtllm_batch_decode_with_kv_cache: out_dtype is int8, but must be float32"):
        flashinfer.decode.trtllm_batch_decode_with_kv_cache(q, pool, torch.empty(1 << 10, dtype=torch.uint8), table, lengths, 32,
                                                            out_dtype=torch.int8)


def test_a_mixture_of_experts_names_the_dtype_that_it_cannot_write():
    x, fc1, fc2 = torch.randn(3, 32), torch.randn(2, 32, 32), torch.randn(2, 32, 16)
    experts, scales = torch.zeros(3, 1, dtype=torch.int32), torch.ones(3, 1)
    with pytest.raises(ValueError, match="cutlass_fused_moe: output_dtype is int8, but must be float32, float16 or bfloat16"):
        flashinfer.fused_moe.cutlass_fused_moe(x, experts, scales, fc1, fc2, torch.int8, None)
