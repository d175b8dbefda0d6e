// SPDX-License-Identifier: Apache-2.0
#include "flashinfer/jit/targets.h"

#include <algorithm>
#include <sstream>
#include <utility>

#include "flashinfer/core/check.h"
#include "flashinfer/core/cuda/device.h"
#include "flashinfer/core/env.h"

namespace flashinfer::jit {
namespace {

constexpr Arch kArchs[] = {
    // name, number, suffix, compiler, async_copy, fp8_mma, clusters, wgmma, tensor_memory, block_scaled_mma,
    // shared_bytes
    {"sm_75", 75, 0, 12000, false, false, false, false, false, false, 65536},
    {"sm_80", 80, 0, 12000, true, false, false, false, false, false, 166912},
    {"sm_86", 86, 0, 12000, true, false, false, false, false, false, 101376},
    {"sm_89", 89, 0, 12000, true, true, false, false, false, false, 101376},
    {"sm_90", 90, 0, 12000, true, true, true, false, false, false, 232448},
    {"sm_90a", 90, 'a', 12000, true, true, true, true, false, false, 232448},
    {"sm_100a", 100, 'a', 12080, true, true, true, false, true, false, 232448},
    {"sm_100f", 100, 'f', 12090, true, true, true, false, true, false, 232448},
    {"sm_103a", 103, 'a', 12090, true, true, true, false, true, false, 232448},
    {"sm_103f", 103, 'f', 12090, true, true, true, false, true, false, 232448},
    {"sm_110a", 110, 'a', 13000, true, true, true, false, true, false, 232448},
    {"sm_110f", 110, 'f', 13000, true, true, true, false, true, false, 232448},
    {"sm_120a", 120, 'a', 12080, true, true, true, false, false, true, 101376},
    {"sm_120f", 120, 'f', 12090, true, true, true, false, false, true, 101376},
    {"sm_121a", 121, 'a', 12090, true, true, true, false, false, true, 101376},
    {"sm_121f", 121, 'f', 12090, true, true, true, false, false, true, 101376},
};

thread_local int emulated = 90;

Target target_at(size_t row) { return static_cast<Target>(static_cast<size_t>(Target::kCuda) + row); }

/// Rank of code for `a` on a GPU that runs it: suffixes enable features; among equals the nearest.
int rank(const Arch& a) { return a.number * 4 + (a.suffix == 'a' ? 2 : a.suffix == 'f' ? 1 : 0); }

Target parse_arch(const std::string& word) {
  std::string digits, suffix;
  for (const char c : word) {
    if (c >= '0' && c <= '9')
      digits += c;
    else if (c == 'a' || c == 'f')
      suffix += c;
  }
  const bool shape = word.find('.') != word.npos && word.find('.') + 2 <= word.size() && suffix.size() <= 1 &&
                     digits.size() + suffix.size() + 1 == word.size() && digits.size() >= 2;
  const int number = shape ? std::stoi(digits.substr(0, 6)) : 0;
  if (suffix.empty() && number >= 90) suffix = number == 120 ? "f" : "a";
  std::string known;
  for (size_t i = 0; i < std::size(kArchs); ++i) {
    const Arch& a = kArchs[i];
    if (shape && a.number == number && std::string(1, a.suffix).substr(0, a.suffix != 0) == suffix) return target_at(i);
    known += str(i ? ", " : "", a.number / 10, ".", a.number % 10) + (a.suffix ? std::string(1, a.suffix) : "");
  }
  throw ValueError(
      str("FLASHINFER_CUDA_ARCH_LIST holds \"", word, "\", but must be a blank separated list of ", known));
}

}  // namespace

std::span<const Arch> arch_table() { return kArchs; }

const Arch& arch_of(Target t) {
  const size_t row = static_cast<size_t>(t) - static_cast<size_t>(Target::kCuda);
  FI_CHECK(is_gpu(t) && row < std::size(kArchs), InternalError, name(t), " is no GPU");
  return kArchs[row];
}

const Arch& arch_of_number(int number) {
  const Arch* best = &kArchs[0];
  for (const Arch& a : kArchs)
    if (a.number <= number && a.number > best->number) best = &a;
  return *best;
}

bool runs_on(Target t, int major, int minor) {
  if (!is_gpu(t)) return false;
  const Arch& a = arch_of(t);
  const int number = 10 * major + minor;
  if (a.suffix == 'a') return number == a.number;
  return number / 10 == a.number / 10 && number >= a.number;
}

std::vector<Target> targets_for(int major, int minor, std::span<const Target> allowed) {
  std::vector<Target> list;
  for (size_t i = 0; i < std::size(kArchs); ++i) {
    const Target t = target_at(i);
    if (runs_on(t, major, minor) && (allowed.empty() || std::ranges::count(allowed, t))) list.push_back(t);
  }
  std::ranges::sort(list, [](Target a, Target b) { return rank(arch_of(a)) > rank(arch_of(b)); });
  return list;
}

std::vector<Target> parse_arch_list(const std::string& text) {
  std::vector<Target> list;
  std::istringstream words(text);
  for (std::string w; words >> w;) list.push_back(parse_arch(w));
  return list;
}

std::vector<Target> arch_list() { return parse_arch_list(env::text("FLASHINFER_CUDA_ARCH_LIST")); }

int arch_number(Device device) {
  if (device.type != DeviceType::kCUDA) return emulated;
  const cuda::DeviceInfo& i = cuda::device_info(device.index);
  return 10 * i.major + i.minor;
}

EmulatedArch::EmulatedArch(int number) : previous_(std::exchange(emulated, number)) {}
EmulatedArch::~EmulatedArch() { emulated = previous_; }

}  // namespace flashinfer::jit
