// SPDX-License-Identifier: Apache-2.0
// All-reduce over memory that the GPUs of all ranks access. A call has phases: a block writes what others need of it to
// its own rank's memory, tells block b of each other rank so, waits for theirs, and reads. One launch does all: blocks
// with the same index on all ranks meet, the others do not. The launch is cooperative, since a block that waits must
// not keep one from running that another rank waits for.
//
// Order: a call's input lies in one of two slots, in turn. It is written again two calls later; then block 0 has met
// the others in the call between, whose launches begin when those before have ended, so all reads of it are done,
// whatever the sizes of the calls were. Sums are written after a phase of the same call, so one slot does. Phases are
// counted, never reset (meet.cuh).
//
// Bits: sums are in the order of ranks, so all ranks, one shot and two, and the CPU get the same.
#pragma once
#include "flashinfer/ops/comm/kernels/cuda/all_reduce_row.cuh"
#include "flashinfer/ops/comm/kernels/cuda/experts.cuh"
#include "flashinfer/ops/comm/kernels/cuda/meet.cuh"

namespace flashinfer::cu {

inline constexpr int kMostLoads = 8;  // of ranks' pieces in flight

/// Rows of part `s` of the ranks' parts: [first, last).
struct AllReducePart {
  int64_t first, last;
  FI_GLOBAL_FN AllReducePart(const AllReduceCudaParams& p, int s, int ranks) {
    const int64_t rows = p.row.last, part = ceil_div(rows, ranks);
    first = part * s < rows ? part * s : rows, last = first + part < rows ? first + part : rows;
  }
};

template <AllReduceCudaConfig C>
FI_GLOBAL_FN auto* slot_of(const AllReduceCudaParams& p, int rank, int64_t slot) {
  char* const memory = static_cast<char*>(const_cast<void*>(p.row.source[rank]));
  return reinterpret_cast<scalar_of_t<C.dtype>*>(memory + kAllReduceFlagBytes + slot * p.slot);
}

/// Whether a rank's own rows are in its slot too.
template <AllReduceCudaConfig C>
inline constexpr bool kSharesOwn = C.addend != AllReduceAddend::kInput;

/// A row of what this rank adds, of kScatter of block `block` of it, to its slot.
template <AllReduceCudaConfig C>
FI_GLOBAL_FN void share_row(const AllReduceCudaParams& p, int64_t i, int64_t slot, int block = 0) {
  using A = AllReduceOf<C>;
  using T = typename A::T;
  constexpr int kLoads = 4;
  AllReduceRow<C> row(p, i);
  if constexpr (kSharesOwn<C>)
    return store_row<C>(slot_of<C>(p, p.meet.rank, slot) + row.at, row.d, SumOfExperts<C>{p, i});
  if constexpr (C.way == AllReduceWay::kScatter) row.at += block * p.elements;
  const T* from = static_cast<const T*>(p.input) + row.at;
  if constexpr (C.way == AllReduceWay::kScatter) from += (block - p.meet.rank) * p.gap;
  T* const to = slot_of<C>(p, p.meet.rank, slot) + row.at;
  for (int64_t base = thread_x() * A::N; base < row.d; base += kLoads * A::kStep) {
    RawPiece<T, A::N> x[kLoads];
#pragma unroll
    for (int k = 0; k < kLoads; ++k) load_raw<A::kAligned, A::N, Hint::kOnce>(from, base + k * A::kStep, row.d, x[k]);
#pragma unroll
    for (int k = 0; k < kLoads; ++k) {
      const int64_t at = base + k * A::kStep;
      if constexpr (A::kAligned) {
        if (at < row.d) store(to + at, x[k].part[0]);
      } else {
#pragma unroll
        for (int j = 0; j < A::N; ++j)
          if (at + j < row.d) to[at + j] = x[k].part[0][j];
      }
    }
  }
}

/// Sums of the ranks' elements, in their order: as RankSum of kernels/cpu/all_reduce.h.
template <AllReduceCudaConfig C>
struct SumOfRanks {
  using A = AllReduceOf<C>;
  using T = typename A::T;
  const AllReduceCudaParams& p;
  int64_t row, d, slot;
  FI_GLOBAL_FN const T* input_of(int r) const {
    if constexpr (C.way == AllReduceWay::kGathered) return static_cast<const T*>(p.row.source[r]);
    return r == p.meet.rank && !kSharesOwn<C> ? static_cast<const T*>(p.input) : slot_of<C>(p, r, slot);
  }
  FI_GLOBAL_FN void operator()(int64_t at, float (&v)[A::N]) const {
#pragma unroll
    for (int i = 0; i < A::N; ++i) v[i] = 0.0f;
#pragma unroll 1  // unrolled, the loads of many ranks would spill
    for (int first = 0; first < C.ranks; first += kMostLoads) {
      RawPiece<T, A::N> x[kMostLoads];
#pragma unroll
      for (int k = 0; k < kMostLoads; ++k) {
        const int r = first + k;
        if (r >= C.ranks) break;
        load_raw<A::kAligned, A::N, Hint::kOnce>(input_of(r) + row, at, d, x[k]);
      }
#pragma unroll
      for (int k = 0; k < kMostLoads; ++k) {
        const int r = first + k;
        if (r >= C.ranks) break;
#pragma unroll
        for (int i = 0; i < A::N; ++i) {
          const float before = C.fp32_acc || r <= 1 ? v[i] : to_f32(from_f32<T>(v[i]));
          v[i] = add_rn(before, x[k][i]);
        }
      }
    }
  }
};
/// Sums that a rank has left in its memory.
template <AllReduceCudaConfig C>
struct SumOfPart {
  using A = AllReduceOf<C>;
  using T = typename A::T;
  const T* from;
  int64_t d;
  FI_GLOBAL_FN void operator()(int64_t at, float (&v)[A::N]) const {
    RawPiece<T, A::N> x;
    load_raw<A::kAligned, A::N, Hint::kOnce>(from, at, d, x);
#pragma unroll
    for (int i = 0; i < A::N; ++i) v[i] = x[i];
  }
};

/// The rows of this block from the ranks' inputs.
template <AllReduceCudaConfig C>
FI_GLOBAL_FN void finish_rows(const AllReduceCudaParams& p, int64_t slot, bool ok) {
  for (int64_t i = block_x(); i < p.row.last; i += blocks_x()) {
    const AllReduceRow<C> row(p, i);
    finish_row<C>(p, i, SumOfRanks<C>{p, row.at, row.d, slot}, ok);
  }
}
/// Phase 1: the rows of this block.
template <AllReduceCudaConfig C>
FI_GLOBAL_FN void one_shot(const AllReduceCudaParams& p, Meeting<C.ranks>& ranks) {
  const int64_t slot = ranks.slot();
  if constexpr (C.ranks > 1 || kSharesOwn<C>) {
    for (int64_t i = block_x(); i < p.row.last && ranks.ok(); i += blocks_x()) share_row<C>(p, i, slot);
    ranks.meet(1);
  }
  finish_rows<C>(p, slot, ranks.ok());
}

/// Phase 1: the rows of the other ranks' parts (with experts of all). Phase 2: the sums of those in this rank's part.
template <AllReduceCudaConfig C>
FI_GLOBAL_FN void two_shots(const AllReduceCudaParams& p, Meeting<C.ranks>& ranks) {
  using T = scalar_of_t<C.dtype>;
  constexpr int kRanks = C.ranks;
  const int64_t slot = ranks.slot();
  const auto each = [&](int s, auto f) {
    const AllReducePart part(p, s, kRanks);
    for (int64_t i = part.first + block_x(); i < part.last; i += blocks_x()) f(i, AllReduceRow<C>(p, i));
  };
  for (int s = 0; s < kRanks && ranks.ok(); ++s)
    if (s != p.meet.rank || kSharesOwn<C>)
      each(s, [&](int64_t i, const AllReduceRow<C>&) { share_row<C>(p, i, slot); });
  ranks.meet(1);
  if (ranks.ok())
    each(p.meet.rank, [&](int64_t, const AllReduceRow<C>& row) {
      store_row<C>(slot_of<C>(p, p.meet.rank, kAllReduceInputSlots) + row.at, row.d,
                   SumOfRanks<C>{p, row.at, row.d, slot});
    });
  ranks.meet(2);
  for (int k = 0; k < kRanks; ++k) {  // each rank begins with another one's part
    const int s = p.meet.rank + k < kRanks ? p.meet.rank + k : p.meet.rank + k - kRanks;
    const T* const sums = slot_of<C>(p, s, kAllReduceInputSlots);
    each(s, [&](int64_t i, const AllReduceRow<C>& row) {
      finish_row<C>(p, i, SumOfPart<C>{sums + row.at, row.d}, ranks.ok());
    });
  }
}

/// Phase 1: the tiles of the other ranks' blocks.
template <AllReduceCudaConfig C>
FI_GLOBAL_FN void scatter(const AllReduceCudaParams& p, Meeting<C.ranks>& ranks) {
  using T = scalar_of_t<C.dtype>;
  const int64_t slot = ranks.slot();
  for (int s = 0; s < C.ranks && ranks.ok(); ++s)
    for (int64_t i = block_x(); i < p.row.last && s != p.meet.rank; i += blocks_x()) share_row<C>(p, i, slot, s);
  ranks.meet(1);
  for (int64_t i = block_x(); i < p.row.last; i += blocks_x()) {
    const AllReduceRow<C> row(p, i);
    const SumOfRanks<C> sum{p, p.meet.rank * p.elements + row.at, row.d, slot};
    store_row<C>(static_cast<T*>(p.row.out) + row.at, row.d, OrNan<C, SumOfRanks<C>>{sum, ranks.ok()});
  }
}

template <AllReduceCudaConfig C>
FI_GLOBAL_FN void all_reduce(const AllReduceCudaParams& p) {
  if constexpr (C.way == AllReduceWay::kGathered) {
    finish_rows<C>(p, 0, true);
  } else if constexpr (C.way == AllReduceWay::kAddend) {
    for (int64_t i = block_x(); i < p.row.last; i += blocks_x()) finish_row<C>(p, i, SumOfExperts<C>{p, i}, true);
  } else {
    Meeting<C.ranks> ranks(p.row.source, p.meet);
    if constexpr (C.way == AllReduceWay::kScatter)
      scatter<C>(p, ranks);
    else if constexpr (C.way == AllReduceWay::kOneShot || C.ranks == 1)
      one_shot<C>(p, ranks);
    else
      two_shots<C>(p, ranks);
    ranks.end(C.threads);
  }
  clear_padding<C>(p.row);
}

}  // namespace flashinfer::cu
