// SPDX-License-Identifier: Apache-2.0
// One step of the delta rule on a few rows of a state S[V][K] in the registers of a group of lanes:
//   S[v] <- decay S[v];  d = beta (v - S[v] . k);  o = S[v] . q + d (k . q);  S[v] <- S[v] + d k
// A row needs nothing but itself, so a state is read once and written once whatever the number of tokens, and warps
// need neither shared memory nor barriers: each prepares the tokens for itself while its rows are on their way. Sums
// have one order (over a lane's columns, then lanes), which neither the batch nor the number of tokens changes.
#pragma once
#include "flashinfer/ops/linear_attention/kernels/common/delta_config.h"
#include "flashinfer/ops/linear_attention/kernels/cuda/inputs.cuh"

namespace flashinfer::cu::linear {

/// What a token does to every row, the lane's columns of it.
template <DeltaCudaConfig C>
struct DeltaToken {
  static constexpr int kElements = C.per() * C.pieces();
  float k[kElements], q[kElements];
  float decay[C.channels ? kElements : 1];
  float keys[C.keys ? kElements : 1];  // what S is multiplied by, where it is not k
  float beta, kq;

  FI_GLOBAL_FN float decay_of(int i) const { return decay[C.channels ? i : 0]; }
  FI_GLOBAL_FN float key_of(int i) const { return C.keys ? keys[C.keys ? i : 0] : k[i]; }
};

template <DeltaCudaConfig C>
struct DeltaTile {
  static constexpr int kPer = C.per(), kLanes = C.lanes(), kPieces = C.pieces(), kRows = C.rows();
  static constexpr int kElements = kPer * kPieces;
  float s[kRows][kElements];
  int32_t first, rows, width;  // the first of this group's rows; V, K

  /// The rows of tile `tile` of a block.
  FI_GLOBAL_FN DeltaTile(int32_t tile, int64_t v, int64_t k)
      : first(tile * C.block_rows() + static_cast<int32_t>(thread_x() / kLanes) * kRows),
        rows(static_cast<int32_t>(v)),
        width(static_cast<int32_t>(k)) {}
  FI_GLOBAL_FN static int32_t group_lane() { return static_cast<int32_t>(lane() % kLanes); }
  FI_GLOBAL_FN static int32_t column(int piece) { return (piece * kLanes + group_lane()) * kPer; }
  /// Whether this warp has no row of the state.
  FI_GLOBAL_FN bool idle() const { return first - static_cast<int32_t>(lane() / kLanes) * kRows >= rows; }
  FI_GLOBAL_FN static float sum(float x) { return warp_reduce<kLanes>(x, Sum{}); }

  FI_GLOBAL_FN void clear() {
#pragma unroll
    for (int r = 0; r < kRows; ++r)
#pragma unroll
      for (int i = 0; i < kElements; ++i) s[r][i] = 0.0f;
  }
  /// From a head's state; zeros behind its end.
  template <class S>
  FI_GLOBAL_FN void load(const S* head, int64_t stride) {
    if constexpr (C.width != 0) {
      Pack<S, kPer> raw[kRows];
#pragma unroll
      for (int r = 0; r < kRows; ++r) {
        const S* at = head + (first + r) * stride + column(0);
        if constexpr (sizeof(S) * kPer >= 8)
          raw[r] = load_if<kPer, Hint::kOnce>(first + r < rows, at);
        else
          raw[r] = first + r < rows ? cu::load<kPer, Hint::kOnce>(at) : Pack<S, kPer>{};
      }
#pragma unroll
      for (int r = 0; r < kRows; ++r)
#pragma unroll
        for (int i = 0; i < kPer; ++i) s[r][i] = to_f32(raw[r][i]);
    } else {
#pragma unroll
      for (int r = 0; r < kRows; ++r)
#pragma unroll
        for (int i = 0; i < kElements; ++i) {
          const int32_t c = column(i / kPer) + i % kPer;
          s[r][i] = first + r < rows && c < width ? to_f32(head[(first + r) * stride + c]) : 0.0f;
        }
    }
  }
  template <class S>
  FI_GLOBAL_FN void store(S* head, int64_t stride) const {
#pragma unroll
    for (int r = 0; r < kRows; ++r) {
      if (first + r >= rows) break;
      S* row = head + (first + r) * stride;
      if constexpr (C.width != 0) {
        Pack<S, kPer> raw;
#pragma unroll
        for (int i = 0; i < kPer; ++i) raw[i] = from_f32<S>(s[r][i]);
        cu::store(row + column(0), raw);
      } else {
#pragma unroll
        for (int i = 0; i < kElements; ++i) {
          const int32_t c = column(i / kPer) + i % kPer;
          if (c < width) row[c] = from_f32<S>(s[r][i]);
        }
      }
    }
  }
  /// The lane's columns of a row of K inputs.
  FI_GLOBAL_FN void columns(DType type, const void* from, int64_t at, bool wide, float (&to)[kElements]) const {
#pragma unroll
    for (int j = 0; j < kPieces; ++j) {
      float part[kPer];
      load_columns(type, from, at, column(j), width, wide, part);
#pragma unroll
      for (int i = 0; i < kPer; ++i) to[j * kPer + i] = part[i];
    }
  }
  FI_GLOBAL_FN void put_columns(DType type, void* to, int64_t at, bool wide, const float (&from)[kElements]) const {
#pragma unroll
    for (int j = 0; j < kPieces; ++j) {
      float part[kPer];
#pragma unroll
      for (int i = 0; i < kPer; ++i) part[i] = from[j * kPer + i];
      store_columns(type, to, at, column(j), width, wide, part);
    }
  }
  /// Element first + r of a row of V inputs, for each of the group's rows.
  FI_GLOBAL_FN void values(DType type, const void* from, int64_t at, float (&to)[kRows]) const {
#pragma unroll
    for (int r = 0; r < kRows; ++r) to[r] = first + r < rows ? element(type, from, at + first + r) : 0.0f;
  }
  FI_GLOBAL_FN void put_values(DType type, void* to, int64_t at, const float (&from)[kRows]) const {
    float x = 0.0f;
#pragma unroll
    for (int r = 0; r < kRows; ++r) x = group_lane() == r ? from[r] : x;
    if (group_lane() < kRows && first + group_lane() < rows) put_element(type, to, at + first + group_lane(), x);
  }
  /// 1 / sqrt(sum of squares + 1e-6) of a row.
  FI_GLOBAL_FN static float inverse_norm(const float (&x)[kElements]) {
    float squares = 0.0f;
#pragma unroll
    for (int i = 0; i < kElements; ++i) squares += x[i] * x[i];
    return 1.0f / ::sqrtf(sum(squares) + 1e-6f);
  }
  FI_GLOBAL_FN static void scale(float (&x)[kElements], float by) {
#pragma unroll
    for (int i = 0; i < kElements; ++i) x[i] *= by;
  }
  FI_GLOBAL_FN static float dot(const float (&x)[kElements], const float (&y)[kElements]) {
    float sums = 0.0f;
#pragma unroll
    for (int i = 0; i < kElements; ++i) sums += x[i] * y[i];
    return sum(sums);
  }
  /// Without kOutputs `o` is left alone, and t.q and t.kq are not read.
  template <bool kOutputs = true>
  FI_GLOBAL_FN void step(const DeltaToken<C>& t, const float (&v)[kRows], float (&o)[kRows]) {
    float d[kRows];
#pragma unroll
    for (int r = 0; r < kRows; ++r) d[r] = v[r];
    correct<kOutputs>(t, d, o);
  }
  /// The same, with v in `d` before and beta (v - S k) in it after.
  template <bool kOutputs = true>
  FI_GLOBAL_FN void correct(const DeltaToken<C>& t, float (&d)[kRows], float (&o)[kRows]) {
    float key[kRows];
#pragma unroll
    for (int r = 0; r < kRows; ++r) {
      key[r] = 0.0f;
      if constexpr (kOutputs) o[r] = 0.0f;
#pragma unroll
      for (int i = 0; i < kElements; ++i) {
        s[r][i] *= t.decay_of(i);
        key[r] += s[r][i] * t.key_of(i);
        if constexpr (kOutputs) o[r] += s[r][i] * t.q[i];
      }
    }
#pragma unroll
    for (int r = 0; r < kRows; ++r) {
      key[r] = sum(key[r]);
      if constexpr (kOutputs) o[r] = sum(o[r]);
    }
#pragma unroll
    for (int r = 0; r < kRows; ++r) {
      d[r] = t.beta * (d[r] - key[r]);
      if constexpr (kOutputs) o[r] += d[r] * t.kq;
#pragma unroll
      for (int i = 0; i < kElements; ++i) s[r][i] += d[r] * t.k[i];
    }
  }
};

}  // namespace flashinfer::cu::linear
