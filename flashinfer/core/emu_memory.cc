// SPDX-License-Identifier: Apache-2.0
#include "flashinfer/core/emu_memory.h"

#include <cstdlib>
#include <cstring>
#include <map>
#include <mutex>

#include "flashinfer/core/check.h"

namespace flashinfer::emu_memory {
namespace {

constexpr size_t kRed = 256;

struct State {
  std::mutex mutex;
  std::map<void*, size_t> blocks;
};
State& state() {
  static State& s = *new State;  // never destroyed: tensors may outlive static destructors
  return s;
}

}  // namespace

void* allocate(size_t bytes) {
  const size_t whole = (bytes + 255) / 256 * 256 + 2 * kRed;
  FI_CHECK(bytes <= size_t{1} << 62, RuntimeError, "out of memory on emu:0: ", bytes, " bytes were asked for");
  void* raw = nullptr;
  FI_CHECK(posix_memalign(&raw, 256, whole) == 0, RuntimeError, "out of memory on emu:0: ", bytes, " bytes were asked for");
  char* p = static_cast<char*>(raw) + kRed;
  std::memset(raw, 0xff, whole);
  State& s = state();
  const std::lock_guard lock(s.mutex);
  s.blocks[p] = bytes;
  return p;
}

void release(void* p) {
  if (p == nullptr) return;
  State& s = state();
  {
    const std::lock_guard lock(s.mutex);
    if (s.blocks.erase(p) == 0) return;
  }
  std::free(static_cast<char*>(p) - kRed);
}

std::vector<Range> ranges() {
  State& s = state();
  const std::lock_guard lock(s.mutex);
  std::vector<Range> list;
  list.reserve(s.blocks.size());
  for (const auto& [p, bytes] : s.blocks) list.push_back({p, bytes});
  return list;
}

}  // namespace flashinfer::emu_memory
