// SPDX-License-Identifier: Apache-2.0
#include "flashinfer/kernels/emu/shared_memory.h"

#if defined(__linux__)
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>
#endif

#include "flashinfer/core/int_math.h"

namespace flashinfer::emu {
namespace {
#if defined(__linux__)
/// One memory at two addresses, `bytes` apart; null where that is not possible.
char* map_twice(size_t bytes) {
  const int file = static_cast<int>(::syscall(SYS_memfd_create, "shared memory of a cluster", 1 /* MFD_CLOEXEC */));
  if (file < 0) return nullptr;
  char* base = nullptr;
  if (::ftruncate(file, static_cast<off_t>(bytes)) == 0) {
    void* const both = ::mmap(nullptr, 2 * bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    base = both == MAP_FAILED ? nullptr : static_cast<char*>(both);
  }
  for (size_t i = 0; i < 2 && base != nullptr; ++i)
    if (::mmap(base + i * bytes, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, file, 0) == MAP_FAILED)
      ::munmap(base, 2 * bytes), base = nullptr;
  ::close(file);
  return base;
}
void unmap(char* base, size_t bytes) { ::munmap(base, 2 * bytes); }
#else
char* map_twice(size_t) { return nullptr; }
void unmap(char*, size_t) {}
#endif
}  // namespace

SharedMemory::~SharedMemory() {
  if (twice_) unmap(twice_, mapped_);
}
void SharedMemory::make(size_t bytes, bool twice) {
  once_.resize(bytes);
  mapped_ = round_up(bytes, size_t{1} << 16);
  if (twice) twice_ = map_twice(mapped_);
}

}  // namespace flashinfer::emu
