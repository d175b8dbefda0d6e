// SPDX-License-Identifier: Apache-2.0
// Norms of diffusion transformers (video models), fused with what surrounds them. Everything in f32 until the last
// rounding. ValueError: inconsistent ranks, extents or dtypes, a negative or NaN eps. Any d; no rows is a no-op.
// use_nvfp4 or use_mxfp8 (not both): norm_out is rounded to input's dtype (f16 or bf16) and then quantised as
// nvfp4_quantize with global_scaling_factor, or mxfp8_quantize: codes packed into i32, the first lowest, [b, n, d / 8]
// or [b, n, d / 4], d a multiple of 16 or 32. Scale factors are in tiles of 128x4 over b * n rows and go to sf_out,
// where it is given: contiguous, any shape of round_up(b * n, 128) * round_up(d / 16 or 32, 4) bytes.
#pragma once
#include <optional>
#include <tuple>
#include <utility>

#include "flashinfer/op/value.h"

#pragma GCC visibility push(default)

namespace flashinfer {

/// residual_out = residual + input * (gate + gate_bias);
/// norm_out = (residual_out - mean) / sqrt(var + eps) * gamma + beta, of the sum before it is rounded.
/// gate may have any strides of rows (a chunk of a modulation tensor). Returns (residual_out, norm_out).
struct DitGateGammaBeta {
  TensorView input;                       // [b, n, d] bf16|f16|f32
  TensorView residual;                    // as input
  TensorView gate;                        // as input
  TensorView gamma, beta;                 // [d] f32
  std::optional<TensorView> gate_bias{};  // [d] or [1, d] f32
  double epsilon = 1e-6;
  bool use_nvfp4 = false, use_mxfp8 = false;
  std::optional<TensorView> global_scaling_factor{};        // [1] f32, required for NVFP4: 448 * 6 / amax(norm_out)
  std::optional<TensorView> input_global_scaling_factor{};  // [1] f32: factor of input
  std::optional<TensorView> residual_out{};                 // as input; may be exactly `residual` or `input`
  std::optional<TensorView> norm_out{};                     // as input, quantised: i32
  std::optional<TensorView> sf_out{};                       // u8, e4m3 or i32: of quantised outputs
};
std::pair<Tensor, Tensor> fused_dit_gate_residual_layernorm_gamma_beta(const DitGateGammaBeta& args);

/// The same with norm_out = normalised * (1 + scale + scale_bias) + shift + shift_bias.
struct DitGateScaleShift {
  TensorView input, residual, gate, scale, shift;  // [b, n, d]
  std::optional<TensorView> gate_bias{}, scale_bias{}, shift_bias{};
  double epsilon = 1e-6;
  bool use_nvfp4 = false, use_mxfp8 = false;
  std::optional<TensorView> global_scaling_factor{}, input_global_scaling_factor{};
  std::optional<TensorView> residual_out{}, norm_out{}, sf_out{};
};
std::pair<Tensor, Tensor> fused_dit_gate_residual_layernorm_scale_shift(const DitGateScaleShift& args);

/// The same with residual_out = residual + input, or input where residual is absent.
struct DitScaleShift {
  TensorView input, scale, shift;  // [b, n, d]
  std::optional<TensorView> residual{};
  std::optional<TensorView> scale_bias{}, shift_bias{};
  double epsilon = 1e-6;
  bool use_nvfp4 = false, use_mxfp8 = false;
  std::optional<TensorView> global_scaling_factor{}, input_global_scaling_factor{};
  std::optional<TensorView> residual_out{}, norm_out{}, sf_out{};
};
std::pair<Tensor, Tensor> fused_dit_residual_layernorm_scale_shift(const DitScaleShift& args);

/// Q, K and V of a row of qkv: RMSNorm of all heads of Q together (and of K), then a rotation by the row's place in a
/// video of ppf frames of pph * ppw patches. Row s of a video is patch (s / (pph * ppw), s / ppw % pph, s % ppw). Pair
/// j of a head has the angle place * base^(-2 i / c), where the first num_frame_channels / 2 pairs belong to the frame
/// (c = num_frame_channels, i = j), the next to the height and the last to the width (i from the part's first pair).
/// Pairs are (2j, 2j + 1), or (j, j + head_dim / 2) without `interleave`. With output_fp8 results are e4m3 of Q and K
/// times output_quant_scale and of V times v_quant_scale, saturated. Returns (q, k, v).
struct FusedQkRmsNormRope {
  TensorView qkv;                 // [b, ppf * pph * ppw, (Hq + Hk + Hv) * D] or [rows, ...] bf16|f16|f32
  TensorView q_weight, k_weight;  // [Hq * D], [Hk * D] as qkv
  int64_t ppf = 0, pph = 0, ppw = 0;
  int64_t num_frame_channels = 0, num_height_channels = 0, num_width_channels = 0;  // even, head_dim together
  int64_t num_heads_q = 0, num_heads_k = 0, num_heads_v = 0, head_dim = 0;
  double eps = 1e-6;
  double base = 10000.0;
  bool interleave = true;
  double factor = 1.0, low = 0.0, high = 0.0;  // YARN: factors other than 1 are unsupported
  double attention_factor = 1.0;
  bool is_qk_norm = true;  // false: rotate only
  bool output_fp8 = false;
  double output_quant_scale = 1.0, v_quant_scale = 1.0;
  std::optional<TensorView> q_out{}, k_out{}, v_out{};  // [b, n, H, D] or [rows, H, D]; qkv's dtype or e4m3
};
std::tuple<Tensor, Tensor, Tensor> fused_qk_rmsnorm_rope(const FusedQkRmsNormRope& args);

}  // namespace flashinfer

#pragma GCC visibility pop
