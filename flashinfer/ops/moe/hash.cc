// SPDX-License-Identifier: Apache-2.0
#include "flashinfer/ops/moe/hash.h"

#include <cmath>

#include "flashinfer/core/int_math.h"
#include "flashinfer/core/transfer.h"
#include "flashinfer/op/call.h"
#include "flashinfer/ops/common/cuda.h"
#include "flashinfer/ops/common/reference.h"
#include "flashinfer/ops/common/rows.h"
#include "flashinfer/ops/moe/cases.h"
#include "flashinfer/ops/moe/kernels/hash_params.h"
#include "flashinfer/ops/moe/ops.h"

namespace flashinfer {
namespace {
using H = HashTopk;
constexpr int64_t kMaxColumns = 32;  // upstream's limit
inline constexpr jit::Kernel kHashTopk{"flashinfer/ops/moe/kernels/cuda/hash.cuh", "flashinfer::cu::hash_topk",
                                       "flashinfer::HashTopkParams"};

int64_t columns(const H& a) { return a.tid2eid.size(1) + a.num_fused_shared_experts; }
void validate(const H& a) {
  FI_CHECK(a.num_fused_shared_experts == 0 || a.num_fused_shared_experts == 1, ValueError,
           "num_fused_shared_experts is ", a.num_fused_shared_experts, ", but must be 0 or 1");
  FI_CHECK(a.num_fused_shared_experts == 0 || a.routed_scaling_factor > 0, ValueError, "routed_scaling_factor is ",
           a.routed_scaling_factor, ", but must be positive beside a shared expert");
  FI_CHECK(columns(a) >= 1 && columns(a) <= kMaxColumns, ValueError, "tid2eid.shape[1] is ", a.tid2eid.size(1), " and ",
           a.num_fused_shared_experts, " experts are shared, but their sum must be in 1..", kMaxColumns);
  op::check_index_range("input_ids", a.input_ids, 0, a.tid2eid.size(0), "rows of tid2eid");
  if (!host_can_read(a.input_ids.device()) || !host_can_read(a.tid2eid.device())) return;
  for (int64_t t = 0; t < a.input_ids.size(0); ++t)
    for (int64_t j = 0; j < a.tid2eid.size(1); ++j) {
      const int64_t id = op::index_at(a.input_ids, t), e = a.tid2eid.data_as<int32_t>()[id * a.tid2eid.size(1) + j];
      FI_CHECK(e >= 0 && e < a.router_logits.size(1), ValueError, "tid2eid[", id, "][", j, "] is ", e,
               ", but router_logits has ", a.router_logits.size(1), " experts");
    }
}

float score(float x) { return std::sqrt(std::fmax(x, 0.0f) + std::log1p(std::exp(-std::fabs(x)))); }
void launch(const H& a) {
  const int64_t k = a.tid2eid.size(1), experts = a.router_logits.size(1);
  ops::for_rows(a.router_logits.size(0), ops::rows_per_task(a.router_logits.size(0), 32 * k), [&](int64_t t) {
    const float* logits = a.router_logits.data_as<float>() + t * experts;
    const int32_t* chosen = a.tid2eid.data_as<int32_t>() + op::index_at(a.input_ids, t) * k;
    float* weight = a.topk_weights->data_as<float>() + t * a.topk_weights->stride(0);
    int32_t* id = a.topk_ids->data_as<int32_t>() + t * a.topk_ids->stride(0);
    float sum = 0;
    for (int64_t j = 0; j < k; ++j) sum += weight[j] = score(logits[chosen[j]]), id[j] = chosen[j];
    for (int64_t j = 0; j < k; ++j) weight[j] /= sum;
    if (!a.num_fused_shared_experts) return;
    weight[k] = static_cast<float>(1 / a.routed_scaling_factor), id[k] = static_cast<int32_t>(experts);
  });
}
op::Prepared prepare_cuda(const H& a, const op::Call& call) {
  const int64_t tokens = a.router_logits.size(0);
  if (tokens >= int64_t{1} << 26) return op::Unsupported{"there are 2^26 or more tokens"};
  const HashTopkParams p{
      .logits = a.router_logits.data_as<float>(),
      .tokens_ids = {a.input_ids.data(), a.input_ids.stride(0), a.input_ids.dtype() == DType::kI64},
      .table = a.tid2eid.data_as<int32_t>(),
      .weights = a.topk_weights->data_as<float>(),
      .ids = a.topk_ids->data_as<int32_t>(),
      .weight_row = a.topk_weights->stride(0),
      .id_row = a.topk_ids->stride(0),
      .vocabulary = a.tid2eid.size(0),
      .tokens = static_cast<uint32_t>(tokens),
      .experts = static_cast<int32_t>(a.router_logits.size(1)),
      .k = static_cast<int32_t>(a.tid2eid.size(1)),
      .shared = static_cast<int32_t>(a.num_fused_shared_experts),
      .shared_weight = a.num_fused_shared_experts ? static_cast<float>(1 / a.routed_scaling_factor) : 0.0f};
  constexpr int kThreads = 128;
  int lanes = 1;
  while (lanes < columns(a)) lanes *= 2;
  const cuda::Launch l{.grid = {cuda::grid_size(ceil_div(tokens, int64_t{kThreads / lanes})), 1, 1},
                       .block = {kThreads, 1, 1},
                       .pdl = a.launch_with_pdl};
  return ops::prepare_cuda<kHashTopk>(HashTopkConfig{lanes, kThreads}, p, call.device, l);
}
void reference(const H& a) {
  const int64_t k = a.tid2eid.size(1);
  for (int64_t t = 0; t < a.router_logits.size(0); ++t) {
    double scores[kMaxColumns], sum = 0;
    for (int64_t j = 0; j < k; ++j) {
      const auto e = static_cast<int64_t>(ref::at(a.tid2eid, {op::index_at(a.input_ids, t), j}));
      const double x = ref::at(a.router_logits, {t, e});
      scores[j] = std::sqrt(std::fmax(x, 0.0) + std::log1p(std::exp(-std::fabs(x))));
      sum += scores[j];
      ref::put(*a.topk_ids, {t, j}, static_cast<double>(e));
    }
    for (int64_t j = 0; j < k; ++j) ref::put(*a.topk_weights, {t, j}, scores[j] / sum);
    if (!a.num_fused_shared_experts) continue;
    ref::put(*a.topk_weights, {t, k}, 1 / a.routed_scaling_factor);
    ref::put(*a.topk_ids, {t, k}, static_cast<double>(a.router_logits.size(1)));
  }
}
op::Shape chosen_shape(const H& a) { return {2, {a.router_logits.size(0), columns(a)}}; }
op::Cost cost(const H& a) { return {.bytes = static_cast<double>(a.router_logits.size(0) * columns(a) * 16)}; }

constexpr op::Field fields[] = {
    op::in<&H::router_logits>("router_logits", "t e", DType::kF32, op::contiguous),
    op::in<&H::input_ids>("input_ids", "t", op::indices, op::any_layout),
    op::in<&H::tid2eid>("tid2eid", "v k", DType::kI32, op::contiguous),
    op::attr<&H::num_fused_shared_experts>("num_fused_shared_experts"),
    op::attr<&H::routed_scaling_factor>("routed_scaling_factor"),
    op::attr<&H::launch_with_pdl>("launch_with_pdl"),
    op::result<&H::topk_weights>("topk_weights", nullptr, DType::kF32, op::shape<chosen_shape>),
    op::result<&H::topk_ids>("topk_ids", nullptr, DType::kI32, op::shape<chosen_shape>),
};
constexpr op::Candidate candidates[] = {op::cuda<prepare_cuda>(), op::cpu<launch>(), op::reference<reference>()};
constexpr op::Case kCases[] = {
    {"routed", "router_logits=f32:7x256 input_ids=i64:7:randint(0,50) tid2eid=i32:50x8:randint(0,256)", "cpu",
     op::kTrace},
    {"shared",
     "router_logits=f32:5x16:normal(0,40) input_ids=i32:5:randint(0,9) tid2eid=i32:9x6:randint(0,16) "
     "num_fused_shared_experts=1 routed_scaling_factor=2.5"},
    {"no_tokens", "router_logits=f32:0x16 input_ids=i64:[] tid2eid=i32:9x6:randint(0,16)"},
};
std::span<const op::Case> cases() { return kCases; }
}  // namespace

namespace ops::moe {
constinit const op::Op hash_op = op::define<H, validate, cost>(
    "hash_topk", "flashinfer.fused_moe",
    "The experts that a table has for each token, weighted by sqrt(softplus(router_logits)) over its sum.", fields,
    candidates, cases);
}  // namespace ops::moe

std::pair<Tensor, Tensor> hash_topk(const H& a) { return op::call(ops::moe::hash_op, a); }

}  // namespace flashinfer
