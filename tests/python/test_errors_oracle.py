# SPDX-License-Identifier: Apache-2.0
"""The same wrong calls (oracle/errors.py) to FlashInfer's functions and to ours: where its own checks refuse a call, ours raises the
same type of error. Errors of torch inside FlashInfer (IndexError, RuntimeError of a view, bare assertions) are no checks."""
import json
import subprocess
import sys

import pytest
import torch
from conftest import ROOT, environment

import flashinfer

CHECKS = ("ValueError", "TypeError", "KeyError", "NotImplementedError", "BackendSupportedError")
KINDS = {"UnknownBackendError": ("BackendSupportedError", "ValueError")}  # what it derives from
# What differs on purpose.
DELIBERATE = {
    "segment_packbits: indptr: torch.float64": "An error of torch's; ours names the argument and the types it may have.",
    "mm_mxfp8: b: one column less": "A limit of one GPU kernel: here any n is right.",
}


@pytest.fixture(scope="module")
def outcomes():
    out = {}
    for who in ("theirs", "ours"):
        done = subprocess.run([sys.executable, str(ROOT / "tests/python/oracle/errors.py"), who], env=environment(who), cwd="/", capture_output=True, text=True)
        assert done.returncode == 0, done.stderr
        out[who] = json.loads(done.stdout)
    return out


def test_types_are_flashinfers(outcomes):
    theirs, ours = outcomes["theirs"], outcomes["ours"]
    compared, different = 0, {}
    for call, (kind, text) in theirs.items():
        if kind not in CHECKS or [kind, text] == theirs[call.partition(":")[0] + ": right"] or call in DELIBERATE:
            continue
        compared += 1
        if kind not in KINDS.get(ours[call][0], ours[call][0]):
            different[call] = (kind, text), ours[call]
    assert not different and compared > 150
    assert not [call for call in ours if call.endswith(": right") and ours[call][0]]


def test_a_wrong_call_never_passes_where_flashinfer_refuses_it(outcomes):
    theirs, ours = outcomes["theirs"], outcomes["ours"]
    passed = [call for call, (kind, text) in theirs.items() if kind and [kind, text] != theirs[call.partition(":")[0] + ": right"]
              and not ours[call][0] and call not in DELIBERATE]
    assert not passed


def e4(*shape):
    return torch.zeros(*shape).to(torch.float8_e4m3fn)


def probs(*shape):
    return torch.rand(*shape).softmax(-1)


def kv_append(**more):
    def i(*values):
        return torch.tensor(values, dtype=torch.int32)

    x, data, sf = torch.rand(1, 2, 64).bfloat16(), torch.zeros(3, 2, 4, 2, 32, dtype=torch.uint8), e4(3, 2, 4, 2, 4)
    return flashinfer.nvfp4_quantize_append_paged_kv_cache(x, x, i(0), i(0), data, sf, i(0), i(0, 1), i(1), **{"k_scale": 1.0, "v_scale": 1.0, **more})


def decode(**more):
    """A wrapper that is planned for two query tokens of each of two requests."""
    w = flashinfer.BatchDecodeWithPagedKVCacheWrapper(torch.zeros(1 << 16, dtype=torch.uint8), use_tensor_cores=True, **more)
    plan_decode(w.plan)
    return w


def plan_decode(function, *wrapper, tokens=16, q_len=2):
    def i(*values):
        return torch.tensor(values, dtype=torch.int32)

    types = {"q_data_type": torch.bfloat16, "kv_data_type": torch.bfloat16}
    return function(*wrapper, i(0, 1, 2), i(0, 1), i(tokens, tokens), 8, 2, 64, 16, q_len_per_req=q_len, **types)


def buffers():
    names = {"paged_kv_indptr_buffer": 3, "paged_kv_indices_buffer": 2, "paged_kv_last_page_len_buffer": 2}
    return {"use_cuda_graph": True, **{k: torch.zeros(n, dtype=torch.int32) for k, n in names.items()}}


def new_wrapper():
    return flashinfer.BatchDecodeWithPagedKVCacheWrapper(torch.zeros(1 << 16, dtype=torch.uint8))


ONES = torch.ones
# Texts that programs and FlashInfer's tests look for.
TEXTS = [
    (lambda: decode().run(ONES(6, 8, 64).bfloat16(), ONES(2, 2, 16, 2, 64).bfloat16()), ValueError, "q_len_per_req=2"),
    (lambda: plan_decode(decode().plan, tokens=1), ValueError, "empty KV range"),
    (lambda: plan_decode(decode(**buffers()).plan, q_len=3), ValueError, "q_len_per_req is 3.* frozen"),
    (lambda: plan_decode(flashinfer.decode.fast_decode_plan, new_wrapper()), ValueError, "prior plan"),
    (lambda: kv_append(k_scale=0.0), ValueError, "k_scale and v_scale must be positive finite global decode scales"),
    (lambda: kv_append(v_scale=float("inf")), ValueError, "v_scale is inf"),
    (lambda: flashinfer.rmsnorm_quant(e4(4, 64), ONES(4, 64).half(), ONES(64).half(), ONES(2)), ValueError, "scale must be a scalar tensor"),
    (lambda: flashinfer.rmsnorm_quant(e4(4, 64), ONES(4, 64).half(), ONES(64).half(), ONES(1, 1)), ValueError, "scale must be a scalar tensor"),
    (lambda: flashinfer.top_p_sampling_from_probs(probs(4, 9), ONES(2)), ValueError, "Sampling parameter .* batch size mismatch"),
    (lambda: flashinfer.top_p_sampling_from_probs(probs(4, 9), ONES(())), ValueError, "Expected a 1D tensor"),
    (lambda: flashinfer.mm_mxfp8(e4(128, 128), e4(128, 128).T, ONES(128, 4).byte(), ONES(512).byte()), ValueError, "2D linear scales are not supported"),
    (lambda: flashinfer.bmm_mxfp8(e4(2, 128, 128), e4(2, 128, 128), ONES(1024).byte(), ONES(1024).byte(), torch.bfloat16), ValueError, "B to be column-major"),
    (lambda: flashinfer.bmm_mxfp8(e4(2, 128, 128), e4(2, 128, 128).mT, ONES(9).byte(), ONES(1024).byte(), torch.bfloat16), ValueError,
     "A_scale to contain 1024 elements"),
    (lambda: flashinfer.gemm.fp8_blockscale_gemm_sm90(ONES(16, 100).bfloat16(), ONES(128, 100).bfloat16()), ValueError, "divisible by block size"),
    (lambda: flashinfer.gemm.fp8_blockscale_gemm_sm90(ONES(16, 128).bfloat16(), e4(128, 128)), ValueError, "weight_scale is required when weight is FP8"),
    (lambda: flashinfer.gemm.fp8_blockscale_gemm_sm90(ONES(16, 128).bfloat16(), ONES(128, 128).bfloat16(), ONES(1, 16)), ValueError,
     "input_scale should not be provided for BF16"),
    (lambda: flashinfer.mm_bf16(ONES(16, 64).bfloat16(), ONES(64, 64).bfloat16().T, backend="bogus"), flashinfer.utils.BackendSupportedError,
     "mm_bf16 does not support backend 'bogus'"),
    (lambda: flashinfer.mm_bf16(ONES(16, 64).bfloat16(), ONES(64, 64).bfloat16().T, backend="bogus"), ValueError, "backend is 'bogus', but must be one of"),
]


@pytest.mark.parametrize("call, kind, text", TEXTS)
def test_texts_hold_flashinfers_words(call, kind, text):
    with pytest.raises(kind, match=text):
        call()
