// SPDX-License-Identifier: Apache-2.0
// Search paths of NVIDIA's libraries, which are opened at run time.
#pragma once
#include <string>
#include <vector>

namespace flashinfer::cuda {

/// Paths to try, best first, for a library `stem` ("libnvrtc.so"): only `variable` (a file, or the folder that holds
/// it) when it is set; else the wheels of the active Python environment (VIRTUAL_ENV, CONDA_PREFIX, ./.venv if only we
/// can write to it), CUDA_HOME, CUDA_PATH, /usr/local/cuda, the loader's path with versions 13, 12 and none. `searched`
/// lists these places as text.
std::vector<std::string> library_candidates(const char* variable, const std::string& stem, std::string& searched);

}  // namespace flashinfer::cuda
