// SPDX-License-Identifier: Apache-2.0
// The work list of a batch from the lengths of its requests, on a GPU: the tiles of attention_tiles()
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
  const int64_t x = v.type == DType::kI64   ? static_cast<const int64_t*>(v.data)[i]
                    : v.type == DType::kU32 ? int64_t{static_cast<const uint32_t*>(v.data)[i]}
                                            : int64_t{static_cast<const int32_t*>(v.data)[i]};
  return v.unit == 1 ? x : x / v.unit;
}
FI_GLOBAL_FN int32_t clamp_to(int64_t x, int32_t most) { return x < 0 ? 0 : x < most ? static_cast<int32_t>(x) : most; }
FI_GLOBAL_FN int32_t first_row(const AttentionPlanParams& p, int32_t b) {
  return p.first_rows.data ? clamp_to(int_at(p.first_rows, b), p.tokens) : b * (p.rows / p.group);
}

FI_GLOBAL_FN int32_t first_key(const AttentionPlanParams& p, int32_t b) {
  return p.first_keys.data ? clamp_to(int_at(p.first_keys, b), p.kv_rows) : b * p.keys;
}
FI_GLOBAL_FN int32_t keys_of(const AttentionPlanParams& p, int32_t b) {
  int32_t most = p.keys;
  if (p.ragged) most = clamp_to(first_key(p, b + 1) - first_key(p, b), most);
  return p.seq_lens.data ? clamp_to(int_at(p.seq_lens, b), most) : most;
}

/// A request's rows and keys, cut. One of the other kind has no rows.
struct Request {
  int32_t rows, keys, chunk, whole, chunks;  // whole: chunks of full size
  FI_GLOBAL_FN Request(const AttentionPlanParams& p, int32_t b) {
    rows = p.rows;
    if (p.first_rows.data) rows = clamp_to(int64_t{first_row(p, b + 1) - first_row(p, b)} * p.group, p.rows);
    keys = keys_of(p, b);
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

/// The tiles of request b, by a warp.
FI_GLOBAL_FN void write_request(const AttentionPlanParams& p, int32_t b, const Places& at) {
  const Request r(p, b);
  const int32_t row_tiles = ceil_div(r.rows, p.tile_rows);
  const bool cut = r.chunks > 1;
  for (int32_t i = static_cast<int32_t>(lane()); i < row_tiles * r.chunks; i += 32) {
    const int32_t t = i / r.chunks, c = i % r.chunks, row = t * p.tile_rows, place = row_tiles - 1 - t;
    const int32_t n = r.rows - row < p.tile_rows ? r.rows - row : p.tile_rows;
    const int32_t partial = at.n[3] + r.chunks * row, end = (c + 1) * r.chunk;
    const int32_t tile = c < r.whole ? at.n[0] + place * r.whole + c : at.n[1] + place;
    const int32_t counter = at.n[2] + t;
    const bool fits = !cut || (partial + int64_t{r.chunks} * n <= p.most_partial && counter < p.most_cuts);
    if (tile < p.most_tiles)
      p.tiles[tile] = {b, row,      fits ? n : 0, c * r.chunk,       c < r.whole ? end : r.keys,
                       c, r.chunks, counter,      cut ? partial : -1};
  }
}
/// The pages of request b that its length needs, by a warp.
FI_GLOBAL_FN void copy_pages(const AttentionPlanParams& p, int32_t b) {
  const int32_t pages = ceil_div(Request(p, b).keys, p.page_size);
  const auto page = [&](const void* table, int32_t i) {
    const int64_t at = b * p.table_stride + i * p.table.stride;
    return p.table.type == DType::kI64 ? static_cast<int32_t>(static_cast<const int64_t*>(table)[at])
                                       : static_cast<const int32_t*>(table)[at];
  };
  for (int32_t i = static_cast<int32_t>(lane()); i < pages; i += 32) {
    const int64_t to = int64_t{b} * p.width + i;
    p.pages[to] = page(p.table.data, i);
    if (p.v_table) p.pages[int64_t{p.requests} * p.width + to] = page(p.v_table, i);
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
    p.kv_indptr[b] = p.ragged ? first_key(p, b) : b * p.request_stride, p.kv_len[b] = r.keys;
    if (p.qo_indptr) p.qo_indptr[b] = first_row(p, b);
    if (p.mask_indptr) p.mask_indptr[b] = b * p.mask_stride;
  }
  if (thread == 0) {
    p.kv_indptr[p.requests] = p.ragged ? first_key(p, p.requests) : p.requests * p.request_stride;
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
  for (int32_t i = thread; i < p.most_cuts * p.num_kv_heads; i += C.threads) p.counters[i] = 0;
  depend_launch();
}

/// A thread writes one byte after another, a grid's width apart.
template <AttentionMaskConfig C>
FI_GLOBAL_FN void attention_mask(const AttentionMaskParams& p) {
  using namespace attn_plan;
  depend_wait();
  const uint32_t b = block_y();
  const int32_t first = p.qo_indptr[b], rows = p.qo_indptr[b + 1] - first, keys = p.kv_len[b], before = keys - rows;
  const int64_t given = p.before.data ? int_at(p.before, b) - p.rank : 0;
  const int64_t bits = int64_t{rows} * keys, bytes = ceil_div(bits, int64_t{8});
  uint8_t* mask = p.mask + (p.mask_indptr ? p.mask_indptr[b] : b * p.stride);
  // Keys of a row without words: [begin, end) and its span.
  struct Seen {
    int32_t begin = 0, end = 0, span_begin = 0, span_end = 0;
  };
  const auto seen_by = [&](int32_t row) {
    Seen s;
    if (p.before.data) {
      s.end = given + row < 0 ? 0 : clamp_to((given + row) / p.world + 1, keys);
    } else if (p.spans.data) {
      const int64_t position = before + row, at = first + row;
      AttentionInts last = p.spans;
      last.data = static_cast<const char*>(p.spans.data) + p.span_stride * (p.spans.type == DType::kI64 ? 8 : 4);
      s.end = clamp_to(position + 1, keys), s.span_end = clamp_to(int_at(last, at) + 1, keys);
      if (p.causal_window >= 0) s.begin = clamp_to(position - p.causal_window, keys);
      s.span_begin = clamp_to(int_at(p.spans, at), keys);
      if (p.span_window > 0) s.span_begin = Max{}(s.span_begin, clamp_to(position - p.span_window + 1, keys));
    }
    return s;
  };
  const auto sees = [&](const Seen& s, int32_t row, int32_t key) {
    if (!p.words) return (key >= s.begin && key < s.end) || (key >= s.span_begin && key < s.span_end);
    const int32_t j = key - before;
    return j < 0 || (j < p.width * 16 && p.words[(first + row) * p.width + j / 16] >> (j % 16) & 1);
  };
  for (int64_t i = block_x() * int64_t{C.threads} + thread_x(); i < bytes && i < p.stride;
       i += int64_t{C.threads} * blocks_x()) {
    int32_t row = static_cast<int32_t>(i * 8 / keys), key = static_cast<int32_t>(i * 8 - int64_t{row} * keys);
    Seen s = seen_by(row);
    uint32_t byte = 0;
    for (uint32_t e = 0; e < 8 && row < rows; ++e) {
      byte |= static_cast<uint32_t>(sees(s, row, key)) << e;
      if (++key < keys) continue;
      key = 0;
      if (++row < rows) s = seen_by(row);
    }
    mask[i] = static_cast<uint8_t>(byte);
  }
  depend_launch();
}

/// The LSE of each request's rows at places of its own; behind its last row -inf. A thread writes one head of a place.
template <AttentionPadLseConfig C>
FI_GLOBAL_FN void attention_pad_lse(const AttentionPadLseParams& p) {
  depend_wait();
  const int32_t b = static_cast<int32_t>(block_x()),
                i = static_cast<int32_t>(block_y() * static_cast<uint32_t>(C.threads) + thread_x());
  if (i < p.places * p.heads) {
    const int32_t place = i / p.heads, head = i - place * p.heads;
    const auto first = [&](int32_t r) {
      return p.first_rows.data ? attn_plan::clamp_to(attn_plan::int_at(p.first_rows, r), p.rows) : r * p.rows;
    };
    const int32_t begin = first(b), end = first(b + 1);
    p.to[b * p.stride_b + place * p.stride_n + head * p.stride_h] =
        begin + place < end ? p.from[(int64_t{begin} + place) * p.heads + head] : -kInf;
  }
  depend_launch();
}

}  // namespace flashinfer::cu
