// SPDX-License-Identifier: Apache-2.0
// Planning a decode where its lengths are: a kernel writes what a captured run() reads.
#include "flashinfer/core/cuda/device.h"
#include "flashinfer/core/int_math.h"
#include "flashinfer/core/transfer.h"
#include "flashinfer/ops/attention/api/checks.h"
#include "flashinfer/ops/attention/cases.h"
#include "flashinfer/ops/attention/cuda/tables.h"
#include "flashinfer/record/record.h"

namespace flashinfer {
namespace attention {
namespace {
using Block = BatchDecodePlanOnDevice;

void fill_internal(Block& a) {
  const TensorView& buffer = plan_of(a.self).buffers.kv_indices;
  if (buffer.defined() && buffer.dtype() == DType::kI32) a.pages = buffer;
}
int64_t pages_a_request(const Block& a) { return a.pages->numel() / std::max<int64_t>(plan_of(a.self).batch_size, 1); }

/// FLASHINFER_CUDA_CHECK_INDICES: lengths and page ids, both in host memory, of a plan whose buffers are on a GPU.
void check_contents(const Block& a, const Plan& p) {
  const int64_t width = pages_a_request(a), pool = p.graph ? p.graph->pages.load() : -1;
  Plan planned = p;
  set_dense_table(planned, a.pages->slice(0, 0, p.batch_size * width).view({p.batch_size, width}), a.seq_lens,
                  {"paged_kv_indices_buffer", "seq_lens"});
  for (int64_t b = 0; b < p.batch_size && pool >= 0; ++b) {
    const int32_t* page = planned.kv_indices.data_as<int32_t>() + b * width;
    for (int64_t i = 0; i < ceil_div(int64_t{planned.kv_len.data_as<int32_t>()[b]}, p.page_size); ++i)
      FI_CHECK(page[i] < pool, ValueError, "paged_kv_indices_buffer[", b * width + i, "], page ", i, " of request ", b,
               ", is ", page[i], ", but must be in [0, ", pool, ") (pages of the pool)");
  }
}
void validate(const Block& a) {
  const Plan& p = plan_of(a.self);
  FI_CHECK(a.pages || p.buffers.kv_indices.defined(), ValueError,
           "plan_on_device() belongs to use_cuda_graph=True and the buffers of __init__");
  FI_CHECK(a.seq_lens.size(0) == p.batch_size, ValueError, "seq_lens.shape[0] is ", a.seq_lens.size(0),
           ", but the buffers of use_cuda_graph=True are for ", p.batch_size);
  FI_CHECK(a.pages, ValueError, "paged_kv_indices_buffer is ", to_string(p.buffers.kv_indices),
           ", but plan_on_device() needs int32");
  FI_CHECK(p.pos_encoding_mode != "ROPE_LLAMA", NotImplementedError,
           "pos_encoding_mode is ROPE_LLAMA, whose table plan() extends as requests grow");
  FI_CHECK(pages_a_request(a) <= INT32_MAX / p.page_size, ValueError, pages_a_request(a), " pages of ", p.page_size,
           " tokens a request are more than an int32 length holds");
  const TensorView buffer = p.buffers.kv_indices;
  if (buffer.defined() && buffer.device() != kCpu && a.seq_lens.device() == kCpu && a.pages->device() == kCpu)
    check_contents(a, p);
}

/// The same on the host: the dense table of the wrapper's buffer.
void launch_host(const Block& a) {
  const Plan& before = plan_of(a.self);
  Plan p = before;
  const int64_t width = pages_a_request(a);
  const Tensor pages = to_device(*a.pages, kCpu), lengths = to_device(a.seq_lens, kCpu);
  set_dense_table(p, pages.view().slice(0, 0, p.batch_size * width).view({p.batch_size, width}), lengths,
                  {"paged_kv_indices_buffer", "seq_lens"});
  p.kv_indices = Tensor::clone(p.kv_indices);
  if (p.graph)
    plan_graph(p);
  else
    set_work(p);
  a.self->set(std::move(p));
}

op::Prepared prepare_cuda(const Block& a, const op::Call& call) {
  const Plan& p = plan_of(a.self);
  const jit::CudaLoaded& kernel = plan_kernel(call.device);
  if (!p.graph || p.graph->device != call.device)
    return op::Unsupported{str("the buffers of use_cuda_graph=True are not on ", to_string(call.device))};
  if (!kernel.why_not.empty()) return op::Unsupported{kernel.why_not};
  return [&a, &p, &kernel, device = call.device] {
    const bool captured = device.type == DeviceType::kCUDA && cuda::capturing(device.index, Context::current().stream);
    // A recorded run() holds the plan: it must be the host's, too.
    if (!captured && record::wanted("BatchDecodeWithPagedKVCacheWrapper.run") == record::Wanted::kDump)
      return launch_host(a);
    GraphArrays& g = *p.graph;
    g.lengths_on_device = true;
    if (g.parts.empty()) return;
    const Part& part = g.parts.front();  // every request has the same rows
    const auto width = static_cast<int32_t>(pages_a_request(a));
    AttentionPlanParams params{};
    params.seq_lens = {a.seq_lens.data(), 1, DType::kI32};
    params.kv_indptr = g.at_mutable<int32_t>(g.kv_indptr), params.kv_len = g.at_mutable<int32_t>(g.kv_len);
    params.tiles = g.at_mutable<AttentionTile>(part.tiles_at);
    params.counters = g.at_mutable<uint32_t>(part.counters_at);
    params.num_kv_heads = static_cast<int32_t>(p.num_kv_heads);
    params.requests = static_cast<int32_t>(p.batch_size), params.page_size = static_cast<int32_t>(p.page_size);
    params.width = params.request_stride = width, params.keys = width * params.page_size;
    params.group = group_of(p), params.few = -1;
    params.rows = static_cast<int32_t>(p.q_len_per_req) * params.group, params.tile_rows = part.tile_rows;
    params.most_tiles = static_cast<int32_t>(part.tiles), params.most_cuts = static_cast<int32_t>(part.cuts);
    params.most_partial = part.partial_rows;
    launch_plan(kernel, params);
  };
}

constexpr op::Field fields[] = {
    op::self<&Block::self>(),
    op::in<&Block::seq_lens>("seq_lens", "b", DType::kI32, op::contiguous),
    op::in<&Block::pages>("pages", "n", DType::kI32, op::internal),
};
constexpr op::Candidate candidates[] = {op::cuda<prepare_cuda>(), op::cpu<launch_host>(), op::reference<launch_host>()};
constexpr op::Op define(const char* name, op::CaseTable cases) {
  return op::define<Block, validate, nullptr, fill_internal>(
      name, "flashinfer.decode",
      "Plans again from lengths on the device, with pages in rows of the wrapper's buffer. Not in FlashInfer.", fields,
      candidates, cases, {}, &plan_type);
}
}  // namespace

constinit const op::Op decode_on_device_op = define("BatchDecodeWithPagedKVCacheWrapper.plan_on_device",
                                                    ops::attention::plan_on_device_cases),
                       graph_on_device_op = define("CUDAGraphBatchDecodeWithPagedKVCacheWrapper.plan_on_device",
                                                   ops::attention::graph_plan_on_device_cases);
}  // namespace attention
}  // namespace flashinfer
