// SPDX-License-Identifier: Apache-2.0
// Mutexes that are held over fork(). A child has only the thread that forked: a mutex that another one held would stay
// locked in it for ever, and what that one was changing half-changed. So fork() waits for all of these and takes them,
// and both processes release them.
#pragma once
#include <mutex>

namespace flashinfer {

/// One mutex each, in the order in which they are taken: who holds one takes only later ones, as fork() does. Python is
/// not called under any of them: the thread that forks may hold the interpreter's lock.
enum class ForkLock {
  kControlFile,   // record/: what was read of it
  kSettings,      // record/: configure()
  kGraphs,        // record/: calls that wait for a flush
  kFollowed,      // record/: states that change behind a captured call
  kRecorder,      // record/: counters, the ring
  kAtExit,        // record/: who flushes then
  kSinks,         // record/: open logs
  kVersions,      // record/: of other packages
  kLocalTime,     // libc's own, which it does not hold over fork()
  kForeignCalls,  // ffi/: functions and their forms
  kPools,         // ffi/: pools by number of threads
  kEngine,        // jit/: entries
  kTables,        // jit/: kernels by Config
  kToolchain,     // jit/: the compilers that were found
  kNvrtc,         // jit/: the compiler library
  kSources,       // jit/: hashes of headers
  kFolders,       // jit/: the private folder
  kRopeTables,    // ops/attention
  kOps,           // op/: those that programs add
  kDefaults,      // op/: blocks of default arguments
  kClassNames,    // op/
  kWarnedOps,     // op/: warnings are given once
  kEnvironment,   // variables that were read
  kWorkers,       // thread pools, which get new workers in the child
  kAllocator,     // freed blocks
  kCount
};

std::mutex& fork_lock(ForkLock which);

}  // namespace flashinfer
