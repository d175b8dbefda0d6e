// SPDX-License-Identifier: Apache-2.0
// The same kernels three times. Nothing else is compiled with these instructions: no header with inline functions is
// included between the pragmas.
#include <cstdint>

#include "flashinfer/record/stats.h"

#pragma GCC optimize("O3")
// Vectors are passed by reference and inlined, so no calling convention matters.
#pragma GCC diagnostic ignored "-Wpsabi"

namespace flashinfer::record::stats_detail {

namespace portable {
constexpr int kVectorBytes = 16;
#include "flashinfer/record/stats-inl.h"
}  // namespace portable
Kernel portable_kernel(DType t) { return portable::kernel(t); }

#if defined(__x86_64__)
#if defined(__clang__)
#pragma clang attribute push(__attribute__((target("avx2"))), apply_to = function)
#else
#pragma GCC push_options
#pragma GCC target("avx2")
#endif
namespace avx2 {
constexpr int kVectorBytes = 32;
#include "flashinfer/record/stats-inl.h"
}  // namespace avx2
#if defined(__clang__)
#pragma clang attribute pop
#pragma clang attribute push(__attribute__((target("avx512f,avx512bw,avx512dq,avx512vl"))), apply_to = function)
#else
#pragma GCC pop_options
#pragma GCC push_options
#pragma GCC target("avx512f,avx512bw,avx512dq,avx512vl,prefer-vector-width=512")
#endif
namespace avx512 {
constexpr int kVectorBytes = 64;
#include "flashinfer/record/stats-inl.h"
}  // namespace avx512
#if defined(__clang__)
#pragma clang attribute pop
#else
#pragma GCC pop_options
#endif

Kernel avx2_kernel(DType t) { return __builtin_cpu_supports("avx2") ? avx2::kernel(t) : nullptr; }
Kernel avx512_kernel(DType t) {
  const bool have = __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
                    __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl");
  return have ? avx512::kernel(t) : nullptr;
}
#else
Kernel avx2_kernel(DType) { return nullptr; }
Kernel avx512_kernel(DType) { return nullptr; }
#endif

}  // namespace flashinfer::record::stats_detail
