// SPDX-License-Identifier: Apache-2.0
// The fake driver: modules, launches, and the tests' access to all of it.
#include <elf.h>

#include "fake_machine.h"

using namespace fake;
using namespace flashinfer::cuda;

namespace {

/// What the library never gives back, as a real driver's memory would not be: reachable, for leak checkers. The caller
/// is Locked.
void* kept(size_t bytes) {
  static auto& all = *new std::vector<std::unique_ptr<char[]>>;
  return all.emplace_back(std::make_unique<char[]>(bytes)).get();
}
/// Of .nv.info.<kernel> of a cubin: the bytes of its parameters, an attribute of format 3 (a 16-bit value) and kind
/// 0x19, and the most threads of a block
/// (__launch_bounds__), format 4 (bytes follow) and kind 0x05.
void read_info(const char* image, Function& f) {
  if (image[EI_CLASS] != ELFCLASS64) return void(f.param_bytes = 8);  // no cubin, but a text of a test
  Elf64_Ehdr elf;
  std::memcpy(&elf, image, sizeof elf);
  const auto section = [&](int i) {  // wherever it lies: images are not aligned
    Elf64_Shdr s;
    std::memcpy(&s, image + elf.e_shoff + static_cast<size_t>(i) * sizeof s, sizeof s);
    return s;
  };
  for (int i = 0; i < elf.e_shnum; ++i) {
    const Elf64_Shdr at = section(i);
    if (std::strcmp(image + section(elf.e_shstrndx).sh_offset + at.sh_name, ".nv.info.flashinfer_kernel") != 0)
      continue;
    const auto* p = reinterpret_cast<const unsigned char*>(image + at.sh_offset);
    for (const auto* end = p + at.sh_size; p + 4 <= end;) {
      const size_t value = p[2] | p[3] << 8;
      if (p[0] == 3 && p[1] == 0x19) f.param_bytes = value;
      if (p[0] == 4 && p[1] == 0x05 && value == 12) {
        unsigned most[3];
        std::memcpy(most, p + 4, sizeof most);
        f.max_threads = most[0] * most[1] * most[2];
      }
      p += p[0] == 4 ? 4 + value : 4;
    }
  }
}

}  // namespace

extern "C" {
int cuModuleLoadData(Handle* module, const void* image) {
  ENTER();
  NEEDS_CONTEXT();
  if (forbidden_by_capture()) return kCaptureUnsupported;
  if (std::memcmp(image, "\177ELF", 4) != 0) return kInvalidImage;
  auto* f = new (kept(sizeof(Function))) Function;
  read_info(static_cast<const char*>(image), *f);
  if (f->param_bytes == 0) return kInvalidImage;
  *module = f;
  return 0;
}
int cuModuleUnload(Handle) { return 0; }
int cuModuleGetFunction(Handle* f, Handle module, const char* name) {
  ENTER();
  if (std::strcmp(name, "flashinfer_kernel") != 0) return 500;
  *f = module;
  return 0;
}
int cuFuncGetAttribute(int* v, int attribute, Handle f) {
  *v = attribute == 0 ? static_cast<int>(static_cast<Function*>(f)->max_threads) : attribute == 4 ? 32 : 0;
  return 0;
}
int cuFuncSetAttribute(Handle f, int attribute, int value) {
  ENTER();
  if (attribute != 8 && attribute != 14) return kInvalidValue;
  if (attribute == 8 && value > 232448) return kInvalidValue;
  if (attribute == 8) static_cast<Function*>(f)->shared_limit = value;
  return 0;
}
int cuOccupancyMaxActiveBlocksPerMultiprocessor(int* n, Handle, int threads, size_t shared) {
  ENTER();
  *n = std::min<int>(2048 / threads, shared ? static_cast<int>(233472 / shared) : 32);
  return 0;
}
int cuLaunchKernelEx(const LaunchConfig* c, Handle f, void** params, void**) {
  ENTER();
  NEEDS_CONTEXT();
  uint64_t threads = 1;
  for (int i = 0; i < 3; ++i) {
    if (c->grid[i] == 0 || c->block[i] == 0 || c->grid[i] > (i == 0 ? 0x7fffffffu : 65535u)) return kInvalidValue;
    threads *= c->block[i];
  }
  if (threads > static_cast<Function*>(f)->max_threads) return kInvalidValue;
  if (c->shared_bytes > static_cast<unsigned>(static_cast<Function*>(f)->shared_limit)) return kInvalidValue;
  Gpu& g = machine().gpu;
  const size_t bytes = static_cast<Function*>(f)->param_bytes;
  auto* copy = static_cast<char*>(kept(bytes));  // as long as the launch is known
  std::memcpy(copy, params[0], bytes);
  const fake::Launched l{*c, {c->attributes, c->attributes + c->count}, copy, bytes};
  g.launches.push_back(l);
  return enqueue(c->stream, {"launch", [l] {
                               Gpu& gpu = machine().gpu;
                               if (gpu.kernel) gpu.kernel(l);
                               if (gpu.kernel_status) machine().sticky = gpu.kernel_status;
                             }});
}

Gpu* fake_gpu() {
  Gpu& g = machine().gpu;
  g.reset = [] { fresh(), fake_gpu(); };
  g.begin_capture = [](Handle h) { stream_of(h)->capturing = ++machine().captures; };
  g.end_capture = [](Handle h) {
    Stream* s = stream_of(h);
    const uint64_t graph = std::exchange(s->capturing, 0);
    return std::exchange(s->invalid, false) ? -1 : static_cast<int>(machine().graphs[graph].size());
  };
  g.last_graph = [] { return machine().captures; };
  g.launch_graph = [](uint64_t graph, Handle h) {
    for (const Operation& o : machine().graphs.at(graph)) stream_of(h)->queue.push_back(o);
  };
  g.replay = [] {
    for (const Operation& o : machine().graphs.at(machine().captures)) o.run();
  };
  g.enqueue = [](Handle h, const char* what, std::function<void()> run) {
    const Locked locked;
    return enqueue(h, {what, std::move(run)});
  };
  g.block = [](uint64_t address, uint64_t* begin) {
    const auto it = find_block(machine().blocks, host(address), 1);
    if (it == machine().blocks.end()) return size_t{0};
    *begin = reinterpret_cast<uint64_t>(it->first) ^ kDeviceBit;
    return it->second.bytes;
  };
  g.pending = [](Handle h) {
    const Locked locked;
    return static_cast<int>(stream_of(h)->queue.size());
  };
  return &g;
}

}  // extern "C"
