// SPDX-License-Identifier: Apache-2.0
// sampling_from_logits on a GPU: the largest logit plus Gumbel noise, by the arithmetic of kernels/cpu/gumbel.h. A
// block processes a chunk of a row, a thread four neighbouring tokens at a time; a second launch combines the keys of
// several chunks.
#pragma once
#include "flashinfer/ops/sampling/kernels/cuda/sample.cuh"

namespace flashinfer::cu {

/// Word `w` of two consecutive counters; registers cannot be indexed.
FI_GLOBAL_FN uint32_t word_of(const cpu::PhiloxBlock& a, const cpu::PhiloxBlock& b, int w) {
  const cpu::PhiloxBlock& c = w < 4 ? a : b;
  const int i = w & 3;
  return i < 2 ? (i == 0 ? c.word[0] : c.word[1]) : i == 2 ? c.word[2] : c.word[3];
}

/// The best key of tokens [at, at + 4) of row `x`; `group` tokens share a counter.
template <class T>
FI_GLOBAL_FN uint64_t gumbel_four(const T* x, int64_t at, int64_t end, bool aligned, uint64_t base, int group,
                                  uint64_t seed, uint64_t offset) {
  float v[4];
  if (aligned && at + 4 <= end)
    load_piece<true, 4>(x, at, end, v);
  else
    load_piece<false, 4>(x, at, end, v);
  const int shift = static_cast<int>(offset % 4);
  uint64_t best = 0;
  cpu::PhiloxBlock a{}, b{};
#pragma unroll
  for (int j = 0; j < 4; ++j) {
    if (at + j >= end) break;
    if (j % group == 0) {
      a = cpu::philox(seed, base + static_cast<uint64_t>(at + j), offset / 4);
      if (shift + group > 4) b = cpu::philox(seed, base + static_cast<uint64_t>(at + j), offset / 4 + 1);
    }
    const float bits = static_cast<float>(word_of(a, b, shift + j % group));
    const float u = mul_rn(add_rn(mul_rn(bits, 0x1p-32f), 0x1p-33f), 1.0f - 0x1p-23f);
    const float noise = mul_rn(log2_exact(-log2_exact(u)), -0.693147181f);
    const float value = add_rn(noise, v[j]);
    if (!(value > -kInf)) continue;
    const uint64_t key = cpu::element_key(value, at + j, false);
    best = key > best ? key : best;
  }
  return best;
}

template <SampleCudaConfig C>
FI_GLOBAL_FN void gumbel(const SampleCudaParams& p) {
  using T = scalar_of_t<C.dtype>;
  const RowPasses<C.threads> m = row_passes<C.threads>();
  const int64_t chunks = cpu::stats_chunks(p.v), r = block_x() / chunks, begin = block_x() % chunks * cpu::kStatsChunk;
  const int64_t end = p.v - begin < cpu::kStatsChunk ? p.v : begin + cpu::kStatsChunk;
  depend_wait();
  const int64_t mapped = sampling::index_of(p.indices, p.indices_wide, r);
  uint64_t best = 0;
  if (mapped >= 0 && mapped < p.input_rows) {
    const T* x = static_cast<const T*>(p.input) + mapped * p.stride;
    const bool aligned = reinterpret_cast<uintptr_t>(x) % (4 * sizeof(T)) == 0;
    const sampling::Uniforms u = uniforms_of(p.random, r);
    const uint64_t base = u.subsequence * static_cast<uint64_t>(p.v);  // of token 0
    const int group = p.v % 4 == 0 ? 4 : p.v % 2 == 0 ? 2 : 1;
    for (int64_t at = begin + 4 * static_cast<int64_t>(thread_x()); at < end; at += 4 * C.threads) {
      const uint64_t key = gumbel_four(x, at, end, aligned, base, group, u.seed, u.offset);
      best = key > best ? key : best;
    }
  }
  best = m.largest(best);
  if (thread_x() == 0) {
    if (chunks > 1)
      p.best[block_x()] = best;
    else
      sampling::put_sample(p.samples, p.samples_wide, r, best ? cpu::key_index(best, false) : 0);
  }
  depend_launch();
}

/// A thread combines a row's keys.
template <SampleCudaConfig C>
FI_GLOBAL_FN void gumbel_last(const SampleCudaParams& p) {
  depend_wait();
  const int64_t chunks = cpu::stats_chunks(p.v), r = static_cast<int64_t>(block_x()) * C.threads + thread_x();
  if (r < p.rows) {
    uint64_t best = 0;
    for (int64_t c = 0; c < chunks; ++c) best = p.best[r * chunks + c] > best ? p.best[r * chunks + c] : best;
    sampling::put_sample(p.samples, p.samples_wide, r, best ? cpu::key_index(best, false) : 0);
  }
  depend_launch();
}

}  // namespace flashinfer::cu
