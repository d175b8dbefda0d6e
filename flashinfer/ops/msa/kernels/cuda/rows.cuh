// SPDX-License-Identifier: Apache-2.0
// What a query row sees, where the keys of a block of 128 lie, and their way to shared memory or registers.
#pragma once
#include "flashinfer/core/int_math.h"
#include "flashinfer/kernels/common/scale_layout.h"
#include "flashinfer/kernels/cuda/async.h"
#include "flashinfer/kernels/cuda/cluster.h"
#include "flashinfer/kernels/cuda/halves.h"
#include "flashinfer/kernels/cuda/math.h"
#include "flashinfer/kernels/cuda/memory.h"
#include "flashinfer/kernels/cuda/mma.h"
#include "flashinfer/kernels/cuda/narrow.h"
#include "flashinfer/kernels/cuda/page_table.h"
#include "flashinfer/kernels/cuda/warp.h"
#include "flashinfer/ops/msa/kernels/cuda_params.h"

namespace flashinfer::cu::msa {

struct Row {
  int64_t request, first, visible, blocks;  // as MsaRow
};
FI_GLOBAL_FN Row row_of(const MsaCudaParams& p, int64_t r) {
  int64_t b = 0, begin = 0, rows = p.seqlen_q;
  if (p.cu_q.data) {
    int64_t high = p.requests;  // the last request that begins at r or before
    while (high - b > 1) {
      const int64_t mid = (b + high) / 2;
      if (strided_index(p.cu_q, mid) <= r)
        b = mid;
      else
        high = mid;
    }
    begin = strided_index(p.cu_q, b), rows = strided_index(p.cu_q, b + 1) - begin;
  } else {
    b = static_cast<uint32_t>(r) / static_cast<uint32_t>(p.seqlen_q), begin = b * p.seqlen_q;
  }
  if (r < begin || r >= begin + rows) return {b, 0, 0, 0};
  int64_t first = b, keys, room = p.columns * kMsaBlock;
  if (p.pages) {
    keys = strided_index(p.used, b);
  } else {
    first = strided_index(p.cu_k, b), keys = strided_index(p.cu_k, b + 1) - first;
    room = first < 0 || first > p.pool ? 0 : p.pool - first;
  }
  keys = keys < 0 ? 0 : keys < room ? keys : room;
  int64_t visible = keys;
  if (p.causal) {
    const int64_t offset = p.offsets.data ? strided_index(p.offsets, b) : p.has_offset ? p.offset : keys - rows;
    const int64_t seen = offset + (r - begin) + 1;
    visible = seen < 0 ? 0 : seen < keys ? seen : keys;
  }
  return {b, first, visible, ceil_div(keys, kMsaBlock)};
}

/// A block of 128 keys (or values) of a KV head: key j begins at data + j * step, its scale factors in row scale_row +
/// j
/// * scale_step. Keys from n on are not there.
template <class K>
struct Keys {
  const K* data;
  int64_t step;
  const uint8_t* scale;
  int64_t scale_row, scale_step;
  int n;
};
/// Keys that a row with `visible` keys sees in block `blk`, 0 to 128.
FI_GLOBAL_FN int seen_of(int64_t visible, int64_t blk) {
  const int64_t n = visible - blk * kMsaBlock;
  return static_cast<int>(n < 0 ? 0 : n < kMsaBlock ? n : kMsaBlock);
}
template <class K>
FI_GLOBAL_FN Keys<K> keys_of(const MsaCudaParams& p, const MsaTensor& t, const Row& row, int64_t blk, int64_t g,
                             int n) {
  const K* const data = static_cast<const K*>(t.data) + g * t.head;
  if (p.pages) {
    if (n == 0) return {data, 0, t.scale, 0, 0, 0};
    const int64_t page = p.pages[row.first * p.page_table_stride + blk];
    const bool there = page >= 0 && page < p.pool;
    return {data + (there ? page : 0) * t.page,  t.token, t.scale,
            (page * p.kv_heads + g) * kMsaBlock, 1,       there ? n : 0};
  }
  const int64_t key = row.first + blk * kMsaBlock;
  return {data + key * t.token, t.token, t.scale, key * p.kv_heads + g, p.kv_heads, n};
}
FI_GLOBAL_FN float scale_at(const uint8_t* scale, int64_t row, int64_t column) {
  e4m3_t s;
  s.bits = scale[sf_row_offset(SfLayout::k128x4, row, kMsaScales) + sf_column_offset(SfLayout::k128x4, column)];
  return to_f32(s);
}

/// Elements [4 i, 4 i + 4) of a row, in f32; any alignment.
template <class T>
FI_GLOBAL_FN void load_four(const T* row, const uint8_t* scale, int64_t scale_row, uint32_t i, float (&to)[4]) {
  if constexpr (kSame<T, uint8_t>) {
    const float s = scale_at(scale, scale_row, i / 4);
    const uint32_t low = row[2 * i], high = row[2 * i + 1];
    to[0] = e2m1_value(low) * s, to[1] = e2m1_value(low >> 4) * s;
    to[2] = e2m1_value(high) * s, to[3] = e2m1_value(high >> 4) * s;
  } else {
#pragma unroll
    for (uint32_t e = 0; e < 4; ++e) to[e] = to_f32(row[4 * i + e]);
  }
}

/// Elements [8 i, 8 i + 8) of an aligned row, as they are in memory.
template <class T>
struct Raw {
  Pack<uint32_t, sizeof(T) * 2> words;
  FI_GLOBAL_FN void load(const T* row, uint32_t i) {
    words = cu::load<sizeof(T) * 2, Hint::kOnce>(reinterpret_cast<const uint32_t*>(row + 8 * i));
  }
};
template <>
struct Raw<uint8_t> {
  Pack<uint32_t, 1> words;
  FI_GLOBAL_FN void load(const uint8_t* row, uint32_t i) {
    words = cu::load<1, Hint::kOnce>(reinterpret_cast<const uint32_t*>(row + 4 * i));
  }
};
/// Exactly, as M: f16 or bf16.
template <class M, class T>
FI_GLOBAL_FN Pack<uint32_t, 4> widen_raw(const Raw<T>& raw, float scale) {
  Pack<uint32_t, 4> y;
  if constexpr (kSame<T, M>) {
    y = raw.words;
  } else {
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      float x[2];
      if constexpr (kSame<T, uint8_t>) {
        const uint32_t byte = raw.words[0] >> 8 * i;
        x[0] = e2m1_value(byte) * scale, x[1] = e2m1_value(byte >> 4) * scale;
      } else {
        e4m3_t a[2];
        a[0].bits = static_cast<uint8_t>(raw.words[i / 2] >> 16 * (i % 2));
        a[1].bits = static_cast<uint8_t>(raw.words[i / 2] >> (16 * (i % 2) + 8));
        widen<2>(a, x);
      }
      y[i] = pair_of<M>(x[0], x[1]);
    }
  }
  return y;
}

/// Rows [first, first + 32) of a block, as M, to rows of 256 bytes in shared memory (pieces swizzled), by one warp;
/// what is not there becomes 0. Copies of the same type are asynchronous: the caller commits and waits.
template <class M, class K>
FI_GLOBAL_FN void fill_rows(char* to, const Keys<K>& keys, int first) {
  constexpr int kPieces = 32 * 16 / 32, kBatch = kSame<K, uint8_t> ? 4 : 8;  // of a lane; in flight
  const auto place = [&](int i, uint32_t& row, uint32_t& piece) {
    const uint32_t at = static_cast<uint32_t>(i) * 32 + lane();
    row = at / 16, piece = at % 16;
    return to + swizzle<16>(row, piece) * 16;
  };
  uint32_t row, piece;
  if constexpr (kSame<K, M>) {
#pragma unroll
    for (int i = 0; i < kPieces; ++i) {
      char* const at = place(i, row, piece);
      const int key = first + static_cast<int>(row);
      copy_async<16>(at, keys.data + key * keys.step + piece * 8, key < keys.n ? 16 : 0);
    }
  } else {
#pragma unroll
    for (int base = 0; base < kPieces; base += kBatch) {
      Raw<K> raw[kBatch];
      float scale[kBatch];
#pragma unroll
      for (int i = 0; i < kBatch; ++i) {
        place(base + i, row, piece);
        const int key = first + static_cast<int>(row);
        raw[i] = {}, scale[i] = 0.0f;
        if (key >= keys.n) continue;
        raw[i].load(keys.data + key * keys.step, piece);
        if constexpr (kSame<K, uint8_t>)
          scale[i] = scale_at(keys.scale, keys.scale_row + key * keys.scale_step, piece / 2);
      }
#pragma unroll
      for (int i = 0; i < kBatch; ++i) {
        char* const at = place(base + i, row, piece);
        store_shared(reinterpret_cast<uint32_t*>(at), widen_raw<M>(raw[i], scale[i]));
      }
    }
  }
}

/// The query rows of a block of threads: pair m is row first_row + m / heads, head first_head + m % heads.
struct Queries {
  int64_t first_row, first_head;
  uint32_t heads, pairs;  // pairs of them are there
};
/// 16 query rows, as M, in shared memory; what is not there becomes 0. The block waits.
template <class M, class Q>
FI_GLOBAL_FN void fill_queries(char* to, const MsaCudaParams& p, const Queries& q) {
  for (uint32_t at = thread_x(); at < 16 * 16; at += kMsaThreads) {
    const uint32_t m = at / 16, piece = at % 16;
    Raw<Q> raw{};
    float scale = 0.0f;
    if (m < q.pairs) {
      const int64_t r = q.first_row + m / q.heads, h = q.first_head + m % q.heads;
      raw.load(static_cast<const Q*>(p.q.data) + r * p.q.token + h * p.q.head, piece);
      if constexpr (kSame<Q, uint8_t>) scale = scale_at(p.q.scale, r * p.heads + h, piece / 2);
    }
    store_shared(reinterpret_cast<uint32_t*>(to + swizzle<16>(m, piece) * 16), widen_raw<M>(raw, scale));
  }
  sync_threads();
}
/// The products of 16 query rows and a warp's 32 keys, in shared memory: lane 4g + t has s[j].r: rows g and g + 8, keys
/// 8 j + 2 t and the next.
template <class M>
FI_GLOBAL_FN void multiply_keys(const Frag4 (&q)[8], const char* keys, Acc (&s)[4]) {
#pragma unroll
  for (int j = 0; j < 4; ++j) {
    s[j] = {};
#pragma unroll
    for (int k = 0; k < 8; k += 2) {
      const Frag4 f = load_matrix4(keys + swizzle<16>(8 * j + lane() % 8, 2 * k + lane() / 8) * 16);
      s[j] = mma<M>(q[k], {{f.r[0], f.r[1]}}, s[j]);
      s[j] = mma<M>(q[k + 1], {{f.r[2], f.r[3]}}, s[j]);
    }
  }
}
FI_GLOBAL_FN void load_queries(const char* from, Frag4 (&q)[8]) {
#pragma unroll
  for (int k = 0; k < 8; ++k) q[k] = load_matrix4(from + swizzle<16>(lane() % 16, 2 * k + lane() / 16) * 16);
}
template <MsaCudaConfig C>
struct Types {
  using Q = scalar_of_t<C.q>;
  using K = scalar_of_t<C.kv>;
  static constexpr bool kBf16 = C.q == DType::kBF16;
};
template <bool kBf16>
struct Multiplied {
  using M = f16_t;
};
template <>
struct Multiplied<true> {
  using M = bf16_t;
};

}  // namespace flashinfer::cu::msa
