// SPDX-License-Identifier: Apache-2.0
// What lies in a rank's part of an all-to-all's workspace, and the arithmetic that its calls share.
//
//   header | tokens received from each rank | statistics | places of the own tokens | payloads | combine's payload
#pragma once
#include <array>
#include <cstdint>

#include "flashinfer/core/int_math.h"
#include "flashinfer/op/observer.h"
#include "flashinfer/ops/comm/kernels/moe_a2a_params.h"
#include "flashinfer/ops/comm/moe_a2a.h"
#include "flashinfer/ops/comm/peers.h"

namespace flashinfer::ops::comm {

/// At the beginning of each rank's part; its rank alone reads and writes it. That of a GPU lies in the host's memory
/// (GpuShare), since it has what the host knows; without bytes_sent.
struct MoeA2aHeader {
  static constexpr uint64_t kMagic = 0x3161326165'6f6d;
  uint64_t magic;
  int64_t max_num_tokens, eplb_experts;
  // Of the last dispatch:
  int64_t tokens, top_k, runtime_max, combine_offset;
  int64_t dispatched;  // 0 after the combine
  int64_t bytes_sent;  // that the last dispatch or combine wrote for other ranks and itself
  uint64_t left_out;   // bit r: a mask has left rank r out; its phases lag, so it cannot come back
};

struct MoeA2aLayout {
  static constexpr int64_t kAlign = 128;
  MoeA2aLayout(int64_t ep_size, int64_t max_num_tokens, int64_t eplb_experts)
      : stats(round_up(counts + 4 * ep_size, kAlign)),
        places(round_up(stats + 4 * ep_size * eplb_experts, kAlign)),
        payloads(round_up(places + 4 * kMoeA2aTopK * max_num_tokens, kAlign)) {}
  static constexpr int64_t counts = round_up(int64_t{sizeof(MoeA2aHeader)}, kAlign);
  int64_t stats, places, payloads;
};

/// Offsets of the payloads in each rank's part, and of combine's behind them.
struct MoeA2aOffsets {
  MoeA2aOffsets(const std::vector<TensorView>& payloads, int64_t first, int64_t ep_size, int64_t runtime_max)
      : end(first) {
    for (size_t i = 0; i < payloads.size() && i < at.size(); ++i) {
      at[i] = end;
      end = round_up(end + ep_size * runtime_max * payloads[i].size(1) * payloads[i].item_size(), MoeA2aLayout::kAlign);
    }
  }
  std::array<int64_t, kMoeA2aPayloads> at{};
  int64_t end;
};

/// Experts of rank r: [first(r), first(r + 1)). The first `more` ranks have one more than the others.
struct ExpertOwners {
  ExpertOwners(int64_t num_experts, int64_t ep_size) : base(num_experts / ep_size), more(num_experts % ep_size) {}
  int64_t of(int64_t expert) const {
    const int64_t long_end = more * (base + 1);
    return expert < long_end ? expert / (base + 1) : more + (expert - long_end) / base;
  }
  int64_t base, more;
};

/// The workspace of a call on a rank that has called moe_a2a_initialize.
struct MoeA2aMemory {
  Peers peers;
  MoeA2aHeader* header;
  MoeA2aLayout layout;
  int32_t* counts_of(int64_t r) const { return reinterpret_cast<int32_t*>(peers.of(r) + MoeA2aLayout::counts); }
  uint32_t* places() const { return reinterpret_cast<uint32_t*>(peers.own() + layout.places); }
};
/// ValueError: a workspace that was not initialised, or metainfo of another one (on a GPU it is not looked at).
MoeA2aMemory memory_of(const TensorView& workspace, const TensorView& metainfo, int64_t ep_rank, int64_t ep_size);

/// What a call of this rank reads in its part of the workspace, for recordings: the header, and up to the counts, or up
/// to the places of the last dispatch's tokens. Absent: the workspace was not initialised.
enum class MoeA2aRead : uint8_t { kHeader, kCounts, kPlaces };
std::optional<TensorView> state_of(const TensorView& workspace, MoeA2aRead read);
/// For recordings: the bits of the mask; -1: all ranks, or a mask that is none.
int64_t recorded_ranks(const std::optional<TensorView>& mask);
/// The internal members of a dispatch or a combine.
template <class A>
void fill_for_recording(A& a, MoeA2aRead read) {
  a.group = group_of(a.workspace);
  if (!op::observed()) return;
  a.call = number_of_call(a.workspace);
  a.ranks = recorded_ranks(a.active_rank_mask);
  a.workspace_state = state_of(a.workspace, read);
}

/// Bit r: rank r takes part in a dispatch or a combine with memory `m`. ValueError: a mask without
/// enable_rank_mask, of another form, without this rank, or with one that an earlier call left out.
uint64_t active_ranks(const std::optional<TensorView>& mask, bool enabled, const MoeA2aMemory& m);
inline uint64_t all_ranks(int64_t ep_size) { return ep_size == 64 ? ~uint64_t{0} : (uint64_t{1} << ep_size) - 1; }
void check_backend(const std::string& backend);

extern const op::Op moe_a2a_initialize_op, moe_a2a_dispatch_op, moe_a2a_combine_op, moe_a2a_sanitize_op;

}  // namespace flashinfer::ops::comm
