// SPDX-License-Identifier: Apache-2.0
#include "flashinfer/bench/reader.h"

#include <algorithm>
#include <cstdlib>
#include <random>

#include "flashinfer/core/context.h"
#include "flashinfer/op/observer.h"
#include "flashinfer/op/select.h"

namespace flashinfer::bench {
namespace {

constexpr int64_t kPiece = 1 << 16, kTask = 1 << 18;

/// Four streams: one leaves memory idle where pages of the system end.
void sum(const char* p, int64_t bytes) {
  typedef uint64_t Word __attribute__((vector_size(16), aligned(1), may_alias));
  constexpr int64_t kStreams = 4;
  const int64_t stream = bytes / kStreams / 64 * 64;
  Word s[2 * kStreams] = {};
  const auto line = [&](const char* at, int64_t i) {
    const Word* w = reinterpret_cast<const Word*>(at);
    s[2 * i] += w[0] ^ w[1];
    s[2 * i + 1] += w[2] ^ w[3];
  };
  for (int64_t at = 0; at < stream; at += 64)
    for (int64_t i = 0; i < kStreams; ++i) line(p + i * stream + at, i);
  for (int64_t at = kStreams * stream; at + 64 <= bytes; at += 64) line(p + at, 0);
  for (int64_t i = 1; i < 2 * kStreams; ++i) s[0] += s[i];
  asm volatile("" ::"x"(s[0]));
}

}  // namespace

Reader::Reader(const op::Op& op, const std::vector<cases::Built*>& blocks, double bytes) : bytes_(bytes) {
  for (cases::Built* b : blocks)
    op::for_each_tensor(op, b->block.data(), [&](const op::Field& f, const TensorView& t) {
      if (f.role == op::Role::kIn || f.role == op::Role::kInOut || f.role == op::Role::kPaged) add(f, t);
    });
  next_ = pieces_.size() / 2;  // far from what the next call reads, where blocks rotate
}

void Reader::add(const op::Field& f, const TensorView& t) {
  if (t.numel() == 0) return;
  const char* const from = static_cast<const char*>(t.data());
  int64_t span = t.item_size();
  for (int a = 0; a < t.rank(); ++a) span += (t.size(a) - 1) * std::abs(t.stride(a)) * t.item_size();
  if (f.role != op::Role::kPaged || t.rank() < 2) {
    for (int64_t at = 0; at < span; at += kPiece) pieces_.push_back({from + at, std::min(kPiece, span - at)});
    return;
  }
  const int64_t page = t.stride(0) * t.item_size();
  std::vector<int64_t> order(static_cast<size_t>(t.size(0)));
  for (size_t i = 0; i < order.size(); ++i) order[i] = static_cast<int64_t>(i);
  std::shuffle(order.begin(), order.end(), std::minstd_rand(7));
  for (const int64_t i : order)
    for (int64_t at = 0; at < page; at += kPiece)
      pieces_.push_back({from + i * page + at, std::min(kPiece, page - at)});
}

double Reader::seconds() {
  if (pieces_.empty()) return 0;
  struct Task {
    size_t first, count;
  };
  std::vector<Task> tasks;
  size_t at = next_;
  int64_t bytes = 0, of_task = kTask;
  for (size_t n = 0; n < pieces_.size() && static_cast<double>(bytes) < bytes_; ++n, at = (at + 1) % pieces_.size()) {
    if (of_task >= kTask || at == 0) tasks.push_back({at, 0}), of_task = 0;
    ++tasks.back().count;
    of_task += pieces_[at].bytes;
    bytes += pieces_[at].bytes;
  }
  next_ = at;
  moved_ = static_cast<double>(bytes);
  const int64_t start = op::detail::monotonic_ns();
  parallel_for(static_cast<int64_t>(tasks.size()), [&](int64_t i) {
    const Task& task = tasks[static_cast<size_t>(i)];
    for (size_t j = task.first; j < task.first + task.count; ++j) sum(pieces_[j].from, pieces_[j].bytes);
  });
  return static_cast<double>(op::detail::monotonic_ns() - start) * 1e-9;
}

}  // namespace flashinfer::bench
