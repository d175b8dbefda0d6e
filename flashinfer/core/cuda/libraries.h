// SPDX-License-Identifier: Apache-2.0
// NVIDIA's libraries that a machine may lack: where they are searched, and how they are opened at run time.
#pragma once
#include <functional>
#include <string>
#include <vector>

namespace flashinfer::cuda {

struct OptionalLibrary {
  const char* variable;                  // of the environment: the file, or the folder that holds it
  const char* stem;                      // "libnvrtc.so"
  const char* package;                   // of PyPI
  std::vector<int> versions = {13, 12};  // of the loader's path, best first
};

/// The environment of the Python that runs this process (sys.prefix), which need not be an active one. The last call
/// counts; the strings of earlier ones are not freed, as another thread may read them.
void set_python_prefix(std::string prefix);

/// Paths to try, best first: only `variable` when it is set; else the wheels of Python environments (VIRTUAL_ENV,
/// CONDA_PREFIX, set_python_prefix()'s, ./.venv if only we can write to it), CUDA_HOME, CUDA_PATH, /usr/local/cuda, the
/// loader's path with each version and with none. `searched` lists these places as text.
std::vector<std::string> library_candidates(const OptionalLibrary& library, std::string& searched);

/// Opens the first candidate that loads and in which `bind` finds its symbols: it returns the name of one that is
/// missing, or null. The library stays open. Returns false, and in `why_not` what was searched, when there is none.
bool open_library(const OptionalLibrary& library, const std::function<const char*(void* handle)>& bind,
                  std::string& why_not);

}  // namespace flashinfer::cuda
