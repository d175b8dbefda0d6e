// SPDX-License-Identifier: Apache-2.0
#include "flashinfer/jit/nvrtc.h"

#include <dlfcn.h>

#include <algorithm>
#include <cstdlib>
#include <vector>

#include "flashinfer/core/check.h"
#include "flashinfer/core/cuda/libraries.h"
#include "flashinfer/core/fs.h"
#include "flashinfer/core/lazy.h"
#include "flashinfer/jit/locks.h"

namespace flashinfer::jit {
namespace {

/// The functions used of NVRTC's C interface; its handle is opaque and a status of 0 is success.
struct Api {
  using Program = void*;
  int (*version)(int*, int*);
  const char* (*error)(int);
  int (*architectures_count)(int*);
  int (*architectures)(int*);
  int (*create)(Program*, const char* source, const char* name, int n, const char* const* headers,
                const char* const* names);
  int (*compile)(Program, int n, const char* const* options);
  int (*destroy)(Program*);
  int (*log_size)(Program, size_t*);
  int (*log)(Program, char*);
  int (*cubin_size)(Program, size_t*);
  int (*cubin)(Program, char*);
};

/// NVRTC has no system headers; these are the ones that freestanding kernel headers include (functions of the last two
/// are built in).
constexpr const char* kHeaderNames[] = {"stdint.h", "stddef.h", "math.h", "string.h"};
constexpr const char* kHeaderTexts[] = {
    "#pragma once\n"
    "typedef signed char int8_t; typedef short int16_t; typedef int int32_t; typedef long int64_t;\n"
    "typedef unsigned char uint8_t; typedef unsigned short uint16_t; typedef unsigned int uint32_t; typedef unsigned "
    "long uint64_t;\n"
    "typedef long intptr_t; typedef unsigned long uintptr_t;\n"
    "#define INT32_MAX 0x7fffffff\n#define INT64_MAX 0x7fffffffffffffffL\n",
    "#pragma once\ntypedef decltype(sizeof(0)) size_t; typedef long ptrdiff_t;\n", "", ""};
constexpr int kHeaders = 4;

struct State {
  Nvrtc info;
  Api api{};
};

/// The name of a symbol that the library lacks, or null.
const char* bind(Api& a, void* lib) {
  const char* lacks = nullptr;
  const auto find = [&](const char* symbol, auto& function) {
    function = reinterpret_cast<std::remove_reference_t<decltype(function)>>(::dlsym(lib, symbol));
    if (function == nullptr && lacks == nullptr) lacks = symbol;
  };
  find("nvrtcVersion", a.version), find("nvrtcGetErrorString", a.error);
  find("nvrtcGetNumSupportedArchs", a.architectures_count), find("nvrtcGetSupportedArchs", a.architectures);
  find("nvrtcCreateProgram", a.create), find("nvrtcCompileProgram", a.compile);
  find("nvrtcDestroyProgram", a.destroy);
  find("nvrtcGetProgramLogSize", a.log_size), find("nvrtcGetProgramLog", a.log);
  find("nvrtcGetCUBINSize", a.cubin_size), find("nvrtcGetCUBIN", a.cubin);
  return lacks;
}

constexpr int kOldest = 12040;

void open(State& s) {
  const auto bound = [&](void* lib) { return bind(s.api, lib); };
  if (!cuda::open_library({"FLASHINFER_NVRTC", "libnvrtc.so", "nvidia-cuda-nvrtc"}, bound, s.info.why_not)) return;
  s.info.path = fs::object_of(reinterpret_cast<const void*>(s.api.version));
  if (s.api.version(&s.info.major, &s.info.minor) != 0 || s.info.major * 1000 + s.info.minor * 10 < kOldest) {
    s.info.why_not = str("NVRTC is ", s.info.major, ".", s.info.minor, " (", s.info.path,
                         "), but 12.4 or newer is needed: "
                         "pip install -U nvidia-cuda-nvrtc, or set FLASHINFER_NVRTC to another");
    return;
  }
  // NVRTC opens this companion by its bare name; an interposed dlopen (sanitizers) does not search NVRTC's folder.
  const std::string folder = s.info.path.substr(0, s.info.path.rfind('/'));
  for (const std::string& entry : fs::list_dir(folder))
    if (entry.starts_with("libnvrtc-builtins.so")) ::dlopen((folder + "/" + entry).c_str(), RTLD_NOW | RTLD_LOCAL);
}

constinit Lazy<State, ForkMutex> lazy(ForkLayer::kJit, 3);
const State& state() { return lazy.get(open); }

void check_arch(const Api& api, const std::string& arch) {
  FI_CHECK(arch.starts_with("sm_") && arch.size() > 3 && arch[3] >= '0' && arch[3] <= '9', ValueError,
           "nvrtc: arch is \"", arch, "\", but must be like sm_80 or sm_90a");
  int n = 0;
  api.architectures_count(&n);
  std::vector<int> known(static_cast<size_t>(n));
  api.architectures(known.data());
  const int number = std::atoi(arch.c_str() + 3);
  if (std::find(known.begin(), known.end(), number) != known.end()) return;
  std::string list;
  for (const int k : known) list += (list.empty() ? "" : ", ") + std::to_string(k);
  throw ValueError(
      str("nvrtc: arch is ", arch, ", but this NVRTC (", nvrtc().major, ".", nvrtc().minor, ") knows ", list));
}

}  // namespace

const Nvrtc& nvrtc() { return state().info; }
void forget_nvrtc() { lazy.forget(); }

std::string nvrtc_compile_words(const std::string& source, const std::vector<std::string>& words, std::string& log) {
  const State& s = state();
  FI_CHECK(s.info.why_not.empty(), NotImplementedError, "nvrtc: ", s.info.why_not);
  std::vector<const char*> argv;
  for (const std::string& w : words) {
    argv.push_back(w.c_str());
    if (w.starts_with("--gpu-architecture=")) check_arch(s.api, w.substr(w.find('=') + 1));
  }
  Api::Program program = nullptr;
  int status = s.api.create(&program, source.c_str(), "kernel.cu", kHeaders, kHeaderTexts, kHeaderNames);
  FI_CHECK(status == 0, RuntimeError, "nvrtc: ", s.api.error(status));
  status = s.api.compile(program, static_cast<int>(argv.size()), argv.data());
  std::string image;
  size_t bytes = 0;
  if (s.api.log_size(program, &bytes) == 0) {
    log.resize(bytes);
    s.api.log(program, log.data());
    log.resize(std::min(log.size(), log.find('\0')));
  }
  if (status == 0) status = s.api.cubin_size(program, &bytes);
  if (status == 0) {
    image.resize(bytes);
    status = s.api.cubin(program, image.data());
  }
  s.api.destroy(&program);
  if (status == 0) return image;
  log = std::string(s.api.error(status)) + "\n" + log;
  return {};
}

std::string nvrtc_compile(const std::string& source, const std::string& arch, const std::string& headers,
                          const std::vector<std::string>& options) {
  std::vector<std::string> words = {"--gpu-architecture=" + arch, "--std=c++20", "--device-as-default-execution-space"};
  if (!headers.empty()) words.push_back("--include-path=" + headers);
  words.insert(words.end(), options.begin(), options.end());
  std::string log;
  const std::string image = nvrtc_compile_words(source, words, log);
  FI_CHECK(!image.empty(), RuntimeError, "nvrtc: compiling for ", arch, " failed: ", log);
  return image;
}

}  // namespace flashinfer::jit
