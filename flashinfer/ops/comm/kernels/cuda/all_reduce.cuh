// SPDX-License-Identifier: Apache-2.0
// All-reduce over memory that the GPUs of all ranks access. A call has phases: a block writes what others need of it to
// its own rank's memory, tells block b of each other rank so, waits for theirs, and reads. One launch does all: blocks
// with the same index on all ranks meet, the others do not. The launch is cooperative, since a block that waits must
// not keep one from running that another rank waits for.
//
// Order: a call's input lies in one of two slots, in turn. It is written again two calls later; then block 0 has met
// the others in the call between, whose launches begin when those before have ended, so nobody reads it any more,
// whatever the sizes of the calls were. Sums are written after a phase of the same call, so one slot does. Phases are
// counted, never reset; every launch advances the count of all blocks by two.
//
// Bits: sums are in the order of ranks, the mean of squares in that of kernels/cpu/lanes.h, codes those of the CPU's
// quantisers. So all ranks, one shot and two, and the CPU get the same.
#pragma once
#include "flashinfer/kernels/cuda/peers.h"
#include "flashinfer/ops/comm/kernels/cuda_params.h"
#include "flashinfer/ops/norm/kernels/cuda/quant.cuh"

namespace flashinfer::cu {

inline constexpr int kMostLoads = 8;  // of ranks' pieces in flight

template <AllReduceCudaConfig C>
struct AllReduceOf {
  using T = scalar_of_t<C.dtype>;
  static constexpr int N = kPiece<T>;
  static constexpr bool kAligned = C.aligned != 0;
  static constexpr int64_t kStep = int64_t{C.threads} * N;
};

/// Row `i` of a tensor that begins at `base`, and how long it is.
template <AllReduceCudaConfig C>
struct AllReduceRow {
  int64_t at, d;
  FI_GLOBAL_FN AllReduceRow(const AllReduceCudaParams& p, int64_t i) : at(i * p.row.d), d(p.row.d) {
    if constexpr (!C.norm) d = p.elements - at < d ? p.elements - at : d;
  }
};

/// Rows of part `s` of the ranks' parts: [first, last).
struct AllReducePart {
  int64_t first, last;
  FI_GLOBAL_FN AllReducePart(const AllReduceCudaParams& p, int s, int ranks) {
    const int64_t rows = p.row.last, part = ceil_div(rows, ranks);
    first = part * s < rows ? part * s : rows, last = first + part < rows ? first + part : rows;
  }
};

/// Tells the other ranks' blocks with this index that phase `epoch` is written, and waits until they have told theirs.
template <AllReduceCudaConfig C>
FI_GLOBAL_FN void meet_ranks(const AllReduceCudaParams& p, uint32_t epoch) {
  if constexpr (C.ranks > 1) {
    sync_threads();
    const uint32_t r = thread_x();
    if (r < C.ranks && static_cast<int>(r) != p.rank) {
      const uint32_t mine = block_x() * kAllReduceRanks + static_cast<uint32_t>(p.rank),
                     others = block_x() * kAllReduceRanks + r;
      store_release_system(static_cast<uint32_t*>(const_cast<void*>(p.row.source[r])) + mine, epoch);
      wait_for_epoch(static_cast<uint32_t*>(const_cast<void*>(p.row.source[p.rank])) + others, epoch, p.limit);
    }
    sync_threads();
  }
}

template <AllReduceCudaConfig C>
FI_GLOBAL_FN auto* slot_of(const AllReduceCudaParams& p, int rank, int64_t slot) {
  char* const memory = static_cast<char*>(const_cast<void*>(p.row.source[rank]));
  return reinterpret_cast<scalar_of_t<C.dtype>*>(memory + kAllReduceFlagBytes + slot * p.slot);
}

/// A row of this rank's input to its slot.
template <AllReduceCudaConfig C>
FI_GLOBAL_FN void share_row(const AllReduceCudaParams& p, int64_t i, int64_t slot) {
  using A = AllReduceOf<C>;
  using T = typename A::T;
  constexpr int kLoads = 4;
  const AllReduceRow<C> row(p, i);
  const T* const from = static_cast<const T*>(p.input) + row.at;
  T* const to = slot_of<C>(p, p.rank, slot) + row.at;
  for (int64_t base = thread_x() * A::N; base < row.d; base += kLoads * A::kStep) {
    RawPiece<T, A::N> x[kLoads];
#pragma unroll
    for (int k = 0; k < kLoads; ++k) load_raw<A::kAligned, A::N, Hint::kOnce>(from, base + k * A::kStep, row.d, x[k]);
#pragma unroll
    for (int k = 0; k < kLoads; ++k) {
      const int64_t at = base + k * A::kStep;
      if constexpr (A::kAligned) {
        if (at < row.d) store(to + at, x[k].part[0]);
      } else {
#pragma unroll
        for (int j = 0; j < A::N; ++j)
          if (at + j < row.d) to[at + j] = x[k].part[0][j];
      }
    }
  }
}

/// Sums of the ranks' elements, in their order: as RankSum of kernels/cpu/all_reduce.h.
template <AllReduceCudaConfig C>
struct SumOfRanks {
  using A = AllReduceOf<C>;
  using T = typename A::T;
  const AllReduceCudaParams& p;
  int64_t row, d, slot;
  FI_GLOBAL_FN void operator()(int64_t at, float (&v)[A::N]) const {
#pragma unroll
    for (int i = 0; i < A::N; ++i) v[i] = 0.0f;
#pragma unroll 1  // unrolled, the loads of many ranks would spill
    for (int first = 0; first < C.ranks; first += kMostLoads) {
      RawPiece<T, A::N> x[kMostLoads];
#pragma unroll
      for (int k = 0; k < kMostLoads; ++k) {
        const int r = first + k;
        if (r >= C.ranks) break;
        const T* const from = r == p.rank ? static_cast<const T*>(p.input) : slot_of<C>(p, r, slot);
        load_raw<A::kAligned, A::N, Hint::kOnce>(from + row, at, d, x[k]);
      }
#pragma unroll
      for (int k = 0; k < kMostLoads; ++k) {
        const int r = first + k;
        if (r >= C.ranks) break;
#pragma unroll
        for (int i = 0; i < A::N; ++i) {
          const float before = C.fp32_acc || r <= 1 ? v[i] : to_f32(from_f32<T>(v[i]));
          v[i] = add_rn(before, x[k][i]);
        }
      }
    }
  }
};
/// Sums that a rank has left in its memory.
template <AllReduceCudaConfig C>
struct SumOfPart {
  using A = AllReduceOf<C>;
  using T = typename A::T;
  const T* from;
  int64_t d;
  FI_GLOBAL_FN void operator()(int64_t at, float (&v)[A::N]) const {
    RawPiece<T, A::N> x;
    load_raw<A::kAligned, A::N, Hint::kOnce>(from, at, d, x);
#pragma unroll
    for (int i = 0; i < A::N; ++i) v[i] = x[i];
  }
};

template <AllReduceCudaConfig C, class Value>
FI_GLOBAL_FN void store_row(typename AllReduceOf<C>::T* to, int64_t d, const Value& value) {
  using A = AllReduceOf<C>;
  for (int64_t at = thread_x() * A::N; at < d; at += A::kStep) {
    float v[A::N];
    value(at, v);
    store_piece<A::kAligned, A::N>(to, at, d, v);
  }
}

/// The sum of squares of a row in shared memory, in the order of kernels/cpu/lanes.h: element i is added to lane i %
/// 64, then lanes 32, 16, ... 1 apart are. By one warp, whose lane l has lanes 2l and 2l + 1; every lane gets it.
template <class T>
FI_GLOBAL_FN float sum_of_squares(const T* h, int64_t d) {
  float a = 0.0f, b = 0.0f;
#pragma unroll 4
  for (int64_t i = 2 * lane(); i < d; i += 64) {
    const Pack<T, 2> x = load_shared<2>(h + i);
    const float u = to_f32(x[0]), v = to_f32(x[1]);
    a = fmaf(u, u, a), b = fmaf(v, v, b);
  }
#pragma unroll
  for (uint32_t apart = 16; apart > 0; apart /= 2)
    a = add_rn(a, shuffle_xor(a, apart)), b = add_rn(b, shuffle_xor(b, apart));
  return add_rn(a, b);
}

/// What follows the sum of a row, with the row in shared memory between the steps.
template <AllReduceCudaConfig C>
struct FinishRow {
  using A = AllReduceOf<C>;
  using T = typename A::T;
  using W = scalar_of_t<C.weight>;
  static constexpr int N = A::N;
  static constexpr bool kAligned = A::kAligned;
  const AllReduceCudaParams& p;
  int64_t r;  // the row

  FI_GLOBAL_FN static float* words() { return reinterpret_cast<float*>(shared()); }
  FI_GLOBAL_FN static T* row() { return reinterpret_cast<T*>(shared() + 128); }
  FI_GLOBAL_FN static Pack<T, N> rounded(const float (&v)[N]) {
    Pack<T, N> x;
#pragma unroll
    for (int i = 0; i < N; ++i) x[i] = from_f32<T>(v[i]);
    return x;
  }
  FI_GLOBAL_FN static void from_row(int64_t at, float (&v)[N]) {
    const Pack<T, N> x = load_shared<N>(row() + at);
#pragma unroll
    for (int i = 0; i < N; ++i) v[i] = to_f32(x[i]);
  }

  /// h = round(sum) + residual, rounded, to shared memory and residual_out.
  template <class Value>
  FI_GLOBAL_FN void add_residual(const Value& value) const {
    const int64_t d = p.row.d;
    const T* const residual = static_cast<const T*>(p.row.residual_in) + r * d;
    T* const out = static_cast<T*>(p.row.residual_out);
    for (int64_t at = thread_x() * N; at < d; at += A::kStep) {
      RawPiece<T, N> add;
      load_raw<kAligned, N, Hint::kOnce>(residual, at, d, add);
      float v[N];
      value(at, v);
#pragma unroll
      for (int i = 0; i < N; ++i) v[i] = add_rn(to_f32(from_f32<T>(v[i])), add[i]);
      const Pack<T, N> h = rounded(v);
      store_shared(row() + at, h);
      if (out) store_piece<kAligned, N>(out + r * d, at, d, v);
    }
  }
  /// write(at, n) for the normalised pieces of the row, in f32 but rounded to T; all lanes of a warp call it together,
  /// with at >= d and zeros where there is nothing.
  template <class Write>
  FI_GLOBAL_FN void normalise(float factor, Write write) const {
    const int64_t d = p.row.d;
    const W* const gamma = static_cast<const W*>(p.row.gamma);
    T* const out = static_cast<T*>(p.row.norm_out);
    for (int64_t base = 0; base < d; base += A::kStep) {
      const int64_t at = base + thread_x() * N;
      float v[N] = {};
      if (at < d) {
        RawPiece<W, N> g;
        load_raw<kAligned, N>(gamma, at, d, g);
        from_row(at, v);
#pragma unroll
        for (int i = 0; i < N; ++i)
          v[i] = to_f32(from_f32<T>(mul_rn(mul_rn(v[i], factor), add_rn(p.row.weight_bias, g[i]))));
        if (out) store_piece<kAligned, N>(out + r * d, at, d, v);
      }
      write(at, v);
    }
  }
  FI_GLOBAL_FN void store_codes8(int64_t at, const float (&v)[N]) const {
    if (at < p.row.d)
      store_piece8<e4m3_t, kAligned>(static_cast<uint8_t*>(p.row.quant_out) + r * p.row.d, at, p.row.d, v);
  }
  FI_GLOBAL_FN void fp8(float factor) const {
    const float inverse = 1.0f / factor_at(p.scale, 0, 0);
    normalise(factor, [&](int64_t at, float(&v)[N]) {
#pragma unroll
      for (int i = 0; i < N; ++i) v[i] = mul_rn(v[i], inverse);
      store_codes8(at, v);
    });
  }
  FI_GLOBAL_FN void nvfp4(float factor) const {
    constexpr int kLanes = 16 / N;
    const int64_t d = p.row.d, columns = d / 16;
    uint8_t* const codes = static_cast<uint8_t*>(p.row.quant_out) + r * (d / 2);
    uint8_t* const scales = static_cast<uint8_t*>(p.row.scale_out) + sf_row_offset(p.row.layout, r, columns);
    const float global = factor_at(p.scale, 0, 0), a = mul_rn(global, 1.0f / 6.0f), b = 1.0f / global;
    normalise(factor, [&](int64_t at, float(&v)[N]) {
      const BlockScale s = block_scale<false, false>(block_magnitude<kLanes>(v), a, b);
      if (at >= d) return;
      uint32_t words[1];
      block_codes<false>(v, s, words);
      store_codes<kAligned, N / 2>(codes + at / 2, words);
      if (at % 16 == 0) scales[sf_column_offset(p.row.layout, at / 16)] = static_cast<uint8_t>(s.byte);
    });
    for (int64_t c = columns + thread_x(); c < sf_padded_columns(p.row.layout, columns); c += C.threads)
      scales[sf_column_offset(p.row.layout, c)] = 0;
  }
  /// The normalised row to shared memory; returns this thread's largest magnitude.
  FI_GLOBAL_FN float keep_normalised(float factor) const {
    float most = 0.0f;
    normalise(factor, [&](int64_t at, float(&v)[N]) {
#pragma unroll
      for (int i = 0; i < N; ++i) most = max_magnitude(most, v[i]);
      if (at < p.row.d) store_shared(row() + at, rounded(v));
    });
    return most;
  }
  /// A warp takes four groups, whose exponents share a word.
  FI_GLOBAL_FN void group_fp8(float factor) const {
    keep_normalised(factor);
    sync_threads();
    const int64_t groups = static_cast<uint32_t>(p.row.d) / static_cast<uint32_t>(p.row.group);
    uint8_t* const codes = static_cast<uint8_t*>(p.row.quant_out) + r * p.row.d;
    for (int64_t first = 4 * warp(); first < groups; first += C.threads / 32 * 4) {
      uint32_t word = 0;
      for (int64_t g = first; g < first + 4 && g < groups; ++g) {
        const T* const x = row() + g * p.row.group;
        float most = 0.0f;
        for (int64_t i = lane(); i < p.row.group; i += 32) most = max_magnitude(most, to_f32(x[i]));
#pragma unroll
        for (uint32_t apart = 16; apart > 0; apart /= 2) most = max_magnitude(most, shuffle_xor(most, apart));
        const float least = most / 448.0f;
        const uint32_t exponent = e8m0_code(least < 1e-10f ? 1e-10f : least);
        const float inverse = 1.0f / e8m0_value(exponent);
        word |= exponent << (8 * (g - first));
        for (int64_t i = lane(); i < p.row.group; i += 32)
          codes[g * p.row.group + i] = static_cast<uint8_t>(narrow_e4m3(mul_rn(to_f32(x[i]), inverse)));
      }
      if (lane() == 0) static_cast<uint32_t*>(p.row.scale_out)[first / 4 * p.row.scale_stride + r] = word;
    }
  }
  FI_GLOBAL_FN void dynamic_fp8(float factor) const {
    constexpr float kLeast = 1.0f / (512.0f * 448.0f);
    const float most =
        block_reduce<C.threads>(keep_normalised(factor), [](float a, float b) { return max_magnitude(a, b); }, words());
    const float s = most / 448.0f, scale = s < kLeast ? kLeast : s;
    if (thread_x() == 0) static_cast<float*>(p.row.scale_out)[r] = scale;
    const Divisor by = divisor_of(scale);
    for (int64_t at = thread_x() * N; at < p.row.d; at += A::kStep) {
      float v[N];
      from_row(at, v);
#pragma unroll
      for (int i = 0; i < N; ++i) v[i] = divide(v[i], by);
      store_codes8(at, v);
    }
  }
  template <class Value>
  FI_GLOBAL_FN void operator()(const Value& value) const {
    add_residual(value);
    sync_threads();
    if (warp() == 0) {
      const float squares = sum_of_squares(row(), p.row.d);
      if (lane() == 0) words()[0] = 1.0f / sqrtf(add_rn(squares / static_cast<float>(p.row.d), p.row.eps));
    }
    sync_threads();
    const float factor = words()[0];
    if constexpr (C.quant == AllReduceQuant::kNone) normalise(factor, [](int64_t, const float(&)[N]) {});
    if constexpr (C.quant == AllReduceQuant::kFp8) fp8(factor);
    if constexpr (C.quant == AllReduceQuant::kNvfp4) nvfp4(factor);
    if constexpr (C.quant == AllReduceQuant::kGroupFp8) group_fp8(factor);
    if constexpr (C.quant == AllReduceQuant::kDynamicFp8) {
      sync_threads();  // the factor was read: its word is used again
      dynamic_fp8(factor);
    }
    sync_threads();  // before the next row
  }
};

template <AllReduceCudaConfig C, class Value>
FI_GLOBAL_FN void finish_row(const AllReduceCudaParams& p, int64_t i, const Value& value) {
  using T = scalar_of_t<C.dtype>;
  if constexpr (C.norm) {
    FinishRow<C>{p, i}(value);
  } else {
    const AllReduceRow<C> row(p, i);
    store_row<C>(static_cast<T*>(p.row.out) + row.at, row.d, value);
  }
}

/// Scales of the rows behind the last one.
FI_GLOBAL_FN void clear_padding(const AllReduceParams& p, int threads) {
  const int64_t columns = p.d / 16, padded = sf_padded_columns(p.layout, columns);
  for (int64_t r = p.last + block_x(); r < p.padded_rows; r += blocks_x()) {
    uint8_t* const scales = static_cast<uint8_t*>(p.scale_out) + sf_row_offset(p.layout, r, columns);
    for (int64_t c = thread_x(); c < padded; c += threads) scales[sf_column_offset(p.layout, c)] = 0;
  }
}

/// Phase 1: the rows of this block. Phase 2, of two shots: the sums of those in this rank's part.
template <AllReduceCudaConfig C>
FI_GLOBAL_FN void all_reduce(const AllReduceCudaParams& p) {
  using T = scalar_of_t<C.dtype>;
  constexpr int kRanks = C.ranks;
  const uint32_t phase = p.phases[block_x()];
  const int64_t slot = phase / 2 % kAllReduceInputSlots;
  if constexpr (C.one_shot || kRanks == 1) {
    if constexpr (kRanks > 1)
      for (int64_t i = block_x(); i < p.row.last; i += blocks_x()) share_row<C>(p, i, slot);
    meet_ranks<C>(p, phase + 1);
    for (int64_t i = block_x(); i < p.row.last; i += blocks_x()) {
      const AllReduceRow<C> row(p, i);
      finish_row<C>(p, i, SumOfRanks<C>{p, row.at, row.d, slot});
    }
  } else {
    const auto each = [&](int s, auto f) {
      const AllReducePart part(p, s, kRanks);
      for (int64_t i = part.first + block_x(); i < part.last; i += blocks_x()) f(i, AllReduceRow<C>(p, i));
    };
    for (int s = 0; s < kRanks; ++s)
      if (s != p.rank) each(s, [&](int64_t i, const AllReduceRow<C>&) { share_row<C>(p, i, slot); });
    meet_ranks<C>(p, phase + 1);
    each(p.rank, [&](int64_t, const AllReduceRow<C>& row) {
      store_row<C>(slot_of<C>(p, p.rank, kAllReduceInputSlots) + row.at, row.d, SumOfRanks<C>{p, row.at, row.d, slot});
    });
    meet_ranks<C>(p, phase + 2);
    for (int k = 0; k < kRanks; ++k) {  // each rank begins with another one's part
      const int s = p.rank + k < kRanks ? p.rank + k : p.rank + k - kRanks;
      const T* const sums = slot_of<C>(p, s, kAllReduceInputSlots);
      each(s, [&](int64_t i, const AllReduceRow<C>& row) { finish_row<C>(p, i, SumOfPart<C>{sums + row.at, row.d}); });
    }
  }
  if constexpr (C.quant == AllReduceQuant::kNvfp4) clear_padding(p.row, C.threads);
  sync_threads();
  if (thread_x() == 0) p.phases[block_x()] = phase + 2;
  if (block_x() == 0)
    for (uint32_t b = blocks_x() + thread_x(); b < kAllReduceBlocks; b += C.threads) p.phases[b] = phase + 2;
}

}  // namespace flashinfer::cu
