// SPDX-License-Identifier: Apache-2.0
#include "flashinfer/ops/mla/cuda_graph.h"

#include <algorithm>
#include <mutex>

#include "flashinfer/ops/common/queries.h"
#include "flashinfer/record/record.h"

namespace flashinfer::mla {

attention::Plan attention_plan(const Plan& p, DType output) {
  attention::Plan a;
  a.batch_size = p.batch_size, a.nnz_qo = p.nnz_qo, a.page_size = p.page_size;
  a.num_qo_heads = p.num_heads, a.num_kv_heads = 1;
  a.head_dim_qk = p.head_dim_ckv + p.head_dim_kpe, a.head_dim_vo = p.head_dim_ckv;
  a.q_data_type = p.q_data_type, a.kv_data_type = p.kv_data_type, a.o_data_type = output;
  a.causal = p.causal;
  a.qo_indptr = p.qo_indptr, a.kv_indptr = p.kv_indptr, a.kv_indices = p.kv_indices, a.kv_len = p.kv_len;
  a.max_page = p.max_page;
  return a;
}

cuda::MlaShape shape_of(const Plan& p) {
  return {.q = ops::compute_type(p.q_data_type, p.kv_data_type),
          .query = p.q_data_type,
          .kv = p.kv_data_type,
          .o = p.output_dtype,
          .ckv = p.head_dim_ckv,
          .kpe = p.head_dim_kpe,
          .grouped = false};
}

std::array<MlaCudaConfig, 2> configs_of(const cuda::MlaShape& shape, int64_t most, const jit::Arch& arch) {
  return {cuda::mla_config(shape, true, most, arch.shared_bytes),
          cuda::mla_config(shape, false, most, arch.shared_bytes)};
}
std::array<attention::Part, 2> kinds_of(const std::array<MlaCudaConfig, 2>& configs, const MlaCoresConfig& cores,
                                        bool on_cores) {
  std::array<attention::Part, 2> kinds{attention::Part{.few = true}, attention::Part{}};
  for (size_t i = 0; i < 2; ++i) kinds[i].tile_rows = on_cores ? cores.rows : configs[i].rows;
  return kinds;
}

namespace {
/// For the recorder: a captured run reads the arrays of the last plan, not of the one it was captured with.
std::shared_ptr<const void> plan_now(const void* state) {
  const Plan& p = *static_cast<const Plan*>(state);
  return p.graph ? p.graph->latest : nullptr;
}
bool on_device(const Plan& p) { return attention::device_of(p.buffers).type != DeviceType::kCPU; }
}  // namespace

void check_captured(const Plan& p) {
  if (!on_device(p) || !p.graph) return;
  const Plan& first = *p.graph->latest;
  using attention::same;
  same("num_heads", p.num_heads, first.num_heads), same("page_size", p.page_size, first.page_size);
  same("head_dim_ckv", p.head_dim_ckv, first.head_dim_ckv), same("head_dim_kpe", p.head_dim_kpe, first.head_dim_kpe);
  same("causal", p.causal, first.causal), same("sm_scale", p.sm_scale, first.sm_scale);
  same("q_data_type", name(p.q_data_type), name(first.q_data_type));
  same("kv_data_type", name(p.kv_data_type), name(first.kv_data_type));
  same("output_dtype", name(p.output_dtype), name(first.output_dtype));
  same("use_sinks", p.use_sinks, first.use_sinks);
  const auto grows = [](const char* what, int64_t now, int64_t most) {
    FI_CHECK(now <= most, ValueError, what, " ", now, " query rows, but in the first plan() ", most,
             ", and with use_cuda_graph=True they may not grow");
  };
  grows("the batch has", p.nnz_qo, p.graph->max_rows);
  grows("a request has", most_tokens(p), p.graph->most_tokens);
  const int64_t pages = p.graph->arrays->pages;
  FI_CHECK(pages < 0 || p.max_page < pages, ValueError, "kv_indices go up to ", p.max_page,
           ", but the cache given to run() has ", pages, " pages");
}

void send_captured(Plan& p) {
  if (!on_device(p)) return;
  if (!p.graph) {
    p.graph = std::make_shared<CapturedPlan>();
    p.graph->max_rows = p.nnz_qo, p.graph->most_tokens = most_tokens(p);
    static std::once_flag once;
    std::call_once(once, [] { record::follow_state(plan_type, plan_now); });
  }
  const jit::Arch& arch = jit::arch_of_number(jit::arch_number(attention::device_of(p.buffers)));
  const cuda::MlaShape shape = shape_of(p);
  const bool cores = !cuda::mla_refusal(shape, arch.async_copy).empty();
  const int64_t most = p.graph->most_tokens * p.num_heads;
  attention::Plan a = attention_plan(p, p.output_dtype);
  a.use_cuda_graph = true, a.buffers = p.buffers, a.max_rows = p.graph->max_rows, a.graph = p.graph->arrays;
  attention::plan_graph(a, {.cores = cores,
                            .kinds = kinds_of(configs_of(shape, most, arch), cuda::mla_cores_config(shape), cores),
                            .most = most,
                            .chunk_of = p.head_dim_ckv % 4 == 0 ? cuda::mla_chunk : cuda::mla_uncut,
                            .bound_of = cuda::mla_bound});
  p.graph->arrays = a.graph;
  auto latest = std::make_shared<Plan>(p);
  latest->graph = nullptr;
  p.graph->latest = std::move(latest);
}

}  // namespace flashinfer::mla
