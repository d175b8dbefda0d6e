// SPDX-License-Identifier: Apache-2.0
#include "flashinfer/core/cuda/libraries.h"

#include <dlfcn.h>

#include <algorithm>
#include <atomic>
#include <utility>

#include "flashinfer/core/check.h"
#include "flashinfer/core/env.h"
#include "flashinfer/core/fs.h"

namespace flashinfer::cuda {
namespace {

/// Files <stem>.<number> (or without number) in a folder, the highest version first.
std::vector<std::string> libraries_in(const std::string& folder, const std::string& stem) {
  std::vector<std::string> found;
  for (const std::string& entry : fs::list_dir(folder))
    if (entry.starts_with(stem)) found.push_back(folder + "/" + entry);
  std::reverse(found.begin(), found.end());
  return found;
}

/// <environment>/lib/python3.*/site-packages/nvidia/*/lib: cu13 of today's wheels, cuda_nvrtc, cublas, ... of the older
/// ones.
std::vector<std::string> libraries_of_python(const std::string& environment, const std::string& stem) {
  std::vector<std::string> found;
  for (const std::string& python : fs::list_dir(environment + "/lib")) {
    const std::string packages = environment + "/lib/" + python + "/site-packages/nvidia";
    if (!python.starts_with("python")) continue;
    for (const std::string& package : fs::list_dir(packages))
      for (std::string& library : libraries_in(packages + "/" + package + "/lib", stem))
        found.push_back(std::move(library));
  }
  return found;
}

/// Read at the first use of a GPU, from any thread; those before it stay, since a thread may be reading one.
struct PythonPrefix {
  std::string path;
  const PythonPrefix* before;
};
std::atomic<const PythonPrefix*> g_python_prefix{nullptr};

}  // namespace

void set_python_prefix(std::string prefix) {
  auto* added = new PythonPrefix{std::move(prefix), g_python_prefix.load(std::memory_order_relaxed)};
  while (!g_python_prefix.compare_exchange_weak(added->before, added, std::memory_order_release)) {
  }
}

std::vector<std::string> library_candidates(const OptionalLibrary& library, std::string& searched) {
  const auto& [variable, stem, package, versions] = library;
  std::vector<std::string> list;
  const auto add = [&](const std::vector<std::string>& more) { list.insert(list.end(), more.begin(), more.end()); };
  if (const std::string set = env::text(variable); !set.empty()) {
    searched = std::string(variable) + "=" + set;
    return fs::is_dir(set) ? libraries_in(set, stem) : std::vector<std::string>{set};
  }
  std::vector<std::string> environments = {env::text("VIRTUAL_ENV"), env::text("CONDA_PREFIX")};
  if (const PythonPrefix* running = g_python_prefix.load(std::memory_order_acquire);
      running && std::ranges::find(environments, running->path) == environments.end())
    environments.push_back(running->path);
  // Opening a library runs its code, so it is loaded only from directories that others cannot write to.
  if (fs::is_dir(".venv") && fs::unsafe_folder(".").empty() && fs::unsafe_folder(".venv").empty())
    environments.push_back(fs::canonical(".venv"));
  for (const std::string& e : environments)
    if (!e.empty()) add(libraries_of_python(e, stem)), searched += e + ", ";
  for (const std::string& home : {env::text("CUDA_HOME"), env::text("CUDA_PATH"), std::string("/usr/local/cuda")}) {
    if (home.empty()) continue;
    searched += home + ", ";
    for (const char* below : {"/lib64", "/targets/x86_64-linux/lib", "/targets/sbsa-linux/lib"})
      add(libraries_in(home + below, stem));
  }
  for (const int version : versions) list.push_back(str(stem, ".", version));
  list.push_back(stem);
  searched += "the loader's path";
  return list;
}

bool open_library(const OptionalLibrary& library, const std::function<const char*(void*)>& bind, std::string& why_not) {
  std::string searched, missing;
  for (const std::string& path : library_candidates(library, searched)) {
    void* handle = ::dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
    if (handle == nullptr) continue;
    const char* lacks = bind(handle);
    if (lacks == nullptr) return true;
    missing = str("; ", path, " has no ", lacks);
    ::dlclose(handle);
  }
  const std::string stem = library.stem;
  why_not = str(stem.substr(0, stem.rfind('.')), " was not found; searched ", searched, missing, " (pip install ",
                library.package, ", or set ", library.variable, ")");
  return false;
}

}  // namespace flashinfer::cuda
