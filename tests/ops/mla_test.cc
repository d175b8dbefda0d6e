// SPDX-License-Identifier: Apache-2.0
// MLA, beyond the case tables: rows that must be equal bit by bit, memory that must not be read,
// forms of arguments. Errors: mla_plan_test.cc.
#include <gtest/gtest.h>
#include <sys/mman.h>

#include <cmath>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <random>
#include <vector>

#include "flashinfer/cases/compare.h"
#include "flashinfer/core/context.h"
#include "flashinfer/core/int_math.h"
#include "flashinfer/core/version.h"
#include "flashinfer/ops/mla/op.h"
#include "flashinfer/ops/mla/plan.h"
#include "tests/ops/mla_batch.h"

namespace flashinfer::mla_test {
namespace {

/// The latent rows of `kv` [n, ckv + kpe] in pages, in a scattered order, with NaN in all else.
template <class T>
struct Pool {
  Tensor cache;
  std::vector<int32_t> pages;
  Pool(const Tensor& kv, int64_t page_size) {
    const int64_t n = kv.size(0), count = ceil_div(n, page_size);
    cache = Tensor::empty({count + 2, page_size, kAll}, dtype_of<T>::value);
    for (T& x : cache.span<T>()) x = T(NAN);
    for (int64_t i = 0; i < count; ++i) pages.push_back(static_cast<int32_t>(count + 1 - i));
    for (int64_t j = 0; j < n; ++j) std::memcpy(row(j), kv.data_as<T>() + j * kAll, kAll * sizeof(T));
  }
  T* row(int64_t j) {
    const int64_t page_size = cache.size(1);
    return cache.data_as<T>() + (pages[static_cast<size_t>(j / page_size)] * page_size + j % page_size) * kAll;
  }
  std::vector<int32_t> first(int64_t tokens) const {
    return {pages.begin(), pages.begin() + ceil_div(tokens, cache.size(1))};
  }
};

struct Span {
  int64_t begin, end;  // query rows at positions [begin, end) of a request with `end` keys
};
/// Rows of several requests over the same pages, in one causal batch with an empty request in front.
template <class T>
std::pair<Tensor, Tensor> rows(const Pool<T>& pool, const Tensor& q, const std::vector<Span>& spans) {
  Tensor workspace = Tensor::empty({0}, DType::kU8);
  BatchMLAPagedAttentionWrapper w(workspace);
  std::vector<int32_t> qo{0, 0}, kv{0, 0}, indices, len{0};
  int64_t n = 0;
  for (const Span& s : spans) n += s.end - s.begin;
  const int64_t heads = q.size(1), row = heads * kAll;
  Tensor all = Tensor::empty({n, heads, kAll}, dtype_of<T>::value);
  for (const Span& s : spans) {
    std::memcpy(all.data_as<T>() + qo.back() * row, q.data_as<T>() + s.begin * row,
                static_cast<size_t>((s.end - s.begin) * row) * sizeof(T));
    for (int32_t page : pool.first(s.end)) indices.push_back(page);
    qo.push_back(qo.back() + static_cast<int32_t>(s.end - s.begin));
    kv.push_back(static_cast<int32_t>(indices.size()));
    len.push_back(static_cast<int32_t>(s.end));
  }
  const Tensor a = ints(qo), b = ints(kv), c = ints(indices), d = ints(len);
  w.plan({.qo_indptr = a,
          .kv_indptr = b,
          .kv_indices = c,
          .kv_len_arr = d,
          .num_heads = heads,
          .head_dim_ckv = kCkv,
          .head_dim_kpe = kKpe,
          .page_size = pool.cache.size(1),
          .causal = true,
          .sm_scale = 0.1,
          .q_data_type = dtype_of<T>::value,
          .kv_data_type = dtype_of<T>::value});
  return w.run({.return_lse = true, .query = op::PagedKv(all), .kv_cache = op::PagedKv(pool.cache)});
}

/// One prefill against all other calls that compute the same rows: cut in two, decode steps, other page sizes, threads.
/// 1031 rows cross a chunk of 1024 keys.
template <class T>
void expect_same_rows(int64_t heads, int64_t n) {
  const Tensor q = random_tensor<T>({n, heads, kAll}, 1), kv = random_tensor<T>({n, kAll}, 2);
  const auto want = rows<T>(Pool<T>(kv, 64), q, {{0, n}});
  for (T x : want.first.template span<T>()) ASSERT_TRUE(std::isfinite(static_cast<float>(x)));
  for (int threads : {1, 3}) {
    if (threads == 1 && *build::sanitizer_flags()) continue;  // the same work on fewer threads, and slow there
    const auto pool_of_threads = make_thread_pool(threads);
    Context context = Context::current();
    context.executor = *pool_of_threads;
    ContextScope scope(context);
    for (int64_t page_size : {1, 5, 64}) {
      const Pool<T> pool(kv, page_size);
      const std::vector<Span> spans = {{0, n},         {0, 1},         {3, 50},    {63, 64},  {64, 65},
                                       {n - 8, n - 7}, {n - 7, n - 6}, {n / 2, n}, {n - 2, n}};
      const auto [o, lse] = rows<T>(pool, q, spans);
      int64_t at = 0;
      for (const Span& s : spans) {
        const std::string what =
            str("rows ", s.begin, "..", s.end, ", ", heads, " heads, page size ", page_size, ", threads ", threads);
        const int64_t end = at + s.end - s.begin;
        expect_bits(o.view().slice(0, at, end), want.first.view().slice(0, s.begin, s.end), "out, " + what);
        expect_bits(lse.view().slice(0, at, end), want.second.view().slice(0, s.begin, s.end), "lse, " + what);
        at = end;
      }
    }
  }
}
TEST(Mla, RowsAreBitwiseTheSameWhateverTheWayManyHeads) { expect_same_rows<bf16_t>(13, 1031); }
TEST(Mla, RowsAreBitwiseTheSameWhateverTheWayOneHead) { expect_same_rows<bf16_t>(1, 1031); }
TEST(Mla, RowsAreBitwiseTheSameWhateverTheWayThreeHeads) { expect_same_rows<bf16_t>(3, 1031); }
TEST(Mla, RowsAreBitwiseTheSameWhateverTheWayF16) { expect_same_rows<f16_t>(14, 200); }
TEST(Mla, RowsAreBitwiseTheSameWhateverTheWayF32) { expect_same_rows<float>(2, 1031); }

TEST(Mla, AHiddenKeyIsNeverMultiplied) {
  for (int64_t heads : {2, 6, 16})
    for (int64_t n : {11, 70, 128}) {
      const Tensor q = random_tensor<bf16_t>({n, heads, kAll}, 1), kv = random_tensor<bf16_t>({n, kAll}, 2);
      Pool<bf16_t> pool(kv, 16);
      const auto want = rows<bf16_t>(pool, q, {{n - 9, n}});
      for (const float bad : {NAN, INFINITY}) {
        for (int64_t j = n - 4; j < n; ++j)  // the last four keys: rows 0..4 of 9 see none of them
          for (int64_t d = 0; d < kAll; ++d) pool.row(j)[d] = bf16_t(bad);
        const auto got = rows<bf16_t>(pool, q, {{n - 9, n}});
        const std::string what = str(heads, " heads, ", n, " keys, ", bad);
        expect_bits(got.first.view().slice(0, 0, 5), want.first.view().slice(0, 0, 5), "out, " + what);
        expect_bits(got.second.view().slice(0, 0, 5), want.second.view().slice(0, 0, 5), "lse, " + what);
        EXPECT_TRUE(std::isnan(static_cast<float>(got.first.data_as<bf16_t>()[got.first.numel() - 1]))) << what;
      }
    }
}

TEST(Mla, ANaNInAQueryShows) {
  for (int64_t heads : {2, 16}) {
    Tensor q = random_tensor<bf16_t>({20, heads, kAll}, 1);
    q.data_as<bf16_t>()[19 * heads * kAll + 3] = bf16_t(NAN);
    const auto r = rows<bf16_t>(Pool<bf16_t>(random_tensor<bf16_t>({20, kAll}, 2), 16), q, {{19, 20}});
    EXPECT_TRUE(std::isnan(static_cast<float>(r.first.data_as<bf16_t>()[0])));
    EXPECT_TRUE(std::isnan(r.second.data_as<float>()[0]));
    EXPECT_FALSE(std::isnan(static_cast<float>(r.first.data_as<bf16_t>()[kCkv])));
  }
}

TEST(Mla, WorksCoverEveryRowAndChunkOnce) {
  const std::vector<int32_t> qo{0, 3, 3, 4, 260}, len{1000, 7, 0, 5000};
  for (int threads : {1, 2, 16})
    for (int64_t heads : {1, 16, 128}) {
      const auto list = mla::make_work(qo, len, heads, false, threads);
      for (size_t b = 0; b < len.size(); ++b) {
        const int64_t n = (qo[b + 1] - qo[b]) * heads, chunks = std::max(1, ceil_div(len[b], mla::kChunkKeys));
        std::vector<int> seen(static_cast<size_t>(n * chunks));
        for (const AttentionWorkItem& w : list.works)
          for (int64_t r = w.row_begin; r < w.row_end && w.request == static_cast<int32_t>(b); ++r)
            for (int64_t c = w.chunk_begin; c < w.chunk_end; ++c) ++seen[static_cast<size_t>(r * chunks + c)];
        for (int count : seen) ASSERT_EQ(count, 1) << "request " << b << ", heads " << heads << ", threads " << threads;
      }
      for (const AttentionWorkItem& w : list.works) ASSERT_LE(w.row_end - w.row_begin, mla::kTileRows);
      int64_t partial = 0, merged = 0;
      for (const AttentionWorkItem& w : list.works) partial += w.partial >= 0 ? w.row_end - w.row_begin : 0;
      for (const SplitKvReduction& m : list.merges) merged += static_cast<int64_t>(m.row_end - m.row_begin) * m.chunks;
      EXPECT_EQ(partial, list.partial_rows);
      EXPECT_EQ(merged, list.partial_rows);
    }
  const std::vector<int32_t> one{0, 1}, keys{5000};
  EXPECT_GE(mla::make_work(one, keys, 128, false, 4).works.size(), 8u);
  const std::vector<int32_t> four{0, 1, 2, 3, 4}, equal{5000, 5000, 5000, 5000};
  EXPECT_EQ(mla::make_work(four, equal, 128, false, 2).works.size(), 4u);  // balanced as they are
  EXPECT_EQ(mla::make_work(one, keys, 128, false, 1).works.size(), 1u);
}

TEST(Mla, BothFormsOfArgumentsAndTablesMeanTheSame) {
  Request r;
  r.w.plan(r.plan());
  const Tensor want = r.w.run(r.run());
  Tensor query = Tensor::empty({3, Request::kHeads, kAll}, DType::kBF16),
         cache = Tensor::empty({3, 16, kAll}, DType::kBF16);
  for (int64_t i = 0; i < 12; ++i) {
    std::memcpy(query.data_as<bf16_t>() + i * kAll, r.q_nope.data_as<bf16_t>() + i * kCkv, kCkv * 2);
    std::memcpy(query.data_as<bf16_t>() + i * kAll + kCkv, r.q_pe.data_as<bf16_t>() + i * kKpe, kKpe * 2);
  }
  for (int64_t i = 0; i < 48; ++i) {
    std::memcpy(cache.data_as<bf16_t>() + i * kAll, r.ckv.data_as<bf16_t>() + i * kCkv, kCkv * 2);
    std::memcpy(cache.data_as<bf16_t>() + i * kAll + kCkv, r.kpe.data_as<bf16_t>() + i * kKpe, kKpe * 2);
  }
  expect_bits(r.w.run({.query = op::PagedKv(query), .kv_cache = op::PagedKv(cache)}), want, "one tensor each");
  const TensorView ckv = cache.view().slice(2, 0, kCkv), kpe = cache.view().slice(2, kCkv, kAll);
  expect_bits(r.w.run({.q_nope = r.q_nope, .q_pe = r.q_pe, .kv_cache = op::PagedKv(ckv, kpe)}), want,
              "views of one cache");

  Tensor table = Tensor::empty({1, 5}, DType::kI32);
  for (int32_t& x : table.span<int32_t>()) x = -1;
  table.data_as<int32_t>()[0] = 1, table.data_as<int32_t>()[1] = 0;
  BatchMlaPlan dense = r.plan();
  dense.qo_indptr = dense.kv_indptr = dense.kv_indices = dense.kv_len_arr = std::nullopt;
  dense.cum_seq_lens_q = r.qo, dense.block_tables = table, dense.seq_lens = r.len, dense.max_q_len = 8;
  r.w.plan(dense);
  expect_bits(r.w.run(r.run()), want, "dense table");
  BatchMlaPlan dual = r.plan();
  dual.cum_seq_lens_q = r.qo, dual.block_tables = table, dual.seq_lens = r.len;
  r.w.plan(dual);
  expect_bits(r.w.run(r.run()), want, "both tables");
  BatchMlaPlan metadata = r.plan();
  metadata.qo_indptr = metadata.kv_indptr = metadata.kv_indices = metadata.kv_len_arr = std::nullopt;
  metadata.metadata = op::DictValue{{{"qo_indptr", r.qo},
                                     {"kv_indptr", r.indptr},
                                     {"kv_indices", r.indices},
                                     {"kv_len_arr", r.len},
                                     {"max_q_len", 3}}};
  r.w.plan(metadata);
  expect_bits(r.w.run(r.run()), want, "metadata");
}

TEST(Mla, NaturalLseIsBaseTwoTimesLn2) {
  Request r;
  r.w.plan(r.plan());
  BatchMlaRun a = r.run();
  a.return_lse = true;
  const std::pair<Tensor, Tensor> two = r.w.run(a);
  a.return_lse_base_on_e = true;
  const std::pair<Tensor, Tensor> e = r.w.run(a);
  for (int64_t i = 0; i < 12; ++i)
    EXPECT_NEAR(e.second.data_as<float>()[i], two.second.data_as<float>()[i] * std::log(2.0), 1e-5);
}

TEST(Mla, OffsetsPast2To31Elements) {
  const int64_t stride = int64_t{1} << 31, bytes = (stride + 16 * kCkv) * 2;
  void* memory = mmap(nullptr, static_cast<size_t>(bytes), PROT_READ | PROT_WRITE,
                      MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  ASSERT_NE(memory, MAP_FAILED) << "no address space for 4 GB";
  Request r;
  const int64_t shape[] = {2, 16, kCkv}, strides[] = {stride, kCkv, 1};
  for (int64_t p = 0; p < 2; ++p)
    std::memcpy(static_cast<bf16_t*>(memory) + p * stride, r.ckv.data_as<bf16_t>() + p * 16 * kCkv, 16 * kCkv * 2);
  r.w.plan(r.plan());
  const Tensor want = r.w.run(r.run());
  const TensorView far(memory, DType::kBF16, shape, strides), kpe = r.kpe.view().slice(0, 0, 2);
  expect_bits(r.w.run({.q_nope = r.q_nope, .q_pe = r.q_pe, .ckv_cache = far, .kpe_cache = kpe}), want, "far pages");
  munmap(memory, static_cast<size_t>(bytes));
}

/// FLASHINFER_TEST_SEED gives other shapes. Slots that no request owns hold NaN.
TEST(Mla, RandomShapes) {
  const char* given = std::getenv("FLASHINFER_TEST_SEED");
  const unsigned first = given ? static_cast<unsigned>(std::strtoul(given, nullptr, 10)) : 1;
  std::mt19937 random(first);
  auto below = [&](unsigned n) { return static_cast<int32_t>(random() % n); };
  for (int round = 0; round < 12; ++round) {
    const int64_t heads = 1 + below(24), ckv = 8 * (1 + below(40)), kpe = 8 * below(9), page = 1 + below(70);
    std::vector<int32_t> qo{0}, kv{0}, len, pages;
    for (int b = below(5); b >= 0; --b) {
      len.push_back(below(4) ? below(200) : below(2));
      qo.push_back(qo.back() + (below(3) ? below(30) : 1));
      kv.push_back(kv.back() + static_cast<int32_t>(ceil_div(len.back(), page)));
    }
    for (int32_t i = 0; i < kv.back(); ++i) pages.push_back(kv.back() - i);  // page 0 belongs to no request
    Tensor cache = Tensor::empty({kv.back() + 1, page, ckv + kpe}, DType::kBF16);
    for (bf16_t& x : cache.span<bf16_t>()) x = bf16_t(NAN);
    std::normal_distribution<float> normal;
    for (size_t b = 0; b < len.size(); ++b)
      for (int64_t j = 0; j < len[b]; ++j)
        for (int64_t d = 0; d < ckv + kpe; ++d)
          cache.data_as<bf16_t>()[(pages[static_cast<size_t>(kv[b] + j / page)] * page + j % page) * (ckv + kpe) + d] =
              bf16_t(normal(random));
    const Tensor q = random_tensor<bf16_t>({qo.back(), heads, ckv + kpe}, static_cast<unsigned>(random()));
    const Tensor a = ints(qo), b = ints(kv), c = ints(pages), d = ints(len), workspace = Tensor::empty({0}, DType::kU8);
    BatchMLAPagedAttentionWrapper w(workspace);
    w.plan({.qo_indptr = a,
            .kv_indptr = b,
            .kv_indices = c,
            .kv_len_arr = d,
            .num_heads = heads,
            .head_dim_ckv = ckv,
            .head_dim_kpe = kpe,
            .page_size = page,
            .causal = below(2) == 0,
            .sm_scale = 0.1,
            .q_data_type = DType::kBF16,
            .kv_data_type = DType::kBF16});
    const auto run = [&]() -> std::pair<Tensor, Tensor> {
      return w.run({.return_lse = true, .query = op::PagedKv(q), .kv_cache = op::PagedKv(cache)});
    };
    const std::pair<Tensor, Tensor> got = run();
    op::ForceCandidate force("reference");
    const std::pair<Tensor, Tensor> want = run();
    for (const auto& [x, y, tolerance] :
         {std::tuple(&got.first, &want.first, 1e-2), std::tuple(&got.second, &want.second, 1e-3)}) {
      const cases::Comparison compared = cases::compare(x->view(), y->view(), tolerance, tolerance);
      ASSERT_TRUE(compared.equal) << compared.text << "\n"
                                  << heads << " heads, " << ckv << " + " << kpe << ", page size " << page
                                  << ", FLASHINFER_TEST_SEED=" << first << ", round " << round;
    }
  }
}

}  // namespace
}  // namespace flashinfer::mla_test
