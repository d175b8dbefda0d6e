// SPDX-License-Identifier: Apache-2.0
// A tensor goes through the ranks' memory in pieces of at most a slot, which stay in the caches: of a large tensor only
// the input and the results are read from and written to memory. The slots of a rank are used in turn: that of phase e
// is written before the rank publishes e and read by the others after they have waited for e.
#include "flashinfer/ops/comm/shared_sum.h"

#include <algorithm>
#include <cstring>

#include "flashinfer/core/int_math.h"
#include "flashinfer/ops/common/rows.h"
#include "flashinfer/ops/common/thread_scratch.h"

namespace flashinfer::ops::comm {
namespace {

/// `from` to `to` with the threads of the context.
void copy(const std::byte* from, std::byte* to, int64_t bytes) {
  const int64_t threads = Context::current().executor.threads;
  const int64_t part = threads == 1 ? bytes : std::max(kMinTaskBytes, round_up(ceil_div(bytes, threads), 64));
  if (bytes <= part) {
    std::memcpy(to, from, static_cast<size_t>(bytes));
    return;
  }
  parallel_for(ceil_div(bytes, part), [&](int64_t i) {
    const int64_t at = i * part, n = std::min(part, bytes - at);
    std::memcpy(to + at, from + at, static_cast<size_t>(n));
  });
}

/// The kernel over p's rows. Changes p.rows_per_task and p.scratch.
void run_rows(jit::CpuFn fn, AllReduceParams& p, int64_t item, bool norm) {
  const int64_t rows = std::max(p.last, p.padded_rows) - p.first;
  if (rows <= 0) return;
  const int64_t scratch = norm ? 2 * p.d * item : 0;
  p.rows_per_task =
      Context::current().executor.threads == 1 ? rows : rows_per_task(rows, (p.ranks + (norm ? 3 : 1)) * p.d * item);
  const int64_t tasks = ceil_div(rows, p.rows_per_task);
  if (tasks == 1) {
    p.scratch = scratch ? thread_scratch(scratch) : nullptr;
    return fn(&p, 0);
  }
  parallel_for(tasks, [&](int64_t task) {
    AllReduceParams own = p;
    own.scratch = scratch ? thread_scratch(scratch) : nullptr;
    fn(&own, task);
  });
}

/// A call's rows in pieces, and where each piece lies.
struct Pieces {
  Pieces(const SharedSum& c, const AllReduceState& s, int64_t rows, int64_t d)
      : call(c),
        memory(*s.memory),
        window(*memory.window),
        ranks(static_cast<int>(s.world_size)),
        rank(static_cast<int>(s.rank)),
        item(c.input.item_size()),
        rows(rows),
        row(d * item),
        rows_a_piece(ranks == 1 ? std::max<int64_t>(rows, 1) : memory.slot / std::max<int64_t>(row, 1)),
        count(std::max<int64_t>(1, ceil_div(rows, rows_a_piece))) {}
  int64_t first(int64_t k) const { return k * rows_a_piece; }
  int64_t last(int64_t k) const { return std::min(rows, first(k) + rows_a_piece); }
  int64_t bytes(int64_t k) const { return (last(k) - first(k)) * row; }
  const std::byte* own_input(int64_t k) const {
    return static_cast<const std::byte*>(call.input.data()) + first(k) * row;
  }
  /// Where the rank's part of piece k lies, which it published in that phase.
  const std::byte* input_of(int r, int64_t k, uint64_t phase) const {
    return r == rank ? own_input(k) : window.of(r) + memory.input_offset(phase, bytes(k));
  }
  std::byte* own_slot(int64_t k, uint64_t phase) const { return window.own() + memory.input_offset(phase, bytes(k)); }
  uint64_t publish() const { return window.publish(call.signature); }
  void wait(uint64_t phase) const { window.wait(phase, call.describe); }
  /// The call's parameters for piece k.
  void set_piece(AllReduceParams& p, int64_t k) const {
    p.first = first(k), p.last = last(k);
    p.padded_rows = k + 1 == count ? std::max(call.params.padded_rows, p.last) : p.last;
  }

  const SharedSum& call;
  const AllReduceMemory& memory;
  flashinfer::comm::Window& window;
  int ranks, rank;
  int64_t item, rows, row, rows_a_piece, count;
};

/// Shares piece k + 1 before it waits for the others' piece k, and publishes it before it sums piece k: ranks of equal
/// speed wait for the first piece alone. A rank that has passed the wait of phase e knows that all have read phase
/// e - 3, so four slots do.
void exchange_and_finish(const Pieces& at, AllReduceParams& p, jit::CpuFn fn, bool norm) {
  const auto share = [&](int64_t k, uint64_t phase) {
    copy(at.own_input(k), at.own_slot(k, phase), at.bytes(k));
    at.window.put_to_all(at.memory.input_offset(phase, at.bytes(k)), at.bytes(k));
  };
  p.ranks = at.ranks;
  const auto finish = [&](int64_t k, uint64_t phase) {
    for (int r = 0; r < at.ranks; ++r) p.source[r] = at.input_of(r, k, phase);
    at.set_piece(p, k);
    run_rows(fn, p, at.item, norm);
  };
  if (at.ranks == 1) return finish(0, 0);
  share(0, at.window.phase() + 1);
  uint64_t phase = at.publish();
  for (int64_t k = 0; k < at.count; ++k, ++phase) {
    const bool more = k + 1 < at.count;
    if (more) share(k + 1, phase + 1);
    at.wait(phase);
    if (more) at.publish();
    finish(k, phase);
  }
}
}  // namespace

void run_sums(jit::CpuFn fn, AllReduceParams& p, int64_t item) { run_rows(fn, p, item, false); }

bool can_split(const TensorView& input, const AllReduceState& s) {
  return input.size(0) > s.world_size && input.size(1) * input.item_size() <= s.memory->slot;
}

void sum_one_shot(const SharedSum& call, const AllReduceState& s) {
  AllReduceParams p = call.params;
  const int64_t rows = call.input.size(0), d = call.input.size(1), n = call.input.numel();
  const bool long_rows = s.world_size > 1 && d * call.input.item_size() > s.memory->slot;
  if (call.norm && !long_rows) return exchange_and_finish(Pieces(call, s, rows, d), p, call.finish, true);
  // A sum needs no whole rows: the tensor is n rows of one element.
  AllReduceParams sum{};
  Tensor sums;
  if (call.norm) sums = Tensor::empty({rows, d}, call.input.dtype());
  sum.d = 1, sum.out = call.norm ? sums.data() : p.out;
  exchange_and_finish(Pieces(call, s, n, 1), sum, call.sum, false);
  if (!call.norm) return;
  p.ranks = 1, p.source[0] = sums.data(), p.first = 0, p.last = rows;
  run_rows(call.finish, p, call.input.item_size(), true);
}

/// Phase e + k + 1 shares the sums of piece k and the inputs of piece k + 1, so two slots of sums do.
void sum_two_shots(const SharedSum& call, const AllReduceState& s) {
  const Pieces at(call, s, call.input.size(0), call.input.size(1));
  AllReduceParams p = call.params;
  const auto block_of = [&](int64_t k) { return ceil_div(at.last(k) - at.first(k), at.ranks); };
  const auto share = [&](int64_t k, uint64_t phase) {  // all rows but those that this rank sums
    const int64_t bytes = at.bytes(k), block = block_of(k) * at.row, begin = std::min(at.rank * block, bytes),
                  end = std::min(begin + block, bytes);
    copy(at.own_input(k), at.own_slot(k, phase), begin);
    copy(at.own_input(k) + end, at.own_slot(k, phase) + end, bytes - end);
    for (int r = 0; r < at.ranks; ++r) {
      const int64_t first = std::min(r * block, bytes);
      at.window.put(r, at.rank, at.memory.input_offset(phase, bytes) + first, std::min(block, bytes - first));
    }
  };
  const auto sum = [&](int64_t k, uint64_t phase) {
    const int64_t block = block_of(k), first = at.rank * block, rows = at.last(k) - at.first(k) - first;
    AllReduceParams own{};
    own.last = std::clamp<int64_t>(rows, 0, block), own.d = p.d, own.ranks = at.ranks;
    for (int r = 0; own.last && r < at.ranks; ++r) own.source[r] = at.input_of(r, k, phase) + first * at.row;
    own.out = at.window.own() + at.memory.sum_offset(phase + 1);
    run_rows(call.sum, own, at.item, false);
    at.window.put_to_all(at.memory.sum_offset(phase + 1), own.last * at.row);
  };
  share(0, at.window.phase() + 1);
  uint64_t phase = at.publish();
  at.wait(phase);
  for (int64_t k = 0; k < at.count; ++k) {
    sum(k, phase);
    if (k + 1 < at.count) share(k + 1, phase + 1);
    phase = at.publish();
    at.wait(phase);
    for (int r = 0; r < at.ranks; ++r) p.source[r] = at.window.of(r) + at.memory.sum_offset(phase);
    p.ranks = 1, p.block_rows = block_of(k);
    at.set_piece(p, k);
    run_rows(call.finish, p, at.item, call.norm);
  }
}

}  // namespace flashinfer::ops::comm
