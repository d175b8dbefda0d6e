// SPDX-License-Identifier: Apache-2.0
#include "flashinfer/jit/emulator.h"

#include <dlfcn.h>

#include <utility>

#include "flashinfer/core/check.h"
#include "flashinfer/core/emu_memory.h"
#include "flashinfer/core/env.h"
#include "flashinfer/jit/cuda_load.h"
#include "flashinfer/jit/targets.h"
#include "flashinfer/kernels/emu/emu.h"

namespace flashinfer::jit {
namespace {
thread_local Emulation* t_emulation = nullptr;
}

Emulation::Emulation(uint64_t seed, bool count)
    : seed_(seed), count_(count), previous_(std::exchange(t_emulation, this)) {}
Emulation::~Emulation() { t_emulation = previous_; }

void (*load_emulated(const std::string& path, std::string& error))(const void*) {
  void* handle = ::dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
  void* entry = handle != nullptr ? ::dlsym(handle, "flashinfer_emu_kernel") : nullptr;
  void* bind = handle != nullptr ? ::dlsym(handle, "flashinfer_emu_bind") : nullptr;
  if (entry == nullptr || bind == nullptr) {
    const char* text = ::dlerror();
    error = text != nullptr ? text : "no flashinfer_emu_kernel in it";
    return nullptr;
  }
  reinterpret_cast<void (*)(const void*)>(bind)(emu::hooks());
  return reinterpret_cast<void (*)(const void*)>(entry);
}

void run_emulated(const CudaKernel& kernel, const void* params, size_t bytes, const cuda::Launch& l) {
  std::vector<emu::Range> memory;
  for (const emu_memory::Range& r : emu_memory::ranges()) memory.push_back({r.begin, r.bytes, r.written});
  emu::Options options;
  options.seed = t_emulation ? t_emulation->seed_ : static_cast<uint64_t>(env::integer("FLASHINFER_EMU_SEED"));
  options.count = t_emulation && t_emulation->count_;
  options.memory = memory;
  const Arch& arch = arch_of_number(arch_number(kernel.device));
  options.shared_limit = static_cast<unsigned>(arch.shared_bytes);
  options.clusters = arch.clusters, options.async_copy = arch.async_copy;
  emu::Report report = emu::run(kernel.emulated, params, bytes, l, options);
  FI_CHECK(report.error.empty(), RuntimeError, "emulator: ", kernel.name, " (seed ", options.seed, "):\n",
           report.error);
  if (t_emulation)
    t_emulation->launches_.push_back(
        {kernel.name, l, options.count ? std::make_shared<emu::Counts>(std::move(report.counts)) : nullptr});
}

}  // namespace flashinfer::jit
