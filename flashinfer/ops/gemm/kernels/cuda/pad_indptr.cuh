// SPDX-License-Identifier: Apache-2.0
// Offsets of groups of rows, each rounded up to a multiple of 4 rows, and the new places of the rows, on a GPU. A block
// takes a group and adds up the groups in front of it.
#pragma once
#include "flashinfer/core/int_math.h"
#include "flashinfer/kernels/cuda/cluster.h"
#include "flashinfer/kernels/cuda/page_table.h"
#include "flashinfer/kernels/cuda/warp.h"
#include "flashinfer/ops/gemm/kernels/pad_indptr_params.h"

namespace flashinfer::cu {

template <int kWide>
struct PadIndex {
  using type = int32_t;
};
template <>
struct PadIndex<1> {
  using type = int64_t;
};

/// Groups of negative length are empty, and places of rows that do not exist are not written: the host has not looked
/// at the offsets.
template <PadIndptrConfig C>
FI_GLOBAL_FN void pad_indptr(const PadIndptrParams& p) {
  using Index = typename PadIndex<C.wide>::type;
  depend_wait();
  const uint32_t group = block_x();
  const auto begin_of = [&](uint32_t g) { return strided_index(p.from, g); };
  const auto padded = [&](uint32_t g) {
    const int64_t n = begin_of(g + 1) - begin_of(g);
    return n > 0 ? static_cast<int32_t>(round_up(n, int64_t{4})) : 0;
  };
  int32_t before = 0;
  for (uint32_t g = thread_x(); g < group; g += C.threads) before += padded(g);
  before = block_reduce<C.threads>(before, Sum{}, reinterpret_cast<int32_t*>(shared()));
  Index *const to = static_cast<Index*>(p.to), *const place = static_cast<Index*>(p.place);
  if (thread_x() == 0) to[group * p.to_stride] = before;
  if (group < p.groups) {
    if (thread_x() == 0 && group + 1 == p.groups) to[p.groups * p.to_stride] = before + padded(group);
    const int64_t begin = begin_of(group), end = begin_of(group + 1);
    for (int64_t r = begin + thread_x(); r < end; r += C.threads)
      if (r >= 0 && r < p.rows) place[r * p.place_stride] = static_cast<Index>(before + (r - begin));
  }
  depend_launch();
}

}  // namespace flashinfer::cu
