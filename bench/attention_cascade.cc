// SPDX-License-Identifier: Apache-2.0
// Decode of a batch that shares a prefix: MultiLevelCascadeAttentionWrapper beside BatchDecodeWithPagedKVCacheWrapper
// over the same pages, in turns.
//
//   bench_attention_cascade [--turns N] [--prefix N] [--suffix N] [--batch N]
#include <CLI/CLI.hpp>
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstring>
#include <numeric>
#include <random>
#include <vector>

#include "bench/limits.h"
#include "flashinfer/core/context.h"
#include "flashinfer/flashinfer.h"

namespace {
using namespace flashinfer;
using namespace flashinfer::bench;

Tensor tensor(const std::vector<int32_t>& v) {
  return Tensor::copy_of(std::span<const int32_t>(v), {static_cast<int64_t>(v.size())});
}
std::vector<int32_t> steps(int64_t n, int64_t step) {
  std::vector<int32_t> v;
  for (int64_t i = 0; i <= n; ++i) v.push_back(static_cast<int32_t>(i * step));
  return v;
}
void fill(const Tensor& t) {
  std::minstd_rand rng(1);
  const int64_t n = t.numel(), some = std::min<int64_t>(n, 1 << 19);
  bf16_t* x = t.data_as<bf16_t>();
  for (int64_t i = 0; i < some; ++i) x[i] = bf16_t(static_cast<float>(rng() % 2048) / 1024.0f - 1.0f);
  for (int64_t i = some; i < n; i += some) std::memcpy(x + i, x, static_cast<size_t>(std::min(some, n - i)) * 2);
}

struct Sizes {
  int64_t prefix = 8192, suffix = 128, batch = 32;
  int turns = 9;
};
constexpr int64_t kPage = 16, kDim = 128;

void print_row(const Sizes& s, int64_t hq, int64_t hkv) {
  const int64_t shared = s.prefix / kPage, own = s.suffix / kPage, pages = shared + s.batch * own;
  std::vector<int32_t> pool(static_cast<size_t>(pages));
  std::iota(pool.begin(), pool.end(), 0);
  std::shuffle(pool.begin(), pool.end(), std::minstd_rand(7));
  const std::vector<int32_t> prefix(pool.begin(), pool.begin() + shared), suffix(pool.begin() + shared, pool.end());
  std::vector<int32_t> all;
  for (int64_t b = 0; b < s.batch; ++b) {
    all.insert(all.end(), prefix.begin(), prefix.end());
    all.insert(all.end(), suffix.begin() + b * own, suffix.begin() + (b + 1) * own);
  }
  const Tensor cache = Tensor::empty({pages, 2, kPage, hkv, kDim}, DType::kBF16),
               q = Tensor::empty({s.batch, hq, kDim}, DType::kBF16);
  const Tensor out = Tensor::empty({s.batch, hq, kDim}, DType::kBF16), workspace = Tensor::empty({0}, DType::kU8);
  fill(cache), fill(q);

  BatchDecodeWithPagedKVCacheWrapper plain(workspace);
  const Tensor indptr = tensor(steps(s.batch, shared + own)), indices = tensor(all),
               last = tensor(std::vector<int32_t>(static_cast<size_t>(s.batch), kPage));
  plain.plan({.indptr = indptr,
              .indices = indices,
              .last_page_len = last,
              .num_qo_heads = hq,
              .num_kv_heads = hkv,
              .head_dim = kDim,
              .page_size = kPage,
              .q_data_type = DType::kBF16});
  MultiLevelCascadeAttentionWrapper levels;
  const Tensor all_rows = tensor({0, static_cast<int32_t>(s.batch)}), each_row = tensor(steps(s.batch, 1)),
               one = tensor({0, static_cast<int32_t>(shared)});
  const Tensor suffixes = tensor(steps(s.batch, own)), ids0 = tensor(prefix), ids1 = tensor(suffix),
               last0 = tensor({kPage});
  levels.plan({.qo_indptr_arr = {all_rows, each_row},
               .paged_kv_indptr_arr = {one, suffixes},
               .paged_kv_indices_arr = {ids0, ids1},
               .paged_kv_last_page_len = {last0, last},
               .num_qo_heads = hq,
               .num_kv_heads = hkv,
               .head_dim = kDim,
               .page_size = kPage,
               .causal = false,
               .q_data_type = DType::kBF16});
  const auto run_plain = [&] { plain.run({.q = q, .paged_kv_cache = cache, .out = out}); };
  const auto run_levels = [&] { levels.run({.q = q, .paged_kv_cache = cache, .out = out}); };
  run_plain(), run_levels();  // compiles, touches
  std::vector<double> a, b, ratio;
  for (int i = 0; i < s.turns; ++i) {
    a.push_back(seconds(run_plain)), b.push_back(seconds(run_levels));
    ratio.push_back(a.back() / b.back());
  }
  std::printf("%2lld/%-2lld heads: decode %8.0f us, cascade %8.0f us, ratio %.2f\n", static_cast<long long>(hq),
              static_cast<long long>(hkv), median(a) * 1e6, median(b) * 1e6, median(ratio));
}

}  // namespace

int main(int argc, char** argv) {
  CLI::App app("Cascade beside decode");
  Sizes s;
  app.add_option("--turns", s.turns, "measurements of each row");
  app.add_option("--prefix", s.prefix, "shared keys, a multiple of 16");
  app.add_option("--suffix", s.suffix, "own keys of a request, a multiple of 16");
  app.add_option("--batch", s.batch, "requests");
  CLI11_PARSE(app, argc, argv);
  std::printf("%d threads, medians of %d turns; batch %lld, prefix %lld, suffix %lld\n",
              Context::current().executor.threads, s.turns, static_cast<long long>(s.batch),
              static_cast<long long>(s.prefix), static_cast<long long>(s.suffix));
  print_row(s, 32, 8);
  print_row(s, 32, 32);
}
