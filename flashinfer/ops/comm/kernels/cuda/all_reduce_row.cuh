// SPDX-License-Identifier: Apache-2.0
// A row of an all-reduce once its sum is known: residual, norm and quantisation, or a store. The mean of squares is
// summed in the order of kernels/cpu/lanes.h, and codes are those of the CPU's quantisers.
#pragma once
#include "flashinfer/ops/comm/kernels/cuda_params.h"
#include "flashinfer/ops/norm/kernels/cuda/quant.cuh"

namespace flashinfer::cu {

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

template <AllReduceCudaConfig C, class Value>
FI_GLOBAL_FN void store_row(typename AllReduceOf<C>::T* to, int64_t d, const Value& value) {
  using A = AllReduceOf<C>;
  for (int64_t at = thread_x() * A::N; at < d; at += A::kStep) {
    float v[A::N];
    value(at, v);
    store_piece<A::kAligned, A::N>(to, at, d, v);
  }
}

/// NaN instead of a value that could not be computed.
template <AllReduceCudaConfig C, class Value>
struct OrNan {
  using A = AllReduceOf<C>;
  const Value& value;
  bool ok;
  FI_GLOBAL_FN void operator()(int64_t at, float (&v)[A::N]) const {
    if (ok) return value(at, v);
#pragma unroll
    for (int i = 0; i < A::N; ++i) v[i] = __builtin_bit_cast(float, 0x7fc00000u);
  }
};

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
  bool ok;    // else its values are NaN

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
    T* sum = nullptr;  // one more result
    if constexpr (C.addend == AllReduceAddend::kExperts) sum = static_cast<T*>(p.row.out);
    for (int64_t at = thread_x() * N; at < d; at += A::kStep) {
      RawPiece<T, N> add;
      load_raw<kAligned, N, Hint::kOnce>(residual, at, d, add);
      float v[N];
      value(at, v);
      if (sum) store_piece<kAligned, N>(sum + r * d, at, d, v);
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
      constexpr uint32_t kNan = 0x7f;  // codes have none
      if (at % 16 == 0) scales[sf_column_offset(p.row.layout, at / 16)] = static_cast<uint8_t>(ok ? s.byte : kNan);
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

/// A row whose sum is `value`; NaN if it is not ok.
template <AllReduceCudaConfig C, class Value>
FI_GLOBAL_FN void finish_row(const AllReduceCudaParams& p, int64_t i, const Value& value, bool ok) {
  using T = scalar_of_t<C.dtype>;
  const OrNan<C, Value> sum{value, ok};
  if constexpr (C.norm) {
    FinishRow<C>{p, i, ok}(sum);
  } else {
    const AllReduceRow<C> row(p, i);
    store_row<C>(static_cast<T*>(p.row.out) + row.at, row.d, sum);
  }
}

/// Scales of the rows behind the last one.
template <AllReduceCudaConfig C>
FI_GLOBAL_FN void clear_padding(const AllReduceParams& p) {
  if constexpr (C.quant == AllReduceQuant::kGroupFp8) {
    const uint32_t groups = static_cast<uint32_t>(p.d) / static_cast<uint32_t>(p.group);
    const int64_t columns = int64_t{ceil_div(groups, 4u)} - 1;
    for (int64_t r = p.last + block_x(); r < p.padded_rows; r += blocks_x())
      for (int64_t c = thread_x(); c < columns; c += C.threads)
        static_cast<uint32_t*>(p.scale_out)[c * p.scale_stride + r] = 0;
  }
  if constexpr (C.quant != AllReduceQuant::kNvfp4) return;
  const int64_t columns = p.d / 16, padded = sf_padded_columns(p.layout, columns);
  for (int64_t r = p.last + block_x(); r < p.padded_rows; r += blocks_x()) {
    uint8_t* const scales = static_cast<uint8_t*>(p.scale_out) + sf_row_offset(p.layout, r, columns);
    for (int64_t c = thread_x(); c < padded; c += C.threads) scales[sf_column_offset(p.layout, c)] = 0;
  }
}

}  // namespace flashinfer::cu
