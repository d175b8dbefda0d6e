// SPDX-License-Identifier: Apache-2.0
// In-process compilation of CUDA kernels by NVRTC, opened at run time: one binary works on machines with and without
// it. Compiling needs no GPU and no driver.
#pragma once
#include <string>
#include <vector>

namespace flashinfer::jit {

/// The libnvrtc in use: FLASHINFER_NVRTC (a file, or a folder that holds it), else the nvidia-cuda-nvrtc wheel of the
/// active Python environment (VIRTUAL_ENV, CONDA_PREFIX, ./.venv), else CUDA_HOME or CUDA_PATH, /usr/local/cuda, else
/// the loader's path.
struct Nvrtc {
  std::string path;  // of the library
  int major = 0, minor = 0;
  std::string why_not;  // why there is none, with the places searched
};
const Nvrtc& nvrtc();
/// Searches for it again at the next use; loaded libraries stay loaded.
void forget_nvrtc();

/// CUDA C++ to a cubin (an ELF image) for "sm_80", "sm_90a", "sm_100a", "sm_120a", ... `headers` is the -I folder of
/// our kernel headers (none when empty); functions without __host__ or __device__ are device functions, so that headers
/// shared with the CPU need no CUDA words; <stdint.h>, <stddef.h>, <math.h> and <string.h> are there.
/// NotImplementedError when there is no NVRTC; ValueError for an architecture that this NVRTC does not support;
/// RuntimeError with the compiler's log when it does not compile.
std::string nvrtc_compile(const std::string& source, const std::string& arch, const std::string& headers = {},
                          const std::vector<std::string>& options = {});
/// The same with all options given (--gpu-architecture=... among them); `log` receives the compiler's output, also on
/// success. Empty: it did not compile.
std::string nvrtc_compile_words(const std::string& source, const std::vector<std::string>& words, std::string& log);

}  // namespace flashinfer::jit
