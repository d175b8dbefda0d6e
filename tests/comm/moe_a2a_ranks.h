// SPDX-License-Identifier: Apache-2.0
// The ranks of an expert all-to-all in a test: what each sends and computes, and the contract of ops/comm/moe_a2a.h
// written out token by token.
#pragma once
#include <algorithm>
#include <cmath>
#include <cstring>
#include <random>

#include "flashinfer/core/check.h"
#include "flashinfer/core/transfer.h"
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
  Device device{};                                                  // of all tensors but metainfo and the mask
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
    const int64_t size =
        moe_a2a_get_workspace_size_per_rank(s.ranks, s.most, item * s.hidden + 4 * s.top_k + 3, item * s.hidden, 5) +
        extra;
    memory = s.device.type == DeviceType::kCPU ? comm::share(group, size) : share_on_gpu(group, s.device, size);
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
    for (Tensor* t : {&x, &bytes, &ids, &stats}) *t = to_device(*t, s.device);
    metainfo = to_device(metainfo, kCpu);
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
    if (const auto share = ops::comm::gpu_share_at(memory.data())) return *share->header;
    return *reinterpret_cast<const ops::comm::MoeA2aHeader*>(memory.data_as<char>() + rank * memory.view().stride(0));
  }
  TensorView place_of_payload() const {  // combine's in the workspace
    return {memory.data_as<char>() + rank * memory.view().stride(0) + received.combine_payload_offset,
            s.dtype,
            {s.ranks, s.most, s.hidden},
            s.device};
  }
  /// What compute() makes, outside of the workspace.
  Tensor computed() const {
    const Tensor y = Tensor::empty({s.ranks, s.most, s.hidden}, s.dtype);
    compute(y);
    return to_device(y, s.device);
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
/// The sum in f32 in the order of the token's experts; `narrow`: of what e4m3 holds of the rows.
inline void check_combined(const Rank& r, const TensorView& out, bool narrow = false) {
  for (int64_t t = 0; t < r.s.tokens(r.rank); ++t) {
    const std::vector<int> owners = owners_of(r.s, r.rank, t);
    for (int64_t i = 0; i < r.s.hidden; ++i) {
      float sum = 0;
      for (const int o : owners) {
        const double sent = rounded(computed_by(o, r.rank, t, i), r.s.dtype);
        sum += static_cast<float>(narrow ? rounded(sent, DType::kF8E4M3) : sent);
      }
      check(ref::at(out, {t, i}) == rounded(sum, out.dtype()), str("token ", t, " element ", i));
    }
  }
}
/// Dispatches and combines: of rows outside of the workspace, in it, with results of another type.
inline void check_rounds(Rank& r) {
  for (int round = 0; round < 3; ++round) {
    r.dispatch();
    check_received(r);
    if (round == 1) {
      r.compute(r.place_of_payload());
      MoeA2aCombine a = r.combine_args(r.place_of_payload());
      a.payload_in_workspace = true;
      check_combined(r, moe_a2a_combine(a).view());
      continue;
    }
    const Tensor y = r.computed();
    MoeA2aCombine a = r.combine_args(y);
    if (round == 2) a.output_dtype = DType::kF32;
    check_combined(r, moe_a2a_combine(a).view());
  }
}
inline void check_low_precision(Rank& r) {
  for (const bool in_workspace : {false, true}) {
    r.dispatch();
    const Tensor y = r.computed();
    const TensorView to = in_workspace ? r.place_of_payload() : y.view();
    if (in_workspace) r.compute(to);
    MoeA2aCombine a = r.combine_args(to);
    a.use_low_precision = true, a.payload_in_workspace = in_workspace;
    check_combined(r, moe_a2a_combine(a).view(), true);
  }
}
/// What the quantisers make of the sums, which bf16 holds exactly.
inline std::pair<Tensor, Tensor> quantised(const TensorView& sums, DType scales, DType out, int64_t layout) {
  if (out == DType::kF8E4M3) return mxfp8_quantize({.input = sums, .sf_swizzle_layout = layout});
  if (scales == DType::kU8) return mxfp4_quantize({.a = sums, .sfLayout = layout});
  const op::Results r = nvfp4_quantize({.a = sums, .a_global_sf = 2.5, .sfLayout = layout});
  return {r[0], r[1]};
}
/// After calls without rank 1: no later call has it, whatever was initialised in between.
inline void check_that_none_comes_back(Rank& r) {
  for (const bool again : {false, true}) {
    if (again)
      moe_a2a_initialize({.workspace = r.memory,
                          .ep_rank = r.rank,
                          .ep_size = r.s.ranks,
                          .max_num_tokens = r.s.most,
                          .eplb_stats_num_experts = 5});
    MoeA2aDispatch a = r.dispatch_args();
    a.active_rank_mask = std::nullopt;
    const std::string said = outcome_of([&] { moe_a2a_dispatch(a, r.memory); });
    check(said.find("active_rank_mask is None, but rank 1 was left out") != said.npos, said);
  }
}
inline std::string bytes_of(const TensorView& t) {
  return {static_cast<const char*>(t.data()), static_cast<size_t>(t.numel() * t.item_size())};
}
inline void check_quantised(Rank& r, DType out, DType scale, int64_t layout) {
  const Tensor y = r.computed();
  r.dispatch();
  const Tensor sums_there = moe_a2a_combine(r.combine_args(y)), sums = to_device(sums_there, kCpu);
  const auto [codes, factors] = quantised(sums, scale, out, layout);
  r.dispatch();
  MoeA2aCombine a = r.combine_args(y);
  const Tensor before = Tensor::empty({factors.numel()}, scale);
  std::memset(before.data(), 0x7b, static_cast<size_t>(before.numel()));
  const Tensor scales = to_device(before, r.s.device);
  a.output_dtype = out, a.output_scales = scales, a.sf_layout = layout, a.output_scalar_scale = 2.5;
  const Tensor got = moe_a2a_combine(a);
  check(bytes_of(got) == bytes_of(codes), "codes");
  check(bytes_of(scales) == bytes_of(factors), "scales");
}
inline void expect_none(const std::vector<Outcome>& outcomes) {
  for (size_t r = 0; r < outcomes.size(); ++r) EXPECT_EQ(outcomes[r], "") << "rank " << r;
}

}  // namespace flashinfer::moe_a2a_test
