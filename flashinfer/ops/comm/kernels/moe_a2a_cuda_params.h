// SPDX-License-Identifier: Apache-2.0
// Config and Params of the kernels of an expert all-to-all between GPUs. Freestanding.
#pragma once
#include <stdint.h>

#include "flashinfer/ops/comm/kernels/meet_params.h"
#include "flashinfer/ops/comm/kernels/moe_a2a_params.h"

namespace flashinfer {

struct MoeA2aCudaConfig {
  int threads;

  /// As AllReduceCudaConfig: up to 128 registers a thread.
  constexpr int min_blocks() const { return 512 / threads; }

  static constexpr const char* kName = "flashinfer::MoeA2aCudaConfig";
  template <class V>
  constexpr void visit(V&& v) const {
    v("threads", threads);
  }
  friend constexpr bool operator==(const MoeA2aCudaConfig&, const MoeA2aCudaConfig&) = default;
};

/// A block a rank.
struct MoePlanCudaParams {
  const int32_t* ids;  // [tokens, top_k]
  uint32_t* places;    // the same
  int32_t* sent;       // [ranks]: tokens that go there
  int64_t tokens;
  int top_k, base, more;  // experts of a rank; the first `more` have one more
  uint64_t active;
  int num_experts;
};

struct MoePayload {
  const char* rows;
  int64_t bytes;  // of a row
  int64_t at;     // of a rank's memory: where it receives them
};
struct MoeSendCudaParams {
  const void* source[kMoeA2aRanks];  // the memory of each rank
  const uint32_t* places;
  const int32_t* sent;
  const int32_t* stats;  // null: none
  MoePayload payload[6];
  int payloads, top_k, stats_n, ranks;
  int team;  // threads that move a token's rows: a power of two, at least a warp
  int64_t tokens, runtime_max;
  int64_t counts_at, stats_at;  // of a rank's memory
  uint64_t active;
  MeetCudaParams meet;
};

/// Rows that other ranks will read, from `from` to `to`: [ranks, runtime_max, row_bytes]. Blocks (x, rank).
struct MoeShareCudaConfig {
  unsigned short narrow;  // bf16 to e4m3, saturating, from the beginning of each row; `from` may be `to`
  unsigned short unit;    // bytes that all addresses and rows are multiples of: 2, 4 or 16; with `narrow` 16 or 2
  int threads;

  /// As AllReduceCudaConfig: up to 128 registers a thread.
  constexpr int min_blocks() const { return 512 / threads; }

  static constexpr const char* kName = "flashinfer::MoeShareCudaConfig";
  template <class V>
  constexpr void visit(V&& v) const {
    v("narrow", narrow);
    v("unit", unit);
    v("threads", threads);
  }
  friend constexpr bool operator==(const MoeShareCudaConfig&, const MoeShareCudaConfig&) = default;
};
struct MoeShareCudaParams {
  const char* from;
  char* to;
  const int32_t* counts;  // [ranks]: rows of each slice
  int64_t runtime_max, row_bytes;
  uint64_t ranks;  // bit r: slice r is wanted
};

struct MoeCombineCudaConfig {
  DType payload, out;     // as MoeCombineConfig
  MoeCombineQuant quant;  // the same
  unsigned char aligned;  // pieces of 16 bytes of all rows are
  int threads;

  /// As AllReduceCudaConfig: up to 128 registers a thread.
  constexpr int min_blocks() const { return 512 / threads; }

  static constexpr const char* kName = "flashinfer::MoeCombineCudaConfig";
  template <class V>
  constexpr void visit(V&& v) const {
    v("payload", payload);
    v("out", out);
    v("quant", quant);
    v("aligned", aligned);
    v("threads", threads);
  }
  friend constexpr bool operator==(const MoeCombineCudaConfig&, const MoeCombineCudaConfig&) = default;
};
struct MoeCombineCudaParams {
  MoeCombineParams row;              // source[r]: where rank r's rows for this one lie
  const void* memory[kMoeA2aRanks];  // of each rank
  MeetCudaParams meet;
};

struct MoeSanitizeCudaParams {
  int32_t* ids;           // [ranks, rows, top_k]
  const int32_t* counts;  // [ranks]
  int64_t rows, top_k;
  int32_t invalid;
};

}  // namespace flashinfer
