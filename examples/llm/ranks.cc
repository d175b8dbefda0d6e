// SPDX-License-Identifier: Apache-2.0
#include "ranks.h"

#include <fcntl.h>
#include <sched.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <thread>

#include <flashinfer/comm/launch.h>
#include <flashinfer/core/thread_pool.h>

#include "gguf.h"

namespace llm {
namespace {

using Cores = std::vector<int>;

Cores allowed_cores() {
  cpu_set_t set;
  CPU_ZERO(&set);
  Cores cores;
  if (sched_getaffinity(0, sizeof set, &set) == 0)
    for (int i = 0; i < CPU_SETSIZE; ++i)
      if (CPU_ISSET(i, &set)) cores.push_back(i);
  return cores;
}

/// The allowed cores of each NUMA node that has some.
std::vector<Cores> nodes_of(const Cores& allowed) {
  std::vector<Cores> nodes;
  for (int node = 0;; ++node) {
    std::ifstream in("/sys/devices/system/node/node" + std::to_string(node) + "/cpulist");
    if (!in) break;
    Cores cores;
    for (std::string range; std::getline(in, range, ',');) {  // "0-3"
      int first = 0, last = 0;
      const int n = std::sscanf(range.c_str(), "%d-%d", &first, &last);
      if (n < 1) continue;
      for (int c = first; c <= (n == 2 ? last : first); ++c)
        if (std::find(allowed.begin(), allowed.end(), c) != allowed.end()) cores.push_back(c);
    }
    if (!cores.empty()) nodes.push_back(std::move(cores));
  }
  return nodes.empty() ? std::vector<Cores>{allowed} : nodes;
}

void bind_to(const Cores& cores) {
  cpu_set_t set;
  CPU_ZERO(&set);
  for (const int c : cores) CPU_SET(c, &set);
  if (sched_setaffinity(0, sizeof set, &set) != 0)
    throw UserError(std::string("--bind: the cores cannot be set: ") + std::strerror(errno));
}

/// Ends this process when a rank that it has forked fails and the ranks' group does not say so: before they are
/// connected, rank 0 would wait for it until the time limit.
void watch(const Place& place) {
  for (size_t i = 0; i < place.started.size(); ++i)
    std::thread([pid = place.started[i], rank = i + 1, all = place.started] {
      siginfo_t info{};
      if (::waitid(P_PID, static_cast<id_t>(pid), &info, WEXITED | WNOWAIT) != 0) return;
      if (info.si_code == CLD_EXITED && info.si_status == 0) return;
      std::this_thread::sleep_for(std::chrono::seconds(2));
      std::fprintf(stderr, "llm: rank %zu (process %d) has ended\n", rank, static_cast<int>(pid));
      for (const pid_t p : all) ::kill(p, SIGTERM);
      ::_exit(1);
    }).detach();
}

}  // namespace

Place launched_place(const RankOptions& options) {
  const flashinfer::comm::Launch launch = flashinfer::comm::launched();
  const bool several = launch.size > 1;
  Place place{.rank = launch.rank, .size = launch.size, .launched = several};
  if (several) {
    const std::string started = launch.by + " started " + std::to_string(launch.size) + " ranks";
    if (options.ranks != 0 && options.ranks != launch.size)
      throw UserError("--tensor-parallel " + std::to_string(options.ranks) + ", but " + started);
    if (launch.local_size != launch.size)
      throw UserError(started + ", of which " + std::to_string(launch.local_size) +
                      " are on this machine; ranks on several machines are not supported");
  } else {
    place.size = std::max(1, options.ranks);
  }
  place.group = !options.group.empty() ? options.group
                : several              ? "llm-" + launch.job
                                       : "llm-" + std::to_string(::getpid());
  return place;
}

void start_ranks(Place* place) {
  const pid_t parent = ::getpid();
  std::fflush(nullptr);  // or each rank prints what is buffered
  for (int r = 1; r < place->size && !place->launched; ++r) {
    const pid_t child = ::fork();
    if (child < 0) {
      end_ranks(*place, true);
      throw UserError("rank " + std::to_string(r) + " cannot be started: " + std::strerror(errno));
    }
    if (child > 0) {
      place->started.push_back(child);
      continue;
    }
    ::prctl(PR_SET_PDEATHSIG, SIGTERM);
    if (::getppid() != parent) ::_exit(1);  // it ended before it could be watched
    place->rank = r;
    place->started.clear();
    break;
  }
  if (place->is_alone()) return;
  ::setenv("RANK", std::to_string(place->rank).c_str(), 1);  // logs and recordings name it
  ::setenv("WORLD_SIZE", std::to_string(place->size).c_str(), 1);
  if (place->rank == 0) return watch(*place);
  const int nowhere = ::open("/dev/null", O_WRONLY | O_CLOEXEC);
  if (nowhere >= 0) ::dup2(nowhere, STDOUT_FILENO), ::close(nowhere);
}

int bind_rank(const RankOptions& options, const Place& place) {
  Cores cores = allowed_cores();
  const auto online = static_cast<size_t>(::sysconf(_SC_NPROCESSORS_ONLN));
  int sharing = place.size;  // ranks that have these cores
  if (options.bind == "cores") {
    const size_t n = cores.size(), ranks = static_cast<size_t>(place.size), r = static_cast<size_t>(place.rank);
    if (n < ranks)
      throw UserError("--bind cores: " + std::to_string(ranks) + " ranks, but this process may use " +
                      std::to_string(n) + " of " + std::to_string(online) + " cores" +
                      (place.launched && n < online ? " (mpirun binds ranks unless told --bind-to none)" : ""));
    cores = Cores(cores.begin() + static_cast<std::ptrdiff_t>(n * r / ranks),
                  cores.begin() + static_cast<std::ptrdiff_t>(n * (r + 1) / ranks));
    bind_to(cores), sharing = 1;
  } else if (options.bind == "nodes") {
    const std::vector<Cores> nodes = nodes_of(cores);
    const auto node = [&](int r) { return static_cast<size_t>(r) * nodes.size() / static_cast<size_t>(place.size); };
    sharing = 0;
    for (int r = 0; r < place.size; ++r) sharing += node(r) == node(place.rank);
    bind_to(cores = nodes[node(place.rank)]);
  } else if (place.launched && cores.size() < online) {
    sharing = 1;  // the launcher has bound the ranks
  }
  if (options.threads > 0 || place.is_alone() || std::getenv("FLASHINFER_NUM_THREADS") != nullptr)
    return options.threads;
  return std::max(1, std::min(static_cast<int>(cores.size()), flashinfer::usable_cpus()) / sharing);
}

bool end_ranks(const Place& place, bool failed) {
  bool all_worked = !failed;
  for (const pid_t p : place.started) {
    if (failed) ::kill(p, SIGTERM);
    int status = 0;
    while (::waitpid(p, &status, 0) < 0 && errno == EINTR) {
    }
    all_worked &= WIFEXITED(status) && WEXITSTATUS(status) == 0;
  }
  return all_worked;
}

}  // namespace llm
