// SPDX-License-Identifier: Apache-2.0
// Tiles of queries, keys and values in shared memory: their layout, and the copies from the tensors by cp.async. Rows
// are swizzled: ldmatrix reads 8 of them without bank conflicts. Where the keys of a tile lie is computed once a key,
// not by every thread that copies a piece of it (KeyRows): with page ids and a division for each piece, 81 % of a
// decode's instructions were addresses.
#pragma once
#include "flashinfer/core/int_math.h"
#include "flashinfer/kernels/cuda/async.h"
#include "flashinfer/kernels/cuda/mma.h"
#include "flashinfer/ops/attention/kernels/cuda/rows.cuh"

namespace flashinfer::cu::attn {

/// NVFP4: the offsets of the scales of a tile's keys in K, then in V. They lie behind the KeyOffsets of both tiles.
template <uint32_t kKeys>
FI_GLOBAL_FN int64_t* scale_offsets(KeyOffsets* of) {
  return &of[2 * kKeys].k;
}

/// Pieces of 16 bytes of a row in shared memory.
constexpr uint32_t pitch_of(int bytes) { return static_cast<uint32_t>(ceil_div(bytes, 128)) * 8; }
/// Steps of 16 elements of a row, in which products are computed; the end of the last one may be zeros.
constexpr uint32_t steps_of(int dim) { return static_cast<uint32_t>(ceil_div(dim, 16)); }

/// Outputs of a lane: blocks of 8 columns, of each of its warp's tiles of 16 rows.
template <AttentionCudaConfig C>
inline constexpr uint32_t kColumns = C.used_dim(C.dvo) / 8;
template <AttentionCudaConfig C>
using Outputs = Acc[C.row_tiles()][kColumns<C>];

template <int kTiles, int kBlocks>
FI_GLOBAL_FN void clear(Acc (&s)[kTiles][kBlocks]) {
#pragma unroll
  for (int r = 0; r < kTiles; ++r)
#pragma unroll
    for (int n = 0; n < kBlocks; ++n) s[r][n] = {};
}
/// The operand of 16 keys' weights, from two blocks of 8.
template <class T>
FI_GLOBAL_FN Frag4 weights_of(const Acc& x, const Acc& y) {
  return {{pack2<T>(x.r[0], x.r[1]), pack2<T>(x.r[2], x.r[3]), pack2<T>(y.r[0], y.r[1]), pack2<T>(y.r[2], y.r[3])}};
}

/// The weights of kBlocks blocks of 8 keys as operands of 16 keys. A tile's logits become its weights before those of
/// the next tile are changed: as f32 they would take twice the registers.
template <AttentionCudaConfig C, int kBlocks>
struct Weights {
  Frag4 a[C.row_tiles()][kBlocks / 2];
  template <class T>
  FI_GLOBAL_FN void set(uint32_t tile, const Acc (&s)[kBlocks]) {
#pragma unroll
    for (uint32_t n = 0; n < kBlocks; n += 2) {
      if constexpr (C.e4m3 == 2) {  // of 32 keys
        a[tile][n / 4].r[n / 2 % 2 * 2] = narrow_four<e4m3_t>(s[n].r[0], s[n].r[1], s[n + 1].r[0], s[n + 1].r[1]);
        a[tile][n / 4].r[n / 2 % 2 * 2 + 1] = narrow_four<e4m3_t>(s[n].r[2], s[n].r[3], s[n + 1].r[2], s[n + 1].r[3]);
      } else {
        a[tile][n / 2] = weights_of<T>(s[n], s[n + 1]);
      }
    }
  }
};

/// The steps of Q that stay in registers.
template <AttentionCudaConfig C>
struct HeldQueries {
  static_assert(C.held % 4 == 0 || C.held == C.used_dim(C.dqk) / (C.e4m3 != 0 ? 32 : 16));
  Frag4 a[C.held > 0 ? C.held : 1][C.row_tiles()];
  template <class Row>
  FI_GLOBAL_FN void load(const Row& q) {
#pragma unroll
    for (uint32_t step = 0; step < C.held; ++step)
#pragma unroll
      for (uint32_t r = 0; r < C.row_tiles(); ++r) a[step][r] = load_matrix4(q.at(16 * r, step / 4 * 8, step % 4));
  }
};

/// Calls f(row, piece) for the first kUsed of the kPitch pieces of kRows rows that this thread copies. Threads are
/// assigned to rows by the pitch, mostly a power of two, so that a thread keeps its column, and its rows are apart by a
/// constant; those beyond the row are idle. Eight copies at once: sixteen at D 256 spilled registers.
template <auto C, int kRows, uint32_t kPitch, uint32_t kUsed, int kAtOnce = 8, class F>
FI_GLOBAL_FN void own_pieces(F f) {
  constexpr uint32_t kAll = kRows * kPitch;
  if constexpr (C.threads % kPitch == 0) {
    const uint32_t first = thread_x() / kPitch, piece = thread_x() % kPitch;
#pragma unroll kAtOnce
    for (uint32_t row = 0; row < kRows; row += C.threads / kPitch)
      if ((kAll % C.threads == 0 || first + row < kRows) && piece < kUsed) f(first + row, piece);
  } else {
#pragma unroll kAtOnce
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
      int64_t v_id = id;  // loaded here where V has a table of its own: a register more for it spills at D 128
      if (p_.v_indices && key < end_) v_id = p_.v_indices[s_.kv_first + page_];
      const KeyOffsets at{(id * p_.k_stride_page + row * p_.k_stride_n) * kSize,
                          (v_id * p_.v_stride_page + row * p_.v_stride_n) * kSize};
      const bool there = key < end_;
      store_shared(&to[thread_x()].k, Pack<int64_t, 2>{{there ? at.k : 0, there ? at.v : 0}});
      if constexpr (kScales) {
        int64_t* sf = scale_offsets<kKeys>(to) + thread_x();
        *sf = there ? id * p_.k_sf_stride_page + row * p_.k_sf_stride_n : 0;
        sf[kKeys] = there ? v_id * p_.v_sf_stride_page + row * p_.v_sf_stride_n : 0;
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
#if defined(__CUDACC_VER_MAJOR__) && __CUDACC_VER_MAJOR__ == 12 && __CUDACC_VER_MINOR__ < 9
  constexpr int kAtOnce = C.warps_k > 1 && !C.narrow() ? 4 : 8;  // with eight it spills a register at D 128 on sm_80
#else
  constexpr int kAtOnce = 8;  // with four NVRTC 13.5 spills ten at D 128
#endif
  const auto each = [](const auto& f) { own_pieces<C, C.keys(), kPitch * 16 / kCopy, kUsed, kAtOnce>(f); };
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
  sync_warp();  // the user's code may leave lanes apart
}

}  // namespace flashinfer::cu::attn
