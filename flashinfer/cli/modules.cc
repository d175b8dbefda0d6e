// SPDX-License-Identifier: Apache-2.0
#include "flashinfer/cli/modules.h"

#include <ctime>

#include "flashinfer/cases/warmup.h"
#include "flashinfer/op/registry.h"

namespace flashinfer::cli {

std::vector<jit::ModuleStatus> all_modules() { return jit::module_statuses(cases::kernels(op::all_ops(), op::kAot)); }

std::string shown_name(const jit::ModuleStatus& m) {
  return m.target == jit::name(jit::selected_target()) || m.target == jit::kModulesFolder
             ? m.text
             : m.text + " [" + m.target + "]";
}

std::string time_text(int64_t unix_seconds) {
  const std::time_t t = unix_seconds;
  std::tm tm{};
  ::localtime_r(&t, &tm);
  char text[32];
  std::strftime(text, sizeof(text), "%Y-%m-%d %H:%M:%S", &tm);
  return text;
}

}  // namespace flashinfer::cli
