// SPDX-License-Identifier: Apache-2.0
// Batches for attention tests: a paged cache with NaN in every slot that no request owns, masks, items, sinks; and the
// comparison of the selected kernel with the double-precision reference.
#pragma once
#include <gtest/gtest.h>

#include <cmath>
#include <optional>
#include <random>
#include <string>
#include <vector>

#include "flashinfer/cases/run.h"
#include "flashinfer/core/context.h"
#include "flashinfer/core/int_math.h"
#include "flashinfer/ops/attention/op.h"
#include "flashinfer/ops/common/reference.h"
#include "tests/ops/data.h"

namespace flashinfer::attention_test {

struct Features {
  std::string mask = "none";  // none, causal, custom, packed, items
  int64_t window = -1;
  double cap = 0;
  std::string pos = "NONE";
  DType q = DType::kBF16, kv = DType::kBF16;  // kv = u8: NVFP4
  std::string layout = "NHD";
  bool pair = false;  // K and V apart, with different strides
  bool sinks = false;
  int64_t page = 16, hq = 4, hkv = 2, dim = 64;
  std::vector<int32_t> qo = {20, 3, 1, 9, 0, 1}, len = {48, 0, 33, 5, 17, 70};
  unsigned seed = 1;
  std::string text() const {
    std::string s = str("mask ", mask, ", window ", window, ", cap ", cap, ", pos ", pos, ", q ", name(q), ", kv ",
                        name(kv), ", ", layout, pair ? " pair" : "", sinks ? ", sinks" : "", ", page ", page,
                        ", heads ", hq, "/", hkv, ", dim ", dim, ", seed ", seed, ", qo");
    for (int32_t x : qo) s += str(" ", x);
    s += ", kv";
    for (int32_t x : len) s += str(" ", x);
    return s;
  }
};

inline std::vector<int32_t> sums(const std::vector<int32_t>& v) {
  std::vector<int32_t> s{0};
  for (int32_t x : v) s.push_back(s.back() + x);
  return s;
}

/// The tensors of a Features. Pages are handed out in a scattered order.
struct Batch {
  Features s;
  std::mt19937 random;
  std::vector<int32_t> pages, indptr{0}, last;
  Tensor q, k, v, k_sf, v_sf, sinks, qo_indptr, kv_indptr, kv_indices, last_len, mask, prefix, items,
      workspace = Tensor::empty({0}, DType::kU8);
  TensorView k_view, v_view, k_sf_view, v_sf_view;  // as the layout has them
  static constexpr int64_t kItems = 64;

  explicit Batch(Features f) : s(std::move(f)), random(s.seed) {
    for (int32_t n : s.len) {
      const auto count = static_cast<int32_t>(ceil_div(n, s.page));
      indptr.push_back(indptr.back() + count);
      last.push_back(n ? static_cast<int32_t>((n - 1) % s.page + 1) : 1);
    }
    const int32_t pool = indptr.back() + 2;
    for (int32_t i = 0; i < indptr.back(); ++i) pages.push_back(pool - 1 - i);
    std::shuffle(pages.begin(), pages.end(), random);
    const int64_t rows = sums(s.qo).back();
    q = normal({rows, s.hq, s.dim}, s.q);
    const bool fp4 = s.kv == DType::kU8;
    make_plane(k, k_view, pool, fp4 ? s.dim / 2 : s.dim, s.kv, 0);
    make_plane(v, v_view, pool, fp4 ? s.dim / 2 : s.dim, s.kv, s.pair ? 8 : 0);
    if (fp4)
      make_plane(k_sf, k_sf_view, pool, s.dim / 16, DType::kF8E4M3, 0),
          make_plane(v_sf, v_sf_view, pool, s.dim / 16, DType::kF8E4M3, s.pair ? 8 : 0);
    sinks = normal({s.hq}, DType::kF32);
    qo_indptr = ints(sums(s.qo)), kv_indptr = ints(indptr), kv_indices = ints(pages), last_len = ints(last);
    make_mask();
  }
  Tensor normal(std::initializer_list<int64_t> shape, DType t) {
    Tensor x = Tensor::empty(shape, t);
    std::normal_distribution<double> d;
    for (int64_t i = 0; i < x.numel(); ++i) ref::store_element(x.view(), i, d(random));
    return x;
  }
  /// [pages, page, heads, dim] or with heads first; NaN in slots without a token. NVFP4 bytes are any, their scales
  /// carry the NaN.
  void make_plane(Tensor& memory, TensorView& view, int64_t pool, int64_t dim, DType t, int64_t gap) {
    const bool nhd = s.layout == "NHD";
    memory = Tensor::empty({pool, nhd ? s.page : s.hkv, nhd ? s.hkv : s.page, dim + gap}, t);
    std::normal_distribution<double> d;
    const bool scale = t == DType::kF8E4M3 && s.kv == DType::kU8;
    for (int64_t i = 0; i < memory.numel(); ++i)
      ref::store_element(memory.view(), i, t == DType::kU8 ? static_cast<double>(random() & 255) : NAN);
    view = memory.view().slice(3, 0, dim);
    if (t == DType::kU8) return;
    for (size_t b = 0; b < s.len.size(); ++b)
      for (int64_t j = 0; j < s.len[b]; ++j) {
        const int64_t page = pages[static_cast<size_t>(indptr[b] + j / s.page)], n = j % s.page;
        for (int64_t h = 0; h < s.hkv; ++h)
          for (int64_t x = 0; x < dim; ++x)
            ref::put(view, {page, nhd ? n : h, nhd ? h : n, x},
                     scale ? 0.25 + 0.25 * static_cast<double>(random() & 3) : d(random));
      }
  }
  void make_mask() {
    int64_t bits = 0, bytes = 0;
    std::vector<uint32_t> first;
    for (size_t b = 0; b < s.len.size(); ++b) {
      bits += static_cast<int64_t>(s.qo[b]) * s.len[b];
      bytes += ceil_div(static_cast<int64_t>(s.qo[b]) * s.len[b], 8);
      first.push_back(static_cast<uint32_t>(std::max(s.len[b] / 3, s.len[b] - static_cast<int32_t>(kItems))));
    }
    mask = Tensor::empty({s.mask == "packed" ? bytes : bits}, s.mask == "packed" ? DType::kU8 : DType::kBool);
    for (int64_t i = 0; i < mask.numel(); ++i)
      mask.data_as<uint8_t>()[i] = static_cast<uint8_t>(s.mask == "packed" ? random() & 255 : random() & 1);
    prefix = Tensor::copy_of(std::span<const uint32_t>(first), {static_cast<int64_t>(first.size())});
    items = Tensor::empty({static_cast<int64_t>(s.len.size()) * kItems}, DType::kU16);
    for (int64_t i = 0; i < items.numel(); ++i) items.data_as<uint16_t>()[i] = static_cast<uint16_t>(i % kItems % 7);
  }
  op::PagedKv cache() const { return op::PagedKv(k_view, v_view); }
  std::optional<op::PagedKv> scales() const {
    if (s.kv != DType::kU8) return std::nullopt;
    return op::PagedKv(k_sf_view, v_sf_view);
  }
  BatchPrefillPlan plan() const {
    BatchPrefillPlan p{.qo_indptr = qo_indptr,
                       .paged_kv_indptr = kv_indptr,
                       .paged_kv_indices = kv_indices,
                       .paged_kv_last_page_len = last_len,
                       .num_qo_heads = s.hq,
                       .num_kv_heads = s.hkv,
                       .head_dim_qk = s.dim,
                       .page_size = s.page};
    p.causal = s.mask == "causal", p.window_left = s.window, p.pos_encoding_mode = s.pos;
    p.q_data_type = s.q, p.kv_data_type = s.kv;
    if (s.cap > 0) p.logits_soft_cap = s.cap;
    if (s.mask == "custom") p.custom_mask = mask;
    if (s.mask == "packed") p.packed_custom_mask = mask;
    if (s.mask == "items")
      p.prefix_len_ptr = prefix, p.token_pos_in_items_ptr = items, p.token_pos_in_items_len = kItems;
    return p;
  }
  BatchPrefillRun run() const {
    BatchPrefillRun r{.q = q, .paged_kv_cache = cache(), .return_lse = true};
    if (s.sinks) r.sinks = sinks;
    r.kv_cache_sf = scales();
    return r;
  }
};

inline void expect_near(const Tensor& got, const Tensor& want, double tolerance, const std::string& what) {
  const cases::Comparison c = cases::compare(got.view(), want.view(), tolerance, tolerance);
  EXPECT_TRUE(c.equal) << what << ": " << c.text;
}
/// `run` by the selected kernel, against the reference; a rotation's angle is rounded to f32 where the
/// kernel reads it.
template <class Run>
void expect_reference(const Features& s, Run run) {
  const std::pair<Tensor, Tensor> got = run();
  op::ForceCandidate force("reference");
  const std::pair<Tensor, Tensor> want = run();
  const double exact = s.pos == "ROPE_LLAMA" ? 1e-4 : 2e-5;
  expect_near(got.first, want.first, s.q == DType::kF32 ? exact : s.q == DType::kF16 ? 2e-3 : 1e-2, "out, " + s.text());
  expect_near(got.second, want.second, s.q == DType::kF32 ? exact : 1e-3, "lse, " + s.text());
}

}  // namespace flashinfer::attention_test
