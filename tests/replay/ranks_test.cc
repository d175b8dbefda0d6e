// SPDX-License-Identifier: Apache-2.0
// Recorded collective calls: each rank's is replayed with the inputs that the others recorded.
#include <cstring>

#include "flashinfer/flashinfer.h"
#include "tests/replay/ranks_fixture.h"

namespace flashinfer::twist {
namespace {

using replay::Outcome;

constexpr int64_t kTokens = 5, kHidden = 96;

Tensor filled(int64_t columns, int rank, int step) {
  const Tensor t = Tensor::empty({kTokens, columns}, DType::kF32);
  for (int64_t i = 0; i < t.numel(); ++i)
    t.data_as<float>()[i] = static_cast<float>((i * 37 + rank * 101 + step * 13) % 64) / 8 - 3;
  return t;
}

/// A workspace and nine calls of every rank: a sum, a sum with residual and norm in two shots, columns side by side, a
/// sum of blocks, one of a part of the ranks, heads for positions and back, a sum of codes, a sum again.
void work(const std::string& group, int rank, int ranks) {
  AllReduceFusionWorkspace workspace({.group = group,
                                      .rank = rank,
                                      .world_size = ranks,
                                      .max_token_num = kTokens,
                                      .hidden_dim = kHidden,
                                      .dtype = DType::kF32});
  const Tensor residual = filled(kHidden, 50, 0), gammas = filled(kHidden, 60, 0),
               weight = Tensor::clone(gammas.view().select(0, 0));
  const Tensor a = filled(kHidden, rank, 1), b = filled(kHidden, rank, 2), c = filled(8 + rank, rank, 3);
  allreduce_fusion({.input = a, .workspace = workspace, .pattern = 0});
  allreduce_fusion({.input = b,
                    .workspace = workspace,
                    .pattern = 1,
                    .residual_in = residual,
                    .rms_gamma = weight,
                    .use_oneshot = ranks > 4});
  std::vector<int64_t> columns;
  for (int r = 0; r < ranks; ++r) columns.push_back(8 + r);
  all_gather({.input = c, .workspace = workspace, .columns = columns});
  const Tensor blocks = filled(ranks * 16, rank, 4), half = Tensor::zeros({4, 16}, DType::kBF16);
  reduce_scatter({.input = blocks.view().view({ranks, kTokens * 16}), .workspace = workspace});
  for (int64_t i = 0; i < half.numel(); ++i) half.data_as<bf16_t>()[i] = bf16_t(static_cast<float>(rank + i % 8));
  mixed_comm({.x_in = half, .workspace = workspace, .op = 3, .local_tp_size = 2, .local_dp_size = ranks / 2});
  const Tensor whole =
      ulysses_scatter_heads({.x = blocks.view().view({1, kTokens, 2 * ranks, 8}), .workspace = workspace});
  ulysses_gather_heads({.x = whole, .workspace = workspace});
  quantized_all_reduce({.inp = half, .workspace = workspace, .scale_group = 8});
  allreduce_fusion({.input = b, .workspace = workspace, .pattern = 0});
  workspace.destroy();
}

using RanksTest = RanksFixture;

TEST_F(RanksTest, AllRanksReplayTogether) {
  for (const int ranks : {2, 4}) {
    record_ranks(ranks, work);
    const auto report = replay::replay(session(), {.bitwise = true});
    EXPECT_EQ(report.calls.size(), static_cast<size_t>(2 * ranks * 11));
    for (const auto& r : report.calls) {
      if (r.function == "AllReduceFusionWorkspace.destroy") continue;
      EXPECT_EQ(r.outcome, Outcome::kPassed) << r.function << ": " << r.message;
      EXPECT_GT(r.compared, 0) << r.function;
    }
    EXPECT_EQ(report.exit_code(), 0);
    EXPECT_EQ(replay::replay(session(), {.repeat = 3}).failed(), 0);
    EXPECT_EQ(replay::replay(session(), {.jobs = 3}).passed(), report.passed());
    std::filesystem::remove_all(session());
  }
}

TEST_F(RanksTest, RecordsNameTheGroup) {
  record_ranks(2, work);
  const auto last = probe::lines(calls_of("all_gather", 1).at(0) / "metadata.jsonl").back();
  EXPECT_EQ(last["group"]["name"], folder.path());
  EXPECT_EQ(last["group"]["rank"], 1);
  EXPECT_EQ(last["group"]["size"], 2);
  const auto others = probe::lines(calls_of("all_gather", 0).at(0) / "metadata.jsonl").back();
  EXPECT_TRUE(last["input_metadata"]["kwarg_call"].is_number());
  EXPECT_EQ(last["input_metadata"]["kwarg_call"], others["input_metadata"]["kwarg_call"]);
  const auto first = probe::lines(calls_of("AllReduceFusionWorkspace.__init__", 1).at(0) / "metadata.jsonl").back();
  EXPECT_EQ(first["group"]["size"], 2);
}

TEST_F(RanksTest, OneCallReplaysWithTheInputsOfTheOthers) {
  record_ranks(2, work);
  for (const char* function :
       {"AllReduceFusionWorkspace.__init__", "allreduce_fusion", "all_gather", "reduce_scatter", "mixed_comm_into",
        "ulysses_scatter_heads", "ulysses_gather_heads", "quantized_all_reduce_into"}) {
    const auto report = replay::replay(calls_of(function, 1).back());
    ASSERT_EQ(report.calls.size(), 1u);
    EXPECT_EQ(report.calls[0].outcome, Outcome::kPassed) << function << ": " << report.calls[0].message;
  }
  const auto some = replay::replay(session(), {.filter = "allreduce_*", .first = 3, .count = 2});
  EXPECT_EQ(some.passed(), 2);
}

TEST_F(RanksTest, AWrongOutputIsFound) {
  record_ranks(2, work);
  const auto call = calls_of("allreduce_fusion", 1).at(1);
  change(call, "outputs", "", [](const Tensor& x) { x.data_as<float>()[7] += 1; });
  const auto report = replay::replay(session());
  EXPECT_EQ(report.count(Outcome::kMismatch), 1);
  for (const auto& r : report.calls)
    if (r.outcome == Outcome::kMismatch) {
      EXPECT_EQ(r.folder, call);
      EXPECT_EQ(r.differences.at(0).index, (std::vector<int64_t>{0, 7}));
    }
}

/// Another rank's recorded input decides: what rank 0 gave changes what rank 1 gets.
TEST_F(RanksTest, TheOthersInputsCount) {
  record_ranks(2, work);
  const auto call = calls_of("allreduce_fusion", 0).at(0);
  change(call, "inputs", "", [](const Tensor& x) { x.data_as<float>()[3] += 2; });
  EXPECT_EQ(replay::replay(calls_of("allreduce_fusion", 1).at(0)).count(Outcome::kMismatch), 1);
  EXPECT_EQ(replay::replay(session()).count(Outcome::kMismatch), 2);
}

/// As under mpirun, each process the ranks of its own: threads here.
TEST_F(RanksTest, ProcessesShareTheRanks) {
  record_ranks(4, work);
  const replay::Session s = replay::open_session(session());
  for (const auto& c : s.calls)  // recorded by one process
    edit(c.folder, [](formats::Json& j) {
      if (j.contains("group")) j["rank"] = std::to_string(j["group"]["rank"].get<int>());
    });
  std::vector<replay::Report> reports(2);
  const std::string job = fresh_name();
  for (const auto& o : run_threads(2, [&](int p) {
         reports[static_cast<size_t>(p)] = replay::replay(session(), {.process = p, .processes = 2, .job = job});
       }))
    EXPECT_EQ(o, "");
  EXPECT_EQ(reports[0].failed() + reports[1].failed(), 0);
  EXPECT_EQ(reports[0].calls.size() + reports[1].calls.size(), 88u);
  EXPECT_GE(reports[0].passed(), 40);
  EXPECT_EQ(reports[1].passed(), 40);  // of ranks 1 and 3
}

TEST_F(RanksTest, AMissingRankIsASentence) {
  record_ranks(2, work);
  for (const auto& f : calls_of("all_gather", 0)) std::filesystem::remove_all(f);
  const auto lost = calls_of("allreduce_fusion", 0).at(0);
  edit(lost, [](formats::Json& j) { j["execution_status"] = "inputs_saved"; });
  edit(calls_of("allreduce_fusion", 1).at(1), [](formats::Json& j) { j.erase("group"); });
  const auto report = replay::replay(session());
  EXPECT_EQ(report.failed(), 1);  // the one that never completed
  std::set<std::string> sentences;
  for (const auto& r : report.calls)
    if (r.outcome == Outcome::kNotCompared && r.message.starts_with("not run")) sentences.insert(r.message);
  EXPECT_EQ(
      sentences,
      (std::set<std::string>{
          "not run: it needs the same call of rank 0 of group '" + folder.path() +
              "' (2 ranks), which is not in this recording",
          "not run: it needs the same call of rank 1 of group '" + folder.path() +
              "' (2 ranks), which is not in this recording",
          "not run: the call of rank 0 of its group cannot run",
          "not run: a collective call needs the other ranks, and its record does not name a group to make again"}));
}

}  // namespace
}  // namespace flashinfer::twist
