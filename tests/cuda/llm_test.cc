// SPDX-License-Identifier: Apache-2.0
// The demo's model on cuda:0, as far as a driver without a GPU shows it: one step of prefill and decode places every
// operator's tensors on the GPU, follows none of them on the host, and multiplies through cuBLASLt.
#include <dlfcn.h>

#include "examples/llm/decoder.h"
#include "examples/llm/model.h"
#include "examples/llm/sampler.h"
#include "fake_cublaslt.h"
#include "flashinfer/core/cuda/cublaslt.h"
#include "flashinfer/core/fs.h"
#include "flashinfer/record/record.h"
#include "lt_machine.h"
#include "tests/llm/made_gguf.h"

namespace flashinfer {
namespace {

class LlmOnCuda : public LtMachine {
 protected:
  void SetUp() override {
    LtMachine::SetUp();
    before_ = record::settings();
    record::Settings s = before_;
    s.level = 3, s.destination = folder_ + "/log.txt";
    record::configure(s);
  }
  void TearDown() override {
    record::configure(before_);
    LtMachine::TearDown();
  }
  record::Settings before_;
};

TEST_F(LlmOnCuda, AStepRunsOnTheGpu) {
  const std::string path = llm_test::write_file(folder_ + "/model.gguf", llm_test::made_gguf({}));
  {
    const llm::Gguf file(path);
    llm::Model model(file, 8, 16, 64, [](double) {}, {DeviceType::kCUDA, 0});
    llm::Batch batch;
    batch.clear();
    const std::vector<int32_t> prompt = {5, 6, 7, 8, 9}, page_a = {3}, page_b = {1};
    batch.add(std::span(prompt).first(1), 4, page_a, 16, true, true);
    batch.add(prompt, 0, page_b, 16, false, true);
    const size_t before = gpu().launches.size();
    const TensorView logits = model.forward(batch);
    EXPECT_EQ(logits.device(), (Device{DeviceType::kCUDA, 0}));
    EXPECT_EQ(logits.size(0), 2);
    EXPECT_EQ(lt_->calls.size(), 4u * 2 + 1);  // of two layers, and the head
    // A layer: two norms, RoPE, append, decode, prefill, the activation; a last norm. Attention may merge pieces
    // besides.
    EXPECT_GE(gpu().launches.size() - before, 7u * 2 + 1);
    llm::Sampler sampler({});
    const size_t until = gpu().launches.size();
    EXPECT_EQ(sampler.next(logits, std::array<int64_t, 2>{0, 1}, std::array<int64_t, 2>{0, 0}).size(), 2u);
    EXPECT_EQ(gpu().launches.size(), until + 1);
    cuda::synchronize(0, nullptr);
  }
  record::configure(before_);  // closes the log
  const std::string log = fs::read_file(folder_ + "/log.txt").value();
  EXPECT_NE(log.find("device=cuda:0"), std::string::npos);
  for (const char* op : {"rmsnorm", "mm_bf16", "apply_rope_pos_ids_inplace", "append_paged_kv_cache",
                         "BatchDecodeWithPagedKVCacheWrapper.run", "BatchPrefillWithPagedKVCacheWrapper.run",
                         "silu_and_mul", "fused_add_rmsnorm", "top_k_top_p_sampling_from_logits"})
    EXPECT_NE(log.find(op), std::string::npos) << op;
}

/// From the second step of a batch on the host launches one graph, waits once and sends nothing, until the batch
/// changes.
TEST_F(LlmOnCuda, AStepOfDecodingIsOneGraphAndOneWait) {
  const std::string path = llm_test::write_file(folder_ + "/model.gguf", llm_test::made_gguf({}));
  record::configure(before_);
  const llm::Gguf file(path);
  llm::Model model(file, 16, 16, 64, [](double) {}, {DeviceType::kCUDA, 0});
  for (const double temperature : {0.0, 0.8}) {
    llm::Decoder decoder(&model, 64, {.temperature = temperature, .top_k = 20, .top_p = 0.9});
    const std::vector<int32_t> page_a = {3, 4}, page_b = {1};
    std::vector<llm::DecodeSlot> slots{{.id = 0, .token = 5, .cached = 7, .drawn = 1, .pages = page_a},
                                       {.id = 1, .token = 6, .cached = 15, .drawn = 3, .pages = page_b}};
    const auto step = [&] {
      ASSERT_EQ(decoder.step(slots).size(), slots.size());
      for (llm::DecodeSlot& s : slots) ++s.cached, ++s.drawn;
    };
    const auto calls_of = [&](const std::string& prefix) {
      int n = 0;
      for (const auto& [name, count] : gpu().calls)
        if (name.starts_with(prefix)) n += count;
      return n;
    };
    step();  // compiles, and captures afterwards
    for (int i = 0; i < 5; ++i) {
      gpu().calls.clear();
      const size_t launches = gpu().launches.size();
      step();
      EXPECT_EQ(gpu().calls["cuGraphLaunch"], 1);
      EXPECT_EQ(calls_of("cuStreamSynchronize") + calls_of("cuEventSynchronize") + calls_of("cuCtxSynchronize"), 1);
      EXPECT_EQ(calls_of("cuMemcpy") + calls_of("cuMem") + calls_of("cuLaunch") + calls_of("cuEventRecord"), 0);
      EXPECT_EQ(gpu().launches.size(), launches);
      EXPECT_EQ(calls_of("cu"), calls_of("cuCtx") + 2);  // which context is current
    }
    slots[1].id = 2;  // another request in this place: one copy more, and no wait for it
    gpu().calls.clear();
    step();
    EXPECT_EQ(calls_of("cuMemcpyHtoDAsync"), 1);
    EXPECT_EQ(gpu().calls["cuGraphLaunch"], 1);
    EXPECT_EQ(calls_of("cuStreamSynchronize") + calls_of("cuEventSynchronize"), 1);
  }
  cuda::synchronize(0, nullptr);
}

}  // namespace
}  // namespace flashinfer
