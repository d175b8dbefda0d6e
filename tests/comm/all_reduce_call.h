// SPDX-License-Identifier: Apache-2.0
// Calls of allreduce_fusion with memory for all results, for its tests.
#pragma once
#include <cstring>
#include <optional>
#include <random>
#include <string>
#include <vector>

#include "flashinfer/core/int_math.h"
#include "flashinfer/core/transfer.h"
#include "flashinfer/flashinfer.h"
#include "flashinfer/jit/emulator.h"
#include "flashinfer/kernels/common/scale_layout.h"
#include "flashinfer/ops/common/reference.h"
#include "tests/comm/ranks.h"

namespace flashinfer {

struct Shape {
  int64_t tokens, hidden;
};
inline std::string bytes_of(const TensorView& t) {
  return {static_cast<const char*>(t.data()), static_cast<size_t>(t.numel() * t.item_size())};
}
/// Normal numbers of one seed a rank, some of them more than once; some of the zeros have a sign.
inline Tensor random_tensor(Shape s, DType dtype, unsigned seed) {
  constexpr int64_t kNumbers = 4093;
  const Tensor t = Tensor::empty({s.tokens, s.hidden}, dtype), numbers = Tensor::empty({kNumbers + 1}, dtype);
  std::mt19937 random(seed);
  std::normal_distribution<double> normal;
  for (int64_t i = 0; i < kNumbers; ++i) ref::put(numbers.view(), {i}, normal(random));
  ref::put(numbers.view(), {kNumbers}, -0.0);
  const auto item = static_cast<size_t>(size_of(dtype));
  const char* from = static_cast<const char*>(numbers.data());
  char* to = static_cast<char*>(t.data());
  for (int64_t r = 0, at = 0; r < s.tokens; ++r)
    for (int64_t i = 0; i < s.hidden; ++i, ++at, to += item) {
      const int64_t which = i % 37 == 5 ? kNumbers : (at + at / kNumbers * 29) % kNumbers;
      std::memcpy(to, from + static_cast<size_t>(which) * item, item);
    }
  return t;
}
/// What a rank got, as bytes.
struct Outputs {
  std::string result, residual, norm, codes, scales;
  friend bool operator==(const Outputs&, const Outputs&) = default;
};
struct Call {
  int64_t pattern = 0;
  Shape shape{8, 64};
  DType dtype = DType::kBF16;
  int ranks = 2;
  std::optional<bool> one_shot{};
  bool fp32_acc = false;
  int64_t layout = 0;
  double bias = 0;
};
inline bool has_norm_out(int64_t p) { return p == 1 || p == 4 || p == 5 || p == 9 || p == 11; }
inline bool is_fp4(int64_t p) { return p == 3 || p == 5; }
inline constexpr int64_t kGroup = 32;

/// Memory for everything that the call may write, poisoned, and the call's block over it.
struct Arguments {
  explicit Arguments(const Call& c, const Tensor& in, const Tensor& residual_in, const Tensor& gamma_in,
                     Device device = kCpu)
      : input(to_device(in, device)), residual(to_device(residual_in, device)), gamma(to_device(gamma_in, device)) {
    const auto [t, d] = c.shape;
    output = Tensor::empty({t, d}, c.dtype, device);
    h = Tensor::empty({t, d}, c.dtype, device), norm = Tensor::empty({t, d}, c.dtype, device);
    const bool fp4 = is_fp4(c.pattern);
    codes = Tensor::empty({t, fp4 ? d / 2 : d}, fp4 ? DType::kU8 : DType::kF8E4M3, device);
    if (fp4) scales = Tensor::empty({sf_bytes(static_cast<SfLayout>(c.layout), t, d / 16)}, DType::kU8, device);
    if (c.pattern == 8 || c.pattern == 9) {
      words = Tensor::empty({ceil_div(d / kGroup, 4) * round_up(t, 4)}, DType::kI32, device);
      const int64_t extents[] = {t, ceil_div(d / kGroup, 4)}, strides[] = {1, round_up(t, 4)};
      scale_view = TensorView(words.data(), DType::kI32, extents, strides, device);
    }
    if (c.pattern == 10 || c.pattern == 11) scales = Tensor::empty({t, 1}, DType::kF32, device);
    for (const Tensor& x : {output, h, norm, codes, scales, words})
      if (x.defined()) std::memset(x.data(), 0x7b, static_cast<size_t>(x.view().nbytes()));
    block = {.input = input, .pattern = c.pattern};
    block.use_oneshot = c.one_shot, block.fp32_acc = c.fp32_acc;
    if (c.pattern == 0) {
      block.output = output;
      return;
    }
    block.residual_in = residual, block.rms_gamma = gamma, block.residual_out = h;
    block.rms_eps = 1e-5, block.weight_bias = c.bias;
    if (has_norm_out(c.pattern)) block.norm_out = norm;
    if (c.pattern == 1) return;
    block.quant_out = codes;
    if (c.pattern < 8)
      block.scale_factor = op::ScalarOrTensor(is_fp4(c.pattern) ? 3.0 : 0.25), block.layout_code = c.layout;
    if (words.defined())
      block.scale_out = scale_view, block.block_quant_group_size = kGroup;
    else if (scales.defined())
      block.scale_out = scales;
  }
  Outputs outputs(const Tensor& result) const {
    return {bytes_of(result), bytes_of(h), bytes_of(norm), bytes_of(codes),
            words.defined()    ? bytes_of(words)
            : scales.defined() ? bytes_of(scales)
                               : ""};
  }
  Tensor input, residual, gamma, output, h, norm, codes, scales, words;
  TensorView scale_view{nullptr, DType::kI32, {0}};
  AllReduceFusion block;
};

struct Setting {
  std::vector<Tensor> inputs;
  Tensor residual, gamma;
  explicit Setting(const Call& c) {
    for (int r = 0; r < c.ranks; ++r) inputs.push_back(random_tensor(c.shape, c.dtype, 100 + static_cast<unsigned>(r)));
    residual = random_tensor(c.shape, c.dtype, 7);
    gamma = random_tensor({1, c.shape.hidden}, c.dtype, 8);
  }
  Tensor gamma_row() const { return Tensor(gamma.view().select(0, 0), gamma.owner()); }
};

/// The call on all ranks, each a thread; checks that all got the same bytes and returns those. seed: of the emulator.
inline Outputs run(const Call& c, const Setting& s, Device device = kCpu, uint64_t seed = 0,
                   const std::string& backend = "auto") {
  const std::string name = fresh_name();
  std::vector<Outputs> outputs(static_cast<size_t>(c.ranks));
  const auto outcomes = run_threads(c.ranks, [&](int r) {
    const jit::Emulation emulation(seed);
    AllReduceFusionWorkspace workspace({.group = name,
                                        .rank = r,
                                        .world_size = c.ranks,
                                        .max_token_num = c.shape.tokens,
                                        .hidden_dim = c.shape.hidden,
                                        .dtype = c.dtype,
                                        .backend = backend,
                                        .device = to_string(device)});
    Arguments a(c, s.inputs[static_cast<size_t>(r)], s.residual, s.gamma_row(), device);
    a.block.workspace = workspace;
    for (int i = 0; i < 3; ++i) outputs[static_cast<size_t>(r)] = a.outputs(allreduce_fusion(a.block));
  });
  for (size_t r = 0; r < outcomes.size(); ++r) {
    EXPECT_EQ(outcomes[r], "") << "rank " << r;
    EXPECT_TRUE(outputs[r] == outputs[0]) << "rank " << r;
  }
  return outputs[0];
}

}  // namespace flashinfer
