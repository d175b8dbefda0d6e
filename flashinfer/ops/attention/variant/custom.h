// SPDX-License-Identifier: Apache-2.0
// Custom attention variants: a C++ struct, as text, with which the attention kernels are JIT-compiled. Its interface is
// described in attention/kernels/variant.h.
//
//   const AttentionVariant sigmoid{
//       .dtype_q = DType::kBF16, .dtype_kv = DType::kBF16, .dtype_o = DType::kBF16, .head_dim_qk = 128,
//       .head_dim_vo = 128, .additional_scalar_names = {"sigmoid_bias"}, .additional_scalar_dtypes = {"float"},
//       .variant_name = "Sigmoid", .variant_decl = kSource};
//   single_prefill_with_kv_cache_with_jit_module(
//       {.jit_module = sigmoid.value(), .q = q, .k = k, .v = v, .args = {0.5}});
//   BatchDecodeWithPagedKVCacheWrapper decode({.jit_args = sigmoid.value()});
//
// A recording contains the source, and a replay compiles it only with FLASHINFER_ALLOW_RECORDED_SOURCE=1.
#pragma once
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "flashinfer/op/call.h"

#pragma GCC visibility push(default)

namespace flashinfer {

struct AttentionVariant {
  std::string uri = "custom";  // a name for logs
  DType dtype_q = DType::kF16, dtype_kv = DType::kF16, dtype_o = DType::kF16, idtype = DType::kI32;
  int64_t head_dim_qk = 0, head_dim_vo = 0;
  /// Members of `params`: tensors as `const T*` to the first element of a contiguous tensor, then scalars. Types are C
  /// names ("float", "half", "nv_bfloat16", "uint8_t", "int32_t", "int64_t", "double", "bool"). A tensor whose name
  /// starts with `maybe` may be None. Names that the library fills itself need no argument: maybe_custom_mask,
  /// maybe_mask_indptr, maybe_alibi_slopes, maybe_prefix_len_ptr, maybe_token_pos_in_items_ptr; logits_soft_cap,
  /// sm_scale, token_pos_in_items_len.
  std::vector<std::string> additional_tensor_names{}, additional_tensor_dtypes{};
  std::vector<std::string> additional_scalar_names{}, additional_scalar_dtypes{};
  std::string variant_name{}, variant_decl{};

  /// The form used in calls, logs and recordings: a list of the members in this order.
  op::Value value() const;
};

/// One request with a custom variant. `jit_module`: AttentionVariant::value(). `args`: its additional tensors, then
/// scalars, in declared order (a list); the variant itself handles NVFP4 caches, sinks and position modes.
struct SingleDecodeWithJitModule {
  op::Value jit_module{};
  TensorView q;  // [Hq, Dqk], dtype_q
  TensorView k;  // NHD [kv_len, Hkv, Dqk], HND [Hkv, kv_len, Dqk], dtype_kv
  TensorView v;  // as k, [.., Dvo]
  std::string kv_layout = "NHD";
  int64_t window_left = -1;
  bool return_lse = false;
  op::Value args{};
  std::optional<TensorView> out{}, lse{};  // memory for the results: dtype_o [Hq, Dvo], f32 [Hq]
};
op::Results single_decode_with_kv_cache_with_jit_module(const SingleDecodeWithJitModule& args);

struct SinglePrefillWithJitModule {
  op::Value jit_module{};
  TensorView q;  // [qo_len, Hq, Dqk], dtype_q
  TensorView k;  // NHD [kv_len, Hkv, Dqk], HND [Hkv, kv_len, Dqk], dtype_kv
  TensorView v;  // as k, [.., Dvo]
  std::string kv_layout = "NHD";
  int64_t mask_mode = 0;  // 0 all keys, 1 causal, 2 and 3 the variant's LogitsMask
  int64_t window_left = -1;
  bool return_lse = false;
  op::Value args{};
  std::optional<TensorView> out{}, lse{};
};
op::Results single_prefill_with_kv_cache_with_jit_module(const SinglePrefillWithJitModule& args);

/// The text of `path` as a variant_decl. RuntimeError when it cannot be read. Its includes must be absolute or
/// "flashinfer/...".
std::string variant_decl_from_header(const std::string& path);

}  // namespace flashinfer

#pragma GCC visibility pop
