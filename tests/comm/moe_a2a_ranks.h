// SPDX-License-Identifier: Apache-2.0
// The ranks of an expert all-to-all in a test: what each sends and computes, and the contract of ops/comm/moe_a2a.h
// written out token by token.
#pragma once
#include <algorithm>
#include <cmath>
#include <random>

#include "flashinfer/core/check.h"
#include "flashinfer/flashinfer.h"
#include "flashinfer/ops/comm/moe_a2a_layout.h"
#include "flashinfer/ops/common/reference.h"
#include "tests/comm/ranks.h"

namespace flashinfer::moe_a2a_test {

struct Setting {
  int ranks = 2;
  int64_t experts = 8, top_k = 3, hidden = 96, most = 12;
  DType dtype = DType::kBF16;
  uint64_t active = ~uint64_t{0};
  int64_t tokens(int r) const { return (r * 5 + 7) % (most + 1); }  // some ranks have few, one may have none
};
inline std::mt19937 generator(int a, int64_t b = 0, int64_t c = 0) {
  std::seed_seq seed{a, static_cast<int>(b), static_cast<int>(c)};
  return std::mt19937(seed);
}
/// Experts of a rank's tokens; some appear twice in a token, some are absent.
inline std::vector<int32_t> experts_of(const Setting& s, int rank) {
  auto random = generator(rank, 1);
  std::vector<int32_t> ids;
  for (int64_t i = 0; i < s.tokens(rank) * s.top_k; ++i)
    ids.push_back(random() % 9 == 0 ? -1 : static_cast<int32_t>(random() % static_cast<unsigned>(s.experts)));
  return ids;
}
/// Owner of an expert by counting: the first E mod ep ranks own one more.
inline int owner_of(const Setting& s, int64_t expert) {
  for (int r = 0;; ++r) {
    const int64_t n = s.experts / s.ranks + (r < s.experts % s.ranks);
    if (expert < n) return r;
    expert -= n;
  }
}
/// The ranks that token t of `rank` goes to, in the order of its experts.
inline std::vector<int> owners_of(const Setting& s, int rank, int64_t t) {
  const auto ids = experts_of(s, rank);
  std::vector<int> owners;
  for (int64_t k = 0; k < s.top_k; ++k) {
    const int32_t e = ids[static_cast<size_t>(t * s.top_k + k)];
    if (e < 0) continue;
    const int r = owner_of(s, e);
    if ((s.active >> r & 1) && std::find(owners.begin(), owners.end(), r) == owners.end()) owners.push_back(r);
  }
  return owners;
}
/// Tokens of `source` that `receiver` gets, in order.
inline std::vector<int64_t> tokens_for(const Setting& s, int source, int receiver) {
  std::vector<int64_t> tokens;
  if (s.active >> source & 1)
    for (int64_t t = 0; t < s.tokens(source); ++t) {
      const auto owners = owners_of(s, source, t);
      if (std::find(owners.begin(), owners.end(), receiver) != owners.end()) tokens.push_back(t);
    }
  return tokens;
}
/// Element i of what `rank` sends of token t, and of what `owner` computes for it: multiples of 1/8.
inline double value_of(int rank, int64_t t, int64_t i) {
  return static_cast<double>((rank * 7 + t * 13 + i * 3) % 64) / 8 - 4;
}
inline double computed_by(int owner, int rank, int64_t t, int64_t i) {
  return value_of(rank, t, i) * (owner + 1) + 0.375 * static_cast<double>((owner + i) % 5);
}
inline double rounded(double x, DType dtype) {
  const Tensor one = Tensor::empty({1, 1}, dtype);
  ref::put(one.view(), {0, 0}, x);
  return ref::at(one.view(), {0, 0});
}

/// A rank of an all-to-all: its memory and inputs.
struct Rank {
  Rank(const Setting& setting, const std::string& name, int r, int64_t extra = 0)
      : s(setting), rank(r), group(comm::Group::connect(name, r, s.ranks)) {
    const int64_t item = size_of(s.dtype);
    memory = comm::share(group, moe_a2a_get_workspace_size_per_rank(s.ranks, s.most, item * s.hidden + 4 * s.top_k + 3,
                                                                    item * s.hidden, 5) +
                                    extra);
    metainfo = moe_a2a_initialize({.workspace = memory,
                                   .ep_rank = rank,
                                   .ep_size = s.ranks,
                                   .max_num_tokens = s.most,
                                   .eplb_stats_num_experts = 5});
    const int64_t n = s.tokens(rank);
    x = Tensor::empty({n, s.hidden}, s.dtype), bytes = Tensor::empty({n, 3}, DType::kU8);
    ids = Tensor::copy_of<int32_t>(experts_of(s, rank), {n, s.top_k});
    stats = Tensor::empty({5}, DType::kI32);
    for (int64_t i = 0; i < 5; ++i) stats.data_as<int32_t>()[i] = static_cast<int32_t>(100 * rank + i);
    for (int64_t t = 0; t < n; ++t) {
      for (int64_t i = 0; i < s.hidden; ++i) ref::put(x.view(), {t, i}, value_of(rank, t, i));
      for (int64_t i = 0; i < 3; ++i) bytes.data_as<uint8_t>()[t * 3 + i] = static_cast<uint8_t>(rank * 50 + t * 3 + i);
    }
    if (s.active != ~uint64_t{0}) mask = Tensor::copy_of<uint64_t>(std::vector{s.active}, {1});
  }
  MoeA2aDispatch dispatch_args() const {
    MoeA2aDispatch a{.token_selected_experts = ids,
                     .input_payloads = {x, ids, bytes},
                     .workspace = memory,
                     .metainfo = metainfo,
                     .runtime_max_tokens_per_rank = s.most,
                     .ep_rank = rank,
                     .ep_size = s.ranks,
                     .top_k = s.top_k,
                     .num_experts = s.experts};
    a.eplb_local_stats = stats;
    if (mask.defined()) a.enable_rank_mask = true, a.active_rank_mask = mask;
    return a;
  }
  void dispatch() {
    received = moe_a2a_dispatch(dispatch_args(), memory);
    sent = header().bytes_sent;
  }
  /// What the rank's experts compute, at the place of each received row; the rest is NaN.
  void compute(const TensorView& to) const {
    for (int64_t i = 0; i < to.numel(); ++i) ref::put(to.view({to.numel()}), {i}, NAN);
    for (int source = 0; source < s.ranks; ++source) {
      const auto tokens = tokens_for(s, source, rank);
      for (size_t row = 0; row < tokens.size(); ++row)
        for (int64_t i = 0; i < s.hidden; ++i)
          ref::put(to, {source, static_cast<int64_t>(row), i}, computed_by(rank, source, tokens[row], i));
    }
  }
  MoeA2aCombine combine_args(const TensorView& payload) const {
    MoeA2aCombine a{.payload = payload,
                    .local_num_tokens = s.tokens(rank),
                    .workspace = memory,
                    .metainfo = metainfo,
                    .runtime_max_tokens_per_rank = s.most,
                    .ep_rank = rank,
                    .ep_size = s.ranks,
                    .top_k = s.top_k,
                    .combine_payload_offset = received.combine_payload_offset};
    if (mask.defined()) a.enable_rank_mask = true, a.active_rank_mask = mask;
    return a;
  }
  const ops::comm::MoeA2aHeader& header() const {
    return *reinterpret_cast<const ops::comm::MoeA2aHeader*>(memory.data_as<char>() + rank * memory.view().stride(0));
  }
  TensorView place_of_payload() const {  // combine's in the workspace
    return {memory.data_as<char>() + rank * memory.view().stride(0) + received.combine_payload_offset,
            s.dtype,
            {s.ranks, s.most, s.hidden}};
  }
  Setting s;
  int rank;
  std::shared_ptr<comm::Group> group;
  Tensor memory, metainfo, x, bytes, ids, stats, mask;
  MoeA2aReceived received;
  int64_t sent = 0;
};

inline void check(bool ok, const std::string& what) {
  if (!ok) throw RuntimeError(what);
}
/// The received payloads of a rank, byte by byte; -7 where there is no token.
inline void check_received(Rank& r) {
  const Setting& s = r.s;
  check(r.received.payloads.size() == 3, "three payloads");
  const TensorView x = r.received.payloads[0], ids = r.received.payloads[1], bytes = r.received.payloads[2];
  moe_a2a_sanitize_expert_ids(
      {.expert_ids = ids, .workspace = r.memory, .metainfo = r.metainfo, .ep_rank = r.rank, .invalid_expert_id = -7});
  int64_t rows = 0;
  for (int source = 0; source < s.ranks; ++source) {
    const auto tokens = tokens_for(s, source, r.rank);
    const auto wanted = experts_of(s, source);
    for (int64_t row = 0; row < s.most; ++row) {
      const bool is_token = row < static_cast<int64_t>(tokens.size());
      const int64_t t = is_token ? tokens[static_cast<size_t>(row)] : 0;
      for (int64_t k = 0; k < s.top_k; ++k)
        check(ref::at(ids, {source, row, k}) == (is_token ? wanted[static_cast<size_t>(t * s.top_k + k)] : -7),
              str("ids of row ", row, " of ", source));
      if (!is_token) continue;
      ++rows;
      for (int64_t i = 0; i < s.hidden; ++i)
        check(ref::at(x, {source, row, i}) == value_of(source, t, i), str("row ", row, " of ", source));
      for (int64_t i = 0; i < 3; ++i)
        check(ref::at(bytes, {source, row, i}) == source * 50 + t * 3 + i, str("bytes of row ", row, " of ", source));
    }
    for (int64_t i = 0; (s.active >> source & 1) && i < 5; ++i)
      check(ref::at(r.received.eplb_gathered_stats.view(), {source, i}) == static_cast<double>(100 * source + i),
            "statistics");
  }
}
/// The sum in f32 in the order of the token's experts.
inline void check_combined(const Rank& r, const TensorView& out) {
  for (int64_t t = 0; t < r.s.tokens(r.rank); ++t)
    for (int64_t i = 0; i < r.s.hidden; ++i) {
      float sum = 0;
      for (const int o : owners_of(r.s, r.rank, t))
        sum += static_cast<float>(rounded(computed_by(o, r.rank, t, i), r.s.dtype));
      check(ref::at(out, {t, i}) == rounded(sum, out.dtype()), str("token ", t, " element ", i));
    }
}
inline void expect_none(const std::vector<Outcome>& outcomes) {
  for (size_t r = 0; r < outcomes.size(); ++r) EXPECT_EQ(outcomes[r], "") << "rank " << r;
}

}  // namespace flashinfer::moe_a2a_test
