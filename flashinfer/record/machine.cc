// SPDX-License-Identifier: Apache-2.0
#include "flashinfer/record/machine.h"

#include <sys/utsname.h>
#include <unistd.h>

#include <cstring>
#include <fstream>
#include <mutex>

#include "flashinfer/core/check.h"
#include "flashinfer/core/cuda/device.h"
#include "flashinfer/core/env.h"
#include "flashinfer/core/once.h"
#include "flashinfer/core/version.h"
#include "flashinfer/record/locks.h"
#include "flashinfer/record/sink.h"

namespace flashinfer::record {
namespace {

Cuda ask_driver() {
  Cuda out;
  const flashinfer::cuda::Driver& d = flashinfer::cuda::driver();
  if (d.version != 0) out.driver = flashinfer::cuda::version_text(d.version);
  for (int i = 0; i < d.devices && d.why_not.empty(); ++i) {
    const flashinfer::cuda::DeviceInfo& info = flashinfer::cuda::device_info(i);
    out.gpus.push_back({info.name, info.major, info.minor});
  }
  return out;
}

struct Versions {
  ForkMutex& mutex = g_versions_mutex;
  std::vector<std::pair<std::string, std::string>> list;
};
Versions& versions() {
  static Versions& v = *new Versions;
  return v;
}

}  // namespace

const std::string& host_name() {
  static constinit Once<std::string> name;
  return name.get([] {
    char text[256] = "";
    ::gethostname(text, sizeof text - 1);
    return std::string(text);
  });
}

const std::string& cpu_model() {
  static constinit Once<std::string> model;
  return model.get([] {
    std::ifstream in("/proc/cpuinfo");
    for (std::string line; std::getline(in, line);)
      if (line.starts_with("model name") && line.find(": ") != line.npos) return line.substr(line.find(": ") + 2);
    return std::string("unknown");
  });
}

const std::string& os_name() {
  static constinit Once<std::string> name;
  return name.get([] {
    utsname u{};
    ::uname(&u);
    return str(u.sysname, " ", u.release, " ", u.machine);
  });
}

std::string rank() {
  for (const char* name : {"RANK", "OMPI_COMM_WORLD_RANK", "SLURM_PROCID"})
    if (const auto v = env::current(name); v.set && !v.value.empty()) return v.value;
  return {};
}

const Cuda& cuda() {
  static constinit Once<Cuda> c;
  return c.get(ask_driver);
}

void add_version(const std::string& name, const std::string& version) {
  auto& v = versions();
  const std::lock_guard lock(v.mutex);
  for (auto& [known, text] : v.list)
    if (known == name) {
      text = version;
      return;
    }
  v.list.emplace_back(name, version);
}

std::vector<std::pair<std::string, std::string>> other_versions() {
  auto& v = versions();
  const std::lock_guard lock(v.mutex);
  return v.list;
}

std::string banner() {
  const Cuda& c = cuda();
  std::string torch = "<unavailable>";
  for (const auto& [name, version] : other_versions())
    if (name == "torch") torch = version;
  std::string s(kDoubleRuler);
  s += str(timestamp_prefix(), "FlashInfer API Logging - System Information\n", kDoubleRuler);
  s += str("FlashInfer version: ", build::version(), "\n");
  s += str("CUDA toolkit version: ", c.driver.empty() ? "<unavailable - CPU-only build?>" : c.driver, "\n");
  s += "cuDNN version: <not available>\n";
  if (c.gpus.empty())
    s += "CUDA: Not available (CPU-only mode)\n";
  else
    s += str("Number of GPUs: ", c.gpus.size(), "\n");
  for (size_t i = 0; i < c.gpus.size(); ++i) {
    const Gpu& g = c.gpus[i];
    s += str("  GPU ", i, ": ", g.name, "\n    Compute capability: ", g.major, ".", g.minor, " (SM",
             g.major * 10 + g.minor, ")\n");
  }
  s += str("PyTorch version: ", torch, "\n", kDoubleRuler, "\n");
  return s;
}

std::string version_line() {
  return str("FlashInfer ", build::version(), " (commit ", std::string(build::commit()).substr(0, 8), ")\n");
}

}  // namespace flashinfer::record
