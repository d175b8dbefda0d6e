// SPDX-License-Identifier: Apache-2.0
// What several ops of the family check, and what those need that run other ops.
#pragma once
#include <algorithm>
#include <initializer_list>
#include <string>

#include "flashinfer/op/call.h"

namespace flashinfer::ops::linear_attention {

inline std::string shape_text(std::initializer_list<int64_t> shape) {
  std::string s = "[";
  for (int64_t n : shape) s += (s.size() > 1 ? ", " : "") + std::to_string(n);
  return s + "]";
}
/// ValueError unless `t` has this shape.
inline void check_shape(const char* name, const TensorView& t, std::initializer_list<int64_t> shape) {
  FI_CHECK(std::ranges::equal(t.shape(), shape), ValueError, name, " is ", to_string(t), ", but must be ",
           shape_text(shape));
}
/// Whether this CPU's bf16 dot instruction does twice the products of an f32 FMA in the same time: with AVX512_BF16 of
/// AMD (Zen 4 and 5). Intel's of Sapphire Rapids takes four times as long as an FMA.
inline bool fast_bf16_dots() {
#if defined(__x86_64__)
  return __builtin_cpu_supports("avx512bf16") && __builtin_cpu_is("amd");
#else
  return false;
#endif
}
/// Empty, or why `op` would not run on the CPU's kernels; looks these up.
inline std::string why_not(const op::Op& op, const void* block) {
  const op::Selection s = op::explain(op, block);
  if (s.candidate && s.candidate->backend == op::Backend::kCpu) return {};
  return s.rejections.empty() ? str(op.name, " has no kernel") : s.rejections.front().why;
}

}  // namespace flashinfer::ops::linear_attention
