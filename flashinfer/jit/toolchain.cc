// SPDX-License-Identifier: Apache-2.0
#include "flashinfer/jit/toolchain.h"

#if defined(__x86_64__)
#include <cpuid.h>
#include <sys/syscall.h>
#include <unistd.h>
#endif

#include <cstdio>
#include <mutex>
#include <optional>

#include "flashinfer/core/check.h"
#include "flashinfer/core/env.h"
#include "flashinfer/core/fs.h"
#include "flashinfer/core/once.h"
#include "flashinfer/core/process.h"
#include "flashinfer/core/version.h"
#include "flashinfer/jit/cuda_load.h"
#include "flashinfer/jit/locks.h"
#include "flashinfer/jit/nvrtc.h"
#include "flashinfer/jit/source.h"
#include "flashinfer/jit/targets.h"

namespace flashinfer::jit {
namespace {

std::optional<Toolchain> remembered, remembered_cuda, remembered_nvcc;

std::string feature_words() {
#if defined(__x86_64__)
  std::string text;
  // Leaf 1 without EBX (the number of the core that ran it) and with model and stepping, which choose the tuning.
  constexpr struct {
    unsigned leaf, sub;
    bool a, b;
  } kLeaves[] = {{1, 0, true, false}, {7, 0, false, true}, {7, 1, true, true}, {0x80000001u, 0, false, false}};
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

#if defined(__x86_64__)
bool has_tiles() {
  unsigned a = 0, b = 0, c = 0, d = 0;
  constexpr unsigned kBf16AndTiles = 1u << 22 | 1u << 24;
  return __get_cpuid_count(7, 0, &a, &b, &c, &d) != 0 && (d & kBf16AndTiles) == kBf16AndTiles;
}

/// Those of `features` that this CPU and its operating system have. The builtin takes literals only.
bool has_feature(const std::string& feature) {
  __builtin_cpu_init();
  if (feature == "amx-bf16") return tiles_permitted();
#define FI_HAS(word) \
  if (feature == word) return __builtin_cpu_supports(word) != 0
  FI_HAS("avx2");
  FI_HAS("fma");
  FI_HAS("bmi2");
  FI_HAS("avx512f");
  FI_HAS("avx512bw");
  FI_HAS("avx512dq");
  FI_HAS("avx512vl");
  FI_HAS("avx512cd");
  FI_HAS("avx512vnni");
  FI_HAS("avx512vbmi");
  FI_HAS("avx512bf16");
  FI_HAS("avxvnni");
#undef FI_HAS
  throw InternalError("no test for the CPU feature " + feature);
}
#endif

std::vector<CpuLevel> make_levels() {
  const std::vector<std::string> v3 = {"avx2", "fma", "bmi2"};
  std::vector<std::string> v4 = v3, vnni, bf16, amx;
  v4.insert(v4.end(), {"avx512f", "avx512bw", "avx512dq", "avx512vl", "avx512cd"});
  vnni = v4, vnni.insert(vnni.end(), {"avx512vnni", "avx512vbmi"});
  bf16 = vnni, bf16.push_back("avx512bf16");
  amx = bf16, amx.push_back("amx-bf16");
  std::vector<std::string> avx_vnni = v3;
  avx_vnni.push_back("avxvnni");
  using enum Target;
  return {
      {kX86V3, "x86-64-v3", {"-march=x86-64-v3"}, v3, {}, {}, {kPortable}},
      {kX86V3AvxVnni,
       "x86-64-v3-avxvnni",
       {"-march=x86-64-v3", "-mavxvnni"},
       avx_vnni,
       {"__AVXVNNI__"},
       kX86V3,
       {kX86V3, kPortable}},
      {kX86V4, "x86-64-v4", {"-march=x86-64-v4"}, v4, {}, {}, {kX86V3, kPortable}},
      {kX86V4Vnni,
       "x86-64-v4-vnni",
       {"-march=x86-64-v4", "-mavx512vnni", "-mavx512vbmi"},
       vnni,
       {"__AVX512VNNI__", "__AVX512VBMI__"},
       kX86V4,
       {kX86V4, kX86V3, kPortable}},
      {kX86V4Bf16,
       "x86-64-v4-bf16",
       {"-march=x86-64-v4", "-mavx512vnni", "-mavx512vbmi", "-mavx512bf16"},
       bf16,
       {"__AVX512BF16__"},
       kX86V4Vnni,
       {kX86V4Vnni, kX86V4, kX86V3, kPortable}},
      {kX86V4Amx,
       "x86-64-v4-amx",
       {"-march=x86-64-v4", "-mavx512vnni", "-mavx512vbmi", "-mavx512bf16", "-mamx-tile", "-mamx-bf16"},
       amx,
       {"__AMX_BF16__"},
       kX86V4Bf16,
       {kX86V4Bf16, kX86V4Vnni, kX86V4, kX86V3, kPortable}},
  };
}

}  // namespace

std::span<const CpuLevel> cpu_levels() {
  static constinit Once<const std::vector<CpuLevel>> levels;
  return levels.get(make_levels);
}

const CpuLevel* find_level(Target t) {
  for (const CpuLevel& level : cpu_levels())
    if (level.target == t) return &level;
  return nullptr;
}

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

std::string why_not_runnable(Target t) {
  const CpuLevel* const level = find_level(t);
  if (level == nullptr) return {};
#if defined(__x86_64__)
  for (const std::string& feature : level->features)
    if (!has_feature(feature)) return "this CPU has no " + feature;
  return {};
#else
  return "this CPU is not an x86-64";
#endif
}

bool tiles_permitted() {
#if defined(__x86_64__) && defined(__linux__)
  constexpr long kRequestPermission = 0x1023, kTileData = 18;  // ARCH_REQ_XCOMP_PERM, XFEATURE_XTILEDATA
  static constinit Once<const bool> permitted;
  return permitted.get([] { return has_tiles() && ::syscall(SYS_arch_prctl, kRequestPermission, kTileData) == 0; });
#else
  return false;
#endif
}

bool uses_tiles(Target t) {
  const bool sanitized = std::string_view(build::sanitizer_flags()).find("address") != std::string_view::npos;
  return (t == Target::kNative || t == Target::kX86V4Amx) && !sanitized && tiles_permitted();
}

const std::string& cpu_features() {
  static constinit Once<const std::string> words;
  return words.get(feature_words);
}

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
Flags emulator_flags() {
  Flags f;
  f.compile = {"-std=c++20",
               "-O2",
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
               "-w",
               "-fsanitize=thread",
               "-nodefaultlibs",
               "-DFI_EMU=1"};
  if (host_toolchain().compiler.find("clang") == std::string::npos)
    add(f.compile, {"-fno-store-merging", "--param=tsan-instrument-func-entry-exit=0", "-fsanitize=bounds-strict"});
  else
    add(f.compile, {"-mllvm", "-tsan-instrument-func-entry-exit=0", "-fsanitize=array-bounds"});
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

Flags kernel_flags(Target t) {
  if (t == Target::kEmu) return emulator_flags();
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
#if defined(__x86_64__)
  if (t == Target::kNative) f.compile.push_back("-march=native");
  if (t == Target::kNative && has_tiles() && !tiles_permitted()) add(f.compile, {"-mno-amx-tile", "-mno-amx-bf16"});
  if (const CpuLevel* const level = find_level(t)) add(f.compile, level->flags);
#else
  if (t == Target::kNative) f.compile.push_back("-mcpu=native");
#endif
  add(f.compile, process::split_words(build::sanitizer_flags()));
  add(f.compile, process::split_words(env::text("FLASHINFER_EXTRA_CFLAGS")));
  f.link = process::split_words(env::text("FLASHINFER_EXTRA_LDFLAGS"));
  return f;
}

}  // namespace flashinfer::jit
