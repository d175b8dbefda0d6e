// SPDX-License-Identifier: Apache-2.0
// What the program that started this process (mpirun, srun, torchrun) says of the other ranks, by its environment.
#pragma once
#include <string>

#pragma GCC visibility push(default)

namespace flashinfer::comm {

struct Launch {
  std::string by{};        // "mpirun", "mpiexec", "srun", "torchrun"; empty: nothing started several ranks
  int rank = 0, size = 1;  // of this process, and of all
  int local_size = 1;      // ranks on this machine; `size` when the launcher does not say
  std::string job{};       // the same on all ranks, and of no other job of this user on this machine
};
/// Reads OMPI_COMM_WORLD_*, PMI_*, SLURM_* or RANK and WORLD_SIZE; one rank alone counts as none. ValueError: a
/// variable that is no number, or a rank that is not below the size.
Launch launched();

}  // namespace flashinfer::comm

#pragma GCC visibility pop
