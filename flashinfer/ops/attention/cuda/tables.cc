// SPDX-License-Identifier: Apache-2.0
#include "flashinfer/ops/attention/cuda/tables.h"

#include <algorithm>

#include "flashinfer/core/int_math.h"
#include "flashinfer/ops/common/cuda.h"

namespace flashinfer::attention {
namespace {

inline constexpr jit::Kernel kPlan{"flashinfer/ops/attention/kernels/cuda/plan.cuh", "flashinfer::cu::attention_plan",
                                   "flashinfer::AttentionPlanParams"};
inline constexpr jit::Kernel kMask{"flashinfer/ops/attention/kernels/cuda/plan.cuh", "flashinfer::cu::attention_mask",
                                   "flashinfer::AttentionMaskParams"};
inline constexpr jit::Kernel kPadLse{"flashinfer/ops/attention/kernels/cuda/plan.cuh",
                                     "flashinfer::cu::attention_pad_lse", "flashinfer::AttentionPadLseParams"};
constexpr AttentionPlanConfig kPlanConfig{256};
constexpr AttentionPadLseConfig kPadLseConfig{128};
constexpr AttentionMaskConfig kMaskConfig{128};

AttentionInts ints_of(const TensorView& t, int64_t stride, int64_t unit = 1) {
  return {t.data(), stride, t.dtype(), static_cast<int32_t>(unit)};
}
AttentionInts ints_of(const std::optional<TensorView>& t, int64_t unit = 1) {
  return t ? ints_of(*t, t->stride(0), unit) : AttentionInts{nullptr, 0, DType::kI32};
}
/// Whether the attention kernel can read the caller's page ids.
bool reads_pages_of(const TensorView& pages) {
  return pages.dtype() == DType::kI32 && (pages.size(1) <= 1 || pages.stride(1) == 1) && pages.stride(0) >= 0 &&
         pages.size(0) * pages.stride(0) <= INT32_MAX;
}

}  // namespace

const jit::CudaLoaded& plan_kernel(Device device) { return jit::cuda_kernel<kPlan>(kPlanConfig, device); }
void launch_plan(const jit::CudaLoaded& kernel, const AttentionPlanParams& params) {
  cuda::Launch l;
  l.grid[0] = 1;
  l.block[0] = static_cast<unsigned>(kPlanConfig.threads);
  l.shared_bytes = static_cast<unsigned>(kPlanConfig.shared_bytes());
  l.pdl = true;
  jit::launch(kernel, params, l);
}

const jit::CudaLoaded& mask_kernel(Device device) { return jit::cuda_kernel<kMask>(kMaskConfig, device); }
void launch_mask(const jit::CudaLoaded& kernel, const AttentionMaskParams& params, int64_t requests) {
  cuda::Launch l;
  l.grid[0] = cuda::grid_size(std::min<int64_t>(ceil_div(params.stride, int64_t{16} * kMaskConfig.threads), 1024));
  l.grid[1] = cuda::grid_size(requests);
  l.block[0] = static_cast<unsigned>(kMaskConfig.threads);
  l.pdl = true;
  ops::launch_unless_empty(kernel, params, l);
}
AttentionMaskParams mask_params_of(const Spans& spans) {
  AttentionMaskParams m{};
  m.spans = ints_of(spans.keys, spans.keys.stride(0)), m.span_stride = spans.keys.stride(1);
  m.causal_window = spans.causal_window, m.span_window = spans.window;
  return m;
}

TablePlan::TablePlan(const Plan& plan, const AttentionParams& a, const Call& c, const CallTables& tables, bool cores)
    : tables_(tables), device_(c.q.device()), cores_(cores) {
  const bool ragged = !tables.pages;
  const int64_t requests = plan.batch_size, width = ragged ? 0 : tables.pages->size(1), group = group_of(plan);
  // Offsets of rows and keys are 32 bits.
  const int64_t room = ragged ? plan.nnz_kv : width * plan.page_size;
  const int64_t rows = std::min(tables.rows, plan.nnz_qo),
                keys = std::min({tables.keys, room, int64_t{INT32_MAX} / 64 * 64});
  FI_CHECK(plan.nnz_qo * group <= INT32_MAX, ValueError, "query has ", plan.nnz_qo, " rows of ", group,
           " heads for each KV head, more than 32 bits count");
  AttentionPlanParams& p = params_;
  p.seq_lens = ints_of(tables.lengths), p.first_rows = ints_of(tables.first_rows, tables.row_unit);
  p.first_keys = ints_of(tables.first_keys, tables.key_unit);
  p.ragged = ragged, p.kv_rows = static_cast<int32_t>(std::min<int64_t>(plan.nnz_kv, INT32_MAX));
  p.requests = static_cast<int32_t>(requests), p.page_size = static_cast<int32_t>(plan.page_size);
  p.width = static_cast<int32_t>(width), p.keys = static_cast<int32_t>(keys);
  p.rows = static_cast<int32_t>(rows * group), p.group = static_cast<int32_t>(group);
  p.tokens = static_cast<int32_t>(plan.nnz_qo), p.num_kv_heads = static_cast<int32_t>(plan.num_kv_heads);
  std::copy_n(c.scales_on_device, 2, p.scale), p.v_scale = c.v_scale_on_device;

  Layout layout;
  const auto ints = [&](int64_t n) { return layout.add(static_cast<size_t>(n) * 4); };
  kv_indptr_ = ints(requests + 1), kv_len_ = ints(requests);
  const bool masked = tables.words || tables.before;
  if (tables.first_rows || tables.rows != 1 || masked) qo_indptr_ = ints(requests + 1);
  if (!ragged && reads_pages_of(*tables.pages)) {
    p.request_stride = static_cast<int32_t>(tables.pages->stride(0));
  } else if (!ragged) {
    p.table = ints_of(*tables.pages, tables.pages->stride(1)), p.table_stride = tables.pages->stride(0);
    p.v_table = tables.v_pages ? tables.v_pages->data() : nullptr;
    p.request_stride = p.width, pages_ = ints(requests * width * (p.v_table ? 2 : 1));
  }
  if (p.scale[0] || p.scale[1]) scales_ = ints(plan.num_kv_heads);
  if (p.v_scale) v_scales_ = ints(plan.num_kv_heads);
  if (masked) {
    p.mask_stride = ceil_div(rows * keys, int64_t{8});
    mask_indptr_ = layout.add(static_cast<size_t>(requests + 1) * 8);
    mask_ = layout.add(static_cast<size_t>(requests * p.mask_stride));
  }
  for (Part part : kinds_of(plan, a, cores, p.rows, device_)) {
    const cuda::AttentionBound bound = cuda::attention_bound(
        requests, plan.nnz_qo * group, p.rows, ragged ? std::min(requests * keys, plan.nnz_kv) : requests * keys,
        part.tile_rows, part.few);
    // With equal rows one of the two parts has no work.
    if (bound.tiles == 0 || (!tables.first_rows && (p.rows <= cuda::kFewRows) != part.few)) continue;
    part.tiles = bound.tiles, part.cuts = bound.cuts, part.partial_rows = bound.partial_rows;
    FI_CHECK(std::max<int64_t>(static_cast<int64_t>(part.tiles), part.partial_rows) <= INT32_MAX, ValueError, requests,
             " requests of up to ", keys, " keys may need ", part.tiles,
             " tiles, more than 32 bits count: promise fewer keys");
    part.tiles_at = layout.add(part.tiles * sizeof(AttentionTile)),
    part.counters_at = layout.add(part.cuts * static_cast<size_t>(plan.num_kv_heads) * sizeof(uint32_t));
    parts_.push_back(part);
  }
  bytes_ = static_cast<int64_t>(layout.bytes);
  const auto found = [&](const jit::CudaLoaded& kernel) {
    if (why_not_.empty()) why_not_ = kernel.why_not;
    return &kernel;
  };
  kernel_ = found(plan_kernel(device_));
  if (masked) mask_kernel_ = found(mask_kernel(device_));
}

void TablePlan::make(OnDevice& d, AttentionCudaParams& all) const {
  d.device = device_, d.cores = cores_, d.parts = parts_;
  d.memory = Tensor::empty({bytes_}, DType::kU8, device_);
  d.qo_indptr = qo_indptr_, d.kv_indptr = kv_indptr_, d.kv_len = kv_len_;
  d.mask_indptr = mask_indptr_, d.mask_bits = mask_;
  const auto at = [&]<class T>(T*& to, int64_t offset) { to = const_cast<T*>(d.at<T>(offset)); };
  AttentionPlanParams p = params_;
  at(p.qo_indptr, qo_indptr_), at(p.kv_indptr, kv_indptr_), at(p.kv_len, kv_len_), at(p.pages, pages_);
  at(p.scales, scales_), at(p.v_scales, v_scales_), at(p.mask_indptr, mask_indptr_);
  for (const Part& part : parts_) {
    at(p.tiles, part.tiles_at), at(p.counters, part.counters_at);
    p.most_tiles = static_cast<int32_t>(part.tiles), p.most_cuts = static_cast<int32_t>(part.cuts);
    p.most_partial = part.partial_rows, p.tile_rows = part.tile_rows;
    p.few = tables_.first_rows ? part.few : -1;
    launch_plan(*kernel_, p);
  }
  all.a.kv_indices = p.pages ? p.pages : tables_.pages ? tables_.pages->data_as<int32_t>() : nullptr;
  if (tables_.v_pages)
    all.a.v_indices =
        p.pages ? p.pages + params_.requests * int64_t{params_.width} : tables_.v_pages->data_as<int32_t>();
  all.a.mask = d.at<uint8_t>(mask_);
  if (p.scales) all.k_head_scales = p.scales;
  if (p.v_scales) all.a.v_head_scales = p.v_scales;
  if (mask_kernel_ && !parts_.empty()) send_mask(d, all.a);
}

void TablePlan::send_mask(const OnDevice& d, const AttentionParams& a) const {
  AttentionMaskParams m{};
  if (tables_.words) m.words = tables_.words->data_as<uint16_t>(), m.width = tables_.words->size(1);
  m.before = ints_of(tables_.before), m.world = tables_.world, m.rank = tables_.rank;
  m.qo_indptr = d.at<int32_t>(qo_indptr_), m.kv_len = d.at<int32_t>(kv_len_);
  m.mask = const_cast<uint8_t*>(a.mask), m.stride = params_.mask_stride;
  launch_mask(*mask_kernel_, m, params_.requests);
}

op::Prepared prepare_pad_lse(const CallTables& tables, const TensorView& from, const TensorView& to) {
  AttentionPadLseParams p{};
  const int64_t places = to.size(1), heads = to.size(2);
  cuda::Launch l;
  l.grid[0] = cuda::grid_size(to.size(0));
  if (ceil_div(places * heads, int64_t{kPadLseConfig.threads}) > 65535)
    return op::Unsupported{
        str("lse has ", places, " rows of ", heads, " heads for each request, more than a grid holds")};
  l.grid[1] = cuda::grid_size(ceil_div(places * heads, int64_t{kPadLseConfig.threads}));
  l.block[0] = static_cast<unsigned>(kPadLseConfig.threads);
  l.pdl = true;
  p.from = from.data_as<float>(), p.to = to.data_as<float>();
  p.first_rows = ints_of(tables.first_rows, tables.row_unit);
  p.stride_b = to.stride(0), p.stride_n = to.stride(1), p.stride_h = to.stride(2);
  p.rows = static_cast<int32_t>(from.size(0)), p.places = static_cast<int32_t>(places);
  p.heads = static_cast<int32_t>(heads);
  const jit::CudaLoaded& kernel = jit::cuda_kernel<kPadLse>(kPadLseConfig, to.device());
  if (!kernel.why_not.empty()) return op::Unsupported{kernel.why_not};
  return [&kernel, p, l] { ops::launch_unless_empty(kernel, p, l); };
}

}  // namespace flashinfer::attention
