// SPDX-License-Identifier: Apache-2.0
// Parameters of the GPU attention kernels in addition to AttentionParams. Freestanding.
//
// A tile is some packed rows (token * G + head % G) of one request and a range of its keys; the grid is tiles by KV
// heads. Where keys are split depends on the request's own shape alone (attention/cuda/launch.h), so a row's result
// does not depend on its batch.
#pragma once
#include "flashinfer/core/int_math.h"
#include "flashinfer/ops/attention/kernels/params.h"

namespace flashinfer {

/// Tensor cores, 16-bit elements. threads / 32 warps of 16 rows each, `warps_k` of them on the same rows, with
/// different keys. Products are computed in steps of 16 elements, so a dim of 72 costs as much as 80; rows of shared
/// memory are whole multiples of 64 elements.
struct AttentionCudaConfig {
  DType q;        // f16 or bf16, also of the cache
  DType o;        // f16, bf16, f32
  short warps_k;  // 1 or 4
  int dqk, dvo;   // multiples of 8 up to 256; dvo <= dqk
  int threads;    // of a block

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
  /// Decode lives on what its resident blocks have in flight: four of them, where ptxas would take registers for three
  /// at D 128. In prefill beyond D 64 ptxas would spill for the sake of more blocks than 256 threads.
  constexpr int min_blocks() const { return dqk > 128 ? 0 : warps_k > 1 ? 4 : dqk > 64 ? 256 / threads : 0; }
};

namespace attention {
/// Keys of a tile in shared memory: K and V of one head take 32 KB at D 128.
inline constexpr int kCudaKeys = 64;
/// Elements of a row in shared memory: the swizzle permutes 8 pieces of 8.
constexpr int cuda_pitch(int dim) { return round_up(dim, 64); }
}  // namespace attention

struct AttentionTile {
  int32_t request, row_begin, rows;  // rows at most the Config's
  int32_t key_begin, key_end;
  int32_t pad;
  int64_t
      partial;  // < 0: write the output; else the state of row i, KV head h goes to (partial + i) * num_kv_heads + h
};
/// Rows whose keys are split: chunk c of row i is at partial + c * rows + i.
struct AttentionCudaMerge {
  int32_t request, row_begin, rows, chunks;
  int64_t partial;
};
struct AttentionCudaParams {
  // partial_o: [..][Dvo] outputs of partial rows, divided by their denominators; softmax_state: their LSE, base 2. With
  // a custom variant, undivided sums, and pairs of maximum and denominator.
  AttentionParams a;
  const AttentionTile* tiles;
  const AttentionCudaMerge* cuts;
  const float *q_head_scales, *k_head_scales;  // [Hq], [Hkv]: factors of the logits, without tensor cores; or null
  uint32_t tile_pages = 0, tile_entries = 0;   // kCudaKeys / page_size and the remainder (paged; a division is a call)
};
namespace attention {
/// Number of additional arguments of a custom variant, which are passed by value with the launch.
inline constexpr int kCudaExtras = 24;
}  // namespace attention
struct AttentionVariantCudaParams {
  AttentionCudaParams base;
  const void* tensors[attention::kCudaExtras];
  AttentionScalar scalars[attention::kCudaExtras];
};

/// Without tensor cores: any cache element type except NVFP4. A tile has few rows.
struct AttentionCoresConfig {
  DType q, kv, o;      // q, kv: f32, f16, bf16, e4m3, e5m2; o: f32, f16, bf16
  unsigned char rows;  // of a tile: 4
  short dqk, dvo;      // multiples of 8 (f32: 4) up to 256
  short rope;          // 1: rotate q and k (ROPE_LLAMA)
  short threads;       // of a block: 128

  static constexpr const char* kName = "flashinfer::AttentionCoresConfig";
  template <class V>
  constexpr void visit(V&& v) const {
    v("q", q);
    v("kv", kv);
    v("o", o);
    v("rows", rows);
    v("dqk", dqk);
    v("dvo", dvo);
    v("rope", rope);
    v("threads", threads);
  }
  friend constexpr bool operator==(const AttentionCoresConfig&, const AttentionCoresConfig&) = default;
  /// A load takes 16 bytes of a key's row; 8 bytes for 8-bit types, whose 16 elements for four rows would not fit in
  /// registers.
  constexpr int per() const { return kv == DType::kF32 ? 4 : 8; }
  /// A group of lanes reads a row: a power of two, so that they reduce with shuffles; lanes beyond the row have zeros.
  constexpr int lanes() const {
    const int pieces = (dqk > dvo ? dqk : dvo) / per();
    int n = 1;
    while (n < pieces && n < 32) n *= 2;
    return n;
  }
  constexpr int groups() const { return threads / lanes(); }
};

/// Merges the states of split rows.
struct AttentionMergeCudaConfig {
  DType o;
  unsigned char columns;  // columns of a row for one thread: 4
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
