// SPDX-License-Identifier: Apache-2.0
// Samplers and filters on a GPU: a cluster of blocks processes a row at a time. The passes are those of
// kernels/cuda/row.cuh, the steps between them those of sample_row.h, which the CPU runs too, so a seed and an offset
// give the CPU's token.
#pragma once
#include "flashinfer/core/int_math.h"
#include "flashinfer/kernels/cuda/cluster.h"
#include "flashinfer/kernels/cuda/rows.h"
#include "flashinfer/ops/sampling/kernels/cuda/row.cuh"
#include "flashinfer/ops/sampling/kernels/params.h"

namespace flashinfer::cu {

FI_GLOBAL_FN int64_t whole_of(const Column& c, int64_t row) {
  if (!c.data) return c.whole;
  const int64_t at = row * c.stride;
  return c.dtype == DType::kI32 ? static_cast<const int32_t*>(c.data)[at] : static_cast<const int64_t*>(c.data)[at];
}
FI_GLOBAL_FN float real_of(const Column& c, int64_t row) {
  if (!c.data) return c.real;
  const int64_t at = row * c.stride;
  switch (c.dtype) {
    case DType::kF16: return to_f32(static_cast<const f16_t*>(c.data)[at]);
    case DType::kBF16: return to_f32(static_cast<const bf16_t*>(c.data)[at]);
    case DType::kF64: return static_cast<float>(static_cast<const double*>(c.data)[at]);
    default: return static_cast<const float*>(c.data)[at];
  }
}
FI_GLOBAL_FN sampling::Uniforms uniforms_of(const RandomCudaParams& p, int64_t row) {
  return {static_cast<uint64_t>(whole_of(p.seed, row)), p.own_seed ? 0 : static_cast<uint64_t>(row),
          static_cast<uint64_t>(whole_of(p.offset, row))};
}
FI_GLOBAL_FN sampling::Thresholds thresholds_of(const SampleCudaParams& p, int64_t row) {
  sampling::Thresholds t{p.v, kInf, 0.0f, p.top_k.given != 0, p.min_p.given != 0, p.joint != 0};
  if (t.has_k) t.k = whole_of(p.top_k, row);
  if (t.k <= 0 || t.k > p.v) t.k = p.v;
  if (p.top_p.given) t.p = real_of(p.top_p, row);
  if (t.p >= 1.0f) t.p = kInf;
  if (t.has_min) t.min = real_of(p.min_p, row);
  return t;
}

template <int kThreads>
FI_GLOBAL_FN RowPasses<kThreads> row_passes() {
  using Passes = RowPasses<kThreads>;
  static_assert(Passes::kBins * 4 == kSharedBins && (2 + Passes::kWarps * kSampleBlocks) * 8 <= kSharedSlots);
  return {};
}
/// `scratch`: of the cluster.
FI_GLOBAL_FN sampling::Room room_of(float* scratch, int64_t v) {
  const SampleCudaScratch of = sample_cuda_scratch(v, true);
  const int64_t blocks = stats_blocks(v);
  float* at = reinterpret_cast<float*>(shared() + kSharedBins + kSharedSlots);
  const auto next = [&] { return at += blocks, at - blocks; };
  sampling::Room r;
  r.row.sums = next(), r.row.tops = next(), r.row.maxima = nullptr;
  r.inner.sums = next(), r.inner.tops = next(), r.inner.maxima = nullptr;
  r.sums[0] = next(), r.sums[1] = next();
  r.inner_sums[0] = next(), r.inner_sums[1] = next();
  r.values = scratch + of.values;
  r.positions = reinterpret_cast<uint32_t*>(scratch + of.positions);
  r.probs = scratch + of.probs;
  return r;
}

template <SampleCudaConfig C>
FI_GLOBAL_FN void sample(const SampleCudaParams& p) {
  using T = scalar_of_t<C.dtype>;
  const RowPasses<C.threads> m = row_passes<C.threads>();
  const uint32_t blocks = cluster_blocks(), first = block_x() / blocks;
  const sampling::Room room = room_of(p.scratch + first * sample_cuda_scratch(p.v, p.logits != 0).words, p.v);
  depend_wait();
  for (int64_t r = first; r < p.rows; r += blocks_x() / blocks) {
    const int64_t mapped = sampling::index_of(p.indices, p.indices_wide, r);
    int64_t token = -1;
    if (mapped >= 0 && mapped < p.input_rows) {
      const sampling::RowWithStats<T> row{static_cast<const T*>(p.input) + mapped * p.stride, p.v, room.row};
      m.block_stats(row.x, p.v, row.s);
      const sampling::Thresholds limits = thresholds_of(p, mapped);
      sampling::Uniforms u = uniforms_of(p.random, r);
      token = p.logits ? sample_logits(m, row, limits, u, room) : sample_probs(m, row, limits, u, room);
    }
    if (thread_x() == 0 && cluster_rank() == 0) {
      sampling::put_sample(p.samples, p.samples_wide, r, token < 0 ? 0 : token);
      if (p.valid) p.valid[r] = token >= 0;
    }
    sync_threads();
  }
  depend_launch();
}

/// The least value above 0 with less than `mass` above it: bisection on keys, with sums of statistics blocks.
template <class M, class T>
FI_GLOBAL_FN float mass_value(const M& m, const T* x, int64_t n, const BlockStats& s, float* sums, double mass) {
  uint32_t low = cpu::value_key(0.0f),
           high = cpu::value_key(m.top_of(s.tops, stats_blocks(n)));  // no element is above the top
  while (high - low > 1) {                                            // low does not pass
    const uint32_t mid = low + (high - low) / 2;
    if (m.above(x, n, cpu::key_value(mid), s.tops, sums).sum < mass)
      high = mid;
    else
      low = mid;
  }
  return cpu::key_value(high);
}

/// The cluster's threads write a row.
template <int kThreads, class U, class T>
FI_GLOBAL_FN void write_kept(const T* x, U* y, int64_t n, float least, float scale, float other) {
  constexpr int N = kPiece<T>;
  const bool aligned = (reinterpret_cast<uintptr_t>(x) | reinterpret_cast<uintptr_t>(y)) % 16 == 0;
  const int64_t step = int64_t{kThreads} * N;
  for (int64_t at = cluster_rank() * step + thread_x() * N; at < n; at += cluster_blocks() * step) {
    const bool whole = aligned && at + N <= n;
    float v[N];
    if (whole)
      load_piece<true, N>(x, at, n, v);
    else
      load_piece<false, N>(x, at, n, v);
#pragma unroll
    for (int i = 0; i < N; ++i) v[i] = v[i] >= least ? v[i] * scale : other;
    if (whole)
      store_piece<true, N>(y, at, n, v);
    else
      store_piece<false, N>(y, at, n, v);
  }
}

/// The least value that is kept and the sum of the kept ones (mask: 1).
template <class M, class T>
FI_GLOBAL_FN float least_kept(const M& m, const FilterCudaParams& p, const T* x, int64_t r, const BlockStats& s,
                              float* sums, double& sum) {
  const int64_t blocks = stats_blocks(p.v);
  int64_t k = p.top_k.given ? whole_of(p.top_k, r) : p.v;
  if (k <= 0 || k > p.v) k = p.v;
  sum = 1;
  if (k < p.v || !p.mask) m.block_stats(x, p.v, s);
  if (p.mask) return k < p.v ? m.kth_value(x, p.v, s, k, nullptr, nullptr) : -kInf;
  sum = m.total(s.sums, blocks);
  if (!(sum > 0) || sum > sampling::kMostSum)
    return __builtin_bit_cast(float, 0x7fc00000u);  // NaN, infinite, or no positive element: all becomes 0
  const float top_p = p.top_p.given ? real_of(p.top_p, r) : 1.0f;
  float least = 0.0f;
  if (top_p <= 0.0f)
    least = m.top_of(s.tops, blocks);
  else if (top_p < 1.0f)
    least = mass_value(m, x, p.v, s, sums, static_cast<double>(top_p));
  else if (k < p.v)
    least = m.kth_value(x, p.v, s, k, nullptr, nullptr);
  if (!(least > 0.0f)) return sampling::kLeastPositive;  // no other element has mass
  sum = m.above(x, p.v, cpu::key_value(cpu::value_key(least) - 1), s.tops, sums).sum;
  return least;
}

template <SampleCudaConfig C>
FI_GLOBAL_FN void filter(const FilterCudaParams& p) {
  using T = scalar_of_t<C.dtype>;
  const RowPasses<C.threads> m = row_passes<C.threads>();
  const sampling::Room room = room_of(nullptr, p.v);
  const uint32_t blocks = cluster_blocks();
  depend_wait();
  for (int64_t r = block_x() / blocks; r < p.rows; r += blocks_x() / blocks) {
    const T* x = static_cast<const T*>(p.input) + r * p.input_stride;
    double sum;
    const float least = least_kept(m, p, x, r, room.row, room.sums[0], sum);
    const float scale = p.mask ? 1.0f : static_cast<float>(1.0 / sum), other = p.mask ? -kInf : 0.0f;
    if (p.top_p.given)
      write_kept<C.threads>(x, static_cast<float*>(p.out) + r * p.out_stride, p.v, least, scale, other);
    else
      write_kept<C.threads>(x, static_cast<T*>(p.out) + r * p.out_stride, p.v, least, scale, other);
  }
  depend_launch();
}

}  // namespace flashinfer::cu
