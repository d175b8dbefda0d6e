// SPDX-License-Identifier: Apache-2.0
// The columns of all ranks side by side. Each rank's rows, one behind another, go through the slots of the all-reduces'
// memory in pieces (slots.h).
#include <algorithm>
#include <cstring>
#include <numeric>
#include <vector>

#include "flashinfer/core/int_math.h"
#include "flashinfer/ops/comm/op.h"
#include "flashinfer/ops/comm/slots.h"

namespace flashinfer {
namespace ops::comm {
namespace {
using A = AllGather;

int64_t tokens(const A& a) { return a.input.size(0); }
int64_t all_columns(const A& a) { return std::accumulate(a.columns.begin(), a.columns.end(), int64_t{0}); }
op::Shape out_shape(const A& a) { return {2, {tokens(a), all_columns(a)}}; }
DType out_dtype(const A& a) { return a.input.dtype(); }

const AllReduceState& state_of(const A& a) { return all_reduce_state_for(a.workspace, a.input, "input"); }
void validate(const A& a) {
  const AllReduceState& s = state_of(a);
  const auto ranks = static_cast<int64_t>(a.columns.size());
  FI_CHECK(ranks == s.world_size, ValueError, "columns has ", ranks, " numbers, but the group has ", s.world_size,
           " ranks");
  for (const int64_t n : a.columns) FI_CHECK(n >= 0, ValueError, "columns has ", n, ", but must not be negative");
  const int64_t own = a.columns[static_cast<size_t>(s.rank)];
  FI_CHECK(a.input.size(1) == own, ValueError, "input.shape[1] is ", a.input.size(1), ", but columns has ", own,
           " for rank ", s.rank);
  for (const TensorView& t : {a.input, a.out.value_or(a.input)})
    FI_CHECK(t.numel() == 0 || t.size(1) == 1 || t.stride(1) == 1, ValueError, "the columns of ", to_string(t),
             " have a stride, but must be contiguous");
}

/// All columns lists of one length with this sum and hash are taken for the same.
flashinfer::comm::Signature signature_of(const A& a) {
  uint64_t h = 0;
  for (const int64_t n : a.columns) h = (h ^ static_cast<uint64_t>(n)) * 0x9e3779b97f4a7c15u;
  return signature(CallKind::kAllGather,
                   {tokens(a), all_columns(a), static_cast<int64_t>(a.input.dtype()), static_cast<int64_t>(h)});
}
/// A rank's bytes in pieces of a slot.
struct Piece {
  int64_t begin, end;
  Piece(const Rows& rows, int64_t k, int64_t slot)
      : begin(std::min(rows.all(), k * slot)), end(std::min(rows.all(), (k + 1) * slot)) {}
  int64_t bytes() const { return end - begin; }
};

class Gather {
 public:
  Gather(const A& a, const AllReduceState& s) : a_(a), s_(s), m_(*s.memory), in_(rows_of(a.input)) {
    const Rows out = rows_of(*a.out);
    int64_t first = 0;
    for (const int64_t n : a.columns) {
      to_.push_back(out.columns(first, n * a.input.item_size()));
      first += to_.back().bytes;
      pieces_ = std::max(pieces_, ceil_div(to_.back().all(), m_.slot));
    }
  }
  void run() {
    move_in_pieces(
        s_, pieces_, signature_of(a_), [&](int64_t k, uint64_t phase) { share(k, phase); }, [&] { keep_own(); },
        [&](int64_t k, uint64_t phase) { take(k, phase); });
  }

 private:
  void share(int64_t k, uint64_t phase) {
    const Piece p(in_, k, m_.slot);
    pack(in_, p.begin, p.end, m_.window->own() + m_.input_offset(phase, p.bytes()));
    m_.window->put_to_all(m_.input_offset(phase, p.bytes()), p.bytes());
  }
  void take(int64_t k, uint64_t phase) {
    for (int r = 0; r < s_.world_size; ++r) {
      if (r == s_.rank) continue;
      const Rows& rows = to_[static_cast<size_t>(r)];
      const Piece p(rows, k, m_.slot);
      unpack(m_.window->of(r) + m_.input_offset(phase, p.bytes()), rows, p.begin, p.end);
    }
  }
  /// This rank's columns of the result, while the others arrive.
  void keep_own() {
    const Rows& to = to_[static_cast<size_t>(s_.rank)];
    for_rows(in_.bytes ? in_.count : 0, rows_per_task(in_.count, 2 * in_.bytes), [&](int64_t r) {
      std::memcpy(to.data + r * to.stride, in_.data + r * in_.stride, static_cast<size_t>(in_.bytes));
    });
  }

  const A& a_;
  const AllReduceState& s_;
  const AllReduceMemory& m_;
  Rows in_;
  std::vector<Rows> to_;  // each rank's columns of the result
  int64_t pieces_ = 1;
};
op::Prepared prepare(const A& a) {
  return [&a] { Gather(a, state_of(a)).run(); };
}
op::Prepared prepare_cuda(const A& a) {
  const int64_t item = a.input.item_size();
  ColumnsOnGpu call{.in = a.input.data(),
                    .in_rows = tokens(a),
                    .in_stride = a.input.stride(0) * item,
                    .in_width = a.input.size(1) * item,
                    .to_each = false,
                    .out = a.out->data(),
                    .out_rows = tokens(a),
                    .out_stride = a.out->stride(0) * item,
                    .begin = {0}};
  for (const int64_t n : a.columns) call.begin.push_back(call.begin.back() + n * item);
  call.signature = signature_of(a);
  return prepare_columns_on_gpu(std::move(call), state_of(a).memory->gpu);
}

void number_call(A& a) { a.call = number_of_call(a.workspace); }
op::Cost cost(const A& a) {
  const double item = static_cast<double>(a.input.item_size()), n = static_cast<double>(tokens(a));
  return {.bytes = item * n * static_cast<double>(2 * all_columns(a) + 2 * a.input.size(1)), .flops = 0};
}

constexpr op::Field fields[] = {
    op::in<&A::input>("input", "t d", op::floats, op::any_layout),
    op::attr<&A::workspace>("workspace", op::required),
    op::attr<&A::columns>("columns", op::required),
    op::out<&A::out>("out", nullptr, op::shape<out_shape>, op::dtype<out_dtype>, op::any_layout),
    op::attr<&A::call>("call", op::internal),
};
constexpr op::Candidate candidates[] = {op::cuda<prepare_cuda>(), op::cpu<prepare>()};
}  // namespace

constinit const op::Op all_gather_op = op::collective(op::define<A, validate, cost, number_call>(
    "all_gather", "flashinfer.comm", "out[t] = rows t of all ranks' inputs, side by side.", fields, candidates,
    nullptr));
}  // namespace ops::comm

Tensor all_gather(const AllGather& args) { return op::call(ops::comm::all_gather_op, args); }

}  // namespace flashinfer
