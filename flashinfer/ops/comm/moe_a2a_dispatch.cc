// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <array>
#include <cstring>

#include "flashinfer/op/device_indices.h"
#include "flashinfer/ops/comm/gpu_moe_a2a.h"
#include "flashinfer/ops/comm/moe_a2a_layout.h"
#include "flashinfer/ops/common/rows.h"

namespace flashinfer {
namespace ops::comm {
namespace {
using A = MoeA2aDispatch;

constexpr std::optional<TensorView> A::* kReceived[kMoeA2aPayloads] = {&A::received_0, &A::received_1, &A::received_2,
                                                                       &A::received_3, &A::received_4, &A::received_5};
int64_t tokens(const A& a) { return a.token_selected_experts.size(0); }
int64_t columns(const TensorView& t) { return t.size(1); }
int64_t row_bytes(const TensorView& t) { return columns(t) * t.item_size(); }

using Offsets = MoeA2aOffsets;

void check_payloads(const A& a) {
  const auto n = static_cast<int64_t>(a.input_payloads.size());
  FI_CHECK(n >= 1 && n <= kMoeA2aPayloads, ValueError, "input_payloads has ", n, " tensors, but must have 1 to ",
           kMoeA2aPayloads);
  for (int64_t i = 0; i < n; ++i) {
    const TensorView& p = a.input_payloads[static_cast<size_t>(i)];
    FI_CHECK(p.rank() == 2 && p.size(0) == tokens(a), ValueError, "input_payloads[", i, "] is ", to_string(p),
             ", but must be [", tokens(a), ", columns], a row for each row of token_selected_experts");
    FI_CHECK(p.device() == a.workspace.device(), ValueError, "input_payloads[", i, "] is on ", to_string(p.device()),
             ", but the workspace was made for ", to_string(a.workspace.device()));
    FI_CHECK(p.is_contiguous(), ValueError, "input_payloads[", i, "] is ", to_string(p), ", but must be contiguous");
    FI_CHECK(columns(p) < int64_t{1} << 24, ValueError, "input_payloads[", i, "] is ", to_string(p),
             ", but must have fewer than 2^24 columns");
  }
}
void check_stats(const A& a, const MoeA2aHeader& h) {
  const std::optional<TensorView>&local = a.eplb_local_stats, &gathered = a.eplb_gathered_stats;
  FI_CHECK(!local || local->numel() == h.eplb_experts, ValueError, "eplb_local_stats has ", local->numel(),
           " elements, but moe_a2a_initialize was called with eplb_stats_num_experts ", h.eplb_experts);
  FI_CHECK(!local || local->device() == a.workspace.device(), ValueError, "eplb_local_stats is on ",
           to_string(local->device()), ", but the workspace was made for ", to_string(a.workspace.device()));
  FI_CHECK(local.has_value() == gathered.has_value(), ValueError, "eplb_gathered_stats is ",
           gathered ? "given" : "None", ", but eplb_local_stats is ", local ? "given" : "None");
}
void validate(const A& a) {
  check_backend(a.backend);
  FI_CHECK(a.top_k >= 1 && a.top_k <= kMoeA2aTopK, ValueError, "top_k is ", a.top_k, ", but must be in [1, ",
           kMoeA2aTopK, "]");
  FI_CHECK(a.token_selected_experts.size(1) == a.top_k, ValueError, "token_selected_experts is ",
           to_string(a.token_selected_experts), ", but must be int32 [tokens, ", a.top_k, "]");
  FI_CHECK(a.num_experts >= a.ep_size && a.num_experts < int64_t{1} << 31, ValueError, "num_experts is ", a.num_experts,
           ", but must be at least ep_size, ", a.ep_size);
  check_payloads(a);
  const MoeA2aMemory m = memory_of(a.workspace, a.metainfo, a.ep_rank, a.ep_size);
  const int64_t most = a.runtime_max_tokens_per_rank;
  FI_CHECK(most >= 1 && most <= m.header->max_num_tokens, ValueError, "runtime_max_tokens_per_rank is ", most,
           ", but must be in [1, ", m.header->max_num_tokens, "] (max_num_tokens)");
  FI_CHECK(tokens(a) <= most, ValueError, "token_selected_experts has ", tokens(a),
           " rows, but runtime_max_tokens_per_rank is ", most);
  active_ranks(a.active_rank_mask, a.enable_rank_mask, m);
  check_stats(a, *m.header);
  const Offsets offsets(a.input_payloads, m.layout.payloads, a.ep_size, most);
  FI_CHECK(offsets.end <= m.peers.bytes(), ValueError, "workspace has ", m.peers.bytes(), " bytes a rank, but ",
           offsets.end, " are needed for ", most, " tokens of each of ", a.ep_size, " ranks");
  const auto check_place = [&](const std::optional<TensorView>& t, const std::string& name, int64_t at) {
    FI_CHECK(!t || t->data() == m.peers.own() + at, ValueError, name, " must be the memory at byte ", at,
             " of this rank's part of workspace");
  };
  for (size_t i = 0; i < a.input_payloads.size(); ++i) {
    FI_CHECK(a.*kReceived[i], ValueError, "received_", i, " is None, but input_payloads has ", a.input_payloads.size(),
             " tensors");
    check_place(a.*kReceived[i], str("received_", i), offsets.at[i]);
  }
  check_place(a.eplb_gathered_stats, "eplb_gathered_stats", m.layout.stats);
  const op::HostIndices experts(a.token_selected_experts);
  if (!experts) return;  // a GPU's
  const auto* ids = (*experts).data_as<int32_t>();
  for (int64_t i = 0; i < a.token_selected_experts.numel(); ++i)
    FI_CHECK(ids[i] < a.num_experts, ValueError, "token_selected_experts[", i / a.top_k, "][", i % a.top_k, "] is ",
             ids[i], ", but num_experts is ", a.num_experts);
}

// ---- the call ----
flashinfer::comm::Signature signature_of(const A& a, const MoeA2aHeader& h, uint64_t active) {
  uint64_t types = 0xcbf29ce484222325u;
  int64_t bytes = 0;
  for (const TensorView& p : a.input_payloads) {
    types = (types ^ (static_cast<uint64_t>(columns(p)) << 8 | static_cast<uint64_t>(p.dtype()))) * 0x100000001b3u;
    bytes += row_bytes(p);
  }
  return signature(CallKind::kMoeDispatch,
                   {a.runtime_max_tokens_per_rank, a.top_k, a.num_experts, a.eplb_local_stats ? h.eplb_experts : 0,
                    bytes, static_cast<int64_t>(types), static_cast<int64_t>(active)});
}

/// Fills the places of all tokens; how many go to each rank.
std::array<int32_t, kMoeA2aRanks> plan(const A& a, uint32_t* places, uint64_t active) {
  const ExpertOwners owners(a.num_experts, a.ep_size);
  std::array<int32_t, kMoeA2aRanks> counts{};
  const auto* ids = a.token_selected_experts.data_as<int32_t>();
  for (int64_t t = 0; t < tokens(a); ++t) {
    uint64_t left = active;  // ranks that do not have the token yet
    for (int64_t i = t * a.top_k; i < (t + 1) * a.top_k; ++i) {
      places[i] = kMoeNoPlace;
      if (ids[i] < 0) continue;
      const int64_t r = owners.of(ids[i]);
      if (!(left >> r & 1)) continue;
      left &= ~(uint64_t{1} << r);
      places[i] = static_cast<uint32_t>(r) << kMoePlaceBits | static_cast<uint32_t>(counts[static_cast<size_t>(r)]++);
    }
  }
  return counts;
}

/// Whether a dispatch must wait before it writes: others may still read what the last dispatch sent them, unless a
/// combine followed it; or, behind a combine, rows of its payload where the new ones lie. The same on all ranks.
bool overwrites(const MoeA2aHeader& h, const Offsets& offsets) {
  return h.dispatched || (h.combine_offset != 0 && offsets.end > h.combine_offset);
}
/// The rows of all tokens to their places.
void send_rows(const A& a, const MoeA2aMemory& m, const Offsets& offsets) {
  const uint32_t* places = m.places();
  const int64_t first_row = m.peers.rank * a.runtime_max_tokens_per_rank;
  int64_t bytes = 0;
  for (const TensorView& p : a.input_payloads) bytes += row_bytes(p);
  const auto token = [&](int64_t t) {
    for (size_t i = 0; i < a.input_payloads.size(); ++i) {
      const int64_t n = row_bytes(a.input_payloads[i]);
      const auto* from = static_cast<const std::byte*>(a.input_payloads[i].data()) + t * n;
      for (int64_t k = t * a.top_k; k < (t + 1) * a.top_k; ++k) {
        if (places[k] == kMoeNoPlace) continue;
        const int64_t slot = places[k] & ((1u << kMoePlaceBits) - 1);
        std::memcpy(m.peers.of(places[k] >> kMoePlaceBits) + offsets.at[i] + (first_row + slot) * n, from,
                    static_cast<size_t>(n));
      }
    }
  };
  for_rows(tokens(a), rows_per_task(tokens(a), bytes * std::min(a.top_k, a.ep_size)), token);
}

void launch(const A& a) {
  const MoeA2aMemory m = memory_of(a.workspace, a.metainfo, a.ep_rank, a.ep_size);
  MoeA2aHeader& h = *m.header;
  const uint64_t active = active_ranks(a.active_rank_mask, a.enable_rank_mask, m);
  const Offsets offsets(a.input_payloads, m.layout.payloads, a.ep_size, a.runtime_max_tokens_per_rank);
  if (overwrites(h, offsets)) m.peers.meet(signature(CallKind::kMoeReuse, {static_cast<int64_t>(active)}), active);
  const auto counts = plan(a, m.places(), active);
  send_rows(a, m, offsets);
  h.bytes_sent = 0;
  int64_t row = 0;
  for (const TensorView& p : a.input_payloads) row += row_bytes(p);
  for (int64_t r = 0; r < a.ep_size; ++r) {
    if (!(active >> r & 1)) {
      m.counts_of(a.ep_rank)[r] = 0;  // nothing comes from there
      continue;
    }
    const int32_t n = counts[static_cast<size_t>(r)];
    m.counts_of(r)[a.ep_rank] = n;
    const int to = static_cast<int>(r);
    flashinfer::comm::Window& window = *m.peers.window;
    window.put(to, to, MoeA2aLayout::counts + 4 * a.ep_rank, 4);
    for (size_t i = 0; i < a.input_payloads.size(); ++i) {
      const int64_t bytes = row_bytes(a.input_payloads[i]);
      window.put(to, to, offsets.at[i] + a.ep_rank * a.runtime_max_tokens_per_rank * bytes, n * bytes);
    }
    h.bytes_sent += n * row + 4;
    if (!a.eplb_local_stats) continue;
    std::memcpy(m.peers.of(r) + m.layout.stats + 4 * a.ep_rank * h.eplb_experts, a.eplb_local_stats->data(),
                static_cast<size_t>(4 * h.eplb_experts));
    window.put(to, to, m.layout.stats + 4 * a.ep_rank * h.eplb_experts, 4 * h.eplb_experts);
    h.bytes_sent += 4 * h.eplb_experts;
  }
  m.peers.meet(signature_of(a, h, active), active);
  h.tokens = tokens(a), h.top_k = a.top_k, h.runtime_max = a.runtime_max_tokens_per_rank;
  h.combine_offset = offsets.end, h.dispatched = 1, h.left_out |= all_ranks(a.ep_size) & ~active;
}
op::Prepared prepare_cuda(const A& a) {
  const MoeA2aMemory m = memory_of(a.workspace, a.metainfo, a.ep_rank, a.ep_size);
  const uint64_t active = active_ranks(a.active_rank_mask, a.enable_rank_mask, m);
  return prepare_dispatch_on_gpu(a, m, active, signature_of(a, *m.header, active));
}
void fill_internal(A& a) { fill_for_recording(a, MoeA2aRead::kHeader); }

op::Cost cost(const A& a) {
  double bytes = 0;
  for (const TensorView& p : a.input_payloads) bytes += static_cast<double>(p.nbytes());
  return {.bytes = bytes * static_cast<double>(1 + std::min(a.top_k, a.ep_size))};
}

template <size_t I>
bool is_received(const A& a) {
  return I < a.input_payloads.size();
}
template <size_t I>
op::Shape received_shape(const A& a) {
  return {3, {a.ep_size, a.runtime_max_tokens_per_rank, columns(a.input_payloads[I])}};
}
template <size_t I>
DType received_dtype(const A& a) {
  return a.input_payloads[I].dtype();
}
template <size_t I>
constexpr op::Field received(const char* name) {
  // What was there before stays behind the tokens, so a recording has it too.
  return op::inout<kReceived[I]>(name, nullptr, op::shape<received_shape<I>>, op::dtype<received_dtype<I>>,
                                 op::contiguous, op::when<is_received<I>>);
}
bool has_stats(const A& a) { return a.eplb_local_stats.has_value(); }
op::Shape stats_shape(const A& a) { return {2, {a.ep_size, a.eplb_local_stats ? a.eplb_local_stats->numel() : 0}}; }
constexpr op::Field fields[] = {
    op::in<&A::token_selected_experts>("token_selected_experts", "t k", DType::kI32, op::contiguous),
    op::attr<&A::input_payloads>("input_payloads"),
    op::scratch<&A::workspace>("workspace", nullptr, DType::kU8, op::required),
    op::in<&A::metainfo>("metainfo", "6", DType::kI64, op::contiguous),
    op::attr<&A::runtime_max_tokens_per_rank>("runtime_max_tokens_per_rank", op::required),
    op::attr<&A::ep_rank>("ep_rank", op::required),
    op::attr<&A::ep_size>("ep_size", op::required),
    op::attr<&A::top_k>("top_k", op::required),
    op::attr<&A::num_experts>("num_experts", op::required, op::doc("of all ranks")),
    op::attr<&A::enable_pdl>("enable_pdl"),
    op::in<&A::eplb_local_stats>("eplb_local_stats", "e", DType::kI32, op::contiguous),
    op::attr<&A::enable_rank_mask>("enable_rank_mask"),
    op::in<&A::active_rank_mask>("active_rank_mask", nullptr, DType::kU64),
    op::attr<&A::backend>("backend", op::keyword_only),
    received<0>("received_0"),
    received<1>("received_1"),
    received<2>("received_2"),
    received<3>("received_3"),
    received<4>("received_4"),
    received<5>("received_5"),
    op::inout<&A::eplb_gathered_stats>("eplb_gathered_stats", nullptr, DType::kI32, op::shape<stats_shape>,
                                       op::contiguous, op::when<has_stats>),
    op::attr<&A::group>("group", op::internal),
    op::attr<&A::call>("call", op::internal),
    op::attr<&A::ranks>("ranks", op::internal),
    op::in<&A::workspace_state>("workspace_state", "b", DType::kU8, op::internal),
};
constexpr op::Candidate candidates[] = {on_gpus<prepare_cuda>(), op::cpu<launch>()};
}  // namespace

constinit const op::Op moe_a2a_dispatch_op = op::collective(op::define<A, validate, cost, fill_internal>(
    "moe_a2a_dispatch_into", "flashinfer.comm",
    "Sends each token's rows to the ranks of its experts, into the workspace; moe_a2a_dispatch makes the views.",
    fields, candidates, nullptr));
}  // namespace ops::comm

/// What the views need; its errors name the function, as those of the op do.
static ops::comm::MoeA2aMemory checked_memory(const MoeA2aDispatch& a) {
  try {
    ops::comm::check_payloads(a);
    return ops::comm::memory_of(a.workspace, a.metainfo, a.ep_rank, a.ep_size);
  } catch (Error& e) {
    e.set_op("moe_a2a_dispatch");
    throw;
  }
}

MoeA2aReceived moe_a2a_dispatch(MoeA2aDispatch a, const Tensor& memory) {
  using namespace ops::comm;
  const MoeA2aMemory m = checked_memory(a);
  const int64_t most = a.runtime_max_tokens_per_rank;
  const Offsets offsets(a.input_payloads, m.layout.payloads, a.ep_size, most);
  MoeA2aReceived r{.payloads = {}, .combine_payload_offset = offsets.end};
  const bool fits = offsets.end <= m.peers.bytes();  // else the call says so
  for (size_t i = 0; fits && i < a.input_payloads.size(); ++i) {
    const TensorView& p = a.input_payloads[i];
    a.*kReceived[i] = TensorView(m.peers.own() + offsets.at[i], p.dtype(), {a.ep_size, most, columns(p)}, p.device());
    r.payloads.emplace_back(*(a.*kReceived[i]), memory.owner());
  }
  if (a.eplb_local_stats && a.eplb_local_stats->numel() == m.header->eplb_experts) {  // else the call says so
    a.eplb_gathered_stats = TensorView(m.peers.own() + m.layout.stats, DType::kI32, {a.ep_size, m.header->eplb_experts},
                                       a.workspace.device());
    r.eplb_gathered_stats = Tensor(*a.eplb_gathered_stats, memory.owner());
  }
  op::call(moe_a2a_dispatch_op, a);
  return r;
}

}  // namespace flashinfer
