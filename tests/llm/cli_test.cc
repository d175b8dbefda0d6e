// SPDX-License-Identifier: Apache-2.0
// The program as a user starts it, with the real model: tools/get_model.sh gets that once.
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <filesystem>
#include <map>
#include <nlohmann/json.hpp>

#include "flashinfer/core/version.h"
#include "flashinfer/formats/pt.h"
#include "flashinfer/replay/replay.h"
#include "made_gguf.h"
#include "reference.h"
#include "test_paths.h"

namespace llm_test {
namespace {

using nlohmann::json;

struct Ran {
  int status;
  std::string out, err;
};

std::string temporary(const std::string& name) { return "/tmp/llm_cli_" + std::to_string(::getpid()) + "_" + name; }

std::string read_file(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}

Ran shell(const std::string& command) {
  const std::string out = temporary("out"), err = temporary("err");
  const int status = std::system((command + " >" + out + " 2>" + err).c_str());
  Ran r{WIFEXITED(status) ? WEXITSTATUS(status) : 128, read_file(out), read_file(err)};
  ::unlink(out.c_str()), ::unlink(err.c_str());
  return r;
}

const std::string kProgram = std::string(FI_TEST_BUILD_ROOT) + "/examples/llm";
Ran llm(const std::string& arguments) { return shell(kProgram + " " + arguments); }

/// Status 1, and the last line on stderr (progress may come before) is the program's only one and has `part` in it.
void expect_refused(const Ran& r, const std::string& part) {
  EXPECT_EQ(r.status, 1) << r.out << r.err;
  const size_t at = r.err.rfind("llm: ");
  ASSERT_NE(at, std::string::npos) << r.err;
  EXPECT_TRUE(at == 0 || r.err[at - 1] == '\n') << r.err;
  EXPECT_EQ(r.err.find('\n', at), r.err.size() - 1) << r.err;
  EXPECT_NE(r.err.find(part), std::string::npos) << r.err;
}

TEST(Program, BadInputIsOneLine) {
  const std::string good = made_gguf({}), path = temporary("bad.gguf");
  expect_refused(llm("--model /nonexistent.gguf --prompt hi"), "/nonexistent.gguf: cannot be opened");
  expect_refused(llm("--device tpu --prompt hi"), "--device tpu is none of cpu, cuda, cuda:N, emu");
  write_file(path, good);
  expect_refused(
      shell("FLASHINFER_LIBCUDA=/nowhere/libcuda.so " + kProgram + " --device cuda --model " + path + " --prompt hi"),
      "FLASHINFER_LIBCUDA is /nowhere/libcuda.so, which cannot be loaded");
  write_file(path, good.substr(0, good.size() / 2));
  expect_refused(llm("--model " + path + " --prompt hi"), "is truncated");
  write_file(path, made_gguf({.architecture = "mamba"}));
  expect_refused(llm("--model " + path + " --prompt hi"), "general.architecture is mamba, but this program runs llama");
  write_file(path, made_gguf({.leave_out = "blk.1.ffn_up.weight"}));
  expect_refused(llm("--model " + path + " --prompt hi"), "has no tensor blk.1.ffn_up.weight");
  write_file(path, made_gguf({.leave_out = "llama.block_count"}));
  expect_refused(llm("--model " + path + " --prompt hi"), "has no metadata key llama.block_count");
  write_file(path, made_gguf({.linear_type = 3, .leave_out = ""}));
  expect_refused(llm("--model " + path + " --ctx 10 --prompt hi"), "but the context holds 10");
  expect_refused(llm("--model " + path + " --kv-tokens 16 --prompt hi"), "--kv-tokens");
  expect_refused(llm("--model " + path + " --prompt $(printf 'a\\377')"), "not valid UTF-8");
  expect_refused(llm("--model " + path), "no --prompt given");
  ::unlink(path.c_str());
}

// ---- several processes ----

class Ranks : public testing::Test {
 protected:
  Ranks() { write_file(path_, made_gguf({.kv_heads = 4})); }
  ~Ranks() override {
    ::unlink(path_.c_str());
    std::filesystem::remove_all(temporary("dumps"));
  }
  json answers(const std::string& before, const std::string& arguments) const {
    const Ran r = shell(before + kProgram + " --json --threads 1 --model " + path_ +
                        " --prompt hello --prompt 'how low' " + arguments);
    EXPECT_EQ(r.status, 0) << r.err;
    json tokens;
    const json all = json::parse(r.out.substr(std::min(r.out.find('{'), r.out.size())), nullptr,
                                 false);  // behind the recorder's banner
    for (const auto& q : all["requests"]) tokens.push_back(q["tokens"]);
    return {all["ranks"], tokens};
  }
  std::string path_ = temporary("ranks.gguf");
};

TEST_F(Ranks, ProcessesGiveTheTokensOfOne) {
  const json one = answers("", "--max-new 6");
  EXPECT_EQ(one[0], 1);
  for (const char* ranks : {"2", "4"}) {
    const json got = answers("", std::string("--max-new 6 --bind nodes --tensor-parallel ") + ranks);
    EXPECT_EQ(got[0], std::stoi(ranks));
    EXPECT_EQ(got[1], one[1]);
  }
  // As mpirun starts them: two children of one process.
  const std::string job = "OMPI_COMM_WORLD_SIZE=2 OMPI_COMM_WORLD_RANK=";
  EXPECT_EQ(answers(job + "1 " + kProgram + " --threads 1 --model " + path_ +
                        " --max-new 6 --prompt hello --prompt 'how low' & " + job + "0 ",
                    "--max-new 6")[1],
            one[1]);
}

TEST_F(Ranks, BadNumbersAreOneLineBeforeAnythingStarts) {
  const std::string some = "--model " + path_ + " --prompt hi ";
  expect_refused(llm(some + "--tensor-parallel 5"),
                 "--tensor-parallel 5: the model has 4 key-value heads, so at most 4 ranks can share it");
  expect_refused(llm(some + "--tensor-parallel 2 --device emu"), "--tensor-parallel 2 needs --device cpu");
  expect_refused(
      shell("OMPI_COMM_WORLD_SIZE=4 OMPI_COMM_WORLD_RANK=0 " + kProgram + " " + some + "--tensor-parallel 2"),
      "--tensor-parallel 2, but mpirun started 4 ranks");
  expect_refused(
      shell("OMPI_COMM_WORLD_SIZE=4 OMPI_COMM_WORLD_LOCAL_SIZE=2 OMPI_COMM_WORLD_RANK=0 " + kProgram + " " + some),
      "ranks on several machines are not supported");
  for (const char* wrong : {"--np 0", "--np -1", "--np 65", "--np two", "--np 1.5", "--bind sockets", "--threads 0"}) {
    const Ran r = llm(some + wrong);
    EXPECT_EQ(r.status, 2) << wrong << r.err;
    EXPECT_EQ(r.err.find(wrong[2] == 'n' ? "--tensor-parallel: " : std::string(wrong, 7).substr(0, 6)), 0u) << r.err;
  }
  // A group that these processes cannot make: MPI has not started them.
  const Ran alone = llm(some + "--tensor-parallel 2 --group mpi://");
  EXPECT_EQ(alone.status, 1);
  EXPECT_TRUE(alone.err.find("this process is rank 0 of 1 of MPI_COMM_WORLD") != std::string::npos ||
              alone.err.find("cannot open Open MPI") != std::string::npos)
      << alone.err;
}

TEST_F(Ranks, ADeadRankEndsTheOthers) {
  const std::string err = temporary("dead");
  const int program = ::fork();
  if (program == 0) {
    const std::string command = "exec " + kProgram + " --threads 1 --model " + path_ +
                                " --plain --ctx 2048 --max-new 2000 --tensor-parallel 2 --prompt hello >/dev/null 2>" +
                                err;
    ::execl("/bin/sh", "sh", "-c", command.c_str(), nullptr);
    ::_exit(127);
  }
  int rank_1 = 0;
  const std::string children = "/proc/" + std::to_string(program) + "/task/" + std::to_string(program) + "/children";
  for (int i = 0; i < 2000 && rank_1 == 0; ++i, ::usleep(5000)) std::ifstream(children) >> rank_1;
  ASSERT_GT(rank_1, 0);
  ::usleep(50000);
  ::kill(rank_1, SIGKILL);
  int status = 0;
  ::waitpid(program, &status, 0);
  EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 1) << status;
  EXPECT_NE(read_file(err).find("rank 1 (process " + std::to_string(rank_1) + ") has ended"), std::string::npos)
      << read_file(err);
  ::unlink(err.c_str());
}

TEST_F(Ranks, ARecordingOfAllRanksReplays) {
  const std::string dumps = temporary("dumps");
  answers("FLASHINFER_LOGLEVEL=10 FLASHINFER_LOGDEST=" + temporary("log") + " FLASHINFER_DUMP_DIR=" + dumps +
              " FLASHINFER_DUMP_EXCLUDE='prepare_*' FLASHINFER_DUMP_DEDUP=1 ",
          "--no-warmup --max-new 2 --tensor-parallel 2");
  ::unlink(temporary("log").c_str());
  const auto report = flashinfer::replay::replay(dumps);
  EXPECT_EQ(report.failed(), 0);
  std::map<std::string, int> gathers;
  for (const auto& c : report.calls)
    if (c.function == "all_gather") ++gathers[flashinfer::replay::name(c.outcome)];
  EXPECT_EQ(gathers.size(), 1u);
  EXPECT_EQ(gathers["passed"], 2 * (2 * (2 * 4 + 2)));  // ranks, steps, layers and logits of two prompts
}

class SmolLM : public testing::Test {
 protected:
  static void SetUpTestSuite() {
    const Ran r = shell(std::string(FI_TEST_SOURCE_ROOT) + "/tools/get_model.sh");
    ASSERT_EQ(r.status, 0) << r.err;
    path_ = std::string(FI_TEST_SOURCE_ROOT) + "/" + r.out.substr(0, r.out.find('\n'));
  }
  static json answers(const std::string& arguments) {
    const Ran r = llm("--json --model " + path_ + " " + arguments);
    EXPECT_EQ(r.status, 0) << r.err;
    return json::parse(r.out, nullptr, false);
  }
  static std::string path_;
};
std::string SmolLM::path_;

TEST_F(SmolLM, AnswersAQuestion) {
  const json a = answers("--prompt 'What is the capital of France?'");
  // Token ids of the chat template as the tokenizers package of PyPI makes them from the same vocabulary and merges.
  const std::vector<int32_t> want = {1,   9690, 198, 2683, 359,   253,  5356, 5646, 11173, 3365, 3511, 308,  34519,
                                     28,  7018, 411, 407,  19712, 8182, 2,    198,  1,     4093, 198,  1780, 314,
                                     260, 3575, 282, 4649, 47,    2,    198,  1,    520,   9531, 198};
  EXPECT_EQ(a["requests"][0]["prompt_tokens"].get<std::vector<int32_t>>(), want);
  // The wording is not compared: the two likeliest first tokens are 0.08 apart in the double-precision model, less than
  // bf16 resolves. LogitsAgreeWithTheDoublePrecisionModel says whether the answer is right.
  EXPECT_FALSE(a["requests"][0]["text"].get<std::string>().empty());
}

/// The logits after a prompt, against the double-precision model's.
struct Distance {
  double error, divergence;  // relative rms; of the two distributions, in nats
  bool same_token;
};
Distance distance(const float* got, const std::vector<double>& want) {
  double error = 0, scale = 0, sum_got = 0, sum_want = 0, divergence = 0;
  for (size_t t = 0; t < want.size(); ++t) {
    error += std::pow(got[t] - want[t], 2), scale += std::pow(want[t], 2);
    sum_got += std::exp(static_cast<double>(got[t])), sum_want += std::exp(want[t]);
  }
  for (size_t t = 0; t < want.size(); ++t)
    divergence += std::exp(want[t]) / sum_want * (want[t] - std::log(sum_want) - got[t] + std::log(sum_got));
  return {std::sqrt(error / scale), divergence,
          std::max_element(got, got + want.size()) - got == std::max_element(want.begin(), want.end()) - want.begin()};
}

TEST_F(SmolLM, LogitsAgreeWithTheDoublePrecisionModel) {
  const std::vector<int32_t> prompt = {22007, 6463, 314, 260, 3075, 338, 26648, 897, 1569};
  const auto want = llm_reference::last_logits(path_, prompt);
  for (const bool exact : {true, false}) {
    const std::string file = temporary("logits.safetensors");
    const json a = answers(std::string(exact ? "--exact " : "") + "--plain --max-new 1 --logits " + file +
                           " --prompt 'Gravity is the force that pulls every object'");
    ASSERT_EQ(a["requests"][0]["prompt_tokens"].get<std::vector<int32_t>>(), prompt);
    const auto saved = flashinfer::formats::read_safetensors(file);
    ::unlink(file.c_str());
    ASSERT_EQ(saved.size(), 1u);
    ASSERT_EQ(saved[0].key, "logits.0");
    ASSERT_EQ(static_cast<size_t>(saved[0].tensor.numel()), want.size());
    const Distance d = distance(saved[0].tensor.data_as<float>(), want);
    RecordProperty(exact ? "exact" : "quantised", std::to_string(d.error) + " " + std::to_string(d.divergence));
    // Activations are bf16 here, thirty layers deep: measured 0.034 and 2.6e-4. Or 8-bit integers where they meet
    // weights: 0.069, 6e-3.
    EXPECT_LT(d.error, exact ? 0.04 : 0.1) << exact;
    EXPECT_LT(d.divergence, exact ? 2e-3 : 1.5e-2) << exact;
    EXPECT_TRUE(d.same_token) << exact;
  }
}

TEST_F(SmolLM, AnswersAreTheSameAloneAndInTheBatch) {
  const std::vector<std::string> prompts = {"Hi", "Name three colours.",
                                            "Why is the sky blue? Explain it to a child in one sentence."};
  std::string all;
  for (const auto& p : prompts) all += " --prompt '" + p + "'";
  // Kernels are slow under a sanitizer, and one step is like another.
  const std::string some = std::string("--max-new ") + (*flashinfer::build::sanitizer_flags() ? "4" : "12");
  const json together = answers(some + all);
  for (size_t i = 0; i < prompts.size(); ++i)
    EXPECT_EQ(answers(some + " --page-size 1 --threads 1 --prompt '" + prompts[i] + "'")["requests"][0]["tokens"],
              together["requests"][i]["tokens"]);
  EXPECT_EQ(answers(some + " --page-size 64 --max-batch 2" + all)["requests"][1]["tokens"],
            together["requests"][1]["tokens"]);
}

}  // namespace
}  // namespace llm_test
