// SPDX-License-Identifier: Apache-2.0
// The shared memory of a gang's blocks. In a cluster it is there twice, at two addresses: a block has its own memory at
// the first one and all others' at the second, so that an address which map_shared() did not give is seen.
#pragma once
#include <cstddef>
#include <vector>

namespace flashinfer::emu {

class SharedMemory {
 public:
  SharedMemory() = default;
  SharedMemory(const SharedMemory&) = delete;
  SharedMemory& operator=(const SharedMemory&) = delete;
  ~SharedMemory();
  void make(size_t bytes, bool twice);
  char* data() { return twice_ ? twice_ : once_.data(); }
  size_t size() const { return once_.size(); }
  /// From the first address to the second; 0: there is one.
  size_t distance() const { return twice_ ? mapped_ : 0; }

 private:
  std::vector<char> once_;
  char* twice_ = nullptr;
  size_t mapped_ = 0;
};

}  // namespace flashinfer::emu
