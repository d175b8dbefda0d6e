// SPDX-License-Identifier: Apache-2.0
#include "flashinfer/ops/comm/quantized.h"

#include "flashinfer/ops/comm/kernels/quantized_sum_params.h"
#include "flashinfer/ops/comm/op.h"
#include "flashinfer/ops/comm/slots.h"

namespace flashinfer {
namespace ops::comm {
namespace {
using A = QuantizedAllReduce;

constexpr const char* kHeader = "flashinfer/ops/comm/kernels/cpu/quantized_sum.h";
inline constexpr jit::Kernel kQuantize{kHeader, "flashinfer::cpu::quantize_own", "flashinfer::QuantizedSumParams"};
inline constexpr jit::Kernel kSum{kHeader, "flashinfer::cpu::sum_quantized", "flashinfer::QuantizedSumParams"};
constexpr int64_t kMostGroup = 1 << 20;

/// Bytes of `groups` groups: their codes, then their scales.
int64_t group_bytes(const A& a) { return a.scale_group + 4; }
void validate(const A& a) {
  const AllReduceState& s = all_reduce_state_for(a.workspace, a.inp, "inp");
  const std::shared_ptr<AllReduceGpu>& gpu = s.memory->gpu;
  const int64_t slot = gpu ? gpu->slot : s.memory->slot;
  FI_CHECK(a.inp.numel() % 8 == 0, ValueError, "inp is ", to_string(a.inp),
           ", but its elements must be a multiple of 8");
  FI_CHECK(a.scale_group >= 8 && a.scale_group <= kMostGroup && a.scale_group % 8 == 0, ValueError, "scale_group is ",
           a.scale_group, ", but must be a multiple of 8 in [8, ", kMostGroup, "]");
  const bool whole = gpu && !gpu->memory;  // NCCL has no slots
  FI_CHECK(whole || slot >= group_bytes(a), ValueError, "workspace moves ", slot,
           " bytes at a time, but a group needs ", group_bytes(a),
           ": make it for larger inputs (max_token_num, hidden_dim)");
}

flashinfer::comm::Signature signature_of(const A& a) {
  return signature(CallKind::kQuantizedAllReduce, {a.inp.numel(), a.scale_group});
}

class Sum {
 public:
  Sum(const A& a, const AllReduceState& s, jit::CpuFn quantize, jit::CpuFn sum)
      : a_(a),
        s_(s),
        m_(*s.memory),
        quantize_(quantize),
        sum_(sum),
        groups_(ceil_div(a.inp.numel(), a.scale_group)),
        groups_a_piece_(std::max<int64_t>(1, std::min(m_.slot / group_bytes(a), groups_))) {}
  void run() {
    if (s_.world_size == 1) {
      for (int64_t k = 0; k * groups_a_piece_ < groups_; ++k) quantize(k, 0), finish(k, 0);
      return;
    }
    move_in_pieces(
        s_, std::max<int64_t>(1, ceil_div(groups_, groups_a_piece_)), signature_of(a_),
        [&](int64_t k, uint64_t phase) { quantize(k, phase); }, [] {},
        [&](int64_t k, uint64_t phase) { finish(k, phase); });
  }

 private:
  int64_t first(int64_t k) const { return std::min(a_.inp.numel(), k * groups_a_piece_ * a_.scale_group); }
  QuantizedSumParams params_of(int64_t k) const {
    QuantizedSumParams p{};
    p.n = first(k + 1) - first(k), p.group = a_.scale_group;
    p.groups_per_task = rows_per_task(groups_a_piece_, 3 * a_.scale_group);
    return p;
  }
  void place(QuantizedSumParams& p, int i, int rank, uint64_t phase) const {
    std::byte* at = m_.window->of(rank) + m_.input_offset(phase, groups_a_piece_ * group_bytes(a_));
    p.codes[i] = reinterpret_cast<uint8_t*>(at);
    p.scales[i] = reinterpret_cast<float*>(at + groups_a_piece_ * a_.scale_group);
  }
  void launch(jit::CpuFn fn, const QuantizedSumParams& p) const {
    run_rows(fn, p, ceil_div(p.n, p.group), p.groups_per_task);
  }
  void quantize(int64_t k, uint64_t phase) const {
    QuantizedSumParams p = params_of(k);
    p.x = static_cast<const std::byte*>(a_.inp.data()) + first(k) * a_.inp.item_size();
    place(p, 0, static_cast<int>(s_.rank), phase);
    launch(quantize_, p);
    m_.window->put_to_all(m_.input_offset(phase, groups_a_piece_ * group_bytes(a_)), groups_a_piece_ * group_bytes(a_));
  }
  void finish(int64_t k, uint64_t phase) const {
    QuantizedSumParams p = params_of(k);
    p.ranks = static_cast<int>(s_.world_size);
    p.out = static_cast<std::byte*>(a_.output->data()) + first(k) * a_.inp.item_size();
    for (int r = 0; r < p.ranks; ++r) place(p, r, r, phase);
    launch(sum_, p);
  }

  const A& a_;
  const AllReduceState& s_;
  const AllReduceMemory& m_;
  jit::CpuFn quantize_, sum_;
  int64_t groups_, groups_a_piece_;
};
op::Prepared prepare(const A& a) {
  const jit::Loaded& quantize = jit::cpu_kernel<kQuantize>(QuantizedSumConfig{a.inp.dtype()});
  if (!quantize.fn) return op::Unsupported{quantize.why_not};
  const jit::Loaded& sum = jit::cpu_kernel<kSum>(QuantizedSumConfig{a.inp.dtype()});
  if (!sum.fn) return op::Unsupported{sum.why_not};
  return [quantize = quantize.fn, sum = sum.fn, &a] {
    Sum(a, all_reduce_state_for(a.workspace, a.inp, "inp"), quantize, sum).run();
  };
}
op::Prepared prepare_cuda(const A& a) {
  return prepare_quantized_sum_on_gpu(a.inp, *a.output, a.scale_group, signature_of(a), all_reduce_gpu_of(a.workspace));
}
op::Shape out_shape(const A& a) {
  op::Shape s{a.inp.rank(), {}};
  for (int i = 0; i < s.rank; ++i) s.size[i] = a.inp.size(i);
  return s;
}
void number_call(A& a) { a.call = number_of_call(a.workspace); }
op::Cost cost(const A& a) {
  const double n = static_cast<double>(a.inp.numel()),
               w = static_cast<double>(all_reduce_state_for(a.workspace, a.inp, "inp").world_size);
  return {.bytes = n * (5 + w), .flops = n * (2 * w + 6)};
}

constexpr op::Field fields[] = {
    op::in<&A::inp>("inp", nullptr, DType::kBF16, op::contiguous),
    op::attr<&A::workspace>("workspace", op::required),
    op::attr<&A::scale_group>("scale_group"),
    op::out<&A::output>("output", nullptr, op::shape<out_shape>, op::same_as("inp"), op::contiguous,
                        op::may_alias("inp")),
    op::attr<&A::call>("call", op::internal),
};
constexpr op::Candidate candidates[] = {op::cuda<prepare_cuda>(), op::cpu<prepare>()};
}  // namespace

constinit const op::Op quantized_all_reduce_op = op::collective(op::define<A, validate, cost, number_call>(
    "quantized_all_reduce_into", "flashinfer.comm",
    "The sum of all ranks' inputs, which are sent as e4m3 codes with a scale for each group of elements.", fields,
    candidates, nullptr));
}  // namespace ops::comm

Tensor quantized_all_reduce(const QuantizedAllReduce& a) { return op::call(ops::comm::quantized_all_reduce_op, a); }

}  // namespace flashinfer
