// SPDX-License-Identifier: Apache-2.0
// Custom attention variants: sigmoid attention, and a bias learned for every head and distance. The structs
// below are text; the library compiles its attention kernels with them at the first call and keeps the result on disk.
#include <flashinfer/flashinfer.h>

#include <cmath>
#include <cstdio>
#include <vector>

using namespace flashinfer;

// The weight of a key is 1 / (1 + e^-(scale q.k + bias)), without a softmax.
constexpr const char* kSigmoid = R"(
struct SigmoidAttention : AttentionVariantBase {
  static constexpr bool use_softmax = false;
  template <class Params>
  __device__ __host__ SigmoidAttention(const Params& params, uint32_t batch_idx, uint8_t*) : AttentionVariantBase(params, batch_idx) {}
  REGISTER_LOGITS_TRANSFORM(params, logits, batch_idx, qo_idx, kv_idx, qo_head_idx, kv_head_idx, {
    return math::ptx_rcp(1.f + math::ptx_exp2(-(logits * params.sm_scale + params.bias) * math::log2e));
  })
};)";

// Softmax attention whose logits get table[head][distance], as T5 does; the table is a tensor of the call.
constexpr const char* kLearnedBias = R"(
struct LearnedBias : AttentionVariantBase {
  template <class Params>
  __device__ __host__ LearnedBias(const Params& params, uint32_t batch_idx, uint8_t*) : AttentionVariantBase(params, batch_idx) {
    sm_scale_log2 = math::log2e;  // the scale is applied below, before the bias
  }
  REGISTER_LOGITS_TRANSFORM(params, logits, batch_idx, qo_idx, kv_idx, qo_head_idx, kv_head_idx, {
    const int position = int(qo_idx + kv_len - qo_len), distance = position - int(kv_idx);
    const int entry = distance < 0 ? 0 : distance < params.table_len ? distance : params.table_len - 1;
    return logits * params.sm_scale + params.table[qo_head_idx * params.table_len + entry];
  })
};)";

int main() try {
  constexpr int64_t kTokens = 3, kKeys = 40, kHeads = 2, kDim = 64;
  const auto filled = [](std::initializer_list<int64_t> shape, int64_t step) {
    Tensor t = Tensor::empty(shape, DType::kF32);
    for (int64_t i = 0; i < t.numel(); ++i) t.data_as<float>()[i] = static_cast<float>(i * step % 61) / 30.0f - 1.0f;
    return t;
  };
  const Tensor q = filled({kTokens, kHeads, kDim}, 7), k = filled({kKeys, kHeads, kDim}, 11),
               v = filled({kKeys, kHeads, kDim}, 13);
  AttentionVariant variant{.dtype_q = DType::kF32,
                           .dtype_kv = DType::kF32,
                           .dtype_o = DType::kF32,
                           .head_dim_qk = kDim,
                           .head_dim_vo = kDim};

  variant.variant_name = "SigmoidAttention", variant.variant_decl = kSigmoid;
  variant.additional_scalar_names = {"bias"}, variant.additional_scalar_dtypes = {"float"};
  const op::Value bias = -std::log(static_cast<double>(kKeys));
  const Tensor sigmoid = single_prefill_with_kv_cache_with_jit_module(
      {.jit_module = variant.value(), .q = q, .k = k, .v = v, .mask_mode = 1, .args = op::ListValue{{bias}}});

  variant.variant_name = "LearnedBias", variant.variant_decl = kLearnedBias;
  variant.additional_tensor_names = {"table"}, variant.additional_tensor_dtypes = {"float"};
  variant.additional_scalar_names = {"table_len"}, variant.additional_scalar_dtypes = {"int32_t"};
  const Tensor zeros = Tensor::zeros({kHeads, 16}, DType::kF32);
  const Tensor biased = single_prefill_with_kv_cache_with_jit_module({.jit_module = variant.value(),
                                                                      .q = q,
                                                                      .k = k,
                                                                      .v = v,
                                                                      .mask_mode = 1,
                                                                      .args = op::ListValue{{zeros, int64_t{16}}}});

  const Tensor plain = single_prefill_with_kv_cache({.q = q, .k = k, .v = v, .causal = true});
  float worst = 0;  // a bias of zeros is plain attention
  for (int64_t i = 0; i < plain.numel(); ++i)
    worst = std::max(worst, std::abs(plain.data_as<float>()[i] - biased.data_as<float>()[i]));
  std::printf("sigmoid out[0][0][0] = %.4f, zero bias against plain attention: %.1e\n", sigmoid.data_as<float>()[0],
              worst);
  return worst < 1e-4f && std::isfinite(sigmoid.data_as<float>()[0]) ? 0 : 1;
} catch (const Error& e) {
  std::fprintf(stderr, "%s\n", e.what());
  return 1;
}
