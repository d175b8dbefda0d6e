// SPDX-License-Identifier: Apache-2.0
// Serving with a made-up model: what a request answers depends on nothing but the request.
#include "examples/llm/engine.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>

#include "made_gguf.h"
#include "reference.h"
#include "tests/comm/ranks.h"

namespace llm_test {
namespace {

using Tokens = std::vector<int32_t>;

std::string model_file() {
  static const std::string path = write_file("/tmp/llm_engine_" + std::to_string(::getpid()), made_gguf({}));
  return path;
}
struct RemoveFile : testing::Environment {
  void TearDown() override { ::unlink(model_file().c_str()); }
};
const auto* const remove_file = testing::AddGlobalTestEnvironment(new RemoveFile);

struct Serving {
  int64_t page_size = 16, pages = 64, max_batch = 8, context = 512;
  int threads = 2;
  llm::Sampling sampling;
  bool exact = false;  // activations as bf16
  flashinfer::Device device = flashinfer::kCpu;
  llm::Parallel parallel;
  std::string file = model_file();
};

struct Answers {
  std::vector<Tokens> tokens;
  std::vector<std::vector<float>> logits;
  llm::EngineStats stats;
};

Answers serve(const Serving& s, const std::vector<Tokens>& prompts, const std::vector<int64_t>& max_new) {
  const auto pool = flashinfer::make_thread_pool(s.threads);
  flashinfer::Context context = flashinfer::Context::current();
  context.executor = *pool;
  const flashinfer::ContextScope scope(context);
  const llm::Gguf file(s.file);
  llm::Model model(file, s.pages, s.page_size, llm::Engine::max_rows(s.max_batch), [](double) {}, s.device, s.parallel);
  model.quantize_activations(!s.exact);
  llm::Engine engine(&model, {s.max_batch, s.context, s.sampling, true});
  for (size_t i = 0; i < prompts.size(); ++i) engine.submit(prompts[i], max_new[i], [](int32_t t) { return t == 2; });
  while (engine.step([](const llm::Request&, int32_t) {})) {
  }
  Answers a;
  for (const auto& r : engine.requests()) a.tokens.push_back(r->output);
  a.logits = engine.prompt_logits();
  a.stats = engine.stats();
  return a;
}

/// Prompts of different lengths; two are longer than a chunk.
std::vector<Tokens> prompts() {
  std::vector<Tokens> out;
  std::mt19937 random(11);
  for (size_t n : {1, 5, 600, 17, 33, 64, 520, 2}) {
    Tokens t;
    for (size_t i = 0; i < n; ++i) t.push_back(static_cast<int32_t>(3 + random() % 256));
    out.push_back(t);
  }
  return out;
}
const std::vector<int64_t> kNew = {9, 12, 5, 20, 7, 16, 3, 25};
const Serving kDefault{.pages = 128, .context = 1024};

TEST(Engine, AnswersAreTheSameAloneAndInTheBatch) {
  const Answers together = serve(kDefault, prompts(), kNew);
  EXPECT_GT(together.stats.largest_batch, 4);
  for (size_t i = 0; i < prompts().size(); ++i) {
    const Answers alone = serve(kDefault, {prompts()[i]}, {kNew[i]});
    EXPECT_EQ(alone.tokens[0], together.tokens[i]) << "prompt " << i;
    EXPECT_EQ(alone.logits[0], together.logits[i]) << "prompt " << i;  // bit for bit
    EXPECT_FALSE(alone.tokens[0].empty());
  }
}

TEST(Engine, AnswersDoNotDependOnPageSizeThreadsOrBatchLimit) {
  const Answers want = serve(kDefault, prompts(), kNew);
  for (int64_t page_size : {1, 16, 64})
    for (int threads : {1, 2}) {
      Serving s = kDefault;
      s.page_size = page_size, s.pages = 2048 / page_size, s.threads = threads;
      const Answers got = serve(s, prompts(), kNew);
      EXPECT_EQ(got.tokens, want.tokens) << "page size " << page_size << ", " << threads << " threads";
      EXPECT_EQ(got.logits, want.logits) << "page size " << page_size << ", " << threads << " threads";
    }
  Serving s = kDefault;
  s.max_batch = 3;
  EXPECT_EQ(serve(s, prompts(), kNew).tokens, want.tokens);
}

/// Ranks as threads of this process; cli_test.cc has processes. Three ranks share 4 key-value heads, and 12 blocks of
/// the hidden layer, unevenly.
TEST(Engine, AnswersDoNotDependOnTheNumberOfRanks) {
  const std::string path = write_file(model_file() + "_ranks", made_gguf({.kv_heads = 4, .hidden = 224}));
  for (const bool exact : {false, true}) {
    Serving s = kDefault;
    s.file = path, s.threads = 1, s.exact = exact;
    const Answers want = serve(s, prompts(), kNew);
    for (const int ranks : {2, 3, 4}) {
      std::vector<Answers> got(static_cast<size_t>(ranks));
      const auto outcomes = flashinfer::run_threads(ranks, [&](int rank) {
        Serving own = s;
        own.parallel = {rank, ranks, path + std::to_string(ranks) + (exact ? "exact" : "")};
        got[static_cast<size_t>(rank)] = serve(own, prompts(), kNew);
      });
      for (size_t r = 0; r < got.size(); ++r) {
        ASSERT_EQ(outcomes[r], "") << "rank " << r;
        EXPECT_EQ(got[r].tokens, want.tokens) << "rank " << r << " of " << ranks;
        EXPECT_EQ(got[r].logits, want.logits) << "rank " << r << " of " << ranks;  // bit for bit
      }
    }
  }
  ::unlink(path.c_str());
}

TEST(Engine, AFullPoolMakesRequestsWait) {
  Serving s = kDefault;
  s.pages = 40;  // the longest prompt needs 38
  const Answers got = serve(s, prompts(), kNew);
  EXPECT_EQ(got.tokens, serve(kDefault, prompts(), kNew).tokens);
  EXPECT_LE(got.stats.most_pages, 40);
  EXPECT_LT(got.stats.largest_batch, 8);
}

std::string refusal(const Serving& s, const Tokens& prompt) {
  try {
    serve(s, {prompt}, {8});
  } catch (const llm::UserError& e) {
    return e.what();
  }
  return "";
}

TEST(Engine, RequestsThatCanNeverRunAreRejected) {
  Serving s = kDefault;
  s.context = 100;
  EXPECT_EQ(refusal(s, Tokens(100, 5)), "prompt 1 has 100 tokens, but the context holds 100 with the answer (--ctx)");
  EXPECT_EQ(refusal(s, Tokens(99, 5)), "");
  s.pages = 4;
  EXPECT_EQ(refusal(s, Tokens(64, 5)), "prompt 1 needs 5 pages of 16 tokens, but the KV cache has 4 (--kv-tokens)");
  EXPECT_EQ(refusal(s, {}), "prompt 1 is empty");
}

TEST(Engine, SampledTokensDependOnSeedAndPromptOnly) {
  Serving s = kDefault;
  s.sampling = {.temperature = 1.5, .top_k = 50, .top_p = 0.95, .seed = 4};
  const Answers together = serve(s, prompts(), kNew);
  EXPECT_EQ(serve(s, prompts(), kNew).tokens, together.tokens);
  EXPECT_NE(serve(kDefault, prompts(), kNew).tokens, together.tokens);
  s.sampling.seed = 4 + 3;
  EXPECT_EQ(serve(s, {prompts()[3]}, {kNew[3]}).tokens[0], together.tokens[3]);
  s.sampling.seed = 99;
  EXPECT_NE(serve(s, {prompts()[3]}, {kNew[3]}).tokens[0], together.tokens[3]);
}

TEST(Engine, LogitsAgreeWithTheDoublePrecisionModel) {
  Serving s = kDefault;
  for (const bool exact : {true, false}) {
    s.exact = exact;
    const Answers got = serve(s, prompts(), kNew);
    for (size_t i : {1u, 3u, 4u}) {
      const auto want = llm_reference::last_logits(model_file(), prompts()[i]);
      double error = 0, scale = 0;
      for (size_t t = 0; t < want.size(); ++t) {
        error += std::pow(got.logits[i][t] - want[t], 2);
        scale += std::pow(want[t], 2);
      }
      // bf16 has a relative step of 2^-8; the residual stream passes through some ten roundings here. Blocks of 8-bit
      // integers add as much.
      EXPECT_LT(std::sqrt(error / scale), exact ? 0.02 : 0.04) << "prompt " << i;
      EXPECT_GT(scale, 0);
    }
  }
}

/// Every operator but the products runs as its CUDA kernel: prefill in one batch with decode, greedy and sampled.
TEST(Engine, TheKernelsOfGpusServeOnTheEmulator) {
  Serving s{.pages = 16, .exact = true, .device = {flashinfer::DeviceType::kEmu, 0}};
  const std::vector<Tokens> some = {prompts()[1], prompts()[3], prompts()[4]};
  const std::vector<int64_t> few = {4, 2, 3};
  const Answers got = serve(s, some, few);
  for (size_t i = 0; i < some.size(); ++i) {
    const auto want = llm_reference::last_logits(model_file(), some[i]);
    double error = 0, scale = 0;
    for (size_t t = 0; t < want.size(); ++t)
      error += std::pow(got.logits[i][t] - want[t], 2), scale += std::pow(want[t], 2);
    EXPECT_LT(std::sqrt(error / scale), 0.02) << "prompt " << i;
    const std::vector<float>& row = got.logits[i];
    EXPECT_EQ(got.tokens[i].front(), std::max_element(row.begin(), row.end()) - row.begin());
    EXPECT_LE(static_cast<int64_t>(got.tokens[i].size()), few[i]);
  }
  s.sampling = {.temperature = 1.5, .top_k = 50, .top_p = 0.95, .seed = 4};
  const Answers sampled = serve(s, {some[0]}, {2});
  s.device = flashinfer::kCpu;
  EXPECT_EQ(sampled.tokens[0].front(), serve(s, {some[0]}, {2}).tokens[0].front());  // the same numbers are drawn
}

TEST(PagePool, GivesAllOrNothing) {
  llm::PagePool pool(4);
  auto a = pool.take(3);
  EXPECT_EQ(a, (Tokens{0, 1, 2}));
  EXPECT_TRUE(pool.take(2).empty());
  EXPECT_EQ(pool.free(), 1);
  pool.give_back(&a);
  EXPECT_TRUE(a.empty());
  EXPECT_EQ(pool.take(4).size(), 4u);
}

}  // namespace
}  // namespace llm_test
