// SPDX-License-Identifier: Apache-2.0
// sampling_from_logits on the CPU: the largest logit plus Gumbel noise -ln 2 * log2(-log2(u (1 - 2^-23))), the smallest
// index among equal ones. A group of g = gcd(4, v) tokens shares a Philox counter: subsequence = row * v + first token
// of the group (row 0 where each row has its own seed), one word each. 64 tokens are processed at a time; no logarithms
// are computed when the largest uniform number would not lift the largest logit above the best so far.
#pragma once
#include "flashinfer/kernels/common/philox.h"
#include "flashinfer/kernels/cpu/exp.h"
#include "flashinfer/kernels/cpu/select.h"
#include "flashinfer/ops/sampling/kernels/params.h"

namespace flashinfer::cpu {

inline constexpr int kGumbelTokens = 64;
inline constexpr float kGumbelMost = 15.75f;  // noise at u = 1 is 15.6

/// log2 of 64 normal positive numbers; relative error below 3e-7 near 1 too. Uses integer steps, so that loops
/// vectorise.
FI_VEC_INLINE void log2_lanes(float* x) {
  for (int i = 0; i < kGumbelTokens; ++i) {
    const uint32_t bits = __builtin_bit_cast(uint32_t, x[i]);
    const uint32_t shifted = bits - 0x3f3504f3u;  // mantissas in [sqrt(1/2), sqrt(2))
    const float e = static_cast<float>(static_cast<int32_t>(shifted) >> 23);
    const float m = __builtin_bit_cast(float, (shifted & 0x7fffffu) + 0x3f3504f3u);
    const float s = (m - 1.0f) / (m + 1.0f), q = s * s;
    // 2 / ln 2 * (1 + q / 3 + q^2 / 5 + ...): the series of atanh, q <= 0.0295.
    const float p = 2.88539008f + q * (0.96179669f + q * (0.57707802f + q * (0.41219858f + q * 0.32059890f)));
    x[i] = e + s * p;
  }
}

/// All words of 8 counters (block, subsequence), as 32-bit numbers in 64-bit lanes.
typedef uint64_t Words __attribute__((vector_size(64)));
FI_VEC_INLINE void philox_lanes(uint64_t seed, const Words& subsequence, uint64_t block, Words* c) {
  const Words low = Words{} + 0xffffffffu;
  c[0] = Words{} + (block & 0xffffffffu);
  c[1] = Words{} + (block >> 32);
  c[2] = subsequence & low;
  c[3] = subsequence >> 32;
  uint32_t k0 = static_cast<uint32_t>(seed), k1 = static_cast<uint32_t>(seed >> 32);
#pragma GCC unroll 10
  for (int round = 0; round < 10; ++round) {
    const Words a = c[0] * 0xD2511F53u, b = c[2] * 0xCD9E8D57u;
    c[0] = (b >> 32) ^ c[1] ^ (Words{} + k0);
    c[1] = b & low;
    c[2] = (a >> 32) ^ c[3] ^ (Words{} + k1);
    c[3] = a & low;
    k0 += 0x9E3779B9u;
    k1 += 0xBB67AE85u;
  }
}

struct GumbelRow {
  uint64_t seed, base, offset;  // base: the subsequence of token 0
};

/// The uniform numbers of 64 tokens from `first` on, scaled below 1.
template <int kGroup>
inline void gumbel_uniforms(const GumbelRow& g, uint64_t first, float* out) {
  const uint64_t shift = g.offset % 4;
  for (int t = 0; t < kGumbelTokens; t += 8 * kGroup) {
    const Words lane{0, 1, 2, 3, 4, 5, 6, 7};
    const Words subsequence = g.base + first + static_cast<uint64_t>(t) + lane * static_cast<uint64_t>(kGroup);
    Words c[8];
    philox_lanes(g.seed, subsequence, g.offset / 4, c);
    if (shift + kGroup > 4) philox_lanes(g.seed, subsequence, g.offset / 4 + 1, c + 4);
    float u[kGroup][8];
    for (int w = 0; w < kGroup; ++w)
      for (int i = 0; i < 8; ++i)
        u[w][i] =
            (static_cast<float>(static_cast<uint32_t>(c[shift + static_cast<uint64_t>(w)][i])) * 0x1p-32f + 0x1p-33f) *
            (1.0f - 0x1p-23f);
    for (int i = 0; i < 8; ++i)
      for (int w = 0; w < kGroup; ++w) out[t + i * kGroup + w] = u[w][i];
  }
}
inline void gumbel_noise(float* u) {
  log2_lanes(u);
  for (int i = 0; i < kGumbelTokens; ++i) u[i] = -u[i];
  log2_lanes(u);
  for (int i = 0; i < kGumbelTokens; ++i) u[i] *= -0.693147181f;
}

/// A uniform number whose noise is below `needed`, with a margin for rounding.
inline float never_enough(float needed) {
  float lane[Vec::kLanes];
  store(lane, exp2(-exp2(splat((0.01f - needed) * 1.44269504f))));
  return lane[0] - 1e-6f;
}

/// The key of the best token in [begin, end); 0 when none is above -inf.
template <int kGroup, class T>
inline uint64_t gumbel_best(const T* x, int64_t begin, int64_t end, const GumbelRow& g) {
  float best = -__builtin_inff();
  int64_t at = -1;
  for (int64_t b = begin; b < end; b += kGumbelTokens) {
    const int64_t n = end - b < kGumbelTokens ? end - b : kGumbelTokens;
    const float top = max_row(x + b, n);
    if (!(top + kGumbelMost > best)) continue;
    float v[kGumbelTokens];
    gumbel_uniforms<kGroup>(g, static_cast<uint64_t>(b), v);
    if (max_row(v, n) <= never_enough(best - top)) continue;
    gumbel_noise(v);
    for (int64_t i = 0; i < n; ++i) v[i] += to_f32(x[b + i]);
    const float m = max_row(v, n);
    if (!(m > best)) continue;
    best = m;
    for (at = b; v[at - b] != m;) ++at;
  }
  return at < 0 ? 0 : element_key(best, at, false);
}

template <SamplingConfig C>
void gumbel(const GumbelParams& p, int64_t task) {
  using T = scalar_of_t<C.dtype>;
  const auto best_of = [&](int64_t r, int64_t begin, int64_t end) {
    const int64_t mapped = p.indices ? (p.indices_wide ? static_cast<const int64_t*>(p.indices)[r]
                                                       : static_cast<const int32_t*>(p.indices)[r])
                                     : r;
    const uint64_t subsequence = p.random.own_seed ? 0 : static_cast<uint64_t>(r) * static_cast<uint64_t>(p.v);
    const T* x = static_cast<const T*>(p.logits) + mapped * p.logits_stride;
    const GumbelRow g{p.random.seed[r * p.random.seed_stride], subsequence,
                      p.random.offset[r * p.random.offset_stride]};
    if (p.v % 4 == 0) return gumbel_best<4>(x, begin, end, g);
    return p.v % 2 == 0 ? gumbel_best<2>(x, begin, end, g) : gumbel_best<1>(x, begin, end, g);
  };
  const int64_t chunks = stats_chunks(p.v);
  if (p.phase == 1) {
    const int64_t begin = task % chunks * kStatsChunk;
    p.best[task] = best_of(task / chunks, begin, p.v - begin < kStatsChunk ? p.v : begin + kStatsChunk);
    return;
  }
  const int64_t begin = task * p.rows_per_task;
  const int64_t end = begin + p.rows_per_task < p.rows ? begin + p.rows_per_task : p.rows;
  for (int64_t r = begin; r < end; ++r) {
    uint64_t key = 0;
    if (p.phase == 0) key = best_of(r, 0, p.v);
    for (int64_t c = 0; p.phase == 2 && c < chunks; ++c)
      key = p.best[r * chunks + c] > key ? p.best[r * chunks + c] : key;
    const int64_t id = key ? key_index(key, false) : 0;
    if (p.samples_wide)
      static_cast<int64_t*>(p.samples)[r] = id;
    else
      static_cast<int32_t*>(p.samples)[r] = static_cast<int32_t>(id);
  }
}

}  // namespace flashinfer::cpu
