// SPDX-License-Identifier: Apache-2.0
// Kernels launched on the fake driver, run by the emulator on copies of the memory that their parameters point into.
#pragma once
#include <cstring>
#include <map>

#include "fake_cuda.h"
#include "flashinfer/core/transfer.h"
#include "flashinfer/jit/cuda.h"

namespace flashinfer {

/// The kernel K for `config` with the parameters of `l`, in which every address of device memory is replaced.
template <const jit::Kernel& K, class Params, class Config>
void emulate(fake::Gpu& gpu, const fake::Launched& l, const Config& config) {
  constexpr Device kEmu{DeviceType::kEmu, 0};
  Params params;
  std::memcpy(static_cast<void*>(&params), l.params, sizeof params);
  std::map<uint64_t, Tensor> copies;  // by the begin of the allocation
  for (size_t at = 0; at + 8 <= sizeof params; at += 8) {
    uint64_t word, begin = 0;
    std::memcpy(&word, reinterpret_cast<const char*>(&params) + at, 8);
    if ((word >> 56) != (fake::kDeviceBit >> 56)) continue;
    const size_t bytes = gpu.block(word, &begin);
    if (bytes == 0) continue;
    auto [it, is_new] = copies.try_emplace(begin);
    if (is_new) {
      it->second = Tensor::empty({static_cast<int64_t>(bytes)}, DType::kU8, kEmu);
      copy_bytes(it->second.data(), kEmu, fake::host(reinterpret_cast<const void*>(begin)), kCpu, bytes);
    }
    word = reinterpret_cast<uint64_t>(it->second.data()) + (word - begin);
    std::memcpy(reinterpret_cast<char*>(&params) + at, &word, 8);
  }
  cuda::Launch launch;
  for (int i = 0; i < 3; ++i) launch.grid[i] = l.config.grid[i], launch.block[i] = l.config.block[i];
  launch.shared_bytes = l.config.shared_bytes, launch.pdl = true;
  jit::launch(jit::cuda_kernel<K>(config, kEmu), params, launch);
  for (const auto& [begin, copy] : copies)
    copy_bytes(fake::host(reinterpret_cast<const void*>(begin)), kCpu, copy.data(), kEmu,
               static_cast<size_t>(copy.nbytes()));
}

}  // namespace flashinfer
