// SPDX-License-Identifier: Apache-2.0
// From a plan and tensors to the kernel: parameters, scratch, threads.
#include <memory>

#include "flashinfer/core/context.h"
#include "flashinfer/jit/jit.h"
#include "flashinfer/ops/common/queries.h"
#include "flashinfer/ops/common/thread_scratch.h"
#include "flashinfer/ops/mla/kernels/cpu/scratch.h"
#include "flashinfer/ops/mla/plan.h"

namespace flashinfer::mla {
namespace {

inline constexpr jit::Kernel kKernel{"flashinfer/ops/mla/kernels/cpu/mla.h", "flashinfer::cpu::mla_task",
                                     "flashinfer::MlaParams"};

MlaConfig config_of(const Plan& p, const Call& c) {
  return {.q = ops::compute_type(p.q_data_type, p.kv_data_type),
          .kv = p.kv_data_type,
          .o = p.output_dtype,
          .few = p.num_heads <= kFewHeads,
          .grouped = c.ckv_scales != nullptr};
}

MlaParams params_of(const Plan& p, const Call& c) {
  MlaParams a{};
  a.q_nope = c.q_nope.data(), a.ckv = c.ckv.data(), a.o = c.out.data();
  a.q_nope_stride_n = c.q_nope.stride(0), a.q_nope_stride_h = c.q_nope.stride(1);
  a.ckv_stride_page = c.ckv.stride(0), a.ckv_stride_n = c.ckv.stride(1);
  a.q_pe = a.q_nope, a.kpe = a.ckv;  // of width 0: rows that exist, of which nothing is read
  if (p.head_dim_kpe) {
    a.q_pe = c.q_pe.data(), a.kpe = c.kpe.data();
    a.q_pe_stride_n = c.q_pe.stride(0), a.q_pe_stride_h = c.q_pe.stride(1);
    a.kpe_stride_page = c.kpe.stride(0), a.kpe_stride_n = c.kpe.stride(1);
  }
  a.o_stride_n = c.out.stride(0), a.o_stride_h = c.out.stride(1);
  if (c.lse) a.lse = c.lse->data_as<float>(), a.lse_stride_n = c.lse->stride(0), a.lse_stride_h = c.lse->stride(1);
  a.num_heads = static_cast<int32_t>(p.num_heads), a.dim_ckv = static_cast<int32_t>(p.head_dim_ckv);
  a.dim_kpe = static_cast<int32_t>(p.head_dim_kpe), a.page_size = static_cast<int32_t>(p.page_size);
  a.causal = p.causal;
  a.qo_indptr = p.qo_indptr.data_as<int32_t>(), a.kv_indptr = p.kv_indptr.data_as<int32_t>();
  a.kv_indices = p.kv_indices.data_as<int32_t>(), a.kv_len = p.kv_len.data_as<int32_t>();
  a.scale = static_cast<float>(c.scale), a.kpe_ratio = static_cast<float>(c.kpe_ratio),
  a.v_scale = static_cast<float>(c.v_scale);
  a.lse_factor = c.natural_lse ? 0.69314718f : 1.0f;
  if (c.sinks) a.sinks = c.sinks->data_as<float>();
  if (c.ckv_scales) a.ckv_scales = c.ckv_scales->data_as<float>();
  return a;
}

void run_tasks(jit::CpuFn fn, const MlaParams& p, int64_t n, bool merges) {
  const int64_t bytes = cpu::mla::Scratch(nullptr, p.dim_ckv, p.dim_kpe).bytes;
  auto task = [&](int64_t i) {
    MlaParams mine = p;
    mine.scratch = ops::thread_scratch(bytes);
    fn(&mine, merges ? -1 - i : i);
  };
  if (n == 1) return task(0);
  if (n > 1) parallel_for(n, task);
}

}  // namespace

namespace {
/// A run that is ready; the plan outlives it, or is `restored`.
struct Run {
  std::shared_ptr<const Plan> restored;
  const Plan* plan;
  jit::CpuFn fn;
  MlaParams params;
  TensorView q_nope, q_pe;
  DType compute_type;  // of queries

  void operator()() const;
};

void Run::operator()() const {
  const Plan& p = *plan;
  MlaParams a = params;
  Tensor nope, pe, partial;
  if (compute_type != p.q_data_type) {
    nope = ops::converted_queries(q_nope, compute_type);
    a.q_nope = a.q_pe = nope.data(), a.q_nope_stride_n = p.num_heads * a.dim_ckv, a.q_nope_stride_h = a.dim_ckv;
    if (p.head_dim_kpe) {
      pe = ops::converted_queries(q_pe, compute_type);
      a.q_pe = pe.data(), a.q_pe_stride_n = p.num_heads * a.dim_kpe, a.q_pe_stride_h = a.dim_kpe;
    }
  }
  if (p.work.partial_rows) {
    const int64_t width = padded(a.dim_ckv);
    partial = Tensor::empty({p.work.partial_rows, width + 3}, DType::kF32);
    a.partial_o = partial.data_as<float>();
    a.softmax_state = a.partial_o + p.work.partial_rows * width;
  }
  run_tasks(fn, a, static_cast<int64_t>(p.work.works.size()), false);
  run_tasks(fn, a, static_cast<int64_t>(p.work.merges.size()), true);
}
}  // namespace

op::Prepared prepare(const Plan& planned, const Call& c) {
  const MlaConfig config = config_of(planned, c);
  const jit::Loaded& kernel = jit::cpu_kernel<kKernel>(config);
  if (!kernel.fn) return op::Unsupported{kernel.why_not};
  const std::shared_ptr<const Plan> read = restored(planned);
  const Plan& p = read ? *read : planned;
  Run run{.restored = read,
          .plan = &p,
          .fn = kernel.fn,
          .params = params_of(p, c),
          .q_nope = c.q_nope,
          .q_pe = c.q_pe,
          .compute_type = config.q};
  run.params.work = p.work.works.data(), run.params.merges = p.work.merges.data();
  return run;
}

}  // namespace flashinfer::mla
