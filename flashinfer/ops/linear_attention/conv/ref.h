// SPDX-License-Identifier: Apache-2.0
// The causal convolution in double precision.
#pragma once
#include <cmath>
#include <vector>

#include "flashinfer/ops/common/reference.h"
#include "flashinfer/ops/linear_attention/conv/form.h"

namespace flashinfer::ref {

template <class Args>
void causal_conv1d(const Args& a) {
  const ops::linear_attention::ConvForm f = ops::linear_attention::conv_form(a, true);
  const int64_t width = f.width, length = f.state.defined() ? f.state.size(2) : 0;
  const auto element = [](const TensorView& t, int64_t row, int64_t c, int64_t token) {
    return row + c * t.stride(1) + token * t.stride(2);
  };
  // The update computes one sequence after the other; the other op all results before it writes a state.
  constexpr bool kInOrder = requires { a.conv_state; };
  const auto inputs = [&](const ConvRow& r, int64_t c) {  // those before the first token, then the tokens
    std::vector<double> all;
    for (int64_t j = 0; j < width - 1; ++j) {
      int64_t from = length - (width - 1) + j;
      if (f.mode == ConvParams::kCircular) from = ((r.at - (width - 1) + j) % length + length) % length;
      if (f.mode == ConvParams::kAccepted) from = r.at + j;
      all.push_back(r.initial && r.slot >= 0 ? at(f.state, {r.slot, c, from}) : 0);
    }
    for (int64_t t = 0; t < r.tokens; ++t) all.push_back(load_element(f.x, element(f.x, r.x, c, t)));
    return all;
  };
  const auto compute = [&](const ConvRow& r, int64_t c) {
    const std::vector<double> all = inputs(r, c);
    for (int64_t t = 0; t < r.tokens; ++t) {
      double y = f.bias.defined() ? get(f.bias, c) : 0;
      for (int64_t k = 0; k < width; ++k) y += at(f.weight, {c, k}) * all[static_cast<size_t>(t + k)];
      if (f.silu) y /= 1 + std::exp(-y);
      store_element(f.out, element(f.out, r.out, c, t), r.skip ? 0 : y);
    }
  };
  const auto store = [&](const ConvRow& r, int64_t c) {
    if (r.slot < 0) return;
    const std::vector<double> all = inputs(r, c);
    std::vector<double> old;
    for (int64_t k = 0; k < length; ++k) old.push_back(r.initial ? at(f.state, {r.slot, c, k}) : 0);
    const double* x = all.data() + width - 1;
    if (f.mode == ConvParams::kCircular) {
      for (int64_t t = 0; t < r.tokens; ++t) put(f.state, {r.slot, c, (r.at + t) % length}, x[t]);
    } else if (f.mode == ConvParams::kAccepted) {
      for (int64_t k = 0; k < width - 2 + r.tokens; ++k) put(f.state, {r.slot, c, k}, all[static_cast<size_t>(k + 1)]);
    } else {
      old.insert(old.end(), x, x + r.tokens);
      for (int64_t k = 0; k < length; ++k)
        put(f.state, {r.slot, c, k}, old[old.size() - static_cast<size_t>(length - k)]);
    }
  };
  for (const ConvRow& r : f.rows)
    for (int64_t c = 0; c < f.channels; ++c) {
      compute(r, c);
      if (kInOrder) store(r, c);
    }
  if (kInOrder) return;
  for (const ConvRow& r : f.rows)
    for (int64_t c = 0; c < f.channels; ++c) store(r, c);
}

}  // namespace flashinfer::ref
