// SPDX-License-Identifier: Apache-2.0
// Tiles of queries, keys and values in shared memory: their layout, and the copies from the tensors by cp.async. Rows
// are swizzled: ldmatrix reads 8 of them without bank conflicts. Where the keys of a tile lie is computed once a key,
// not by every thread that copies a piece of it (KeyRows): with page ids and a division for each piece, 81 % of a
// decode's instructions were addresses.
#pragma once
#include "flashinfer/core/int_math.h"
#include "flashinfer/kernels/cuda/async.h"
#include "flashinfer/ops/attention/kernels/cuda/rows.cuh"

namespace flashinfer::cu::attn {

using flashinfer::attention::cuda_pitch;
using flashinfer::attention::kCudaKeys;

/// Offsets in bytes of a key's row in K and in V, without the head.
struct KeyOffsets {
  int64_t k, v;
};

/// Shared memory: Q, K, V; after the loop, f32 outputs of all warps in their place; then maxima and denominators; then
/// the offsets of two tiles of keys.
template <AttentionCudaConfig C>
struct Layout {
  static constexpr int kWarps = C.threads / 32, kRows = C.rows();
  static constexpr int kPitchQk = cuda_pitch(C.dqk), kPitchVo = cuda_pitch(C.dvo);  // elements of a row
  static constexpr int kQ = kRows * kPitchQk, kK = kCudaKeys * kPitchQk, kV = kCudaKeys * kPitchVo;
  static constexpr int kTiles = (kQ + kK + kV) * 2, kOutputs = kWarps * 16 * kPitchVo * 4;  // bytes
  static constexpr int kState = kTiles > kOutputs ? kTiles : kOutputs;
  static constexpr int kOffsets = kState + kWarps * 16 * 2 * 4;
  static constexpr int kBytes = kOffsets + 2 * kCudaKeys * 16;
};

/// 16-byte pieces of a row that products read; the last one may be beyond the row and is zeros.
constexpr uint32_t pieces_of(int dim) { return static_cast<uint32_t>(ceil_div(dim, 16)) * 2; }

/// Calls f(row, piece) for the pieces of kRows rows of kDim elements that this thread copies. Threads are assigned to
/// rows by the pitch, mostly a power of two, so that a thread keeps its column, and its rows are apart by a constant;
/// those beyond the row are idle. Eight copies at once: sixteen at D 256 spilled registers.
template <AttentionCudaConfig C, int kRows, int kDim, class F>
FI_GLOBAL_FN void own_pieces(F f) {
  constexpr uint32_t kPieces = cuda_pitch(kDim) / 8, kAll = kRows * kPieces;
  if constexpr (C.threads % kPieces == 0) {
    const uint32_t first = thread_x() / kPieces, piece = thread_x() % kPieces;
#pragma unroll 8
    for (uint32_t row = 0; row < kRows; row += C.threads / kPieces)
      if ((kAll % C.threads == 0 || first + row < kRows) && piece < pieces_of(kDim)) f(first + row, piece);
  } else {
#pragma unroll 8
    for (uint32_t i = 0; i < kAll; i += C.threads) {
      const uint32_t row = (i + thread_x()) / kPieces, piece = (i + thread_x()) % kPieces;
      if ((kAll % C.threads == 0 || row < kRows) && piece < pieces_of(kDim)) f(row, piece);
    }
  }
}

/// The rows of a tile's keys, one key a thread of the first two warps. The page id of a tile's key is loaded while the
/// tile before it is computed, and its page follows from that of the key 64 before it without a division.
class KeyRows {
 public:
  /// For the tiles from `first` on; keys from `end` on are not there.
  FI_GLOBAL_FN KeyRows(const AttentionCudaParams& pp, const AttentionParams& p, const Seq& s, int32_t first,
                       int32_t end)
      : pp_(pp), p_(p), s_(s), end_(end) {
    if (!p.kv_indices) return;
    const uint32_t size = static_cast<uint32_t>(p.page_size), key = static_cast<uint32_t>(first) + thread_x();
    page_ = key / size, entry_ = key % size;
    load(first);
  }
  /// Writes the offsets of the tile at `first` - those of a key that is not there are 0 - and loads the page id of this
  /// thread's key in the tile behind it.
  FI_GLOBAL_FN void store(KeyOffsets* to, int32_t first) {
    const bool paged = p_.kv_indices;
    if (thread_x() < kCudaKeys) {
      const int32_t key = first + static_cast<int32_t>(thread_x());
      const int64_t row = paged ? entry_ : s_.kv_first + key, id = paged ? id_ : 0;
      const KeyOffsets at{(id * p_.k_stride_page + row * p_.k_stride_n) * 2,
                          (id * p_.v_stride_page + row * p_.v_stride_n) * 2};
      const bool there = key < end_;
      store_shared(&to[thread_x()].k, Pack<int64_t, 2>{{there ? at.k : 0, there ? at.v : 0}});
    }
    if (!paged) return;
    page_ += pp_.tile_pages, entry_ += pp_.tile_entries;
    if (const uint32_t size = static_cast<uint32_t>(p_.page_size); entry_ >= size) entry_ -= size, ++page_;
    load(first + kCudaKeys);
  }

 private:
  FI_GLOBAL_FN void load(int32_t first) {
    if (thread_x() < kCudaKeys && first + static_cast<int32_t>(thread_x()) < end_)
      id_ = p_.kv_indices[s_.kv_first + page_];
  }
  const AttentionCudaParams& pp_;
  const AttentionParams& p_;
  const Seq& s_;
  int32_t end_, id_ = 0;
  uint32_t page_ = 0, entry_ = 0;
};

/// The keys of a tile of one head, of which `count` are there; the others are zeros. `offsets` is every second number.
template <AttentionCudaConfig C, int kDim, class T>
FI_GLOBAL_FN void copy_keys(T* to, const T* from, const int64_t* offsets, int32_t count) {
  const auto copy = [&](uint32_t row, uint32_t piece, uint32_t bytes) {
    const char* x = reinterpret_cast<const char*>(from + (piece < kDim / 8 ? piece * 8 : 0));
    copy_async<16>(to + swizzle<cuda_pitch(kDim) / 8>(row, piece) * 8, x + load_shared<1>(offsets + 2 * row)[0], bytes);
  };
  if (count >= kCudaKeys && kDim % 16 == 0)  // without a predicate each
    own_pieces<C, kCudaKeys, kDim>([&](uint32_t row, uint32_t piece) { copy(row, piece, 16); });
  else
    own_pieces<C, kCudaKeys, kDim>([&](uint32_t row, uint32_t piece) {
      copy(row, piece, static_cast<int32_t>(row) < count && piece < kDim / 8 ? 16 : 0);
    });
}

template <AttentionCudaConfig C, class T>
FI_GLOBAL_FN void copy_queries(T* to, const AttentionParams& p, const Seq& s, const AttentionTile& t, uint32_t kv_head,
                               uint32_t group) {
  own_pieces<C, C.rows(), C.dqk>([&](uint32_t row, uint32_t piece) {
    const bool in_range = row < static_cast<uint32_t>(t.rows) && piece < C.dqk / 8;
    const uint32_t packed = static_cast<uint32_t>(t.row_begin) + row;
    const int64_t token = s.q_first + packed / group, head = kv_head * group + packed % group;
    const T* q = static_cast<const T*>(p.q);
    copy_async<16>(to + swizzle<cuda_pitch(C.dqk) / 8>(row, piece) * 8,
                   in_range ? q + token * p.q_stride_n + head * p.q_stride_h + piece * 8 : q, in_range ? 16u : 0u);
  });
}

/// Applies a variant's transform to elements, in the thread that copied them and waited for them; rounds to T again.
template <AttentionCudaConfig C, int kRows, class T, class F>
FI_GLOBAL_FN void transform_own(T* tile, F f) {
  own_pieces<C, kRows, C.dqk>([&](uint32_t row, uint32_t piece) {
    if (piece >= C.dqk / 8) return;
    T* at = tile + swizzle<cuda_pitch(C.dqk) / 8>(row, piece) * 8;
    Pack<T, 8> x = load_shared<8>(at);
#pragma unroll
    for (int e = 0; e < 8; ++e) x[e] = from_f32<T>(f(to_f32(x[e])));
    store_shared(at, x);
  });
}

}  // namespace flashinfer::cu::attn
