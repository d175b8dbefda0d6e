// SPDX-License-Identifier: Apache-2.0
// RoPE with a table of cos and sin, then a cast to FP8: rope parts are rotated in f32, every part is multiplied by its
// scale and cast to e4m3 or e5m2, to nearest even, saturating at +-448 or +-57344 (NaN becomes 0x7f).
//
// A head is a rope part, which is rotated as a whole (its width is that of the table), and a part that is only cast
// ("nope"), which may be absent. K has a head each for MHA and GQA (rank 3), or one for all (rank 2: MLA). ValueError:
// inconsistent shapes or dtypes, a table that is not f32 (16 bits cost visible accuracy: convert it once), positions
// outside the table.
#pragma once
#include <optional>
#include <string>
#include <tuple>
#include <utility>

#include "flashinfer/op/call.h"

#pragma GCC visibility push(default)

namespace flashinfer {

struct RopeQuantizeFp8 {
  TensorView q_rope;                         // [n, hq, rd] f16|bf16|f32
  TensorView k_rope;                         // [n, hk, rd], or [n, rd] (MLA)
  std::optional<TensorView> q_nope = {};     // [n, hq, dq]
  std::optional<TensorView> k_nope = {};     // [n, hk, dk], or [n, dk]
  TensorView cos_sin_cache;                  // [max_pos, rd] f32: cos of rd/2 angles, then sin
  TensorView pos_ids;                        // [n] i32|i64
  bool is_neox = true;                       // pairs (i, i + rd/2); false: (2i, 2i + 1)
  std::optional<DType> quantize_dtype = {};  // e4m3|e5m2; absent: that of the first given output, else e4m3
  double quant_scale_q = 1;
  double quant_scale_kv = 1;
  std::optional<TensorView> q_rope_out = {};  // as their inputs; of width 0 where those are absent
  std::optional<TensorView> k_rope_out = {};
  std::optional<TensorView> q_nope_out = {};
  std::optional<TensorView> k_nope_out = {};
  bool enable_pdl = false;       // CUDA only
  std::string backend = "cuda";  // FlashInfer's name of GPU kernels; tensors in host memory use the CPU kernel
};
struct RopeQuantizeFp8Result {
  Tensor q_rope, k_rope, q_nope, k_nope;
};
RopeQuantizeFp8Result rope_quantize_fp8(const RopeQuantizeFp8& args);
/// The older name, without `backend`.
RopeQuantizeFp8Result mla_rope_quantize_fp8(const RopeQuantizeFp8& args);

/// The same, with K and V written to a paged cache of FP8. MHA and GQA: the cache is (K, V), a head of K is its rope
/// part followed by its other part, and v is cast with quant_scale_kv. MLA (k_rope of rank 2): the cache is (latent [P,
/// ps, dk], rope [P, ps, rd]), v must be absent. Tokens with a negative batch index write nothing to the cache, their
/// ids are not read, and their rows of q are 0.
struct RopeQuantizeFp8Append {
  TensorView q_rope;
  TensorView k_rope;
  std::optional<TensorView> q_nope = {};
  std::optional<TensorView> k_nope = {};
  std::optional<TensorView> v = {};  // [n, hk, dv]
  TensorView cos_sin_cache;
  TensorView pos_ids;
  op::PagedKv paged_kv_cache;  // a pair, written
  TensorView kv_indices;       // page ids
  TensorView kv_indptr;        // [b+1], in pages
  TensorView batch_indices;    // [n]
  TensorView positions;        // [n], within the request
  bool is_neox = true;
  std::optional<DType> quantize_dtype = {};  // absent: that of the cache
  double quant_scale_q = 1;
  double quant_scale_kv = 1;
  int64_t page_size = 16;  // must be that of the cache
  std::string kv_layout = "NHD";
  std::optional<TensorView> q_rope_out = {};
  std::optional<TensorView> q_nope_out = {};
  bool enable_pdl = false;  // CUDA only
};
/// (q_rope, q_nope)
std::pair<Tensor, Tensor> rope_quantize_fp8_append_paged_kv_cache(const RopeQuantizeFp8Append& args);

}  // namespace flashinfer

#pragma GCC visibility pop
