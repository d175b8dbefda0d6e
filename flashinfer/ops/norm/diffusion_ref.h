// SPDX-License-Identifier: Apache-2.0
// References of the norms of diffusion transformers: double precision, from the definitions.
#pragma once
#include <algorithm>
#include <cmath>
#include <cstring>
#include <vector>

#include "flashinfer/ops/common/reference.h"
#include "flashinfer/ops/norm/diffusion.h"
#include "flashinfer/ops/quantization/block/ref.h"

namespace flashinfer::ref {

inline double bias_at(const std::optional<TensorView>& t, int64_t i) {
  return t ? static_cast<double>(t->data_as<float>()[i]) : 0.0;
}

/// The rows of `normed` in norm_out and sf_out.
template <class B>
void quantise_dit(const B& a, const TensorView& normed) {
  const int64_t rows = normed.size(0), d = normed.size(1), block = a.use_nvfp4 ? 16 : 32;
  const Tensor codes = Tensor::empty({rows, a.use_nvfp4 ? d / 2 : d}, DType::kU8);
  const Tensor scales = Tensor::zeros({sf_bytes(SfLayout::k128x4, rows, d / block)}, DType::kU8);
  const float encode = a.use_nvfp4 ? a.global_scaling_factor->template data_as<float>()[0] : 1.0f;
  for (int64_t r = 0; r < rows; ++r)
    quantize_row({block, !a.use_nvfp4, !a.use_nvfp4}, floats_of(normed, {r}), encode, codes.view().select(0, r),
                 scales.view(), SfLayout::k128x4, r);
  int64_t at = 0;
  for_each_row(*a.norm_out, [&](const Index& row) {
    int32_t* to = a.norm_out->template data_as<int32_t>() + offset_of(*a.norm_out, row);
    for (int64_t i = 0; i < a.norm_out->size(2); ++i, at += 4)
      std::memcpy(to + i * a.norm_out->stride(2), codes.data_as<uint8_t>() + at, 4);
  });
  if (a.sf_out) std::memcpy(a.sf_out->data(), scales.data(), static_cast<size_t>(scales.nbytes()));
}

template <class B>
void dit_norm(const B& a) {
  const bool quantised = a.use_nvfp4 || a.use_mxfp8;
  const Tensor rounded = quantised ? Tensor::empty(a.input.shape(), a.input.dtype()) : Tensor();
  const TensorView& norm_out = quantised ? rounded.view() : *a.norm_out;
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
      set(norm_out, row, i, out);
    }
  });
  if (quantised) quantise_dit(a, norm_out.view({a.input.size(0) * a.input.size(1), d}));
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
