// SPDX-License-Identifier: Apache-2.0
// Facts about the process and the machine, for recordings and the banner.
#pragma once
#include <string>
#include <vector>

#pragma GCC visibility push(default)

namespace flashinfer::record {

const std::string& host_name();
const std::string& cpu_model();
const std::string& os_name();  // "Linux 6.1.0 x86_64"
std::string rank();            // RANK, OMPI_COMM_WORLD_RANK or SLURM_PROCID; empty: none

struct Gpu {
  std::string name;
  int major = 0, minor = 0;
};
/// CUDA versions as the driver reports them; `driver` is empty without one.
struct Cuda {
  std::string driver;  // "13.0"
  std::vector<Gpu> gpus;
};
const Cuda& cuda();

/// Names and versions passed to record::add_version, in order of first use.
std::vector<std::pair<std::string, std::string>> other_versions();

/// The system-info banner with its rulers and the empty line after it.
std::string banner();
/// "FlashInfer 0.1.0 (commit 01234567)\n".
std::string version_line();

}  // namespace flashinfer::record

#pragma GCC visibility pop
