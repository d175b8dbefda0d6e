// SPDX-License-Identifier: Apache-2.0
// Tests once per instruction set of the kernels; what this machine cannot run is skipped.
#pragma once
#include <gtest/gtest.h>

#include <string>
#include <string_view>

#include "flashinfer/jit/toolchain.h"

namespace flashinfer::test {

/// Whether this machine runs what tests.cmake compiles as "portable", "v3", "v4", "bf16" or "amx".
inline bool has_isa(std::string_view isa) {
  if (isa == "portable") return true;
#if defined(__x86_64__)
  __builtin_cpu_init();
  const bool v4 = __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
                  __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl");
  if (isa == "v3") return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma");
  if (isa == "v4") return v4;
  if (isa == "bf16") return v4 && __builtin_cpu_supports("avx512bf16");
  if (isa == "amx") return jit::tiles_permitted();
#endif
  return false;
}

/// The parameter is a table of functions of one instruction set.
template <class Entry>
class IsaTest : public testing::TestWithParam<const Entry*> {
 protected:
  void SetUp() override {
    if (const char* isa = this->GetParam()->name; !has_isa(isa)) GTEST_SKIP() << "this CPU cannot run " << isa;
  }
};
template <class Entry>
std::string isa_name(const testing::TestParamInfo<const Entry*>& info) {
  return info.param->name;
}

}  // namespace flashinfer::test
