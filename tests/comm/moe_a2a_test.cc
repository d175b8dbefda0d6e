// SPDX-License-Identifier: Apache-2.0
// The expert all-to-all against its contract (ops/comm/moe_a2a.h), written out here token by token.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <random>

#include "flashinfer/core/check.h"
#include "flashinfer/flashinfer.h"
#include "flashinfer/ops/comm/moe_a2a_layout.h"
#include "flashinfer/ops/common/reference.h"
#include "tests/comm/ranks.h"

namespace flashinfer {
namespace {

struct Setting {
  int ranks = 2;
  int64_t experts = 8, top_k = 3, hidden = 96, most = 12;
  DType dtype = DType::kBF16;
  uint64_t active = ~uint64_t{0};
  int64_t tokens(int r) const { return (r * 5 + 7) % (most + 1); }  // some ranks have few, one may have none
};
std::mt19937 generator(int a, int64_t b = 0, int64_t c = 0) {
  std::seed_seq seed{a, static_cast<int>(b), static_cast<int>(c)};
  return std::mt19937(seed);
}
/// Experts of a rank's tokens; some appear twice in a token, some are absent.
std::vector<int32_t> experts_of(const Setting& s, int rank) {
  auto random = generator(rank, 1);
  std::vector<int32_t> ids;
  for (int64_t i = 0; i < s.tokens(rank) * s.top_k; ++i)
    ids.push_back(random() % 9 == 0 ? -1 : static_cast<int32_t>(random() % static_cast<unsigned>(s.experts)));
  return ids;
}
/// Owner of an expert by counting: the first E mod ep ranks own one more.
int owner_of(const Setting& s, int64_t expert) {
  for (int r = 0;; ++r) {
    const int64_t n = s.experts / s.ranks + (r < s.experts % s.ranks);
    if (expert < n) return r;
    expert -= n;
  }
}
/// The ranks that token t of `rank` goes to, in the order of its experts.
std::vector<int> owners_of(const Setting& s, int rank, int64_t t) {
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
std::vector<int64_t> tokens_for(const Setting& s, int source, int receiver) {
  std::vector<int64_t> tokens;
  if (s.active >> source & 1)
    for (int64_t t = 0; t < s.tokens(source); ++t) {
      const auto owners = owners_of(s, source, t);
      if (std::find(owners.begin(), owners.end(), receiver) != owners.end()) tokens.push_back(t);
    }
  return tokens;
}
/// Element i of what `rank` sends of token t, and of what `owner` computes for it: multiples of 1/8.
double value_of(int rank, int64_t t, int64_t i) {
  return static_cast<double>((rank * 7 + t * 13 + i * 3) % 64) / 8 - 4;
}
double computed_by(int owner, int rank, int64_t t, int64_t i) {
  return value_of(rank, t, i) * (owner + 1) + 0.375 * static_cast<double>((owner + i) % 5);
}
double rounded(double x, DType dtype) {
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

void check(bool ok, const std::string& what) {
  if (!ok) throw RuntimeError(what);
}
/// The received payloads of a rank, byte by byte; -7 where there is no token.
void check_received(Rank& r) {
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
void check_combined(const Rank& r, const TensorView& out) {
  for (int64_t t = 0; t < r.s.tokens(r.rank); ++t)
    for (int64_t i = 0; i < r.s.hidden; ++i) {
      float sum = 0;
      for (const int o : owners_of(r.s, r.rank, t))
        sum += static_cast<float>(rounded(computed_by(o, r.rank, t, i), r.s.dtype));
      check(ref::at(out, {t, i}) == rounded(sum, out.dtype()), str("token ", t, " element ", i));
    }
}
void expect_none(const std::vector<Outcome>& outcomes) {
  for (size_t r = 0; r < outcomes.size(); ++r) EXPECT_EQ(outcomes[r], "") << "rank " << r;
}

TEST(MoeA2a, EachTokenReachesEachOwnerOnceAndComesBackSummed) {
  for (const Setting& s : {Setting{.ranks = 1}, Setting{.ranks = 2}, Setting{.ranks = 4, .experts = 6, .top_k = 8},
                           Setting{.ranks = 3, .experts = 10, .hidden = 40, .dtype = DType::kF32},
                           Setting{.ranks = 5, .experts = 8, .top_k = 1, .hidden = 33, .dtype = DType::kF16}}) {
    const std::string name = fresh_name();
    expect_none(run_threads(s.ranks, [&](int rank) {
      Rank r(s, name, rank);
      for (int round = 0; round < 3; ++round) {
        r.dispatch();
        check_received(r);
        const Tensor y = Tensor::empty({s.ranks, s.most, s.hidden}, s.dtype);
        if (round == 1) {  // in the workspace
          r.compute(r.place_of_payload());
          MoeA2aCombine a = r.combine_args(r.place_of_payload());
          a.payload_in_workspace = true;
          check_combined(r, moe_a2a_combine(a).view());
          continue;
        }
        r.compute(y);
        MoeA2aCombine a = r.combine_args(y);
        if (round == 2) a.output_dtype = DType::kF32;
        check_combined(r, moe_a2a_combine(a).view());
      }
    }));
  }
}

TEST(MoeA2a, MovesEachRowOnce) {
  const Setting s{.ranks = 4, .experts = 16, .top_k = 8, .hidden = 512, .most = 64};
  const std::string name = fresh_name();
  expect_none(run_threads(s.ranks, [&](int rank) {
    Rank r(s, name, rank);
    r.dispatch();
    int64_t sent = 0, received = 0;
    for (int other = 0; other < s.ranks; ++other) {
      sent += static_cast<int64_t>(tokens_for(s, rank, other).size());
      received += static_cast<int64_t>(tokens_for(s, other, rank).size());
    }
    const double there = static_cast<double>(sent * (2 * s.hidden + 4 * s.top_k + 3));
    check(r.sent >= there && static_cast<double>(r.sent) <= 1.05 * there, str("sent ", r.sent, " of ", there));
    const Tensor y = Tensor::zeros({s.ranks, s.most, s.hidden}, s.dtype);
    moe_a2a_combine(r.combine_args(y));
    const int64_t back = received * 2 * s.hidden;
    check(r.header().bytes_sent == back, str("sent back ", r.header().bytes_sent, " of ", back));
  }));
}

TEST(MoeA2a, LowPrecisionSendsBytes) {
  const Setting s{.ranks = 3, .experts = 9, .top_k = 4};
  const std::string name = fresh_name();
  expect_none(run_threads(s.ranks, [&](int rank) {
    Rank r(s, name, rank);
    for (const bool in_workspace : {false, true}) {
      r.dispatch();
      const Tensor y = Tensor::empty({s.ranks, s.most, s.hidden}, s.dtype);
      const TensorView to = in_workspace ? r.place_of_payload() : y.view();
      r.compute(to);
      MoeA2aCombine a = r.combine_args(to);
      a.use_low_precision = true, a.payload_in_workspace = in_workspace;
      const Tensor out = moe_a2a_combine(a);
      for (int64_t t = 0; t < s.tokens(rank); ++t)
        for (int64_t i = 0; i < s.hidden; ++i) {
          float sum = 0;
          for (const int o : owners_of(s, rank, t))
            sum += static_cast<float>(rounded(rounded(computed_by(o, rank, t, i), DType::kBF16), DType::kF8E4M3));
          check(ref::at(out.view(), {t, i}) == rounded(sum, DType::kBF16), str("token ", t, " element ", i));
        }
    }
  }));
}

/// What the quantisers make of the sums, which bf16 holds exactly.
std::pair<Tensor, Tensor> quantised(const TensorView& sums, DType scales, DType out, int64_t layout) {
  if (out == DType::kF8E4M3) return mxfp8_quantize({.input = sums, .sf_swizzle_layout = layout});
  if (scales == DType::kU8) return mxfp4_quantize({.a = sums, .sfLayout = layout});
  const op::Results r = nvfp4_quantize({.a = sums, .a_global_sf = 2.5, .sfLayout = layout});
  return {r[0], r[1]};
}
std::string bytes_of(const TensorView& t) {
  return {static_cast<const char*>(t.data()), static_cast<size_t>(t.numel() * t.item_size())};
}
TEST(MoeA2a, QuantisesTheSumsAsTheQuantisersDo) {
  const Setting s{.ranks = 2, .experts = 4, .top_k = 2, .hidden = 128, .most = 9};
  for (const auto& [out, scale] : {std::pair{DType::kF8E4M3, DType::kU8}, std::pair{DType::kU8, DType::kU8},
                                   std::pair{DType::kU8, DType::kF8E4M3}})
    for (const int64_t layout : {0, 1, 2}) {
      const std::string name = fresh_name();
      expect_none(run_threads(s.ranks, [&, out = out, scale = scale](int rank) {
        Rank r(s, name, rank);
        const Tensor y = Tensor::empty({s.ranks, s.most, s.hidden}, s.dtype);
        r.dispatch();
        r.compute(y);
        const Tensor sums = moe_a2a_combine(r.combine_args(y));
        const auto [codes, factors] = quantised(sums, scale, out, layout);
        r.dispatch();
        MoeA2aCombine a = r.combine_args(y);
        const Tensor scales = Tensor::empty({factors.numel()}, scale);
        std::memset(scales.data(), 0x7b, static_cast<size_t>(scales.numel()));
        a.output_dtype = out, a.output_scales = scales, a.sf_layout = layout, a.output_scalar_scale = 2.5;
        const Tensor got = moe_a2a_combine(a);
        check(bytes_of(got) == bytes_of(codes), "codes");
        check(bytes_of(scales) == bytes_of(factors), "scales");
      }));
    }
}

TEST(MoeA2a, RanksThatTheMaskLeavesOutAreNotWaitedFor) {
  const Setting s{.ranks = 3, .experts = 9, .top_k = 4, .active = 0b101};
  const std::string name = fresh_name();
  expect_none(run_threads(s.ranks, [&](int rank) {
    Rank r(s, name, rank);
    if (rank == 1) return;  // gone
    for (int round = 0; round < 3; ++round) {
      r.dispatch();
      check_received(r);
      const Tensor y = Tensor::empty({s.ranks, s.most, s.hidden}, s.dtype);
      r.compute(y);
      check_combined(r, moe_a2a_combine(r.combine_args(y)).view());
    }
  }));
}

TEST(MoeA2a, ProcessesManyTimesAndADispatchAfterADispatch) {
  const Setting s{.ranks = 4, .experts = 8, .hidden = 16};
  const std::string name = fresh_name();
  expect_none(run_processes(s.ranks, [&](int rank) {
    Rank r(s, name, rank);
    for (int round = 0; round < 100; ++round) {
      r.dispatch();
      check_received(r);
      if (round % 3 == 0) continue;
      const Tensor y = Tensor::empty({s.ranks, s.most, s.hidden}, s.dtype);
      r.compute(y);
      check_combined(r, moe_a2a_combine(r.combine_args(y)).view());
    }
  }));
}

TEST(MoeA2a, TheClassKeepsTheOrderOfCalls) {
  const std::string name = fresh_name();
  expect_none(run_threads(2, [&](int rank) {
    const auto group = comm::Group::connect(name, rank, 2);
    MoeAlltoAll a2a(group, {.max_num_tokens = 4, .top_k = 1, .num_experts = 2, .hidden_size = 8});
    const Tensor x = Tensor::zeros({4, 8}, DType::kBF16),
                 ids = Tensor::copy_of<int32_t>(std::vector<int32_t>{0, 1, 1, 1}, {4, 1});
    for (int64_t i = 0; i < 32; ++i) ref::put(x.view().view({32}), {i}, static_cast<double>(i + rank));
    const Tensor y = Tensor::empty({2, 4, 8}, DType::kBF16);
    EXPECT_HAS(outcome_of([&] { a2a.combine(y, 4); }), "combine called before successful dispatch");
    const auto r = a2a.dispatch(ids, {x, ids}, 4);
    EXPECT_HAS(outcome_of([&] { a2a.dispatch(ids, {x}, 4); }), "dispatch called twice without combine");
    a2a.sanitize(r.payloads[1], 2);
    check(ref::at(r.payloads[1].view(), {0, rank == 0 ? 1 : 3, 0}) == 2, "sanitised");
    const Tensor out = a2a.combine(r.payloads[0], 4);
    check(bytes_of(out) == bytes_of(x), "what was sent came back");
  }));
}

TEST(MoeA2a, SumsInTheOrderOfTheTokensExperts) {
  const std::string name = fresh_name();
  expect_none(run_threads(3, [&](int rank) {
    MoeAlltoAll a2a(comm::Group::connect(name, rank, 3),
                    {.max_num_tokens = 2, .top_k = 3, .num_experts = 3, .hidden_size = 64});
    const Tensor ids = Tensor::copy_of<int32_t>(std::vector<int32_t>{0, 1, 2, 0, 2, 1}, {2, 3});
    a2a.dispatch(ids, {ids}, 2);
    const Tensor y = Tensor::empty({3, 2, 20}, DType::kF32);
    std::fill_n(y.data_as<float>(), y.numel(), rank == 0 ? 1e8f : rank == 1 ? 1.0f : -1e8f);
    const Tensor out = a2a.combine(y, 2);
    for (int64_t i = 0; i < 20; ++i)
      check(ref::at(out.view(), {0, i}) == 0 && ref::at(out.view(), {1, i}) == 1, "1e8 + 1 - 1e8 and 1e8 - 1e8 + 1");
  }));
}

// ---- faults ----
TEST(MoeA2a, RanksThatDisagreeAllGetAnError) {
  const auto with = [](const std::function<void(MoeA2aDispatch&, int)>& change) {
    const Setting s;
    const std::string name = fresh_name();
    return run_threads(2, [&](int rank) {
      Rank r(s, name, rank);
      MoeA2aDispatch a = r.dispatch_args();
      change(a, rank);
      moe_a2a_dispatch(a, r.memory);
    });
  };
  for (const Outcome& o : with([](MoeA2aDispatch& a, int rank) { a.runtime_max_tokens_per_rank = 11 + rank; }))
    EXPECT_HAS(o, "calls moe_a2a_dispatch(runtime_max_tokens_per_rank=1");
  for (const Outcome& o : with([](MoeA2aDispatch& a, int rank) { a.num_experts = 8 + rank; }))
    EXPECT_HAS(o, "num_experts=9");
  for (const Outcome& o : with([](MoeA2aDispatch& a, int rank) { a.input_payloads.resize(rank ? 3 : 2); }))
    EXPECT_HAS(o, "RuntimeError: moe_a2a_dispatch_into: group '");
  for (const Outcome& o : with([](MoeA2aDispatch& a, int rank) {  // as many bytes of another type
         if (rank)
           a.input_payloads[0] = TensorView(a.input_payloads[0].data(), DType::kF16, a.input_payloads[0].shape());
       }))
    EXPECT_HAS(o, "types_of_payloads=");
}

TEST(MoeA2a, BadArgumentsNameTheArgument) {
  const Setting s{.ranks = 1};
  const Rank r(s, fresh_name(), 0);
  const auto error = [&](const std::function<void(MoeA2aDispatch&)>& change) {
    MoeA2aDispatch a = r.dispatch_args();
    change(a);
    return outcome_of([&] { moe_a2a_dispatch(a, r.memory); });
  };
  using D = MoeA2aDispatch;
  const Tensor small = Tensor::zeros({3, 4}, DType::kF32), info = Tensor::zeros({6}, DType::kI64),
               none = Tensor::copy_of<uint64_t>(std::vector<uint64_t>{0}, {1}),
               far = Tensor::copy_of<int32_t>(std::vector<int32_t>(21, 8), {7, 3});
  EXPECT_HAS(error([&](D& a) { a.input_payloads = {small}; }), "input_payloads[0] is float32[3, 4]");
  EXPECT_HAS(error([&](D& a) { a.input_payloads.assign(7, r.x); }), "input_payloads has 7 tensors");
  EXPECT_HAS(error([&](D& a) { a.input_payloads = {}; }), "input_payloads has 0 tensors");
  EXPECT_HAS(error([&](D& a) { a.top_k = 2; }), "must be int32 [tokens, 2]");
  EXPECT_HAS(error([&](D& a) { a.runtime_max_tokens_per_rank = 13; }), "runtime_max_tokens_per_rank is 13");
  EXPECT_HAS(error([&](D& a) { a.runtime_max_tokens_per_rank = 3; }), "runtime_max_tokens_per_rank is 3");
  EXPECT_HAS(error([&](D& a) { a.ep_size = 2; }), "ep_size is 2, but workspace is shared by 1 ranks");
  EXPECT_HAS(error([&](D& a) { a.ep_rank = 1; }), "ep_rank is 1");
  EXPECT_HAS(error([&](D& a) { a.metainfo = info; }), "metainfo is not that");
  EXPECT_HAS(error([&](D& a) { a.workspace = small; }), "workspace is");
  EXPECT_HAS(error([&](D& a) { a.input_payloads.assign(6, r.x); }), "bytes a rank, but");
  EXPECT_HAS(error([&](D& a) { a.active_rank_mask = none; }), "enable_rank_mask is False");
  EXPECT_HAS(error([&](D& a) { a.active_rank_mask = none, a.enable_rank_mask = true; }), "active_rank_mask is 0");
  EXPECT_HAS(error([&](D& a) { a.token_selected_experts = far; }), "token_selected_experts[0][0] is 8");
  EXPECT_HAS(error([&](D& a) { a.eplb_local_stats = far.view().select(1, 0).slice(0, 0, 4); }), "eplb_local_stats");
  EXPECT_HAS(error([&](D& a) { a.backend = "nccl"; }), "backend is 'nccl'");
  const Tensor y = Tensor::zeros({1, 12, 96}, DType::kBF16);
  EXPECT_HAS(outcome_of([&] { moe_a2a_combine(r.combine_args(y)); }), "combine called before successful dispatch");
  const Tensor memory = comm::share(r.group, 64);
  EXPECT_HAS(outcome_of([&] { moe_a2a_initialize({.workspace = memory, .max_num_tokens = 4}); }),
             "workspace has 64 bytes a rank");
  EXPECT_HAS(error([&](D& a) { a.workspace = memory; }), "workspace was not prepared");
}

TEST(MoeA2a, CombineNamesTheArgument) {
  const Setting s{.ranks = 1};
  Rank r(s, fresh_name(), 0);
  r.dispatch();
  const Tensor y = Tensor::zeros({1, s.most, s.hidden}, s.dtype), wide = Tensor::zeros({1, s.most, 4096}, s.dtype),
               scales = Tensor::zeros({7}, DType::kU8);
  const auto error = [&](const std::function<void(MoeA2aCombine&)>& change) {
    MoeA2aCombine a = r.combine_args(y);
    change(a);
    return outcome_of([&] { moe_a2a_combine(a); });
  };
  using C = MoeA2aCombine;
  EXPECT_HAS(error([&](C& a) { a.local_num_tokens = 3; }), "local_num_tokens is 3, but was 7 in the dispatch");
  EXPECT_HAS(error([&](C& a) { a.combine_payload_offset = 128; }), "combine_payload_offset is 128");
  EXPECT_HAS(error([&](C& a) { a.payload = wide; }), "bytes a rank, but");
  EXPECT_HAS(error([&](C& a) { a.payload_in_workspace = true; }), "payload_in_workspace is True");
  EXPECT_HAS(error([&](C& a) { a.output_dtype = DType::kI32; }), "output_dtype is int32");
  EXPECT_HAS(error([&](C& a) { a.output_dtype = DType::kU8; }), "output_scales is None");
  EXPECT_HAS(error([&](C& a) { a.output_dtype = DType::kU8, a.output_scales = scales; }), "21 contiguous bytes");
  EXPECT_HAS(error([&](C& a) { a.output_scales = scales; }), "output_scales is given");
  EXPECT_EQ(error([](C&) {}), "");
}

TEST(MoeA2a, AKilledRankIsAnErrorOfTheOthers) {
  const Setting s{.ranks = 4};
  const std::string name = fresh_name();
  std::vector<Process> ranks;
  for (int rank = 0; rank < s.ranks; ++rank)
    ranks.emplace_back([&, rank] {
      Rank r(s, name, rank);
      const Tensor y = Tensor::zeros({s.ranks, s.most, s.hidden}, s.dtype);
      for (int i = 0;; ++i) {
        r.dispatch();
        if (rank == 2 && i == 20) raise(SIGKILL);
        moe_a2a_combine(r.combine_args(y));
      }
    });
  EXPECT_EQ(ranks[2].wait(), "killed");
  for (const size_t r : {0, 1, 3}) EXPECT_HAS(ranks[r].wait(), "rank 2");
}

}  // namespace
}  // namespace flashinfer
