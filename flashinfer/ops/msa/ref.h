// SPDX-License-Identifier: Apache-2.0
// The family's references: double precision, plain loops over whole rows.
#pragma once
#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include "flashinfer/ops/common/nvfp4_ref.h"
#include "flashinfer/ops/msa/inputs.h"

namespace flashinfer::ref {

/// Q, K or V with its scale factors: an element by (row of scales, data row).
struct MsaElements {
  const TensorView& t;
  const uint8_t* scale;  // NVFP4, 128x4 layout of 8 columns

  double operator()(const Index& at, int64_t scale_row, int64_t d) const {
    Index x = at;
    if (!scale) return get(t, x, d);
    const uint8_t byte = static_cast<uint8_t>(get(t, x, d / 2));
    const int64_t r = scale_row, c = d / 16;
    e4m3_t s;
    s.bits = scale[(r / 128 * 2 + c / 4) * 512 + r % 32 * 16 + r % 128 / 32 * 4 + c % 4];
    return e2m1_value(d % 2 ? byte >> 4 : byte & 15) * static_cast<double>(static_cast<float>(s));
  }
};

/// Element d of key j of request b.
inline double msa_key(const msa::Batch& batch, const MsaElements& k, int64_t b, int64_t j, int64_t g, int64_t d) {
  const int64_t heads = k.t.size(1);
  if (!batch.page_table) {
    const int64_t key = batch.first_key(b) + j;
    return k({key, g}, key * heads + g, d);
  }
  const auto page = static_cast<int64_t>(at(*batch.page_table, {b, j / 128}));
  return k({page, g, j % 128}, (page * heads + g) * 128 + j % 128, d);
}

inline double msa_dot(const msa::Batch& batch, const MsaElements& q, const MsaElements& k, int64_t b, int64_t r,
                      int64_t h, int64_t j) {
  const int64_t g = h / (q.t.size(1) / k.t.size(1));
  double sum = 0;
  for (int64_t d = 0; d < 128; ++d) sum += q({r, h}, r * q.t.size(1) + h, d) * msa_key(batch, k, b, j, g, d);
  return sum;
}

inline void msa_scores(const msa::Batch& batch, const MsaElements& q, const MsaElements& k, double factor,
                       bool reduce_heads, const TensorView& out) {
  const double none = -std::numeric_limits<double>::infinity();
  for (int64_t b = 0; b < batch.requests(); ++b)
    for (int64_t r = batch.first_row(b); r < batch.first_row(b + 1); ++r)
      for (int64_t t = 0; t < out.size(1); ++t) {
        std::vector<double> most(static_cast<size_t>(q.t.size(1)), none);
        const int64_t seen = batch.visible(b, r - batch.first_row(b));
        for (int64_t h = 0; h < q.t.size(1); ++h)
          for (int64_t j = t * 128; j < std::min(seen, (t + 1) * 128); ++j)
            most[static_cast<size_t>(h)] =
                std::max(most[static_cast<size_t>(h)], msa_dot(batch, q, k, b, r, h, j) * factor);
        if (reduce_heads)
          put(out, {0, t, r}, *std::max_element(most.begin(), most.end()));
        else
          for (int64_t h = 0; h < q.t.size(1); ++h) put(out, {h, t, r}, most[static_cast<size_t>(h)]);
      }
}

struct MsaNumbers {
  double scale = 1, v_scale = 1, temperature = 1;  // scale: of the logits
};
inline double log_sum_exp(const std::vector<double>& x, double factor) {
  if (x.empty()) return -std::numeric_limits<double>::infinity();
  double most = -std::numeric_limits<double>::infinity(), sum = 0;
  for (double v : x) most = std::max(most, v * factor);
  for (double v : x) sum += std::exp(v * factor - most);
  return most + std::log(sum);
}

inline void msa_attention(const msa::Batch& batch, const MsaElements& q, const MsaElements& k, const MsaElements& v,
                          const TensorView& selected, const MsaNumbers& n, const TensorView& out, const TensorView* lse,
                          const TensorView* lse_t) {
  const int64_t heads = q.t.size(1), group = heads / k.t.size(1);
  for (int64_t b = 0; b < batch.requests(); ++b)
    for (int64_t r = batch.first_row(b); r < batch.first_row(b + 1); ++r)
      for (int64_t h = 0; h < heads; ++h) {
        const int64_t seen = batch.visible(b, r - batch.first_row(b));
        std::vector<bool> chosen(static_cast<size_t>(batch.blocks(b)));
        for (int64_t c = 0; c < selected.size(2); ++c)
          if (const double t = at(selected, {h / group, r, c}); t >= 0 && t < static_cast<double>(chosen.size()))
            chosen[static_cast<size_t>(t)] = true;
        std::vector<int64_t> keys;
        std::vector<double> logits;
        for (int64_t j = 0; j < seen; ++j)
          if (chosen[static_cast<size_t>(j / 128)])
            keys.push_back(j), logits.push_back(msa_dot(batch, q, k, b, r, h, j) * n.scale);
        const double total = log_sum_exp(logits, 1);
        for (int64_t d = 0; d < 128; ++d) {
          double sum = 0;
          for (size_t i = 0; i < keys.size(); ++i)
            sum += std::exp(logits[i] - total) * msa_key(batch, v, b, keys[i], h / group, d);
          put(out, {r, h, d}, sum * n.v_scale);
        }
        if (lse) put(*lse, {r, h}, total);
        if (lse_t) put(*lse_t, {r, h}, log_sum_exp(logits, n.temperature));
      }
}

/// The topk largest of column r of head h, by repeated search.
inline std::vector<int64_t> msa_select(const TensorView& score, int64_t h, int64_t r, int64_t topk, int64_t valid,
                                       int64_t begin, int64_t end) {
  std::vector<bool> taken(static_cast<size_t>(valid));
  std::vector<int64_t> chosen;
  const auto take = [&](int64_t t) {
    if (t < 0 || t >= valid || taken[static_cast<size_t>(t)]) return;
    taken[static_cast<size_t>(t)] = true, chosen.push_back(t);
  };
  for (int64_t t = 0; t < begin; ++t) take(t);
  for (int64_t t = valid - end; t < valid; ++t) take(t);
  while (static_cast<int64_t>(chosen.size()) < std::min(topk, valid)) {
    int64_t best = -1;
    for (int64_t t = 0; t < valid; ++t) {
      if (taken[static_cast<size_t>(t)]) continue;
      const double x = at(score, {h, t, r}), y = best < 0 ? 0 : at(score, {h, best, r});
      if (best < 0 || x > y || (std::isnan(x) && !std::isnan(y))) best = t;
    }
    take(best);
  }
  std::sort(chosen.begin(), chosen.end());
  chosen.resize(static_cast<size_t>(topk), -1);
  return chosen;
}

}  // namespace flashinfer::ref
