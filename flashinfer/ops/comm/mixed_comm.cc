// SPDX-License-Identifier: Apache-2.0
// Every rank shares its input once; each then reads from the others what it adds or copies, so nothing is rounded or
// moved in between.
#include "flashinfer/ops/comm/mixed_comm.h"

#include <vector>

#include "flashinfer/ops/comm/op.h"
#include "flashinfer/ops/comm/shared_sum.h"
#include "flashinfer/ops/comm/slots.h"

namespace flashinfer {
namespace ops::comm {
namespace {
using R = ReduceScatter;
using M = MixedComm;

/// Block `block` of the inputs of `ranks`, added in that order, to `out`.
struct PartialSum {
  std::vector<int> ranks;
  int64_t block;
  std::byte* out;
  bool copied = false;  // of one rank: its bytes, also of zeros with a sign
};
/// Sums of the blocks that the input of each rank is divided into. Pieces hold a part of each block, so that ranks that
/// sum different blocks work at the same time.
class PartialSums {
 public:
  PartialSums(const TensorView& input, int64_t blocks, std::vector<PartialSum> sums, const AllReduceState& s)
      : input_(static_cast<const std::byte*>(input.data())),
        item_(input.item_size()),
        blocks_(blocks),
        elements_(input.numel() / blocks),
        sums_(std::move(sums)),
        s_(s),
        m_(*s.memory) {
    const int64_t most = m_.slot / blocks / item_;
    piece_ = std::max<int64_t>(1, std::min(most >= 64 ? most / 64 * 64 : most, round_up(elements_, 64)));
  }
  /// No other rank reads this block, so it is not shared.
  void keep(int64_t block) { kept_ = block; }
  void run(jit::CpuFn fn, const flashinfer::comm::Signature& call) {
    move_in_pieces(
        s_, std::max<int64_t>(1, ceil_div(elements_, piece_)), call,
        [&](int64_t k, uint64_t phase) { share(k, phase); },
        [&] {
          if (s_.world_size == 1)
            finish(fn, 0, elements_, [&](const PartialSum& sum, int) { return own(sum.block, 0); });
        },
        [&](int64_t k, uint64_t phase) { take(fn, k, phase); });
  }

 private:
  int64_t first(int64_t k) const { return std::min(elements_, k * piece_); }
  const std::byte* own(int64_t block, int64_t element) const { return input_ + (block * elements_ + element) * item_; }
  std::byte* place(int rank, int64_t block, uint64_t phase) const {
    return m_.window->of(rank) + m_.input_offset(phase, blocks_ * piece_ * item_) + block * piece_ * item_;
  }
  void share(int64_t k, uint64_t phase) const {
    const int64_t bytes = (first(k + 1) - first(k)) * item_;
    for (int64_t b = 0; b < blocks_; ++b) {
      if (b == kept_) continue;
      std::byte* to = place(static_cast<int>(s_.rank), b, phase);
      copy_bytes(own(b, first(k)), to, bytes);
      m_.window->put_to_all(to - m_.window->own(), bytes);
    }
  }
  void take(jit::CpuFn fn, int64_t k, uint64_t phase) const {
    const auto from = [&](const PartialSum& sum, int r) {
      return r == s_.rank ? own(sum.block, first(k)) : place(r, sum.block, phase);
    };
    finish(fn, first(k), first(k + 1), from);
  }
  /// Elements [begin, end) of each sum's block; from(sum, rank) is where a rank's lie.
  template <class From>
  void finish(jit::CpuFn fn, int64_t begin, int64_t end, const From& from) const {
    for (const PartialSum& sum : sums_) {
      if (sum.copied) {
        copy_bytes(from(sum, sum.ranks[0]), sum.out + begin * item_, (end - begin) * item_);
        continue;
      }
      AllReduceParams p{};
      p.d = 1, p.first = begin, p.last = end, p.out = sum.out;
      p.ranks = static_cast<int>(sum.ranks.size());
      for (size_t i = 0; i < sum.ranks.size(); ++i) p.source[i] = from(sum, sum.ranks[i]);
      run_sums(fn, p, item_);
    }
  }

  const std::byte* input_;
  int64_t item_, blocks_, elements_;
  std::vector<PartialSum> sums_;
  const AllReduceState& s_;
  const AllReduceMemory& m_;
  int64_t piece_, kept_ = -1;
};

const jit::Loaded& sum_kernel(DType dtype, bool fp32_acc) {
  return jit::cpu_kernel<kAllReduceKernel>(AllReduceConfig{dtype, dtype, fp32_acc, 0, AllReduceQuant::kNone});
}
/// A slot holds an element of each block.
void check_room(const AllReduceState& s, int64_t blocks, int64_t item) {
  FI_CHECK(s.world_size == 1 || s.memory->slot >= blocks * item, ValueError, "workspace moves ", s.memory->slot,
           " bytes at a time, but ", blocks * item, " are needed for ", blocks,
           " blocks: make it for larger inputs (max_token_num, hidden_dim)");
}
/// `t` with its rows divided or multiplied.
op::Shape with_rows(const TensorView& t, int64_t rows) {
  op::Shape s{t.rank(), {}};
  for (int i = 0; i < t.rank(); ++i) s.size[i] = i == 0 ? rows : t.size(i);
  return s;
}
void check_rows(const TensorView& t, const char* name, int64_t parts, const char* of) {
  FI_CHECK(t.rank() >= 1 && t.size(0) % parts == 0, ValueError, name, " is ", to_string(t),
           ", but its rows must be divisible by ", parts, " (", of, ")");
}
std::vector<int> all_ranks(int64_t n) {
  std::vector<int> ranks;
  for (int r = 0; r < n; ++r) ranks.push_back(r);
  return ranks;
}

// ---- reduce_scatter ----
const AllReduceState& state_of(const R& a) { return all_reduce_state_for(a.workspace, a.input, "input"); }
void validate(const R& a) {
  const AllReduceState& s = state_of(a);
  check_rows(a.input, "input", s.world_size, "ranks");
  if (s.memory->window) check_room(s, s.world_size, a.input.item_size());
}
op::Shape scatter_shape(const R& a) { return with_rows(a.input, a.input.size(0) / state_of(a).world_size); }
flashinfer::comm::Signature signature_of(const R& a) {
  return signature(CallKind::kReduceScatter,
                   {a.input.size(0), a.input.numel(), static_cast<int64_t>(a.input.dtype()), a.fp32_acc});
}
op::Prepared prepare_scatter(const R& a) {
  const jit::Loaded& kernel = sum_kernel(a.input.dtype(), a.fp32_acc);
  if (!kernel.fn) return op::Unsupported{kernel.why_not};
  return [fn = kernel.fn, &a] {
    const AllReduceState& s = state_of(a);
    PartialSums sums(a.input, s.world_size, {{all_ranks(s.world_size), s.rank, static_cast<std::byte*>(a.out->data())}},
                     s);
    sums.keep(s.rank);
    sums.run(fn, signature_of(a));
  };
}
op::Prepared prepare_scatter_cuda(const R& a) {
  return prepare_scatter_on_gpu(a.input, *a.out, a.fp32_acc, signature_of(a), state_of(a).memory->gpu);
}
void number_call(R& a) { a.call = number_of_call(a.workspace); }
op::Cost cost(const R& a) {
  const double n = static_cast<double>(a.input.nbytes());
  return {.bytes = 3 * n, .flops = static_cast<double>(a.input.numel())};
}
constexpr op::Field scatter_fields[] = {
    op::in<&R::input>("input", nullptr, op::floats, op::contiguous),
    op::attr<&R::workspace>("workspace", op::required),
    op::attr<&R::fp32_acc>("fp32_acc"),
    op::out<&R::out>("out", nullptr, op::shape<scatter_shape>, op::same_as("input"), op::contiguous),
    op::attr<&R::call>("call", op::internal),
};
constexpr op::Candidate scatter_candidates[] = {op::cuda<prepare_scatter_cuda>(), op::cpu<prepare_scatter>()};

// ---- mixed_comm ----
/// Where a rank stands among those of tensor and of data parallelism.
struct Grid {
  explicit Grid(const M& a)
      : local_tp(a.local_tp_size),
        local_dp(a.local_dp_size),
        tp(a.local_tp_size * a.inter_tp_size),
        dp(a.local_dp_size * a.inter_dp_size),
        inter_tp(a.inter_tp_size) {}
  int rank_of(int64_t t, int64_t d) const {
    const int64_t node = d / local_dp * inter_tp + t / local_tp;
    return static_cast<int>(node * local_tp * local_dp + d % local_dp * local_tp + t % local_tp);
  }
  int64_t tp_of(int64_t rank) const {
    const int64_t local = local_tp * local_dp;
    return rank % local_tp + rank / local % inter_tp * local_tp;
  }
  int64_t dp_of(int64_t rank) const {
    const int64_t local = local_tp * local_dp;
    return rank % local / local_tp + rank / local / inter_tp * local_dp;
  }
  /// The ranks of a dp_rank by tp_rank.
  std::vector<int> tp_ranks(int64_t d) const {
    std::vector<int> ranks;
    for (int64_t t = 0; t < tp; ++t) ranks.push_back(rank_of(t, d));
    return ranks;
  }
  /// The ranks of a tp_rank by dp_rank.
  std::vector<int> dp_ranks(int64_t t) const {
    std::vector<int> ranks;
    for (int64_t d = 0; d < dp; ++d) ranks.push_back(rank_of(t, d));
    return ranks;
  }
  int64_t local_tp, local_dp, tp, dp, inter_tp;
};
MixedCommOp op_of(const M& a) { return static_cast<MixedCommOp>(a.op); }
bool scatters(const M& a) {
  return op_of(a) == MixedCommOp::kReduceScatter || op_of(a) == MixedCommOp::kReduceScatterAllReduce;
}
bool gathers(const M& a) { return op_of(a) == MixedCommOp::kAllGather || op_of(a) == MixedCommOp::kAllReduceAllGather; }
void validate(const M& a) {
  const AllReduceState& s = all_reduce_state_for(a.workspace, a.x_in, "x_in");
  FI_CHECK(a.op >= 0 && a.op <= 4, ValueError, "op is ", a.op, ", but must be in [0, 4]");
  for (const int64_t n : {a.local_tp_size, a.local_dp_size, a.inter_tp_size, a.inter_dp_size})
    FI_CHECK(n >= 1 && s.world_size % n == 0, ValueError, "a size is ", n,
             ", but must be at least 1 and divide the ranks, ", s.world_size);
  const Grid grid(a);
  FI_CHECK(grid.tp * grid.dp == s.world_size, ValueError,
           "local_tp_size * local_dp_size * inter_tp_size * inter_dp_size "
           "is ",
           grid.tp * grid.dp, ", but the group has ", s.world_size, " ranks");
  check_rows(a.x_in, "x_in", scatters(a) ? grid.dp : 1, "dp_size");
  if (s.memory->window) check_room(s, scatters(a) ? grid.dp : 1, a.x_in.item_size());
}
op::Shape mixed_shape(const M& a) {
  const Grid grid(a);
  const int64_t rows = a.x_in.size(0);
  return with_rows(a.x_in, scatters(a) ? rows / grid.dp : gathers(a) ? rows * grid.dp : rows);
}
std::vector<PartialSum> sums_of(const M& a, const Grid& grid, int64_t rank) {
  auto* out = static_cast<std::byte*>(a.x_out->data());
  const int64_t d = grid.dp_of(rank), t = grid.tp_of(rank);
  std::vector<PartialSum> sums;
  switch (op_of(a)) {
    case MixedCommOp::kAllReduce: return {{grid.tp_ranks(d), 0, out}};
    case MixedCommOp::kReduceScatter: return {{grid.dp_ranks(t), d, out}};
    case MixedCommOp::kAllGather:
      for (int64_t i = 0; i < grid.dp; ++i) sums.push_back({{grid.rank_of(t, i)}, 0, out + i * a.x_in.nbytes(), true});
      return sums;
    case MixedCommOp::kAllReduceAllGather:
      for (int64_t i = 0; i < grid.dp; ++i) sums.push_back({grid.tp_ranks(i), 0, out + i * a.x_in.nbytes()});
      return sums;
    case MixedCommOp::kReduceScatterAllReduce: {
      std::vector<int> ranks;
      for (int64_t i = 0; i < grid.dp; ++i)
        for (const int r : grid.tp_ranks(i)) ranks.push_back(r);
      return {{ranks, d, out}};
    }
  }
  return sums;
}
flashinfer::comm::Signature signature_of(const M& a, const Grid& grid) {
  return signature(CallKind::kMixedComm, {a.op, grid.tp, grid.local_tp, grid.local_dp, a.x_in.size(0), a.x_in.numel(),
                                          static_cast<int64_t>(a.x_in.dtype())});
}
op::Prepared prepare_mixed_cuda(const M& a) {
  const std::shared_ptr<AllReduceGpu>& gpu = all_reduce_gpu_of(a.workspace);
  const Grid grid(a);
  MixedCommOnGpu call{.in = a.x_in,
                      .out = *a.x_out,
                      .blocks = scatters(a) ? grid.dp : 1,
                      .own = scatters(a) ? grid.dp_of(gpu->rank) : 0,
                      .sums = {},
                      .copies = op_of(a) == MixedCommOp::kAllGather,
                      .signature = signature_of(a, grid)};
  for (PartialSum& sum : sums_of(a, grid, gpu->rank)) call.sums.push_back(std::move(sum.ranks));
  return prepare_mixed_comm_on_gpu(call, gpu);
}
op::Prepared prepare_mixed(const M& a) {
  const jit::Loaded& kernel = sum_kernel(a.x_in.dtype(), true);
  if (!kernel.fn) return op::Unsupported{kernel.why_not};
  return [fn = kernel.fn, &a] {
    const AllReduceState& s = all_reduce_state_for(a.workspace, a.x_in, "x_in");
    const Grid grid(a);
    PartialSums(a.x_in, scatters(a) ? grid.dp : 1, sums_of(a, grid, s.rank), s).run(fn, signature_of(a, grid));
  };
}
void number_call(M& a) { a.call = number_of_call(a.workspace); }
op::Cost cost(const M& a) {
  const Grid grid(a);
  const double n = static_cast<double>(a.x_in.nbytes());
  return {.bytes = n * (2 + static_cast<double>(gathers(a) ? grid.dp : 1) + static_cast<double>(grid.tp)),
          .flops = static_cast<double>(a.x_in.numel() * grid.tp)};
}
constexpr op::Field mixed_fields[] = {
    op::in<&M::x_in>("x_in", nullptr, DTypeSet(DType::kF16) | DType::kBF16, op::contiguous),
    op::attr<&M::workspace>("workspace", op::required),
    op::attr<&M::op>("op", op::required),
    op::attr<&M::local_tp_size>("local_tp_size"),
    op::attr<&M::local_dp_size>("local_dp_size"),
    op::attr<&M::inter_tp_size>("inter_tp_size"),
    op::attr<&M::inter_dp_size>("inter_dp_size"),
    op::out<&M::x_out>("x_out", nullptr, op::shape<mixed_shape>, op::same_as("x_in"), op::contiguous),
    op::attr<&M::call>("call", op::internal),
};
constexpr op::Candidate mixed_candidates[] = {op::cuda<prepare_mixed_cuda>(), op::cpu<prepare_mixed>()};
}  // namespace

constinit const op::Op reduce_scatter_op = op::collective(op::define<R, validate, cost, number_call>(
    "reduce_scatter", "flashinfer.comm", "Each rank's block of the sum of all ranks' inputs.", scatter_fields,
    scatter_candidates, nullptr));
constinit const op::Op mixed_comm_op = op::collective(op::define<M, validate, cost, number_call>(
    "mixed_comm_into", "flashinfer.comm",
    "Sums over the ranks of tensor parallelism, gathered or scattered over those of data parallelism (op).",
    mixed_fields, mixed_candidates, nullptr));
}  // namespace ops::comm

Tensor reduce_scatter(const ReduceScatter& a) { return op::call(ops::comm::reduce_scatter_op, a); }
Tensor mixed_comm(const MixedComm& a) { return op::call(ops::comm::mixed_comm_op, a); }

}  // namespace flashinfer
