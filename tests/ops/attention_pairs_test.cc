// SPDX-License-Identifier: Apache-2.0
// Every pair of attention's features meets in some batch (pairwise coverage, a list that is the same in every run), and
// random shapes meet the reference.
#include <algorithm>
#include <array>
#include <cstdlib>

#include "attention_batch.h"

namespace flashinfer::attention_test {
namespace {

constexpr std::array kMasks = {"none", "causal", "custom", "packed", "items"};
constexpr std::array kPositions = {"NONE", "ROPE_LLAMA", "ALIBI"};
constexpr std::array<std::pair<DType, DType>, 6> kTypes = {{{DType::kBF16, DType::kBF16},
                                                            {DType::kF16, DType::kF16},
                                                            {DType::kF32, DType::kF32},
                                                            {DType::kBF16, DType::kF8E4M3},
                                                            {DType::kBF16, DType::kU8},
                                                            {DType::kF8E4M3, DType::kF8E4M3}}};
constexpr std::array<int64_t, 4> kPages = {1, 5, 16, 64};
constexpr std::array<std::array<int64_t, 3>, 4> kHeads = {{{4, 2, 64}, {7, 1, 96}, {8, 8, 64}, {10, 2, 128}}};
/// Levels of: mask, window, cap, position, types, layout, pair, sinks, page, heads.
constexpr std::array<int, 10> kLevels = {5, 2, 2, 3, 6, 2, 2, 2, 4, 4};
using Row = std::array<int, kLevels.size()>;

Features features_of(const Row& r, unsigned seed) {
  Features s;
  s.mask = kMasks[static_cast<size_t>(r[0])], s.window = r[1] ? 6 : -1, s.cap = r[2] ? 3.0 : 0.0,
  s.pos = kPositions[static_cast<size_t>(r[3])];
  std::tie(s.q, s.kv) = kTypes[static_cast<size_t>(r[4])];
  s.layout = r[5] ? "HND" : "NHD", s.pair = r[6], s.sinks = r[7], s.page = kPages[static_cast<size_t>(r[8])];
  const auto& h = kHeads[static_cast<size_t>(r[9])];
  s.hq = h[0], s.hkv = h[1], s.dim = h[2], s.seed = seed;
  return s;
}

/// Rows until every pair of levels of two features occurs: the best of 50 random rows each time, from a fixed seed.
std::vector<Row> pairwise() {
  constexpr size_t n = kLevels.size();
  std::vector<bool> seen(n * n * 64);
  auto at = [](size_t i, size_t j, int a, int b) { return (i * n + j) * 64 + static_cast<size_t>(a * 8 + b); };
  size_t left = 0;
  for (size_t i = 0; i < n; ++i)
    for (size_t j = i + 1; j < n; ++j) left += static_cast<size_t>(kLevels[i] * kLevels[j]);
  std::mt19937 random(7);
  std::vector<Row> rows;
  while (left) {
    Row best{};
    size_t gain = 0;
    for (int attempt = 0; attempt < 50; ++attempt) {
      Row r;
      for (size_t i = 0; i < n; ++i) r[i] = static_cast<int>(random() % static_cast<unsigned>(kLevels[i]));
      size_t fresh = 0;
      for (size_t i = 0; i < n; ++i)
        for (size_t j = i + 1; j < n; ++j) fresh += !seen[at(i, j, r[i], r[j])];
      if (fresh > gain) gain = fresh, best = r;
    }
    if (!gain) continue;
    for (size_t i = 0; i < n; ++i)
      for (size_t j = i + 1; j < n; ++j) seen[at(i, j, best[i], best[j])] = true;
    left -= gain;
    rows.push_back(best);
  }
  return rows;
}

/// The tokens of a batch one after another, as its layout has them.
Tensor in_a_row(const Batch& b, const TensorView& plane) {
  const bool nhd = b.s.layout == "NHD";
  int64_t n = 0;
  for (int32_t len : b.s.len) n += len;
  Tensor rows = nhd ? Tensor::empty({n, b.s.hkv, plane.size(3)}, plane.dtype())
                    : Tensor::empty({b.s.hkv, n, plane.size(3)}, plane.dtype());
  int64_t at = 0;
  for (size_t r = 0; r < b.s.len.size(); ++r)
    for (int64_t j = 0; j < b.s.len[r]; ++j, ++at)
      for (int64_t h = 0; h < b.s.hkv; ++h)
        for (int64_t d = 0; d < plane.size(3); ++d) {
          const int64_t page = b.pages[static_cast<size_t>(b.indptr[r] + j / b.s.page)], e = j % b.s.page;
          ref::put(rows.view(), {nhd ? at : h, nhd ? h : at, d}, ref::at(plane, {page, nhd ? e : h, nhd ? h : e, d}));
        }
  return rows;
}
/// The batch as ragged rows against the reference.
void expect_ragged(const Batch& b) {
  const Features& s = b.s;
  const Tensor k = in_a_row(b, b.k_view), v = in_a_row(b, b.v_view), kv_indptr = ints(sums(s.len));
  const bool fp4 = s.kv == DType::kU8;
  const Tensor k_sf = fp4 ? in_a_row(b, b.k_sf_view) : Tensor(), v_sf = fp4 ? in_a_row(b, b.v_sf_view) : Tensor();
  BatchPrefillWithRaggedKVCacheWrapper w(b.workspace, s.layout);
  const BatchPrefillPlan of = b.plan();
  BatchRaggedPlan p{.qo_indptr = b.qo_indptr,
                    .kv_indptr = kv_indptr,
                    .num_qo_heads = s.hq,
                    .num_kv_heads = s.hkv,
                    .head_dim_qk = s.dim};
  p.custom_mask = of.custom_mask, p.packed_custom_mask = of.packed_custom_mask, p.causal = of.causal,
  p.pos_encoding_mode = of.pos_encoding_mode;
  p.window_left = of.window_left, p.logits_soft_cap = of.logits_soft_cap, p.q_data_type = of.q_data_type,
  p.kv_data_type = of.kv_data_type;
  p.prefix_len_ptr = of.prefix_len_ptr, p.token_pos_in_items_ptr = of.token_pos_in_items_ptr,
  p.token_pos_in_items_len = of.token_pos_in_items_len;
  w.plan(p);
  BatchRaggedRun r{.q = b.q, .k = k, .v = v, .return_lse = true};
  if (fp4) r.kv_cache_sf = op::PagedKv(k_sf, v_sf);
  expect_reference(s, [&]() -> std::pair<Tensor, Tensor> { return w.run(r); });
}
void expect_decode(const Batch& b) {
  const Features& s = b.s;
  BatchDecodeWithPagedKVCacheWrapper w(b.workspace, s.layout);
  BatchDecodePlan p{.indptr = b.kv_indptr,
                    .indices = b.kv_indices,
                    .last_page_len = b.last_len,
                    .num_qo_heads = s.hq,
                    .num_kv_heads = s.hkv,
                    .head_dim = s.dim,
                    .page_size = s.page,
                    .pos_encoding_mode = s.pos,
                    .window_left = s.window,
                    .q_data_type = s.q,
                    .kv_data_type = s.kv};
  if (s.cap > 0) p.logits_soft_cap = s.cap;
  w.plan(p);
  BatchDecodeRun r{.q = b.q, .paged_kv_cache = b.cache(), .return_lse = true};
  if (s.sinks) r.sinks = b.sinks;
  r.kv_cache_sf = b.scales();
  expect_reference(s, [&]() -> std::pair<Tensor, Tensor> { return w.run(r); });
}

TEST(AttentionPairs, PagedPrefill) {
  const std::vector<Row> rows = pairwise();
  EXPECT_LT(rows.size(), 70u);
  for (size_t i = 0; i < rows.size(); ++i) {
    const Batch b(features_of(rows[i], static_cast<unsigned>(i + 1)));
    BatchPrefillWithPagedKVCacheWrapper w(
        BatchPrefillInit{.float_workspace_buffer = b.workspace, .kv_layout = b.s.layout});
    w.plan(b.plan());
    expect_reference(b.s, [&]() -> std::pair<Tensor, Tensor> { return w.run(b.run()); });
  }
}

TEST(AttentionPairs, Decode) {
  const std::vector<Row> rows = pairwise();
  for (size_t i = 0; i < rows.size(); i += 2) {
    Features s = features_of(rows[i], static_cast<unsigned>(i + 1));
    s.qo = {1, 1, 1, 1, 1}, s.len = {48, 0, 1, 130, 17};
    expect_decode(Batch(s));
  }
}

TEST(AttentionPairs, Ragged) {
  const std::vector<Row> rows = pairwise();
  for (size_t i = 0; i < rows.size(); ++i) expect_ragged(Batch(features_of(rows[i], static_cast<unsigned>(i + 101))));
}

/// FLASHINFER_TEST_SEED gives other shapes.
TEST(AttentionPairs, RandomShapes) {
  const char* given = std::getenv("FLASHINFER_TEST_SEED");
  const unsigned first = given ? static_cast<unsigned>(std::strtoul(given, nullptr, 10)) : 1;
  std::mt19937 random(first);
  auto below = [&](unsigned n) { return static_cast<int32_t>(random() % n); };
  for (int round = 0; round < 16; ++round) {
    Features s;
    s.seed = random();
    s.mask = kMasks[static_cast<size_t>(below(5))], s.window = below(3) ? -1 : below(90), s.cap = below(3) ? 0 : 2.5;
    std::tie(s.q, s.kv) = kTypes[static_cast<size_t>(below(3))];
    s.layout = below(2) ? "NHD" : "HND", s.pair = below(2), s.sinks = below(2);
    s.page = 1 + below(70), s.hkv = 1 + below(3), s.hq = s.hkv * (1 + below(9)), s.dim = 8 * (1 + below(24));
    s.qo.clear(), s.len.clear();
    for (int b = below(6); b >= 0; --b) {
      s.len.push_back(below(4) ? below(200) : below(2));
      s.qo.push_back(below(3) ? below(40) : 1);
      if (s.mask == "items") s.len.back() = std::min(s.len.back(), 90);
    }
    const Batch b(s);
    BatchPrefillWithPagedKVCacheWrapper w(
        BatchPrefillInit{.float_workspace_buffer = b.workspace, .kv_layout = s.layout});
    w.plan(b.plan());
    expect_reference(s, [&]() -> std::pair<Tensor, Tensor> { return w.run(b.run()); });
    expect_ragged(b);
    s.qo.assign(s.len.size(), 1);
    expect_decode(Batch(s));
    if (testing::Test::HasFailure()) FAIL() << "FLASHINFER_TEST_SEED=" << first << ", round " << round;
  }
}

}  // namespace
}  // namespace flashinfer::attention_test
