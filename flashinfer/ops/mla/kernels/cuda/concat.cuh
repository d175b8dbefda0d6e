// SPDX-License-Identifier: Apache-2.0
// concat_mla_kv_quant_fp8: a thread takes 8 elements of a head's key or value, or one where rows are not aligned. Codes
// are the CPU's bit for bit.
#pragma once
#include "flashinfer/core/int_math.h"
#include "flashinfer/kernels/cuda/cluster.h"
#include "flashinfer/kernels/cuda/narrow.h"
#include "flashinfer/kernels/cuda/rows.h"
#include "flashinfer/ops/mla/kernels/concat_params.h"

namespace flashinfer::cu {
namespace mla {

template <int N, class T>
FI_GLOBAL_FN void to_e4m3(const T* from, e4m3_t* to) {
  if constexpr (N == 1) {
    reinterpret_cast<uint8_t*>(to)[0] = static_cast<uint8_t>(narrow_e4m3(to_f32(from[0])));
  } else {
    float x[N];
    load_piece<true, N, Hint::kOnce>(from, 0, N, x);
    uint32_t words[N / 4];
    narrow<e4m3_t>(x, words);
    Pack<uint32_t, N / 4> codes;
#pragma unroll
    for (int i = 0; i < N / 4; ++i) codes[i] = words[i];
    store(reinterpret_cast<uint32_t*>(to), codes);
  }
}

}  // namespace mla

/// A block takes `threads` pieces of one token; those of a head are its key's without positions, its key's with, its
/// value's.
template <ConcatQuantCudaConfig C>
FI_GLOBAL_FN void concat_mla_kv_quant(const ConcatQuantParams& p) {
  using Nope = scalar_of_t<C.nope>;
  using Pe = scalar_of_t<C.pe>;
  constexpr int N = C.per;
  depend_wait();
  const auto pieces = static_cast<uint32_t>(p.nope + p.rope + p.v) / N;
  const uint32_t of_token = static_cast<uint32_t>(p.heads) * pieces,
                 blocks = ceil_div(of_token, static_cast<uint32_t>(C.threads));
  const int64_t token = block_x() / blocks;
  const uint32_t piece = block_x() % blocks * C.threads + thread_x();
  if (piece < of_token) {
    const int64_t h = piece / pieces, at = static_cast<int64_t>(piece % pieces) * N;
    const Nope* const kv = static_cast<const Nope*>(p.kv) + token * p.kv_stride_n + h * p.kv_stride_h;
    e4m3_t* const key = p.key + token * p.key_stride_n + h * p.key_stride_h;
    if (at < p.nope)
      mla::to_e4m3<N>(kv + at, key + at);
    else if (at < p.nope + p.rope)
      mla::to_e4m3<N>(static_cast<const Pe*>(p.pe) + token * p.pe_stride_n + (at - p.nope), key + at);
    else
      mla::to_e4m3<N>(kv + (at - p.rope),
                      p.value + token * p.value_stride_n + h * p.value_stride_h + (at - p.nope - p.rope));
  }
  depend_launch();
}

}  // namespace flashinfer::cu
