// SPDX-License-Identifier: Apache-2.0
// How the kernels of latent attention are launched on GPUs: pure functions of the call. docs/cuda.md, "Latent
// attention".
#pragma once
#include <algorithm>
#include <cstdint>
#include <string>

#include "flashinfer/core/cuda_launch.h"
#include "flashinfer/ops/attention/cuda/launch.h"
#include "flashinfer/ops/mla/kernels/cuda_params.h"

namespace flashinfer::cuda {

/// What a call is computed in and on.
struct MlaShape {
  DType q, query, kv, o;  // q: what queries are multiplied in
  int64_t ckv, kpe;
  bool grouped;
  bool packed = false;  // kv is bf16, packed to rows of 656 bytes

  DType codes() const { return packed ? DType::kF8E4M3 : kv; }
};

/// Bytes of an element.
constexpr int mla_bytes(DType t) { return t == DType::kF8E4M3 || t == DType::kF8E5M2 ? 1 : t == DType::kF32 ? 4 : 2; }
/// Why tensor cores do not support a call; then the kernel without them runs. Empty when they do.
inline std::string mla_refusal(const MlaShape& s, bool async_copy) {
  if (!async_copy) return "GPUs before sm_80 have neither cp.async nor m16n8k16 products";
  if (mla_bytes(s.q) != 2) return "tensor cores multiply float16 and bfloat16";
  if (s.kv != s.q && mla_bytes(s.kv) != 1) return "the cache has another 16-bit type than the queries";
  if (s.query != s.q && mla_bytes(s.query) != 1) return "the queries have another 16-bit type than the cache";
  if (s.grouped) return "a scale for each key and 128 channels is multiplied in float32";
  if (s.ckv < 64 || s.ckv > 512 || s.ckv % 64 != 0) return "head_dim_ckv is a multiple of 64 from 64 to 512";
  if (s.kpe > 128 || s.kpe % 32 != 0) return "head_dim_kpe is a multiple of 32 up to 128";
  return {};
}
/// Outputs are stored four at a time.
inline bool mla_output_aligned(DType o, const AttentionParams& a) {
  const int64_t item = mla_bytes(o);
  return ((static_cast<uint64_t>(reinterpret_cast<uintptr_t>(a.o)) |
           static_cast<uint64_t>((a.o_stride_n | a.o_stride_h) * item)) %
          static_cast<uint64_t>(4 * item)) == 0;
}
/// Bytes that cp.async copies at once, by where rows of keys begin; 0 where it cannot, or queries or outputs cannot be
/// read or written as the kernel does.
inline int mla_copied(const MlaCudaConfig& c, const MlaCudaParams& p) {
  const AttentionParams& a = p.base.a;
  const auto at = [](const void* x, int64_t strides, int64_t item) {
    return static_cast<uint64_t>(reinterpret_cast<uintptr_t>(x)) | static_cast<uint64_t>(strides * item);
  };
  const int64_t query = c.query == c.q ? 2 : 1, key = c.narrow() ? 1 : 2;
  uint64_t queries = at(a.q, a.q_stride_n | a.q_stride_h, query), keys = at(a.k, a.k_stride_page | a.k_stride_n, key);
  if (c.kpe != 0) {
    queries |= at(p.q_pe, p.q_pe_stride_n | p.q_pe_stride_h, query);
    keys |= at(a.v, a.v_stride_page | a.v_stride_n, key);
  }
  if (queries % static_cast<uint64_t>(8 * query) != 0 || !mla_output_aligned(c.o, a)) return 0;
  return keys % 16 == 0 ? 16 : c.narrow() && keys % 8 == 0 ? 8 : 0;
}

/// The largest tile that a block's shared memory holds, of 64 rows where a request has more than 32: keys are then read
/// once for 64 rows. Where the memory decides, tiles have 16 keys instead of 32; with the same keys, 32 and 64 rows
/// give the same bits, so a result depends on its own request alone.
inline MlaCudaConfig mla_config(const MlaShape& s, bool few, int64_t most_rows, int64_t shared_bytes) {
  MlaCudaConfig c{.q = s.q,
                  .query = s.query,
                  .kv = s.codes(),
                  .o = s.o,
                  .rows = 16,
                  .keys = 32,
                  .ckv = static_cast<short>(s.ckv),
                  .kpe = static_cast<short>(s.kpe),
                  .threads = 128,
                  .copied = 16,
                  .packed = s.packed};
  if (few) return c;
  c.rows = 32;
  MlaCudaConfig wide = c;
  wide.rows = 64, wide.threads = 256;
  // Eight warps have 16 columns each at least.
  if (most_rows > 32 && s.ckv % 128 == 0 && wide.shared_bytes() <= shared_bytes) return wide;
  if (c.shared_bytes() > shared_bytes) c.keys = 16;
  return c;
}
inline std::string mla_cores_refusal(const MlaShape& s, const AttentionParams& a) {
  const uint64_t rows =
      static_cast<uint64_t>(reinterpret_cast<uintptr_t>(a.k)) | static_cast<uint64_t>(a.k_stride_page | a.k_stride_n);
  if (s.packed && rows % 4 != 0) return "packed rows must begin at 4 bytes, where their scales do";
  if (s.ckv > 512 || s.kpe > 128) return "head_dim_ckv is at most 512 and head_dim_kpe at most 128";
  return {};
}
inline MlaCoresConfig mla_cores_config(const MlaShape& s) {
  return {.q = s.query,
          .kv = s.codes(),
          .o = s.o,
          .grouped = s.grouped,
          .packed = s.packed,
          .rows = 16,
          .keys = 16,
          .ckv = static_cast<short>(s.ckv),
          .kpe = static_cast<short>(s.kpe),
          .threads = 128};
}

/// Keys of a chunk, a function of the request's shape: 256 keys are 288 KB at 512 + 64 channels of 16 bits, beside
/// which the partial results of 16 rows, 32 KB, are a tenth. Tiles of more rows write more of them, and up to eight
/// tokens of 128 heads have tiles enough for a GPU only with their keys cut.
constexpr int64_t mla_chunk(int64_t rows, int64_t keys) {
  if (rows > 1024) return INT32_MAX / 64 * 64;
  const int64_t least = rows <= 16 ? 256 : 512;
  return keys <= 8192 ? least : keys <= 65536 ? 2 * least : 4 * least;
}
/// Rows whose partial results the merge cannot read four columns at a time are not cut.
constexpr int64_t mla_uncut(int64_t, int64_t) { return INT32_MAX / 64 * 64; }

/// The most work of a batch, as attention_bound() (attention/cuda/launch.h) has it, with these chunks: a request of k
/// keys has at most k / c of them behind the first, and at most 64 + k / (4 c), where c is the least.
inline AttentionBound mla_bound(int64_t requests, int64_t rows, int64_t most, int64_t keys, int tile_rows, bool few) {
  if (rows == 0 || (!few && most <= kFewRows)) return {};
  const int64_t cut_rows = std::min<int64_t>(most, few ? kFewRows : 1024), per_request = ceil_div(cut_rows, tile_rows);
  const int64_t least = mla_chunk(cut_rows, 0), more = std::min(keys / least, keys / (4 * least) + 64 * requests);
  const int64_t can_be_cut = std::min(requests, more);
  const int64_t whole = few ? requests * per_request : std::min(rows / tile_rows + requests, rows);
  return {static_cast<size_t>(whole + per_request * more), static_cast<size_t>(per_request * can_be_cut),
          cut_rows * (can_be_cut + more)};
}

inline Launch mla_launch(int threads, int shared_bytes, size_t tiles) {
  Launch l;
  l.grid[0] = grid_size(static_cast<long long>(tiles));
  l.block[0] = static_cast<unsigned>(threads);
  l.shared_bytes = static_cast<unsigned>(shared_bytes);
  l.pdl = true;
  return l;
}

}  // namespace flashinfer::cuda
