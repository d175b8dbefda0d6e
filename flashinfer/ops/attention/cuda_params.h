// SPDX-License-Identifier: Apache-2.0
// What the attention kernels of GPUs take beside AttentionParams. Freestanding.
//
// Work: a tile is some packed rows (token * G + head % G) of one request and a stretch of its keys; the grid is tiles by KV heads.
// Where keys are cut depends on the request's own shape alone (cuda_launch.h), so that a row's result does not depend on its batch.
#pragma once
#include "flashinfer/ops/attention/params.h"

namespace flashinfer {

/// Tensor cores, 16-bit elements. threads / 32 warps of 16 rows each, `warps_k` of them on the same rows, with other keys.
struct AttentionCudaConfig {
  DType q;           // f16 or bf16, also of the cache
  DType o;           // f16, bf16, f32
  short warps_k;     // 1 or 4
  int dqk, dvo;      // 64, 128, 192 or 256; dvo <= dqk
  int threads;       // of a block

  static constexpr const char* kName = "flashinfer::AttentionCudaConfig";
  template <class V>
  constexpr void visit(V&& v) const {
    v("q", q);
    v("o", o);
    v("warps_k", warps_k);
    v("dqk", dqk);
    v("dvo", dvo);
    v("threads", threads);
  }
  friend constexpr bool operator==(const AttentionCudaConfig&, const AttentionCudaConfig&) = default;
  constexpr int rows() const { return threads / 32 / warps_k * 16; }
};

namespace attention {
/// Keys of a tile in shared memory: K and V of one head take 32 KB at D 128.
inline constexpr int kCudaKeys = 64;
}  // namespace attention

struct AttentionTile {
  int32_t request, row_begin, rows;  // rows at most the Config's
  int32_t key_begin, key_end;
  int32_t pad;
  int64_t partial;  // < 0: write the output; else row i of KV head h leaves its state at (partial + i) * num_kv_heads + h
};
/// Rows whose keys were cut: chunk c of row i lies at partial + c * rows + i.
struct AttentionCudaMerge {
  int32_t request, row_begin, rows, chunks;
  int64_t partial;
};
struct AttentionCudaParams {
  AttentionParams a;  // partial_o: [..][Dvo] outputs of partial rows, divided by their denominators; partial_state: their LSE, base 2
  const AttentionTile* tiles;
  const AttentionCudaMerge* cuts;
};

/// Without tensor cores: any of the element types that a cache has but NVFP4. A tile has few rows.
struct AttentionCoresConfig {
  DType q, kv, o;              // q, o: f32, f16, bf16; kv: these, e4m3, e5m2
  unsigned char rows;          // of a tile: 4
  short dim;                   // 64, 128 or 256, of K and V
  short threads;               // of a block: 128

  static constexpr const char* kName = "flashinfer::AttentionCoresConfig";
  template <class V>
  constexpr void visit(V&& v) const {
    v("q", q);
    v("kv", kv);
    v("o", o);
    v("rows", rows);
    v("dim", dim);
    v("threads", threads);
  }
  friend constexpr bool operator==(const AttentionCoresConfig&, const AttentionCoresConfig&) = default;
};

/// Merges what cut rows left.
struct AttentionMergeCudaConfig {
  DType o;
  unsigned char columns;  // of a row that a thread takes: 4
  short dvo;
  int threads;

  static constexpr const char* kName = "flashinfer::AttentionMergeCudaConfig";
  template <class V>
  constexpr void visit(V&& v) const {
    v("o", o);
    v("columns", columns);
    v("dvo", dvo);
    v("threads", threads);
  }
  friend constexpr bool operator==(const AttentionMergeCudaConfig&, const AttentionMergeCudaConfig&) = default;
};

}  // namespace flashinfer
