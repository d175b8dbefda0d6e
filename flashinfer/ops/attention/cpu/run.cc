// SPDX-License-Identifier: Apache-2.0
// From a plan and tensors to the kernel: parameters, tables, scratch, threads.
#include <algorithm>
#include <bit>
#include <cmath>
#include <functional>
#include <memory>
#include <vector>

#include "flashinfer/core/context.h"
#include "flashinfer/jit/jit.h"
#include "flashinfer/ops/attention/kernels/cpu/scratch.h"
#include "flashinfer/ops/attention/plan/rope_table.h"
#include "flashinfer/ops/attention/run.h"
#include "flashinfer/ops/attention/variant/variant_call.h"
#include "flashinfer/ops/common/queries.h"
#include "flashinfer/ops/common/thread_scratch.h"

namespace flashinfer::attention {
namespace {

inline constexpr jit::Kernel kVariantKernel{"flashinfer/ops/attention/kernels/cpu/prefill.h",
                                            "flashinfer::cpu::attention_variant_task", "flashinfer::AttentionParams"};
inline constexpr jit::Kernel kKernel{"flashinfer/ops/attention/kernels/cpu/prefill.h",
                                     "flashinfer::cpu::attention_task", "flashinfer::AttentionParams"};
inline constexpr jit::Kernel kDecodeKernel{"flashinfer/ops/attention/kernels/cpu/decode.h",
                                           "flashinfer::cpu::attention_decode_task", "flashinfer::AttentionParams"};

/// scale_q[h] * scale_k[h / G] of every query head, or scale_v of every KV head; empty without.
std::vector<double> logit_scales(const Plan& p, const Call& c) {
  if (!c.q_head_scales && !c.k_head_scales) return {};
  const auto at = [](const TensorView* t, int64_t i) {
    return t ? static_cast<double>(t->data_as<float>()[i * t->stride(0)]) : 1.0;
  };
  std::vector<double> s;
  for (int64_t h = 0; h < p.num_qo_heads; ++h)
    s.push_back(at(c.q_head_scales, h) * at(c.k_head_scales, h / (p.num_qo_heads / p.num_kv_heads)));
  return s;
}
std::vector<double> output_scales(const Plan& p, const Call& c) {
  std::vector<double> s;
  const TensorView* t = c.v_head_scales;
  for (int64_t h = 0; t && h < p.num_kv_heads; ++h)
    s.push_back(static_cast<double>(t->data_as<float>()[h * t->stride(0)]));
  return s;
}
bool all_equal(const std::vector<double>& s) {
  return std::adjacent_find(s.begin(), s.end(), std::not_equal_to<>()) == s.end();
}
}  // namespace

AttentionConfig config_of(const Plan& p, const Call& c) {
  // One scale for all heads is a factor of the logits; different ones are multiplied into q, which takes f32 to be
  // exact.
  const DType q = all_equal(logit_scales(p, c)) ? ops::compute_type(p.q_data_type, p.kv_data_type) : DType::kF32;
  return {.q = q, .kv = p.kv_data_type, .o = p.o_data_type, .rope = p.pos_encoding_mode == "ROPE_LLAMA"};
}

namespace {

/// Slopes of ALiBi: 2^(-8i/n) for the first n = 2^floor(log2 H) heads, then every other one of twice as many.
std::vector<float> alibi_slopes(int64_t heads) {
  const int64_t n = static_cast<int64_t>(std::bit_floor(static_cast<uint64_t>(heads)));
  std::vector<float> s;
  for (int64_t i = 1; i <= n; ++i)
    s.push_back(static_cast<float>(std::exp2(-8.0 * static_cast<double>(i) / static_cast<double>(n))));
  for (int64_t i = 1; n + (i + 1) / 2 <= heads; i += 2)
    s.push_back(static_cast<float>(std::exp2(-4.0 * static_cast<double>(i) / static_cast<double>(n))));
  return s;
}

double scale_of(const Plan& p, const Call& c) { return c.sm_scale.value_or(p.sm_scale) * c.q_scale * c.k_scale; }

}  // namespace

std::shared_ptr<const RopeTable> rope_table_of(const Plan& p) {
  int64_t first = 0, end = 1;
  const int32_t *qo = p.qo_indptr.data_as<int32_t>(), *kv = p.kv_len.data_as<int32_t>();
  for (int64_t b = 0; b < p.batch_size; ++b) {
    end = std::max<int64_t>(end, kv[b]);
    first = std::min<int64_t>(first, kv[b] - (qo[b + 1] - qo[b]));  // rows before the first key
  }
  return rope_table(p.rope_theta, p.rope_scale, p.head_dim_qk, first, end);
}

AttentionParams params_of(const Plan& p, const Call& c) {
  AttentionParams a{};
  a.q = c.q.data(), a.k = c.kv.k.data, a.v = c.kv.v.data, a.o = c.out.data();
  a.q_stride_n = c.q.stride(0), a.q_stride_h = c.q.stride(1);
  a.o_stride_n = c.out.stride(0), a.o_stride_h = c.out.stride(1);
  if (c.lse) {
    a.lse = c.lse->data_as<float>();
    a.lse_stride_n = c.lse->stride(c.lse_by_head ? 1 : 0), a.lse_stride_h = c.lse->stride(c.lse_by_head ? 0 : 1);
  }
  a.k_stride_page = c.kv.k.stride_page, a.k_stride_n = c.kv.k.stride_n, a.k_stride_h = c.kv.k.stride_h;
  a.v_stride_page = c.kv.v.stride_page, a.v_stride_n = c.kv.v.stride_n, a.v_stride_h = c.kv.v.stride_h;
  a.num_qo_heads = static_cast<int32_t>(p.num_qo_heads), a.num_kv_heads = static_cast<int32_t>(p.num_kv_heads);
  a.head_dim_qk = static_cast<int32_t>(p.head_dim_qk), a.head_dim_vo = static_cast<int32_t>(p.head_dim_vo);
  a.qo_indptr = p.qo_indptr.data_as<int32_t>(), a.kv_indptr = p.kv_indptr.data_as<int32_t>(),
  a.kv_len = p.kv_len.data_as<int32_t>();
  a.kv_indices = p.paged ? p.kv_indices.data_as<int32_t>() : nullptr;
  a.v_indices = p.v_indices.defined() ? p.v_indices.data_as<int32_t>() : nullptr;
  a.page_size = static_cast<int32_t>(p.page_size);
  a.causal = p.causal, a.window_left = static_cast<int32_t>(std::min<int64_t>(p.window_left, INT32_MAX));
  a.scale = static_cast<float>(scale_of(p, c));
  a.soft_cap = static_cast<float>(p.logits_soft_cap), a.v_scale = static_cast<float>(c.v_scale);
  if (c.kv_sf) {
    a.k_sf = static_cast<const uint8_t*>(c.kv_sf->k.data), a.v_sf = static_cast<const uint8_t*>(c.kv_sf->v.data);
    a.k_sf_stride_page = c.kv_sf->k.stride_page, a.k_sf_stride_n = c.kv_sf->k.stride_n,
    a.k_sf_stride_h = c.kv_sf->k.stride_h;
    a.v_sf_stride_page = c.kv_sf->v.stride_page, a.v_sf_stride_n = c.kv_sf->v.stride_n,
    a.v_sf_stride_h = c.kv_sf->v.stride_h;
  }
  if (c.sinks) a.sinks = c.sinks->data_as<float>();
  a.lse_factor = c.natural_lse ? 0.69314718f : 1.0f;
  if (p.prefix_len.defined()) {
    a.prefix_len = p.prefix_len.data_as<uint32_t>(), a.token_pos = p.token_pos.data_as<uint16_t>();
    a.token_pos_len = p.token_pos.size(1);
  }
  if (p.mask.defined()) a.mask = p.mask.data_as<uint8_t>(), a.mask_indptr = p.mask_indptr.data_as<int64_t>();
  return a;
}

namespace {

/// The kernels of a list of works.
struct Kernels {
  jit::CpuFn tile = nullptr, decode = nullptr;
};

/// works[i] or, when all are done, merges[i], each by its own kernel.
template <class Task>
void run_tasks(const Kernels& kernels, const AttentionParams& p, const std::vector<Task>& tasks, bool merges) {
  const int64_t dqk = p.head_dim_qk, dvo = p.head_dim_vo;
  const int64_t bytes = std::max(kernels.tile ? cpu::attention::Scratch(nullptr, dqk, dvo).bytes : 0,
                                 kernels.decode ? cpu::attention::DecodeScratch(nullptr, dqk, dvo).bytes : 0);
  auto task = [&](int64_t i) {
    AttentionParams mine = p;
    mine.scratch = ops::thread_scratch(bytes);
    (tasks[static_cast<size_t>(i)].decode ? kernels.decode : kernels.tile)(&mine, merges ? -1 - i : i);
  };
  const auto n = static_cast<int64_t>(tasks.size());
  if (n == 1) return task(0);
  if (n > 1) parallel_for(n, task);
}

}  // namespace

std::vector<float> slopes_of(const Plan& p) {
  if (p.pos_encoding_mode == "ALIBI" && p.alibi_slopes.defined()) {
    const auto own = p.alibi_slopes.span<float>();
    return {own.begin(), own.end()};
  }
  return p.pos_encoding_mode == "ALIBI" ? alibi_slopes(p.num_qo_heads) : std::vector<float>();
}

namespace {

/// A plan that was read from a dump has no list of works yet.
bool without_work(const Plan& p) { return p.batch_size > 0 && p.nnz_qo > 0 && p.work.works.empty(); }

/// The tile kernel of a plan: the built-in one, or one compiled with its custom variant.
const jit::Loaded& tile_kernel(const Plan& p, const AttentionConfig& config) {
  if (p.jit_args.is_none()) return jit::cpu_kernel<kKernel>(config);
  return jit::cpu_kernel<kVariantKernel>(config, extension_of(variant_from(p.jit_args)));
}

/// A run that is ready. What `params` points to is kept here, in the plan, or by the caller.
struct CpuRun {
  PlanRef plan;
  Kernels kernels;
  AttentionParams params;
  TensorView q;
  DType compute_type;                             // of queries
  std::vector<float> slopes, q_scales, v_scales;  // of heads; q_scales: multiplied into converted queries
  std::optional<Extras> extras;

  void operator()() const;
};

void CpuRun::operator()() const {
  const Plan& p = *plan;
  AttentionParams a = params;
  Tensor queries, partial;
  if (compute_type != p.q_data_type || !q_scales.empty()) {
    queries = ops::converted_queries(q, compute_type, q_scales);
    a.q = queries.data(), a.q_stride_n = p.num_qo_heads * p.head_dim_qk, a.q_stride_h = p.head_dim_qk;
  }
  std::shared_ptr<const RopeTable> rope;
  if (p.pos_encoding_mode == "ROPE_LLAMA") {
    rope = rope_table_of(p);
    a.rope = rope->values.data(), a.rope_first = rope->first;
  }
  if (p.work.partial_rows) {
    const int64_t width = padded(p.head_dim_vo);
    partial = Tensor::empty({p.work.partial_rows, width + 3}, DType::kF32);
    a.partial_o = partial.data_as<float>();
    a.softmax_state = a.partial_o + p.work.partial_rows * width;
  }
  run_tasks(kernels, a, p.work.works, false);
  run_tasks(kernels, a, p.work.merges, true);
}

}  // namespace

op::Prepared prepare_cpu(const PlanRef& plan, const Call& c) {
  if (without_work(*plan)) {
    Plan p = *plan;
    restore(p);
    return prepare_cpu(owned(std::move(p)), c);
  }
  const Plan& p = *plan;
  const AttentionConfig config = config_of(p, c);
  Kernels kernels;
  const jit::Loaded* missing = nullptr;
  const auto use = [&](jit::CpuFn& fn, const jit::Loaded& kernel) {
    fn = kernel.fn;
    if (!kernel.fn && !missing) missing = &kernel;
  };
  if (p.work.tile) use(kernels.tile, tile_kernel(p, config));
  if (p.work.decode) use(kernels.decode, jit::cpu_kernel<kDecodeKernel>(config));
  if (missing) return op::Unsupported{missing->why_not};

  const std::vector<double> logits = logit_scales(p, c), outputs = output_scales(p, c);
  CpuRun run{.plan = plan,
             .kernels = kernels,
             .params = params_of(p, c),
             .q = c.q,
             .compute_type = config.q,
             .slopes = slopes_of(p),
             .q_scales = {},
             .v_scales = {outputs.begin(), outputs.end()},
             .extras = {}};
  AttentionParams& a = run.params;
  if (!all_equal(logits))
    run.q_scales = {logits.begin(), logits.end()};
  else if (!logits.empty())
    a.scale = static_cast<float>(scale_of(p, c) * logits[0]);
  if (!run.slopes.empty()) a.alibi_slopes = run.slopes.data();
  if (!run.v_scales.empty()) a.v_head_scales = run.v_scales.data();
  run.extras = extras_of(p, c.args, a, kCpu);
  if (run.extras) a.extra_tensors = run.extras->tensors(), a.extra_scalars = run.extras->scalars();
  a.work = p.work.works.data(), a.merges = p.work.merges.data();
  return run;
}

}  // namespace flashinfer::attention
