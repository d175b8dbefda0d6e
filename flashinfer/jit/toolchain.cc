// SPDX-License-Identifier: Apache-2.0
#include "flashinfer/jit/toolchain.h"

#include <cstdio>
#include <mutex>
#include <optional>

#include "flashinfer/core/check.h"
#include "flashinfer/core/env.h"
#include "flashinfer/core/fs.h"
#include "flashinfer/core/hex.h"
#include "flashinfer/core/once.h"
#include "flashinfer/core/process.h"
#include "flashinfer/core/version.h"
#include "flashinfer/jit/cuda_load.h"
#include "flashinfer/jit/locks.h"
#include "flashinfer/jit/nvrtc.h"
#include "flashinfer/jit/source.h"
#include "flashinfer/jit/targets.h"
#include "flashinfer/kernels/emu/api.h"

namespace flashinfer::jit {
namespace {

std::optional<Toolchain> remembered, remembered_cuda, remembered_nvcc;

Toolchain with_launcher(std::vector<std::string> words, const std::string& search_path) {
  Toolchain t;
  t.compiler = words[0];
  auto launcher = process::split_words(env::text("FLASHINFER_CXX_LAUNCHER"));
  words.insert(words.begin(), launcher.begin(), launcher.end());
  for (std::string& word : words) {
    const std::string path = word.starts_with('-') ? std::string() : process::find_executable(word, search_path);
    const auto id = path.empty() ? std::nullopt : fs::file_id(path);
    if (!id) continue;
    word = path;
    t.identity += str(path, " ", id->bytes, " ", id->mtime_ns, "\n");
  }
  t.command = words;
  return t;
}

/// Compiler names to search. Sanitized builds need the runtime of the compiler that built the library.
std::vector<std::string> usual_names() {
  std::vector<std::string> names = {"c++", "g++", "clang++"};
  if (build::sanitizer_flags()[0] == '\0') return names;
  const std::string built_by = build::compiler();
  const std::string major = built_by.substr(built_by.find(' ') + 1, built_by.find('.') - built_by.find(' ') - 1);
  if (built_by.starts_with("Clang")) return {"clang++-" + major, "clang++"};
  return {"g++-" + major, "g++", "c++"};
}

Toolchain find_toolchain() {
  const std::string search_path = env::text("PATH");
  for (const char* variable : {"FLASHINFER_CXX", "CXX"}) {
    const std::string text = env::text(variable);
    // A path with blanks, or a command with options.
    auto words = fs::is_file(text) ? std::vector<std::string>{text} : process::split_words(text);
    if (words.empty()) continue;
    const std::string path = process::find_executable(words[0], search_path);
    if (path.empty()) {
      Toolchain none;
      none.why_not = str("no C++ compiler: ", variable, " is \"", text, "\", which is not an executable file");
      return none;
    }
    words[0] = path;
    return with_launcher(words, search_path);
  }
  const auto is_compiler = [](const std::string& path) {
    const std::string real = fs::canonical(path);
    const std::string base = real.substr(real.rfind('/') + 1);
    return base != "ccache" && base != "sccache" && base != "distcc" && base != "icecc";
  };
  std::string looked_for;
  for (const std::string& candidate : usual_names()) {
    const std::string path = process::find_executable(candidate, search_path, is_compiler);
    if (!path.empty()) return with_launcher({path}, search_path);
    looked_for += (looked_for.empty() ? "" : ", ") + candidate;
  }
  Toolchain none;
  none.why_not = "no C++ compiler: looked for " + looked_for + " on PATH (install g++ or set FLASHINFER_CXX)";
  return none;
}

/// NVRTC has no program: the command is the equivalent of nvcc, for readers of an artifact.
Toolchain find_nvrtc() {
  Toolchain t;
  t.maker = Maker::kNvrtc;
  t.why_not = nvrtc().why_not;
  if (!t.why_not.empty()) return t;
  t.compiler = nvrtc().path;
  t.command = {"nvcc", "-cubin"};
  const auto id = fs::file_id(t.compiler);
  t.identity = str("nvrtc ", nvrtc().major, ".", nvrtc().minor, " ", id ? id->bytes : 0, "\n");
  return t;
}

Toolchain find_nvcc() {
  std::string looked_for;
  const std::string set = env::text("FLASHINFER_NVCC");
  std::vector<std::string> places = {set};
  if (set.empty()) {
    places.clear();
    for (const char* home : {"CUDA_HOME", "CUDA_PATH"})
      if (const std::string folder = env::text(home); !folder.empty()) places.push_back(folder + "/bin/nvcc");
    places.insert(places.end(), {"nvcc", "/usr/local/cuda/bin/nvcc"});
  }
  for (const std::string& place : places) {
    const std::string path = process::find_executable(place, env::text("PATH"));
    looked_for += (looked_for.empty() ? "" : ", ") + place;
    if (path.empty()) continue;
    Toolchain t = with_launcher({path}, env::text("PATH"));
    t.maker = Maker::kNvcc;
    return t;
  }
  Toolchain none;
  none.maker = Maker::kNvcc;
  none.why_not = "no nvcc: looked for " + looked_for +
                 " (set FLASHINFER_NVCC or CUDA_HOME, or leave FLASHINFER_TOOLCHAIN at nvrtc)";
  return none;
}

}  // namespace

const char* name(Target t) {
  switch (t) {
    case Target::kNative: return "native";
    case Target::kPortable: return "portable";
    case Target::kEmu: return "emu";
    default: break;
  }
  const CpuLevel* const level = find_level(t);
  return level != nullptr ? level->name : arch_of(t).name;
}

const std::vector<Target>& all_targets() {
  static constinit Once<const std::vector<Target>> list;
  return list.get([] {
    std::vector<Target> all(std::begin(kTargets), std::end(kTargets));
    all.push_back(Target::kEmu);
    for (size_t i = 0; i < arch_table().size(); ++i)
      all.push_back(static_cast<Target>(static_cast<size_t>(Target::kCuda) + i));
    return all;
  });
}

Target parse_target(const std::string& text) {
  std::string known;
  for (const Target t : all_targets()) {
    if (text == name(t)) return t;
    known += (known.empty() ? "" : ", ") + std::string(name(t));
  }
  throw ValueError(str("target is \"", text, "\", but must be one of ", known));
}

Target selected_target() { return parse_target(env::text("FLASHINFER_CPU_ISA")); }

Toolchain host_toolchain() {
  const std::lock_guard lock(g_toolchain_mutex);
  if (!remembered) remembered = find_toolchain();
  return *remembered;
}

Toolchain cuda_toolchain() {
  const std::lock_guard lock(g_toolchain_mutex);
  if (!remembered_cuda) remembered_cuda = env::text("FLASHINFER_TOOLCHAIN") == "nvcc" ? find_nvcc() : find_nvrtc();
  return *remembered_cuda;
}

Toolchain nvcc_toolchain() {
  const std::lock_guard lock(g_toolchain_mutex);
  if (!remembered_nvcc) remembered_nvcc = find_nvcc();
  return *remembered_nvcc;
}

void forget_toolchain() {
  const std::lock_guard lock(g_toolchain_mutex);
  remembered.reset();
  remembered_cuda.reset();
  remembered_nvcc.reset();
}

namespace {

void add(std::vector<std::string>& to, const std::vector<std::string>& more) {
  to.insert(to.end(), more.begin(), more.end());
}

/// The emulator sees every access through calls that -fsanitize=thread inserts; their bodies are in the artifact, and
/// no sanitizer runtime is linked (-nodefaultlibs), however the library was built. -fsanitize=bounds does the same for
/// indices of local arrays, which may be in registers. Merged or vectorised accesses would
/// hide what a thread does.
///
/// `guarded`: the form with red zones around local variables (kernels/emu/hooks.h), which only looks for accesses that
/// leave one: -O1 compiles faster, and keeps more of them in memory.
Flags emulator_flags(bool guarded) {
  Flags f;
  f.compile = {"-std=c++20",
               guarded ? "-O1" : "-O2",
               "-g1",
               "-fPIC",
               "-shared",
               "-fvisibility=hidden",
               "-fno-exceptions",
               "-fno-rtti",
               "-ffp-contract=off",
               "-fno-tree-vectorize",
               "-fno-tree-slp-vectorize",
               "-fno-optimize-sibling-calls",
               "-fno-strict-aliasing",
               "-fno-finite-loops",                // a loop that never ends stays: C++ allows to leave it out
               "-ftrivial-auto-var-init=pattern",  // a local variable that is never set: far-off results, not luck
               "-w",
               "-nodefaultlibs",
               "-DFI_EMU=1"};
  const bool clang = host_toolchain().compiler.find("clang") != std::string::npos;
  if (clang)
    add(f.compile, {"-fsanitize=array-bounds,object-size"});
  else
    add(f.compile, {"-fno-store-merging", "-fsanitize=bounds-strict,object-size"});
  if (guarded) {
    const std::string offset = hex(emu::kStackShadow);
    add(f.compile, {"-DFI_EMU_GUARDED=1", "-fsanitize=kernel-address", "-fsanitize-address-use-after-scope"});
    if (clang)
      add(f.compile,
          {"-mllvm", "-asan-mapping-offset=" + offset, "-mllvm", "-asan-stack=1", "-mllvm", "-asan-globals=0", "-mllvm",
           "-asan-use-after-scope=1", "-mllvm", "-asan-instrumentation-with-call-threshold=0"});
    else
      add(f.compile, {"-fasan-shadow-offset=" + offset, "--param=asan-stack=1", "--param=asan-globals=0",
                      "--param=asan-instrumentation-with-call-threshold=0"});
  } else {
    add(f.compile, {"-fsanitize=thread"});
    if (clang)
      add(f.compile, {"-mllvm", "-tsan-instrument-func-entry-exit=0"});
    else
      add(f.compile, {"--param=tsan-instrument-func-entry-exit=0"});
  }
  f.link = {"-lm", "-lc", "-lgcc"};
  return f;
}

Flags gpu_flags(Target t) {
  Flags f;
  const bool nvcc = cuda_toolchain().maker == Maker::kNvcc;
  f.compile = {std::string("--gpu-architecture=") + name(t), "--std=c++20", "--extra-device-vectorization"};
  if (nvcc)
    add(f.compile, {"-cubin", "-O3", "--expt-relaxed-constexpr"});
  else
    add(f.compile, {"--device-as-default-execution-space"});
  if (env::flag("FLASHINFER_JIT_LINEINFO")) f.compile.push_back("-lineinfo");
  if (env::flag("FLASHINFER_JIT_DEBUG")) f.compile.push_back("-G");
  add(f.compile, process::split_words(env::text("FLASHINFER_EXTRA_CUDAFLAGS")));
  return f;
}

}  // namespace

std::optional<Flags> guarded_flags(Target t) {
  return t == Target::kEmu ? std::optional(emulator_flags(true)) : std::nullopt;
}

Flags kernel_flags(Target t) {
  if (t == Target::kEmu) return emulator_flags(false);
  if (is_gpu(t)) return gpu_flags(t);
  // Results depend on the source alone: no -ffast-math, and no implicit contraction of a*b+c, because it differs
  // between the vector body and the tail of a loop. The two flags that allow vectorising loops with sqrt or a condition
  // change no value.
  Flags f;
  f.compile = {"-std=c++20",         "-fPIC",     "-shared",           "-fvisibility=hidden",
               "-fno-exceptions",    "-fno-rtti", "-ffp-contract=off", "-fno-math-errno",
               "-fno-trapping-math", "-w"};
  // Under sanitizers -O0, with the same checks: attention's decode kernel compiles in 1.5 s instead of 2.9 s at -O1
  // (g++ 12), and the rows of the case tables take as long to run, because the references take most of it.
  const bool sanitized = build::sanitizer_flags()[0] != '\0';
  add(f.compile, env::flag("FLASHINFER_JIT_DEBUG") ? std::vector<std::string>{"-O0", "-g"}
                                                   : std::vector<std::string>{sanitized ? "-O0" : "-O3", "-DNDEBUG"});
  if (t == Target::kNative) add(f.compile, native_flags());
  if (const CpuLevel* const level = find_level(t)) add(f.compile, level->flags);
  add(f.compile, process::split_words(build::sanitizer_flags()));
  add(f.compile, process::split_words(env::text("FLASHINFER_EXTRA_CFLAGS")));
  f.link = process::split_words(env::text("FLASHINFER_EXTRA_LDFLAGS"));
  return f;
}

}  // namespace flashinfer::jit
