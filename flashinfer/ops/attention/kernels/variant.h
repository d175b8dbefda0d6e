// SPDX-License-Identifier: Apache-2.0
// Interface of a custom attention variant: a struct, given as source text or a header, that changes logits, masks and
// outputs of the attention kernels. The same source compiles for every device; on the CPU and the emulator the CUDA
// qualifiers mean nothing. Freestanding.
//
//   struct Sigmoid : AttentionVariantBase {
//     static constexpr bool use_softmax = false;
//     template <class Params>
//     __device__ __host__ Sigmoid(const Params& params, uint32_t batch_idx, uint8_t*)
//         : AttentionVariantBase(params, batch_idx) {}
//     REGISTER_LOGITS_TRANSFORM(params, logits, batch_idx, qo_idx, kv_idx, qo_head_idx, kv_head_idx, {
//       return math::ptx_rcp(
//           1.f + math::ptx_exp2(-float(logits * params.sm_scale * math::log2e + params.sigmoid_bias)));
//     })
//   };
//
// `params` has the members of AttentionVariantParams and one for every additional tensor (a pointer) and scalar, by
// name. Hooks, each optional:
//   QueryTransform(params, q), KeyTransform(params, k)     one element; after them products are in f32
//   LogitsTransform(params, logits, batch_idx, qo_idx, kv_idx, qo_head_idx, kv_head_idx)
//                                                          of the dot product; the result times sm_scale_log2 is the
//                                                          exponent of 2, or with use_softmax = false the weight of the
//                                                          value itself
//   LogitsMask(params, batch_idx, qo_idx, kv_idx, qo_head_idx, kv_head_idx)
//                                                          false hides the key; ANDed with the call's own causal flag,
//                                                          window, mask
//   update_m_d(params, kv_tile_idx, qo_head_idx, m, d, scale)
//                                                          once a row (kv_tile_idx 0): m the maximum in exponents of 2,
//                                                          d the denominator relative to it; `scale` multiplies the
//                                                          row's sum of values
//   OutputTransform(params, out, batch_idx, qo_idx, qo_head_idx, m, d, scale)
//                                                          of the sum of weighted values; scale is v_scale. Without it:
//                                                          out * scale / d, and out * scale with use_softmax = false
// qo_idx and kv_idx start at the request's first token and key. The struct is constructed for every tile; it must not
// keep state between calls of its hooks, whose order is unspecified.
#pragma once
#include <math.h>
#include <stdint.h>

#include "flashinfer/ops/attention/kernels/params.h"

#if !defined(__CUDACC__)
#define __device__
#define __host__
#define __forceinline__ inline __attribute__((always_inline))
#endif

#define REGISTER_QUERY_TRANSFORM(params, q, ...)                                 \
  template <class Params, class T>                                               \
  __device__ __forceinline__ T QueryTransform(const Params& params, T q) const { \
    __VA_ARGS__                                                                  \
  }
#define REGISTER_KEY_TRANSFORM(params, k, ...)                                 \
  template <class Params, class T>                                             \
  __device__ __forceinline__ T KeyTransform(const Params& params, T k) const { \
    __VA_ARGS__                                                                \
  }
#define REGISTER_LOGITS_TRANSFORM(params, logits, batch_idx, qo_idx, kv_idx, qo_head_idx, kv_head_idx, ...)         \
  template <class Params, class T>                                                                                  \
  __device__ __forceinline__ T LogitsTransform(const Params& params, T logits, uint32_t batch_idx, uint32_t qo_idx, \
                                               uint32_t kv_idx, uint32_t qo_head_idx, uint32_t kv_head_idx) const { \
    __VA_ARGS__                                                                                                     \
  }
#define REGISTER_LOGITS_MASK(params, batch_idx, qo_idx, kv_idx, qo_head_idx, kv_head_idx, ...)                    \
  template <class Params>                                                                                         \
  __device__ __forceinline__ bool LogitsMask(const Params& params, uint32_t batch_idx, uint32_t qo_idx,           \
                                             uint32_t kv_idx, uint32_t qo_head_idx, uint32_t kv_head_idx) const { \
    __VA_ARGS__                                                                                                   \
  }
#define REGISTER_M_D_UPDATE(params, kv_tile_idx, qo_head_idx, m, d, scale, ...)                                        \
  template <class Params, class T_M>                                                                                   \
  __device__ __forceinline__ void update_m_d(const Params& params, uint32_t kv_tile_idx, uint32_t qo_head_idx, T_M& m, \
                                             float& d, float& scale) const {                                           \
    __VA_ARGS__                                                                                                        \
  }
#define REGISTER_OUTPUT_TRANSFORM(params, output, batch_idx, qo_idx, qo_head_idx, m, d, scale, ...)                 \
  template <class Params, class T, class T_M>                                                                       \
  __device__ __forceinline__ T OutputTransform(const Params& params, T output, uint32_t batch_idx, uint32_t qo_idx, \
                                               uint32_t qo_head_idx, T_M& m, float& d, float scale) const {         \
    __VA_ARGS__                                                                                                     \
  }

namespace flashinfer {

namespace math {
inline constexpr float log2e = 1.44269504088896340736f, loge2 = 0.693147180559945309417f,
                       inf = __builtin_bit_cast(float, 0x7f800000);
#if defined(__CUDACC__)
/// The GPU's instructions: 2^x to 2^-22.5 of its value, log2 x to 2^-22, 1 / x to one unit in the last place;
/// subnormals are 0.
__device__ __forceinline__ float ptx_exp2(float x) {
  float y;
  asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x));
  return y;
}
__device__ __forceinline__ float ptx_log2(float x) {
  float y;
  asm("lg2.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x));
  return y;
}
__device__ __forceinline__ float ptx_rcp(float x) {
  float y;
  asm("rcp.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x));
  return y;
}
#else
/// 2^x to 2 ulp for |x| <= 126, 0 and about 2^127 beyond. Without branches or calls, so that loops over keys vectorise.
__device__ __forceinline__ float ptx_exp2(float x) {
  x = x < -126.0f ? -126.0f : x;
  x = x > 127.0f ? 127.0f : x;
  const float n = (x + 12582912.0f) - 12582912.0f, f = x - n;  // round to nearest even
  float y = 0.00015353360504377633f;
  y = y * f + 0.0013398875016719103f;
  y = y * f + 0.00961843691766262f;
  y = y * f + 0.055503323674201965f;
  y = y * f + 0.24022647738456726f;
  y = y * f + 0.6931471824645996f;
  y = y * f + 1.0f;
  return y * __builtin_bit_cast(float, (static_cast<int32_t>(n) + 127) << 23) * (x > -126.0f ? 1.0f : 0.0f);
}
__device__ __forceinline__ float ptx_log2(float x) { return log2f(x); }
__device__ __forceinline__ float ptx_rcp(float x) { return 1.0f / x; }
#endif
__device__ __forceinline__ float exp(float x) { return ptx_exp2(x * log2e); }
__device__ __forceinline__ float tanh(float x) {
  const float e = ptx_exp2(-2.0f * log2e * (x < 0 ? -x : x));  // in (0, 1]: no cancellation except near 0
  const float u = x * x, near = x + x * u * (-0.33333333f + u * (0.13333333f - 0.05396825f * u));
  const float far = (1.0f - e) / (1.0f + e);
  return u < 0.01f ? near : x < 0 ? -far : far;
}
}  // namespace math

/// The type of `params`, without the variant's own additional members.
struct AttentionVariantParams : AttentionParams {
  float sm_scale;         // includes q_scale and k_scale
  float logits_soft_cap;  // 0: none
  __device__ __host__ explicit AttentionVariantParams(const AttentionParams& p)
      : AttentionParams(p), sm_scale(p.scale), logits_soft_cap(p.soft_cap) {}
  __device__ __host__ uint32_t get_qo_len(uint32_t batch_idx) const {
    return qo_indptr ? static_cast<uint32_t>(qo_indptr[batch_idx + 1] - qo_indptr[batch_idx]) : 1;
  }
  __device__ __host__ uint32_t get_kv_len(uint32_t batch_idx) const { return static_cast<uint32_t>(kv_len[batch_idx]); }
};

struct AttentionVariantBase {
  static constexpr bool use_softmax = true;
  uint32_t qo_len = 0, kv_len = 0, window_left = 0;
  float sm_scale_log2 = 0;  // plain softmax attention; a variant whose logits are already scaled sets it to log2e
  AttentionVariantBase() = default;
  template <class Params>
  __device__ __host__ AttentionVariantBase(const Params& params, uint32_t batch_idx)
      : qo_len(params.get_qo_len(batch_idx)),
        kv_len(params.get_kv_len(batch_idx)),
        window_left(params.window_left >= 0 ? static_cast<uint32_t>(params.window_left) : kv_len),
        sm_scale_log2(params.sm_scale * math::log2e) {}
};

/// The hooks of V, for every kernel.
template <class P, class V>
struct AttentionVariantHooks {
  static constexpr bool kSoftmax = V::use_softmax;
  static constexpr bool kQuery = requires(const V v, const P p) { v.QueryTransform(p, 0.0f); };
  static constexpr bool kKey = requires(const V v, const P p) { v.KeyTransform(p, 0.0f); };
  static constexpr bool kLogits = requires(const V v, const P p) { v.LogitsTransform(p, 0.0f, 0u, 0u, 0u, 0u, 0u); };
  static constexpr bool kMask = requires(const V v, const P p) { v.LogitsMask(p, 0u, 0u, 0u, 0u, 0u); };
  static constexpr bool kUpdate =
      requires(const V v, const P p, float m, float d, float s) { v.update_m_d(p, 0u, 0u, m, d, s); };
  static constexpr bool kOutput =
      requires(const V v, const P p, float m, float d) { v.OutputTransform(p, 0.0f, 0u, 0u, 0u, m, d, 1.0f); };
};

}  // namespace flashinfer
