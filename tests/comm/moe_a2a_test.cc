// SPDX-License-Identifier: Apache-2.0
// The expert all-to-all against its contract.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>

#include "tests/comm/moe_a2a_ranks.h"

namespace flashinfer {
namespace {

using namespace moe_a2a_test;

TEST(MoeA2a, EachTokenReachesEachOwnerOnceAndComesBackSummed) {
  for (const Setting& s : {Setting{.ranks = 1}, Setting{.ranks = 2}, Setting{.ranks = 4, .experts = 6, .top_k = 8},
                           Setting{.ranks = 3, .experts = 10, .hidden = 40, .dtype = DType::kF32},
                           Setting{.ranks = 5, .experts = 8, .top_k = 1, .hidden = 33, .dtype = DType::kF16}}) {
    const std::string name = fresh_name();
    expect_none(run_threads(s.ranks, [&](int rank) {
      Rank r(s, name, rank);
      check_rounds(r);
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
    check_low_precision(r);
  }));
}

TEST(MoeA2a, QuantisesTheSumsAsTheQuantisersDo) {
  const Setting s{.ranks = 2, .experts = 4, .top_k = 2, .hidden = 128, .most = 9};
  for (const auto& [out, scale] : {std::pair{DType::kF8E4M3, DType::kU8}, std::pair{DType::kU8, DType::kU8},
                                   std::pair{DType::kU8, DType::kF8E4M3}})
    for (const int64_t layout : {0, 1, 2}) {
      const std::string name = fresh_name();
      expect_none(run_threads(s.ranks, [&, out = out, scale = scale](int rank) {
        Rank r(s, name, rank);
        check_quantised(r, out, scale, layout);
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
    check_that_none_comes_back(r);
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

/// Rank 0 is still reading what rank 1 has computed when rank 1 has what it wants and dispatches rows that lie there.
TEST(MoeA2a, ADispatchDoesNotOverwriteWhatTheLastCombineReads) {
  const std::string name = fresh_name();
  constexpr int64_t kTokens = 256, kHidden = 4096, kWide = 2 << 20;
  expect_none(run_threads(2, [&](int rank) {
    const auto group = comm::Group::connect(name, rank, 2);
    const Tensor memory = comm::share(group, 2 * kTokens * kHidden * 4 + (1 << 20));
    const Tensor info =
        moe_a2a_initialize({.workspace = memory, .ep_rank = rank, .ep_size = 2, .max_num_tokens = kTokens});
    const Tensor y = Tensor::empty({2, kTokens, kHidden}, DType::kF32);
    std::fill_n(y.data_as<float>(), y.numel(), 1.5f);
    const auto dispatch = [&](int64_t tokens, int64_t columns, int64_t most) {  // to rank 1
      const Tensor ids = Tensor::copy_of<int32_t>(std::vector<int32_t>(static_cast<size_t>(tokens), 1), {tokens, 1}),
                   rows = Tensor::zeros({tokens, columns}, DType::kU8);
      return moe_a2a_dispatch({.token_selected_experts = ids,
                               .input_payloads = {rows},
                               .workspace = memory,
                               .metainfo = info,
                               .runtime_max_tokens_per_rank = most,
                               .ep_rank = rank,
                               .ep_size = 2,
                               .num_experts = 2},
                              memory);
    };
    for (int round = 0; round < 3; ++round) {
      const int64_t tokens = rank == 0 ? kTokens : 0;
      const auto combine = [&](const Tensor& payload, int64_t n, int64_t most, int64_t offset) {
        return moe_a2a_combine({.payload = payload,
                                .local_num_tokens = n,
                                .workspace = memory,
                                .metainfo = info,
                                .runtime_max_tokens_per_rank = most,
                                .ep_rank = rank,
                                .ep_size = 2,
                                .combine_payload_offset = offset});
      };
      const Tensor out = combine(y, tokens, kTokens, dispatch(tokens, 4, kTokens).combine_payload_offset);
      const int64_t offset = dispatch(rank, kWide, 1).combine_payload_offset;
      for (int64_t i = 0; i < out.numel(); ++i) check(out.data_as<float>()[i] == 1.5f, str("element ", i));
      combine(Tensor::zeros({2, 1, 8}, DType::kF32), rank, 1, offset);
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

}  // namespace
}  // namespace flashinfer
