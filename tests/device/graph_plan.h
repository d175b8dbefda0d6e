// SPDX-License-Identifier: Apache-2.0
// Page tables, buffers and tensors on the emulator for tests of use_cuda_graph=True.
#pragma once
#include <gtest/gtest.h>

#include <cstring>
#include <random>
#include <vector>

#include "../ops/errors.h"
#include "flashinfer/core/int_math.h"
#include "flashinfer/core/transfer.h"
#include "flashinfer/ops/attention/op.h"

namespace flashinfer::graph_plan_test {

inline constexpr Device kEmulator{DeviceType::kEmu, 0};
inline constexpr int64_t kHeads = 4, kKvHeads = 2, kDim = 64, kPage = 16, kPages = 100;
inline constexpr ErrorKind kValue = ErrorKind::kValueError;

inline Tensor ints(const std::vector<int32_t>& v) {
  return Tensor::copy_of(std::span<const int32_t>(v), {static_cast<int64_t>(v.size())});
}
inline Tensor there(const Tensor& t) { return to_device(t.view(), kEmulator); }
inline Tensor normal(const std::vector<int64_t>& shape, unsigned seed) {
  std::mt19937 random(seed);
  std::normal_distribution<float> d;
  Tensor t = Tensor::empty(shape, DType::kF16);
  for (f16_t& x : t.span<f16_t>()) x = f16_t(d(random));
  return there(t);
}
inline std::vector<int32_t> values(const TensorView& v) {
  const Tensor host = to_device(v, kCpu);
  return {host.data_as<int32_t>(), host.data_as<int32_t>() + host.numel()};
}
inline void expect_same(const Tensor& a, const Tensor& b) {
  ASSERT_EQ(a.nbytes(), b.nbytes());
  const Tensor x = to_device(a.view(), kCpu), y = to_device(b.view(), kCpu);
  EXPECT_EQ(std::memcmp(x.data(), y.data(), static_cast<size_t>(x.nbytes())), 0);
}

/// A page table for requests of these lengths, pages scattered.
struct Table {
  std::vector<int32_t> indptr{0}, indices, last;
  explicit Table(const std::vector<int32_t>& lengths, int32_t step = 7) {
    for (const int32_t n : lengths) {
      const auto pages = static_cast<int32_t>(ceil_div(n, kPage));
      for (int32_t i = 0; i < pages; ++i)
        indices.push_back(static_cast<int32_t>((indices.size() + 1) * static_cast<size_t>(step) % kPages));
      indptr.push_back(indptr.back() + pages);
      last.push_back(n ? static_cast<int32_t>((n - 1) % kPage + 1) : 1);
    }
  }
};

struct Buffers {
  Tensor qo = there(Tensor::zeros({4}, DType::kI32)), indptr = there(Tensor::zeros({4}, DType::kI32)),
         indices = there(Tensor::zeros({kPages}, DType::kI32)), last = there(Tensor::zeros({3}, DType::kI32)),
         workspace = Tensor::empty({0}, DType::kU8, kEmulator);
};
/// A decode wrapper for graphs.
inline BatchDecodeInit graph_init(const Buffers& b) {
  return {.float_workspace_buffer = b.workspace,
          .use_cuda_graph = true,
          .paged_kv_indptr_buffer = b.indptr,
          .paged_kv_indices_buffer = b.indices,
          .paged_kv_last_page_len_buffer = b.last};
}
inline const Tensor& cache() {
  static const Tensor& t = *new Tensor(normal({kPages, 2, kPage, kKvHeads, kDim}, 1));
  return t;
}

inline BatchDecodePlan decode_plan(const Tensor& indptr, const Tensor& indices, const Tensor& last) {
  return {.indptr = indptr,
          .indices = indices,
          .last_page_len = last,
          .num_qo_heads = kHeads,
          .num_kv_heads = kKvHeads,
          .head_dim = kDim,
          .page_size = kPage,
          .q_data_type = DType::kF16};
}

}  // namespace flashinfer::graph_plan_test
