// SPDX-License-Identifier: Apache-2.0
// Linear attention by chunks on tensor cores, on the emulator: what the case tables cannot say. Nothing of a token
// enters earlier results, not even NaN, and where a sequence is cut into calls changes no bit.
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <limits>
#include <random>

#include "flashinfer/ops/linear_attention/gdn/prefill.h"
#include "flashinfer/ops/linear_attention/kda/kda.h"
#include "flashinfer/ops/linear_attention/mamba/ssd.h"

namespace flashinfer {
namespace {

constexpr Device kEmulator{DeviceType::kEmu, 0};
constexpr float kNaN = std::numeric_limits<float>::quiet_NaN(), kInfinity = std::numeric_limits<float>::infinity();
constexpr int64_t kHeads = 2, kDim = 64, kState = 128;

template <class T>
Tensor random(std::initializer_list<int64_t> shape, DType type, float low, float high, unsigned seed) {
  Tensor t = Tensor::empty(shape, type, kEmulator);
  std::mt19937 bits(seed);
  std::uniform_real_distribution<float> d(low, high);
  for (int64_t i = 0; i < t.numel(); ++i) t.data_as<T>()[i] = T(d(bits));
  return t;
}
Tensor indices(std::initializer_list<int32_t> values) {
  Tensor t = Tensor::empty({static_cast<int64_t>(values.size())}, DType::kI32, kEmulator);
  std::copy(values.begin(), values.end(), t.data_as<int32_t>());
  return t;
}
Tensor zeros(std::initializer_list<int64_t> shape) {
  Tensor t = Tensor::empty(shape, DType::kF32, kEmulator);
  std::fill(t.data_as<float>(), t.data_as<float>() + t.numel(), 0.0f);
  return t;
}
/// Tokens [from, to) of a tensor [tokens, ...].
TensorView tokens(const TensorView& t, int64_t from, int64_t to) { return t.slice(0, from, to); }
bool same_bytes(const TensorView& a, const TensorView& b) {
  return a.numel() == b.numel() && a.is_contiguous() && b.is_contiguous() &&
         std::memcmp(a.data(), b.data(), static_cast<size_t>(a.nbytes())) == 0;
}
bool same_bytes(const TensorView& a, const Tensor& b) { return same_bytes(a, b.view()); }
/// Element [token, head, c] of results [tokens, kHeads, kDim].
float result(const TensorView& t, int64_t token, int64_t head, int64_t c) {
  return static_cast<float>(t.data_as<bf16_t>()[(token * kHeads + head) * kDim + c]);
}
/// `after` is `before` but for channel c of head 1 from `token` on, where it is not finite.
void expect_later_alone(const Tensor& before, const Tensor& after, int64_t token, int64_t c, int64_t count) {
  for (int64_t t = 0; t < count; ++t)
    for (int64_t h = 0; h < kHeads; ++h)
      for (int64_t i = 0; i < kDim; ++i) {
        const float x = result(after, t, h, i);
        if (t >= token && h == 1 && i == c)
          EXPECT_FALSE(std::isfinite(x)) << "token " << t;
        else
          EXPECT_EQ(x, result(before, t, h, i)) << "token " << t << ", head " << h << ", channel " << i;
      }
}

struct Scan {
  int64_t n;
  Tensor x = random<bf16_t>({1, n, kHeads, kDim}, DType::kBF16, -1, 1, 1);
  Tensor dt = random<float>({1, n, kHeads}, DType::kF32, 0, 1, 2);
  Tensor A = random<float>({kHeads}, DType::kF32, -2, -0.1f, 3);
  Tensor B = random<bf16_t>({1, n, 1, kState}, DType::kBF16, -1, 1, 4);
  Tensor C = random<bf16_t>({1, n, 1, kState}, DType::kBF16, -1, 1, 5);

  std::pair<Tensor, Tensor> run(int64_t from, int64_t to, const Tensor* state) const {
    const auto part = [&](const Tensor& t) { return t.view().slice(1, from, to); };
    SsdChunkScan a{.x = part(x), .dt = part(dt), .A = A, .B = part(B), .C = part(C), .state_dtype = DType::kF32};
    if (state) a.initial_states = *state;
    return ssd_chunk_scan(a);
  }
};
TEST(SsdChunks, NothingOfATokenEntersEarlierResults) {
  for (const float value : {kNaN, -kInfinity})
    for (const int64_t token : {0, 21, 66}) {
      Scan s{70};
      const Tensor before = s.run(0, 70, nullptr).first;
      s.x.data_as<bf16_t>()[(token * kHeads + 1) * kDim + 11] = bf16_t(value);
      expect_later_alone(before, s.run(0, 70, nullptr).first, token, 11, 70);
    }
}
TEST(SsdChunks, ACutAtAChunksEndChangesNoBit) {
  const Scan s{130};
  const auto [all, end] = s.run(0, 130, nullptr);
  const auto [head, middle] = s.run(0, 64, nullptr);
  const auto [tail, last] = s.run(64, 130, &middle);
  EXPECT_TRUE(same_bytes(all.view().slice(1, 0, 64), head));
  EXPECT_TRUE(same_bytes(all.view().slice(1, 64, 130), tail));
  EXPECT_TRUE(same_bytes(end, last));
}

/// Arguments of the gated delta rule, with gates of tokens or of channels.
struct Gated {
  int64_t n;
  Tensor q = random<bf16_t>({n, kHeads, kState}, DType::kBF16, -1, 1, 1);
  Tensor k = random<bf16_t>({n, kHeads, kState}, DType::kBF16, -1, 1, 2);
  Tensor v = random<bf16_t>({n, kHeads, kDim}, DType::kBF16, -1, 1, 3);
  Tensor g = random<float>({n, kHeads}, DType::kF32, 0.9f, 1, 4);
  Tensor beta = random<float>({n, kHeads}, DType::kF32, 0, 1, 5);
  Tensor channel_g = random<float>({n, kHeads, kState}, DType::kF32, -2, 0, 6);
  Tensor channel_beta = random<bf16_t>({n, kHeads, kState}, DType::kBF16, 0, 1, 7);
  Tensor w = random<bf16_t>({n, kHeads, kDim}, DType::kBF16, 0, 1, 8);

  template <class B>
  B arguments(int64_t from, int64_t to, const Tensor& ends, const Tensor* state) const {
    B a{.q = tokens(q, from, to), .k = tokens(k, from, to), .v = tokens(v, from, to)};
    if (state) a.initial_state = *state;
    a.output_final_state = a.use_qk_l2norm_in_kernel = true, a.cu_seqlens = ends;
    return a;
  }
  std::pair<Tensor, Tensor> rule(int64_t from, int64_t to, const Tensor& ends, const Tensor* state = nullptr) const {
    auto a = arguments<ChunkGatedDeltaRule>(from, to, ends, state);
    a.g = tokens(g, from, to), a.beta = tokens(beta, from, to);
    return chunk_gated_delta_rule(a);
  }
  std::pair<Tensor, Tensor> rule2(int64_t from, int64_t to, const Tensor& ends, const Tensor* state = nullptr) const {
    auto a = arguments<ChunkGatedDeltaRule2>(from, to, ends, state);
    a.g = tokens(channel_g, from, to), a.beta = tokens(channel_beta, from, to), a.w = tokens(w, from, to);
    return chunk_gated_delta_rule2(a);
  }
};
using GatedRun = std::pair<Tensor, Tensor> (Gated::*)(int64_t, int64_t, const Tensor&, const Tensor*) const;

void expect_nothing_enters_earlier_results(GatedRun run) {
  const Tensor ends = indices({0, 70}), before = (Gated{70}.*run)(0, 70, ends, nullptr).first;
  for (const float value : {kNaN, kInfinity})
    for (const int64_t token : {0, 21, 47, 66}) {
      const Gated d{70};
      d.v.data_as<bf16_t>()[(token * kHeads + 1) * kDim + 11] = bf16_t(value);
      expect_later_alone(before, (d.*run)(0, 70, ends, nullptr).first, token, 11, 70);
    }
  const Gated d{70};
  d.k.data_as<bf16_t>()[(21 * kHeads + 1) * kState + 5] = bf16_t(kNaN);
  d.g.data_as<float>()[50 * kHeads] = d.channel_g.data_as<float>()[50 * kHeads * kState] = kNaN;
  const Tensor after = (d.*run)(0, 70, ends, nullptr).first;
  EXPECT_TRUE(same_bytes(tokens(after, 0, 21), tokens(before, 0, 21)));
  for (int64_t t = 21; t < 70; ++t)
    for (int64_t h = 0; h < kHeads; ++h)
      EXPECT_EQ(std::isnan(result(after, t, h, 0)), t >= (h == 1 ? 21 : 50)) << "token " << t << ", head " << h;
}
TEST(GdnChunks, NothingOfATokenEntersEarlierResults) { expect_nothing_enters_earlier_results(&Gated::rule); }
TEST(GdnChannelChunks, NothingOfATokenEntersEarlierResults) { expect_nothing_enters_earlier_results(&Gated::rule2); }

/// `cut`: a multiple of the kernel's tokens at a time.
void expect_a_cut_changes_no_bit(GatedRun run, int64_t cut) {
  const Gated d{150};
  const auto [all, end] = (d.*run)(0, 150, indices({0, 140, 141, 141, 150}), nullptr);
  const auto [head, middle] = (d.*run)(0, cut, indices({0, static_cast<int32_t>(cut)}), nullptr);
  const auto [tail, last] = (d.*run)(cut, 140, indices({0, static_cast<int32_t>(140 - cut)}), &middle);
  EXPECT_TRUE(same_bytes(tokens(all, 0, cut), head));
  EXPECT_TRUE(same_bytes(tokens(all, cut, 140), tail));
  EXPECT_TRUE(same_bytes(end.view().slice(0, 0, 1), last));
  const auto [one, short_end] = (d.*run)(140, 141, indices({0, 1}), nullptr);
  EXPECT_TRUE(same_bytes(tokens(all, 140, 141), one));
  EXPECT_TRUE(same_bytes(end.view().slice(0, 1, 2), short_end));
}
TEST(GdnChunks, ACutAtAChunksEndAndOtherSequencesChangeNoBit) { expect_a_cut_changes_no_bit(&Gated::rule, 64); }
TEST(GdnChannelChunks, ACutAfter16TokensAndOtherSequencesChangeNoBit) {
  expect_a_cut_changes_no_bit(&Gated::rule2, 48);
}

struct Delta {
  int64_t n;
  Tensor q = random<bf16_t>({n, kHeads, kState}, DType::kBF16, -1, 1, 1);
  Tensor k = random<bf16_t>({n, kHeads, kState}, DType::kBF16, -1, 1, 2);
  Tensor v = random<bf16_t>({n, kHeads, kDim}, DType::kBF16, -1, 1, 3);
  Tensor g = random<bf16_t>({n, kHeads, kState}, DType::kBF16, -2, 0, 4);
  Tensor beta = random<bf16_t>({n, kHeads}, DType::kBF16, 0, 1, 5);

  /// `state`: [slots, heads, V, K], of which sequence i begins and ends in row i.
  Tensor run(int64_t from, int64_t to, const Tensor& ends, const Tensor& state, const Tensor* after = nullptr,
             const Tensor* checkpoints = nullptr) const {
    KdaRecurrence a{.q = tokens(q, from, to),
                    .k = tokens(k, from, to),
                    .v = tokens(v, from, to),
                    .g = tokens(g, from, to),
                    .beta = tokens(beta, from, to),
                    .cu_seqlens = ends};
    a.state = state;
    if (after) a.after_indices = *after, a.after_states = *checkpoints;
    return kda_recurrence(a);
  }
};
Tensor one_state() { return zeros({1, kHeads, kDim, kState}); }

TEST(KdaChunks, NothingOfATokenEntersEarlierResults) {
  for (const float value : {kNaN, kInfinity})
    for (const int64_t token : {0, 21, 35}) {
      Delta d{40};
      const Tensor ends = indices({0, 40}), before = d.run(0, 40, ends, one_state());
      d.v.data_as<bf16_t>()[(token * kHeads + 1) * kDim + 11] = bf16_t(value);
      expect_later_alone(before, d.run(0, 40, ends, one_state()), token, 11, 40);
    }
  Delta d{40};
  const Tensor ends = indices({0, 40}), before = d.run(0, 40, ends, one_state());
  d.k.data_as<bf16_t>()[(21 * kHeads + 1) * kState + 5] = bf16_t(kNaN);
  const Tensor after = d.run(0, 40, ends, one_state());
  EXPECT_TRUE(same_bytes(tokens(after, 0, 21), tokens(before, 0, 21)));
  EXPECT_TRUE(std::isnan(result(after, 21, 1, 0)) && !std::isnan(result(after, 21, 0, 0)));
}
/// Short sequences have another kernel: neither depends on what else is in the call.
TEST(KdaChunks, ACutAfter16TokensAndOtherSequencesChangeNoBit) {
  const Delta d{89};
  const Tensor together = zeros({3, kHeads, kDim, kState});
  const Tensor all = d.run(0, 89, indices({0, 80, 83, 89}), together);
  Tensor state = one_state();
  const Tensor head = d.run(0, 32, indices({0, 32}), state), tail = d.run(32, 80, indices({0, 48}), state);
  EXPECT_TRUE(same_bytes(tokens(all, 0, 32), head));
  EXPECT_TRUE(same_bytes(tokens(all, 32, 80), tail));
  EXPECT_TRUE(same_bytes(together.view().slice(0, 0, 1), state));
  Tensor short_state = one_state();
  EXPECT_TRUE(same_bytes(tokens(all, 80, 83), d.run(80, 83, indices({0, 3}), short_state)));
  EXPECT_TRUE(same_bytes(together.view().slice(0, 1, 2), short_state));
}
TEST(KdaChunks, ACheckpointIsTheStateOfThePrefix) {
  const Delta d{50};
  Tensor after = Tensor::empty({50}, DType::kI32, kEmulator);
  std::fill(after.data_as<int32_t>(), after.data_as<int32_t>() + 50, -7);  // -1 is the pattern of new memory
  after.data_as<int32_t>()[31] = 1;
  const Tensor checkpoints = zeros({2, kHeads, kDim, kState}), state = one_state(), whole = one_state();
  const Tensor out = d.run(0, 50, indices({0, 50}), state, &after, &checkpoints);
  EXPECT_TRUE(same_bytes(out, d.run(0, 50, indices({0, 50}), whole)));
  EXPECT_TRUE(same_bytes(state, whole));
  const Tensor prefix = one_state();
  d.run(0, 32, indices({0, 32}), prefix);
  EXPECT_TRUE(same_bytes(checkpoints.view().slice(0, 1, 2), prefix));
  EXPECT_EQ(checkpoints.data_as<float>()[0], 0.0f);
}

}  // namespace
}  // namespace flashinfer
