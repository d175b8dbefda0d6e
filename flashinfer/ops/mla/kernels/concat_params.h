// SPDX-License-Identifier: Apache-2.0
// Parameters of the quantising concatenation. Freestanding.
#pragma once
#include <stdint.h>

#include "flashinfer/core/scalar.h"

namespace flashinfer {

struct ConcatQuantConfig {
  DType nope, pe;  // f32, f16, bf16
  static constexpr const char* kName = "flashinfer::ConcatQuantConfig";
  template <class V>
  constexpr void visit(V&& v) const {
    v("nope", nope);
    v("pe", pe);
  }
  friend constexpr bool operator==(const ConcatQuantConfig&, const ConcatQuantConfig&) = default;
};

struct ConcatQuantCudaConfig {
  DType nope, pe;
  short per;  // elements of a thread: 8 where all rows and their parts begin at multiples of 8, aligned, else 1
  short threads;
  static constexpr const char* kName = "flashinfer::ConcatQuantCudaConfig";
  template <class V>
  constexpr void visit(V&& v) const {
    v("nope", nope);
    v("pe", pe);
    v("per", per);
    v("threads", threads);
  }
  friend constexpr bool operator==(const ConcatQuantCudaConfig&, const ConcatQuantCudaConfig&) = default;
};

/// Strides are in elements, the last dimension is contiguous.
struct ConcatQuantParams {
  const void *kv, *pe;  // [tokens, heads, nope + v], [tokens, rope]
  e4m3_t *key, *value;  // [tokens, heads, nope + rope], [tokens, heads, v]
  int64_t kv_stride_n, kv_stride_h, pe_stride_n, key_stride_n, key_stride_h, value_stride_n, value_stride_h;
  int64_t tokens, heads, nope, rope, v;
  int64_t tokens_per_task;
};

}  // namespace flashinfer
