// SPDX-License-Identifier: Apache-2.0
#include "flashinfer/cli/machine.h"

#include <fstream>

#include "flashinfer/jit/toolchain.h"

namespace flashinfer::cli {

std::string cpu_model() {
  std::ifstream in("/proc/cpuinfo");
  for (std::string text; std::getline(in, text);)
    if (text.starts_with("model name")) return text.substr(text.find(':') + 2);
  return "unknown";
}

std::string runnable_targets() {
  std::string targets;
  for (const jit::Target t : jit::kTargets)
    if (jit::why_not_runnable(t).empty()) targets += (targets.empty() ? "" : ", ") + std::string(jit::name(t));
  return targets;
}

std::string kernel_compiler() {
  const jit::Toolchain toolchain = jit::host_toolchain();
  return toolchain.why_not.empty() ? toolchain.compiler : toolchain.why_not;
}

}  // namespace flashinfer::cli
