// SPDX-License-Identifier: Apache-2.0
// How tensors of any size go through the slots of an all-reduce workspace: in pieces, as runs of bytes.
#pragma once
#include <algorithm>
#include <cstddef>
#include <cstring>

#include "flashinfer/core/context.h"
#include "flashinfer/core/int_math.h"
#include "flashinfer/core/tensor.h"
#include "flashinfer/ops/comm/peers.h"
#include "flashinfer/ops/comm/workspace.h"
#include "flashinfer/ops/common/rows.h"

namespace flashinfer::ops::comm {

/// Rows of `bytes`, `stride` apart, read or written one behind another as one run of bytes.
struct Rows {
  std::byte* data;
  int64_t bytes, stride, count;
  int64_t all() const { return bytes * count; }
  Rows columns(int64_t first, int64_t n) const { return {data + first, n, stride, count}; }
};
inline Rows rows_of(const TensorView& t) {
  const int64_t item = t.item_size();
  return {static_cast<std::byte*>(t.data()), t.size(1) * item, t.stride(0) * item, t.size(0)};
}
/// Calls f(a row's part, bytes from the beginning of [begin, end), its size) for the parts of the bytes [begin, end)
/// of the run.
template <class F>
void for_parts(const Rows& rows, int64_t begin, int64_t end, const F& f) {
  for (int64_t at = begin; at < end;) {
    const int64_t r = at / rows.bytes, first = at % rows.bytes, n = std::min(rows.bytes - first, end - at);
    f(rows.data + r * rows.stride + first, at - begin, static_cast<size_t>(n));
    at += n;
  }
}
/// fn(begin, end) for parts of [begin, end) with the threads of the context.
template <class F>
void in_parallel(int64_t begin, int64_t end, const F& fn) {
  const int64_t threads = Context::current().executor.threads, n = end - begin;
  const int64_t part = threads == 1 ? n : std::max(kMinTaskBytes, round_up(ceil_div(n, threads), 64));
  if (n <= part) return fn(begin, end);
  parallel_for(ceil_div(n, part), [&](int64_t i) { fn(begin + i * part, std::min(end, begin + (i + 1) * part)); });
}
/// Bytes [begin, end) of the run to `to`.
inline void pack(const Rows& from, int64_t begin, int64_t end, std::byte* to) {
  in_parallel(begin, end, [&](int64_t b, int64_t e) {
    for_parts(from, b, e,
              [&](const std::byte* part, int64_t at, size_t n) { std::memcpy(to + (b - begin) + at, part, n); });
  });
}
/// The bytes at `from` to [begin, end) of the run.
inline void unpack(const std::byte* from, const Rows& to, int64_t begin, int64_t end) {
  in_parallel(begin, end, [&](int64_t b, int64_t e) {
    for_parts(to, b, e, [&](std::byte* part, int64_t at, size_t n) { std::memcpy(part, from + (b - begin) + at, n); });
  });
}
/// A run of bytes to another of the same length, whose rows may be of another length.
inline void copy_run(const Rows& from, const Rows& to) {
  in_parallel(0, to.all(), [&](int64_t begin, int64_t end) {
    for_parts(to, begin, end, [&](std::byte* part, int64_t at, size_t n) {
      for_parts(from, begin + at, begin + at + static_cast<int64_t>(n),
                [&](const std::byte* source, int64_t behind, size_t m) { std::memcpy(part + behind, source, m); });
    });
  });
}

/// share(k, phase) writes piece k to where the other ranks read it after that phase, take(k, phase) reads theirs, own()
/// does what needs no other rank while they arrive. Pieces are shared one ahead, so ranks of equal speed wait for the
/// first alone; four slots do (shared_sum.cc).
template <class Share, class Own, class Take>
void move_in_pieces(const AllReduceState& s, int64_t count, const flashinfer::comm::Signature& call, Share share,
                    Own own, Take take) {
  if (s.world_size == 1) return own();
  auto& window = *s.memory->window;
  share(0, window.phase() + 1);
  uint64_t phase = window.publish(call);
  own();
  for (int64_t k = 0; k < count; ++k, ++phase) {
    const bool more = k + 1 < count;
    if (more) share(k + 1, phase + 1);
    window.wait(phase, describe_call);
    if (more) window.publish(call);
    take(k, phase);
  }
}

}  // namespace flashinfer::ops::comm
