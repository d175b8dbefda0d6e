// SPDX-License-Identifier: Apache-2.0
// Open MPI, opened at run time: the entry points this library uses, and the communicator that it owns. The handles are
// Open MPI's (pointers to exported objects), the same in its versions 3 to 5.
#pragma once
#include <string>

#include "flashinfer/core/fork_mutex.h"

namespace flashinfer::comm::mpi {

using Handle = void*;  // MPI_Comm, MPI_Datatype, MPI_Request, MPI_Errhandler
inline constexpr int kThreadSerialized = 2;

#define FI_MPI_API(X)                                                                        \
  X(int, MPI_Initialized, (int*))                                                            \
  X(int, MPI_Finalized, (int*))                                                              \
  X(int, MPI_Init_thread, (int*, char***, int wanted, int* provided))                        \
  X(int, MPI_Query_thread, (int*))                                                           \
  X(int, MPI_Is_thread_main, (int*))                                                         \
  X(int, MPI_Finalize, ())                                                                   \
  X(int, MPI_Get_library_version, (char*, int*))                                             \
  X(int, MPI_Error_string, (int, char*, int*))                                               \
  X(int, MPI_Comm_rank, (Handle, int*))                                                      \
  X(int, MPI_Comm_size, (Handle, int*))                                                      \
  X(int, MPI_Comm_idup, (Handle, Handle*, Handle*))                                          \
  X(int, MPI_Comm_set_errhandler, (Handle, Handle))                                          \
  X(int, MPI_Isend, (const void*, int count, Handle type, int to, int tag, Handle, Handle*)) \
  X(int, MPI_Irecv, (void*, int count, Handle type, int from, int tag, Handle, Handle*))     \
  X(int, MPI_Test, (Handle*, int*, void* status))                                            \
  X(int, MPI_Cancel, (Handle*))                                                              \
  X(int, MPI_Request_free, (Handle*))

struct Library {
#define FI_MPI_MEMBER(result, name, arguments) result(*name) arguments = nullptr;
  FI_MPI_API(FI_MPI_MEMBER)
#undef FI_MPI_MEMBER
  Handle world = nullptr, byte = nullptr, null_request = nullptr, errors_return = nullptr;
  std::string path;
  std::string why_not;  // why it cannot be used, and how to fix that
};
/// FLASHINFER_MPI, else the library that the program has loaded, else the loader's path; opened once.
const Library& library();

/// What every call of MPI holds: it is initialised for one thread at a time.
extern ForkMutex g_mutex;

/// MPI as this process uses it, with a communicator of all ranks that no one else uses.
struct World {
  Handle comm = nullptr;
  int rank = 0, size = 1;
};
/// Initialises MPI unless it is already. Without `alone` the first call makes the communicator, with all ranks of
/// MPI_COMM_WORLD; with it there must be one already, else comm is null. RuntimeError: no Open MPI, it was finalised,
/// it may not be called from this thread, or a rank does not call this within FLASHINFER_COMM_TIMEOUT_S seconds.
World world(bool alone = false);
/// Whether MPI takes no more calls.
bool is_finalized();
/// The process will end without MPI_Finalize, which waits for all ranks.
void give_up();
/// RuntimeError with MPI's text unless `code` is 0.
void check(int code, const char* what);

/// Rank 0's text, on all ranks of MPI_COMM_WORLD. ValueError: MPI has given this process another rank or size.
std::string first_rank_says(int rank, int size, const std::string& text);

}  // namespace flashinfer::comm::mpi
