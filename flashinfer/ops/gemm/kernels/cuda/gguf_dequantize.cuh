// SPDX-License-Identifier: Apache-2.0
// GGUF blocks to floats on a GPU. Blocks have odd sizes (18 to 210 bytes), so a span of a row, whose length is a
// multiple of 32 bytes, is copied to shared memory in pieces of 16; a lane takes two bytes of quants at a time, so that
// neighbours read neighbours and write pairs that adjoin.
#pragma once
#include "flashinfer/kernels/cuda/cluster.h"
#include "flashinfer/kernels/cuda/convert.h"
#include "flashinfer/kernels/cuda/memory.h"
#include "flashinfer/ops/gemm/kernels/cuda/gguf.cuh"
#include "flashinfer/ops/gemm/kernels/gguf_cuda_params.h"

namespace flashinfer::cu {

/// Bytes [0, n) of `from` to shared memory, whose address is the same modulo 16.
template <int kThreads>
FI_GLOBAL_FN void stage_bytes(const uint8_t* from, uint8_t* to, uint32_t n) {
  uint32_t head = (16u - static_cast<uint32_t>(reinterpret_cast<uintptr_t>(from) & 15u)) & 15u;
  if (head > n) head = n;
  const uint32_t pieces = (n - head) / 16, tail = head + pieces * 16;
  for (uint32_t i = thread_x(); i < pieces; i += kThreads)
    store_shared(to + head + i * 16, load<16, Hint::kOnce>(from + head + i * 16));
  for (uint32_t i = thread_x(); i < head + (n - tail); i += kThreads) {
    const uint32_t at = i < head ? i : tail + i - head;
    to[at] = from[at];
  }
}

/// Elements [at, at + 2) of a block: scale * quant + minimum.
template <GgufCudaConfig C>
FI_GLOBAL_FN void store_values(void* to, int64_t at, int32_t first, int32_t second, const GgufScale& s) {
  using T = scalar_of_t<C.to>;
  T* const y = static_cast<T*>(to) + at;
  const Pack<T, 2> pair{{from_f32<T>(fmaf(static_cast<float>(first), s.scale, s.minimum)),
                         from_f32<T>(fmaf(static_cast<float>(second), s.scale, s.minimum))}};
  if constexpr (C.aligned != 0)
    store<Hint::kOnce>(y, pair);
  else
    y[0] = pair[0], y[1] = pair[1];
}

/// Two bytes as two numbers.
struct GgufTwo {
  uint32_t first, second;
};
FI_GLOBAL_FN GgufTwo gguf_two(uint32_t half) { return {half & 0xffu, half >> 8}; }

/// What lane `lane` of a block's gguf_lanes writes; `block` is in shared memory, its scales (K formats) are `scale`.
template <GgufCudaConfig C>
FI_GLOBAL_FN void gguf_values(const uint8_t* block, const GgufScale* scale, uint32_t lane, void* to, int64_t at) {
  constexpr GemmFormat F = C.from;
  constexpr int kWide = C.even;
  const auto two = [&](uint32_t byte) { return gguf_two(gguf_half<kWide>(block + byte)); };
  if constexpr (F == GemmFormat::kQ8_0) {
    const GgufTwo q = two(2 + 2 * lane);
    const auto number = [](uint32_t byte) { return static_cast<int32_t>(byte ^ 0x80u) - 128; };
    store_values<C>(to, at + 2 * lane, number(q.first), number(q.second),
                    gguf_scale<F, kWide>(reinterpret_cast<const char*>(block), 0));
  } else if constexpr (F == GemmFormat::kQ4_0 || F == GemmFormat::kQ4_1) {
    constexpr int32_t kLess = F == GemmFormat::kQ4_0 ? 8 : 0;
    const GgufTwo q = two((F == GemmFormat::kQ4_0 ? 2 : 4) + 2 * lane);
    const GgufScale s = gguf_scale<F, kWide>(reinterpret_cast<const char*>(block), 0);
#pragma unroll
    for (uint32_t high = 0; high < 2; ++high)
      store_values<C>(to, at + 16 * high + 2 * lane, static_cast<int32_t>(q.first >> (4 * high) & 15u) - kLess,
                      static_cast<int32_t>(q.second >> (4 * high) & 15u) - kLess, s);
  } else if constexpr (F == GemmFormat::kQ4_K) {
    const GgufTwo q = two(16 + 2 * lane);
#pragma unroll
    for (uint32_t high = 0; high < 2; ++high)
      store_values<C>(to, at + lane / 16 * 64 + 32 * high + 2 * (lane % 16),
                      static_cast<int32_t>(q.first >> (4 * high) & 15u),
                      static_cast<int32_t>(q.second >> (4 * high) & 15u), scale[lane / 16 * 2 + high]);
  } else {
    const uint32_t half = lane / 16, i = 2 * (lane % 16);
    const GgufTwo low[2] = {two(64 * half + i), two(64 * half + 32 + i)}, top = two(128 + 32 * half + i);
#pragma unroll
    for (uint32_t quarter = 0; quarter < 4; ++quarter) {
      const auto number = [&](uint32_t byte, uint32_t high) {
        return static_cast<int32_t>((byte >> (quarter / 2 * 4) & 15u) | (high >> (2 * quarter) & 3u) << 4) - 32;
      };
      const GgufTwo& q = low[quarter % 2];
      const uint32_t e = 128 * half + 32 * quarter + i;
      store_values<C>(to, at + e, number(q.first, top.first), number(q.second, top.second), scale[e / 16]);
    }
  }
}

/// A block of threads: kGgufSpan elements of a row, one of the row's p.spans.
template <GgufCudaConfig C>
FI_GLOBAL_FN void gguf_dequantize(const GgufCudaParams& p) {
  constexpr GgufFormat kFormat = *gguf_format(C.from);
  constexpr uint32_t kBytes = kFormat.bytes, kElements = kFormat.elements, kBlocks = kGgufSpan / kElements,
                     kLanes = gguf_lanes(C.from), kScales = kElements == 256 ? 256 / kFormat.grid : 0;
  depend_wait();
  const uint32_t row = block_x() / p.spans, first = (block_x() - row * p.spans) * kBlocks, left = p.blocks - first,
                 count = left < kBlocks ? left : kBlocks;
  const uint8_t* const from = p.from + row * p.row + static_cast<int64_t>(first) * kBytes;
  auto* const scales = reinterpret_cast<GgufScale*>(shared());
  auto* const raw = reinterpret_cast<uint8_t*>(shared()) + kBlocks * kScales * sizeof(GgufScale) +
                    (reinterpret_cast<uintptr_t>(from) & 15u);
  stage_bytes<C.threads>(from, raw, count * kBytes);
  sync_threads();
  if constexpr (kScales != 0) {
    for (uint32_t i = thread_x(); i < count * kScales; i += C.threads) {
      const GgufScale s = gguf_scale<C.from, C.even>(reinterpret_cast<const char*>(raw), static_cast<int32_t>(i));
      store_shared(&scales[i].scale, Pack<float, 2>{{s.scale, s.minimum}});
    }
    sync_threads();
  }
  const int64_t at = row * p.to_row + static_cast<int64_t>(first) * kElements;
  for (uint32_t i = thread_x(); i < count * kLanes; i += C.threads) {
    const uint32_t b = i / kLanes;
    gguf_values<C>(raw + b * kBytes, scales + b * kScales, i % kLanes, p.to, at + b * kElements);
  }
  depend_launch();
}

}  // namespace flashinfer::cu
