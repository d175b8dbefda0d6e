// SPDX-License-Identifier: Apache-2.0
// Where a window's bytes lie: in memory that all ranks map, or in this process's own.
#include <fcntl.h>
#include <sys/mman.h>

#include <cerrno>
#include <cstring>

#include "flashinfer/comm/transport.h"
#include "flashinfer/core/check.h"

namespace flashinfer::comm {
namespace {

class SharedMemory : public Transport {
 public:
  SharedMemory(int memory, size_t bytes, size_t own_offset, size_t own_bytes) : bytes_(bytes) {
    void* at = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, memory, 0);
    FI_CHECK(at != MAP_FAILED, RuntimeError, "cannot map ", bytes, " bytes of shared memory: ", std::strerror(errno));
    base_ = static_cast<std::byte*>(at);
    if (const int e = posix_fallocate(memory, static_cast<off_t>(own_offset), static_cast<off_t>(own_bytes))) {
      munmap(base_, bytes);
      throw RuntimeError(str("cannot allocate ", own_bytes, " bytes of shared memory: ", std::strerror(e)));
    }
  }
  ~SharedMemory() override { munmap(base_, bytes_); }
  std::byte* image() const override { return base_; }
  bool is_shared() const override { return true; }
  void put(int, size_t, size_t) override {}
  void post(int, size_t, size_t) override {}
  void progress() override {}
  void sleep() override {}
  bool sent(int) const override { return true; }
  std::string why_closed(int) const override { return {}; }

 private:
  std::byte* base_;
  size_t bytes_;
};
}  // namespace

Image::Image(size_t bytes) : bytes_(bytes) {
  void* at = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  FI_CHECK(at != MAP_FAILED, RuntimeError, "cannot map ", bytes, " bytes for a window: ", std::strerror(errno));
  data_ = static_cast<std::byte*>(at);
}
Image::~Image() {
  if (data_) munmap(data_, bytes_);
}

std::unique_ptr<Transport> share_memory(int memory, size_t bytes, size_t own_offset, size_t own_bytes) {
  return std::make_unique<SharedMemory>(memory, bytes, own_offset, own_bytes);
}

}  // namespace flashinfer::comm
