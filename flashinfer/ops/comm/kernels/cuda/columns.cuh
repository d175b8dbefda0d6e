// SPDX-License-Identifier: Apache-2.0
// Columns of matrices between ranks. Over the ranks' memory a call is one cooperative launch: each rank's parts to its
// slot, a phase, the others' parts from theirs; slots and phases as in all_reduce.cuh. Else one kernel takes a matrix
// apart before its parts are sent, and one puts the result together.
#pragma once
#include "flashinfer/kernels/cuda/memory.h"
#include "flashinfer/ops/comm/kernels/columns_params.h"
#include "flashinfer/ops/comm/kernels/cuda/meet.cuh"

namespace flashinfer::cu {

/// Columns of a matrix, as a run of units.
template <int kUnit>
struct ColumnsOf {
  char* data;
  int64_t stride;
  uint32_t width;  // units
  FastDivisor by_width;
  FI_GLOBAL_FN ColumnsOf(const void* first, int64_t stride, int64_t width, FastDivisor by_width)
      : data(static_cast<char*>(const_cast<void*>(first))),
        stride(stride),
        width(static_cast<uint32_t>(width / kUnit)),
        by_width(by_width) {}
  FI_GLOBAL_FN char* operator()(uint32_t unit) const {
    const uint32_t row = by_width.divide(unit);
    return data + row * stride + int64_t{unit - row * width} * kUnit;
  }
};
template <int kUnit>
struct RunOf {
  char* data;  // of unit 0
  FI_GLOBAL_FN char* operator()(uint32_t unit) const { return data + int64_t{unit} * kUnit; }
};

/// Bytes [first, last) of a part, of which this block moves every blocks_x()-th tile; if that is not ok, NaN (of any
/// floating-point type: bits that are all 1) comes instead.
template <ColumnsCudaConfig C, class From, class To>
FI_GLOBAL_FN void move_part(int64_t first, int64_t last, From from, To to, bool ok = true) {
  using Unit = unsigned short;
  constexpr int kItems = C.unit / 2, kOfTile = kColumnsTile / (C.threads * C.unit),
                kTiles = kOfTile >= 4 ? 1 : 4 / kOfTile;
  const int64_t step = int64_t{blocks_x()} * kColumnsTile;
  const auto place = [&](int64_t tile, int k) {
    return tile + (k / kOfTile) * step + (int64_t{k % kOfTile} * C.threads + thread_x()) * C.unit;
  };
  for (int64_t tile = first + block_x() * kColumnsTile; tile < last; tile += kTiles * step) {
    Pack<Unit, kItems> x[kTiles * kOfTile];
#pragma unroll
    for (int k = 0; k < kTiles * kOfTile; ++k)
      if (const int64_t at = place(tile, k); at < last && ok)
        x[k] = load<kItems, Hint::kOnce>(reinterpret_cast<const Unit*>(from(static_cast<uint32_t>(at / C.unit))));
      else
        for (int i = 0; i < kItems; ++i) x[k][i] = 0xffff;
#pragma unroll
    for (int k = 0; k < kTiles * kOfTile; ++k)
      if (const int64_t at = place(tile, k); at < last)
        store(reinterpret_cast<Unit*>(to(static_cast<uint32_t>(at / C.unit))), x[k]);
  }
}

template <ColumnsCudaConfig C>
struct MoveColumns {
  static constexpr int kUnit = C.unit, kRanks = C.ranks;
  using Columns = ColumnsOf<kUnit>;
  using Run = RunOf<kUnit>;
  const ColumnsCudaParams& p;

  FI_GLOBAL_FN int64_t own_bytes() const { return p.in_rows * p.in_width; }
  FI_GLOBAL_FN int64_t bytes_from(int r) const { return p.out_rows * (p.begin[r + 1] - p.begin[r]); }
  FI_GLOBAL_FN int64_t last(int64_t bytes) const { return bytes < p.last ? bytes : p.last; }
  FI_GLOBAL_FN Columns given(int part) const {
    return {static_cast<const char*>(p.in) + part * p.in_width, p.in_stride, p.in_width, p.in_units};
  }
  FI_GLOBAL_FN Columns got(int r) const {
    return {static_cast<const char*>(p.out) + p.begin[r], p.out_stride, p.begin[r + 1] - p.begin[r], p.out_units[r]};
  }
  /// Where byte 0 of a part would lie in the slot of `rank`, which has [first, last) of its parts.
  FI_GLOBAL_FN Run in_slot(int rank, int part, int64_t slot) const {
    char* const memory = static_cast<char*>(const_cast<void*>(p.source[rank]));
    return {memory + kAllReduceFlagBytes + slot * p.slot + part * (p.last - p.first) - p.first};
  }
  FI_GLOBAL_FN Run in_parts(int64_t before) const { return {static_cast<char*>(p.parts) + before}; }

  FI_GLOBAL_FN void through_peers() const {
    Meeting<kRanks> ranks(p.source, p.meet);
    const int64_t slot = ranks.slot();
    const int rank = p.meet.rank, own = p.in_parts > 1 ? rank : 0;  // the part that stays here, of several
    for (int q = 0; q < p.in_parts && ranks.ok(); ++q)
      if (p.in_parts == 1 || q != own) move_part<C>(p.first, last(own_bytes()), given(q), in_slot(rank, q, slot));
    ranks.meet(1);
    for (int k = 0; k < kRanks; ++k) {  // each rank begins with its own part, then with another one's
      const int r = rank + k < kRanks ? rank + k : rank + k - kRanks;
      if (k == 0)
        move_part<C>(p.first, last(bytes_from(r)), given(own), got(r));
      else
        move_part<C>(p.first, last(bytes_from(r)), in_slot(r, own, slot), got(r), ranks.ok());
    }
    ranks.end(C.threads);
  }
  /// The only rank.
  FI_GLOBAL_FN void alone() const { move_part<C>(p.first, last(bytes_from(0)), given(0), got(0)); }
  FI_GLOBAL_FN void split() const {
    for (int q = 0; q < p.in_parts; ++q) move_part<C>(0, own_bytes(), given(q), in_parts(q * own_bytes()));
  }
  FI_GLOBAL_FN void merge() const {
    for (int r = 0; r < kRanks; ++r) move_part<C>(0, bytes_from(r), in_parts(p.out_rows * p.begin[r]), got(r));
  }
};

template <ColumnsCudaConfig C>
FI_GLOBAL_FN void move_columns(const ColumnsCudaParams& p) {
  const MoveColumns<C> move{p};
  if constexpr (C.way == ColumnsWay::kPeers && C.ranks > 1) move.through_peers();
  if constexpr (C.way == ColumnsWay::kPeers && C.ranks == 1) move.alone();
  if constexpr (C.way == ColumnsWay::kSplit) move.split();
  if constexpr (C.way == ColumnsWay::kMerge) move.merge();
}

}  // namespace flashinfer::cu
