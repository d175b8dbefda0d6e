// SPDX-License-Identifier: Apache-2.0
// Steps and chunks of linear attention in a captured graph: indices, lengths and seeds are read from device memory when
// the graph runs. Kernels run on the emulator.
#include <functional>
#include <random>

#include "call.h"
#include "emulated_kernel.h"
#include "flashinfer/ops/linear_attention/conv/cuda.h"
#include "flashinfer/ops/linear_attention/cuda_launch.h"
#include "flashinfer/ops/linear_attention/gdn/decode_cuda.h"
#include "flashinfer/ops/linear_attention/gdn/fused.h"
#include "flashinfer/ops/linear_attention/gdn/prefill.h"
#include "flashinfer/ops/linear_attention/kda/fused.h"
#include "flashinfer/ops/linear_attention/kda/kda.h"
#include "flashinfer/ops/linear_attention/kernels/gdn/chunk_cuda_config.h"
#include "flashinfer/ops/linear_attention/kernels/gdn/chunk_params.h"
#include "flashinfer/ops/linear_attention/kernels/gdn/commit_params.h"
#include "flashinfer/ops/linear_attention/kernels/gdn/front_params.h"
#include "flashinfer/ops/linear_attention/kernels/kda/fused_cuda_params.h"
#include "flashinfer/ops/linear_attention/kernels/kda/params.h"
#include "flashinfer/ops/linear_attention/kernels/mamba/ssd_cuda_config.h"
#include "flashinfer/ops/linear_attention/mamba/replay.h"
#include "flashinfer/ops/linear_attention/mamba/replay_cuda.h"
#include "flashinfer/ops/linear_attention/mamba/selective_state_update.h"
#include "flashinfer/ops/linear_attention/mamba/ssd.h"
#include "flashinfer/ops/linear_attention/mamba/ssu_cuda.h"

namespace flashinfer {
namespace {
namespace la = ops::linear_attention;
inline constexpr jit::Kernel kKda{"flashinfer/ops/linear_attention/kernels/cuda/kda.cuh", "flashinfer::cu::kda",
                                  "flashinfer::KdaCudaParams"};
inline constexpr jit::Kernel kFront{"flashinfer/ops/linear_attention/kernels/cuda/gdn_front.cuh",
                                    "flashinfer::cu::gdn_front", "flashinfer::GdnFrontParams"};
inline constexpr jit::Kernel kCommit{"flashinfer/ops/linear_attention/kernels/cuda/gdn_commit.cuh",
                                     "flashinfer::cu::gdn_commit", "flashinfer::GdnCommitParams"};
inline constexpr jit::Kernel kChunks{"flashinfer/ops/linear_attention/kernels/cuda/gdn_chunk.cuh",
                                     "flashinfer::cu::gdn_chunk", "flashinfer::GdnChunkParams"};
inline constexpr jit::Kernel kChannels{"flashinfer/ops/linear_attention/kernels/cuda/gdn_channels.cuh",
                                       "flashinfer::cu::gdn_channels", "flashinfer::GdnChunkParams"};
inline constexpr jit::Kernel kScan{"flashinfer/ops/linear_attention/kernels/cuda/ssd_chunk.cuh",
                                   "flashinfer::cu::ssd_chunk", "flashinfer::SsuCudaParams"};
#define FI_FUSED "flashinfer/ops/linear_attention/kernels/cuda/kda_fused.cuh"
inline constexpr jit::Kernel kFusedRows{FI_FUSED, "flashinfer::cu::kda_fused_rows", "flashinfer::KdaFusedCudaParams"},
    kFusedConv{FI_FUSED, "flashinfer::cu::kda_fused_conv", "flashinfer::KdaFusedCudaParams"},
    kFusedNorm{FI_FUSED, "flashinfer::cu::kda_fused_norm", "flashinfer::KdaFusedCudaParams"};
#undef FI_FUSED
constexpr int64_t kWidth = 64;

class GraphLinear : public Call {
 protected:
  /// An index array, and what it holds during the capture and after it.
  struct Changed {
    Tensor array;
    Tensor before, after;
  };

  void SetUp() override {
    Call::SetUp();
    gpu().kernel = [this](const fake::Launched& l) { run(l); };
  }
  void TearDown() override {
    changed_.clear(), kept_.clear(), written_.clear();
    Call::TearDown();
  }
  template <const jit::Kernel& K, class Params, class Config>
  std::function<void(const fake::Launched&)> kernel(const Config& config) {
    return [this, config](const fake::Launched& l) { emulate<K, Params>(gpu(), l, config); };
  }
  void run(const fake::Launched& l) {
    if (!kernels_.empty()) return kernels_[launched_++ % kernels_.size()](l);
    switch (l.bytes) {
      case sizeof(GdnDecodeParams):
        return emulate<la::kGdnDecodeCuda, GdnDecodeParams>(gpu(), l, la::delta_config(state_, kWidth, true));
      case sizeof(KdaCudaParams):
        return emulate<kKda, KdaCudaParams>(gpu(), l, la::delta_config(state_, kWidth, true, true));
      case sizeof(SsuCudaParams):
        return emulate<la::kSsuCuda, SsuCudaParams>(gpu(), l, la::delta_config(state_, kWidth, true));
      case sizeof(ConvCudaParams):
        return emulate<la::kConvUpdateCuda, ConvCudaParams>(gpu(), l, ConvCudaConfig{DType::kBF16, true, 128});
      case sizeof(ReplayCudaParams):
        return emulate<la::kReplayCuda, ReplayCudaParams>(gpu(), l, la::delta_config(state_, kWidth, true));
      case sizeof(GdnCommitParams):
        return emulate<kCommit, GdnCommitParams>(gpu(), l, la::delta_config(DType::kF32, kGdnCommitWidth, true));
      case sizeof(GdnChunkParams): return emulate<kChunks, GdnChunkParams>(gpu(), l, GdnChunkCudaConfig{kWidth, 128});
      case sizeof(GdnFrontParams):
        return emulate<kFront, GdnFrontParams>(gpu(), l, ConvCudaConfig{DType::kBF16, true, 256});
      default: FAIL() << "an unknown kernel with " << l.bytes << " bytes of parameters";
    }
  }
  /// Random numbers on the GPU, the same for each run of the test.
  Tensor random(std::initializer_list<int64_t> shape, DType dtype = DType::kBF16, double low = -1, double high = 1) {
    const Tensor t = Tensor::empty(shape, dtype);
    std::uniform_real_distribution<float> draw(static_cast<float>(low), static_cast<float>(high));
    for (int64_t i = 0; i < t.numel(); ++i) {
      const float x = draw(random_);
      if (dtype == DType::kBF16)
        t.data_as<bf16_t>()[i] = bf16_t(x);
      else if (dtype == DType::kF16)
        t.data_as<f16_t>()[i] = f16_t(x);
      else
        t.data_as<float>()[i] = x;
    }
    return kept_.emplace_back(to_device(t.view(), kGpu));
  }
  template <class T>
  TensorView changing(const std::vector<T>& before, const std::vector<T>& after) {
    const auto host = [](const std::vector<T>& v) {
      return Tensor::copy_of(std::span<const T>(v), {static_cast<int64_t>(v.size())});
    };
    changed_.push_back({to_device(host(before).view(), kGpu), host(before), host(after)});
    return changed_.back().array.view();
  }
  /// A tensor that the call writes: set back before every run.
  TensorView written(const Tensor& t) {
    written_.push_back({t, to_device(t.view(), kCpu), {}});
    return t.view();
  }
  void set_back() {
    for (const Changed& w : written_) copy(w.array, w.before);
  }
  void indices(Tensor Changed::* which) {
    for (const Changed& c : changed_) copy(c.array, c.*which);
  }
  static void copy(const Tensor& to, const Tensor& from) {
    copy_bytes(to.data(), kGpu, from.data(), kCpu, static_cast<size_t>(from.nbytes()));
  }
  std::vector<std::string> results() {
    cuda::synchronize(0, stream_->get());
    std::vector<std::string> all;
    for (const Changed& w : written_) {
      const Tensor t = to_device(w.array.view(), kCpu);
      all.emplace_back(static_cast<const char*>(t.data()), static_cast<size_t>(t.nbytes()));
    }
    return all;
  }
  /// Captured with one content of the arrays, replayed with another: the bytes of a call with that one.
  void replays(const std::function<void()>& call) {
    call();
    const auto first = results();
    set_back();
    gpu().calls.clear();
    gpu().begin_capture(stream_->get());
    call();
    ASSERT_GT(gpu().end_capture(stream_->get()), 0);
    EXPECT_EQ(waits() + gpu().calls["cuCtxSynchronize"], 0);
    for (const auto& [name, n] : gpu().calls) EXPECT_FALSE(name.starts_with("cuMemcpy") && n > 0) << name;
    indices(&Changed::after);
    gpu().launch_graph(gpu().last_graph(), stream_->get());
    const auto replayed = results();
    set_back();
    call();
    const auto want = results();
    ASSERT_EQ(replayed.size(), want.size());
    for (size_t i = 0; i < want.size(); ++i) {
      EXPECT_TRUE(replayed[i] == want[i]) << "tensor " << i << " differs from an eager call's";
      EXPECT_FALSE(want[i] == first[i]) << "tensor " << i << " does not depend on the arrays: the test shows nothing";
    }
  }

  /// The fused steps of KDA: what both take.
  template <class B>
  void set_fused(B& r, int64_t rows, int64_t history) {
    constexpr KdaFusedCudaConfig config{DType::kBF16, 128};
    kernels_ = {kernel<kFusedRows, KdaFusedCudaParams>(config), kernel<kFusedConv, KdaFusedCudaParams>(config),
                kernel<kKda, KdaCudaParams>(la::delta_config(DType::kF32, kWidth, true, true)),
                kernel<kFusedNorm, KdaFusedCudaParams>(config)};
    const auto kept = [this](std::initializer_list<int64_t> shape, DType dtype = DType::kBF16) -> TensorView {
      random(shape, dtype);
      return kept_.back();
    };
    r.x = kept({rows, 3 * kWidth}), r.weight = kept({3, 4, kWidth}, DType::kF32);
    r.conv_state = written(random({5, 3 * kWidth, history}));
    r.raw_gate = kept({1, rows, 1, kWidth}), r.raw_beta = kept({1, rows, 1});
    r.A_log = kept({1}, DType::kF32), r.dt_bias = kept({kWidth}, DType::kF32);
    r.state = written(random({5, 1, kWidth, kWidth}, DType::kF32)), r.output_gate = kept({rows, 1, kWidth});
    r.norm_weight = kept({kWidth}, DType::kF32), r.output = written(random({1, rows, 1, kWidth}));
  }

  std::vector<std::function<void(const fake::Launched&)>> kernels_;  // of a call, in order; empty: by their parameters
  size_t launched_ = 0;
  DType state_ = DType::kF32;  // of the delta rule's states
  std::mt19937 random_{7};
  std::vector<Tensor> kept_;
  std::vector<Changed> changed_, written_;
};

TEST_F(GraphLinear, GatedDeltaRule) {
  const Tensor q = random({2, 1, 1, kWidth}), k = random({2, 1, 1, kWidth}), v = random({2, 1, 2, 32}),
               a = random({2, 1, 2}), b = random({2, 1, 2}), log = random({2}, DType::kF32),
               bias = random({2}, DType::kF32);
  GatedDeltaRuleDecodePretranspose r{.q = q, .k = k, .v = v};
  r.A_log = log, r.a = a, r.b = b, r.dt_bias = bias;
  r.initial_state = written(random({5, 2, 32, kWidth}, DType::kF32)), r.output = written(random({2, 1, 2, 32}));
  r.initial_state_indices = changing<int32_t>({0, 3}, {4, -1});
  r.output_state_indices = changing<int32_t>({0, 2}, {1, 3});
  replays([&] { gated_delta_rule_decode_pretranspose(r); });
}

TEST_F(GraphLinear, FusedStepOfTheGatedDeltaRule) {
  const Tensor x = random({3, 40}), w = random({40, 4}, DType::kBF16, -0.2, 0.2), qkv = random({3, 192}),
               filter = random({192, 4}), log = random({2}, DType::kF32), bias = random({2}, DType::kF32);
  GdnFusedDecodeStep r{.hidden_states = x, .w_ba = w, .mixed_qkv = qkv, .conv_weight = filter};
  r.conv_state = written(random({5, 192, 3})), r.A_log = log, r.dt_bias = bias;
  r.ssm_state = written(random({5, 2, 32, kWidth}, DType::kF32)), r.out = written(random({3, 1, 2, 32}));
  r.state_indices = changing<int32_t>({0, 3, 1}, {4, -1, 0});
  replays([&] { gdn_fused_decode_step(r); });
}

TEST_F(GraphLinear, CommitOfAcceptedTokens) {
  const Tensor v = random({1, 4, 2, 3, 128}), k = random({1, 4, 1, 3, 128}),
               g = random({1, 4, 2, 3}, DType::kF32, -1, 0), beta = random({1, 4, 2, 3}, DType::kF32, 0, 1);
  GatedDeltaRuleReplayssmCommit r{.checkpoint_state = written(random({1, 4, 2, 128, 128}, DType::kF32))};
  r.rawv_cache = v, r.rawk_cache = k, r.g_cache = g, r.beta_cache = beta;
  r.state_indices = changing<int32_t>({0, 3}, {2, -1}), r.accept_lens = changing<int32_t>({1, 3}, {2, 1});
  replays([&] { gated_delta_rule_replayssm_commit(r); });
}

TEST_F(GraphLinear, ChunksOfTheGatedDeltaRule) {
  const Tensor q = random({70, 1, kWidth}), k = random({70, 1, kWidth}), v = random({70, 1, 64}),
               g = random({70, 1}, DType::kF32, 0.9, 1), initial = random({4, 1, 64, kWidth}, DType::kF32);
  ChunkGatedDeltaRule r{.q = q, .k = k, .v = v};
  r.g = g, r.initial_state = initial, r.output_final_state = r.use_qk_l2norm_in_kernel = true;
  r.cu_seqlens = changing<int32_t>({0, 3, 70}, {0, 66, 70});
  r.output = written(random({70, 1, 64})), r.output_state = written(random({4, 1, 64, kWidth}, DType::kF32));
  r.state_indices = changing<int32_t>({0, 3}, {2, 1});
  replays([&] { chunk_gated_delta_rule(r); });
}

TEST_F(GraphLinear, KimiDeltaAttention) {
  state_ = DType::kBF16;
  const Tensor q = random({4, 1, kWidth}), k = random({4, 1, kWidth}), v = random({4, 2, 32}),
               g = random({4, 2, kWidth}, DType::kBF16, -2, 0), beta = random({4, 2}, DType::kBF16, 0, 1);
  KdaRecurrence r{.q = q, .k = k, .v = v, .g = g, .beta = beta};
  r.cu_seqlens = changing<int32_t>({0, 1, 4}, {0, 2, 3});
  r.state = written(random({6, 2, 32, kWidth})), r.output = written(random({4, 2, 32}));
  r.read_indices = changing<int32_t>({0, 3}, {4, 1});
  r.after_indices = changing<int64_t>({-1, 2, -1, -1}, {5, -1, -1, 0});
  replays([&] { kda_recurrence(r); });
}

TEST_F(GraphLinear, CachesOfFrozenKimiDeltaAttention) {
  const Tensor q = random({3, 1, kWidth}), k = random({3, 1, kWidth}), v = random({3, 2, 32}),
               g = random({3, 2, kWidth}, DType::kBF16, -2, 0), beta = random({3, 2}, DType::kBF16, 0, 1),
               states = random({4, 2, 32, kWidth}, DType::kF32);
  KdaRecurrence r{.q = q, .k = k, .v = v, .g = g, .beta = beta};
  r.cu_seqlens = changing<int32_t>({0, 1, 3}, {0, 2, 3});
  r.state = states.view(), r.disable_state_update = true;
  r.read_indices = changing<int32_t>({0, 3}, {2, 1});
  r.correction_cache = written(random({4, 2, 2, 32}, DType::kF32)), r.kg_cache = written(random({4, 2, 2, 2 * kWidth}));
  r.output = written(random({3, 2, 32}));
  replays([&] { kda_recurrence(r); });
}

TEST_F(GraphLinear, MambaWithASeed) {
  state_ = DType::kF16;
  const Tensor x = random({2, 2, 32}), dt = random({2, 2, 1}), a = random({2, 1, 1}, DType::kF32, -8, -0.1),
               b = random({2, 1, kWidth}), c = random({2, 1, kWidth}), d = random({2, 1});
  SelectiveStateUpdate r{.state = written(random({5, 2, 32, kWidth}, DType::kF16)), .x = x, .dt = dt, .A = a};
  r.B = b, r.C = c, r.D = d, r.dt_softplus = true, r.out = written(random({2, 2, 32}));
  r.state_batch_indices = changing<int64_t>({0, 3}, {4, 1});
  r.rand_seed = changing<int64_t>({12}, {345});
  replays([&] { selective_state_update(r); });
}

TEST_F(GraphLinear, MambaWithARingOfDraftTokens) {
  const Tensor x = random({2, 2, 2, 32}), dt = random({2, 2, 2, 1}, DType::kBF16, 0, 1),
               a = random({2, 1, 1}, DType::kF32, -8, -0.1), b = random({2, 2, 1, kWidth}),
               c = random({2, 2, 1, kWidth});
  CheckpointingSsu r{.state = written(random({5, 2, 32, kWidth}, DType::kF32))};
  r.x_cache = written(random({5, 2, 6, 32})), r.B_cache = written(random({5, 1, 6, kWidth})),
  r.dt_cache = written(random({5, 2, 6}, DType::kF32, 0, 1));
  r.ring_start = changing<int32_t>({0, 1, 2, 3, 4}, {5, 3, 0, 0, 1});
  r.prev_num_accepted_tokens = changing<int32_t>({3, 1, 2, 4, 0}, {0, 4, 2, 1, 3});  // more than 2: stores the state
  r.x = x, r.dt = dt, r.A = a, r.B = b, r.C = c, r.out = written(random({2, 2, 2, 32}));
  r.state_batch_indices = changing<int32_t>({0, 3}, {4, 1});
  replays([&] { checkpointing_ssu(r); });
}

TEST_F(GraphLinear, Convolution) {
  const Tensor x = random({2, 40}), filter = random({40, 4});
  CausalConv1dUpdate r{.x = x, .conv_state = written(random({5, 40, 3})), .weight = filter, .activation = "silu"};
  r.out = written(random({2, 40}));
  r.conv_state_indices = changing<int32_t>({0, 3}, {4, -1});
  replays([&] { causal_conv1d_update(r); });
}

TEST_F(GraphLinear, ConvolutionOfSequences) {
  const Tensor x = random({40, 20}), filter = random({40, 4}), continues = Tensor::empty({2}, DType::kBool);
  continues.data_as<bool>()[0] = continues.data_as<bool>()[1] = true;
  const Tensor initial = to_device(continues.view(), kGpu);
  kernels_ = {kernel<la::kConvCuda, ConvCudaParams>(ConvCudaConfig{DType::kBF16, false, 128}),
              kernel<la::kConvStatesCuda, ConvCudaParams>(ConvCudaConfig{DType::kBF16, true, 128})};
  CausalConv1dFn r{.x = x, .weight = filter};
  r.query_start_loc = changing<int32_t>({0, 3, 20}, {0, 9, 20}), r.cache_indices = changing<int32_t>({0, 3}, {4, -1});
  r.has_initial_state = initial, r.conv_states = written(random({5, 40, 3})), r.out = written(random({40, 20}));
  replays([&] { causal_conv1d_fn(r); });
}

TEST_F(GraphLinear, ChunksWithGatesOfChannels) {
  const Tensor q = random({40, 1, kWidth}), k = random({40, 1, kWidth}), v = random({40, 1, 64}),
               w = random({40, 1, 64}), beta = random({40, 1, kWidth}), g = random({40, 1, kWidth}, DType::kF32, -2, 0),
               initial = random({2, 1, 64, kWidth}, DType::kF32);
  kernels_ = {kernel<kChannels, GdnChunkParams>(GdnChannelsCudaConfig{kWidth, 128})};
  ChunkGatedDeltaRule2 r{.q = q, .k = k, .v = v};
  r.g = g, r.beta = beta, r.w = w, r.initial_state = initial;
  r.output_final_state = r.use_qk_l2norm_in_kernel = true;
  r.cu_seqlens = changing<int64_t>({0, 3, 40}, {0, 36, 40});
  r.output = written(random({40, 1, 64})), r.output_state = written(random({2, 1, 64, kWidth}, DType::kF32));
  replays([&] { chunk_gated_delta_rule2(r); });
}

TEST_F(GraphLinear, ScanOfMamba) {
  const Tensor x = random({1, 70, 1, 64}), dt = random({1, 70, 1}, DType::kF32, 0, 1),
               a = random({1}, DType::kF32, -4, -0.1), b = random({1, 70, 1, kWidth}), c = random({1, 70, 1, kWidth}),
               initial = random({2, 1, 64, kWidth}, DType::kF32);
  kernels_ = {kernel<kScan, SsuCudaParams>(SsdCudaConfig{DType::kF32, kWidth, 128})};
  SsdChunkScan r{.x = x, .dt = dt, .A = a, .B = b, .C = c};
  r.initial_states = initial, r.state_dtype = DType::kF32;
  r.cu_seqlens = changing<int32_t>({0, 3, 70}, {0, 66, 70});
  r.checkpoint_token_indices = changing<int64_t>({2, -1}, {10, 68});
  r.checkpoint_state_slots = changing<int32_t>({0, 1}, {2, 0});
  r.checkpoint_states = written(random({3, 1, 64, kWidth}, DType::kF32));
  r.out = written(random({1, 70, 1, 64})), r.final_states = written(random({2, 1, 64, kWidth}, DType::kF32));
  replays([&] { ssd_chunk_scan(r); });
}

TEST_F(GraphLinear, FusedStepOfKimiDeltaAttention) {
  FusedKdaDecode r;
  set_fused(r, 3, 3);
  r.state_indices = changing<int32_t>({1, 3, 0}, {4, 0, 2});
  replays([&] { fused_kda_decode(r); });
}

TEST_F(GraphLinear, FusedStepOfDraftTokensOfKimiDeltaAttention) {
  PackedFusedKdaDecode r;
  set_fused(r, 4, 4);
  const TensorView slots = changing<int32_t>({1, 2, 3, 4}, {4, 3, 2, 1});
  r.state_indices = TensorView(const_cast<void*>(slots.data()), DType::kI32, {2, 2}, slots.device());
  r.query_start_loc = changing<int32_t>({0, 2, 4}, {0, 1, 3}),
  r.num_accepted_tokens = changing<int32_t>({1, 2}, {2, 1});
  replays([&] { packed_fused_kda_decode(r); });
}

}  // namespace
}  // namespace flashinfer
