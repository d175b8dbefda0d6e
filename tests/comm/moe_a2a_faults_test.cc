// SPDX-License-Identifier: Apache-2.0
// Wrong arguments, ranks that disagree and ranks that die in the expert all-to-all.
#include <gtest/gtest.h>

#include "tests/comm/moe_a2a_ranks.h"

namespace flashinfer {
namespace {

using namespace moe_a2a_test;

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
