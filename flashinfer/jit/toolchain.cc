// SPDX-License-Identifier: Apache-2.0
#include "flashinfer/jit/toolchain.h"

#if defined(__x86_64__)
#include <cpuid.h>
#endif

#include <cstdio>
#include <mutex>
#include <optional>

#include "flashinfer/core/check.h"
#include "flashinfer/core/env.h"
#include "flashinfer/core/fs.h"
#include "flashinfer/core/process.h"
#include "flashinfer/core/version.h"
#include "flashinfer/jit/source.h"

namespace flashinfer::jit {
namespace {

std::mutex mutex;
std::optional<Toolchain> remembered;

std::string feature_words() {
#if defined(__x86_64__)
  std::string text;
  // Leaf 1 without EBX (the number of the core that ran it) and with model and stepping, which choose the tuning.
  constexpr struct { unsigned leaf, sub; bool a, b; } kLeaves[] = {
      {1, 0, true, false}, {7, 0, false, true}, {7, 1, true, true}, {0x80000001u, 0, false, false}};
  for (const auto& l : kLeaves) {
    unsigned a = 0, b = 0, c = 0, d = 0;
    __get_cpuid_count(l.leaf, l.sub, &a, &b, &c, &d);
    char words[64];
    std::snprintf(words, sizeof(words), "%x.%x.%x.%x ", l.a ? a : 0, l.b ? b : 0, c, d);
    text += words;
  }
  return text;
#else
  // Architectures without CPUID: the kernel's description of one core.
  const std::string info = fs::read_file("/proc/cpuinfo").value_or("");
  return hash_hex(info.substr(0, info.find("\n\n")));
#endif
}

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

/// Sanitized builds need the runtime of the compiler that built the library.
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
      none.refusal = str("no C++ compiler: ", variable, " is \"", text, "\", which is not an executable file");
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
  none.refusal = "no C++ compiler: looked for " + looked_for + " on PATH (install g++ or set FLASHINFER_CXX)";
  return none;
}

#if defined(__x86_64__)
/// The features of a level that decide in practice, named as in /proc/cpuinfo.
std::string missing_for(Target t) {
  __builtin_cpu_init();
#define FI_NEED(feature) \
  if (!__builtin_cpu_supports(feature)) return "this CPU has no " feature
  FI_NEED("avx2");
  FI_NEED("fma");
  FI_NEED("bmi2");
  if (t == Target::kX86V3) return {};
  FI_NEED("avx512f");
  FI_NEED("avx512bw");
  FI_NEED("avx512dq");
  FI_NEED("avx512vl");
  FI_NEED("avx512cd");
#undef FI_NEED
  return {};
}
#endif

}  // namespace

const char* name(Target t) {
  switch (t) {
    case Target::kNative: return "native";
    case Target::kX86V3: return "x86-64-v3";
    case Target::kX86V4: return "x86-64-v4";
    case Target::kPortable: return "portable";
  }
  return "?";
}

Target parse_target(const std::string& text) {
  for (const Target t : kTargets)
    if (text == name(t)) return t;
  throw ValueError(str("target is \"", text, "\", but must be native, x86-64-v3, x86-64-v4 or portable"));
}

Target selected_target() { return parse_target(env::text("FLASHINFER_CPU_TARGET")); }

std::string target_refusal(Target t) {
  if (t == Target::kNative || t == Target::kPortable) return {};
#if defined(__x86_64__)
  return missing_for(t);
#else
  return "this CPU is not an x86-64";
#endif
}

const std::string& cpu_features() {
  static const std::string& words = *new std::string(feature_words());
  return words;
}

Toolchain host_toolchain() {
  const std::lock_guard lock(mutex);
  if (!remembered) remembered = find_toolchain();
  return *remembered;
}

void forget_toolchain() {
  const std::lock_guard lock(mutex);
  remembered.reset();
}

Flags kernel_flags(Target t) {
  // Values depend on the source alone: no -ffast-math, and no contraction of a*b+c that the source did not ask for, because
  // it differs between the vector body and the tail of a loop. The two flags that let loops with sqrt or a condition be
  // vectorised change no value.
  Flags f;
  f.compile = {"-std=c++20", "-fPIC", "-shared", "-fvisibility=hidden", "-fno-exceptions", "-fno-rtti",
               "-ffp-contract=off", "-fno-math-errno", "-fno-trapping-math", "-w"};
  const auto add = [](std::vector<std::string>& to, const std::vector<std::string>& more) {
    to.insert(to.end(), more.begin(), more.end());
  };
  // Under sanitizers -O1: an attention kernel then compiles in 2.2 s instead of 20 s (g++ 12), and its checks are the same.
  const bool sanitized = build::sanitizer_flags()[0] != '\0';
  add(f.compile, env::flag("FLASHINFER_JIT_DEBUG") ? std::vector<std::string>{"-O0", "-g"}
                                                   : std::vector<std::string>{sanitized ? "-O1" : "-O3", "-DNDEBUG"});
#if defined(__x86_64__)
  if (t != Target::kPortable) f.compile.push_back(std::string("-march=") + name(t));
#else
  if (t == Target::kNative) f.compile.push_back("-mcpu=native");
#endif
  add(f.compile, process::split_words(build::sanitizer_flags()));
  add(f.compile, process::split_words(env::text("FLASHINFER_EXTRA_CFLAGS")));
  f.link = process::split_words(env::text("FLASHINFER_EXTRA_LDFLAGS"));
  return f;
}

}  // namespace flashinfer::jit
