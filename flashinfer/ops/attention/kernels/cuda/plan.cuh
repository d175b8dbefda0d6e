// SPDX-License-Identifier: Apache-2.0
// The work list of a batch from the lengths of its requests, on a GPU: the tiles and cuts of attention_tiles()
// (attention/cuda/launch.h), whose order is of no account to results. One block; whole chunks come before the shorter
// rest of each request, and a request's last rows, which see most keys under a causal mask, before its first, so that
// the last blocks of the attention kernel are short ones.
#pragma once
#include "flashinfer/kernels/cuda/cluster.h"
#include "flashinfer/kernels/cuda/warp.h"
#include "flashinfer/ops/attention/kernels/cuda/chunks.h"
#include "flashinfer/ops/attention/kernels/cuda/plan_params.h"

namespace flashinfer::cu {
namespace attn_plan {

/// Sums over requests: tiles of whole chunks, tiles of rests, cuts, partial rows.
struct Places {
  int32_t n[4];
};

FI_GLOBAL_FN int64_t int_at(const AttentionInts& v, int64_t i) {
  i *= v.stride;
  if (v.type == DType::kI64) return static_cast<const int64_t*>(v.data)[i];
  if (v.type == DType::kU32) return static_cast<const uint32_t*>(v.data)[i];
  return static_cast<const int32_t*>(v.data)[i];
}
FI_GLOBAL_FN int32_t clamp_to(int64_t x, int32_t most) { return x < 0 ? 0 : x < most ? static_cast<int32_t>(x) : most; }
FI_GLOBAL_FN int32_t first_row(const AttentionPlanParams& p, int32_t b) {
  return p.first_rows.data ? clamp_to(int_at(p.first_rows, b), p.tokens) : b * (p.rows / p.group);
}

/// A request's rows and keys, cut. One of the other kind has no rows.
struct Request {
  int32_t rows, keys, chunk, whole, chunks;  // whole: chunks of full size
  FI_GLOBAL_FN Request(const AttentionPlanParams& p, int32_t b) {
    rows = p.rows;
    if (p.first_rows.data) rows = clamp_to(int64_t{first_row(p, b + 1) - first_row(p, b)} * p.group, p.rows);
    keys = clamp_to(int_at(p.seq_lens, b), p.keys);
    chunk = static_cast<int32_t>(cuda::attention_chunk(rows, keys));
    if (p.few >= 0 && (rows <= cuda::kFewRows) != (p.few != 0)) rows = 0;
    whole = keys / chunk;
    chunks = whole * chunk < keys || keys == 0 ? whole + 1 : whole;
  }
  FI_GLOBAL_FN Places counts(const AttentionPlanParams& p) const {
    const int32_t row_tiles = ceil_div(rows, p.tile_rows);
    return {
        {row_tiles * whole, row_tiles * (chunks - whole), chunks > 1 ? row_tiles : 0, chunks > 1 ? chunks * rows : 0}};
  }
};

FI_GLOBAL_FN int32_t scan_warp(int32_t x) {
#pragma unroll
  for (uint32_t d = 1; d < 32; d *= 2) {
    const bool has = lane() >= d;
    const int32_t before = static_cast<int32_t>(shuffle_bits(static_cast<uint32_t>(x), has ? lane() - d : lane()));
    x += has ? before : 0;
  }
  return x;
}
/// Sums over the threads before this one; `all` becomes the sums over all threads. `of_warps`: shared, one a warp.
template <uint32_t kThreads>
FI_GLOBAL_FN Places scan_block(const Places& mine, Places* of_warps, Places& all) {
  Places before{};
#pragma unroll
  for (int i = 0; i < 4; ++i) {
    const int32_t upto = scan_warp(mine.n[i]);
    before.n[i] = upto - mine.n[i];
    if (lane() == 31) of_warps[warp()].n[i] = upto;
  }
  sync_threads();
  all = {};
  for (uint32_t w = 0; w < kThreads / 32; ++w)
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      if (w == warp()) before.n[i] += all.n[i];
      all.n[i] += of_warps[w].n[i];
    }
  sync_threads();
  return before;
}

/// The tiles and cuts of request b, by a warp.
FI_GLOBAL_FN void write_request(const AttentionPlanParams& p, int32_t b, const Places& at) {
  const Request r(p, b);
  const int32_t row_tiles = ceil_div(r.rows, p.tile_rows);
  const bool cut = r.chunks > 1;
  for (int32_t i = static_cast<int32_t>(lane()); i < row_tiles * r.chunks; i += 32) {
    const int32_t t = i / r.chunks, c = i % r.chunks, row = t * p.tile_rows, place = row_tiles - 1 - t;
    const int32_t n = r.rows - row < p.tile_rows ? r.rows - row : p.tile_rows;
    const int32_t partial = at.n[3] + r.chunks * row, end = (c + 1) * r.chunk;
    const int32_t tile = c < r.whole ? at.n[0] + place * r.whole + c : at.n[1] + place;
    const bool fits = !cut || partial + int64_t{r.chunks} * n <= p.most_partial;
    if (tile < p.most_tiles)
      p.tiles[tile] = {
          b, row, fits ? n : 0, c * r.chunk, c < r.whole ? end : r.keys, 0, cut ? int64_t{partial} + c * n : -1};
    if (cut && c == 0 && at.n[2] + t < p.most_cuts) p.cuts[at.n[2] + t] = {b, row, fits ? n : 0, r.chunks, partial};
  }
}
/// The pages of request b that its length needs, by a warp.
FI_GLOBAL_FN void copy_pages(const AttentionPlanParams& p, int32_t b) {
  const int32_t pages = ceil_div(Request(p, b).keys, p.page_size);
  for (int32_t i = static_cast<int32_t>(lane()); i < pages; i += 32) {
    const AttentionInts& t = p.table;
    p.pages[int64_t{b} * p.width + i] = static_cast<int32_t>(
        t.type == DType::kI64 ? static_cast<const int64_t*>(t.data)[b * p.table_stride + i * t.stride]
                              : static_cast<const int32_t*>(t.data)[b * p.table_stride + i * t.stride]);
  }
}

}  // namespace attn_plan

template <AttentionPlanConfig C>
FI_GLOBAL_FN void attention_plan(const AttentionPlanParams& p) {
  using namespace attn_plan;
  depend_wait();
  Places* places = reinterpret_cast<Places*>(shared());
  Places* of_warps = places + C.threads;
  const int32_t thread = static_cast<int32_t>(thread_x());
  Places mine{}, all;
  for (int32_t b = thread; b < p.requests; b += C.threads) {
    const Request r(p, b);
    const Places n = r.counts(p);
#pragma unroll
    for (int i = 0; i < 4; ++i) mine.n[i] += n.n[i];
    p.kv_indptr[b] = b * p.request_stride, p.kv_len[b] = r.keys;
    if (p.qo_indptr) p.qo_indptr[b] = first_row(p, b);
    if (p.mask_indptr) p.mask_indptr[b] = b * p.mask_stride;
  }
  if (thread == 0) {
    p.kv_indptr[p.requests] = p.requests * p.request_stride;
    if (p.qo_indptr) p.qo_indptr[p.requests] = first_row(p, p.requests);
  }
  for (int32_t h = thread; h < p.num_kv_heads; h += C.threads) {
    if (p.scales) p.scales[h] = (p.scale[0] ? *p.scale[0] : 1.0f) * (p.scale[1] ? *p.scale[1] : 1.0f);
    if (p.v_scales) p.v_scales[h] = *p.v_scale;
  }
  if (p.table.data)
    for (int32_t b = static_cast<int32_t>(warp()); b < p.requests; b += C.threads / 32) copy_pages(p, b);
  scan_block<C.threads>(mine, of_warps, all);
  const Places sums = all;
  Places done{{0, sums.n[0], 0, 0}};  // rests behind all whole chunks
  for (int32_t first = 0; first < p.requests; first += C.threads) {
    const int32_t b = first + thread, count = p.requests - first < C.threads ? p.requests - first : C.threads;
    Places n{};
    if (b < p.requests) n = Request(p, b).counts(p);
    Places at = scan_block<C.threads>(n, of_warps, all);
#pragma unroll
    for (int i = 0; i < 4; ++i) at.n[i] += done.n[i], done.n[i] += all.n[i];
    places[thread] = at;
    sync_threads();
    for (int32_t i = static_cast<int32_t>(warp()); i < count; i += C.threads / 32)
      write_request(p, first + i, places[i]);
    sync_threads();
  }
  for (int32_t i = sums.n[0] + sums.n[1] + thread; i < p.most_tiles; i += C.threads) p.tiles[i] = {};
  for (int32_t i = sums.n[2] + thread; i < p.most_cuts; i += C.threads) p.cuts[i] = {};
  depend_launch();
}

/// A thread writes one byte after another, a grid's width apart.
template <AttentionMaskConfig C>
FI_GLOBAL_FN void attention_mask(const AttentionMaskParams& p) {
  depend_wait();
  const uint32_t b = block_y();
  const int32_t first = p.qo_indptr[b], rows = p.qo_indptr[b + 1] - first, keys = p.kv_len[b], before = keys - rows;
  const int64_t given = p.words ? 0 : attn_plan::int_at(p.before, b) - p.rank;
  const int64_t bits = int64_t{rows} * keys, bytes = ceil_div(bits, int64_t{8});
  const auto sees = [&](int32_t row, int32_t key) {
    if (!p.words) return given + row >= 0 && key <= (given + row) / p.world;
    const int32_t j = key - before;
    return j < 0 || (j < p.width * 16 && p.words[(first + row) * p.width + j / 16] >> (j % 16) & 1);
  };
  for (int64_t i = block_x() * int64_t{C.threads} + thread_x(); i < bytes && i < p.stride;
       i += int64_t{C.threads} * blocks_x()) {
    int32_t row = static_cast<int32_t>(i * 8 / keys), key = static_cast<int32_t>(i * 8 - int64_t{row} * keys);
    uint32_t byte = 0;
    for (uint32_t e = 0; e < 8 && row < rows; ++e) {
      byte |= static_cast<uint32_t>(sees(row, key)) << e;
      if (++key == keys) key = 0, ++row;
    }
    p.mask[b * p.stride + i] = static_cast<uint8_t>(byte);
  }
  depend_launch();
}

}  // namespace flashinfer::cu
