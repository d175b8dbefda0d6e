// SPDX-License-Identifier: Apache-2.0
// NVFP4 rows on a GPU, to and from caches in pages: kernels/cpu/nvfp4.h, bit for bit. A warp takes 32 blocks of 16 that
// follow each other in a token's heads (blockIdx.y: K or V).
#pragma once
#include "flashinfer/core/int_math.h"
#include "flashinfer/kernels/common/nvfp4_cuda_params.h"
#include "flashinfer/kernels/cuda/block_quantize.h"
#include "flashinfer/kernels/cuda/cluster.h"
#include "flashinfer/kernels/cuda/factor.h"
#include "flashinfer/kernels/cuda/page_table.h"

namespace flashinfer::cu {

FI_GLOBAL_FN PageEntry entry_of_slot(int64_t slot, int64_t page_size) {
  if (page_size == TokenRows::kOnePage) return {0, slot};
  if (slot >> 31 == 0 && page_size >> 31 == 0) {  // a 64-bit division is a call of some hundred instructions
    const uint32_t s = static_cast<uint32_t>(slot), n = static_cast<uint32_t>(page_size);
    return {s / n, s % n};
  }
  return {slot / page_size, slot % page_size};
}
/// Of the cache.
FI_GLOBAL_FN PageEntry token_entry(const TokenPlaces& p, int64_t token, int64_t page_size) {
  if (p.kind == TokenPlace::kPages) return page_entry(p.pages, token);
  if (p.kind == TokenPlace::kSlots) {
    const int64_t slot = strided_index(p.slots, token);
    if (slot < 0 || slot >= p.pool) return {-1, 0};
    return entry_of_slot(slot, page_size);
  }
  if (p.kind == TokenPlace::kTable) {
    const uint32_t length = static_cast<uint32_t>(p.length), request = static_cast<uint32_t>(token) / length,
                   position = static_cast<uint32_t>(token) % length, size = static_cast<uint32_t>(p.pages.page_size);
    if (position >= strided_index(p.slots, request)) return {-1, 0};
    const int64_t page = strided_index(p.pages.kv_indices, request * p.table_stride + position / size);
    return {page < p.pages.pages ? page : -1, position % size};
  }
  return entry_of_slot(token, page_size);
}
template <class T>
FI_GLOBAL_FN T* entry_row(const TokenRows& r, const PageEntry& e, uint32_t head) {
  return static_cast<T*>(r.data) + e.page * r.stride_page + e.entry * r.stride_n + head * r.stride_h;
}

/// Block b of the unit: its token's row, head and column.
struct Nvfp4Cell {
  int64_t token;
  uint32_t head, column;
  bool in_range;
  PageEntry entry;
};
FI_GLOBAL_FN Nvfp4Cell nvfp4_cell(const Nvfp4CudaParams& p, const Nvfp4CudaTensor& x, uint32_t columns, uint32_t flat) {
  const uint32_t row = flat / columns, token = row / x.heads;
  Nvfp4Cell c{token, row - token * x.heads, flat - row * columns, token < p.tokens, {-1, 0}};
  if (c.in_range) c.entry = token_entry(p.places, token, x.data.page_size);
  c.in_range = c.entry.page >= 0;
  return c;
}

/// Eight elements of 16 bits a lane.
template <Nvfp4CudaConfig C>
FI_GLOBAL_FN void nvfp4_cast(const Nvfp4CudaParams& p, const Nvfp4CudaTensor& x) {
  using T = scalar_of_t<C.dtype>;
  const uint32_t pieces = ceil_div(x.dim, 8u), i = block_x() * C.threads + thread_x(), token = i / pieces;
  if (token >= p.tokens) return;
  const PageEntry e = token_entry(p.places, token, x.data.page_size);
  if (e.page < 0) return;
  const uint32_t at = (i - token * pieces) * 8;
  const float factor = 1.0f / factor_at(x.global, 0, 0);
  const T* const from = static_cast<const T*>(x.plain.data) + static_cast<int64_t>(token) * x.plain.stride_n + at;
  uint8_t* const to = entry_row<uint8_t>(x.data, e, 0) + at;
  float v[8];
#pragma unroll
  for (int k = 0; k < 8; ++k) v[k] = at + k < x.dim ? mul_rn(to_f32(from[k]), factor) : 0.0f;
  uint32_t words[2];
  narrow<e4m3_t>(v, words);
#pragma unroll
  for (int k = 0; k < 8; ++k)
    if (at + k < x.dim) to[k] = static_cast<uint8_t>(words[k / 4] >> (8 * (k % 4)));
}

/// A block of 16: its elements, codes and scale. x null: none.
template <class T>
struct Nvfp4Block {
  const T* x;
  uint8_t *codes, *scale;
};
/// The 32 blocks of a warp; place(i): block i. A lane finds one of them, with its divisions and page, and asks others
/// for those of its pieces.
template <class T, bool kAligned, class Place>
FI_GLOBAL_FN void nvfp4_quantize_blocks(float global, Place place) {
  using Steps = BlockSteps<16, sizeof(T)>;
  constexpr int N = Steps::kElements;
  const Nvfp4Block<T> own = place(lane());
  uint8_t* codes[Steps::kSteps];
  Pack<T, N> piece[Steps::kSteps];
#pragma unroll
  for (int s = 0; s < Steps::kSteps; ++s) {
    const T* const x = shuffle_address(own.x, Steps::block(s));
    codes[s] = shuffle_address(own.codes, Steps::block(s));
    piece[s] = load_block_piece<kAligned, N>(x != nullptr, in_global(x) + Steps::element());
  }
  const float reciprocal = 1.0f / mul_rn(6.0f, global);
  const float to_scale = reciprocal < kFltMax ? reciprocal : kFltMax;
  LaneScales<Steps> bytes;
#pragma unroll
  for (int s = 0; s < Steps::kSteps; ++s) {
    float v[N];
#pragma unroll
    for (int i = 0; i < N; ++i) v[i] = to_f32(piece[s][i]);
    const BlockScale scale = block_scale<false, false>(block_magnitude<Steps::kSteps>(v), to_scale, global);
    uint32_t words[1];
    block_codes<false>(v, scale, words);
    if (codes[s]) store_codes<kAligned, N / 2>(in_global(codes[s]) + Steps::element() / 2, words);
    bytes.set(s, scale.byte);
  }
  const uint32_t byte = bytes.of_lane();
  if (own.x) *in_global(own.scale) = static_cast<uint8_t>(byte);
}
template <Nvfp4CudaConfig C>
FI_GLOBAL_FN void nvfp4_quantize_rows(const Nvfp4CudaParams& p, const Nvfp4CudaTensor& x) {
  using T = scalar_of_t<C.dtype>;
  const uint32_t columns = x.dim / 16, first = (block_x() * (C.threads / 32) + warp()) * 32;
  if (first >= p.tokens * x.heads * columns) return;  // whole warps
  nvfp4_quantize_blocks<T, C.aligned>(factor_at(x.global, 0, 0), [&](uint32_t i) {
    const Nvfp4Cell c = nvfp4_cell(p, x, columns, first + i);
    if (!c.in_range) return Nvfp4Block<T>{};
    return Nvfp4Block<T>{
        static_cast<const T*>(x.plain.data) + c.token * x.plain.stride_n + c.head * x.plain.stride_h + c.column * 16,
        entry_row<uint8_t>(x.data, c.entry, c.head) + c.column * 8,
        entry_row<uint8_t>(x.scale, c.entry, c.head) + c.column};
  });
}
template <Nvfp4CudaConfig C>
FI_GLOBAL_FN void nvfp4_quantize(const Nvfp4CudaParams& p) {
  depend_wait();
  const Nvfp4CudaTensor& x = p.tensor[block_y()];
  if (x.dim != 0) {
    if (x.fp8)
      nvfp4_cast<C>(p, x);
    else
      nvfp4_quantize_rows<C>(p, x);
  }
  depend_launch();
}

/// element = rn((e2m1 * scale) * global), then rounded to the type; the first product is exact.
template <Nvfp4CudaConfig C>
FI_GLOBAL_FN void nvfp4_dequantize(const Nvfp4CudaParams& p) {
  using T = scalar_of_t<C.dtype>;
  using Steps = BlockSteps<16, sizeof(T)>;
  constexpr int N = Steps::kElements;
  depend_wait();
  const Nvfp4CudaTensor& x = p.tensor[block_y()];
  const uint32_t columns = x.dim / 16, first = (block_x() * (C.threads / 32) + warp()) * 32;
  if (x.dim != 0 && first < p.tokens * x.heads * columns) {  // whole warps
    const Nvfp4Cell own = nvfp4_cell(p, x, columns, first + lane());
    const uint8_t* block = nullptr;  // its codes
    T* result = nullptr;
    float scale = 0.0f;
    if (own.in_range) {
      scale = e4m3_value(entry_row<const uint8_t>(x.scale, own.entry, own.head)[own.column]);
      block = entry_row<const uint8_t>(x.data, own.entry, own.head) + own.column * 8;
      result = entry_row<T>(x.plain, entry_of_slot(own.token, x.plain.page_size), own.head) + own.column * 16;
    }
    const float global = factor_at(x.global, 0, 0);
#pragma unroll
    for (int s = 0; s < Steps::kSteps; ++s) {
      const float of_block = shuffle(scale, Steps::block(s));
      const uint8_t* const codes = in_global(shuffle_address(block, Steps::block(s))) + Steps::element() / 2;
      T* to = shuffle_address(result, Steps::block(s));
      if (to == nullptr) continue;
      to = in_global(to) + Steps::element();
      Pack<uint8_t, N / 2> packed;
      if constexpr (C.aligned) {
        packed = load<N / 2, Hint::kOnce>(codes);
      } else {
#pragma unroll
        for (int i = 0; i < N / 2; ++i) packed[i] = codes[i];
      }
      Pack<T, N> y;
#pragma unroll
      for (int i = 0; i < N; ++i)
        y[i] = from_f32<T>(mul_rn(mul_rn(e2m1_value(packed[i / 2] >> (4 * (i % 2))), of_block), global));
      if constexpr (C.aligned) {
        store(to, y);
      } else {
#pragma unroll
        for (int i = 0; i < N; ++i) to[i] = y[i];
      }
    }
  }
  depend_launch();
}

}  // namespace flashinfer::cu
