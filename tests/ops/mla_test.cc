// SPDX-License-Identifier: Apache-2.0
// MLA, beyond the case tables: rows that must be equal bit by bit, memory that must not be read, errors.
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
#include "flashinfer/ops/mla/op.h"
#include "flashinfer/ops/mla/plan.h"
#include "tests/ops/data.h"
#include "tests/ops/errors.h"

namespace flashinfer {
namespace {

constexpr int64_t kCkv = 96, kKpe = 32, kAll = kCkv + kKpe;

void expect_bits(const TensorView& got, const TensorView& want, const std::string& what) {
  const Tensor g = Tensor::clone(got), w = Tensor::clone(want);
  ASSERT_EQ(g.nbytes(), w.nbytes()) << what;
  EXPECT_EQ(std::memcmp(g.data(), w.data(), static_cast<size_t>(w.nbytes())), 0) << what;
}
void expect_bits(const op::Results& got, const TensorView& want, const std::string& what) {
  expect_bits(got[0].view(), want, what);
}

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
        for (const MlaWork& w : list.works)
          for (int64_t r = w.row_begin; r < w.row_end && w.request == static_cast<int32_t>(b); ++r)
            for (int64_t c = w.chunk_begin; c < w.chunk_end; ++c) ++seen[static_cast<size_t>(r * chunks + c)];
        for (int count : seen) ASSERT_EQ(count, 1) << "request " << b << ", heads " << heads << ", threads " << threads;
      }
      for (const MlaWork& w : list.works) ASSERT_LE(w.row_end - w.row_begin, mla::kTileRows);
      int64_t partial = 0, merged = 0;
      for (const MlaWork& w : list.works) partial += w.partial >= 0 ? w.row_end - w.row_begin : 0;
      for (const MlaMerge& m : list.merges) merged += static_cast<int64_t>(m.row_end - m.row_begin) * m.chunks;
      EXPECT_EQ(partial, list.partial_rows);
      EXPECT_EQ(merged, list.partial_rows);
    }
  const std::vector<int32_t> one{0, 1}, keys{5000};
  EXPECT_GE(mla::make_work(one, keys, 128, false, 4).works.size(), 8u);
  const std::vector<int32_t> four{0, 1, 2, 3, 4}, equal{5000, 5000, 5000, 5000};
  EXPECT_EQ(mla::make_work(four, equal, 128, false, 2).works.size(), 4u);  // balanced as they are
  EXPECT_EQ(mla::make_work(one, keys, 128, false, 1).works.size(), 1u);
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

template <class F>
void expect_plan_error(ErrorKind kind, const std::string& part, F change) {
  Request r;
  BatchMlaPlan p = r.plan();
  change(p, r);
  expect_error(kind, part, [&] { r.w.plan(p); });
}
template <class F, class G>
void expect_run_error(const std::string& part, F change_plan, G change_run) {
  Request r;
  BatchMlaPlan p = r.plan();
  change_plan(p);
  r.w.plan(p);
  BatchMlaRun a = r.run();
  change_run(a, r);
  expect_error(ErrorKind::kValueError, part, [&] { r.w.run(a); });
}
void as_it_is(BatchMlaPlan&) {}

TEST(Mla, BadPlansAreRejected) {
  constexpr ErrorKind kValue = ErrorKind::kValueError;
  expect_plan_error(kValue, "kv_len_arr[0] is 33, but the request's 2 pages of 16 tokens hold 0..32",
                    [](auto&, Request& r) { r.len.data_as<int32_t>()[0] = 33; });
  expect_plan_error(kValue, "kv_len_arr[0] is -1", [](auto&, Request& r) { r.len.data_as<int32_t>()[0] = -1; });
  expect_plan_error(kValue, "kv_indices[1] is -3, but a page id must be at least 0",
                    [](auto&, Request& r) { r.indices.data_as<int32_t>()[1] = -3; });
  expect_plan_error(kValue, "kv_indptr[1] is 9, but kv_indices has only 2",
                    [](auto&, Request& r) { r.indptr.data_as<int32_t>()[1] = 9; });
  expect_plan_error(kValue, "kv_indptr[1] is -1, but kv_indptr[0] is 0",
                    [](auto&, Request& r) { r.indptr.data_as<int32_t>()[1] = -1; });
  expect_plan_error(kValue, "qo_indptr[0] is 1, but must be 0",
                    [](auto&, Request& r) { r.qo.data_as<int32_t>()[0] = 1; });
  expect_plan_error(kValue, "qo_indptr.shape[0] is 2, but kv_len_arr describes 2 requests",
                    [](auto& p, Request& r) { p.kv_len_arr = r.qo; });
  expect_plan_error(kValue, "kv_indices is missing: a CSR page table has it",
                    [](auto& p, Request&) { p.kv_indices = std::nullopt; });
  expect_plan_error(kValue, "sm_scale is missing", [](auto& p, Request&) { p.sm_scale = std::nullopt; });
  expect_plan_error(kValue, "sm_scale is inf", [](auto& p, Request&) { p.sm_scale = INFINITY; });
  expect_plan_error(kValue, "num_heads is 0", [](auto& p, Request&) { p.num_heads = 0; });
  expect_plan_error(kValue, "head_dim_kpe is -1", [](auto& p, Request&) { p.head_dim_kpe = -1; });
  expect_plan_error(kValue, "q_data_type is uint8", [](auto& p, Request&) { p.q_data_type = DType::kU8; });
  expect_plan_error(kValue, "output_dtype is float8_e4m3fn",
                    [](auto& p, Request&) { p.output_dtype = DType::kF8E4M3; });
  expect_plan_error(kValue, "max_q_len is 2, but request 0 has 3 query tokens",
                    [](auto& p, Request&) { p.max_q_len = 2; });
  expect_plan_error(kValue, "lse_mode is 'base10'", [](auto& p, Request&) { p.lse_mode = "base10"; });
  expect_plan_error(ErrorKind::kTypeError, "metadata is int", [](auto& p, Request&) { p.metadata = 1; });
  expect_plan_error(kValue, "metadata was given, so the page table",
                    [](auto& p, Request&) { p.metadata = op::DictValue{}; });
  Tensor table = Tensor::zeros({1, 2}, DType::kI32);
  expect_plan_error(kValue, "entry 0 of kv_indices and block_tables is 1 and 0",
                    [&](auto& p, Request& r) { p.cum_seq_lens_q = r.qo, p.block_tables = table, p.seq_lens = r.len; });
  const Tensor narrow = Tensor::zeros({1, 1}, DType::kI32);
  expect_plan_error(kValue, "seq_lens[0] is 20, but block_tables has room for 0..16", [&](auto& p, Request& r) {
    p.qo_indptr = p.kv_indptr = p.kv_indices = p.kv_len_arr = std::nullopt;
    p.cum_seq_lens_q = r.qo, p.block_tables = narrow, p.seq_lens = r.len;
  });
  constexpr ErrorKind kNot = ErrorKind::kNotImplementedError;
  expect_plan_error(kNot, "skip_softmax=True is not supported", [](auto& p, Request&) { p.skip_softmax = true; });
  expect_plan_error(kNot, "output_scale='per-tensor' is not supported",
                    [](auto& p, Request&) { p.output_scale = "per-tensor"; });
  expect_plan_error(kNot, "use_profiler=True is not supported", [](auto& p, Request&) { p.use_profiler = true; });
  Tensor workspace = Tensor::empty({0}, DType::kU8);
  expect_error(kNot, "backend='cutlass'", [&] { BatchMLAPagedAttentionWrapper w(workspace, "cutlass"); });
  expect_error(kValue, "backend is 'fa9'", [&] { BatchMLAPagedAttentionWrapper w(workspace, "fa9"); });
}

TEST(Mla, GraphModeFillsItsBuffersAndKeepsTheBatchSize) {
  Request r;
  Tensor workspace = Tensor::empty({0}, DType::kU8), qo = ints({9, 9}), indptr = ints({9, 9}),
         indices = ints({9, 9, 9}), len = ints({9});
  BatchMlaInit init{.float_workspace_buffer = workspace,
                    .use_cuda_graph = true,
                    .qo_indptr = qo,
                    .kv_indptr = indptr,
                    .kv_indices = indices,
                    .kv_len_arr = len};
  const auto refused = [&](auto change, const char* part) {
    BatchMlaInit i = init;
    change(i);
    expect_error(ErrorKind::kValueError, part, [&] { BatchMLAPagedAttentionWrapper w(i); });
  };
  refused([](auto& i) { i.kv_indices = std::nullopt; }, "use_cuda_graph=True needs kv_indices, which is None");
  refused([](auto& i) { i.use_cuda_graph = false; }, "qo_indptr belongs to use_cuda_graph=True, which is False");
  refused([&](auto& i) { i.kv_indptr = indices; }, "kv_indptr has 3 entries, but a batch of 1 needs 2");
  BatchMLAPagedAttentionWrapper w(init);
  w.plan(r.plan());
  EXPECT_EQ(indices.data_as<int32_t>()[0], r.indices.data_as<int32_t>()[0]);
  EXPECT_EQ(len.data_as<int32_t>()[0], r.len.data_as<int32_t>()[0]);
  EXPECT_EQ(qo.data_as<int32_t>()[1], r.qo.data_as<int32_t>()[1]);
  r.w.plan(r.plan());
  expect_bits(w.run(r.run()), Tensor(r.w.run(r.run())).view(), "graph mode");
  const Tensor two = ints({0, 1, 3}), pages = ints({0, 1, 2}), lengths = ints({4, 4});
  BatchMlaPlan more = r.plan();
  more.qo_indptr = two, more.kv_indptr = pages, more.kv_len_arr = lengths;
  expect_error(ErrorKind::kValueError, "the batch has 2 requests, but the buffers of use_cuda_graph=True are for 1",
               [&] { w.plan(more); });
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

TEST(Mla, UnneededPageIdsAreNotLookedAt) {
  Request r;
  r.len.data_as<int32_t>()[0] = 16;  // the keys of the first page
  const Tensor one_page = ints({0, 1});
  BatchMlaPlan plan = r.plan();
  plan.kv_indptr = one_page, plan.kv_indices = r.indices.view().slice(0, 0, 1);
  r.w.plan(plan);
  const Tensor want = r.w.run(r.run());
  for (const int32_t unneeded : {-1, 0, 2, 1 << 30}) {
    r.indices.data_as<int32_t>()[1] = unneeded;
    r.w.plan(r.plan());
    expect_bits(r.w.run(r.run()), want, str("second id ", unneeded));
  }
}

TEST(Mla, ArgumentsThatDifferFromThePlanAreRejected) {
  const Tensor f16 = Tensor::zeros({3, 4, kCkv}, DType::kF16), few = Tensor::zeros({2, 4, kCkv}, DType::kBF16),
               t = Tensor::zeros({4}, DType::kF32);
  const Tensor small = Tensor::zeros({1, 16, kCkv}, DType::kBF16),
               small_kpe = Tensor::zeros({1, 16, kKpe}, DType::kBF16);
  const Tensor page8 = Tensor::zeros({3, 8, kCkv}, DType::kBF16), all = Tensor::zeros({3, 16, kAll + 1}, DType::kBF16);
  expect_run_error("q_nope is float16[3, 4, 96], but plan() was given bfloat16[3, 4, 96]", as_it_is,
                   [&](auto& a, Request&) { a.q_nope = f16; });
  expect_run_error("q_nope is bfloat16[2, 4, 96]", as_it_is, [&](auto& a, Request&) { a.q_nope = few; });
  expect_run_error("q_pe is missing", as_it_is, [&](auto& a, Request&) { a.q_pe = std::nullopt; });
  expect_run_error("ckv_cache is missing", as_it_is, [&](auto& a, Request&) { a.ckv_cache = std::nullopt; });
  expect_run_error("ckv_cache is bfloat16[3, 8, 96]", as_it_is, [&](auto& a, Request&) { a.ckv_cache = page8; });
  expect_run_error("kv_cache was given, so ckv_cache and kpe_cache", as_it_is,
                   [&](auto& a, Request&) { a.kv_cache = op::PagedKv(all); });
  expect_run_error("kv_cache[..., 96:] is bfloat16[3, 16, 33]", as_it_is, [&](auto& a, Request&) {
    a.ckv_cache = a.kpe_cache = std::nullopt;
    a.kv_cache = op::PagedKv(all);
  });
  expect_run_error("kv_indices of plan() go up to 1, but the cache has 1 pages", as_it_is,
                   [&](auto& a, Request&) { a.ckv_cache = small, a.kpe_cache = small_kpe; });
  const std::string differs = "MLA planned run argument ";
  expect_run_error(differs + "sinks was given", as_it_is, [&](auto& a, Request&) { a.sinks = t; });
  expect_run_error(differs + "sinks is missing", [](auto& p) { p.use_sinks = true; }, [](auto&, Request&) {});
  expect_run_error(differs + "ckv_scale was given", as_it_is, [](auto& a, Request&) { a.ckv_scale = 2.0; });
  expect_run_error(differs + "o_scale was given", as_it_is, [](auto& a, Request&) { a.o_scale = 2.0; });
  expect_run_error(differs + "skip_softmax_threshold_scale_factor", as_it_is,
                   [](auto& a, Request&) { a.skip_softmax_threshold_scale_factor = 2.0; });
  expect_run_error(differs + "return_lse=False", [](auto& p) { p.lse_mode = "base2"; }, [](auto&, Request&) {});
  expect_run_error(
      differs + "return_lse=True, return_lse_base_on_e=True", [](auto& p) { p.lse_mode = "base2"; },
      [](auto& a, Request&) { a.return_lse = a.return_lse_base_on_e = true; });
  const auto kv = [](BatchMlaPlan& p) { p.scale_mode = "kv-per-tensor"; };
  expect_run_error(differs + "ckv_scale or ckv_scale_arr, exactly one", kv, [](auto&, Request&) {});
  expect_run_error(differs + "kpe_scale is missing", kv, [](auto& a, Request&) { a.ckv_scale = 1.0; });
  expect_run_error("ckv_scale is 0, but must be positive", kv,
                   [](auto& a, Request&) { a.ckv_scale = 0.0, a.kpe_scale = 1.0; });
  expect_run_error("ckv_scale_arr is float32[4], but must be [3, 16, 1]", kv,
                   [&](auto& a, Request&) { a.ckv_scale_arr = t, a.kpe_scale = 1.0; });
  const auto bmm = [](BatchMlaPlan& p) { p.scale_mode = "bmm-tensor"; };
  expect_run_error(differs + "bmm1_scale is missing", bmm, [](auto&, Request&) {});
  expect_run_error(differs + "bmm1_scale is a number", bmm,
                   [](auto& a, Request&) { a.bmm1_scale = 1.0, a.bmm2_scale = 1.0; });
  expect_run_error(
      "out.dtype is bfloat16, but must be float32", [](auto& p) { p.output_dtype = DType::kF32; },
      [](auto& a, Request& r) { a.out = r.q_nope; });
  Request r;
  expect_error(ErrorKind::kRuntimeError, "plan() has not been called", [&] { r.w.run(r.run()); });
}

TEST(Mla, AppendIsRejectedAsAWholeOrWritesItsRows) {
  Tensor ckv = Tensor::zeros({3, 4, 8}, DType::kF32), kpe = Tensor::zeros({3, 4, 2}, DType::kF32);
  const Tensor rows_ckv = random_tensor<float>({2, 8}, 1), rows_kpe = random_tensor<float>({2, 2}, 2),
               request = ints({0, -7});
  const Tensor indices = ints({2, 0}), indptr = ints({0, 2}), last = ints({2});
  Tensor positions = ints({5, 99});
  auto append = [&] {
    append_paged_mla_kv_cache({.append_ckv = rows_ckv,
                               .append_kpe = rows_kpe,
                               .batch_indices = request,
                               .positions = positions,
                               .ckv_cache = ckv,
                               .kpe_cache = kpe,
                               .kv_indices = indices,
                               .kv_indptr = indptr,
                               .kv_last_page_len = last});
  };
  positions.data_as<int32_t>()[0] = 8;
  expect_error(ErrorKind::kValueError, "positions[0] is 8, but request 0 has 2 pages of 4 tokens", append);
  for (float x : ckv.span<float>()) ASSERT_EQ(x, 0);
  positions.data_as<int32_t>()[0] = 5;
  append();
  expect_bits(ckv.view().select(0, 0).select(0, 1), rows_ckv.view().select(0, 0), "ckv");
  expect_bits(kpe.view().select(0, 0).select(0, 1), rows_kpe.view().select(0, 0), "kpe");
  indices.data_as<int32_t>()[1] = 3;
  expect_error(ErrorKind::kValueError, "kv_indices[1] is 3, but the pool has 3 pages", append);
}

}  // namespace
}  // namespace flashinfer
