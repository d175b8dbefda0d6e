// SPDX-License-Identifier: Apache-2.0
// The OpenMP runtime of the process as an executor. A program that alternates between this library and one that
// computes with OpenMP (torch) has two sets of threads on the same cores, and OpenMP's workers spin for milliseconds
// after each of their calls: whoever comes next shares its cores with them. With this executor both libraries run on
// the same workers.
#pragma once
#include "flashinfer/core/context.h"

namespace flashinfer {

/// An executor on `threads` threads of the OpenMP runtime that this process has loaded already; `run` is null when
/// there is none. The workers belong to the calling thread, as OpenMP has it. In a forked child, where OpenMP's workers
/// are gone, tasks go to the library's own pool.
Executor openmp_executor(int threads);
/// True for what openmp_executor() makes.
bool is_openmp(const Executor& e);

}  // namespace flashinfer
