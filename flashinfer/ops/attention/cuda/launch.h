// SPDX-License-Identifier: Apache-2.0
// How the attention kernels of kernels/cuda/attention.cuh are launched: pure functions of the call.
#pragma once
#include <algorithm>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "flashinfer/core/check.h"
#include "flashinfer/core/cuda_launch.h"
#include "flashinfer/core/int_math.h"
#include "flashinfer/ops/attention/kernels/cuda/chunks.h"
#include "flashinfer/ops/attention/kernels/cuda/pair_params.h"

namespace flashinfer::cuda {

constexpr bool attention_fp8(DType t) { return t == DType::kF8E4M3 || t == DType::kF8E5M2; }
/// Whether a cache has elements that become f16 on the way to the products.
constexpr bool attention_narrow(DType t) { return attention_fp8(t) || t == DType::kF4E2M1x2; }

/// Why the tensor-core kernel does not support a call; empty when it can. Addresses are checked by
/// attention_copy_bytes. `async_copy`: the GPU has it (jit::Arch), and with it the products of 16 x 16 by 16 x 8.
inline std::string attention_refusal(const AttentionConfig& c, const AttentionParams& p, bool async_copy) {
  const bool narrow = attention_narrow(c.kv);
  if (!async_copy) return "GPUs before sm_80 have neither cp.async nor m16n8k16 products";
  if (c.q != DType::kF16 && c.q != DType::kBF16 && !(narrow && attention_fp8(c.q)))
    return "tensor cores take float16 and bfloat16 queries, with 8-bit caches also 8-bit ones";
  if (c.kv != c.q && !narrow) return "the cache has another 16-bit type than the queries, or 32 bits";
  if (c.rope) return "rotated keys would be rounded once more";
  for (const int d : {p.head_dim_qk, p.head_dim_vo})
    if (d < 16 || d > 512 || d % 8 != 0) return "head dimensions are multiples of 8 from 16 to 512";
  if (p.head_dim_vo > 256 && p.head_dim_vo % 16 != 0) return "head dimensions of V above 256 are multiples of 16";
  if (narrow && std::max(p.head_dim_qk, p.head_dim_vo) > 256)
    return "head dimensions of FP8 and NVFP4 caches are at most 256";
  if (c.kv == DType::kF4E2M1x2 && (p.head_dim_qk % 16 != 0 || p.head_dim_vo % 16 != 0))
    return "head dimensions of NVFP4 caches are multiples of 16";
  return {};
}
inline uint64_t attention_bits(const void* x, int64_t strides, int64_t size) {
  return static_cast<uint64_t>(reinterpret_cast<uintptr_t>(x)) | static_cast<uint64_t>(strides * size);
}
/// Bytes that one asynchronous copy of K and V may move: 16 where every row of them begins at 16 bytes, 8 where rows of
/// FP8 or NVFP4 begin at 8; 0 when the kernel cannot read the tensors. Rows of Q begin at 8 elements, those of the
/// output at 4.
inline int attention_copy_bytes(const AttentionConfig& c, const AttentionParams& p) {
  const auto bits = attention_bits;
  const bool narrow = attention_narrow(c.kv);
  const int64_t size = narrow ? 1 : 2, q_size = attention_fp8(c.q) ? 1 : 2, o_size = c.o == DType::kF32 ? 4 : 2;
  const uint64_t keys = bits(p.k, p.k_stride_n | p.k_stride_h | (p.kv_indices ? p.k_stride_page : 0), size) |
                        bits(p.v, p.v_stride_n | p.v_stride_h | (p.kv_indices ? p.v_stride_page : 0), size);
  if (bits(p.q, p.q_stride_n | p.q_stride_h, q_size) % static_cast<uint64_t>(8 * q_size) != 0 ||
      bits(p.o, p.o_stride_n | p.o_stride_h, o_size) % static_cast<uint64_t>(4 * o_size) != 0)
    return 0;
  return keys % 16 == 0 ? 16 : narrow && keys % 8 == 0 ? 8 : 0;
}
/// The same of rows of scales.
inline int attention_scale_copy_bytes(const AttentionConfig& c, const AttentionParams& p) {
  if (c.kv != DType::kF4E2M1x2) return 0;
  const uint64_t rows =
      attention_bits(p.k_sf, p.k_sf_stride_n | p.k_sf_stride_h | (p.kv_indices ? p.k_sf_stride_page : 0), 1) |
      attention_bits(p.v_sf, p.v_sf_stride_n | p.v_sf_stride_h | (p.kv_indices ? p.v_sf_stride_page : 0), 1);
  const bool wide = p.head_dim_qk > 64 && p.head_dim_vo > 64;  // rows of 4 bytes in shared memory otherwise
  return wide && rows % 8 == 0 ? 8 : rows % 4 == 0 ? 4 : 1;
}

/// Whether products of e4m3 are an instruction. For sm_90 to sm_110 the compiler converts their operands to f16, each
/// time; a kernel that does so itself converts once.
constexpr bool attention_has_e4m3(int arch) { return arch == 89 || arch >= 120; }

/// What a GPU and a call allow attention_config.
struct AttentionLimits {
  int shared_bytes;   // most shared memory of a block; an SM has 1 KB more than its one largest block
  bool wide = true;   // AttentionCudaConfig::wide
  int e4m3 = 0;       // AttentionCudaConfig::e4m3, at most
  bool pair = false;  // blocks of 128 threads, as those of few rows have (kernels/cuda/pair.cuh)
};
/// Whether an SM holds two blocks: each takes 1 KB more than it asks for.
inline bool two_blocks_fit(const AttentionCudaConfig& c, const AttentionLimits& limits) {
  return 2 * (c.shared_bytes() + 1024) <= limits.shared_bytes + 1024;
}
/// Requests with few packed rows (decode, and short appends) go to tiles of 16 rows whose four warps divide the keys:
/// with one warp of 16 rows a block would have too few loads in flight. The others go to tiles of 64 rows, or, where
/// there are more rows and registers allow it (D <= 128), of 128 or 256: K and V of a tile are then read for more rows.
/// There a warp takes 32 rows, for which it reads K and V from shared memory once: four warps, of which an SM holds two
/// blocks, else eight, for requests that fill them, else eight warps of 16 rows. The kind depends on the request alone;
/// all tiles of many rows give the same bits.
inline AttentionCudaConfig attention_config(const AttentionConfig& c, const AttentionParams& p, bool few,
                                            int64_t most_rows, const AttentionLimits& limits) {
  AttentionCudaConfig k{.q = c.q,
                        .kv = c.kv,
                        .o = c.o,
                        .warps_k = static_cast<unsigned char>(few ? 4 : 1),
                        .dqk = static_cast<short>(p.head_dim_qk),
                        .dvo = static_cast<short>(p.head_dim_vo > 256 ? p.head_dim_vo / 2 : p.head_dim_vo),
                        .threads = 128,
                        .copy = 16,
                        .scale_copy = static_cast<short>(c.kv == DType::kF4E2M1x2 ? 8 : 0)};
  k.halves = p.head_dim_vo > 256;
  const bool e4m3 = c.q == DType::kF8E4M3 && c.kv == DType::kF8E4M3 && p.head_dim_qk % 32 == 0;
  k.e4m3 = static_cast<short>(e4m3 ? limits.e4m3 : 0);
  if (few || most_rows <= 64 || std::max(p.head_dim_qk, p.head_dim_vo) > 128) return k;
  if (limits.wide && !(k.e4m3 == 2 && p.head_dim_qk > 64)) {  // which would spill
    AttentionCudaConfig wide = k;
    wide.wide = 1;
    // Q of 32 rows at D 128 would take 64 registers beside 128 of outputs and 64 of logits.
    wide.held = static_cast<unsigned char>(
        std::max(p.head_dim_qk, p.head_dim_vo) <= 64 ? wide.used_dim(p.head_dim_qk) / (wide.e4m3 ? 32 : 16) : 0);
    if (two_blocks_fit(wide, limits)) return wide;
    if (limits.pair) return k;
    wide.threads = 256;
    if (most_rows > 128 && wide.shared_bytes() <= limits.shared_bytes) return wide;
  }
  if (!limits.pair) k.threads = 256;
  return k;
}

/// The same of the kernel without tensor cores, which supports what they do not: other element types, rotation, scales
/// of heads.
inline std::string attention_cores_refusal(const AttentionConfig& c, const AttentionParams& p) {
  if (c.kv == DType::kF4E2M1x2) return "NVFP4 caches are read on tensor cores only";
  const int per = c.kv == DType::kF32 ? 4 : 8;
  for (const int d : {p.head_dim_qk, p.head_dim_vo})
    if (d > 576 || d % per != 0)
      return per == 4 ? "head dimensions are multiples of 4 up to 576" : "head dimensions are multiples of 8 up to 576";
  if (c.rope && p.head_dim_qk % (2 * per) != 0)
    return per == 4 ? "ROPE_LLAMA takes head dimensions that are multiples of 8"
                    : "ROPE_LLAMA takes head dimensions that are multiples of 16";
  return {};
}
/// Four rows a tile: queries and outputs of four rows take 64 registers of a thread at 8 elements each. Beyond a head
/// dim of 256 two rows take as many, or 80 of a dim of 576.
inline AttentionCoresConfig attention_cores_config(const AttentionConfig& c, const AttentionParams& p) {
  return {.q = c.q,
          .kv = c.kv,
          .o = c.o,
          .rows = static_cast<unsigned char>(std::max(p.head_dim_qk, p.head_dim_vo) > 256 ? 2 : 4),
          .dqk = static_cast<short>(p.head_dim_qk),
          .dvo = static_cast<short>(p.head_dim_vo),
          .rope = static_cast<short>(c.rope),
          .threads = 128};
}

struct AttentionShape {
  int32_t tokens, keys;
};
/// The tiles of all requests of one kind; groups of rows whose keys are cut, each of which has a counter for each head.
/// Longest first: the last blocks of a launch are then short ones.
struct AttentionWorkList {
  std::vector<AttentionTile> tiles;
  size_t cuts = 0;
  int64_t partial_rows = 0;
};
using ChunkOf = int64_t (*)(int64_t rows, int64_t keys);
inline AttentionWorkList attention_tiles(std::span<const AttentionShape> requests, int group, int tile_rows, bool few,
                                         ChunkOf chunk_of = attention_chunk) {
  AttentionWorkList w;
  for (size_t b = 0; b < requests.size(); ++b) {
    const int64_t rows = int64_t{requests[b].tokens} * group, keys = requests[b].keys;
    if ((rows <= kFewRows) != few || rows <= 0) continue;
    const int64_t chunk = chunk_of(rows, keys), chunks = std::max<int64_t>(1, ceil_div(keys, chunk));
    for (int64_t r = 0; r < rows; r += tile_rows) {
      const int32_t n = static_cast<int32_t>(std::min<int64_t>(tile_rows, rows - r));
      const int64_t partial = chunks > 1 ? w.partial_rows : -1;
      for (int64_t c = 0; c < chunks; ++c)
        w.tiles.push_back({static_cast<int32_t>(b), static_cast<int32_t>(r), n, static_cast<int32_t>(c * chunk),
                           static_cast<int32_t>(std::min(keys, (c + 1) * chunk)), static_cast<int32_t>(c),
                           static_cast<int32_t>(chunks), static_cast<int32_t>(w.cuts), partial});
      if (chunks > 1) ++w.cuts, w.partial_rows += chunks * n;
    }
  }
  // Under a causal mask the last rows see the most keys.
  std::stable_sort(w.tiles.begin(), w.tiles.end(), [](const AttentionTile& a, const AttentionTile& b) {
    return a.key_end - a.key_begin != b.key_end - b.key_begin ? a.key_end - a.key_begin > b.key_end - b.key_begin
                                                              : a.row_begin > b.row_begin;
  });
  return w;
}

/// The most that attention_tiles() makes for `requests` requests of `rows` packed rows in all, `most` in one, and
/// `keys` in all: the sizes of a captured graph. A request with keys k has ceil(k / chunk) <= 1 + k / chunk chunks, and
/// is only cut when k > chunk.
struct AttentionBound {
  size_t tiles = 0, cuts = 0;
  int64_t partial_rows = 0;
};
using BoundOf = AttentionBound (*)(int64_t requests, int64_t rows, int64_t most, int64_t keys, int tile_rows, bool few);
inline AttentionBound attention_bound(int64_t requests, int64_t rows, int64_t most, int64_t keys, int tile_rows,
                                      bool few) {
  if (rows == 0 || (!few && most <= kFewRows)) return {};
  const int64_t cut_rows = std::min<int64_t>(most, few ? kFewRows : 64);  // a request with more is not cut
  const int64_t per_request = ceil_div(cut_rows, tile_rows);
  // Chunks behind the first ones. With few rows a request of k keys has at most k / 256, and at most 64 + k / 1024.
  const int64_t more = few ? std::min(keys / 256, keys / 1024 + 64 * requests) : keys / attention_chunk(cut_rows, keys);
  const int64_t can_be_cut = std::min(requests, more);
  const int64_t whole = few ? requests * per_request : std::min(rows / tile_rows + requests, rows);  // row tiles
  return {static_cast<size_t>(whole + per_request * more), static_cast<size_t>(per_request * can_be_cut),
          cut_rows * (can_be_cut + more)};
}

inline void attention_tile_steps(AttentionCudaParams& p, const AttentionCudaConfig& c) {
  if (p.a.page_size <= 0) return;
  p.tile_pages = static_cast<uint32_t>(c.keys() / p.a.page_size),
  p.tile_entries = static_cast<uint32_t>(c.keys() % p.a.page_size);
}
inline Launch attention_launch(const AttentionCudaConfig& c, const AttentionCudaParams& p, size_t tiles, bool pdl) {
  Launch l;
  l.grid[0] = grid_size(tiles);
  l.grid[1] = grid_size(p.a.num_kv_heads);
  l.grid[2] = cuda::grid_size(c.parts());
  l.block[0] = static_cast<unsigned>(c.threads);
  l.shared_bytes = static_cast<unsigned>(c.shared_bytes());
  l.pdl = pdl;
  return l;
}
/// Whether tiles of 32 rows a warp have registers enough beside those of few rows in one kernel, by NVRTC 13.5.
constexpr bool attention_pair_wide(DType kv, int head_dim_qk, int head_dim_vo, int arch) {
  return !attention_narrow(kv) && head_dim_qk >= head_dim_vo && (arch >= 90 || head_dim_qk <= 64);
}
/// Whether tiles of many rows run in persistent launches: what does not would spill there, or takes 256 threads.
constexpr bool attention_pair_fits(const AttentionCudaConfig& many, int arch) {
  if (many.threads != 128) return false;
  if (many.wide) return attention_pair_wide(many.kv, many.dqk, many.dvo, arch);
  return !(many.copy < 16 && std::max(many.dqk, many.dvo) > 128);
}
/// Tiles of few and of many rows in one persistent launch: `resident` blocks, which the GPU holds at once, or one for
/// each item where there are fewer. `counters`: AttentionTurns::counters. ValueError from 2^31 items on.
constexpr int64_t kTurnCounters = 3;
inline AttentionTurns attention_turns(const AttentionCudaConfig& many, int64_t few_tiles, int64_t many_tiles,
                                      int64_t heads, int64_t resident, uint32_t* counters) {
  const int64_t columns = heads * many.parts(), few = few_tiles * columns, all = few + many_tiles * columns;
  FI_CHECK(all < int64_t{1} << 31, ValueError, few_tiles, " tiles of few rows and ", many_tiles, " of many for ",
           columns, " heads are ", all, " work items, but a launch has fewer than 2^31: give fewer requests at a time");
  AttentionTurns t{.counters = counters, .share = 0, .heads = static_cast<uint32_t>(heads), .items = {}, .first = {}};
  if (all == 0) return t;
  const auto n = [](int64_t x) { return static_cast<uint32_t>(x); };
  t.share = ceil_div(static_cast<uint64_t>(few) << 32, static_cast<uint64_t>(all));
  const int64_t blocks = std::clamp<int64_t>(resident, 1, all),
                first = static_cast<int64_t>(static_cast<uint64_t>(blocks) * t.share >> 32);
  t.items[0] = n(few), t.items[1] = n(all - few), t.first[0] = n(first), t.first[1] = n(blocks - first);
  return t;
}
inline Launch attention_pair_launch(const AttentionCudaConfig& many, const AttentionTurns& turns, bool pdl) {
  Launch l;
  l.grid[0] = turns.first[0] + turns.first[1];
  l.block[0] = static_cast<unsigned>(many.threads);
  l.shared_bytes = static_cast<unsigned>(pair_shared_bytes(many));
  l.pdl = pdl;
  return l;
}
/// Partial sums of every group of lanes, in f32, and their maxima and denominators (kernels/cuda/attention_simt.cuh).
constexpr unsigned attention_cores_shared_bytes(const AttentionCoresConfig& c) {
  return static_cast<unsigned>(c.groups() * c.rows * (c.dvo + 2) * 4);
}
inline Launch attention_cores_launch(const AttentionCoresConfig& c, const AttentionCudaParams& p, size_t tiles,
                                     bool pdl) {
  Launch l;
  l.grid[0] = grid_size(tiles);
  l.grid[1] = grid_size(p.a.num_kv_heads);
  l.block[0] = static_cast<unsigned>(c.threads);
  l.shared_bytes = attention_cores_shared_bytes(c);
  l.pdl = pdl;
  return l;
}

}  // namespace flashinfer::cuda
