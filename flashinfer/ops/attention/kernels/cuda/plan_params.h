// SPDX-License-Identifier: Apache-2.0
// Parameters of the kernel that plans on a GPU (plan.cuh). Freestanding.
#pragma once
#include "flashinfer/ops/attention/kernels/cuda/params.h"

namespace flashinfer {

struct AttentionPlanConfig {
  int threads;  // of the one block

  static constexpr const char* kName = "flashinfer::AttentionPlanConfig";
  template <class V>
  constexpr void visit(V&& v) const {
    v("threads", threads);
  }
  friend constexpr bool operator==(const AttentionPlanConfig&, const AttentionPlanConfig&) = default;
  /// Of shared memory: each request's places, then the sums of each warp.
  constexpr int shared_bytes() const { return (threads + threads / 32) * 16; }
  constexpr int min_blocks() const { return 1; }  // there is one: left alone, the compiler spills on sm_100a
};
/// Integers of the caller, of any of these types and stride (in elements).
struct AttentionInts {
  const void* data;
  int64_t stride;
  DType type;        // i32, u32, i64
  int32_t unit = 1;  // each is divided by: offsets of rows may count elements
};
/// A call's own tables become the arrays that the attention kernel reads; what does not fit into memory is left out.
struct AttentionPlanParams {
  AttentionInts seq_lens;    // [requests]; data null (ragged): what lies between the first keys
  AttentionInts first_rows;  // [requests + 1] first query rows; data null: `rows` packed rows each
  // Ragged: [requests + 1] first rows of K and V; data null: `keys` for each request.
  AttentionInts first_keys;
  AttentionInts table;   // [requests][width] pages, copied to `pages`; data null: the kernel reads the caller's
  int64_t table_stride;  // of a request in `table`
  const void* v_table;   // the same of V's pages, behind those of K in `pages`; or null
  const float *scale[2], *v_scale;  // one number each, or null
  int32_t* qo_indptr;               // [requests + 1]: written, or null
  int32_t *kv_indptr, *kv_len;      // [requests + 1], [requests]: written
  int32_t* pages;                   // [requests][width], with `v_table` twice: written with `table`
  float *scales, *v_scales;         // [num_kv_heads]: the product of `scale`, and `v_scale`; or null
  int64_t* mask_indptr;             // [requests + 1]: written, `mask_stride` bytes apart, or null
  int64_t mask_stride;
  AttentionTile* tiles;  // [most_tiles]: written; those that are over have no rows
  uint32_t* counters;    // [most_cuts][num_kv_heads]: 0
  int32_t requests, page_size;
  int32_t width;            // pages of a request in the table
  int32_t request_stride;   // of a request in the table that the attention kernel reads
  int32_t keys;             // of a request at most
  int32_t ragged, kv_rows;  // 1: K and V have no pages, but so many rows in all
  int32_t rows, tile_rows;  // packed rows of each request, or at most, and of a tile at most
  int32_t group;            // packed rows of a token
  int32_t tokens;           // query rows in all
  int32_t few;              // 1: requests of few rows, 0: those of more, -1: all
  int32_t num_kv_heads;
  int32_t most_tiles, most_cuts;
  int64_t most_partial;  // partial rows
};

/// Bits of a mask over all keys from what a call says of its own rows. One request a column of the grid.
struct AttentionMaskConfig {
  int threads;

  static constexpr const char* kName = "flashinfer::AttentionMaskConfig";
  template <class V>
  constexpr void visit(V&& v) const {
    v("threads", threads);
  }
  friend constexpr bool operator==(const AttentionMaskConfig&, const AttentionMaskConfig&) = default;
};
struct AttentionMaskParams {
  const uint16_t* words;  // [tokens][width]: bit j % 16 of word j / 16, whether a row sees row j of its request
  int64_t width;          // of a row of `words`
  AttentionInts before;   // or, `words` null, tokens of all ranks before a request's first row
  int64_t world, rank;    // of which this rank has every world-th
  AttentionInts spans;    // or [tokens][2] first and last key that a row sees beside those up to its position
  int64_t span_stride;    // of the second axis, in elements
  int64_t causal_window, span_window;  // keys that a row sees are nearer: < 0, and <= 0, mean any
  const int32_t *qo_indptr, *kv_len;
  uint8_t* mask;               // written, as far as the requests' rows and keys go
  const int64_t* mask_indptr;  // [requests + 1] first bytes; null: `stride` bytes each
  int64_t stride;              // bytes of a request at most
};

/// The LSE by request, from rows that follow each other. One request a row of the grid.
struct AttentionPadLseConfig {
  int threads;

  static constexpr const char* kName = "flashinfer::AttentionPadLseConfig";
  template <class V>
  constexpr void visit(V&& v) const {
    v("threads", threads);
  }
  friend constexpr bool operator==(const AttentionPadLseConfig&, const AttentionPadLseConfig&) = default;
};
struct AttentionPadLseParams {
  const float* from;         // [rows][heads]
  float* to;                 // [requests][places][heads]: written, any strides
  AttentionInts first_rows;  // as of the plan; data null: `rows` for each request
  int64_t stride_b, stride_n, stride_h;
  int32_t rows, places, heads;  // rows in all
};

}  // namespace flashinfer
