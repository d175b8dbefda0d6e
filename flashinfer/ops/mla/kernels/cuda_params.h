// SPDX-License-Identifier: Apache-2.0
// Configs and parameters of the GPU kernels of latent attention. Freestanding. docs/cuda.md, "Latent attention",
// explains the sizes.
//
// They are those of attention with one KV head: `base.a.q` is q_nope, `base.a.k` the latent rows, which are also the
// values, `base.a.v` kpe. A tile is some packed rows (token * H + head) of one request and a range of its keys.
#pragma once
#include "flashinfer/core/int_math.h"
#include "flashinfer/ops/attention/kernels/cuda/params.h"
#include "flashinfer/ops/mla/kernels/params.h"

namespace flashinfer {

/// On tensor cores. Each warp has 16 rows and a part of a tile's keys for the logits, and all rows and a part of the
/// columns for the outputs.
struct MlaCudaConfig {
  DType q;        // f16 or bf16: what is multiplied
  DType query;    // of queries in memory: q, or 8 bits
  DType kv;       // q, or 8 bits
  DType o;        // f16, bf16, f32, e4m3
  short rows;     // of a tile: 16, 32, 64
  short keys;     // of a tile in shared memory: 16, 32
  short ckv;      // multiples of 64 up to 512; of 16 for each warp
  short kpe;      // multiples of 32 up to 128
  short threads;  // of a block
  short copied;   // bytes of a copy: 16; 8 where rows of 8-bit keys begin at 8
  short packed;   // 1: keys are packed rows (kPackedRow), `kv` e4m3 and `q` bf16

  static constexpr const char* kName = "flashinfer::MlaCudaConfig";
  template <class V>
  constexpr void visit(V&& v) const {
    v("q", q);
    v("query", query);
    v("kv", kv);
    v("o", o);
    v("rows", rows);
    v("keys", keys);
    v("ckv", ckv);
    v("kpe", kpe);
    v("threads", threads);
    v("copied", copied);
    v("packed", packed);
  }
  friend constexpr bool operator==(const MlaCudaConfig&, const MlaCudaConfig&) = default;

  /// Up to 168 registers for the narrowest tiles: left alone, NVRTC 13.0 takes 128 for sm_120a and spills.
  constexpr int min_blocks() const { return rows == 16 && ckv <= 128 ? 3 : 0; }
  constexpr int warps() const { return threads / 32; }
  constexpr int row_groups() const { return rows / 16; }
  constexpr int key_groups() const { return warps() / row_groups(); }
  /// Elements of a row of shared memory: latent channels, kpe, and up to a multiple of 64, which the swizzle needs.
  constexpr int pitch() const { return round_up(ckv + kpe, 64); }
  constexpr bool narrow() const { return kv != q; }
  /// Bytes of a key of 8 bits, with its scales.
  constexpr int code_bytes() const { return packed ? mla::kPackedRow : ckv + kpe; }

  // Shared memory, in bytes: queries; two tiles of keys, or one and its 8-bit codes; then weights, maxima, and the
  // places of two tiles of keys. The f32 outputs take the place of queries and keys.
  constexpr int query_bytes() const { return rows * pitch() * 2; }
  constexpr int tile_bytes() const { return keys * pitch() * 2; }
  constexpr int tiles_end() const {
    const int tiles = query_bytes() + tile_bytes() + (narrow() ? keys * code_bytes() : tile_bytes());
    return tiles > rows * ckv * 4 ? tiles : rows * ckv * 4;
  }
  constexpr int state_at() const { return tiles_end() + rows * keys * 2; }
  constexpr int places_at() const { return state_at() + (key_groups() + 1) * rows * 4; }
  constexpr int shared_bytes() const { return places_at() + 2 * keys * 16; }
};

/// Without tensor cores: any element types and dims. A warp has `rows` / warps rows.
struct MlaCoresConfig {
  DType q, kv, o;         // f32, f16, bf16, e4m3, q and kv also e5m2
  unsigned char grouped;  // 1: a scale for each key and 128 latent channels
  short packed;           // 1: keys are packed rows (kPackedRow), `kv` e4m3; rounded to bf16
  short rows;             // of a tile: 4 a warp
  short keys;             // of a tile in shared memory: at most 32
  short ckv, kpe;         // up to 512 and 128
  short threads;

  static constexpr const char* kName = "flashinfer::MlaCoresConfig";
  template <class V>
  constexpr void visit(V&& v) const {
    v("q", q);
    v("kv", kv);
    v("o", o);
    v("grouped", grouped);
    v("packed", packed);
    v("rows", rows);
    v("keys", keys);
    v("ckv", ckv);
    v("kpe", kpe);
    v("threads", threads);
  }
  friend constexpr bool operator==(const MlaCoresConfig&, const MlaCoresConfig&) = default;
  /// Keys in f32.
  constexpr int shared_bytes() const { return keys * (ckv + kpe) * 4; }
};

struct MlaCudaParams {
  AttentionCudaParams base;
  const void* q_pe;
  int64_t q_pe_stride_n, q_pe_stride_h;
  const float* ckv_scales;  // [page][token][ceil(ckv / 128)], or null
  const float* scale;       // a further factor of the logits, or null
  float kpe_ratio;          // logit = scale * (<q_nope, ckv> + kpe_ratio * <q_pe, kpe>)
  int32_t pad;
};

}  // namespace flashinfer
