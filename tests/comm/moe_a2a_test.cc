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

}  // namespace
}  // namespace flashinfer
