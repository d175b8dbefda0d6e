// SPDX-License-Identifier: Apache-2.0
// Config and Params of top-k on a GPU. Freestanding.
#pragma once
#include <stdint.h>

#include "flashinfer/core/scalar.h"
#include "flashinfer/kernels/common/page_table.h"

namespace flashinfer {

struct TopKCudaConfig {
  DType dtype;
  unsigned char aligned;  // rows begin at multiples of 16 bytes
  short threads;          // of a block; a cluster of blocks processes a row

  /// Up to 128 registers a thread: left alone, ptxas took 40 for one target and spilled.
  constexpr int min_blocks() const { return 512 / threads; }

  static constexpr const char* kName = "flashinfer::TopKCudaConfig";
  template <class V>
  constexpr void visit(V&& v) const {
    v("dtype", dtype);
    v("aligned", aligned);
    v("threads", threads);
  }
  friend constexpr bool operator==(const TopKCudaConfig&, const TopKCudaConfig&) = default;
};

struct TopKCudaParams {
  const void* input;
  void* values;      // [rows, k] of input's type, or null; 0 where `output` is -1
  int64_t* indices;  // top_k: [rows, k]
  uint64_t* keys;    // sorted, k above kTopKSharedKeys: [rows, keys_size]
  int64_t rows, d, k;
  int64_t input_stride, values_stride, indices_stride;  // of rows, in elements
  int64_t keys_size;                                    // the power of two >= k
  int32_t sorted, large;                                // large: the larger index wins a tie
  // Transforms, as TopKParams: positions in the window [start, start + length) of a row; output null: top_k.
  int32_t* output;
  int32_t* raw;
  const int32_t* page_table;
  int64_t output_stride, raw_stride, table_stride, table_rows, table_columns, page_shift;
  StridedIndices lengths, starts, offsets, batch, table_starts;  // data null: absent
  int64_t next_n, ratio;  // length of row r: (lengths[r / next_n] - next_n + r % next_n + 1) / ratio
};
inline constexpr int64_t kTopKSharedKeys = 2048;
inline constexpr int kTopKBins = 2048;  // of a digit of 11 bits
inline constexpr int kTopKBlocks = 8;   // most blocks of a row: what every GPU with clusters can run
/// Bytes of shared memory: two arrays of bins or the keys, the warps' counters, three words, one of 8 bytes a block.
inline constexpr int kTopKShared = kTopKSharedKeys * 8 + 32 * 4 + 32 + kTopKBlocks * 8;
static_assert(2 * kTopKBins * 4 <= kTopKSharedKeys * 8);

}  // namespace flashinfer
