// SPDX-License-Identifier: Apache-2.0
// Configs and Params of mixtures of experts on a GPU. Freestanding.
#pragma once
#include <stdint.h>

#include "flashinfer/core/scalar.h"
#include "flashinfer/ops/moe/kernels/params.h"

namespace flashinfer {

struct MoeCudaConfig {
  int threads;

  static constexpr const char* kName = "flashinfer::MoeCudaConfig";
  template <class V>
  constexpr void visit(V&& v) const {
    v("threads", threads);
  }
  friend constexpr bool operator==(const MoeCudaConfig&, const MoeCudaConfig&) = default;
};

/// Numbers of any type: element (i, j) is p[i * row + j * column]. p null: none.
struct MoeNumbers {
  const void* p = nullptr;
  int64_t row = 0, column = 0;
  DType dtype = DType::kF32;
};
struct MoeResults {
  void* p = nullptr;
  int64_t row = 0, column = 0;
  DType dtype = DType::kF32;
};

inline constexpr int kMostRoutedExperts = 1024;
/// A token's routing (MoeRouting): the best `top_k` experts of the `keep` best of `groups` groups.
struct MoeRouteParams {
  MoeNumbers logits, bias;          // [tokens, experts], [1, experts]
  MoeResults ids, weights, replay;  // [tokens, top_k]; replay: the ids once more
  int32_t method, tokens, experts, top_k, groups, keep;
  float factor;
  int32_t renormalise;
};
/// Bytes of shared memory of a warp: keys, scores of groups, ids and weights.
constexpr int moe_route_words(int experts, int groups, int top_k) { return experts + groups + 2 * top_k; }

/// The experts of this rank that a token's entries name: ids[t * choices + j] in [0, experts), or -1, and weights.
/// Entries from `given` on are experts that every token goes to, behind the `local` ones.
struct MoeChoicesParams {
  MoeNumbers from, from_weights;  // [tokens, given]; without weights: entries are id << 16 | bits of a bf16 weight
  int32_t* ids;
  float* weights;
  MoeResults weights_out, replay;  // [tokens, choices], [tokens, given]: copies for the caller
  int64_t offset;                  // id of expert 0
  int32_t tokens, given, choices, local;
};

/// Rows in the order of their experts, entries of one expert in their order: offsets[e] is the first row of expert e.
struct MoePermuteParams {
  const int32_t* ids;  // [entries]
  int32_t *offsets, *row_of, *entry_of, *expert_of;
  MoeResults row_out;  // [entries, 1]: row_of for the caller
  int32_t entries, experts, choices;
  int32_t* token_of;
};

/// 4-bit weights [experts, n, 2 * words bytes] and their scales, `line` bytes for 128 columns, in the order of SM90; to
/// plain order, of experts with rows (offsets). A block for 16 rows.
struct MoeRestoreParams {
  const uint8_t* codes;
  uint8_t* codes_to;
  const uint16_t* scales;
  uint16_t* scales_to;
  const int32_t* offsets;
  int64_t n;
  int32_t words;   // of 16 bits, a row
  int32_t groups;  // of 128 columns, a row
  int32_t line, fp4;
};

/// Stored columns of a product (Weights of layer.h): the logical column i of n is at moe_column(i).
struct MoeColumns {
  int32_t n = 0, shuffle = 0, interleaved = 0;
};
constexpr int32_t moe_column(const MoeColumns& c, int32_t i) {
  const int32_t at = c.interleaved == 0 ? i : i < c.n / 2 ? 2 * i : 2 * (i - c.n / 2) + 1;
  if (c.shuffle == 0) return at;
  const int32_t in = at % c.shuffle, stride = c.shuffle / 8;
  return at - in + in % stride * 8 + in / stride;
}

/// Columns of a thread of moe_activate and moe_sum, at most: what it looks up of a row's expert and token serves all of
/// them.
inline constexpr int kMoeElements = 4;

/// The activation of row r, which is of expert_of[r] and entry_of[r]; rows from offsets[experts] on become 0.
struct MoeActCudaParams {
  const float* x;                                 // [rows, width]
  MoeResults y;                                   // [rows, inter]: bf16, f16, f32 or e4m3
  MoeResults kept;                                // the same once more, for the caller
  const int32_t *offsets, *entry_of, *expert_of;  // null: rows as they are, of one expert
  const float* entry_weights;                     // a factor of the row, or null
  MoeNumbers token_factor;                        // [tokens, 1]: another
  MoeNumbers factor, bias;                        // [experts, width], stored columns
  MoeNumbers delta;                               // [tokens * delta_choices, width]
  MoeNumbers alpha, beta, limit, limit_factor, situ_beta, situ_linear, scale, scale_divisor;  // [experts, 1]
  MoeNumbers cast;  // [1, inter]: the activation, rounded to `rounded`, is multiplied by it and cast
  DType rounded;
  MoeColumns columns;
  int32_t rows, inter, width, experts, choices, delta_choices, kept_rows;
  MoeActivation kind;
  MoeNumbers relu2_limit;   // [1, 1]
  float situ_otherwise[2];  // situ_beta and situ_linear when these are absent
};

/// y = e4m3 of x * scale, saturated.
struct MoeCastCudaParams {
  MoeNumbers x, scale;  // [rows, k], [1, k]
  e4m3_t* y;            // [rows, k]
  int32_t rows, k;
};

/// out[t] = sum over j of weights[t, j] * (y[row_of[t, j]] * factor + bias), j ascending; row -1 gives nothing.
/// row_of null: out[t] is row t of y alone.
struct MoeSumCudaParams {
  const float* y;  // [rows, width]
  MoeResults out;  // [tokens, hidden]
  const int32_t *row_of, *expert_of, *offsets;
  const float* weights;     // null: 1
  MoeNumbers factor, bias;  // [experts, width], stored columns
  MoeColumns columns;
  int32_t tokens, choices, hidden, width, experts;
};

}  // namespace flashinfer
