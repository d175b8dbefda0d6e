// SPDX-License-Identifier: Apache-2.0
// Attention, beyond the case tables: rows that must be equal bit by bit, memory that must not be read,
// errors.
#include <gtest/gtest.h>
#include <sys/mman.h>

#include <cmath>
#include <cstring>
#include <functional>
#include <random>
#include <set>
#include <vector>

#include "flashinfer/core/context.h"
#include "flashinfer/core/int_math.h"
#include "flashinfer/core/version.h"
#include "flashinfer/ops/attention/op.h"
#include "flashinfer/ops/page/op.h"
#include "tests/ops/data.h"
#include "tests/ops/errors.h"

namespace flashinfer {
namespace {

constexpr int64_t kHq = 6, kHkv = 2, kD = 64;

void expect_bits(const Tensor& got, const TensorView& want, const std::string& what) {
  const Tensor w = Tensor::clone(want);
  ASSERT_EQ(got.nbytes(), w.nbytes()) << what;
  EXPECT_EQ(std::memcmp(got.data(), w.data(), static_cast<size_t>(w.nbytes())), 0) << what;
}

/// A pool that holds the tokens of `k`, `v` [n, Hkv, D] in pages of `page_size`, in a scattered order, with NaN in all
/// else.
template <class T>
struct Pool {
  Tensor cache;
  std::vector<int32_t> pages;
  Pool(const Tensor& k, const Tensor& v, int64_t page_size) {
    const int64_t n = k.size(0), count = ceil_div(n, page_size), row = kHkv * kD;
    cache = Tensor::empty({count + 2, 2, page_size, kHkv, kD}, dtype_of<T>::value);
    for (T& x : cache.span<T>()) x = T(NAN);
    for (int64_t i = 0; i < count; ++i) pages.push_back(static_cast<int32_t>((count + 1) - i));
    for (int64_t j = 0; j < n; ++j) {
      T* page = cache.data_as<T>() + pages[static_cast<size_t>(j / page_size)] * 2 * page_size * row;
      std::memcpy(page + j % page_size * row, k.data_as<T>() + j * row, static_cast<size_t>(row) * sizeof(T));
      std::memcpy(page + (page_size + j % page_size) * row, v.data_as<T>() + j * row,
                  static_cast<size_t>(row) * sizeof(T));
    }
  }
  std::vector<int32_t> first(int64_t tokens, int64_t page_size) const {
    return {pages.begin(), pages.begin() + ceil_div(tokens, page_size)};
  }
};
int32_t last_len(int64_t tokens, int64_t page_size) {
  return tokens ? static_cast<int32_t>((tokens - 1) % page_size + 1) : 0;
}

/// Rows [begin, end) of a request of `n` tokens, through the paged prefill, with another request before and an empty
/// one.
template <class T>
std::pair<Tensor, Tensor> paged_rows(const Pool<T>& pool, const Tensor& q, int64_t begin, int64_t end,
                                     int64_t page_size) {
  Tensor workspace = Tensor::empty({0}, DType::kU8);
  BatchPrefillWithPagedKVCacheWrapper w(workspace);
  const int64_t before =
      std::min<int64_t>(7, end);  // tokens of the batch's first request: the same pages, its first rows
  std::vector<int32_t> indices = pool.first(before, page_size);
  const auto first_pages = static_cast<int32_t>(indices.size());
  for (int32_t p : pool.first(end, page_size)) indices.push_back(p);
  const int32_t rows = static_cast<int32_t>(end - begin), first_rows = 3;
  const Tensor qo = ints({0, first_rows, first_rows, first_rows + rows}),
               kv = ints({0, first_pages, first_pages, static_cast<int32_t>(indices.size())});
  const Tensor ids = ints(indices), last = ints({last_len(before, page_size), 1, last_len(end, page_size)});
  w.plan({.qo_indptr = qo,
          .paged_kv_indptr = kv,
          .paged_kv_indices = ids,
          .paged_kv_last_page_len = last,
          .num_qo_heads = kHq,
          .num_kv_heads = kHkv,
          .head_dim_qk = kD,
          .page_size = page_size,
          .causal = true,
          .q_data_type = dtype_of<T>::value});
  Tensor all = Tensor::empty({first_rows + rows, kHq, kD}, dtype_of<T>::value);
  std::memcpy(all.data(), q.data(), static_cast<size_t>(first_rows * kHq * kD) * sizeof(T));
  std::memcpy(all.data_as<T>() + first_rows * kHq * kD, q.data_as<T>() + begin * kHq * kD,
              static_cast<size_t>(rows * kHq * kD) * sizeof(T));
  const std::pair<Tensor, Tensor> r = w.run({.q = all, .paged_kv_cache = pool.cache, .return_lse = true});
  return {Tensor::clone(r.first.view().slice(0, first_rows, first_rows + rows)),
          Tensor::clone(r.second.view().slice(0, first_rows, first_rows + rows))};
}

/// Rows at `positions`, each as a decode step of its own request, in one batch.
template <class T>
std::pair<Tensor, Tensor> decode_rows(const Pool<T>& pool, const Tensor& q, const std::vector<int64_t>& positions,
                                      int64_t page_size) {
  Tensor workspace = Tensor::empty({0}, DType::kU8);
  BatchDecodeWithPagedKVCacheWrapper w(workspace);
  std::vector<int32_t> indptr{0}, indices, last;
  const auto n = static_cast<int64_t>(positions.size());
  Tensor rows = Tensor::empty({n, kHq, kD}, dtype_of<T>::value);
  for (int64_t i = 0; i < n; ++i) {
    const int64_t at = positions[static_cast<size_t>(i)];
    for (int32_t p : pool.first(at + 1, page_size)) indices.push_back(p);
    indptr.push_back(static_cast<int32_t>(indices.size()));
    last.push_back(last_len(at + 1, page_size));
    std::memcpy(rows.data_as<T>() + i * kHq * kD, q.data_as<T>() + at * kHq * kD,
                static_cast<size_t>(kHq * kD) * sizeof(T));
  }
  const Tensor a = ints(indptr), b = ints(indices), c = ints(last);
  w.plan({.indptr = a,
          .indices = b,
          .last_page_len = c,
          .num_qo_heads = kHq,
          .num_kv_heads = kHkv,
          .head_dim = kD,
          .page_size = page_size,
          .q_data_type = dtype_of<T>::value});
  return w.run({.q = rows, .paged_kv_cache = pool.cache, .return_lse = true});
}

template <class T>
void expect_near(const TensorView& got, const TensorView& want, double bound, const std::string& what) {
  const Tensor a = Tensor::clone(got), b = Tensor::clone(want);
  ASSERT_EQ(a.nbytes(), b.nbytes()) << what;
  for (size_t i = 0; i < a.span<T>().size(); ++i)
    ASSERT_NEAR(static_cast<float>(a.span<T>()[i]), static_cast<float>(b.span<T>()[i]), bound)
        << what << ", element " << i;
}
/// Rows at `positions`, each by single_decode over the tokens before it.
template <class T>
std::pair<Tensor, Tensor> single_decodes(const Tensor& q, const Tensor& k, const Tensor& v,
                                         const std::vector<int64_t>& positions) {
  const auto n = static_cast<int64_t>(positions.size());
  Tensor o = Tensor::empty({n, kHq, kD}, dtype_of<T>::value), lse = Tensor::empty({n, kHq}, DType::kF32);
  for (int64_t i = 0; i < n; ++i) {
    const int64_t at = positions[static_cast<size_t>(i)];
    const TensorView row = q.view().select(0, at), keys = k.view().slice(0, 0, at + 1),
                     values = v.view().slice(0, 0, at + 1);
    const TensorView out = o.view().select(0, i), out_lse = lse.view().select(0, i);
    single_decode_with_kv_cache({.q = row, .k = keys, .v = values, .return_lse = true, .out = out, .lse = out_lse});
  }
  return {o, lse};
}

/// Single prefill against all other operators that compute the same rows, and single decode against batch decode: bit
/// by bit. Decode against prefill: within rounding. 2150 tokens cross a chunk of 2048, and four of 512.
template <class T>
void expect_same_rows(int64_t n, double bound) {
  const Tensor q = random_tensor<T>({n, kHq, kD}, 1), k = random_tensor<T>({n, kHkv, kD}, 2),
               v = random_tensor<T>({n, kHkv, kD}, 3);
  const std::pair<Tensor, Tensor> want =
      single_prefill_with_kv_cache({.q = q, .k = k, .v = v, .causal = true, .return_lse = true});
  for (T x : want.first.span<T>()) ASSERT_TRUE(std::isfinite(static_cast<float>(x)));
  const std::vector<int64_t> positions = {0, 1, 15, 62, 63, 64, 65, n / 2, n - 1};
  const auto [decoded, decoded_lse] = single_decodes<T>(q, k, v, positions);
  for (size_t i = 0; i < positions.size(); ++i) {
    const std::string row = "single decode at " + std::to_string(positions[i]);
    expect_near<T>(decoded.view().select(0, static_cast<int64_t>(i)), want.first.view().select(0, positions[i]), bound,
                   row);
    expect_near<float>(decoded_lse.view().select(0, static_cast<int64_t>(i)),
                       want.second.view().select(0, positions[i]), 1e-3, row);
  }
  for (int threads : {1, 3}) {
    if (threads == 1 && *build::sanitizer_flags()) continue;  // the same work on fewer threads, and slow there
    const auto threads_pool = make_thread_pool(threads);
    Context context = Context::current();
    context.executor = *threads_pool;
    ContextScope scope(context);
    for (int64_t page_size : {1, 5, 16, 64}) {
      const std::string what = "page size " + std::to_string(page_size) + ", threads " + std::to_string(threads);
      const Pool<T> pool(k, v, page_size);
      for (const auto& [begin, end] : {std::pair<int64_t, int64_t>{0, n}, {0, n / 3}, {n / 3, n}, {n - 9, n}}) {
        const auto [o, lse] = paged_rows<T>(pool, q, begin, end, page_size);
        expect_bits(o, want.first.view().slice(0, begin, end), "out, rows from " + std::to_string(begin) + ", " + what);
        expect_bits(lse, want.second.view().slice(0, begin, end),
                    "lse, rows from " + std::to_string(begin) + ", " + what);
      }
      const auto [o, lse] = decode_rows<T>(pool, q, positions, page_size);
      expect_bits(o, decoded, "batch decode, " + what);
      expect_bits(lse, decoded_lse, "lse of batch decode, " + what);
    }
  }
}
TEST(Attention, RowsAreBitwiseTheSameWhateverTheWayBf16) { expect_same_rows<bf16_t>(2150, 2e-2); }
TEST(Attention, RowsAreBitwiseTheSameWhateverTheWayF16) { expect_same_rows<f16_t>(150, 2e-3); }
TEST(Attention, RowsAreBitwiseTheSameWhateverTheWayF32) { expect_same_rows<float>(150, 1e-5); }

TEST(Attention, SingleDecodeIsTheLastRowOfPrefill) {
  const Tensor q = random_tensor<bf16_t>({5, kHq, kD}, 1), k = random_tensor<bf16_t>({300, kHkv, kD}, 2),
               v = random_tensor<bf16_t>({300, kHkv, kD}, 3);
  const Tensor rows = single_prefill_with_kv_cache({.q = q, .k = k, .v = v, .causal = true});
  const Tensor last = Tensor::clone(q.view().select(0, 4));
  expect_bits(single_decode_with_kv_cache({.q = last, .k = k, .v = v}), rows.view().select(0, 4), "single decode");
}

TEST(Attention, ARowThatSeesNothingIsZeroAndMinusInfinity) {
  const Tensor q = random_tensor<bf16_t>({9, kHq, kD}, 1), k = random_tensor<bf16_t>({4, kHkv, kD}, 2);
  const std::pair<Tensor, Tensor> r =
      single_prefill_with_kv_cache({.q = q, .k = k, .v = k, .causal = true, .return_lse = true});
  for (int64_t i = 0; i < 9; ++i) {
    for (int64_t h = 0; h < kHq; ++h) {
      EXPECT_EQ(r.second.data_as<float>()[i * kHq + h] == -INFINITY, i < 5) << i;
      for (int64_t d = 0; d < kD && i < 5; ++d) EXPECT_EQ(r.first.data_as<bf16_t>()[(i * kHq + h) * kD + d].bits, 0);
    }
  }
}

TEST(Attention, OneVisibleKeyGivesItsValue) {
  const Tensor q = random_tensor<bf16_t>({1, kHq, kD}, 1), k = random_tensor<bf16_t>({70, kHkv, kD}, 2),
               v = random_tensor<bf16_t>({70, kHkv, kD}, 3);
  Tensor mask = Tensor::zeros({1, 70}, DType::kBool);
  mask.data_as<bool>()[66] = true;
  const Tensor o = single_prefill_with_kv_cache({.q = q, .k = k, .v = v, .custom_mask = mask});
  for (int64_t h = 0; h < kHq; ++h)
    for (int64_t d = 0; d < kD; ++d)
      EXPECT_EQ(o.data_as<bf16_t>()[h * kD + d].bits, v.data_as<bf16_t>()[(66 * kHkv + h / 3) * kD + d].bits);
}

TEST(Attention, ANaNInAQueryShows) {
  Tensor q = random_tensor<bf16_t>({1, kHq, kD}, 1);
  const Tensor k = random_tensor<bf16_t>({70, kHkv, kD}, 2);
  q.data_as<bf16_t>()[3] = bf16_t(NAN);
  const std::pair<Tensor, Tensor> r = single_prefill_with_kv_cache({.q = q, .k = k, .v = k, .return_lse = true});
  EXPECT_TRUE(std::isnan(static_cast<float>(r.first.data_as<bf16_t>()[0])));
  EXPECT_TRUE(std::isnan(r.second.data_as<float>()[0]));
  EXPECT_FALSE(std::isnan(static_cast<float>(r.first.data_as<bf16_t>()[kD])));
}

/// Rows that do not see a key must not depend on what it holds; rows that see it must. Key 77 is in a block whose
/// first keys many rows see.
template <class T>
void expect_hidden(SinglePrefill a, const Tensor& k, const Tensor& v, const std::function<bool(int64_t)>& sees,
                   const std::string& what) {
  a.k = k, a.v = v, a.return_lse = true;
  const std::pair<Tensor, Tensor> want = single_prefill_with_kv_cache(a);
  for (float bad : {NAN, INFINITY}) {
    Tensor bad_k = Tensor::clone(k.view()), bad_v = Tensor::clone(v.view());
    for (int64_t i = 0; i < kHkv * kD; ++i)
      bad_k.data_as<T>()[77 * kHkv * kD + i] = bad_v.data_as<T>()[77 * kHkv * kD + i] = T(bad);
    a.k = bad_k, a.v = bad_v;
    const std::pair<Tensor, Tensor> got = single_prefill_with_kv_cache(a);
    for (int64_t i = 0; i < a.q.size(0); ++i) {
      const std::string row = what + ", row " + std::to_string(i);
      if (sees(i)) {
        EXPECT_TRUE(std::isnan(static_cast<float>(got.first.data_as<T>()[i * kHq * kD]))) << row;
      } else {
        expect_bits(Tensor::clone(got.first.view().select(0, i)), want.first.view().select(0, i), row);
        expect_bits(Tensor::clone(got.second.view().select(0, i)), want.second.view().select(0, i), row);
      }
    }
  }
}
template <class T>
void expect_hidden_everywhere() {
  const Tensor q = random_tensor<T>({150, kHq, kD}, 1), k = random_tensor<T>({150, kHkv, kD}, 2),
               v = random_tensor<T>({150, kHkv, kD}, 3);
  expect_hidden<T>({.q = q, .causal = true}, k, v, [](int64_t i) { return i >= 77; }, "causal");
  expect_hidden<T>(
      {.q = q, .causal = true, .window_left = 20}, k, v, [](int64_t i) { return i >= 77 && i <= 97; }, "window");
  Tensor mask = Tensor::zeros({150, 150}, DType::kBool);
  for (int64_t i = 0; i < 150 * 150; ++i) mask.data_as<bool>()[i] = i % 150 != 77 || i / 150 == 3;
  expect_hidden<T>({.q = q, .custom_mask = mask}, k, v, [](int64_t i) { return i == 3; }, "mask");
}
TEST(Attention, WhatAHiddenKeyHoldsStaysHiddenBf16) { expect_hidden_everywhere<bf16_t>(); }
TEST(Attention, WhatAHiddenKeyHoldsStaysHiddenF32) { expect_hidden_everywhere<float>(); }

/// Plans and runs a paged prefill of one request of 20 rows and keys.
struct Request {
  Tensor workspace = Tensor::empty({0}, DType::kU8), qo = ints({0, 20}), indptr = ints({0, 2}), indices = ints({1, 0}),
         last = ints({4});
  Tensor q = random_tensor<bf16_t>({20, kHq, kD}, 1), cache = random_tensor<bf16_t>({3, 2, 16, kHkv, kD}, 2);
  BatchPrefillWithPagedKVCacheWrapper w{workspace};
  BatchPrefillPlan plan() {
    return {.qo_indptr = qo,
            .paged_kv_indptr = indptr,
            .paged_kv_indices = indices,
            .paged_kv_last_page_len = last,
            .num_qo_heads = kHq,
            .num_kv_heads = kHkv,
            .head_dim_qk = kD,
            .page_size = 16,
            .causal = true,
            .q_data_type = DType::kBF16};
  }
  BatchPrefillRun run() { return {.q = q, .paged_kv_cache = cache}; }
};

TEST(Attention, APlanWithoutAMaskForgetsTheLastOne) {
  Request r;
  r.w.plan(r.plan());
  const Tensor want = r.w.run(r.run());
  Tensor mask = Tensor::zeros({400}, DType::kBool);
  BatchPrefillPlan masked = r.plan();
  masked.custom_mask = mask;
  r.w.plan(masked);
  const Tensor hidden = r.w.run(r.run());
  for (bf16_t x : hidden.span<bf16_t>()) ASSERT_EQ(x.bits, 0);
  r.w.plan(r.plan());
  expect_bits(r.w.run(r.run()), want.view(), "after the mask");
}

TEST(Attention, ScalesChangeTheOutput) {
  Request r;
  r.w.plan(r.plan());
  const Tensor plain = r.w.run(r.run());
  for (auto member : {&BatchPrefillRun::q_scale, &BatchPrefillRun::k_scale, &BatchPrefillRun::v_scale}) {
    BatchPrefillRun a = r.run();
    a.*member = 0.5;
    const Tensor scaled = r.w.run(a);
    EXPECT_NE(std::memcmp(plain.data(), scaled.data(), static_cast<size_t>(plain.nbytes())), 0);
  }
}

TEST(Attention, OffsetsPast2To31Elements) {
  // Two pages 2^31 elements apart in reserved memory, of which only the pages are touched.
  const int64_t stride = int64_t{1} << 31, bytes = (stride + 16 * 2 * kHkv * kD) * 2;
  void* memory = mmap(nullptr, static_cast<size_t>(bytes), PROT_READ | PROT_WRITE,
                      MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  ASSERT_NE(memory, MAP_FAILED) << "no address space for 4 GB";
  Request r;
  const int64_t shape[] = {2, 2, 16, kHkv, kD}, strides[] = {stride, 16 * kHkv * kD, kHkv * kD, kD, 1};
  const TensorView far(memory, DType::kBF16, shape, strides);
  for (int64_t p = 0; p < 2; ++p)
    std::memcpy(static_cast<bf16_t*>(memory) + p * stride, r.cache.data_as<bf16_t>() + p * 2 * 16 * kHkv * kD,
                2 * 16 * kHkv * kD * 2);
  r.w.plan(r.plan());
  const Tensor want = r.w.run(r.run());
  expect_bits(r.w.run({.q = r.q, .paged_kv_cache = far}), want.view(), "far pages");
  munmap(memory, static_cast<size_t>(bytes));
}

template <class F>
void expect_plan_error(ErrorKind kind, const std::string& part, F change) {
  Request r;
  BatchPrefillPlan p = r.plan();
  change(p, r);
  expect_error(kind, part, [&] { r.w.plan(p); });
}
template <class F>
void expect_run_error(ErrorKind kind, const std::string& part, F change) {
  Request r;
  r.w.plan(r.plan());
  BatchPrefillRun a = r.run();
  change(a, r);
  expect_error(kind, part, [&] { r.w.run(a); });
}

TEST(Attention, BadTablesAreRejected) {
  constexpr ErrorKind kValue = ErrorKind::kValueError;
  expect_plan_error(kValue, "paged_kv_last_page_len[0] is 17, but must be in 1..16 (page_size)",
                    [](auto&, Request& r) { r.last.data_as<int32_t>()[0] = 17; });
  expect_plan_error(kValue, "paged_kv_last_page_len[0] is 0, but must be in 1..16",
                    [](auto&, Request& r) { r.last.data_as<int32_t>()[0] = 0; });
  expect_plan_error(kValue, "paged_kv_indices[1] is -3",
                    [](auto&, Request& r) { r.indices.data_as<int32_t>()[1] = -3; });
  expect_plan_error(kValue, "paged_kv_indptr[1] is 9, but paged_kv_indices has only 2",
                    [](auto&, Request& r) { r.indptr.data_as<int32_t>()[1] = 9; });
  expect_plan_error(kValue, "paged_kv_indptr[1] is -1, but paged_kv_indptr[0] is 0: it must never decrease",
                    [](auto&, Request& r) { r.indptr.data_as<int32_t>()[1] = -1; });
  expect_plan_error(kValue, "qo_indptr[1] is -2, but qo_indptr[0] is 0",
                    [](auto&, Request& r) { r.qo.data_as<int32_t>()[1] = -2; });
  expect_plan_error(kValue, "page_size is 0", [](auto& p, Request&) { p.page_size = 0; });
  expect_plan_error(kValue, "num_qo_heads is 7, but must be a multiple of num_kv_heads, which is 2",
                    [](auto& p, Request&) { p.num_qo_heads = 7; });
  const Tensor mask = Tensor::zeros({399}, DType::kBool), packed = Tensor::zeros({51}, DType::kU8),
               lengths = ints({21});
  expect_plan_error(kValue, "custom_mask has 399 elements, but the requests have 400",
                    [&](auto& p, Request&) { p.custom_mask = mask; });
  expect_plan_error(kValue, "packed_custom_mask has 51 bytes, but the requests need 50",
                    [&](auto& p, Request&) { p.packed_custom_mask = packed; });
  expect_plan_error(kValue, "seq_lens[0] is 21, but the index arrays give request 0 a length of 20",
                    [&](auto& p, Request&) { p.seq_lens = lengths; });
  expect_plan_error(kValue, "logits_soft_cap is -1", [](auto& p, Request&) { p.logits_soft_cap = -1.0; });
  expect_plan_error(ErrorKind::kKeyError, "pos_encoding_mode is 'ROTARY'",
                    [](auto& p, Request&) { p.pos_encoding_mode = "ROTARY"; });
}

TEST(Attention, TensorsThatDifferFromThePlanAreRejected) {
  constexpr ErrorKind kValue = ErrorKind::kValueError;
  const Tensor f16 = Tensor::zeros({20, kHq, kD}, DType::kF16), few = Tensor::zeros({19, kHq, kD}, DType::kBF16);
  const Tensor small = Tensor::zeros({1, 2, 16, kHkv, kD}, DType::kBF16),
               paged8 = Tensor::zeros({3, 2, 8, kHkv, kD}, DType::kBF16);
  const Tensor flat = Tensor::zeros({3, 2, 16}, DType::kBF16), out = Tensor::zeros({20, kHq, kD}, DType::kF32);
  expect_run_error(kValue, "q.dtype is float16, but plan() was given q_data_type=bfloat16",
                   [&](auto& a, Request&) { a.q = f16; });
  expect_run_error(kValue, "q.shape[0] is 19, but plan() was given 20 query tokens",
                   [&](auto& a, Request&) { a.q = few; });
  expect_run_error(kValue, "paged_kv_indices[0] of plan() is 1, but paged_kv_cache has 1 pages",
                   [&](auto& a, Request&) { a.paged_kv_cache = small; });
  expect_run_error(kValue, "paged_kv_cache has pages of 8 tokens, but plan() was given page_size=16",
                   [&](auto& a, Request&) { a.paged_kv_cache = paged8; });
  expect_run_error(kValue, "paged_kv_cache has rank 3", [&](auto& a, Request&) { a.paged_kv_cache = flat; });
  expect_run_error(kValue, "out.dtype is float32, but must be bfloat16", [&](auto& a, Request&) { a.out = out; });
  expect_run_error(ErrorKind::kAssertionError, "window_left is 5, but plan() was given -1",
                   [](auto& a, Request&) { a.window_left = 5; });
  Request r;
  expect_error(ErrorKind::kAssertionError, "plan() has not been called", [&] { r.w.run(r.run()); });
}

TEST(Attention, UnsupportedArgumentsAreNamed) {
  expect_run_error(ErrorKind::kValueError, "skip_softmax_threshold_scale_factor is -1",
                   [](auto& a, Request&) { a.skip_softmax_threshold_scale_factor = -1.0; });
  Tensor workspace = Tensor::empty({0}, DType::kU8);
  expect_error(ErrorKind::kValueError, "backend is 'nope', but must be one of auto, fa2,", [&] {
    BatchPrefillWithPagedKVCacheWrapper w({.float_workspace_buffer = workspace, .backend = "nope"});
  });
  expect_error(ErrorKind::kTypeError, "jit_args must be a list, but is int",
               [&] { BatchPrefillWithRaggedKVCacheWrapper w({.float_workspace_buffer = workspace, .jit_args = 1}); });
  expect_error(ErrorKind::kKeyError, "kv_layout is 'DHN'",
               [&] { BatchDecodeWithPagedKVCacheWrapper w(workspace, "DHN"); });
  const Tensor q = Tensor::zeros({2, kHq, kD}, DType::kBF16), k = Tensor::zeros({5, kHkv, kD}, DType::kBF16),
               mask = Tensor::zeros({5, 2}, DType::kBool);
  const Tensor three = Tensor::zeros({3}, DType::kF32);
  expect_error(ErrorKind::kValueError, "scale_q is float32[3], but must be float32[",
               [&] { single_prefill_with_kv_cache({.q = q, .k = k, .v = k, .scale_q = three}); });
  expect_error(ErrorKind::kValueError, "custom_mask is bool[5, 2], but must be [2, 5]",
               [&] { single_prefill_with_kv_cache({.q = q, .k = k, .v = k, .custom_mask = mask}); });
}

}  // namespace
}  // namespace flashinfer
