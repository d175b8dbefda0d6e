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

/// Offsets in bytes of a key's row in K and in V, without the head.
struct KeyOffsets {
  int64_t k, v;
};

/// NVFP4: the offsets of the scales of a tile's keys in K, then in V. They lie behind the KeyOffsets of both tiles.
template <uint32_t kKeys>
FI_GLOBAL_FN int64_t* scale_offsets(KeyOffsets* of) {
  return &of[2 * kKeys].k;
}

/// Pieces of 16 bytes of a row in shared memory.
constexpr uint32_t pitch_of(int bytes) { return static_cast<uint32_t>(ceil_div(bytes, 128)) * 8; }
/// Steps of 16 elements of a row, in which products are computed; the end of the last one may be zeros.
constexpr uint32_t steps_of(int dim) { return static_cast<uint32_t>(ceil_div(dim, 16)); }

/// Calls f(row, piece) for the first kUsed of the kPitch pieces of kRows rows that this thread copies. Threads are
/// assigned to rows by the pitch, mostly a power of two, so that a thread keeps its column, and its rows are apart by a
/// constant; those beyond the row are idle. Eight copies at once: sixteen at D 256 spilled registers.
template <auto C, int kRows, uint32_t kPitch, uint32_t kUsed, class F>
FI_GLOBAL_FN void own_pieces(F f) {
  constexpr uint32_t kAll = kRows * kPitch;
  if constexpr (C.threads % kPitch == 0) {
    const uint32_t first = thread_x() / kPitch, piece = thread_x() % kPitch;
#pragma unroll 8
    for (uint32_t row = 0; row < kRows; row += C.threads / kPitch)
      if ((kAll % C.threads == 0 || first + row < kRows) && piece < kUsed) f(first + row, piece);
  } else {
#pragma unroll 8
    for (uint32_t i = 0; i < kAll; i += C.threads) {
      const uint32_t row = (i + thread_x()) / kPitch, piece = (i + thread_x()) % kPitch;
      if ((kAll % C.threads == 0 || row < kRows) && piece < kUsed) f(row, piece);
    }
  }
}

/// The rows of a tile's kKeys keys of kSize bytes an element, one key a thread of the first warps. The page id of a
/// tile's key is loaded while the tile before it is computed, and its page follows from that of the key kKeys before it
/// without a division. kScales: keys have rows of scales, too (NVFP4).
template <uint32_t kKeys, int kSize, bool kScales = false>
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
    if (thread_x() < kKeys) {
      const int32_t key = first + static_cast<int32_t>(thread_x());
      const int64_t row = paged ? entry_ : s_.kv_first + key, id = paged ? id_ : 0;
      const KeyOffsets at{(id * p_.k_stride_page + row * p_.k_stride_n) * kSize,
                          (id * p_.v_stride_page + row * p_.v_stride_n) * kSize};
      const bool there = key < end_;
      store_shared(&to[thread_x()].k, Pack<int64_t, 2>{{there ? at.k : 0, there ? at.v : 0}});
      if constexpr (kScales) {
        int64_t* sf = scale_offsets<kKeys>(to) + thread_x();
        *sf = there ? id * p_.k_sf_stride_page + row * p_.k_sf_stride_n : 0;
        sf[kKeys] = there ? id * p_.v_sf_stride_page + row * p_.v_sf_stride_n : 0;
      }
    }
    if (!paged) return;
    page_ += pp_.tile_pages, entry_ += pp_.tile_entries;
    if (const uint32_t size = static_cast<uint32_t>(p_.page_size); entry_ >= size) entry_ -= size, ++page_;
    load(first + static_cast<int32_t>(kKeys));
  }

 private:
  FI_GLOBAL_FN void load(int32_t first) {
    if (thread_x() < kKeys && first + static_cast<int32_t>(thread_x()) < end_) id_ = p_.kv_indices[s_.kv_first + page_];
  }
  const AttentionCudaParams& pp_;
  const AttentionParams& p_;
  const Seq& s_;
  int32_t end_, id_ = 0;
  uint32_t page_ = 0, entry_ = 0;
};

/// The keys of a tile of one head, of which `count` are there; the others are zeros. `offsets` is every second number.
template <AttentionCudaConfig C, int kDim>
FI_GLOBAL_FN void copy_keys(char* to, const char* from, const int64_t* offsets, int32_t count) {
  constexpr uint32_t kRow = C.row_bytes(kDim), kCopy = C.copy, kPitch = pitch_of(kRow),
                     kUsed = C.used_bytes(kDim) / kCopy;
  constexpr bool kWhole = kRow == C.used_bytes(kDim);
  const auto copy = [&](uint32_t row, uint32_t piece, bool there) {
    const uint32_t at = piece * kCopy, left = kWhole ? kCopy : at < kRow ? kRow - at : 0;
    const char* x = from + (left ? at : 0) + load_shared<1>(offsets + 2 * row)[0];
    copy_async<kCopy>(to + swizzle<kPitch>(row, at / 16) * 16 + at % 16, x, !there ? 0 : left < kCopy ? left : kCopy);
  };
  const auto each = [](const auto& f) { own_pieces<C, C.keys(), kPitch * 16 / kCopy, kUsed>(f); };
  if (kWhole && count >= C.keys())  // without a predicate each
    each([&](uint32_t row, uint32_t piece) { copy(row, piece, true); });
  else
    each([&](uint32_t row, uint32_t piece) { copy(row, piece, static_cast<int32_t>(row) < count); });
}

/// Queries of 16 bits as they are.
template <AttentionCudaConfig C, class T>
FI_GLOBAL_FN void copy_queries(T* to, const AttentionParams& p, const Seq& s, const AttentionTile& t, uint32_t kv_head,
                               uint32_t group) {
  constexpr uint32_t kPitch = pitch_of(C.dqk * 2);
  own_pieces<C, C.rows(), kPitch, steps_of(C.dqk) * 2>([&](uint32_t row, uint32_t piece) {
    const bool in_range = row < static_cast<uint32_t>(t.rows) && piece < C.dqk / 8;
    const uint32_t packed = static_cast<uint32_t>(t.row_begin) + row;
    const int64_t token = s.q_first + packed / group, head = kv_head * group + packed % group;
    const T* q = static_cast<const T*>(p.q);
    copy_async<16>(to + swizzle<kPitch>(row, piece) * 8,
                   in_range ? q + token * p.q_stride_n + head * p.q_stride_h + piece * 8 : q, in_range ? 16u : 0u);
  });
}

/// Applies a variant's transform to elements, in the thread that copied them and waited for them; rounds to T again.
template <AttentionCudaConfig C, int kRows, class T, class F>
FI_GLOBAL_FN void transform_own(T* tile, F f) {
  constexpr uint32_t kPitch = pitch_of(C.dqk * 2);
  own_pieces<C, kRows, kPitch, steps_of(C.dqk) * 2>([&](uint32_t row, uint32_t piece) {
    if (piece >= C.dqk / 8) return;
    T* at = tile + swizzle<kPitch>(row, piece) * 8;
    Pack<T, 8> x = load_shared<8>(at);
#pragma unroll
    for (int e = 0; e < 8; ++e) x[e] = from_f32<T>(f(to_f32(x[e])));
    store_shared(at, x);
  });
}

}  // namespace flashinfer::cu::attn
