// SPDX-License-Identifier: Apache-2.0
// References of the norms of diffusion transformers: double precision, from the definitions.
#pragma once
#include <algorithm>
#include <cmath>
#include <vector>

#include "flashinfer/ops/common/reference.h"
#include "flashinfer/ops/norm/diffusion.h"

namespace flashinfer::ref {

inline double bias_at(const std::optional<TensorView>& t, int64_t i) {
  return t ? static_cast<double>(t->data_as<float>()[i]) : 0.0;
}

template <class B>
void dit_norm(const B& a) {
  const int64_t d = a.input.size(2);
  const double factor = a.input_global_scaling_factor ? load_element(*a.input_global_scaling_factor, 0) : 1.0;
  for_each_row(a.input, [&](const Index& row) {
    std::vector<double> x(static_cast<size_t>(d));
    double mean = 0, var = 0;
    for (int64_t i = 0; i < d; ++i) {
      double v = get(a.input, row, i) * factor;
      if constexpr (requires { a.gate; }) v *= get(a.gate, row, i) + bias_at(a.gate_bias, i);
      if constexpr (std::is_same_v<B, DitScaleShift>)
        v += a.residual ? get(*a.residual, row, i) : 0.0;
      else
        v += get(a.residual, row, i);
      x[static_cast<size_t>(i)] = v, mean += v / static_cast<double>(d);
    }
    for (const double v : x) var += (v - mean) * (v - mean) / static_cast<double>(d);
    const double scale = 1 / std::sqrt(var + a.epsilon);
    for (int64_t i = 0; i < d; ++i) {
      const double v = x[static_cast<size_t>(i)], n = (v - mean) * scale;
      double out;
      if constexpr (requires { a.gamma; })
        out = n * get(a.gamma, i) + get(a.beta, i);
      else
        out =
            n * (1 + get(a.scale, row, i) + bias_at(a.scale_bias, i)) + get(a.shift, row, i) + bias_at(a.shift_bias, i);
      set(*a.residual_out, row, i, v);
      set(*a.norm_out, row, i, out);
    }
  });
}

/// The angle of pair j of a head at row s of a video.
inline double video_angle(const FusedQkRmsNormRope& a, int64_t s, int64_t j) {
  const int64_t frame = a.num_frame_channels / 2, height = a.num_height_channels / 2;
  int64_t place = s / (a.pph * a.ppw), first = 0, channels = a.num_frame_channels;
  if (j >= frame + height)
    place = s % a.ppw, first = frame + height, channels = a.num_width_channels;
  else if (j >= frame)
    place = s / a.ppw % a.pph, first = frame, channels = a.num_height_channels;
  return static_cast<double>(place) *
         std::pow(a.base, -2.0 * static_cast<double>(j - first) / static_cast<double>(channels));
}

inline void qk_norm_rope(const FusedQkRmsNormRope& a) {
  const int64_t dim = a.head_dim, half = dim / 2, video = a.ppf * a.pph * a.ppw;
  const TensorView* outs[] = {&*a.q_out, &*a.k_out, &*a.v_out};
  const TensorView* weights[] = {&a.q_weight, &a.k_weight};
  const int64_t heads[] = {a.num_heads_q, a.num_heads_k, a.num_heads_v};
  int64_t r = 0;
  for_each_row(a.qkv, [&](const Index& row) {
    const int64_t s = r++ % video;
    int64_t first = 0;
    for (size_t part = 0; part < 3; first += heads[part++] * dim) {
      const int64_t width = heads[part] * dim;
      std::vector<double> x;
      double squares = 0;
      for (int64_t i = 0; i < width; ++i) {
        x.push_back(get(a.qkv, row, first + i));
        squares += x.back() * x.back();
      }
      if (part < 2 && a.is_qk_norm)
        for (int64_t i = 0; i < width; ++i)
          x[static_cast<size_t>(i)] *= get(*weights[part], i) / std::sqrt(squares / static_cast<double>(width) + a.eps);
      for (int64_t h = 0; h < heads[part]; ++h)
        for (int64_t i = 0; i < dim; ++i) {
          double y = x[static_cast<size_t>(h * dim + i)];
          if (part < 2) {
            const int64_t j = a.interleave ? i / 2 : i % half, low = a.interleave ? 2 * j : j,
                          high = a.interleave ? 2 * j + 1 : j + half;
            const double t = video_angle(a, s, j), u = x[static_cast<size_t>(h * dim + low)],
                         v = x[static_cast<size_t>(h * dim + high)];
            y = i == low ? u * std::cos(t) - v * std::sin(t) : u * std::sin(t) + v * std::cos(t);
          }
          if (a.output_fp8) y = std::clamp(y * (part < 2 ? a.output_quant_scale : a.v_quant_scale), -448.0, 448.0);
          const TensorView& to = *outs[part];
          if (a.qkv.rank() == 3)
            put(to, {row[0], row[1], h, i}, y);
          else
            put(to, {row[0], h, i}, y);
        }
    }
  });
}

}  // namespace flashinfer::ref
