// SPDX-License-Identifier: Apache-2.0
// The work list of a decode from the lengths of its requests, on a GPU: the tiles and cuts of attention_tiles()
// (attention/cuda/launch.h), whose order is of no account to results. One block; whole chunks come before the shorter
// rest of each request, so that the last blocks of the attention kernel are short ones.
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

/// A request's keys, cut.
struct Request {
  int32_t keys, chunk, whole, chunks;  // whole: chunks of full size
  FI_GLOBAL_FN Request(const AttentionPlanParams& p, int32_t b) {
    const int32_t most = p.width * p.page_size, given = p.seq_lens[b];
    keys = given < 0 ? 0 : given < most ? given : most;
    chunk = static_cast<int32_t>(cuda::attention_chunk(p.rows, keys));
    whole = keys / chunk;
    chunks = whole * chunk < keys || keys == 0 ? whole + 1 : whole;
  }
  FI_GLOBAL_FN Places counts(const AttentionPlanParams& p) const {
    const int32_t row_tiles = ceil_div(p.rows, p.tile_rows);
    return {{row_tiles * whole, row_tiles * (chunks - whole), chunks > 1 ? row_tiles : 0,
             chunks > 1 ? chunks * p.rows : 0}};
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
  const int32_t row_tiles = ceil_div(p.rows, p.tile_rows);
  const bool cut = r.chunks > 1;
  for (int32_t i = static_cast<int32_t>(lane()); i < row_tiles * r.chunks; i += 32) {
    const int32_t t = i / r.chunks, c = i % r.chunks, row = t * p.tile_rows;
    const int32_t n = p.rows - row < p.tile_rows ? p.rows - row : p.tile_rows;
    const int32_t partial = at.n[3] + r.chunks * row, end = (c + 1) * r.chunk;
    p.tiles[c < r.whole ? at.n[0] + t * r.whole + c : at.n[1] + t] = {
        b, row, n, c * r.chunk, c < r.whole ? end : r.keys, 0, cut ? partial + c * n : -1};
    if (cut && c == 0) p.cuts[at.n[2] + t] = {b, row, n, r.chunks, partial};
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
    p.kv_indptr[b] = b * p.width, p.kv_len[b] = r.keys;
  }
  if (thread == 0) p.kv_indptr[p.requests] = p.requests * p.width;
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
  for (int32_t i = sums.n[0] + sums.n[1] + thread; i < p.most_tiles; i += C.threads) p.tiles[i].rows = 0;
  for (int32_t i = sums.n[2] + thread; i < p.most_cuts; i += C.threads) p.cuts[i].rows = 0;
  depend_launch();
}

}  // namespace flashinfer::cu
