// SPDX-License-Identifier: Apache-2.0
// Config and Params of the kernels of the all-reduce of e4m3 codes. Freestanding.
#pragma once
#include <stdint.h>

#include "flashinfer/ops/comm/kernels/meet_params.h"

namespace flashinfer {

struct QuantizedSumConfig {
  DType dtype;  // of the elements

  static constexpr const char* kName = "flashinfer::QuantizedSumConfig";
  template <class V>
  constexpr void visit(V&& v) const {
    v("dtype", dtype);
  }
  friend constexpr bool operator==(const QuantizedSumConfig&, const QuantizedSumConfig&) = default;
};
/// `n` elements in groups of `group`, the last one maybe shorter.
struct QuantizedSumParams {
  const void* x;                    // what is quantised, to codes[0] and scales[0]
  uint8_t* codes[kAllReduceRanks];  // of each rank
  float* scales[kAllReduceRanks];
  int ranks;
  int64_t n, group, groups_per_task;
  void* out;  // the sum
};

/// On GPUs: a warp a group.
enum class QuantizedSumWay : unsigned char {
  kPeers,     // through the ranks' memory
  kQuantize,  // this rank's codes and scales to `own`
  kGathered,  // those of rank r are at `own` + r * slot
};
struct QuantizedSumCudaConfig {
  QuantizedSumWay way;
  unsigned char aligned;  // x and out to 16 bytes
  unsigned short threads;

  /// As AllReduceCudaConfig: up to 128 registers a thread.
  constexpr int min_blocks() const { return 512 / threads; }

  static constexpr const char* kName = "flashinfer::QuantizedSumCudaConfig";
  template <class V>
  constexpr void visit(V&& v) const {
    v("way", way);
    v("aligned", aligned);
    v("threads", threads);
  }
  friend constexpr bool operator==(const QuantizedSumCudaConfig&, const QuantizedSumCudaConfig&) = default;
};
struct QuantizedSumCudaParams {
  const void* source[kAllReduceRanks];  // the memory of each rank
  const void* x;
  void* out;
  uint8_t* own;
  int64_t n, group, groups, slot;  // n elements in `groups` groups, the last one maybe shorter; slot: bytes
  int ranks;
  MeetCudaParams meet;
};

}  // namespace flashinfer
