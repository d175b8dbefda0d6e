// SPDX-License-Identifier: Apache-2.0
#include "flashinfer/comm/launch.h"

#include <unistd.h>

#include <charconv>
#include <cstdlib>
#include <initializer_list>

#include "flashinfer/core/check.h"

namespace flashinfer::comm {
namespace {

struct Launcher {
  const char *name, *rank, *size, *local_size;
};
constexpr Launcher kLaunchers[] = {
    {"mpirun", "OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE", "OMPI_COMM_WORLD_LOCAL_SIZE"},
    {"mpiexec", "PMI_RANK", "PMI_SIZE", "MPI_LOCALNRANKS"},
    {"srun", "SLURM_PROCID", "SLURM_STEP_NUM_TASKS", "SLURM_STEP_TASKS_PER_NODE"},
    {"torchrun", "RANK", "WORLD_SIZE", "LOCAL_WORLD_SIZE"},
};

/// Not env::current(), which keeps what it read first: a program that forks its ranks sets these in each.
std::string text(const char* name) {
  const char* value = std::getenv(name);
  return value ? value : "";
}
int number(const char* name) {
  const std::string t = text(name);
  int n = -1;
  const auto r = std::from_chars(t.data(), t.data() + t.size(), n);
  FI_CHECK(r.ec == std::errc() && r.ptr == t.data() + t.size() && n >= 0, ValueError, name, " is '", t,
           "', but must be a number");
  return n;
}
/// The values of all these variables; empty when one is missing.
std::string all_of(std::initializer_list<const char*> names) {
  std::string out;
  for (const char* name : names) {
    const std::string t = text(name);
    if (t.empty()) return {};
    out += (out.empty() ? "" : ".") + t;
  }
  return out;
}
/// The job's number, else the process that started the ranks.
std::string job() {
  for (const std::string& j : {all_of({"PMIX_NAMESPACE"}), all_of({"OMPI_MCA_ess_base_jobid"}),
                               all_of({"SLURM_JOB_ID", "SLURM_STEP_ID"}), all_of({"MASTER_ADDR", "MASTER_PORT"})})
    if (!j.empty()) return j;
  return str("of-", getppid());
}

}  // namespace

Launch launched() {
  for (const Launcher& l : kLaunchers) {
    if (text(l.rank).empty() || text(l.size).empty()) continue;
    const int rank = number(l.rank), size = number(l.size);
    FI_CHECK(rank < size, ValueError, l.rank, " is ", rank, ", but ", l.size, " is ", size);
    if (size < 2) continue;
    const std::string local = text(l.local_size);
    const bool one_number = !local.empty() && local.find_first_not_of("0123456789") == local.npos;
    return {l.name, rank, size, one_number ? number(l.local_size) : size, job()};
  }
  return {};
}

}  // namespace flashinfer::comm
