// SPDX-License-Identifier: Apache-2.0
#include "flashinfer/comm/mpi.h"

#include <dlfcn.h>

#include <atomic>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <mutex>
#include <string_view>
#include <thread>
#include <vector>

#include "flashinfer/comm/group_state.h"
#include "flashinfer/core/check.h"
#include "flashinfer/core/env.h"
#include "flashinfer/core/once.h"

namespace flashinfer::comm::mpi {

constinit ForkMutex g_mutex(ForkLayer::kCore, 103);

namespace {
constexpr const char* kNames[] = {"libmpi.so.40", "libmpi.so"};

/// The symbols of an open library; its `why_not` says which is missing.
Library resolve(void* handle, const std::string& path) {
  Library l;
  l.path = path;
  const auto find = [&](const char* name) {
    void* at = dlsym(handle, name);
    if (!at && l.why_not.empty()) l.why_not = str(path, " has no ", name, ": it is not Open MPI 3 to 5");
    return at;
  };
#define FI_MPI_FIND(result, name, arguments) l.name = reinterpret_cast<result(*) arguments>(find(#name));
  FI_MPI_API(FI_MPI_FIND)
#undef FI_MPI_FIND
  l.world = find("ompi_mpi_comm_world"), l.byte = find("ompi_mpi_byte");
  l.null_request = find("ompi_request_null"), l.errors_return = find("ompi_mpi_errors_return");
  return l;
}
Library open() {
  const std::string set = env::text("FLASHINFER_MPI");
  std::string tried;
  const auto attempt = [&](const std::string& name, int flags) -> void* {
    void* handle = dlopen(name.c_str(), RTLD_NOW | RTLD_GLOBAL | flags);  // its plug-ins look for its symbols
    if (!handle && !flags) tried += str(tried.empty() ? "" : "; ", dlerror());
    return handle;
  };
  if (!set.empty()) {
    if (void* handle = attempt(set, 0)) return resolve(handle, set);
  } else {
    for (const int flags : {RTLD_NOLOAD, 0})
      for (const char* name : kNames)
        if (void* handle = attempt(name, flags)) return resolve(handle, name);
  }
  Library l;
  l.why_not =
      str("cannot open Open MPI (", tried, "); Debian: apt-get install openmpi-bin; FLASHINFER_MPI names a file");
  return l;
}

/// Calls f until it is true. RuntimeError after the time limit.
template <class F>
void poll_until(const char* what, F f) {
  const double patience = timeout_seconds();
  const Deadline deadline = after(patience);
  while (!f()) {
    FI_CHECK(std::chrono::steady_clock::now() < deadline, RuntimeError, what,
             ": a rank of MPI_COMM_WORLD did not call it within ", patience, " s (FLASHINFER_COMM_TIMEOUT_S)");
    std::this_thread::sleep_for(std::chrono::microseconds(200));
  }
}
bool is_done(Handle& request) {
  const std::scoped_lock lock(g_mutex);
  int done = 0;
  check(library().MPI_Test(&request, &done, nullptr), "MPI_Test");
  return done;
}

/// At the end of the process, when all went well: MPI_Finalize waits for the other ranks.
std::atomic<bool> g_failed{false};
void finalize() {
  if (!is_finalized() && !g_failed) library().MPI_Finalize();
}
/// Once, and under no ForkMutex: in a process that mpirun did not start, Open MPI forks.
void initialize() {
  static std::once_flag once;
  std::call_once(once, [&l = library()] {
    int there = 0, level = 0;
    check(l.MPI_Initialized(&there), "MPI_Initialized");
    if (there) return;
    check(l.MPI_Init_thread(nullptr, nullptr, kThreadSerialized, &level), "MPI_Init_thread");
    std::atexit(finalize);
  });
}
void check_thread() {
  const Library& l = library();
  int level = 0, main = 0;
  check(l.MPI_Query_thread(&level), "MPI_Query_thread");
  check(l.MPI_Is_thread_main(&main), "MPI_Is_thread_main");
  FI_CHECK(level >= kThreadSerialized || main, RuntimeError,
           "MPI was initialised for its main thread alone: initialise it with MPI_THREAD_SERIALIZED");
}

constinit ForkMutex g_world_mutex(ForkLayer::kCore, 102);
World& the_world() {
  static World w;
  return w;
}
Handle duplicate(Handle of) {
  const Library& l = library();
  Handle comm = nullptr, request = nullptr;
  {
    const std::scoped_lock lock(g_mutex);
    check(l.MPI_Comm_idup(of, &comm, &request), "MPI_Comm_idup");
  }
  poll_until("MPI_Comm_idup", [&] { return is_done(request); });
  const std::scoped_lock lock(g_mutex);
  check(l.MPI_Comm_set_errhandler(comm, l.errors_return), "MPI_Comm_set_errhandler");
  return comm;
}

constexpr int kMeetTag = 1, kMostText = 4096;
}  // namespace

const Library& library() {
  static constinit Once<Library> once;
  return once.get([] { return open(); });
}

World world(bool alone) {
  const Library& l = library();
  FI_CHECK(l.why_not.empty(), RuntimeError, l.why_not);
  FI_CHECK(!is_finalized(), RuntimeError, "MPI was finalised");
  initialize();
  const std::scoped_lock lock(g_world_mutex);
  World& w = the_world();
  if (w.comm) return w;
  check_thread();
  check(l.MPI_Comm_rank(l.world, &w.rank), "MPI_Comm_rank");
  check(l.MPI_Comm_size(l.world, &w.size), "MPI_Comm_size");
  if (!alone) w.comm = duplicate(l.world);
  return w;
}

std::string first_rank_says(int rank, int size, const std::string& text) {
  const World w = world();
  FI_CHECK(rank == w.rank && size == w.size, ValueError, "rank is ", rank, " and size ", size,
           ", but this process is rank ", w.rank, " of ", w.size, " of MPI_COMM_WORLD");
  const Library& l = library();
  std::vector<Handle> requests(rank == 0 ? static_cast<size_t>(size) : 1, l.null_request);
  std::string buffer = text;
  buffer.resize(kMostText);
  {
    const std::scoped_lock lock(g_mutex);
    for (int r = 1; r < size && rank == 0; ++r)
      check(l.MPI_Isend(buffer.data(), kMostText, l.byte, r, kMeetTag, w.comm, &requests[static_cast<size_t>(r)]),
            "MPI_Isend");
    if (rank) check(l.MPI_Irecv(buffer.data(), kMostText, l.byte, 0, kMeetTag, w.comm, requests.data()), "MPI_Irecv");
  }
  for (Handle& request : requests) poll_until("connect", [&] { return is_done(request); });
  return buffer.c_str();
}
bool is_finalized() {
  int done = 0;
  return library().MPI_Finalized(&done) == 0 && done;
}
void give_up() { g_failed = true; }

void check(int code, const char* what) {
  if (code == 0) return;
  char text[512] = {};
  int n = 0;
  library().MPI_Error_string(code, text, &n);
  throw RuntimeError(str(what, ": ", text));
}

}  // namespace flashinfer::comm::mpi
