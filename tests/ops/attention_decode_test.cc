// SPDX-License-Identifier: Apache-2.0
// The decode kernel: keys that a row does not see do not touch it, splits change nothing.
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <random>
#include <vector>

#include "flashinfer/core/context.h"
#include "flashinfer/core/int_math.h"
#include "flashinfer/ops/attention/op.h"
#include "tests/ops/data.h"

namespace flashinfer {
namespace {

/// The output on a pool of so many threads.
Tensor planned_and_run(const BatchDecodePlan& plan, const BatchDecodeRun& run, int threads) {
  const auto pool = make_thread_pool(threads);
  Context context = Context::current();
  context.executor = *pool;
  ContextScope scope(context);
  Tensor workspace = Tensor::empty({0}, DType::kU8);
  BatchDecodeWithPagedKVCacheWrapper w(workspace);
  w.plan(plan);
  const std::pair<Tensor, Tensor> r = w.run(run);
  return r.first;
}

/// One request of `n` tokens in pages of 16 in order, `len` query tokens, D 64.
template <class T>
Tensor decode(const Tensor& q, const Tensor& cache, int64_t n, int64_t hkv, int64_t len, int64_t window, int threads) {
  std::vector<int32_t> pages;
  for (int32_t i = 0; i < ceil_div(n, 16); ++i) pages.push_back(i);
  const Tensor indptr = ints({0, static_cast<int32_t>(pages.size())}), ids = ints(pages),
               last = ints({static_cast<int32_t>((n - 1) % 16 + 1)});
  return planned_and_run({.indptr = indptr,
                          .indices = ids,
                          .last_page_len = last,
                          .num_qo_heads = q.size(1),
                          .num_kv_heads = hkv,
                          .head_dim = 64,
                          .page_size = 16,
                          .window_left = window,
                          .q_data_type = dtype_of<T>::value,
                          .q_len_per_req = len},
                         {.q = q, .paged_kv_cache = cache, .return_lse = true}, threads);
}

/// NaN in K and V of keys that a row does not see must not reach it: keys after it, keys before its window.
template <class T>
void expect_hidden_keys_do_not_leak(int64_t group) {
  const int64_t n = 150, hkv = 2;
  const Tensor q = random_tensor<T>({2, group * hkv, 64}, 1), cache = random_tensor<T>({10, 2, 16, hkv, 64}, 2);
  const Tensor want = decode<T>(q, cache, n, hkv, 2, 40, 1);
  auto spoil = [&](int64_t token) {
    for (int64_t plane = 0; plane < 2; ++plane)
      for (int64_t i = 0; i < hkv * 64; ++i)
        cache.data_as<T>()[((token / 16 * 2 + plane) * 16 + token % 16) * hkv * 64 + i] = T(NAN);
  };
  for (int64_t token = 0; token < 108; ++token) spoil(token);  // the rows see [108, 149) and [109, 150)
  for (int64_t token = n; token < 160; ++token) spoil(token);
  const Tensor hidden = decode<T>(q, cache, n, hkv, 2, 40, 1);
  EXPECT_EQ(std::memcmp(want.data(), hidden.data(), static_cast<size_t>(want.nbytes())), 0)
      << "keys that no row sees, G " << group;
  // Key 149 is row 1's alone: row 0 keeps its bits.
  const Tensor fresh = random_tensor<T>({10, 2, 16, hkv, 64}, 2);
  for (int64_t i = 0; i < hkv * 64; ++i)
    fresh.data_as<T>()[((149 / 16 * 2 + 1) * 16 + 149 % 16) * hkv * 64 + i] = T(NAN);
  const Tensor one = decode<T>(q, fresh, n, hkv, 2, 40, 1);
  EXPECT_EQ(std::memcmp(want.data(), one.data(), static_cast<size_t>(want.nbytes() / 2)), 0)
      << "row 0 does not see key 149, G " << group;
  EXPECT_TRUE(std::isnan(static_cast<float>(one.data_as<T>()[group * hkv * 64]))) << "row 1 does";
}
TEST(AttentionDecode, HiddenKeysDoNotLeak) {
  for (int64_t group : {1, 2, 4, 5, 7, 8, 13, 16}) {
    expect_hidden_keys_do_not_leak<bf16_t>(group);
    expect_hidden_keys_do_not_leak<f16_t>(group);
  }
}

TEST(AttentionDecode, SplittingChangesNothing) {
  const Tensor q = random_tensor<bf16_t>({1, 8, 64}, 1), cache = random_tensor<bf16_t>({200, 2, 16, 2, 64}, 2);
  const Tensor want = decode<bf16_t>(q, cache, 3150, 2, 1, -1, 1);
  for (int threads : {2, 3, 16}) {
    const Tensor got = decode<bf16_t>(q, cache, 3150, 2, 1, -1, threads);
    EXPECT_EQ(std::memcmp(want.data(), got.data(), static_cast<size_t>(want.nbytes())), 0) << threads << " threads";
  }
}

/// One request of 1229 keys (pool: 1232), D 128, two KV heads; a query token for each of q.size(0), of which the first
/// sees keys from 131 - q.size(0) on.
Tensor decode_narrow(const Tensor& q, const Tensor& cache, const Tensor& scales, int threads) {
  std::vector<int32_t> pages;
  for (int32_t i = 0; i < 77; ++i) pages.push_back(76 - i);
  const Tensor indptr = ints({0, 77}), ids = ints(pages), last = ints({13});
  BatchDecodeRun run{.q = q, .paged_kv_cache = cache, .return_lse = true};
  if (scales.defined()) run.kv_cache_sf = scales;
  return planned_and_run({.indptr = indptr,
                          .indices = ids,
                          .last_page_len = last,
                          .num_qo_heads = q.size(1),
                          .num_kv_heads = 2,
                          .head_dim = 128,
                          .page_size = 16,
                          .window_left = 1098,
                          .q_data_type = DType::kBF16,
                          .kv_data_type = cache.dtype(),
                          .q_len_per_req = q.size(0)},
                         run, threads);
}
/// What NVFP4 codes stand for, which is exact in bf16.
Tensor values_of(const Tensor& codes, const Tensor& scales) {
  constexpr float kGrid[8] = {0, 0.5f, 1, 1.5f, 2, 3, 4, 6};
  Tensor values = Tensor::empty({77, 2, 16, 2, 128}, DType::kBF16);
  for (int64_t i = 0; i < values.numel(); ++i) {
    const int code = codes.data_as<uint8_t>()[i / 2] >> (i % 2 * 4) & 15;
    values.data_as<bf16_t>()[i] =
        bf16_t((code & 8 ? -1.0f : 1.0f) * kGrid[code & 7] * static_cast<float>(scales.data_as<e4m3_t>()[i / 16]));
  }
  return values;
}
Tensor random_codes() {
  Tensor codes = Tensor::empty({77, 2, 16, 2, 64}, DType::kU8);
  std::mt19937 rng(4);
  for (uint8_t& x : codes.span<uint8_t>()) x = static_cast<uint8_t>(rng());
  return codes;
}
TEST(AttentionDecode, Nvfp4IsItsValues) {
  const Tensor codes = random_codes(), scales = random_tensor<e4m3_t>({77, 2, 16, 2, 8}, 3, 0.25f),
               values = values_of(codes, scales);
  for (int64_t group : {1, 2, 3, 4, 5, 8}) {
    const Tensor q = random_tensor<bf16_t>({2, 2 * group, 128}, 5);
    const Tensor want = decode_narrow(q, values, Tensor(), 1), got = decode_narrow(q, codes, scales, 1);
    for (int64_t i = 0; i < want.numel(); ++i)
      ASSERT_NEAR(static_cast<float>(got.data_as<bf16_t>()[i]), static_cast<float>(want.data_as<bf16_t>()[i]), 0.01)
          << "G " << group << ", element " << i;
    EXPECT_TRUE(same_bytes(got, decode_narrow(q, codes, scales, 3))) << "3 threads, G " << group;
    const Tensor spoilt = Tensor::clone(scales.view());  // tokens 0..128, before both windows, and 1229 to 1231
    const int64_t page = 2 * 16 * 2 * 8;
    std::memset(spoilt.data_as<char>() + 69 * page, 0x7f, static_cast<size_t>(8 * page));
    for (int64_t plane = 0; plane < 2; ++plane) {
      std::memset(spoilt.data_as<char>() + 68 * page + plane * 16 * 16, 0x7f, 16);
      std::memset(spoilt.data_as<char>() + (plane * 16 + 13) * 16, 0x7f, 48);
    }
    EXPECT_TRUE(same_bytes(got, decode_narrow(q, codes, spoilt, 1))) << "hidden NaNs, G " << group;
  }
}

/// Whether both caches of the next tests are read by kernels of one instruction set.
bool same_kernel() { return __builtin_cpu_supports("avx512bf16") == __builtin_cpu_supports("avx512vbmi"); }

/// Groups of 6 heads and more become bf16 while they are multiplied, which gives the bits of a bf16 cache of the same
/// values.
void expect_values_of(const Tensor& values, const Tensor& cache, const Tensor& scales, const char* what, bool bits) {
  for (int64_t group : {6, 8, 16, 24}) {
    const Tensor q = random_tensor<bf16_t>({1, 2 * group, 128}, 5), want = decode_narrow(q, values, Tensor(), 1),
                 got = decode_narrow(q, cache, scales, 1);
    EXPECT_TRUE(!bits || same_bytes(got, want)) << what << ", G " << group;
    for (int64_t i = 0; i < want.numel(); ++i)
      ASSERT_NEAR(static_cast<float>(got.data_as<bf16_t>()[i]), static_cast<float>(want.data_as<bf16_t>()[i]), 0.01)
          << what << ", G " << group << ", element " << i;
  }
}
/// Byte 0x7f in every slot before key 130, which the window hides, and behind the last key: NaN in e4m3, e5m2 and e4m3
/// scales.
void spoil(const Tensor& cache) {
  const int64_t slot = cache.nbytes() / (77 * 2 * 16);
  for (int64_t page = 0; page < 77; ++page)  // page p holds keys from 16 (76 - p) on
    for (int64_t i = 0; i < 32; ++i)
      if (const int64_t key = 16 * (76 - page) + i % 16; key < 130 || key >= 1229)
        std::memset(cache.data_as<char>() + (page * 32 + i) * slot, 0x7f, static_cast<size_t>(slot));
}
template <class T>
void expect_values_of_codes(const char* what, bool bits) {
  const Tensor cache = random_tensor<T>({77, 2, 16, 2, 128}, 6),
               values = Tensor::empty({77, 2, 16, 2, 128}, DType::kBF16);
  for (int64_t i = 0; i < values.numel(); ++i)
    values.data_as<bf16_t>()[i] = bf16_t(static_cast<float>(cache.data_as<T>()[i]));
  spoil(cache);
  expect_values_of(values, cache, Tensor(), what, bits);
}
void expect_values_of_every_format(bool bits) {
  expect_values_of_codes<e4m3_t>("e4m3", bits);
  expect_values_of_codes<e5m2_t>("e5m2", bits);
  const Tensor codes = random_codes(), scales = random_tensor<e4m3_t>({77, 2, 16, 2, 8}, 3, 0.25f),
               values = values_of(codes, scales);
  spoil(scales);
  expect_values_of(values, codes, scales, "NVFP4", bits);
}
TEST(AttentionDecode, RowsConvertedOnTheWayAreTheirValues) { expect_values_of_every_format(false); }
TEST(AttentionDecode, RowsConvertedOnTheWayHaveTheBitsOfTheirValues) {
  if (!same_kernel()) GTEST_SKIP() << "this CPU has one of avx512bf16 and avx512vbmi: the kernels differ";
  expect_values_of_every_format(true);
}

}  // namespace
}  // namespace flashinfer
