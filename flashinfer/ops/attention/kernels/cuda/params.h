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

/// Tensor cores. threads / 32 warps of 16 or 32 rows each, `warps_k` of them on the same rows, with different keys.
/// Products are of 16-bit elements, those of an FP8 or NVFP4 cache of f16 (with e4m3 queries also of e4m3); they are
/// computed in steps of 16 elements, so a dim of 72 costs as much as 80. Rows of shared memory are whole multiples of
/// 128 bytes.
struct AttentionCudaConfig {
  DType q;                // f16, bf16; with an FP8 or NVFP4 cache also e4m3, e5m2
  DType kv;               // q's, or e4m3, e5m2, f4_e2m1x2 (NVFP4)
  DType o;                // f16, bf16, f32
  unsigned char warps_k;  // 1 or 4
  // 1: a warp has two tiles of 16 rows, which share what is loaded of K and V (with warps_k 1). Then the first steps of
  // Q that stay in registers: a multiple of 4, or all.
  unsigned char wide, held;
  // 1: logits are products of e4m3 (sm_89; dqk a multiple of 32), whose steps are of 32 elements; 2: outputs too, of
  // weights rounded to e4m3.
  short e4m3;
  short dqk, dvo;  // multiples of 8 (NVFP4: of 16) up to 512 and 256
  short threads;   // of a block
  short copy;      // bytes of K and V that one asynchronous copy moves: 16; 8 for rows of FP8 or NVFP4 that begin at 8
  short scale_copy;  // the same of a row of NVFP4's scales: 8 or 4; 1: not asynchronous. Else 0
  // 1: two blocks share the columns of V, dvo each, since a warp's outputs of 16 rows and 256 columns take half of its
  // registers. Each computes the logits for itself.
  short halves;

  static constexpr const char* kName = "flashinfer::AttentionCudaConfig";
  template <class V>
  constexpr void visit(V&& v) const {
    v("q", q);
    v("kv", kv);
    v("o", o);
    v("warps_k", warps_k);
    v("wide", wide);
    v("held", held);
    v("e4m3", e4m3);
    v("dqk", dqk);
    v("dvo", dvo);
    v("threads", threads);
    v("copy", copy);
    v("scale_copy", scale_copy);
    v("halves", halves);
  }
  friend constexpr bool operator==(const AttentionCudaConfig&, const AttentionCudaConfig&) = default;
  constexpr int parts() const { return halves ? 2 : 1; }
  constexpr uint32_t row_tiles() const { return wide ? 2 : 1; }
  constexpr int rows() const { return threads / 32 / warps_k * (wide ? 32 : 16); }
  /// Whether elements of K and V become f16 between shared memory and the products.
  constexpr bool narrow() const { return kv != DType::kF16 && kv != DType::kBF16; }
  /// A function: NVRTC 12.4 does not compile this expression as the argument of a template.
  constexpr DType product_type() const { return narrow() ? DType::kF16 : q; }
  /// Keys of a tile in shared memory. K and V of one head take 32 KB at D 128; those of decode, which lives on what it
  /// has in flight, also with 8 bits.
  constexpr int keys() const { return narrow() && warps_k > 1 ? 128 : 64; }
  constexpr bool fp4() const { return kv == DType::kF4E2M1x2; }
  /// Bytes of a row of K or V, of the 16-byte pieces of it that products read, and of what strides count.
  constexpr int row_bytes(int dim) const { return fp4() ? dim / 2 : narrow() ? dim : 2 * dim; }
  constexpr int used_bytes(int dim) const { return round_up(row_bytes(dim), narrow() ? 16 : 32); }
  constexpr int used_dim(int dim) const { return used_bytes(dim) * 16 / row_bytes(16); }  // in elements
  constexpr int unit_bytes() const { return narrow() ? 1 : 2; }
  /// Bytes of a row of scales in shared memory, a power of two.
  constexpr int scale_pitch(int dim) const { return !fp4() ? 0 : dim <= 64 ? 4 : dim <= 128 ? 8 : 16; }
  /// Bytes of shared memory: the tiles of Q, K and V; the f32 outputs of 16 rows a warp that take their place; what
  /// belongs to a row, which of 16-bit caches is only written when offsets are not needed any more; offsets of two
  /// tiles of keys (NVFP4: and of their scales); scales.
  constexpr int q_row_bytes() const { return e4m3 != 0 ? dqk : dqk * 2; }
  constexpr int q_bytes() const { return rows() * round_up(q_row_bytes(), 128); }
  constexpr int tile_bytes(int dim) const { return keys() * round_up(row_bytes(dim), 128); }
  constexpr int output_bytes() const { return threads / 32 * 16 * round_up(dvo, 64) * 4; }
  constexpr int state_at() const {
    const int tiles = q_bytes() + tile_bytes(dqk) + tile_bytes(dvo);
    return tiles > output_bytes() ? tiles : output_bytes();
  }
  constexpr int state_bytes() const { return threads / 32 * (wide ? 32 : 16) * 2 * 4; }
  constexpr int offsets_at() const { return state_at() + (narrow() ? state_bytes() : 0); }
  constexpr int scales_at() const {
    const int offsets = 2 * keys() * (fp4() ? 32 : 16);
    return offsets_at() + (!narrow() && state_bytes() > offsets ? state_bytes() : offsets);
  }
  constexpr int shared_bytes() const { return scales_at() + keys() * (scale_pitch(dqk) + scale_pitch(dvo)); }
  /// Decode lives on what its resident blocks have in flight: four of them, where ptxas would take registers for three
  /// at D 128; with an FP8 or NVFP4 cache, whose tiles have twice the keys, three. In prefill beyond D 64, and of
  /// these caches, ptxas would spill for the sake of more blocks than 256 threads; at D 64 with 16 rows a warp, of
  /// more than three.
  constexpr int min_blocks() const {
    if (dqk > 128 || dvo > 128) return 0;
    if (warps_k > 1) return narrow() ? 3 : 4;
    return dqk > 64 || dvo > 64 || narrow() ? 256 / threads : !wide && threads == 128 ? 3 : 0;
  }
};

struct AttentionTile {
  int32_t request, row_begin, rows;  // rows at most the Config's
  int32_t key_begin, key_end;
  // Rows whose keys are cut have a tile for each of `chunks` ranges of keys. The state of row i of range c is partial
  // row partial + c * rows + i of each KV head of the grid; partial < 0: not cut, the tile writes the output. The last
  // of them to finish merges (merge.cuh), which it learns from counter `cut` of its head.
  int32_t chunk, chunks, cut;
  int64_t partial;
};
struct AttentionCudaParams {
  // partial_o: [partial rows][heads of the grid][Dvo] outputs of partial rows, divided by their denominators;
  // softmax_state: their LSE, base 2. With a custom variant, undivided sums, and pairs of maximum and denominator.
  AttentionParams a;
  const AttentionTile* tiles;
  uint32_t* counters;                          // [cuts][heads of the grid]: 0 before a launch, and behind it
  const float *q_head_scales, *k_head_scales;  // [Hq], [Hkv]: factors of the logits, of 8-bit caches and without tensor
                                               // cores; or null
  uint32_t tile_pages = 0, tile_entries = 0;   // keys() / page_size and the remainder (paged; a division is a call)
  uint32_t group = 0;                          // query heads of a KV head; kept here, not divided: registers
  // 0: all KV heads, the columns of the grid, have the same tiles. Else so many each, with partial rows and counters of
  // their own: heads have patterns of their own (block-sparse attention of variable blocks).
  uint32_t tiles_a_head = 0;
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
  unsigned char rows;  // of a tile: 4; of head dims above 256, 2
  short dqk, dvo;      // multiples of 8 (f32: 4) up to 576
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
  /// Keys that a group has in flight: beyond a dim of 256 a lane has twice the elements of each, and half of the keys.
  constexpr int step() const { return dqk > 256 || dvo > 256 ? 2 : 4; }
  /// Left alone, ptxas spills 12 registers on sm_75 for a third block; from sm_80 on it takes registers for two.
  constexpr int min_blocks() const { return 2; }
};

}  // namespace flashinfer
