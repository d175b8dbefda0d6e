// SPDX-License-Identifier: Apache-2.0
// Decoding with everything on the device, on the emulator: what each step reads the step before has written there.
#include "examples/llm/decoder.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>

#include "examples/llm/engine.h"
#include "made_gguf.h"

namespace llm_test {
namespace {

using flashinfer::Device, flashinfer::DeviceType;
using Tokens = std::vector<int32_t>;
constexpr Device kEmulator{DeviceType::kEmu, 0};
constexpr int64_t kPages = 16, kPageSize = 4;

class Decoding : public testing::Test {
 protected:
  void SetUp() override {
    path_ = write_file("/tmp/llm_decoder_" + std::to_string(::getpid()), made_gguf({.hidden = 64}));
    file_.emplace(path_);
  }
  void TearDown() override { ::unlink(path_.c_str()); }
  std::unique_ptr<llm::Model> model(Device device) const {
    auto m = std::make_unique<llm::Model>(*file_, kPages, kPageSize, llm::Engine::max_rows(4), [](double) {}, device);
    m->quantize_activations(false);
    return m;
  }
  std::string path_;
  std::optional<llm::Gguf> file_;
};

struct Answering {
  Tokens prompt, output, pages;
  int64_t cached() const { return static_cast<int64_t>(prompt.size() + output.size()) - 1; }
};

/// The logits of every step, against those of the CPU's model, which composes each step on the host.
TEST_F(Decoding, LogitsOfEveryStepAreTheCpus) {
  const auto cpu = model(flashinfer::kCpu), gpu = model(kEmulator);
  std::vector<Answering> all{{{5, 6, 7, 8, 9}, {}, {3, 4, 11, 5}}, {{10, 11}, {}, {1, 0, 2, 7}}};
  llm::Batch prompts;
  prompts.clear();
  for (const Answering& r : all) prompts.add(r.prompt, 0, r.pages, kPageSize, false, true);
  llm::Sampler greedy({});
  const std::vector<int64_t> none(2, 0);
  const Tokens first = greedy.next(cpu->forward(prompts), none, none);
  gpu->forward(prompts);
  for (size_t i = 0; i < all.size(); ++i) all[i].output.push_back(first[i]);
  llm::Decoder decoder(gpu.get(), 16, {});
  for (int step = 0; step < 8; ++step) {
    llm::Batch batch;
    batch.clear();
    std::vector<llm::DecodeSlot> slots;
    for (const Answering& r : all) {
      batch.add(std::span(&r.output.back(), 1), r.cached(), r.pages, kPageSize, true, true);
      slots.push_back({static_cast<int64_t>(slots.size()), r.output.back(), r.cached(),
                       static_cast<int64_t>(r.output.size()), r.pages});
    }
    const flashinfer::TensorView want = cpu->forward(batch);
    const std::span<const int32_t> tokens = decoder.step(slots);
    const flashinfer::Tensor got = flashinfer::to_device(decoder.logits(2), flashinfer::kCpu);
    float largest = 0, apart = 0;
    for (int64_t i = 0; i < got.numel(); ++i) {
      largest = std::max(largest, std::abs(want.data_as<float>()[i]));
      apart = std::max(apart, std::abs(got.data_as<float>()[i] - want.data_as<float>()[i]));
    }
    EXPECT_LE(apart, 0.02f * largest) << "step " << step;
    const Tokens next = greedy.next(want, none, none);
    for (size_t i = 0; i < all.size(); ++i) {
      EXPECT_EQ(tokens[i], next[i]) << "step " << step;
      all[i].output.push_back(next[i]);
    }
  }
}

/// Requests that end at different steps, so that batches of 3, 2 and 1 take turns; greedy and drawn.
TEST_F(Decoding, AnswersAreThoseOfStepsComposedOnTheHost) {
  const auto gpu = model(kEmulator);
  for (const double temperature : {0.0, 0.7}) {
    std::vector<std::vector<Tokens>> answers;
    for (const bool graphs : {false, true}) {
      llm::EngineOptions options{.max_batch = 4, .context = 24, .graphs = graphs};
      options.sampling.temperature = temperature, options.sampling.top_k = 30, options.sampling.seed = 7;
      llm::Engine engine(gpu.get(), options);
      const std::vector<Tokens> prompts{{5, 6, 7}, {8, 9, 10, 11, 12}, {13}};
      const std::vector<int64_t> lengths{4, 9, 6};
      for (size_t i = 0; i < prompts.size(); ++i) engine.submit(prompts[i], lengths[i], [](int32_t) { return false; });
      while (engine.step([](const llm::Request&, int32_t) {})) {
      }
      auto& of = answers.emplace_back();
      for (const auto& r : engine.requests()) of.push_back(r->output);
    }
    EXPECT_EQ(answers[0], answers[1]) << "temperature " << temperature;
  }
}

}  // namespace
}  // namespace llm_test
