// SPDX-License-Identifier: Apache-2.0
// Config and Params of the kernels that add the ranks' partial attention outputs. Freestanding.
#pragma once
#include <stdint.h>

#include "flashinfer/core/scalar.h"
#include "flashinfer/ops/comm/kernels/meet_params.h"

namespace flashinfer {

inline constexpr int kCpRanks = 64;

struct CpReduceConfig {
  DType dtype;

  static constexpr const char* kName = "flashinfer::CpReduceConfig";
  template <class V>
  constexpr void visit(V&& v) const {
    v("dtype", dtype);
  }
  friend constexpr bool operator==(const CpReduceConfig&, const CpReduceConfig&) = default;
};
struct CpReduceParams {
  const void* source[kCpRanks];  // each rank's rows [rows, d]
  const float* weights;          // [rows, ranks]; a rank of weight 0 is not read
  void* out;                     // [rows, d]
  int64_t ranks, rows, d, rows_per_task;
};

/// A warp a row, blocks of four warps.
struct CpReduceCudaConfig {
  DType dtype;
  unsigned char peers;     // through the ranks' memory; else `in` and `lse` have what all ranks sent to this one
  unsigned short aligned;  // `in` and `out` to 16 bytes
  int threads;

  /// As AllReduceCudaConfig: up to 128 registers a thread.
  constexpr int min_blocks() const { return 512 / threads; }

  static constexpr const char* kName = "flashinfer::CpReduceCudaConfig";
  template <class V>
  constexpr void visit(V&& v) const {
    v("dtype", dtype);
    v("peers", peers);
    v("aligned", aligned);
    v("threads", threads);
  }
  friend constexpr bool operator==(const CpReduceCudaConfig&, const CpReduceCudaConfig&) = default;
};
/// Of a launch's rows slice q of `in` and `lse` goes to rank q. A slot has the slices for one rank behind those for
/// another, then their LSE likewise.
struct CpReduceCudaParams {
  const void* source[kCpRanks];  // the memory of each rank
  const void* in;                // [rows, ranks, d]
  const float* lse;              // [rows, ranks]
  void* out;                     // [rows, d]
  int64_t rows, d, slot;         // slot: bytes
  int ranks, base2;
  MeetCudaParams meet;
};

}  // namespace flashinfer
