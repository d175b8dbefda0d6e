// SPDX-License-Identifier: Apache-2.0
// The mutexes of this folder, in the order in which they are taken.
#pragma once
#include "flashinfer/core/fork_mutex.h"

namespace flashinfer::record {

inline constinit ForkMutex g_control_file_mutex(ForkLayer::kRecord, 0);  // what was read of it
inline constinit ForkMutex g_settings_mutex(ForkLayer::kRecord, 1);      // configure()
inline constinit ForkMutex g_graphs_mutex(ForkLayer::kRecord, 2);        // calls that wait for a flush
inline constinit ForkMutex g_followed_mutex(ForkLayer::kRecord, 3);      // states that change behind a captured call
inline constinit ForkMutex g_recorder_mutex(ForkLayer::kRecord, 4);      // counters, the ring
inline constinit ForkMutex g_at_exit_mutex(ForkLayer::kRecord, 5);       // who flushes then
inline constinit ForkMutex g_sinks_mutex(ForkLayer::kRecord, 6);         // open logs
inline constinit ForkMutex g_versions_mutex(ForkLayer::kRecord, 7);      // of other packages
inline constinit ForkMutex g_local_time_mutex(ForkLayer::kRecord, 8);  // libc's own, which it does not hold over fork()

}  // namespace flashinfer::record
