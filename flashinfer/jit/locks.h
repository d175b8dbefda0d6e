// SPDX-License-Identifier: Apache-2.0
// The mutexes of this folder, in the order in which they are taken.
#pragma once
#include "flashinfer/core/fork_mutex.h"

namespace flashinfer::jit {

inline constinit ForkMutex g_engine_mutex(ForkLayer::kJit, 0);     // entries
inline constinit ForkMutex g_tables_mutex(ForkLayer::kJit, 1);     // kernels by Config
inline constinit ForkMutex g_toolchain_mutex(ForkLayer::kJit, 2);  // the compilers that were found
// 3: that of nvrtc.cc, the compiler library
inline constinit ForkMutex g_sources_mutex(ForkLayer::kJit, 4);  // hashes of headers
inline constinit ForkMutex g_folders_mutex(ForkLayer::kJit, 5);  // the private folder

}  // namespace flashinfer::jit
