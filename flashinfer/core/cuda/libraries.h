// SPDX-License-Identifier: Apache-2.0
// Where NVIDIA's libraries may lie that are opened at run time.
#pragma once
#include <string>
#include <vector>

namespace flashinfer::cuda {

/// Paths to try, best first, for a library `stem` ("libnvrtc.so"): `variable` (a file, or a folder that holds it) alone
/// when it is set; else the wheels of the active Python environment (VIRTUAL_ENV, CONDA_PREFIX, a .venv of ours here),
/// CUDA_HOME, CUDA_PATH, /usr/local/cuda, the loader's path with versions 13, 12 and none. `searched` says in words
/// where.
std::vector<std::string> library_candidates(const char* variable, const std::string& stem, std::string& searched);

}  // namespace flashinfer::cuda
