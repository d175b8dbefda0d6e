// SPDX-License-Identifier: Apache-2.0
// Registers that ptxas keeps in local memory.
#pragma once
#include <cstdlib>
#include <string>

#include "flashinfer/jit/nvrtc.h"

namespace flashinfer {

/// Whether `log`, of a kernel that did not compile since it spills, is of a persistent kernel of attention that spills
/// two registers at most, as NVRTC before 13.5 makes some of them (docs/cuda.md): "8 bytes spill stores, 16 bytes ...".
inline bool spills_little(const std::string& log) {
  const jit::Nvrtc& n = jit::nvrtc();
  if (n.major > 13 || (n.major == 13 && n.minor >= 5) || log.find("attention_pair") == std::string::npos) return false;
  const size_t at = log.find(" bytes spill stores");
  if (at == std::string::npos) return false;
  return std::atoi(log.c_str() + log.rfind(' ', at - 1) + 1) <= 8;
}

}  // namespace flashinfer
