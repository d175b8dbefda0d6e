// SPDX-License-Identifier: Apache-2.0
// The LSE of a row that sees one key is the logit of that key, exactly: log2 of one weight of 1 is 0.
#include <gtest/gtest.h>

#include <cmath>

#include "flashinfer/ops/attention/op.h"
#include "flashinfer/ops/common/reference.h"
#include "flashinfer/ops/mla/op.h"
#include "tests/ops/data.h"

namespace flashinfer {
namespace {

constexpr DType kTypes[] = {DType::kBF16, DType::kF16, DType::kF32};

/// Zeros, so that every score is 0, in any type.
Tensor zeros(std::initializer_list<int64_t> shape, DType t) { return Tensor::zeros(shape, t); }
void expect_zero(const op::Results& r, std::string_view what) {
  for (float lse : r[1].span<float>()) EXPECT_EQ(lse, 0.0f) << what;
}

TEST(AttentionLse, OneKeyWithScoreZeroGivesZeroInDecode) {
  for (DType t : kTypes)
    for (DType kv : {t, DType::kF8E4M3})
      for (int64_t heads : {1, 2, 4, 8, 16, 21}) {  // every width of a pass
        const Tensor q = zeros({heads, 64}, t), k = zeros({1, 1, 64}, kv);
        expect_zero(single_decode_with_kv_cache({.q = q, .k = k, .v = k, .return_lse = true}),
                    str(name(t), " over ", name(kv), ", ", heads, " heads"));
      }
}

TEST(AttentionLse, OneKeyWithScoreZeroGivesZeroInPrefill) {
  for (DType t : kTypes) {
    const Tensor q = zeros({1, 4, 64}, t), rows = zeros({20, 4, 64}, t), k = zeros({1, 2, 64}, t);
    expect_zero(single_prefill_with_kv_cache({.q = q, .k = k, .v = k, .return_lse = true}), name(t));
    expect_zero(single_prefill_with_kv_cache({.q = rows, .k = k, .v = k, .return_lse = true}), name(t));
  }
}

/// A key whose score is no power of two: its logit in base 2, to the rounding of one product.
TEST(AttentionLse, OneKeyGivesItsLogit) {
  for (DType t : kTypes)
    for (int64_t rows : {1, 20}) {
      const Tensor q = random_tensor<float>({rows, 2, 64}, 1), k = random_tensor<float>({1, 2, 64}, 2);
      const Tensor qt = Tensor::zeros({rows, 2, 64}, t), kt = Tensor::zeros({1, 2, 64}, t);
      // One element each, so that the dot product is exact.
      for (int64_t i = 0; i < rows * 2; ++i) ref::store_element(qt.view(), i * 64, ref::load_element(q.view(), i * 64));
      for (int64_t h = 0; h < 2; ++h) ref::store_element(kt.view(), h * 64, ref::load_element(k.view(), h * 64));
      const auto r = single_prefill_with_kv_cache({.q = qt, .k = kt, .v = kt, .sm_scale = 1.0, .return_lse = true});
      for (int64_t i = 0; i < rows * 2; ++i) {
        const double logit =
            ref::load_element(qt.view(), i * 64) * ref::load_element(kt.view(), i % 2 * 64) * 1.4426950408889634;
        EXPECT_NEAR(static_cast<double>(r[1].data_as<float>()[i]), logit, 2e-7 * std::max(1.0, std::abs(logit)))
            << name(t) << " row " << i;
      }
    }
}

TEST(AttentionLse, OneKeyWithScoreZeroGivesZeroInMla) {
  const Tensor qo = ints({0, 1}), kv = ints({0, 1}), ids = ints({0}), len = ints({1});
  for (DType t : kTypes)
    for (int64_t heads : {2, 16}) {  // keys unpacked and packed
      BatchMLAPagedAttentionWrapper w;
      w.plan({.qo_indptr = qo,
              .kv_indptr = kv,
              .kv_indices = ids,
              .kv_len_arr = len,
              .num_heads = heads,
              .head_dim_ckv = 64,
              .head_dim_kpe = 32,
              .page_size = 1,
              .causal = false,
              .sm_scale = 0.1,
              .q_data_type = t,
              .kv_data_type = t});
      const Tensor q = zeros({1, heads, 96}, t), cache = zeros({1, 1, 96}, t);
      expect_zero(w.run({.return_lse = true, .query = op::PagedKv(q), .kv_cache = op::PagedKv(cache)}),
                  str(name(t), ", ", heads, " heads"));
    }
}

}  // namespace
}  // namespace flashinfer
