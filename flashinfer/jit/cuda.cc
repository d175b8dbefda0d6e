// SPDX-License-Identifier: Apache-2.0
#include "flashinfer/jit/cuda.h"

#include <dlfcn.h>

#include <algorithm>

#include "flashinfer/core/check.h"
#include "flashinfer/core/context.h"
#include "flashinfer/core/fs.h"
#include "flashinfer/jit/cuda_load.h"
#include "flashinfer/jit/emulator.h"
#include "flashinfer/jit/nvrtc.h"

namespace flashinfer::jit {
namespace {

/// The newest CUDA version that the compiler in use supports, as 12080; an unknown version is treated as new.
int compiler_version() {
  const Toolchain t = cuda_toolchain();
  return t.maker == Maker::kNvrtc && t.why_not.empty() ? nvrtc().major * 1000 + nvrtc().minor * 10 : 99000;
}

std::string text_of(const cuda::DeviceInfo& i) {
  return str(i.name, " (compute capability ", i.major, ".", i.minor, ")");
}

const CudaKernel& kernel_of(const CudaLoaded& loaded) {
  FI_CHECK(loaded.kernel != nullptr, InternalError, "launch: there is no CUDA kernel: ", loaded.why_not);
  return *loaded.kernel;
}

}  // namespace

Target cuda_target(Device device) {
  if (device.type == DeviceType::kEmu || !cuda::why_no_device(device.index).empty()) return Target::kEmu;
  const std::vector<Target> all = cuda_stand_ins(device);
  for (const Target t : all)
    if (arch_of(t).compiler <= compiler_version()) return t;
  return all.empty() ? Target::kEmu : all.front();
}

std::vector<Target> cuda_stand_ins(Device device) {
  if (device.type == DeviceType::kEmu) return {Target::kEmu};
  const cuda::DeviceInfo& i = cuda::device_info(device.index);
  return targets_for(i.major, i.minor, arch_list());
}

std::vector<Target> visible_gpu_targets() {
  std::vector<Target> list;
  for (int i = 0; cuda::why_no_device(i).empty(); ++i) {
    const cuda::DeviceInfo& info = cuda::device_info(i);
    const auto runs = targets_for(info.major, info.minor);
    if (!runs.empty() && std::ranges::count(list, runs[0]) == 0) list.push_back(runs[0]);
  }
  return list;
}

std::string why_no_cuda(int index, Target target) {
  if (std::string why = cuda::why_no_device(index); !why.empty()) return why;
  const cuda::DeviceInfo& i = cuda::device_info(index);
  if (!is_gpu(target)) {
    if (targets_for(i.major, i.minor).empty())
      return text_of(i) + " is older than 7.5 or newer than this library, which has no target for it";
    return "FLASHINFER_CUDA_ARCH_LIST holds nothing that runs on " + text_of(i);
  }
  const int version = compiler_version(), driver = cuda::driver().version;
  if (version == 99000) return {};
  if (arch_of(target).compiler > version)
    return str("NVRTC ", cuda::version_text(version), " knows no code for ", text_of(i), ", which needs ",
               cuda::version_text(arch_of(target).compiler),
               " or newer (pip install -U nvidia-cuda-nvrtc, or set FLASHINFER_NVRTC)");
  // Within a major version an older driver runs newer cubins.
  if (version / 1000 > driver / 1000)
    return str("the driver is for CUDA ", cuda::version_text(driver), ", but NVRTC is ", cuda::version_text(version),
               ", whose cubins need a driver for CUDA ", version / 1000, ".0: update the driver, or install an NVRTC ",
               driver / 1000, ".x");
  return {};
}

const CudaKernel* load_cuda(const std::string& path, const Request& request, Device device, std::string& error) {
  auto kernel = std::make_unique<CudaKernel>();
  kernel->name = request.text();
  kernel->device = device;
  if (device.type == DeviceType::kEmu) {
    kernel->emulated = load_emulated(path, error);
    return kernel->emulated ? kernel.release() : nullptr;
  }
  try {
    kernel->function = cuda::load(fs::read_file(path).value_or(""), "flashinfer_kernel", device.index);
    return kernel.release();
  } catch (const Error& e) {
    error = e.message();
    return nullptr;
  }
}

void launch(const CudaLoaded& loaded, const void* params, size_t bytes, const cuda::Launch& l) {
  const CudaKernel& k = kernel_of(loaded);
  if (k.device.type == DeviceType::kCUDA)
    return cuda::launch(k.function, params, l, Context::current().stream, k.name.c_str());
  const Arch& arch = arch_of_number(arch_number(k.device));
  cuda::check_launch(l, arch.clusters, arch.shared_bytes, k.name.c_str());
  run_emulated(k, params, bytes, l);
}

Resources resources(const CudaLoaded& loaded) {
  const cuda::Function& f = kernel_of(loaded).function;
  return {f.registers, f.local_bytes, f.shared_bytes};
}

int occupancy(const CudaLoaded& loaded, int threads, size_t shared_bytes) {
  const CudaKernel& k = kernel_of(loaded);
  if (k.device.type != DeviceType::kCUDA) return 1;
  // A kernel is launched with one size of block and memory, so the driver is asked once.
  const uint64_t key = static_cast<uint64_t>(threads) << 48 | static_cast<uint64_t>(shared_bytes) << 16;
  uint64_t known = k.occupancy.load(std::memory_order_relaxed);
  if (known >> 16 != key >> 16 || known == 0) {
    known = key | static_cast<uint64_t>(cuda::occupancy(k.function, threads, shared_bytes));
    k.occupancy.store(known, std::memory_order_relaxed);
  }
  return static_cast<int>(known & 0xffff);
}

int multiprocessors(Device device) {
  return device.type == DeviceType::kCUDA ? cuda::device_info(device.index).sms : 4;
}

}  // namespace flashinfer::jit
