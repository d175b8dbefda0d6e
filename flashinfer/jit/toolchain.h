// SPDX-License-Identifier: Apache-2.0
// Compilers of kernels: the host's C++ compiler for CPU kernels and the emulator, NVRTC or nvcc for GPUs; their flags
// and targets.
#pragma once
#include <optional>
#include <span>
#include <string>
#include <vector>

#pragma GCC visibility push(default)

namespace flashinfer::jit {

/// Target of a kernel. `portable` is the architecture's baseline without -march: the fallback paths of
/// kernels/cpu/vec.h, for tests and old machines. `emu` is the CUDA emulator. GPUs follow from kCuda on, one for each
/// row of arch_table() (targets.h).
enum class Target { kNative, kX86V4Amx, kX86V4Bf16, kX86V4Vnni, kX86V4, kX86V3AvxVnni, kX86V3, kPortable, kEmu, kCuda };
/// Of CPU kernels, best first.
inline constexpr Target kTargets[] = {Target::kNative, Target::kX86V4Amx,     Target::kX86V4Bf16, Target::kX86V4Vnni,
                                      Target::kX86V4,  Target::kX86V3AvxVnni, Target::kX86V3,     Target::kPortable};
inline bool is_cpu(Target t) { return t < Target::kEmu; }
inline bool is_gpu(Target t) { return t >= Target::kCuda; }
/// kTargets, the emulator, every GPU.
const std::vector<Target>& all_targets();

const char* name(Target t);  // "native", "x86-64-v3", "x86-64-v4-bf16", "portable", "emu", "sm_90a"

/// An instruction set that precompiled kernels have code for: a level of x86-64, alone or with extensions.
struct CpuLevel {
  Target target;
  const char* name;                   // "x86-64-v4-vnni"
  std::vector<std::string> flags;     // of the compiler: -march and -m
  std::vector<std::string> features;  // that the CPU must have, as in /proc/cpuinfo but for '_'
  std::vector<std::string> macros;    // by which kernels ask for what this level adds to `extends`
  std::optional<Target> extends;      // the same -march with fewer extensions
  std::vector<Target> stand_ins;      // whose kernels run where these run, best first
};
/// Every level, each after the one it extends.
std::span<const CpuLevel> cpu_levels();
/// Null for `native`, `portable` and what is not a CPU.
const CpuLevel* find_level(Target t);
/// Throws ValueError that lists the names.
Target parse_target(const std::string& text);
/// FLASHINFER_CPU_ISA: the target of CPU kernels.
Target selected_target();
/// Why code for `t` cannot run on this CPU ("this CPU has no avx512f"); empty when it can.
std::string why_not_runnable(Target t);
/// Whether this process may use AMX tiles: the CPU has them for bf16, and Linux, which gives their registers (8 KB a
/// thread) on request, has granted them. Asks for them at the first call.
bool tiles_permitted();
/// Compiler flags of code for this CPU, without tiles where they are not granted.
std::vector<std::string> native_flags();
/// Whether kernels for `t` multiply on them here; AddressSanitizer's do not (kernels/cpu/tile.h).
bool uses_tiles(Target t);
/// Identifies this CPU for -march=native: family, model and feature words of CPUID, in hex.
const std::string& cpu_features();

enum class Maker { kHost, kNvrtc, kNvcc };

struct Toolchain {
  Maker maker = Maker::kHost;
  std::vector<std::string> command;  // launcher and compiler, the compiler's path absolute
  std::string compiler;              // its path
  std::string identity;              // "path size mtime" of each program in `command`, obtained without a subprocess
  std::string why_not;               // why there is none: "no C++ compiler: looked for c++, g++, clang++ on PATH"
};
/// FLASHINFER_CXX, CXX, then c++, g++, clang++ on PATH (compiler caches such as ccache are skipped there: their
/// identity does not identify the compiler). Cached until forget_toolchain().
Toolchain host_toolchain();
/// NVRTC, or with FLASHINFER_TOOLCHAIN=nvcc the nvcc of FLASHINFER_NVCC, CUDA_HOME, CUDA_PATH or PATH.
Toolchain cuda_toolchain();
/// The compiler of kernels for `t`.
inline Toolchain toolchain_for(Target t) { return is_gpu(t) ? cuda_toolchain() : host_toolchain(); }
void forget_toolchain();

/// Compiler flags, without input, output and include folder, with the sanitizers of the library's own build and
/// FLASHINFER_EXTRA_CFLAGS; linker flags go after the source file.
struct Flags {
  std::vector<std::string> compile, link;
};
Flags kernel_flags(Target t);
/// Of the guarded form that an artifact of the emulator has beside it (kernels/emu/guarded.h); other targets have none.
std::optional<Flags> guarded_flags(Target t);

}  // namespace flashinfer::jit

#pragma GCC visibility pop
