// SPDX-License-Identifier: Apache-2.0
// printf in a kernel: to the process's stdout; on a GPU it is flushed at the next synchronisation. (On the emulator
// `printf` is a macro of hooks.h.)
#pragma once
#include "flashinfer/kernels/cuda/cu.h"

namespace flashinfer::cu {

template <class... A>
FI_CU void print(const char* format, A... a) {
  printf(format, a...);
}

}  // namespace flashinfer::cu
