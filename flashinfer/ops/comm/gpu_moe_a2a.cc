// SPDX-License-Identifier: Apache-2.0
#include "flashinfer/ops/comm/gpu_moe_a2a.h"

#include <algorithm>

#include "flashinfer/core/int_math.h"
#include "flashinfer/ops/comm/gpu.h"
#include "flashinfer/ops/comm/kernels/moe_a2a_cuda_params.h"
#include "flashinfer/ops/common/cuda.h"

namespace flashinfer::ops::comm {
namespace {
using Signature = flashinfer::comm::Signature;

constexpr const char *kDispatch = "flashinfer/ops/comm/kernels/cuda/moe_dispatch.cuh",
                     *kCombine = "flashinfer/ops/comm/kernels/cuda/moe_combine.cuh";
inline constexpr jit::Kernel kPlanCuda{kDispatch, "flashinfer::cu::moe_plan", "flashinfer::MoePlanCudaParams"};
inline constexpr jit::Kernel kSendCuda{kDispatch, "flashinfer::cu::moe_send", "flashinfer::MoeSendCudaParams"};
inline constexpr jit::Kernel kSanitizeCuda{kDispatch, "flashinfer::cu::moe_sanitize",
                                           "flashinfer::MoeSanitizeCudaParams"};
inline constexpr jit::Kernel kShareCuda{kCombine, "flashinfer::cu::moe_share", "flashinfer::MoeShareCudaParams"};
inline constexpr jit::Kernel kCombineCuda{kCombine, "flashinfer::cu::moe_combine", "flashinfer::MoeCombineCudaParams"};
constexpr int kThreads = 256;
constexpr unsigned kMostBlocks = 1024;  // of a slice

/// Empty: these tensors are for kernels.
std::string why_not(const MoeA2aMemory& m, std::initializer_list<const TensorView*> arrays) {
  if (!m.peers.gpu) return "workspace is not of share_on_gpu";
  const AllReduceGpu& gpu = *m.peers.gpu->gpu;
  if (!gpu.memory) return "the ranks' GPUs cannot access each other's memory, which this needs";
  for (const TensorView* t : arrays)
    if (t && t->device() != gpu.device)
      return str("a tensor is on ", to_string(t->device()), ", but the workspace was made for ", to_string(gpu.device));
  return {};
}
const TensorView* or_null(const std::optional<TensorView>& t) { return t ? &*t : nullptr; }
int32_t* counts_at(const MoeA2aMemory& m) { return reinterpret_cast<int32_t*>(m.peers.own() + MoeA2aLayout::counts); }
void place_ranks(const void** to, const AllReduceGpu& gpu) {
  for (int r = 0; r < gpu.ranks; ++r) to[r] = gpu.memory->of(r);
}
unsigned char unit_of(std::initializer_list<int64_t> numbers) {
  uint64_t bits = 0;
  for (const int64_t n : numbers) bits |= static_cast<uint64_t>(n);
  return bits % 16 == 0 ? 16 : bits % 4 == 0 ? 4 : 2;
}
int64_t address(const void* p) { return static_cast<int64_t>(reinterpret_cast<uintptr_t>(p)); }

/// A dispatch: the plan, which is of this rank alone, then the rows.
struct Dispatch {
  std::shared_ptr<GpuShare> share;
  std::shared_ptr<MoeA2aHeader> header;
  Signature signature;
  const jit::CudaLoaded *plan, *send;
  MoePlanCudaParams planned;
  MoeSendCudaParams sent;
  MoeA2aHeader after;  // the call

  void run() {
    AllReduceGpu& gpu = *share->gpu;
    gpu.begin(signature);
    launch_unless_empty(*plan, planned,
                        {.grid = {cuda::grid_size(gpu.ranks), 1, 1}, .block = {kThreads, 1, 1}, .shared_bytes = 128});
    sent.meet = gpu.meet(signature);
    sent.meet.among = sent.active;
    // As many blocks on all ranks, whatever the tokens of each.
    const int64_t blocks = std::min<int64_t>(gpu.blocks, sent.runtime_max);
    gpu.launch(*send, &sent, sizeof sent,
               {.grid = {cuda::grid_size(blocks), 1, 1},
                .block = {kThreads, 1, 1},
                .shared_bytes = kMeetSharedBytes,
                .cooperative = true},
               sent.active);
    *header = after;
  }
};

struct Combine {
  std::shared_ptr<GpuShare> share;
  std::shared_ptr<MoeA2aHeader> header;
  Signature signature;
  uint64_t active;
  const jit::CudaLoaded *shares, *combine;  // `shares` is null when the rows are where others read them
  MoeShareCudaParams shared;
  MoeCombineCudaParams params;
  int threads;

  void run() {
    AllReduceGpu& gpu = *share->gpu;
    gpu.begin(signature);
    if (shares)
      launch_unless_empty(*shares, shared,
                          {.grid = {static_cast<unsigned>(std::min<int64_t>(shared.runtime_max, kMostBlocks)),
                                    static_cast<unsigned>(gpu.ranks), 1},
                           .block = {kThreads, 1, 1}});
    params.meet = gpu.meet(signature);
    params.meet.among = active;
    const int64_t blocks = std::min<int64_t>(gpu.blocks, header->runtime_max);
    gpu.launch(*combine, &params, sizeof params,
               {.grid = {cuda::grid_size(blocks), 1, 1},
                .block = {static_cast<unsigned>(threads), 1, 1},
                .shared_bytes = kMeetSharedBytes + (kMoeA2aRanks + 1) * sizeof(void*),
                .cooperative = true},
               active);
    header->dispatched = 0;
  }
};
}  // namespace

void initialize_on_gpu(GpuShare& share, const MoeA2aHeader& header) {
  share.header = std::make_shared<MoeA2aHeader>(header);
  share.sent = Tensor::zeros({share.gpu->ranks}, DType::kI32, share.gpu->device);
}

op::Prepared prepare_dispatch_on_gpu(const MoeA2aDispatch& a, const MoeA2aMemory& m, uint64_t active,
                                     const Signature& signature) {
  if (std::string why = why_not(m, {&a.token_selected_experts, or_null(a.eplb_local_stats)}); !why.empty())
    return op::Unsupported{std::move(why)};
  const std::shared_ptr<GpuShare>& share = m.peers.gpu;
  const AllReduceGpu& gpu = *share->gpu;
  const MoeA2aCudaConfig config{kThreads};
  Dispatch d{.share = share,
             .header = share->header,
             .signature = signature,
             .plan = &jit::cuda_kernel<kPlanCuda>(config, gpu.device),
             .send = &jit::cuda_kernel<kSendCuda>(config, gpu.device),
             .planned = {},
             .sent = {},
             .after = *m.header};
  for (const jit::CudaLoaded* k : {d.plan, d.send})
    if (!k->why_not.empty()) return op::Unsupported{k->why_not};
  const int64_t tokens = a.token_selected_experts.size(0);
  MoePlanCudaParams& p = d.planned;
  p.ids = a.token_selected_experts.data_as<int32_t>();
  p.places = m.places(), p.sent = share->sent.view().data_as<int32_t>();
  p.tokens = tokens, p.top_k = static_cast<int>(a.top_k);
  const ExpertOwners owners(a.num_experts, a.ep_size);
  p.base = static_cast<int>(owners.base), p.more = static_cast<int>(owners.more);
  p.num_experts = static_cast<int>(a.num_experts), p.active = active;
  MoeSendCudaParams& s = d.sent;
  place_ranks(s.source, gpu);
  s.places = p.places, s.sent = p.sent;
  s.payloads = static_cast<int>(a.input_payloads.size());
  const MoeA2aOffsets offsets(a.input_payloads, m.layout.payloads, a.ep_size, a.runtime_max_tokens_per_rank);
  int64_t row = 0;
  for (size_t i = 0; i < a.input_payloads.size(); ++i) {
    const TensorView& t = a.input_payloads[i];
    s.payload[i] = {static_cast<const char*>(t.data()), t.size(1) * t.item_size(), offsets.at[i]};
    row += s.payload[i].bytes;
  }
  if (a.eplb_local_stats)
    s.stats = a.eplb_local_stats->data_as<int32_t>(), s.stats_n = static_cast<int>(m.header->eplb_experts);
  s.top_k = p.top_k, s.ranks = gpu.ranks, s.tokens = tokens, s.runtime_max = a.runtime_max_tokens_per_rank;
  // A block moves one long row, or a row a warp.
  s.team = tokens <= 2 * gpu.blocks && row >= 4096 ? kThreads : 32;
  s.counts_at = MoeA2aLayout::counts, s.stats_at = m.layout.stats, s.active = active;
  MoeA2aHeader& h = d.after;
  h.tokens = tokens, h.top_k = a.top_k, h.runtime_max = a.runtime_max_tokens_per_rank;
  h.combine_offset = offsets.end, h.dispatched = 1, h.left_out |= all_ranks(a.ep_size) & ~active;
  return [d = std::move(d)]() mutable { d.run(); };
}

op::Prepared prepare_combine_on_gpu(const MoeA2aCombine& a, const MoeA2aMemory& m, uint64_t active, DType out,
                                    MoeCombineQuant quant, const Signature& signature) {
  if (std::string why = why_not(m, {&a.payload, or_null(a.output), or_null(a.output_scales)}); !why.empty())
    return op::Unsupported{std::move(why)};
  const std::shared_ptr<GpuShare>& share = m.peers.gpu;
  const AllReduceGpu& gpu = *share->gpu;
  const MoeA2aHeader& h = *m.header;
  const int64_t hidden = a.payload.size(2), row = hidden * a.payload.item_size(), slice = h.runtime_max * row;
  const bool quantises = quant != MoeCombineQuant::kNone;
  const int64_t pieces = ceil_div(hidden, int64_t{a.payload.item_size() == 4 ? 4 : 8});
  Combine c{.share = share,
            .header = share->header,
            .signature = signature,
            .active = active,
            .shares = nullptr,
            .combine = nullptr,
            .shared = {},
            .params = {},
            .threads = pieces <= 128 ? 128 : 256};
  const auto at = [&](int r) { return static_cast<const char*>(gpu.memory->of(r)) + kAllReduceFlagBytes; };
  const char* const payload = static_cast<const char*>(a.payload.data());
  MoeCombineParams& p = c.params.row;
  place_ranks(c.params.memory, gpu);
  for (int r = 0; r < gpu.ranks; ++r) p.source[r] = at(r) + h.combine_offset + gpu.rank * slice;
  if (!a.use_low_precision) p.source[gpu.rank] = payload + gpu.rank * slice;
  p.places = m.places(), p.tokens = h.tokens, p.top_k = h.top_k, p.d = hidden, p.row_bytes = row;
  p.out = a.output->data(), p.layout = static_cast<SfLayout>(a.sf_layout);
  p.scale = static_cast<float>(a.output_scalar_scale);
  if (quantises) p.scales = a.output_scales->data(), p.padded_rows = sf_padded_rows(p.layout, p.tokens);
  const unsigned char aligned = unit_of({address(payload), address(p.out), row, hidden * size_of(out)}) == 16;
  c.combine = &jit::cuda_kernel<kCombineCuda>(
      MoeCombineCudaConfig{.payload = a.use_low_precision ? DType::kF8E4M3 : a.payload.dtype(),
                           .out = out,
                           .quant = quant,
                           .aligned = aligned,
                           .threads = c.threads},
      gpu.device);
  if (!c.combine->why_not.empty()) return op::Unsupported{c.combine->why_not};
  if (a.use_low_precision || !a.payload_in_workspace) {
    MoeShareCudaParams& s = c.shared;
    s.from = payload, s.to = reinterpret_cast<char*>(m.peers.own() + h.combine_offset);
    s.counts = counts_at(m), s.runtime_max = h.runtime_max, s.row_bytes = row, s.ranks = active;
    if (!a.use_low_precision) s.ranks &= ~(uint64_t{1} << gpu.rank);
    unsigned char unit = unit_of({address(payload), row});
    if (a.use_low_precision && unit != 16) unit = 2;
    c.shares = &jit::cuda_kernel<kShareCuda>(
        MoeShareCudaConfig{.narrow = a.use_low_precision, .unit = unit, .threads = kThreads}, gpu.device);
    if (!c.shares->why_not.empty()) return op::Unsupported{c.shares->why_not};
  }
  return [c = std::move(c)]() mutable { c.run(); };
}

op::Prepared prepare_sanitize_on_gpu(const MoeA2aSanitizeExpertIds& a, const MoeA2aMemory& m) {
  if (std::string why = why_not(m, {&a.expert_ids}); !why.empty()) return op::Unsupported{std::move(why)};
  MoeSanitizeCudaParams p{.ids = a.expert_ids.data_as<int32_t>(),
                          .counts = counts_at(m),
                          .rows = a.expert_ids.size(1),
                          .top_k = a.expert_ids.size(2),
                          .invalid = static_cast<int32_t>(a.invalid_expert_id)};
  const unsigned ranks = static_cast<unsigned>(m.peers.size);
  const int64_t blocks = std::min<int64_t>(ceil_div(p.rows * p.top_k, int64_t{kThreads}), kMostBlocks);
  return prepare_cuda<kSanitizeCuda>(MoeA2aCudaConfig{kThreads}, p, m.peers.gpu->gpu->device,
                                     {.grid = {cuda::grid_size(blocks), ranks, 1}, .block = {kThreads, 1, 1}});
}

void look_up_moe_a2a_kernels(Device device) {
  const MoeA2aCudaConfig config{kThreads};
  jit::cuda_kernel<kPlanCuda>(config, device);
  jit::cuda_kernel<kSendCuda>(config, device);
  jit::cuda_kernel<kSanitizeCuda>(config, device);
  jit::cuda_kernel<kShareCuda>(MoeShareCudaConfig{.narrow = 0, .unit = 16, .threads = kThreads}, device);
  jit::cuda_kernel<kCombineCuda>(
      MoeCombineCudaConfig{
          .payload = DType::kBF16, .out = DType::kBF16, .quant = MoeCombineQuant::kNone, .aligned = 1, .threads = 256},
      device);
}

}  // namespace flashinfer::ops::comm
