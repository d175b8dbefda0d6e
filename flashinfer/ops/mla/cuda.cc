// SPDX-License-Identifier: Apache-2.0
// Runs of plans on GPUs. The plan's arrays go there as those of attention do: it is attention with one KV head.
#include <algorithm>
#include <array>
#include <memory>

#include "flashinfer/core/context.h"
#include "flashinfer/jit/cuda.h"
#include "flashinfer/ops/attention/cuda/arrays.h"
#include "flashinfer/ops/common/queries.h"
#include "flashinfer/ops/mla/cuda_launch.h"
#include "flashinfer/ops/mla/plan.h"

namespace flashinfer::mla {
namespace {

inline constexpr jit::Kernel kKernel{"flashinfer/ops/mla/kernels/cuda/mla.cuh", "flashinfer::cu::mla",
                                     "flashinfer::MlaCudaParams"};
inline constexpr jit::Kernel kCores{"flashinfer/ops/mla/kernels/cuda/mla_simt.cuh", "flashinfer::cu::mla_cores",
                                    "flashinfer::MlaCudaParams"};
inline constexpr jit::Kernel kMerge{"flashinfer/ops/attention/kernels/cuda/attention.cuh",
                                    "flashinfer::cu::attention_merge", "flashinfer::AttentionCudaParams"};

/// The plan as one of attention, with the same arrays.
attention::PlanRef attention_plan(const Plan& p, DType output) {
  attention::Plan a;
  a.batch_size = p.batch_size, a.nnz_qo = p.nnz_qo, a.page_size = p.page_size;
  a.num_qo_heads = p.num_heads, a.num_kv_heads = 1;
  a.head_dim_qk = p.head_dim_ckv + p.head_dim_kpe, a.head_dim_vo = p.head_dim_ckv;
  a.q_data_type = p.q_data_type, a.kv_data_type = p.kv_data_type, a.o_data_type = output;
  a.causal = p.causal;
  a.qo_indptr = p.qo_indptr, a.kv_indptr = p.kv_indptr, a.kv_indices = p.kv_indices, a.kv_len = p.kv_len;
  a.max_page = p.max_page;
  return attention::owned(std::move(a));
}

ops::KvPlane plane_of(const TensorView& t) {
  ops::KvPlane k{.data = t.data(), .dtype = t.dtype(), .pages = t.size(0), .page_size = t.size(1), .heads = 1};
  k.dim = t.size(2), k.stride_page = t.stride(0), k.stride_n = t.stride(1);
  return k;
}
MlaCudaParams params_of(const attention::Plan& p, const Call& c, int64_t kpe) {
  attention::Call call;
  call.q = c.q_nope, call.out = c.out;
  if (c.lse) call.lse = *c.lse;
  call.natural_lse = c.natural_lse, call.sm_scale = c.scale, call.v_scale = c.v_scale, call.sinks = c.sinks;
  call.kv.k = plane_of(c.ckv), call.kv.v = plane_of(kpe ? c.kpe : c.ckv);
  MlaCudaParams a{};
  a.base.a = attention::params_of(p, call);
  a.base.a.v_head_scales = c.v_scale_on_device;
  a.scale = c.scale_on_device, a.kpe_ratio = static_cast<float>(c.kpe_ratio);
  a.q_pe = kpe ? c.q_pe.data() : c.q_nope.data();  // of width 0: rows that exist, of which nothing is read
  if (kpe) a.q_pe_stride_n = c.q_pe.stride(0), a.q_pe_stride_h = c.q_pe.stride(1);
  if (c.ckv_scales) a.ckv_scales = c.ckv_scales->data_as<float>();
  return a;
}

/// The kernels for requests of few and of many rows.
struct Kind {
  MlaCudaConfig config;
  const jit::CudaLoaded *kernel = nullptr, *merge = nullptr;
};

/// A run that is ready: all but the addresses of what is on the device from the first run on.
struct CudaRun {
  attention::PlanRef plan;
  MlaCudaParams params;
  MlaCoresConfig cores;
  AttentionMergeCudaConfig merge;
  std::array<Kind, 2> kinds;  // of the parts
  std::shared_ptr<attention::OnDevice> arrays;

  void operator()() const;
};

void CudaRun::operator()() const {
  MlaCudaParams all = params;
  attention::make_ready(*plan, arrays);
  attention::point_at(all.base.a, *arrays);
  all.base.a.kv_indices = arrays->at<int32_t>(arrays->kv_indices);
  const auto partial_of = [&](int64_t states) {
    return Tensor::empty({states * (plan->head_dim_vo + 1)}, DType::kF32, arrays->device);
  };
  attention::for_parts(all.base, *arrays, plan->head_dim_vo, partial_of, [&](size_t i, const attention::Part& part) {
    const Kind& k = kinds[i];
    const auto page_size = static_cast<uint32_t>(plan->page_size), keys = static_cast<uint32_t>(k.config.keys);
    all.base.tile_pages = keys / page_size, all.base.tile_entries = keys % page_size;
    const cuda::Launch l = arrays->cores ? cuda::mla_launch(cores.threads, cores.shared_bytes(), part.tiles)
                                         : cuda::mla_launch(k.config.threads, k.config.shared_bytes(), part.tiles);
    jit::launch(*k.kernel, all, l);
    if (part.cuts) jit::launch(*k.merge, all.base, cuda::attention_merge_launch(merge, all.base.a, part.cuts, true));
  });
  attention::used_on_current_stream(*arrays);
}

int64_t most_rows(const Plan& p) {
  const int32_t* qo = p.qo_indptr.data_as<int32_t>();
  int64_t most = 0;
  for (int64_t b = 0; b < p.batch_size; ++b) most = std::max<int64_t>(most, qo[b + 1] - qo[b]);
  return most * p.num_heads;
}

}  // namespace

op::Prepared prepare_cuda(const Plan& planned, const Call& c) {
  if (planned.use_cuda_graph)
    return op::Unsupported{"use_cuda_graph=True is not supported for latent attention on GPUs"};
  const std::shared_ptr<const Plan> read = restored(planned);
  const Plan& p = read ? *read : planned;  // its arrays are shared with the plan of attention
  const Device device = c.q_nope.device();
  const cuda::MlaShape shape{.q = ops::compute_type(p.q_data_type, p.kv_data_type),
                             .query = p.q_data_type,
                             .kv = p.kv_data_type,
                             .o = c.out.dtype(),
                             .ckv = p.head_dim_ckv,
                             .kpe = p.head_dim_kpe,
                             .grouped = c.ckv_scales != nullptr};
  const jit::Arch& arch = jit::arch_of_number(jit::arch_number(device));
  const attention::PlanRef plan = attention_plan(p, shape.o);
  CudaRun run{.plan = plan,
              .params = params_of(*plan, c, p.head_dim_kpe),
              .cores = cuda::mla_cores_config(shape),
              .merge = cuda::attention_merge_config(attention::cuda_config(*plan), p.head_dim_ckv),
              .kinds = {},
              .arrays = nullptr};
  std::string refusal = cuda::mla_refusal(shape, arch.async_copy);
  std::array<MlaCudaConfig, 2> configs;
  for (const bool few : {true, false}) configs[!few] = cuda::mla_config(shape, few, most_rows(p), arch.shared_bytes);
  const int copied = cuda::mla_copied(configs[0], run.params);
  for (MlaCudaConfig& config : configs) config.copied = static_cast<short>(copied);
  if (refusal.empty() && copied == 0) refusal = "rows of queries and caches must begin at 16 bytes, of 8-bit ones at 8";
  const bool cores = !refusal.empty();
  if (cores)
    if (const std::string r = cuda::mla_cores_refusal(shape); !r.empty())
      return op::Unsupported{refusal + "; without tensor cores: " + r};
  std::array<attention::Part, 2> parts{attention::Part{.few = true}, attention::Part{}};
  for (size_t i = 0; i < 2; ++i) parts[i].tile_rows = cores ? run.cores.rows : configs[i].rows;
  const bool cuts = p.head_dim_ckv % 4 == 0 && cuda::mla_output_aligned(shape.o, run.params.base.a);
  run.arrays = attention::arrays_of(*plan, parts, cores, device, cuts ? cuda::mla_chunk : cuda::mla_uncut);
  std::string why_not;
  const auto found = [&](const jit::CudaLoaded& kernel) {
    if (why_not.empty()) why_not = kernel.why_not;
    return &kernel;
  };
  for (size_t i = 0; i < run.arrays->parts.size(); ++i) {
    const attention::Part& part = run.arrays->parts[i];
    Kind& k = run.kinds[i];
    k.config = configs[!part.few];
    k.kernel = found(cores ? jit::cuda_kernel<kCores>(run.cores, device) : jit::cuda_kernel<kKernel>(k.config, device));
    if (part.cuts) k.merge = found(jit::cuda_kernel<kMerge>(run.merge, device));
  }
  if (!why_not.empty()) return op::Unsupported{why_not};
  return run;
}

}  // namespace flashinfer::mla
