// SPDX-License-Identifier: Apache-2.0
// What this CPU runs: the levels of instruction sets that kernels are precompiled for, and its identity.
#if defined(__x86_64__)
#include <cpuid.h>
#include <sys/syscall.h>
#include <unistd.h>
#endif

#include <cstdio>

#include "flashinfer/core/check.h"
#include "flashinfer/core/env.h"
#include "flashinfer/core/fs.h"
#include "flashinfer/core/once.h"
#include "flashinfer/core/version.h"
#include "flashinfer/jit/source.h"
#include "flashinfer/jit/toolchain.h"

namespace flashinfer::jit {
namespace {

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

std::vector<std::string> native_flags() {
#if defined(__x86_64__)
  if (has_tiles() && !tiles_permitted()) return {"-march=native", "-mno-amx-tile", "-mno-amx-bf16"};
  return {"-march=native"};
#else
  return {"-mcpu=native"};
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

}  // namespace flashinfer::jit
