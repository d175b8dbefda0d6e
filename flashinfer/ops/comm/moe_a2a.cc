// SPDX-License-Identifier: Apache-2.0
// The workspace of an expert all-to-all, its local ops, and the class over the calls.
#include "flashinfer/ops/comm/moe_a2a.h"

#include <algorithm>
#include <bit>
#include <string_view>

#include "flashinfer/core/transfer.h"
#include "flashinfer/ops/comm/gpu_moe_a2a.h"
#include "flashinfer/ops/comm/gpu_share.h"
#include "flashinfer/ops/comm/moe_a2a_layout.h"

namespace flashinfer {
namespace ops::comm {
namespace {
using Init = MoeA2aInitialize;
using Sanitize = MoeA2aSanitizeExpertIds;
constexpr const char* kModule = "flashinfer.comm";

void check_sizes(int64_t ep_size, int64_t max_num_tokens, int64_t eplb) {
  FI_CHECK(ep_size >= 1 && ep_size <= kMoeA2aRanks, ValueError, "ep_size is ", ep_size, ", but must be in [1, ",
           kMoeA2aRanks, "]");
  FI_CHECK(max_num_tokens >= 1 && max_num_tokens < int64_t{1} << kMoePlaceBits, ValueError, "max_num_tokens is ",
           max_num_tokens, ", but must be in [1, ", int64_t{1} << kMoePlaceBits, ")");
  FI_CHECK(eplb >= 0 && eplb < int64_t{1} << 24, ValueError, "eplb_stats_num_experts is ", eplb,
           ", but must be in [0, 2^24)");
}

// ---- moe_a2a_initialize ----
void validate(const Init& a) {
  check_backend(a.backend);
  check_sizes(a.ep_size, a.max_num_tokens, a.eplb_stats_num_experts);
  const Peers p = peers_of(a.workspace, a.ep_rank, a.ep_size, "ep_rank", "ep_size");
  const MoeA2aLayout layout(a.ep_size, a.max_num_tokens, a.eplb_stats_num_experts);
  FI_CHECK(layout.payloads <= p.bytes(), ValueError, "workspace has ", p.bytes(), " bytes a rank, but ",
           layout.payloads, " are needed for ", a.max_num_tokens, " tokens before the first payload");
}
void initialize(const Init& a) {
  const Peers p = peers_of(a.workspace, a.ep_rank, a.ep_size, "ep_rank", "ep_size");
  const MoeA2aLayout layout(a.ep_size, a.max_num_tokens, a.eplb_stats_num_experts);
  const MoeA2aHeader* before = p.gpu ? p.gpu->header.get() : reinterpret_cast<MoeA2aHeader*>(p.own());
  const bool again = before && before->magic == MoeA2aHeader::kMagic;
  const MoeA2aHeader header = {.magic = MoeA2aHeader::kMagic,
                               .max_num_tokens = a.max_num_tokens,
                               .eplb_experts = a.eplb_stats_num_experts,
                               .left_out = again ? before->left_out : 0};
  if (p.gpu)
    initialize_on_gpu(*p.gpu, header);
  else
    *reinterpret_cast<MoeA2aHeader*>(p.own()) = header;
  const int64_t info[] = {a.max_num_tokens, a.eplb_stats_num_experts, MoeA2aLayout::counts, layout.stats,
                          layout.places,    layout.payloads};
  flashinfer::copy_bytes(a.metainfo->data(), a.metainfo->device(), info, kCpu, sizeof info);
}
void fill_internal(Init& a) { a.group = group_of(a.workspace); }
op::Shape metainfo_shape(const Init&) { return {1, {6}}; }

constexpr op::Field init_fields[] = {
    op::scratch<&Init::workspace>("workspace", nullptr, DType::kU8, op::required),
    op::attr<&Init::ep_rank>("ep_rank", op::required),
    op::attr<&Init::ep_size>("ep_size", op::required),
    op::attr<&Init::max_num_tokens>("max_num_tokens", op::required),
    op::attr<&Init::eplb_stats_num_experts>("eplb_stats_num_experts"),
    op::attr<&Init::backend>("backend", op::keyword_only),
    op::result<&Init::metainfo>("metainfo", nullptr, DType::kI64, op::shape<metainfo_shape>),
    op::attr<&Init::group>("group", op::internal),
};
constexpr op::Candidate init_candidates[] = {op::host<initialize>()};

// ---- moe_a2a_sanitize_expert_ids ----
void validate(const Sanitize& a) {
  check_backend(a.backend);
  const MoeA2aMemory m = memory_of(a.workspace, a.metainfo, a.ep_rank, a.workspace.size(0));
  FI_CHECK(m.header->dispatched, RuntimeError, "sanitize is called before dispatch");
  FI_CHECK(a.expert_ids.size(0) == m.peers.size && a.expert_ids.size(1) == m.header->runtime_max, ValueError,
           "expert_ids is ", to_string(a.expert_ids), ", but must be int32 [", m.peers.size, ", ",
           m.header->runtime_max, ", top_k], as the dispatch received it");
}
void sanitize(const Sanitize& a) {
  const MoeA2aMemory m = memory_of(a.workspace, a.metainfo, a.ep_rank, a.workspace.size(0));
  const int64_t rows = a.expert_ids.size(1), k = a.expert_ids.size(2);
  const int32_t* counts = m.counts_of(m.peers.rank);
  for (int64_t s = 0; s < m.peers.size; ++s)
    std::fill_n(a.expert_ids.data_as<int32_t>() + (s * rows + counts[s]) * k, (rows - counts[s]) * k,
                static_cast<int32_t>(a.invalid_expert_id));
}
op::Prepared prepare_sanitize(const Sanitize& a) {
  return prepare_sanitize_on_gpu(a, memory_of(a.workspace, a.metainfo, a.ep_rank, a.workspace.size(0)));
}
void fill_internal(Sanitize& a) {
  a.group = group_of(a.workspace);
  if (op::observed()) a.workspace_state = state_of(a.workspace, MoeA2aRead::kCounts);
}

constexpr op::Field sanitize_fields[] = {
    op::inout<&Sanitize::expert_ids>("expert_ids", "n m k", DType::kI32, op::contiguous),
    op::scratch<&Sanitize::workspace>("workspace", nullptr, DType::kU8, op::required),
    op::in<&Sanitize::metainfo>("metainfo", "6", DType::kI64, op::contiguous),
    op::attr<&Sanitize::ep_rank>("ep_rank", op::required),
    op::attr<&Sanitize::invalid_expert_id>("invalid_expert_id", op::required),
    op::attr<&Sanitize::enable_pdl>("enable_pdl"),
    op::attr<&Sanitize::backend>("backend", op::keyword_only),
    op::attr<&Sanitize::group>("group", op::internal),
    op::in<&Sanitize::workspace_state>("workspace_state", "b", DType::kU8, op::internal),
};
constexpr op::Candidate sanitize_candidates[] = {on_gpus<prepare_sanitize>(), op::cpu<sanitize>()};
}  // namespace

constinit const op::Op moe_a2a_initialize_op = op::collective(op::define<Init, validate, nullptr, fill_internal>(
    "moe_a2a_initialize", kModule, "Prepares this rank's part of the workspace of an expert all-to-all.", init_fields,
    init_candidates, nullptr));
constinit const op::Op moe_a2a_sanitize_op = op::collective(op::define<Sanitize, validate, nullptr, fill_internal>(
    "moe_a2a_sanitize_expert_ids", kModule,
    "Writes invalid_expert_id where the received rows of expert_ids hold no token.", sanitize_fields,
    sanitize_candidates, nullptr));

MoeA2aMemory memory_of(const TensorView& workspace, const TensorView& metainfo, int64_t ep_rank, int64_t ep_size) {
  Peers p = peers_of(workspace, ep_rank, ep_size, "ep_rank", "ep_size");
  auto* header = p.gpu ? p.gpu->header.get() : reinterpret_cast<MoeA2aHeader*>(p.own());
  FI_CHECK(header && p.bytes() >= int64_t{sizeof(MoeA2aHeader)} && header->magic == MoeA2aHeader::kMagic, ValueError,
           "workspace was not prepared: call moe_a2a_initialize first");
  const MoeA2aLayout layout(p.size, header->max_num_tokens, header->eplb_experts);
  if (!host_can_read(metainfo.device())) return {std::move(p), header, layout};
  const auto* info = metainfo.data_as<int64_t>();
  FI_CHECK(info[0] == header->max_num_tokens && info[1] == header->eplb_experts && info[5] == layout.payloads,
           ValueError, "metainfo is not that which moe_a2a_initialize returned for this workspace");
  return {std::move(p), header, layout};
}

std::optional<TensorView> state_of(const TensorView& workspace, MoeA2aRead read) {
  const auto window = workspace.defined() ? flashinfer::comm::window_at(workspace.data()) : nullptr;  // null on a GPU
  if (!window || window->bytes() < int64_t{sizeof(MoeA2aHeader)}) return std::nullopt;
  const auto& h = *reinterpret_cast<const MoeA2aHeader*>(window->own());
  if (h.magic != MoeA2aHeader::kMagic) return std::nullopt;
  const MoeA2aLayout layout(window->group().size(), h.max_num_tokens, h.eplb_experts);
  const int64_t ends[] = {sizeof h, layout.stats, layout.places + 4 * h.tokens * h.top_k};
  return TensorView(window->own(), DType::kU8, {ends[static_cast<size_t>(read)]});
}
int64_t recorded_ranks(const std::optional<TensorView>& mask) {
  if (!mask || mask->dtype() != DType::kU64 || mask->numel() != 1 || mask->device().type != DeviceType::kCPU) return -1;
  return static_cast<int64_t>(mask->data_as<uint64_t>()[0]);
}

uint64_t active_ranks(const std::optional<TensorView>& mask, bool enabled, const MoeA2aMemory& m) {
  uint64_t bits = all_ranks(m.peers.size);
  if (mask) {
    FI_CHECK(enabled, ValueError, "active_rank_mask is given, but enable_rank_mask is False");
    FI_CHECK(mask->numel() == 1, ValueError, "active_rank_mask is ", to_string(*mask), ", but must be one uint64");
    FI_CHECK(host_can_read(mask->device()), ValueError, "active_rank_mask is on ", to_string(mask->device()),
             ", but must be on the CPU");
    bits &= mask->data_as<uint64_t>()[0];
    FI_CHECK(bits >> m.peers.rank & 1, ValueError, "active_rank_mask is ", bits, ", but must have the bit of ep_rank, ",
             m.peers.rank);
  }
  const uint64_t back = bits & m.header->left_out;
  FI_CHECK(back == 0, ValueError, "active_rank_mask is ", mask ? str(bits) : "None", ", but rank ",
           std::countr_zero(back),
           " was left out of an earlier call with this workspace: only a new one takes it back");
  return bits;
}
void check_backend(const std::string& backend) {
  FI_CHECK(backend == "trtllm" || backend == "cake", ValueError, "backend is '", backend,
           "', but must be 'trtllm' or 'cake'");
  FI_CHECK(backend == "trtllm", NotImplementedError, "backend 'cake' is of one GPU generation: use 'trtllm'");
}
}  // namespace ops::comm

int64_t moe_a2a_get_workspace_size_per_rank(int64_t ep_size, int64_t max_num_tokens, int64_t dispatch_bytes,
                                            int64_t combine_bytes, int64_t eplb_stats_num_experts) {
  using L = ops::comm::MoeA2aLayout;
  ops::comm::check_sizes(ep_size, max_num_tokens, eplb_stats_num_experts);
  FI_CHECK(dispatch_bytes >= 0 && combine_bytes >= 0, ValueError, "the bytes a token are ", dispatch_bytes, " and ",
           combine_bytes, ", but must be at least 0");
  const int64_t rows = ep_size * max_num_tokens;
  return L(ep_size, max_num_tokens, eplb_stats_num_experts).payloads + kMoeA2aPayloads * L::kAlign +
         round_up(rows * dispatch_bytes, L::kAlign) + round_up(rows * combine_bytes, L::kAlign);
}

Tensor moe_a2a_initialize(const MoeA2aInitialize& a) { return op::call(ops::comm::moe_a2a_initialize_op, a); }
void moe_a2a_sanitize_expert_ids(const MoeA2aSanitizeExpertIds& a) { op::call(ops::comm::moe_a2a_sanitize_op, a); }

// ---- the class ----
MoeAlltoAll::MoeAlltoAll(const std::shared_ptr<comm::Group>& group, const MoeAlltoAllInit& args)
    : init_(args), group_(group) {
  FI_CHECK(args.num_experts >= group->size(), ValueError, "num_experts is ", args.num_experts,
           ", but must be at least ep_size, ", group->size());
  FI_CHECK(args.hidden_size > 0 || args.workspace_size_per_rank > 0, ValueError,
           "hidden_size or workspace_size_per_rank must be given");
  const int64_t bytes =
      args.workspace_size_per_rank > 0
          ? args.workspace_size_per_rank
          : moe_a2a_get_workspace_size_per_rank(group->size(), args.max_num_tokens,
                                                2 * args.hidden_size + 8 * args.top_k, 2 * args.hidden_size);
  memory_ = args.device.type == DeviceType::kCPU ? comm::share(group, bytes)
                                                 : share_on_gpu(group, args.device, bytes, "peers");
  metainfo_ = moe_a2a_initialize({.workspace = memory_,
                                  .ep_rank = group->rank(),
                                  .ep_size = group->size(),
                                  .max_num_tokens = args.max_num_tokens});
}
MoeA2aReceived MoeAlltoAll::dispatch(const TensorView& experts, const std::vector<TensorView>& payloads,
                                     int64_t runtime_max) {
  FI_CHECK(!dispatched_, RuntimeError, "dispatch called twice without combine");
  MoeA2aReceived r = moe_a2a_dispatch({.token_selected_experts = experts,
                                       .input_payloads = payloads,
                                       .workspace = memory_,
                                       .metainfo = metainfo_,
                                       .runtime_max_tokens_per_rank = runtime_max,
                                       .ep_rank = group_->rank(),
                                       .ep_size = group_->size(),
                                       .top_k = init_.top_k,
                                       .num_experts = init_.num_experts},
                                      memory_);
  tokens_ = experts.size(0), offset_ = r.combine_payload_offset, dispatched_ = true;
  return r;
}
Tensor MoeAlltoAll::combine(const TensorView& payload, int64_t runtime_max) {
  FI_CHECK(dispatched_, RuntimeError, "combine called before successful dispatch");
  Tensor out = moe_a2a_combine({.payload = payload,
                                .local_num_tokens = tokens_,
                                .workspace = memory_,
                                .metainfo = metainfo_,
                                .runtime_max_tokens_per_rank = runtime_max,
                                .ep_rank = group_->rank(),
                                .ep_size = group_->size(),
                                .top_k = init_.top_k,
                                .combine_payload_offset = offset_});
  dispatched_ = false;
  return out;
}
void MoeAlltoAll::sanitize(const TensorView& expert_ids, int64_t invalid_expert_id) {
  moe_a2a_sanitize_expert_ids({.expert_ids = expert_ids,
                               .workspace = memory_,
                               .metainfo = metainfo_,
                               .ep_rank = group_->rank(),
                               .invalid_expert_id = invalid_expert_id});
}

}  // namespace flashinfer
