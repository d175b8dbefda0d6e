// SPDX-License-Identifier: Apache-2.0
// Attention on the emulator beyond the case tables: plans from arrays on the device, arrays that stay there, what is
// refused.
#include <gtest/gtest.h>

#include <cmath>
#include <numeric>

#include "../ops/errors.h"
#include "flashinfer/core/transfer.h"
#include "flashinfer/jit/emulator.h"
#include "flashinfer/ops/attention/op.h"
#include "flashinfer/ops/mla/op.h"

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
  Tensor workspace_ = Tensor::zeros({1 << 20}, DType::kU8);
};

TEST_F(Decode, PlansFromArraysOnTheDevice) {
  BatchDecodeWithPagedKVCacheWrapper cpu({.float_workspace_buffer = workspace_.view()}),
      gpu({.float_workspace_buffer = workspace_.view()});
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
  BatchDecodeWithPagedKVCacheWrapper cpu({.float_workspace_buffer = workspace_.view()}),
      gpu({.float_workspace_buffer = workspace_.view()});
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
  BatchDecodeWithPagedKVCacheWrapper cpu({.float_workspace_buffer = workspace_.view()}),
      gpu({.float_workspace_buffer = workspace_.view()});
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

TEST_F(Decode, WhatTheKernelDoesNotKnowIsSaid) {
  const Tensor q = to_device(values({8, 60}, 7).view(), kEmu), kv = to_device(values({20, 2, 60}, 11).view(), kEmu);
  expect_error(ErrorKind::kNotImplementedError,
               "cuda: head dimensions are multiples of 8 from 16 to 256; without tensor cores: head dimensions are "
               "multiples of 8 up to 256",
               [&] { single_decode_with_kv_cache({.q = q, .k = kv, .v = kv}); });
  BatchMLAPagedAttentionWrapper mla({.float_workspace_buffer = workspace_.view()});
  const Tensor one = to_device(indices({0, 1}).view(), kEmu), length = indices({5}), page = indices({0});
  expect_error(
      ErrorKind::kNotImplementedError,
      "BatchMLAPagedAttentionWrapper.plan: no implementation supports this call; this op has no kernel for GPUs "
      "yet, and a tensor is on emu:0: copy it to the host",
      [&] {
        mla.plan({.qo_indptr = one,
                  .kv_indptr = one,
                  .kv_indices = page,
                  .kv_len_arr = length,
                  .num_heads = 16,
                  .head_dim_ckv = 512,
                  .head_dim_kpe = 64,
                  .page_size = 16,
                  .causal = true,
                  .sm_scale = 0.1,
                  .q_data_type = DType::kBF16,
                  .kv_data_type = DType::kBF16});
      });
}

}  // namespace
}  // namespace flashinfer
