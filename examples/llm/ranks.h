// SPDX-License-Identifier: Apache-2.0
// The processes that compute one model together: forked here, or started by mpirun, srun or torchrun.
#pragma once
#include <sys/types.h>

#include <string>
#include <vector>

namespace llm {

struct RankOptions {
  int ranks = 0;              // 0: as many as were started, else 1
  int threads = 0;            // of each rank; 0: FLASHINFER_NUM_THREADS, else the cores divided by the ranks
  std::string bind = "none";  // or cores, nodes
  std::string group;          // name of the ranks' group; empty: made of the job's
};

/// A process's place among the ranks, all on one machine.
struct Place {
  int rank = 0, size = 1;
  bool launched = false;       // by another program, which started all ranks
  std::string group;           // the same on all ranks
  std::vector<pid_t> started;  // processes that this one has forked: ranks 1, 2, ...
  bool is_alone() const { return size == 1; }
};

/// The place that the variables of mpirun, srun or torchrun give this process; UserError: another number of ranks is
/// wanted, or they are on several machines.
Place launched_place(const RankOptions& options);
/// Forks the ranks that no launcher has started; returns in each of them. Called before the first thread starts. What
/// ranks other than 0 print on stdout is dropped.
void start_ranks(Place* place);
/// Binds this rank to its cores; returns its number of threads, 0: as the library chooses. UserError: fewer cores than
/// ranks.
int bind_rank(const RankOptions& options, const Place& place);
/// Waits for the forked ranks; with `failed` it ends them. False: one of them failed.
bool end_ranks(const Place& place, bool failed);

}  // namespace llm
