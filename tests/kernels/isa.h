// SPDX-License-Identifier: Apache-2.0
// Which of the kernels' instruction sets this machine can run.
#pragma once

namespace flashinfer::test {

enum class Isa { kV3, kV4, kBf16 };

inline bool has_isa(Isa isa) {
#if defined(__x86_64__)
  __builtin_cpu_init();
  switch (isa) {
    case Isa::kV3: return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma");
    case Isa::kV4:
      return __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
             __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl");
    case Isa::kBf16: return has_isa(Isa::kV4) && __builtin_cpu_supports("avx512bf16");
  }
#endif
  return false;
}

}  // namespace flashinfer::test
