// SPDX-License-Identifier: Apache-2.0
#include "flashinfer/ops/comm/context_parallel.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <vector>

#include "flashinfer/core/int_math.h"
#include "flashinfer/ops/comm/context_parallel_ops.h"
#include "flashinfer/ops/comm/gpu_context_parallel.h"
#include "flashinfer/ops/comm/kernels/cp_reduce_params.h"
#include "flashinfer/ops/comm/peers.h"
#include "flashinfer/ops/common/rows.h"

namespace flashinfer {
namespace ops::comm {
namespace {
using A = DecodeCpAlltoall;
using R = DecodeCpLseReduce;
constexpr DTypeSet kHalves = DTypeSet(DType::kF16) | DType::kBF16;
inline constexpr jit::Kernel kReduce{"flashinfer/ops/comm/kernels/cpu/cp_reduce.h", "flashinfer::cpu::cp_reduce",
                                     "flashinfer::CpReduceParams"};

/// A tensor of rows of `ranks` slices of `bytes`.
struct Slices {
  std::byte* data;
  int64_t bytes;
};
/// Sends slice q of each row to rank q, as many rows at a time as fit into half of the memory: the halves are used in
/// turn, so each piece needs one wait. consume(first, n, at): at[i][p] are n rows of tensor i from rank p.
template <class Consume>
void exchange(const Peers& p, const flashinfer::comm::Signature& call, int64_t rows, const std::vector<Slices>& in,
              Consume consume) {
  int64_t row = 0;
  for (const Slices& s : in) row += s.bytes;
  const int64_t half = p.bytes() / 2 / 64 * 64, most = half / (row * p.size);
  for (int64_t first = 0; first == 0 || first < rows; first += most) {
    const int64_t n = std::min(most, rows - first);
    const int64_t base = static_cast<int64_t>((p.window->phase() + 1) % 2) * half;
    std::vector<std::vector<const std::byte*>> at;
    int64_t offset = base;
    for (const Slices& s : in) {
      at.emplace_back();
      for (int64_t q = 0; q < p.size; ++q, offset += n * s.bytes) {
        for (int64_t r = 0; r < n; ++r)
          std::memcpy(p.own() + offset + r * s.bytes, s.data + ((first + r) * p.size + q) * s.bytes,
                      static_cast<size_t>(s.bytes));
        p.window->put(static_cast<int>(q), p.rank, offset, n * s.bytes);
      }
      const int64_t mine = offset - (p.size - p.rank) * n * s.bytes;
      for (int64_t q = 0; q < p.size; ++q) at.back().push_back(p.of(q) + mine);
    }
    p.meet(call);
    consume(first, n, at);
  }
}
int64_t rows_of(const TensorView& t, int trailing) {
  int64_t n = 1;
  for (int i = 0; i + trailing < t.rank(); ++i) n *= t.size(i);
  return n;
}
void check_slices(const TensorView& o, int64_t cp_size) {
  FI_CHECK(o.rank() >= 2 && o.size(-2) == cp_size, ValueError, "partial_o is ", to_string(o), ", but must be [..., ",
           cp_size, " (cp_size), head_dim]");
  FI_CHECK(o.size(-1) > 0 && o.size(-1) * o.item_size() % 16 == 0, ValueError, "partial_o is ", to_string(o),
           ", but its head_dim rows must be 16-byte aligned");
}
/// On GPUs exchanges have room for a row of any size.
void check_room(const Peers& p, int64_t row_bytes) {
  FI_CHECK(p.gpu || p.bytes() / 2 / 64 * 64 >= row_bytes * p.size, ValueError, "workspace has ", p.bytes(),
           " bytes a rank, but one row needs ", 2 * row_bytes * p.size);
}
Peers peers_of(const A& a) { return ops::comm::peers_of(a.workspace, a.cp_rank, a.cp_size, "cp_rank", "cp_size"); }
Peers peers_of(const R& a) { return ops::comm::peers_of(a.workspace, a.cp_rank, a.cp_size, "cp_rank", "cp_size"); }

// ---- decode_cp_a2a_alltoall ----
Slices slices_of(const TensorView& t) { return {static_cast<std::byte*>(t.data()), t.size(-1) * t.item_size()}; }
void validate(const A& a) {
  check_slices(a.partial_o, a.cp_size);
  const TensorView& s = a.softmax_stats;
  FI_CHECK(s.rank() == a.partial_o.rank() && s.size(-1) >= 2 && s.size(-1) % 2 == 0, ValueError, "softmax_stats is ",
           to_string(s), ", but must be [..., ", a.cp_size, ", an even number of at least 2]");
  check_room(peers_of(a), slices_of(a.partial_o).bytes + slices_of(s).bytes);
}
flashinfer::comm::Signature signature_of(const A& a) {
  return signature(CallKind::kDcpAlltoall, {rows_of(a.partial_o, 2), a.partial_o.size(-1),
                                            static_cast<int64_t>(a.partial_o.dtype()), a.softmax_stats.size(-1)});
}
void alltoall(const A& a) {
  const Peers p = peers_of(a);
  const int64_t rows = rows_of(a.partial_o, 2);
  const std::vector<Slices> in{slices_of(a.partial_o), slices_of(a.softmax_stats)},
      out{slices_of(*a.out_o), slices_of(*a.out_stats)};
  exchange(p, signature_of(a), rows, in,
           [&](int64_t first, int64_t n, const std::vector<std::vector<const std::byte*>>& at) {
             for (size_t i = 0; i < 2; ++i)
               for (int64_t q = 0; q < p.size; ++q)
                 for (int64_t r = 0; r < n; ++r)
                   std::memcpy(out[i].data + ((first + r) * p.size + q) * out[i].bytes,
                               at[i][static_cast<size_t>(q)] + r * out[i].bytes, static_cast<size_t>(out[i].bytes));
           });
}
op::Prepared prepare_alltoall_cuda(const A& a) {
  return prepare_slices_on_gpu({{a.partial_o, *a.out_o}, {a.softmax_stats, *a.out_stats}}, signature_of(a),
                               peers_of(a).gpu);
}
void fill_internal(A& a) {
  a.group = group_of(a.workspace);
  a.call = number_of_call(a.workspace);
}

constexpr op::Field alltoall_fields[] = {
    op::in<&A::partial_o>("partial_o", "... c d", kHalves, op::contiguous),
    op::in<&A::softmax_stats>("softmax_stats", "... c s", DType::kF32, op::contiguous),
    op::scratch<&A::workspace>("workspace", nullptr, DType::kI64, op::required),
    op::attr<&A::cp_rank>("cp_rank", op::required),
    op::attr<&A::cp_size>("cp_size", op::required),
    op::attr<&A::enable_pdl>("enable_pdl"),
    op::out<&A::out_o>("out_o", "... c d", op::same_as("partial_o"), op::contiguous),
    op::out<&A::out_stats>("out_stats", "... c s", DType::kF32, op::contiguous),
    op::attr<&A::group>("group", op::internal),
    op::attr<&A::call>("call", op::internal),
};
constexpr op::Candidate alltoall_candidates[] = {op::cuda<prepare_alltoall_cuda>(), op::cpu<alltoall>()};

// ---- decode_cp_a2a_lse_reduce ----
void validate(const R& a) {
  check_slices(a.partial_o, a.cp_size);
  check_room(peers_of(a), slices_of(a.partial_o).bytes + 4);
}
/// weights[r, p] of n rows.
void weigh(const std::vector<const std::byte*>& lse, int64_t n, bool base2, std::vector<float>& weights) {
  const auto ranks = static_cast<int64_t>(lse.size());
  weights.resize(static_cast<size_t>(n * ranks));
  for (int64_t r = 0; r < n; ++r) {
    float* w = weights.data() + r * ranks;
    float most = -INFINITY;
    for (int64_t p = 0; p < ranks; ++p) {
      std::memcpy(w + p, lse[static_cast<size_t>(p)] + 4 * r, 4);
      if (!(w[p] < INFINITY)) w[p] = -INFINITY;  // NaN too
      most = std::max(most, w[p]);
    }
    double sum = 0;
    const auto power = [&](float x) { return base2 ? std::exp2(double{x} - most) : std::exp(double{x} - most); };
    for (int64_t p = 0; p < ranks; ++p) sum += most == -INFINITY ? 0 : power(w[p]);
    for (int64_t p = 0; p < ranks; ++p) w[p] = sum == 0 ? 0 : static_cast<float>(power(w[p]) / sum);
  }
}
bool has_base2(const R& a) { return a.lse_mode == "base2"; }
flashinfer::comm::Signature signature_of(const R& a) {
  return signature(CallKind::kDcpReduce, {rows_of(a.partial_o, 2), a.partial_o.size(-1),
                                          static_cast<int64_t>(a.partial_o.dtype()), has_base2(a) ? 2 : 0});
}
void reduce(jit::CpuFn fn, const R& a) {
  const Peers p = peers_of(a);
  const int64_t rows = rows_of(a.partial_o, 2), d = a.partial_o.size(-1), item = a.partial_o.item_size();
  const bool base2 = has_base2(a);
  const std::vector<Slices> in{slices_of(a.partial_o), {static_cast<std::byte*>(a.partial_lse.data()), 4}};
  std::vector<float> weights;
  exchange(p, signature_of(a), rows, in,
           [&](int64_t first, int64_t n, const std::vector<std::vector<const std::byte*>>& at) {
             weigh(at[1], n, base2, weights);
             CpReduceParams k{.weights = weights.data(), .ranks = p.size, .rows = n, .d = d};
             std::copy(at[0].begin(), at[0].end(), k.source);
             k.out = static_cast<std::byte*>(a.out->data()) + first * d * item;
             k.rows_per_task = rows_per_task(n, (p.size + 1) * d * item);
             run_rows(fn, k, n, k.rows_per_task);
           });
}
op::Prepared prepare(const R& a) {
  return with_kernel<kReduce>(CpReduceConfig{a.partial_o.dtype()}, [&a](jit::CpuFn fn) { reduce(fn, a); });
}
op::Prepared prepare_reduce_cuda(const R& a) {
  return prepare_cp_reduce_on_gpu(a.partial_o, a.partial_lse, has_base2(a), *a.out, signature_of(a), peers_of(a).gpu);
}
void fill_internal(R& a) {
  a.group = group_of(a.workspace);
  a.call = number_of_call(a.workspace);
}

constexpr op::Field reduce_fields[] = {
    op::in<&R::partial_o>("partial_o", "... c d", kHalves, op::contiguous),
    op::in<&R::partial_lse>("partial_lse", "... c", DType::kF32, op::contiguous),
    op::scratch<&R::workspace>("workspace", nullptr, DType::kU8, op::required),
    op::attr<&R::cp_rank>("cp_rank", op::required),
    op::attr<&R::cp_size>("cp_size", op::required),
    op::attr<&R::lse_mode>("lse_mode", op::choices("base2|basee")),
    op::result<&R::out>("out", "... d", op::same_as("partial_o")),
    op::attr<&R::group>("group", op::internal),
    op::attr<&R::call>("call", op::internal),
};
constexpr op::Candidate reduce_candidates[] = {op::cuda<prepare_reduce_cuda>(), op::cpu<prepare>()};
}  // namespace

constinit const op::Op decode_cp_alltoall_op = op::collective(op::define<A, validate, nullptr, fill_internal>(
    "decode_cp_a2a_alltoall_into", "flashinfer.comm",
    "Exchanges partial attention outputs and their statistics: out[..., p, :] is rank p's slice for this rank.",
    alltoall_fields, alltoall_candidates, nullptr));
constinit const op::Op decode_cp_reduce_op = op::collective(op::define<R, validate, nullptr, fill_internal>(
    "decode_cp_a2a_lse_reduce", "flashinfer.comm",
    "Exchanges partial attention outputs and adds them, weighted by their LSE.", reduce_fields, reduce_candidates,
    nullptr));
}  // namespace ops::comm

std::pair<Tensor, Tensor> decode_cp_a2a_alltoall(const DecodeCpAlltoall& a) {
  return op::call(ops::comm::decode_cp_alltoall_op, a);
}
Tensor decode_cp_a2a_lse_reduce(const DecodeCpLseReduce& a) { return op::call(ops::comm::decode_cp_reduce_op, a); }

}  // namespace flashinfer
