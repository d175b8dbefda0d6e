// SPDX-License-Identifier: Apache-2.0
// Runs of plans on GPUs. The plan's arrays go there as those of attention do: it is attention with one KV head.
#include <array>
#include <memory>

#include "flashinfer/core/context.h"
#include "flashinfer/jit/cuda.h"
#include "flashinfer/ops/attention/cuda/arrays.h"
#include "flashinfer/ops/mla/cuda_graph.h"
#include "flashinfer/ops/mla/plan.h"

namespace flashinfer::mla {
namespace {

inline constexpr jit::Kernel kKernel{"flashinfer/ops/mla/kernels/cuda/mla.cuh", "flashinfer::cu::mla",
                                     "flashinfer::MlaCudaParams"};
inline constexpr jit::Kernel kCores{"flashinfer/ops/mla/kernels/cuda/mla_simt.cuh", "flashinfer::cu::mla_cores",
                                    "flashinfer::MlaCudaParams"};

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
  call.kv.k = plane_of(c.ckv), call.kv.v = plane_of(kpe && !c.packed ? c.kpe : c.ckv);
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
  const jit::CudaLoaded* kernel = nullptr;
};

/// A run that is ready: all but the addresses of what is on the device from the first run on.
struct CudaRun {
  attention::PlanRef plan;
  MlaCudaParams params;
  MlaCoresConfig cores;
  int64_t pages;                                  // of the cache
  std::array<Kind, 2> kinds{};                    // of the parts
  std::shared_ptr<attention::OnDevice> arrays{};  // or
  std::shared_ptr<attention::GraphArrays> graph{};

  void operator()() const;

 private:
  template <class Arrays, class PartialOf>
  void run_on(const Arrays& d, const int32_t* pages_of, const PartialOf& partial_of) const;
};

template <class Arrays, class PartialOf>
void CudaRun::run_on(const Arrays& d, const int32_t* pages_of, const PartialOf& partial_of) const {
  MlaCudaParams all = params;
  attention::point_at(all.base.a, d);
  all.base.a.kv_indices = pages_of;
  attention::for_parts(
      all.base, d, plan->head_dim_vo, partial_of,
      [&](size_t i, const attention::Part& part, const Tensor&, int64_t words) {
        const Kind& k = kinds[i];
        const Tensor counters = attention::counters_of(d.device, words);
        if (counters.defined()) all.base.counters = counters.data_as<uint32_t>();
        const auto page_size = static_cast<uint32_t>(plan->page_size), keys = static_cast<uint32_t>(k.config.keys);
        all.base.tile_pages = keys / page_size, all.base.tile_entries = keys % page_size;
        const cuda::Launch l = d.cores ? cuda::mla_launch(cores.threads, cores.shared_bytes(), part.tiles)
                                       : cuda::mla_launch(k.config.threads, k.config.shared_bytes(), part.tiles);
        jit::launch(*k.kernel, all, l);
      });
}

void CudaRun::operator()() const {
  if (graph) {
    graph->pages = pages;
    return run_on(*graph, graph->pages_of_caller ? graph->pages_of_caller : graph->at<int32_t>(graph->kv_indices),
                  [&](int64_t) { return graph->partial; });
  }
  attention::make_ready(*plan, arrays);
  run_on(*arrays, arrays->at<int32_t>(arrays->kv_indices), [&](int64_t states) {
    return Tensor::empty({states * (plan->head_dim_vo + 1)}, DType::kF32, arrays->device);
  });
  attention::used_on_current_stream(*arrays);
}

/// A plan of use_cuda_graph=True that was read from a dump has no buffers, and runs as any other.
std::string graph_refusal(const Plan& p, Device device) {
  if (!p.use_cuda_graph || (!p.graph && !p.buffers.last_page_len.defined())) return {};
  const Device buffers = p.graph ? p.graph->arrays->device : kCpu;
  if (buffers == device) return {};
  return str("the buffers of use_cuda_graph=True are on ", to_string(buffers), ", but q_nope is on ",
             to_string(device));
}

}  // namespace

op::Prepared prepare_cuda(const Plan& planned, const Call& c) {
  const std::shared_ptr<const Plan> read = restored(planned);
  const Plan& p = read ? *read : planned;  // its arrays are shared with the plan of attention
  const Device device = c.q_nope.device();
  if (std::string why = graph_refusal(p, device); !why.empty()) return op::Unsupported{std::move(why)};
  cuda::MlaShape shape = shape_of(p);
  shape.o = c.out.dtype(), shape.grouped = c.ckv_scales != nullptr, shape.packed = c.packed;
  const jit::Arch& arch = jit::arch_of_number(jit::arch_number(device));
  const attention::PlanRef plan = attention::owned(attention_plan(p, shape.o));
  CudaRun run{.plan = plan,
              .params = params_of(*plan, c, p.head_dim_kpe),
              .cores = cuda::mla_cores_config(shape),
              .pages = c.ckv.size(0)};
  std::array<MlaCudaConfig, 2> configs =
      configs_of(shape, (p.graph ? p.graph->most_tokens : most_tokens(p)) * p.num_heads, arch);
  const int copied = cuda::mla_copied(configs[0], run.params);
  for (MlaCudaConfig& config : configs) config.copied = static_cast<short>(copied);
  std::string refusal = cuda::mla_refusal(shape, arch.async_copy);
  if (refusal.empty() && copied == 0) refusal = "rows of queries and caches must begin at 16 bytes, of 8-bit ones at 8";
  const bool cores = !refusal.empty();
  if (cores)
    if (const std::string r = cuda::mla_cores_refusal(shape, run.params.base.a); !r.empty())
      return op::Unsupported{refusal + "; without tensor cores: " + r};
  const bool cuts = p.head_dim_ckv % 4 == 0 && cuda::mla_output_aligned(shape.o, run.params.base.a);
  if (p.graph) {
    if (p.graph->arrays->cores != cores || (!cuts && p.head_dim_ckv % 4 == 0))
      return op::Unsupported{
          "with use_cuda_graph=True plan() chose the kernel for rows that begin at 16 bytes, 8-bit "
          "ones at 8, without scales of each key: " +
          refusal};
    run.graph = p.graph->arrays;
  } else {
    run.arrays = attention::arrays_of(*plan, kinds_of(configs, run.cores, cores), cores, device,
                                      cuts ? cuda::mla_chunk : cuda::mla_uncut);
  }
  std::string why_not;
  const auto found = [&](const jit::CudaLoaded& kernel) {
    if (why_not.empty()) why_not = kernel.why_not;
    return &kernel;
  };
  const std::vector<attention::Part>& parts = run.graph ? run.graph->parts : run.arrays->parts;
  for (size_t i = 0; i < parts.size(); ++i) {
    const attention::Part& part = parts[i];
    Kind& k = run.kinds[i];
    k.config = configs[!part.few];
    k.kernel = found(cores ? jit::cuda_kernel<kCores>(run.cores, device) : jit::cuda_kernel<kKernel>(k.config, device));
  }
  if (!why_not.empty()) return op::Unsupported{why_not};
  return run;
}

}  // namespace flashinfer::mla
