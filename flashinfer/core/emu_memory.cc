// SPDX-License-Identifier: Apache-2.0
#include "flashinfer/core/emu_memory.h"

#include <sys/mman.h>

#include <cstdlib>
#include <cstring>
#include <map>
#include <mutex>

#include "flashinfer/core/check.h"
#include "flashinfer/core/int_math.h"

namespace flashinfer::emu_memory {
namespace {

constexpr size_t kRed = 256;
/// Larger blocks are mapped sparsely and use memory only where touched, for tests of addresses beyond 2^31 elements.
constexpr size_t kSparse = size_t{1} << 30;

struct State {
  std::mutex mutex;
  std::map<void*, size_t> blocks;
};

size_t whole_of(size_t bytes) { return round_up(bytes, 256) + 2 * kRed; }
State& state() {
  static State& s = *new State;  // never destroyed: tensors may outlive static destructors
  return s;
}

}  // namespace

void* allocate(size_t bytes) {
  const size_t whole = whole_of(bytes);
  FI_CHECK(bytes <= size_t{1} << 62, RuntimeError, "out of memory on emu:0: ", bytes, " bytes were requested");
  void* raw = nullptr;
  if (bytes >= kSparse)
    raw = ::mmap(nullptr, whole, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  else if (posix_memalign(&raw, 256, whole) != 0)
    raw = MAP_FAILED;
  FI_CHECK(raw != MAP_FAILED, RuntimeError, "out of memory on emu:0: ", bytes, " bytes were requested");
  char* p = static_cast<char*>(raw) + kRed;
  if (bytes < kSparse) std::memset(raw, 0xff, whole);
  State& s = state();
  const std::lock_guard lock(s.mutex);
  s.blocks[p] = bytes;
  return p;
}

void release(void* p) {
  if (p == nullptr) return;
  State& s = state();
  size_t bytes = 0;
  {
    const std::lock_guard lock(s.mutex);
    const auto it = s.blocks.find(p);
    if (it == s.blocks.end()) return;
    bytes = it->second;
    s.blocks.erase(it);
  }
  char* const raw = static_cast<char*>(p) - kRed;
  if (bytes >= kSparse)
    ::munmap(raw, whole_of(bytes));
  else
    std::free(raw);
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
