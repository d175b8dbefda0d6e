// SPDX-License-Identifier: Apache-2.0
// A small request for MLA's tests.
#pragma once
#include <gtest/gtest.h>

#include <cstring>
#include <string>

#include "flashinfer/ops/mla/op.h"
#include "tests/ops/data.h"

namespace flashinfer::mla_test {

inline constexpr int64_t kCkv = 96, kKpe = 32, kAll = kCkv + kKpe;

inline void expect_bits(const TensorView& got, const TensorView& want, const std::string& what) {
  const Tensor g = Tensor::clone(got), w = Tensor::clone(want);
  ASSERT_EQ(g.nbytes(), w.nbytes()) << what;
  EXPECT_EQ(std::memcmp(g.data(), w.data(), static_cast<size_t>(w.nbytes())), 0) << what;
}
inline void expect_bits(const op::Results& got, const TensorView& want, const std::string& what) {
  expect_bits(got[0].view(), want, what);
}

/// One request of 3 query tokens and 20 keys in two pages of 16.
struct Request {
  static constexpr int64_t kHeads = 4;
  Tensor workspace = Tensor::empty({0}, DType::kU8), qo = ints({0, 3}), indptr = ints({0, 2}), indices = ints({1, 0}),
         len = ints({20});
  Tensor q_nope = random_tensor<bf16_t>({3, kHeads, kCkv}, 1), q_pe = random_tensor<bf16_t>({3, kHeads, kKpe}, 2);
  Tensor ckv = random_tensor<bf16_t>({3, 16, kCkv}, 3), kpe = random_tensor<bf16_t>({3, 16, kKpe}, 4);
  BatchMLAPagedAttentionWrapper w{workspace};
  BatchMlaPlan plan() {
    return {.qo_indptr = qo,
            .kv_indptr = indptr,
            .kv_indices = indices,
            .kv_len_arr = len,
            .num_heads = kHeads,
            .head_dim_ckv = kCkv,
            .head_dim_kpe = kKpe,
            .page_size = 16,
            .causal = true,
            .sm_scale = 0.1,
            .q_data_type = DType::kBF16,
            .kv_data_type = DType::kBF16};
  }
  BatchMlaRun run() { return {.q_nope = q_nope, .q_pe = q_pe, .ckv_cache = ckv, .kpe_cache = kpe}; }
};

}  // namespace flashinfer::mla_test
