// SPDX-License-Identifier: Apache-2.0
// CUDA kernels: the same function template compiled for the GPU of a tensor, or for the emulator when the tensor is on
// `emu`.
//   template <Config C> FI_GLOBAL_FN void f(const Params& p)      in flashinfer/ops/<family>/kernels/cuda/<file>.cuh
//   inline constexpr jit::Kernel kRmsNorm{"flashinfer/ops/norm/kernels/cuda/norm.cuh", "flashinfer::cu::rmsnorm",
//                                         "flashinfer::NormParams"};
//   const jit::CudaLoaded& k = jit::cuda_kernel<kRmsNorm>(config, device);
//   jit::launch(k, params, launch);
// The Config of a CUDA kernel has a member `threads`, the maximum number of threads of a block.
#pragma once
#include <cstring>
#include <functional>
#include <string>
#include <type_traits>

#include "flashinfer/core/cuda_launch.h"
#include "flashinfer/jit/jit.h"
#include "flashinfer/jit/targets.h"

#pragma GCC visibility push(default)

namespace flashinfer::jit {

struct CudaKernel;
/// As Loaded, but lives as long as the process. There is a kernel unless `why_not` has a reason.
struct CudaLoaded : Loaded {
  const CudaKernel* kernel = nullptr;
};

/// The kernel K for `config` on `device` (cuda:N or emu). Never throws for a missing driver, GPU or compiler: see
/// `why_not`. RuntimeError with the compiler's log, which quotes the line, for a kernel that does not compile.
template <const Kernel& K, class Config>
const CudaLoaded& cuda_kernel(const Config& config, Device device);
/// With a user's source (jit.h): found by its text, some microseconds a lookup.
template <const Kernel& K, class Config>
const CudaLoaded& cuda_kernel(const Config& config, Device device, const Extension& extension);

/// Enqueues on the current context's stream (cuda), or runs now (emu). ValueError for a launch that the device does not
/// support; RuntimeError of the driver, or with the emulator's findings: a race, an access out of bounds, ...
void launch(const CudaLoaded& kernel, const void* params, size_t bytes, const cuda::Launch& launch);
template <class Params>
void launch(const CudaLoaded& kernel, const Params& params, const cuda::Launch& l) {
  static_assert(std::is_trivially_copyable_v<Params> && sizeof(Params) <= 4096,
                "kernel arguments are at most 4096 plain bytes");
  launch(kernel, &params, sizeof(Params), l);
}

/// Resources of a compiled kernel; zeros on the emulator.
struct Resources {
  int registers = 0, local_bytes = 0, shared_bytes = 0;
};
Resources resources(const CudaLoaded& kernel);
/// Blocks of this size that run on one multiprocessor at once; 1 on the emulator.
int occupancy(const CudaLoaded& kernel, int threads, size_t shared_bytes);
/// Multiprocessors of the device; 4 on the emulator, so that persistent kernels stay small there.
int multiprocessors(Device device);

namespace detail {
/// A Config and its device: the key in memory.
template <class Config>
struct [[gnu::packed]] OnDevice {
  Config config;
  uint32_t device;
};

/// As obtain(), for one device.
const Loaded& obtain_cuda(const Request& request, Device device, bool& keep);
/// The same for a request that holds a user's source.
const Loaded& obtain_cuda_extended(const Request& request, Device device);

template <const Kernel& K, class Config>
[[gnu::noinline, gnu::cold]] const Loaded& miss(const OnDevice<Config>& key, uint64_t hash, Device device) {
  bool keep = true;
  const Loaded& loaded = obtain_cuda(make_request(K, Config::kName, members(Config(key.config))), device, keep);
  if (keep) table<K, OnDevice<Config>>.insert(key, hash, &loaded);
  return loaded;
}
}  // namespace detail

template <const Kernel& K, class Config>
const CudaLoaded& cuda_kernel(const Config& config, Device device) {
  static_assert(std::has_unique_object_representations_v<Config>, "a Config is hashed and compared by its bytes");
  const detail::OnDevice<Config> key{config,
                                     static_cast<uint32_t>(device.type) << 16 | static_cast<uint16_t>(device.index)};
  const uint64_t hash = detail::hash_bytes(key);
  const Loaded* loaded = nullptr;
  if (detail::recordings.load(std::memory_order_relaxed) == 0) [[likely]]
    loaded = detail::table<K, detail::OnDevice<Config>>.find(key, hash);
  if (loaded == nullptr) [[unlikely]]
    loaded = &detail::miss<K, Config>(key, hash, device);
  if (op::config_wanted()) [[unlikely]]
    op::report_config(kernel_text<K>(config));
  return static_cast<const CudaLoaded&>(*loaded);  // obtain_cuda() returns nothing else
}

template <const Kernel& K, class Config>
const CudaLoaded& cuda_kernel(const Config& config, Device device, const Extension& extension) {
  const Request request = detail::make_request(K, Config::kName, detail::members(config), &extension);
  if (op::config_wanted()) op::report_config(request.text());
  return static_cast<const CudaLoaded&>(detail::obtain_cuda_extended(request, device));
}

}  // namespace flashinfer::jit

#pragma GCC visibility pop
