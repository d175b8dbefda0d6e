// SPDX-License-Identifier: Apache-2.0
// sampling_from_logits on the CPU: the largest logit plus Gumbel noise -ln 2 * log2(-log2(u (1 - 2^-23))), the smallest
// index of equal ones. A group of g = gcd(4, v) tokens shares a Philox counter: subsequence = row * v + first token of
// the group (row 0 where a row has a seed of its own), one word each. 64 tokens are done at a time; they are skipped when
// not even the largest noise could lift one of them above the best so far.
#pragma once
#include "flashinfer/kernels/cpu/philox.h"
#include "flashinfer/kernels/cpu/select.h"
#include "flashinfer/ops/sampling/params.h"

namespace flashinfer::cpu {

inline constexpr int kGumbelTokens = 64;
inline constexpr float kGumbelMost = 15.75f;  // noise at u = 1 is 15.6

/// log2 of 64 normal positive numbers; relative error below 3e-7 near 1 too. Integer steps, so that loops vectorise.
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

/// Word `word` of the counters (block, subsequence_0 + step * i), i in [0, 16): all four words of each.
FI_VEC_INLINE void philox_lanes(uint64_t seed, uint64_t first, uint64_t step, uint64_t block, uint32_t (*out)[16]) {
  uint32_t c0[16], c1[16], c2[16], c3[16];
  for (uint64_t i = 0; i < 16; ++i) {
    const uint64_t subsequence = first + step * i;
    c0[i] = static_cast<uint32_t>(block);
    c1[i] = static_cast<uint32_t>(block >> 32);
    c2[i] = static_cast<uint32_t>(subsequence);
    c3[i] = static_cast<uint32_t>(subsequence >> 32);
  }
  uint32_t k0 = static_cast<uint32_t>(seed), k1 = static_cast<uint32_t>(seed >> 32);
  for (int round = 0; round < 10; ++round) {
    for (int i = 0; i < 16; ++i) {
      const uint64_t a = uint64_t{0xD2511F53u} * c0[i], b = uint64_t{0xCD9E8D57u} * c2[i];
      c0[i] = static_cast<uint32_t>(b >> 32) ^ c1[i] ^ k0;
      c1[i] = static_cast<uint32_t>(b);
      c2[i] = static_cast<uint32_t>(a >> 32) ^ c3[i] ^ k1;
      c3[i] = static_cast<uint32_t>(a);
    }
    k0 += 0x9E3779B9u;
    k1 += 0xBB67AE85u;
  }
  for (int i = 0; i < 16; ++i) out[0][i] = c0[i], out[1][i] = c1[i], out[2][i] = c2[i], out[3][i] = c3[i];
}

/// The noise of 64 tokens from `first` on (a multiple of 64 behind the row's start).
inline void gumbel_noise(uint64_t seed, uint64_t first, uint64_t offset, int group, float* noise) {
  for (int t = 0; t < kGumbelTokens; t += 16 * group) {
    uint32_t word[8][16];
    const uint64_t step = static_cast<uint64_t>(group);
    const int shift = static_cast<int>(offset % 4);
    philox_lanes(seed, first + static_cast<uint64_t>(t), step, offset / 4, word);
    if (shift + group > 4) philox_lanes(seed, first + static_cast<uint64_t>(t), step, offset / 4 + 1, word + 4);
    for (int w = 0; w < group; ++w)
      for (int i = 0; i < 16; ++i)
        noise[t + i * group + w] = (static_cast<float>(word[shift + w][i]) * 0x1p-32f + 0x1p-33f) * (1.0f - 0x1p-23f);
  }
  log2_lanes(noise);
  for (int i = 0; i < kGumbelTokens; ++i) noise[i] = -noise[i];
  log2_lanes(noise);
  for (int i = 0; i < kGumbelTokens; ++i) noise[i] *= -0.693147181f;
}

struct GumbelRow {
  uint64_t seed, base, offset;  // base: the subsequence of token 0
  int group;
};
/// The key of the best token in [begin, end); 0 when none is above -inf.
template <class T>
inline uint64_t gumbel_best(const T* x, int64_t begin, int64_t end, const GumbelRow& g) {
  float best = -__builtin_inff();
  int64_t at = -1;
  for (int64_t b = begin; b < end; b += kGumbelTokens) {
    const int64_t n = end - b < kGumbelTokens ? end - b : kGumbelTokens;
    if (!(max_row(x + b, n) + kGumbelMost > best)) continue;
    float noise[kGumbelTokens];
    gumbel_noise(g.seed, g.base + static_cast<uint64_t>(b), g.offset, g.group, noise);
    for (int64_t i = 0; i < n; ++i) {
      const float v = to_f32(x[b + i]) + noise[i];
      if (v > best) best = v, at = b + i;
    }
  }
  return at < 0 ? 0 : element_key(best, at, false);
}

template <SamplingConfig C>
void gumbel(const GumbelParams& p, int64_t task) {
  using T = scalar_of_t<C.dtype>;
  const int group = p.v % 4 == 0 ? 4 : p.v % 2 == 0 ? 2 : 1;
  const auto best_of = [&](int64_t r, int64_t begin, int64_t end) {
    const int64_t mapped = p.indices ? (p.indices_wide ? static_cast<const int64_t*>(p.indices)[r]
                                                       : static_cast<const int32_t*>(p.indices)[r])
                                     : r;
    const uint64_t subsequence = p.random.own_seed ? 0 : static_cast<uint64_t>(r) * static_cast<uint64_t>(p.v);
    return gumbel_best(static_cast<const T*>(p.logits) + mapped * p.logits_stride, begin, end,
                       {p.random.seed[r * p.random.seed_stride], subsequence, p.random.offset[r * p.random.offset_stride],
                        group});
  };
  const int64_t chunks = survey_chunks(p.v);
  if (p.phase == 1) {
    const int64_t begin = task % chunks * kSurveyChunk;
    p.best[task] = best_of(task / chunks, begin, p.v - begin < kSurveyChunk ? p.v : begin + kSurveyChunk);
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
