// SPDX-License-Identifier: Apache-2.0
#include <sched.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <fstream>
#include <string>

#include "flashinfer/core/once.h"
#include "flashinfer/core/thread_pool.h"

namespace flashinfer {
namespace {

int affinity_cpus() {
  // Machines with more than 1024 CPUs need a larger mask than cpu_set_t.
  for (int cpus = 1024; cpus <= 1 << 16; cpus *= 2) {
    cpu_set_t* set = CPU_ALLOC(cpus);
    const size_t bytes = CPU_ALLOC_SIZE(cpus);
    const bool ok = sched_getaffinity(0, bytes, set) == 0;
    const int count = ok ? CPU_COUNT_S(bytes, set) : 0;
    CPU_FREE(set);
    if (ok) return std::max(count, 1);
  }
  return 1;
}

/// Number of CPUs allowed by a quota of `quota` per `period` microseconds, rounded up; 0: no limit.
int quota_cpus(double quota, double period) {
  if (quota <= 0 || period <= 0) return 0;
  return std::max(1, static_cast<int>(std::ceil(quota / period)));
}

int smaller_limit(int a, int b) { return a == 0 ? b : b == 0 ? a : std::min(a, b); }

/// The tightest quota of `folder` and the groups above it, up to `root`.
int quota_of(const std::string& root, std::string folder, bool v2) {
  int limit = 0;
  for (;;) {
    const std::string path = root + folder;
    if (v2) {
      std::ifstream in(path + "/cpu.max");
      std::string quota;
      double period = 0;
      if (in >> quota >> period && quota != "max")
        limit = smaller_limit(limit, quota_cpus(std::atof(quota.c_str()), period));
    } else {
      double quota = 0, period = 0;
      if (std::ifstream(path + "/cpu.cfs_quota_us") >> quota && std::ifstream(path + "/cpu.cfs_period_us") >> period)
        limit = smaller_limit(limit, quota_cpus(quota, period));
    }
    const size_t slash = folder.rfind('/');
    if (folder.empty() || slash == std::string::npos) return limit;
    folder.resize(slash);
  }
}

int cgroup_cpus() {
  int limit = 0;
  std::ifstream in("/proc/self/cgroup");  // "0::/user.slice" (v2), "4:cpu,cpuacct:/docker/ab12" (v1)
  for (std::string line; std::getline(in, line);) {
    const size_t a = line.find(':'), b = line.find(':', a + 1);
    if (a == std::string::npos || b == std::string::npos) continue;
    const std::string controllers = "," + line.substr(a + 1, b - a - 1) + ",", folder = line.substr(b + 1);
    if (controllers == ",,") limit = smaller_limit(limit, quota_of("/sys/fs/cgroup", folder, true));
    if (controllers.find(",cpu,") != std::string::npos)
      limit = smaller_limit(limit, quota_of("/sys/fs/cgroup/cpu", folder, false));
  }
  // In a container the folder named there is often the host's and not visible; the container's limits are then at the
  // root of the mount.
  limit = smaller_limit(limit, quota_of("/sys/fs/cgroup", "", true));
  return smaller_limit(limit, quota_of("/sys/fs/cgroup/cpu", "", false));
}

}  // namespace

int cpu_quota() {
  static constinit Once<int> quota;
  return quota.get(cgroup_cpus);
}
int usable_cpus() {
  static constinit Once<int> cpus;
  return cpus.get([] { return smaller_limit(cpu_quota(), affinity_cpus()); });
}

}  // namespace flashinfer
