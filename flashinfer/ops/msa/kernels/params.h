// SPDX-License-Identifier: Apache-2.0
// What the kernels of attention over selected blocks need to know.
#pragma once
#include <stdint.h>

#include "flashinfer/core/scalar.h"

namespace flashinfer {

inline constexpr int64_t kMsaBlock = 128, kMsaDim = 128;  // keys of a block, elements of a head
inline constexpr int64_t kMsaScales = kMsaDim / 16;       // of a row of NVFP4

/// Element types; kU8 is NVFP4: two e2m1 a byte, and e4m3 scale factors in the 128x4 layout.
struct MsaConfig {
  DType q, kv, out;

  static constexpr const char* kName = "flashinfer::MsaConfig";
  template <class V>
  constexpr void visit(V&& v) const {
    v("q", q);
    v("kv", kv);
    v("out", out);
  }
  friend constexpr bool operator==(const MsaConfig&, const MsaConfig&) = default;
};

/// Q, K or V. Strides are in elements of `data` (bytes of NVFP4).
struct MsaTensor {
  const void* data;
  int64_t page, head, token;
  const uint8_t* scale;
};

/// What a query row sees. `first` is the request's first key in flat tensors, its row of the page table in paged ones.
struct MsaRow {
  int64_t first, visible, blocks;  // keys from the first one on; blocks of the request
};

struct MsaParams {
  MsaTensor q, k, v;
  const MsaRow* rows;    // [n]
  const int32_t* pages;  // null: flat
  int64_t page_table_stride;
  const int32_t* selected;  // [g, n, topk]
  int64_t n, heads, kv_heads, topk;
  int64_t items_per_task;  // attention: (row, KV head); scores: (row, run of blocks)
  // Attention. Logits are q.k * scale_log2, in base 2.
  float scale_log2, v_scale, temperature;
  void* out;           // [n, h, 128] contiguous
  float *lse, *lse_t;  // [n, h], base e; or null
  // Scores of blocks.
  int64_t tiles, tiles_per_item;
  float factor;
  int32_t reduce_heads;
  float* score;
  int64_t score_head, score_tile, score_row;  // strides
};

}  // namespace flashinfer
