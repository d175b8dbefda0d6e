// SPDX-License-Identifier: Apache-2.0
// Attention on the emulator beyond the case tables: plans from arrays on the device, arrays that stay on it,
// unsupported calls.
#include <gtest/gtest.h>

#include <cmath>
#include <numeric>

#include "../ops/errors.h"
#include "flashinfer/cases/run.h"
#include "flashinfer/core/transfer.h"
#include "flashinfer/jit/emulator.h"
#include "flashinfer/jit/targets.h"
#include "flashinfer/op/registry.h"
#include "flashinfer/ops/attention/op.h"
#include "flashinfer/ops/cascade/op.h"
#include "flashinfer/ops/pod/op.h"

namespace flashinfer {
namespace {

constexpr Device kEmu{DeviceType::kEmu, 0};

Tensor indices(std::vector<int32_t> v) {
  return Tensor::copy_of(std::span<const int32_t>(v), {static_cast<int64_t>(v.size())});
}
Tensor values(std::initializer_list<int64_t> shape, int step) {
  Tensor t = Tensor::empty(shape, DType::kBF16);
  int n = 0;
  for (bf16_t& x : t.span<bf16_t>()) x = bf16_t(static_cast<float>((n += step) % 31) / 15.0f - 1.0f);
  return t;
}

/// Two requests of 25 and 48 tokens in pages of 16; 8 heads over 2.
class Decode : public testing::Test {
 protected:
  void plan(BatchDecodeWithPagedKVCacheWrapper& w, Device arrays) {
    const Tensor indptr = to_device(indptr_.view(), arrays), ids = to_device(ids_.view(), arrays),
                 last = to_device(last_.view(), arrays);
    w.plan({.indptr = indptr,
            .indices = ids,
            .last_page_len = last,
            .num_qo_heads = 8,
            .num_kv_heads = 2,
            .head_dim = 64,
            .page_size = 16,
            .q_data_type = DType::kBF16,
            .data_type = DType::kBF16});
  }
  Tensor indptr_ = indices({0, 2, 5}), ids_ = indices({4, 0, 1, 3, 2}), last_ = indices({9, 16});
  Tensor q_ = values({2, 8, 64}, 7), cache_ = values({5, 2, 16, 2, 64}, 11);
};

TEST_F(Decode, PlansFromArraysOnTheDevice) {
  BatchDecodeWithPagedKVCacheWrapper cpu, gpu;
  plan(cpu, kCpu);
  plan(gpu, kEmu);
  const Tensor q = to_device(q_.view(), kEmu), cache = to_device(cache_.view(), kEmu);
  const Tensor want = cpu.run({.q = q_, .paged_kv_cache = op::PagedKv(cache_.view())});
  const jit::Emulation emulation(0);
  const Tensor got = gpu.run({.q = q, .paged_kv_cache = op::PagedKv(cache.view())});
  EXPECT_EQ(got.device(), kEmu);
  EXPECT_EQ(emulation.launches().size(), 1u);
  for (int64_t i = 0; i < want.numel(); ++i)
    EXPECT_NEAR(static_cast<float>(got.data_as<bf16_t>()[i]), static_cast<float>(want.data_as<bf16_t>()[i]), 0.01) << i;
}

TEST_F(Decode, ANewPlanReplacesTheArraysOfTheOld) {
  BatchDecodeWithPagedKVCacheWrapper cpu, gpu;
  const Tensor q = to_device(q_.view(), kEmu), cache = to_device(cache_.view(), kEmu);
  for (const int32_t first : {4, 3, 2}) {
    ids_.data_as<int32_t>()[0] = first;
    plan(cpu, kCpu);
    plan(gpu, kCpu);
    for (int repeat = 0; repeat < 2; ++repeat) {
      const Tensor want = cpu.run({.q = q_, .paged_kv_cache = op::PagedKv(cache_.view())});
      const Tensor got = gpu.run({.q = q, .paged_kv_cache = op::PagedKv(cache.view())});
      for (int64_t i = 0; i < want.numel(); ++i)
        ASSERT_NEAR(static_cast<float>(got.data_as<bf16_t>()[i]), static_cast<float>(want.data_as<bf16_t>()[i]), 0.01)
            << first << " " << i;
    }
  }
}

/// Back ends that take the rows of a request from q: the list of a run with one row each is not that of one with two.
TEST_F(Decode, RunsOfOtherRowsHaveListsOfTheirOwn) {
  BatchDecodeWithPagedKVCacheWrapper cpu({.backend = "trtllm-gen"}), gpu({.backend = "trtllm-gen"});
  plan(cpu, kCpu);
  plan(gpu, kCpu);
  const Tensor cache = to_device(cache_.view(), kEmu);
  for (const int64_t rows : {2, 4, 2}) {
    const Tensor q = values({rows, 8, 64}, 7), q_emu = to_device(q.view(), kEmu);
    const Tensor want = cpu.run({.q = q, .paged_kv_cache = op::PagedKv(cache_.view())});
    const Tensor got = gpu.run({.q = q_emu, .paged_kv_cache = op::PagedKv(cache.view())});
    for (int64_t i = 0; i < want.numel(); ++i)
      ASSERT_NEAR(static_cast<float>(got.data_as<bf16_t>()[i]), static_cast<float>(want.data_as<bf16_t>()[i]), 0.01)
          << rows << " rows, " << i;
  }
}

/// The arrays that run() left on the device are for the kernel without rotation: both take f32 without tensor cores.
TEST_F(Decode, ForwardMayRotateWhatRunDidNot) {
  const auto f32 = [](const Tensor& x) {
    Tensor y = Tensor::empty({x.numel()}, DType::kF32);
    for (int64_t i = 0; i < x.numel(); ++i) y.data_as<float>()[i] = static_cast<float>(x.data_as<bf16_t>()[i]);
    return y;
  };
  const Tensor q_values = f32(q_), cache_values = f32(cache_);
  const TensorView q = q_values.view().view({2, 8, 64}), cache = cache_values.view().view({5, 2, 16, 2, 64});
  const Tensor q_emu = to_device(q, kEmu), cache_emu = to_device(cache, kEmu);
  BatchDecodeWithPagedKVCacheWrapper cpu, gpu;
  for (auto* w : {&cpu, &gpu})
    w->plan({.indptr = indptr_,
             .indices = ids_,
             .last_page_len = last_,
             .num_qo_heads = 8,
             .num_kv_heads = 2,
             .head_dim = 64,
             .page_size = 16,
             .q_data_type = DType::kF32,
             .data_type = DType::kF32});
  gpu.run({.q = q_emu, .paged_kv_cache = op::PagedKv(cache_emu.view())});
  const Tensor got =
      gpu.forward({.q = q_emu, .paged_kv_cache = op::PagedKv(cache_emu.view()), .pos_encoding_mode = "ROPE_LLAMA"});
  const Tensor want = cpu.forward({.q = q, .paged_kv_cache = op::PagedKv(cache), .pos_encoding_mode = "ROPE_LLAMA"});
  for (int64_t i = 0; i < want.numel(); ++i) ASSERT_NEAR(got.data_as<float>()[i], want.data_as<float>()[i], 1e-4) << i;
}

/// log2 of one weight of 1, on tensor cores and without them.
TEST(Attention, TheLseOfOneKeyWithScoreZeroIsZero) {
  for (const DType t : {DType::kBF16, DType::kF16, DType::kF32})
    for (const int64_t rows : {1, 20}) {
      const Tensor q = to_device(Tensor::zeros({rows, 4, 64}, t).view(), kEmu),
                   k = to_device(Tensor::zeros({1, 2, 64}, t).view(), kEmu);
      const op::Results r = single_prefill_with_kv_cache({.q = q, .k = k, .v = k, .return_lse = true});
      const Tensor lse = to_device(r[1].view(), kCpu);
      for (const float x : lse.span<float>()) EXPECT_EQ(x, 0.0f) << name(t) << ", " << rows << " rows";
    }
}

void expect_near(const Tensor& got, const Tensor& want, DType dtype) {
  for (int64_t i = 0; i < want.numel(); ++i) {
    const auto at = [&](const Tensor& t) {
      return dtype == DType::kBF16 ? static_cast<float>(t.data_as<bf16_t>()[i])
                                   : static_cast<float>(t.data_as<f16_t>()[i]);
    };
    ASSERT_NEAR(at(got), at(want), 0.02) << i;
  }
}

/// A mask belongs to one run: what it left on the device is not the next run's.
TEST_F(Decode, AMaskOfOneRunIsNotTheNextOnes) {
  const Tensor qo_p = indices({0, 3}), indptr_p = indices({0, 2}), ids_p = indices({1, 3}), last_p = indices({9}),
               qo_d = indices({0, 1, 2}), q_p = values({3, 8, 64}, 5);
  const Tensor mask = Tensor::zeros({3 * 25}, DType::kBool);
  for (int64_t i = 0; i < 75; ++i) mask.data_as<bool>()[i] = i % 25 % 3 == 0;
  BatchPODWithPagedKVCacheWrapper cpu, gpu;
  for (auto* w : {&cpu, &gpu})
    w->plan({.qo_indptr_p = qo_p,
             .kv_indptr_p = indptr_p,
             .kv_indices_p = ids_p,
             .last_page_len_p = last_p,
             .qo_indptr_d = qo_d,
             .kv_indptr_d = indptr_,
             .kv_indices_d = ids_,
             .last_page_len_d = last_,
             .num_qo_heads = 8,
             .num_kv_heads = 2,
             .head_dim = 64,
             .page_size = 16,
             .q_data_type = DType::kBF16});
  const Tensor p_emu = to_device(q_p.view(), kEmu), d_emu = to_device(q_.view(), kEmu),
               cache_emu = to_device(cache_.view(), kEmu), mask_emu = to_device(mask.view(), kEmu);
  for (const bool masked : {true, false}) {
    const auto run = [&](auto& w, const Tensor& p, const Tensor& d, const Tensor& cache, const Tensor& m) {
      return w.run({.q_p = p,
                    .paged_kv_cache_p = op::PagedKv(cache.view()),
                    .q_d = d,
                    .paged_kv_cache_d = op::PagedKv(cache.view()),
                    .custom_mask_p = masked ? std::optional<TensorView>(m.view()) : std::nullopt});
    };
    const op::Results want = run(cpu, q_p, q_, cache_, mask), got = run(gpu, p_emu, d_emu, cache_emu, mask_emu);
    for (int i = 0; i < 2; ++i) expect_near(got[i], want[i], DType::kBF16);
  }
}

/// The wrapper learns its types at forward(): each has its own kernel.
TEST_F(Decode, OnePlanForTwoTypes) {
  const Tensor qo = indices({0, 1, 2});
  BatchPrefillWithSharedPrefixPagedKVCacheWrapper cpu, gpu;
  for (auto* w : {&cpu, &gpu})
    w->begin_forward({.qo_indptr = qo,
                      .paged_kv_indptr = indptr_,
                      .paged_kv_indices = ids_,
                      .paged_kv_last_page_len = last_,
                      .num_qo_heads = 8,
                      .num_kv_heads = 2,
                      .head_dim = 64,
                      .page_size = 16});
  const Tensor k = values({20, 2, 64}, 3);
  const auto as_f16 = [](const Tensor& t) {
    Tensor h = Tensor::empty(t.shape(), DType::kF16);
    for (int64_t i = 0; i < t.numel(); ++i) h.data_as<f16_t>()[i] = f16_t(static_cast<float>(t.data_as<bf16_t>()[i]));
    return h;
  };
  for (const DType dtype : {DType::kBF16, DType::kF16}) {
    const auto of = [&](const Tensor& t) { return dtype == DType::kBF16 ? t : as_f16(t); };
    const Tensor q = of(q_), shared = of(k), cache = of(cache_);
    const Tensor q_emu = to_device(q.view(), kEmu), shared_emu = to_device(shared.view(), kEmu),
                 cache_emu = to_device(cache.view(), kEmu);
    const auto run = [](auto& w, const Tensor& rows, const Tensor& prefix, const Tensor& pages) {
      return w.forward(
          {.q = rows, .k_shared = prefix, .v_shared = prefix, .unique_kv_cache = op::PagedKv(pages.view())});
    };
    expect_near(run(gpu, q_emu, shared_emu, cache_emu), run(cpu, q, shared, cache), dtype);
  }
}

TEST_F(Decode, WhatTheKernelDoesNotKnowIsSaid) {
  const Tensor q = to_device(values({8, 60}, 7).view(), kEmu), kv = to_device(values({20, 2, 60}, 11).view(), kEmu);
  expect_error(ErrorKind::kNotImplementedError,
               "cuda: head dimensions are multiples of 8 from 16 to 512; without tensor cores: head dimensions are "
               "multiples of 8 up to 576",
               [&] { single_decode_with_kv_cache({.q = q, .k = kv, .v = kv}); });
}

/// Rows a warp, threads and types of products follow the GPU: 32 rows in four warps where an SM holds two such blocks,
/// else in eight, else 16; products of e4m3 from sm_89 on, whose sums keep 14 bits.
TEST(Attention, KernelsOfOtherGpus) {
  const op::Op& op = *op::find_op("single_prefill_with_kv_cache");
  const op::Case rows[] = {
      {"wide", "q=bf16:150x2x128 k=bf16:170x1x128 v=bf16:170x1x128 causal=True return_lse=True"},
      {"short", "q=f16:60x2x128 k=f16:170x1x128 v=f16:170x1x128 window_left=40 causal=True return_lse=True"},
      {"e4m3", "q=e4m3:70x4x64 k=e4m3:170x2x64 v=e4m3:170x2x64 k_scale=0.5 v_scale=2.0 causal=True return_lse=True"},
      {"e4m3_d96", "q=e4m3:3x4x96 k=e4m3:300x1x96 v=e4m3:300x1x96 logits_soft_cap=5.0 return_lse=True"}};
  for (const int arch : {80, 89, 120}) {
    const jit::EmulatedArch emulated(arch);
    for (const op::Case& row : rows) {
      const cases::CaseResult r = cases::run_case(op, row, {.device = kEmu, .seeds = 1});
      EXPECT_TRUE(r.passed) << "sm_" << arch << ", " << row.name << ": " << r.failure;
      EXPECT_EQ(r.unsupported, "");
    }
  }
}

/// A factor of 1 tells decode that exponents are computed one by one; where it is the product, they are right as well.
TEST(Attention, ALogitFactorOfOne) {
  const op::Case row{"ln2", "q=bf16:4x128 k=bf16:300x1x128 v=bf16:300x1x128 sm_scale=0.6931471805599453"};
  const cases::CaseResult r =
      cases::run_case(*op::find_op("single_decode_with_kv_cache"), row, {.device = kEmu, .seeds = 1});
  EXPECT_TRUE(r.passed) << r.failure;
  EXPECT_EQ(r.unsupported, "");
}

}  // namespace
}  // namespace flashinfer
