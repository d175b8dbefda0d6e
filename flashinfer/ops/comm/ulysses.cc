// SPDX-License-Identifier: Apache-2.0
// What rank p sends to rank q are rows with a stride in p's input and rows with another one in q's output, so both
// directions are one exchange of runs of bytes.
#include "flashinfer/ops/comm/ulysses.h"

#include <vector>

#include "flashinfer/ops/comm/op.h"
#include "flashinfer/ops/comm/slots.h"

namespace flashinfer {
namespace ops::comm {
namespace {
using A = UlyssesHeads;
enum class Way { kScatter, kGather };

const AllReduceState& state_of(const A& a) { return all_reduce_state_for(a.workspace, a.x, "x"); }
int64_t ranks_of(const A& a) { return state_of(a).world_size; }
template <Way kWay>
op::Shape out_shape(const A& a) {
  const int64_t w = ranks_of(a), s = a.x.size(1), h = a.x.size(2);
  if constexpr (kWay == Way::kScatter) return {4, {a.x.size(0), s * w, h / w, a.x.size(3)}};
  return {4, {a.x.size(0), s / w, h * w, a.x.size(3)}};
}

template <Way kWay>
void validate(const A& a) {
  constexpr int kDim = kWay == Way::kScatter ? 2 : 1;
  const int64_t ranks = ranks_of(a);
  FI_CHECK(a.x.size(kDim) % ranks == 0, ValueError, "x.shape[", kDim, "] is ", a.x.size(kDim),
           kDim == 2 ? " heads" : " positions", ", but must be divisible by the ", ranks, " ranks");
}

/// The part of a tensor with whole sequences that is of rank r: `s` positions of each, one behind another.
Rows positions_of(std::byte* whole, int64_t r, int64_t batch, int64_t s, int64_t ranks, int64_t position) {
  return {whole + r * s * position, s * position, ranks * s * position, batch};
}
/// The part of a tensor with all heads that is of rank r: some heads of each position.
Rows heads_of(std::byte* all, int64_t r, int64_t positions, int64_t heads_bytes, int64_t ranks) {
  return {all + r * heads_bytes, heads_bytes, ranks * heads_bytes, positions};
}

/// What goes to each rank and comes from it, by rank: runs of the same length.
struct Parts {
  std::vector<Rows> to, from;
};
template <Way kWay>
Parts parts_of(const A& a, int64_t ranks) {
  const TensorView& out = *a.out;
  const bool scatter = kWay == Way::kScatter;
  const TensorView& all_heads = scatter ? a.x : out;
  const TensorView& whole = scatter ? out : a.x;
  const int64_t batch = a.x.size(0), s = all_heads.size(1), bytes = whole.size(2) * whole.size(3) * a.x.item_size();
  Parts parts;
  for (int64_t r = 0; r < ranks; ++r) {
    const Rows heads = heads_of(static_cast<std::byte*>(all_heads.data()), r, batch * s, bytes, ranks),
               positions = positions_of(static_cast<std::byte*>(whole.data()), r, batch, s, ranks, bytes);
    parts.to.push_back(scatter ? heads : positions);
    parts.from.push_back(scatter ? positions : heads);
  }
  return parts;
}

/// Pieces of the runs to all other ranks, side by side in a slot.
class Exchange {
 public:
  Exchange(Parts parts, const AllReduceState& s)
      : parts_(std::move(parts)), s_(s), m_(*s.memory), all_(parts_.to[0].all()) {
    const int64_t most = m_.slot / std::max<int64_t>(s.world_size - 1, 1);
    piece_ = std::min(most >= 64 ? most / 64 * 64 : most, std::max<int64_t>(round_up(all_, 64), 64));
  }
  void run(const flashinfer::comm::Signature& call) {
    move_in_pieces(
        s_, std::max<int64_t>(1, ceil_div(all_, piece_)), call, [&](int64_t k, uint64_t phase) { share(k, phase); },
        [&] { copy_run(parts_.to[own()], parts_.from[own()]); }, [&](int64_t k, uint64_t phase) { take(k, phase); });
  }

 private:
  size_t own() const { return static_cast<size_t>(s_.rank); }
  int64_t begin(int64_t k) const { return std::min(all_, k * piece_); }
  std::byte* place(int sender, int receiver, uint64_t phase) const {
    const int64_t i = receiver < sender ? receiver : receiver - 1;
    return m_.window->of(sender) + m_.input_offset(phase, (s_.world_size - 1) * piece_) + i * piece_;
  }
  void share(int64_t k, uint64_t phase) const {
    const auto rank = static_cast<int>(s_.rank);
    for (int r = 0; r < s_.world_size; ++r) {
      if (r == rank) continue;
      std::byte* to = place(rank, r, phase);
      pack(parts_.to[static_cast<size_t>(r)], begin(k), begin(k + 1), to);
      m_.window->put(r, rank, to - m_.window->own(), begin(k + 1) - begin(k));
    }
  }
  void take(int64_t k, uint64_t phase) const {
    for (int r = 0; r < s_.world_size; ++r)
      if (r != s_.rank)
        unpack(place(r, static_cast<int>(s_.rank), phase), parts_.from[static_cast<size_t>(r)], begin(k), begin(k + 1));
  }

  Parts parts_;
  const AllReduceState& s_;
  const AllReduceMemory& m_;
  int64_t all_, piece_;
};

template <Way kWay>
flashinfer::comm::Signature signature_of(const A& a) {
  return signature(kWay == Way::kScatter ? CallKind::kUlyssesScatter : CallKind::kUlyssesGather,
                   {a.x.size(0), a.x.size(1), a.x.size(2), a.x.size(3), static_cast<int64_t>(a.x.dtype())});
}
template <Way kWay>
void launch(const A& a) {
  const AllReduceState& s = state_of(a);
  Exchange(parts_of<kWay>(a, s.world_size), s).run(signature_of<kWay>(a));
}
/// A row is a position with all heads, or a whole sequence.
template <Way kWay>
op::Prepared prepare_cuda(const A& a) {
  const TensorView& out = *a.out;
  const bool scatter = kWay == Way::kScatter;
  const TensorView &all_heads = scatter ? a.x : out, &whole = scatter ? out : a.x;
  const int64_t ranks = ranks_of(a), batch = a.x.size(0), s = all_heads.size(1),
                heads = whole.size(2) * whole.size(3) * a.x.item_size(), sequence = s * heads;
  ColumnsOnGpu call{.in = a.x.data(),
                    .in_rows = scatter ? batch * s : batch,
                    .in_stride = ranks * (scatter ? heads : sequence),
                    .in_width = scatter ? heads : sequence,
                    .to_each = true,
                    .out = out.data(),
                    .out_rows = scatter ? batch : batch * s,
                    .out_stride = ranks * (scatter ? sequence : heads),
                    .begin = {}};
  for (int64_t r = 0; r <= ranks; ++r) call.begin.push_back(r * (scatter ? sequence : heads));
  call.signature = signature_of<kWay>(a);
  return prepare_columns_on_gpu(std::move(call), state_of(a).memory->gpu);
}
void number_call(A& a) { a.call = number_of_call(a.workspace); }
op::Cost cost(const A& a) { return {.bytes = 4 * static_cast<double>(a.x.nbytes())}; }

template <Way kWay>
constexpr op::Field fields[] = {
    op::in<&A::x>("x", "b s h d", op::floats, op::contiguous),
    op::attr<&A::workspace>("workspace", op::required),
    op::out<&A::out>("out", nullptr, op::shape<out_shape<kWay>>, op::same_as("x"), op::contiguous),
    op::attr<&A::call>("call", op::internal),
};
template <Way kWay>
constexpr op::Candidate candidates[] = {op::cuda<prepare_cuda<kWay>>(), op::cpu<launch<kWay>>()};
}  // namespace

constinit const op::Op ulysses_scatter_op = op::collective(op::define<A, validate<Way::kScatter>, cost, number_call>(
    "ulysses_scatter_heads", "flashinfer.comm",
    "Exchanges heads for positions: each rank gets the whole sequence for its part of the heads.",
    fields<Way::kScatter>, candidates<Way::kScatter>, nullptr));
constinit const op::Op ulysses_gather_op = op::collective(op::define<A, validate<Way::kGather>, cost, number_call>(
    "ulysses_gather_heads", "flashinfer.comm",
    "Exchanges positions for heads: each rank gets all heads for its part of the sequence.", fields<Way::kGather>,
    candidates<Way::kGather>, nullptr));
}  // namespace ops::comm

Tensor ulysses_scatter_heads(const UlyssesHeads& a) { return op::call(ops::comm::ulysses_scatter_op, a); }
Tensor ulysses_gather_heads(const UlyssesHeads& a) { return op::call(ops::comm::ulysses_gather_op, a); }

}  // namespace flashinfer
