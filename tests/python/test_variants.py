# SPDX-License-Identifier: Apache-2.0
"""Custom attention variants from Python, by FlashInfer's names."""
import math

import pytest
import torch

import flashinfer
from flashinfer import jit

SIGMOID = """
struct SigmoidFromPython : AttentionVariantBase {
  static constexpr bool use_softmax = false;
  template <class Params>
  __device__ __host__ SigmoidFromPython(const Params& params, uint32_t batch_idx, uint8_t*) : AttentionVariantBase(params, batch_idx) {}
  REGISTER_LOGITS_TRANSFORM(params, logits, batch_idx, qo_idx, kv_idx, qo_head_idx, kv_head_idx, {
    return math::ptx_rcp(1.f + math::ptx_exp2(-(logits * params.sm_scale + params.bias[qo_head_idx]) * math::log2e));
  })
};"""
DIM, HEADS = 64, 2
ARGS = ("sigmoid_from_python", torch.float32, torch.float32, torch.float32)
REST = (DIM, DIM, ["bias"], ["float"], [], [], "SigmoidFromPython", SIGMOID)


def expected(q, k, v, bias, causal):
    logits = torch.einsum("qhd,khd->hqk", q.double(), k.double()) / math.sqrt(DIM) + bias.double()[:, None, None]
    weights = torch.sigmoid(logits)
    if causal:
        weights = weights.tril(k.shape[0] - q.shape[0])
    return torch.einsum("hqk,khd->qhd", weights, v.double()).float()


@pytest.fixture(scope="module")
def data():
    g = torch.Generator().manual_seed(1)
    return [torch.randn(n, HEADS, DIM, generator=g) for n in (5, 48, 48)] + [torch.randn(HEADS, generator=g)]


def test_single_prefill_and_decode(data):
    q, k, v, bias = data
    module = jit.gen_customize_single_prefill_module("fa2", *ARGS, *REST).build_and_load()
    for mode in (0, 1):
        out = flashinfer.single_prefill_with_kv_cache_with_jit_module(module, q, k, v, bias, mask_mode=mode)
        torch.testing.assert_close(out, expected(q, k, v, bias, mode == 1), rtol=1e-4, atol=1e-4)
    module = jit.gen_customize_single_decode_module(*ARGS, *REST).build_and_load()
    out = flashinfer.single_decode_with_kv_cache_with_jit_module(module, q[0].clone(), k, v, bias)
    torch.testing.assert_close(out, expected(q[:1], k, v, bias, False)[0], rtol=1e-4, atol=1e-4)


KEEP = """
struct KeepsLogits : AttentionVariantBase {
  uint8_t* mask;  // as FlashInfer's own example declares it
  template <class Params>
  __device__ __host__ KeepsLogits(const Params& params, uint32_t batch_idx, uint8_t*)
      : AttentionVariantBase(params, batch_idx), mask(params.visible) {}
  REGISTER_LOGITS_TRANSFORM(params, logits, batch_idx, qo_idx, kv_idx, qo_head_idx, kv_head_idx, {
    params.kept[(qo_head_idx * qo_len + qo_idx) * kv_len + kv_idx] = logits;
    return logits;
  })
  REGISTER_LOGITS_MASK(params, batch_idx, qo_idx, kv_idx, qo_head_idx, kv_head_idx, { return mask[kv_idx] != 0; })
};"""


def test_a_variant_writes_to_a_tensor(data):
    q, k, v, _ = data
    names = (["visible", "kept"], ["uint8_t", "float"], [], [], "KeepsLogits", KEEP)
    module = jit.gen_customize_single_prefill_module("fa2", "keeps_logits", *[torch.float32] * 3, DIM, DIM, *names).build_and_load()
    visible, kept = (torch.arange(48) % 3 != 0).to(torch.uint8), torch.full((HEADS, 5, 48), -1e9)
    out = flashinfer.single_prefill_with_kv_cache_with_jit_module(module, q, k, v, visible, kept)
    logits = torch.einsum("qhd,khd->hqk", q.double(), k.double())
    shown = visible.bool()
    torch.testing.assert_close(kept[..., shown].double(), logits[..., shown], rtol=1e-4, atol=1e-4)
    weights = (logits / math.sqrt(DIM)).masked_fill(~shown, -math.inf).softmax(-1)
    torch.testing.assert_close(out.double(), torch.einsum("hqk,khd->qhd", weights, v.double()), rtol=1e-4, atol=1e-4)


def test_batch_decode_takes_jit_args(data):
    q, k, v, bias = data
    spec = jit.gen_customize_batch_decode_module(*ARGS, torch.int32, *REST)
    wrapper = flashinfer.BatchDecodeWithPagedKVCacheWrapper(torch.empty(0, dtype=torch.uint8), "NHD", jit_args=spec.jit_args)
    wrapper.plan(torch.tensor([0, 3], dtype=torch.int32), torch.arange(3, dtype=torch.int32), torch.tensor([16], dtype=torch.int32),
                 HEADS, HEADS, DIM, 16, q_data_type=torch.float32)
    cache = (k.view(3, 16, HEADS, DIM), v.view(3, 16, HEADS, DIM))
    out = wrapper.run(q[:1].clone(), cache, bias)
    torch.testing.assert_close(out, expected(q[:1], k, v, bias, False), rtol=1e-4, atol=1e-4)
    with pytest.raises(TypeError, match="2 additional arguments, but jit_args declares 1 tensors and 0 scalars"):
        wrapper.run(q[:1].clone(), cache, bias, 1.0)


def test_the_module_of_a_batch_prefill_is_made_once():
    made = [flashinfer.prefill.get_customize_batch_prefill_module("fa2", *ARGS, torch.int32, *REST) for _ in range(2)]
    assert made[0] is made[1] and made[0] is not None


def test_arguments_without_a_variant_are_an_error(data):
    q, k, v, bias = data
    wrapper = flashinfer.BatchDecodeWithPagedKVCacheWrapper(torch.empty(0, dtype=torch.uint8), "NHD")
    wrapper.plan(torch.tensor([0, 3], dtype=torch.int32), torch.arange(3, dtype=torch.int32), torch.tensor([16], dtype=torch.int32),
                 HEADS, HEADS, DIM, 16, q_data_type=torch.float32)
    with pytest.raises(TypeError, match="additional arguments were given, but there are no jit_args"):
        wrapper.run(q[:1].clone(), (k.view(3, 16, HEADS, DIM), v.view(3, 16, HEADS, DIM)), bias)


def test_an_error_in_the_source_names_its_line(data):
    q, k, v, bias = data
    module = jit.gen_customize_single_prefill_module("fa2", *ARGS, *REST[:-1], "\nstruct SigmoidFromPython { oops };").build_and_load()
    with pytest.raises(RuntimeError, match="variant_decl:2"):
        flashinfer.single_prefill_with_kv_cache_with_jit_module(module, q, k, v, bias)


@pytest.mark.parametrize("names, missing", [([], "maybe_k_cache_sf, maybe_v_cache_sf"), (["maybe_k_cache_sf"], "maybe_v_cache_sf")])
def test_a_variant_over_an_nvfp4_cache_names_its_scale_factors(names, missing):
    with pytest.raises(ValueError, match=f"additional_tensor_names lacks {missing}$"):
        jit.gen_customize_batch_prefill_module("fa2", "packed", torch.bfloat16, torch.uint8, torch.bfloat16, torch.int32, 128, 128, names,
                                               ["uint8_t"] * len(names), [], [], "Plain", "struct Plain {};")


MASKED = """
struct MaskedFromPython : AttentionVariantBase {
  const uint8_t* bits;
  template <class Params>
  __device__ __host__ MaskedFromPython(const Params& params, uint32_t batch_idx, uint8_t*)
      : AttentionVariantBase(params, batch_idx), bits(params.maybe_custom_mask + params.maybe_mask_indptr[batch_idx]) {}
  REGISTER_LOGITS_MASK(params, batch_idx, qo_idx, kv_idx, qo_head_idx, kv_head_idx, {
    const uint32_t bit = qo_idx * kv_len + kv_idx;
    return (bits[bit / 8] >> (bit % 8) & 1) != 0;
  })
};"""


@pytest.mark.parametrize("offsets", ["int32_t", "int64_t"])
@pytest.mark.parametrize("given", [(), (0.25,)], ids=["filled", "scale"])
def test_the_library_fills_the_masks_of_a_batch(data, offsets, given):
    """Tensors that the library has are left out; its scalars may be given all the same."""
    q, k, v, _ = data
    args = ("masked_from_python", *[torch.float32] * 3, torch.int32, DIM, DIM, ["maybe_custom_mask", "maybe_mask_indptr"], ["uint8_t", offsets],
            ["sm_scale"], ["double"], "MaskedFromPython", MASKED)
    lengths, keys = (2, 3), (17, 31)
    masks = [torch.rand(n, m, generator=torch.Generator().manual_seed(n)) < 0.5 for n, m in zip(lengths, keys)]
    wrapper = flashinfer.BatchPrefillWithRaggedKVCacheWrapper(torch.empty(0, dtype=torch.uint8), "NHD", backend="fa2", jit_args=args)
    ends = torch.tensor([0, 2, 5]).int(), torch.tensor([0, 17, 48]).int()
    wrapper.plan(*ends, HEADS, HEADS, DIM, custom_mask=torch.cat([m.flatten() for m in masks]), sm_scale=0.5, q_data_type=torch.float32)
    out = wrapper.run(q, k, v, *given)
    for i, (n, m) in enumerate(zip(lengths, keys)):
        rows, columns = slice(ends[0][i], ends[0][i] + n), slice(ends[1][i], ends[1][i] + m)
        logits = torch.einsum("qhd,khd->hqk", q[rows].double(), k[columns].double()) * (given[0] if given else 0.5)
        weights = logits.masked_fill(~masks[i], -math.inf).softmax(-1)
        torch.testing.assert_close(out[rows].double(), torch.einsum("hqk,khd->qhd", weights, v[columns].double()), rtol=1e-4, atol=1e-4)
    with pytest.raises(TypeError, match="2 additional arguments, but jit_args declares 2 tensors and 1 scalars, of which the library fills 2 and 1"):
        wrapper.run(q, k, v, 0.25, 1.0)
