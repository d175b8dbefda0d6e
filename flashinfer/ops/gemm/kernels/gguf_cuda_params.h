// SPDX-License-Identifier: Apache-2.0
// Config and Params of GGUF blocks to floats on a GPU. Freestanding.
#pragma once
#include <stdint.h>

#include "flashinfer/core/scalar.h"
#include "flashinfer/ops/gemm/kernels/gguf_layout.h"

namespace flashinfer {

struct GgufCudaConfig {
  GemmFormat from;
  DType to;               // f32, bf16 or f16
  unsigned char even;     // rows begin at even addresses
  unsigned char aligned;  // pairs of results are aligned in every row
  int threads;

  static constexpr const char* kName = "flashinfer::GgufCudaConfig";
  template <class V>
  constexpr void visit(V&& v) const {
    v("from", from);
    v("to", to);
    v("even", even);
    v("aligned", aligned);
    v("threads", threads);
  }
  friend constexpr bool operator==(const GgufCudaConfig&, const GgufCudaConfig&) = default;
};
struct GgufCudaParams {
  const uint8_t* from;
  int64_t row;  // bytes
  void* to;
  int64_t to_row;          // elements
  uint32_t blocks, spans;  // of a row
};

/// Elements of a row that a block of threads takes: in every format a multiple of 32 bytes.
inline constexpr int64_t kGgufSpan = 8192;
/// Threads that share a block of the format.
constexpr int64_t gguf_lanes(GemmFormat f) {
  return f == GemmFormat::kQ8_0 ? 16 : f == GemmFormat::kQ4_K ? 64 : f == GemmFormat::kQ6_K ? 32 : 8;
}
/// Shared memory: scales and minima (of blocks of 256), then the blocks.
constexpr int64_t gguf_shared_bytes(const GgufFormat& f) {
  const int64_t scales = f.elements == 256 ? kGgufSpan / f.grid * 8 : 0;
  return scales + 16 + kGgufSpan / f.elements * f.bytes;
}

}  // namespace flashinfer
