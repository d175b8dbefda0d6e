// SPDX-License-Identifier: Apache-2.0
#include "flashinfer/kernels/emu/guarded.h"

#include <dlfcn.h>
#include <sys/mman.h>

#include <map>
#include <sstream>
#include <utility>

#include "flashinfer/core/check.h"
#include "flashinfer/core/status_line.h"
#include "flashinfer/kernels/emu/api.h"

namespace flashinfer::emu {

Kernel guarded_form(Kernel kernel) {
  static std::map<Kernel, Kernel>& known = *new std::map<Kernel, Kernel>;  // under the emulator's lock
  const auto [at, added] = known.emplace(kernel, nullptr);
  if (!added) return at->second;
  Dl_info info{};
  if (::dladdr(reinterpret_cast<const void*>(kernel), &info) == 0 || info.dli_sname == nullptr) return nullptr;
  std::string file = info.dli_fname;
  if (!file.ends_with(".so")) return nullptr;
  file.insert(file.size() - 3, ".guarded");
  void* const handle = ::dlopen(file.c_str(), RTLD_NOW | RTLD_LOCAL);  // the loader keeps it
  void* const bind = handle == nullptr ? nullptr : ::dlsym(handle, "flashinfer_emu_bind");
  void* const form = bind == nullptr ? nullptr : ::dlsym(handle, info.dli_sname);
  if (form == nullptr) {
    static bool told = false;
    const char* const why = ::dlerror();
    if (!std::exchange(told, true))
      write_stderr(str("flashinfer: emulator: accesses that leave a local variable are not looked for: ",
                       why != nullptr ? why : "no kernel in " + file,
                       " (with FLASHINFER_JIT_VERBOSE=1 a compiler that does not make it says why)\n"));
    return nullptr;
  }
  reinterpret_cast<void (*)(void*)>(bind)(hooks());
  return at->second = reinterpret_cast<Kernel>(form);
}

namespace {
struct Shadow {
  uintptr_t stacks = 0;  // what it is of
  size_t of_bytes = 0;
  void* base = nullptr;
  size_t bytes = 0;
} shadow;
int8_t shadow_of(uintptr_t at) { return *reinterpret_cast<const int8_t*>((at >> 3) + kStackShadow); }

// Values of red zones: left of a frame's first variable, and outside a variable's block.
constexpr int8_t kLeft = static_cast<int8_t>(0xf1), kScope = static_cast<int8_t>(0xf8);
constexpr uintptr_t kFrameMagic = 0x41b58ab3;  // the first word of a frame; the second points to its description
}  // namespace

bool map_stack_shadow(uintptr_t begin, size_t bytes) {
  if (shadow.base != nullptr && shadow.stacks == begin && shadow.of_bytes == bytes) return true;
  if (shadow.base != nullptr) ::munmap(shadow.base, shadow.bytes);
  shadow = {};
  constexpr uintptr_t kPage = 4096;
  const uintptr_t first = ((begin >> 3) + kStackShadow) & ~(kPage - 1);
  const size_t size = ((bytes >> 3) + 2 * kPage) & ~(kPage - 1);
  // Not MAP_FIXED: another mapping there stays, and there is no guarded run.
  void* const base = ::mmap(reinterpret_cast<void*>(first), size, PROT_READ | PROT_WRITE,
                            MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (base == MAP_FAILED) return false;
  if (reinterpret_cast<uintptr_t>(base) != first) {
    ::munmap(base, size);
    return false;
  }
  shadow = {begin, bytes, base, size};
  return true;
}

void clear_stack_shadow() { ::madvise(shadow.base, shadow.bytes, MADV_DONTNEED); }

std::string describe_local(uintptr_t at, size_t bytes, uintptr_t stack_begin) {
  // The first byte that is not of a variable; then down to the frame's left red zone, and to its begin.
  uintptr_t frame = at & ~uintptr_t{7};
  while (frame > stack_begin && shadow_of(frame) != kLeft) frame -= 8;
  while (frame > stack_begin && shadow_of(frame - 8) == kLeft) frame -= 8;
  const auto* const words = reinterpret_cast<const uintptr_t*>(frame);
  if (frame <= stack_begin || words[0] != kFrameMagic) return {};
  // "2 32 4 1 n 48 32 6 sums:12": the number of variables; of each its place in the frame, its bytes, the length of its
  // name, and its name with its line.
  std::istringstream text(reinterpret_cast<const char*>(words[1]));
  size_t variables = 0;
  text >> variables;
  std::string best;
  uintptr_t least = ~uintptr_t{0};
  for (size_t i = 0; i < variables; ++i) {
    size_t place = 0, size = 0, length = 0;
    text >> place >> size >> length;
    text.ignore(1);
    std::string name(length, ' ');
    if (!text.read(name.data(), static_cast<std::streamsize>(length))) return {};
    name.resize(std::min(name.size(), name.find_first_of(":.")));  // without its line, and what clang adds
    const uintptr_t begin = frame + place, end = begin + size;
    const std::string variable = str("'", name, "' (", size, " bytes)");
    std::string where;
    uintptr_t distance = 0;
    if (at + bytes > end && at >= begin) {
      distance = at > end ? at - end : 0;
      where = str(at + bytes - end, " bytes past the end of ", variable);
    } else if (at < begin) {
      distance = begin - at;
      where = str(distance, " bytes before ", variable);
    } else {
      where = str("of ", variable, ", whose block has ended");
    }
    if (distance < least) least = distance, best = where;
  }
  return best;
}

}  // namespace flashinfer::emu
