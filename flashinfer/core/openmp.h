// SPDX-License-Identifier: Apache-2.0
// The OpenMP runtime of the process as an executor. A program that alternates between this library and one that uses
// OpenMP (torch) has two sets of threads on the same cores, and OpenMP's workers spin for milliseconds after each of
// their calls and slow the other library down. With this executor both libraries use the same workers.
#pragma once
#include "flashinfer/core/context.h"

#pragma GCC visibility push(default)

namespace flashinfer {

/// An executor on `threads` threads of the OpenMP runtime that this process has loaded; `run` is null when there is
/// none. As usual in OpenMP, the workers belong to the calling thread. In a forked child, which has no OpenMP workers,
/// tasks run on the library's own pool.
Executor openmp_executor(int threads);
/// Threads of the runtime's next parallel region (omp_get_max_threads); 0 when this process has loaded none. It may
/// exceed the CPUs that the calling thread may use: a runtime that binds its threads (OMP_PROC_BIND, GOMP_CPU_AFFINITY)
/// binds the main thread, too.
int openmp_threads();
/// True for an executor of openmp_executor().
bool is_openmp(const Executor& e);

}  // namespace flashinfer

#pragma GCC visibility pop
