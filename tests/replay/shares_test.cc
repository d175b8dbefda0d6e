// SPDX-License-Identifier: Apache-2.0
// Recorded collective calls whose workspace is memory that the ranks share: what lay in it is restored, so each call
// replays by itself.
#include "flashinfer/comm/share.h"
#include "flashinfer/ops/comm/context_parallel.h"
#include "flashinfer/ops/comm/moe_a2a.h"
#include "flashinfer/replay/diff.h"
#include "tests/replay/ranks_fixture.h"

namespace flashinfer::twist {
namespace {

using replay::Outcome;

constexpr int64_t kMost = 6, kTopK = 2, kHidden = 32, kStats = 3;

Tensor filled(const std::vector<int64_t>& shape, DType dtype, int rank, int step) {
  const Tensor t = Tensor::empty(shape, dtype);
  for (int64_t i = 0; i < t.numel(); ++i) {
    const auto value = static_cast<float>((i * 37 + rank * 101 + step * 13) % 64) / 8 - 3;
    if (dtype == DType::kF32)
      t.data_as<float>()[i] = value;
    else
      t.data_as<bf16_t>()[i] = bf16_t(value);
  }
  return t;
}

/// A rank of an all-to-all among `active` of all ranks.
struct Experts {
  Experts(const std::shared_ptr<comm::Group>& g, uint64_t active) : group(g) {
    const int64_t bytes =
        moe_a2a_get_workspace_size_per_rank(g->size(), kMost, 2 * kHidden + 4 * kTopK, 2 * kHidden, kStats);
    memory = comm::share(g, bytes);
    metainfo = moe_a2a_initialize({.workspace = memory,
                                   .ep_rank = g->rank(),
                                   .ep_size = g->size(),
                                   .max_num_tokens = kMost,
                                   .eplb_stats_num_experts = kStats});
    if (active) mask = Tensor::copy_of<uint64_t>(std::vector{active}, {1});
  }
  void dispatch(int step) {
    const int rank = group->rank();
    tokens = (2 * rank + 3 * step) % kMost + 1;
    std::vector<int32_t> experts;
    for (int64_t i = 0; i < tokens * kTopK; ++i)
      experts.push_back(static_cast<int32_t>((i * 5 + rank + step) % (2 * group->size() - 1)));
    const Tensor x = filled({tokens, kHidden}, DType::kBF16, rank, step),
                 ids = Tensor::copy_of<int32_t>(experts, {tokens, kTopK}),
                 stats = Tensor::copy_of<int32_t>(std::vector<int32_t>{rank, step, 7}, {kStats});
    MoeA2aDispatch a{.token_selected_experts = ids,
                     .input_payloads = {x, ids},
                     .workspace = memory,
                     .metainfo = metainfo,
                     .runtime_max_tokens_per_rank = kMost,
                     .ep_rank = rank,
                     .ep_size = group->size(),
                     .top_k = kTopK,
                     .num_experts = 2 * group->size() - 1};
    a.eplb_local_stats = stats;
    if (mask.defined()) a.enable_rank_mask = true, a.active_rank_mask = mask;
    received = moe_a2a_dispatch(a, memory);
  }
  void sanitize() {
    moe_a2a_sanitize_expert_ids({.expert_ids = received.payloads[1],
                                 .workspace = memory,
                                 .metainfo = metainfo,
                                 .ep_rank = group->rank(),
                                 .invalid_expert_id = -7});
  }
  Tensor computed() const {
    const Tensor y = Tensor::clone(received.payloads[0]);
    for (int64_t i = 0; i < y.numel(); ++i)
      y.data_as<bf16_t>()[i] = bf16_t(static_cast<float>(y.data_as<bf16_t>()[i]) * 2 + 1);
    return y;
  }
  MoeA2aCombine combine_args(const TensorView& payload) const {
    MoeA2aCombine a{.payload = payload,
                    .local_num_tokens = tokens,
                    .workspace = memory,
                    .metainfo = metainfo,
                    .runtime_max_tokens_per_rank = kMost,
                    .ep_rank = group->rank(),
                    .ep_size = group->size(),
                    .top_k = kTopK,
                    .combine_payload_offset = received.combine_payload_offset};
    if (mask.defined()) a.enable_rank_mask = true, a.active_rank_mask = mask;
    return a;
  }
  void combine(bool use_low_precision = false) const {
    const Tensor y = computed();
    MoeA2aCombine a = combine_args(y);
    a.use_low_precision = use_low_precision;
    moe_a2a_combine(a);
  }
  TensorView place_of_payload() const {
    return {memory.data_as<char>() + group->rank() * memory.view().stride(0) + received.combine_payload_offset,
            DType::kBF16,
            {group->size(), kMost, kHidden}};
  }
  std::shared_ptr<comm::Group> group;
  Tensor memory, metainfo, mask;
  MoeA2aReceived received;
  int64_t tokens = 0;
};

/// Four dispatches, the third without a combine; one combine of rows in the workspace, one of e4m3 rows. With four
/// ranks also a dispatch and a combine without the last one. Then both exchanges of a spread context.
void work(const std::string& name, int rank, int ranks) {
  const auto group = comm::Group::connect(name, rank, ranks);
  Experts a(group, 0);
  a.dispatch(1);
  a.sanitize();
  a.combine();
  a.dispatch(2);
  const Tensor y = a.computed();
  std::memcpy(a.place_of_payload().data(), y.data(), static_cast<size_t>(y.nbytes()));
  MoeA2aCombine c = a.combine_args(a.place_of_payload());
  c.payload_in_workspace = true;
  moe_a2a_combine(c);
  a.dispatch(3);
  a.dispatch(4);
  a.combine(true);
  if (ranks == 4) {
    Experts some(group, 0b0111);
    if (rank < 3) {
      some.dispatch(5);
      some.combine();
    }
    group->barrier();
  }
  const Tensor memory = comm::share(group, 8192), o = filled({5, ranks, 16}, DType::kBF16, rank, 6),
               stats = filled({5, ranks, 2}, DType::kF32, rank, 7), lse = filled({5, ranks}, DType::kF32, rank, 8);
  const int64_t shape[] = {ranks, 1024}, strides[] = {memory.view().stride(0) / 8, 1};
  decode_cp_a2a_alltoall({.partial_o = o,
                          .softmax_stats = stats,
                          .workspace = TensorView(memory.data(), DType::kI64, shape, strides),
                          .cp_rank = rank,
                          .cp_size = ranks});
  decode_cp_a2a_lse_reduce(
      {.partial_o = o, .partial_lse = lse, .workspace = memory, .cp_rank = rank, .cp_size = ranks});
}
constexpr const char* kFunctions[] = {"moe_a2a_initialize",          "moe_a2a_dispatch_into",
                                      "moe_a2a_sanitize_expert_ids", "moe_a2a_combine",
                                      "decode_cp_a2a_alltoall_into", "decode_cp_a2a_lse_reduce"};

using SharesTest = RanksFixture;

void expect_passed(const replay::Report& report) {
  for (const auto& r : report.calls) {
    EXPECT_EQ(r.outcome, Outcome::kPassed) << r.folder << ": " << r.message;
    EXPECT_GT(r.compared, 0) << r.folder;
  }
  EXPECT_EQ(report.exit_code(), 0);
}

TEST_F(SharesTest, AllRanksReplayTogether) {
  for (const int ranks : {1, 2, 4}) {
    record_ranks(ranks, work);
    const auto report = replay::replay(session(), {.bitwise = true});
    EXPECT_EQ(report.calls.size(), static_cast<size_t>(ranks == 4 ? 2 * (4 * 12 + 6) : 2 * ranks * 11));
    expect_passed(report);
    expect_passed(replay::replay(session(), {.repeat = 3}));
    expect_passed(replay::replay(session(), {.jobs = 3}));
    std::filesystem::remove_all(session());
  }
}

TEST_F(SharesTest, RecordsSayWhatMakesTheMemoryAgain) {
  record_ranks(2, work);
  const auto record = [&](const char* function, int rank) {
    return probe::lines(calls_of(function, rank).at(1) / "metadata.jsonl").back();
  };
  const auto one = record("moe_a2a_combine", 0), other = record("moe_a2a_combine", 1);
  EXPECT_EQ(one["group"]["name"], folder.path());
  EXPECT_EQ(other["group"]["rank"], 1);
  EXPECT_EQ(other["group"]["size"], 2);
  EXPECT_EQ(one["group"]["workspace"], other["group"]["workspace"]);
  EXPECT_EQ(one["input_metadata"]["kwarg_call"], other["input_metadata"]["kwarg_call"]);
  EXPECT_EQ(one["group"]["workspace"]["argument"], "workspace");
  EXPECT_GT(one["group"]["workspace"]["bytes"], 0);
  EXPECT_NE(record("decode_cp_a2a_lse_reduce", 0)["group"]["workspace"]["id"], one["group"]["workspace"]["id"]);
}

TEST_F(SharesTest, OneCallReplaysWithTheInputsOfTheOthers) {
  record_ranks(4, work);
  for (const char* function : kFunctions)
    for (const auto& call : calls_of(function, 1)) {
      const auto report = replay::replay(call);
      ASSERT_EQ(report.calls.size(), 1u);
      EXPECT_EQ(report.calls[0].outcome, Outcome::kPassed) << call << ": " << report.calls[0].message;
    }
}

/// As under mpirun, each process the ranks of its own: threads here.
TEST_F(SharesTest, ProcessesShareTheRanks) {
  record_ranks(4, work);
  for (const auto& c : replay::open_session(session()).calls)  // recorded by one process
    edit(c.folder, [](formats::Json& j) { j["rank"] = std::to_string(j["group"]["rank"].get<int>()); });
  std::vector<replay::Report> reports(2);
  const std::string job = fresh_name();
  for (const auto& o : run_threads(2, [&](int p) {
         reports[static_cast<size_t>(p)] = replay::replay(session(), {.process = p, .processes = 2, .job = job});
       }))
    EXPECT_EQ(o, "");
  for (const auto& r : reports) expect_passed(r);
  EXPECT_EQ(reports[0].calls.size() + reports[1].calls.size(), 108u);
}

/// Another rank's input, what a rank found in its memory before, and rows that no token overwrote: all decide.
TEST_F(SharesTest, InputsOfAllRanksAndTheMemoryCount) {
  const auto mismatches = [&](const char* function, int rank, const char* key, size_t at, const auto& f) {
    record_ranks(2, work);
    change(calls_of(function, rank).at(at), "inputs", key, f);
    const auto report = replay::replay(session());
    std::filesystem::remove_all(session());
    return report.failed();
  };
  const auto add = [](const Tensor& t) {
    for (int64_t i = 0; i < t.numel(); ++i)
      t.data_as<bf16_t>()[i] = bf16_t(static_cast<float>(t.data_as<bf16_t>()[i]) + 4);
  };
  EXPECT_EQ(mismatches("moe_a2a_dispatch_into", 0, "arg_1__0", 0, add), 2);
  EXPECT_GE(mismatches("moe_a2a_combine", 1, "arg_0", 1, add), 1);  // in the workspace
  EXPECT_EQ(mismatches("moe_a2a_dispatch_into", 1, "kwarg_received_0", 0, add), 1);
  EXPECT_EQ(mismatches("moe_a2a_combine", 1, "kwarg_workspace_state", 0,
                       [](const Tensor& t) { std::memset(t.data_as<char>() + t.numel() - 16, 0, 16); }),
            1);
  EXPECT_EQ(mismatches("decode_cp_a2a_lse_reduce", 0, "arg_0", 0, add), 2);
}

/// Other ranks write what they send as soon as they like: what lay there before is no input to compare.
TEST_F(SharesTest, TwoRecordingsAgreeWhateverArrivedFirst) {
  record_ranks(2, work);
  const auto copy = folder / "copy";
  std::filesystem::copy(session(), copy, std::filesystem::copy_options::recursive);
  const auto dispatch = calls_of("moe_a2a_dispatch_into", 1).at(1), combine = calls_of("moe_a2a_combine", 1).at(1);
  const auto zero = [](const Tensor& t) { std::memset(t.data_as<char>(), 0, static_cast<size_t>(t.nbytes())); };
  change(dispatch, "inputs", "kwarg_received_0", zero);
  change(dispatch, "inputs", "kwarg_eplb_gathered_stats", zero);
  change(combine, "inputs", "arg_0", zero);
  const replay::Session first = replay::open_session(session()), second = replay::open_session(copy);
  for (size_t i = 0; i < first.calls.size(); ++i) {
    const auto diff = replay::compare_calls(first, first.read(i), second, second.read(i), {});
    EXPECT_EQ(diff.inputs, first.calls[i].folder == combine ? replay::Agreement::kDiffers : replay::Agreement::kEqual)
        << first.calls[i].folder;
    EXPECT_EQ(diff.outputs, replay::Agreement::kEqual);
  }
}

TEST_F(SharesTest, WhatIsMissingOrDamagedIsASentence) {
  record_ranks(2, work);
  std::filesystem::remove_all(calls_of("moe_a2a_combine", 1).at(0));
  for (const auto& call : calls_of("moe_a2a_sanitize_expert_ids", 1)) std::filesystem::remove_all(call);
  edit(calls_of("moe_a2a_dispatch_into", 0).at(1), [](formats::Json& j) { j["group"].erase("workspace"); });
  edit(calls_of("decode_cp_a2a_lse_reduce", 0).at(0), [](formats::Json& j) { j["group"]["workspace"]["bytes"] = 64; });
  edit(calls_of("decode_cp_a2a_lse_reduce", 1).at(0), [](formats::Json& j) { j["group"]["workspace"]["bytes"] = 64; });
  edit(calls_of("decode_cp_a2a_alltoall_into", 0).at(0), [](formats::Json& j) { j["group"]["size"] = 100; });
  const auto report = replay::replay(session());
  std::set<std::string> sentences;
  for (const auto& r : report.calls)
    if (r.outcome != Outcome::kPassed) sentences.insert(r.message);
  const std::string of_group = " of group '" + folder.path() + "'", needs = "not run: it needs the same call of rank ",
                    missing = of_group + " (2 ranks), which is not in this recording";
  EXPECT_EQ(sentences,
            (std::set<std::string>{
                needs + "0" + missing, needs + "1" + missing,
                "not run: it uses memory that the ranks" + of_group + " share, which its record does not describe",
                "not run: its record says rank 0 of 100" + of_group,
                "arg_2 was recorded in another layout than uint8[2, 64] with strides (8192, 1)"}));
  for (const auto& r : report.calls)
    EXPECT_TRUE(r.function != "moe_a2a_sanitize_expert_ids" || r.outcome == Outcome::kPassed) << r.message;
}

TEST_F(SharesTest, ATensorOutsideTheMemoryEndsTheCallOfAllRanks) {
  record_ranks(2, work);
  const auto call = calls_of("moe_a2a_combine", 0).at(1);
  edit(call, [](formats::Json& j) { j["tensor_details"]["kwarg_workspace_state"]["storage_offset"] = 1 << 30; });
  EXPECT_EQ(replay::replay(call).calls.at(0).message,
            "kwarg_workspace_state lies outside the memory that the ranks share");
  const auto other = replay::replay(calls_of("moe_a2a_combine", 1).at(1)).calls.at(0);
  EXPECT_EQ(other.outcome, Outcome::kError);
  EXPECT_HAS(other.message, "rank 0");
  EXPECT_EQ(replay::replay(session()).failed(), 2);
}

/// A call that one rank refused, and the others left, does so again; the next one runs.
TEST_F(SharesTest, ARecordedErrorReplays) {
  record([&] {
    for (const auto& o : run_threads(2, [&](int rank) {
           const auto group = comm::Group::connect(folder.path(), rank, 2);
           const Tensor memory = comm::share(group, 4096), o = filled({5, 2, 16}, DType::kBF16, rank, 6),
                        lse = filled({5, 2}, DType::kF32, rank, 8);
           DecodeCpLseReduce a{.partial_o = o, .partial_lse = lse, .workspace = memory, .cp_rank = rank, .cp_size = 2};
           a.lse_mode = rank ? "base3" : "base2";
           EXPECT_HAS(outcome_of([&] { decode_cp_a2a_lse_reduce(a); }), "lse_mode is 'base3'");
           a.lse_mode = "base2";
           decode_cp_a2a_lse_reduce(a);
         }))
      EXPECT_EQ(o, "");
  });
  const auto report = replay::replay(session());
  EXPECT_EQ(report.calls.size(), 4u);
  EXPECT_EQ(report.passed(), 4);
}

}  // namespace
}  // namespace flashinfer::twist
