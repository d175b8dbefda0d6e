// SPDX-License-Identifier: Apache-2.0
// Runs the planted kernels.
#pragma once
#include <dlfcn.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "flashinfer/kernels/emu/emu.h"
#include "kernels/params.h"
#include "test_paths.h"

namespace flashinfer::emu {

struct Planted {
  std::vector<float> in = std::vector<float>(kWords), out = std::vector<float>(kWords);
  std::vector<uint32_t> counter = std::vector<uint32_t>(kWords);
  static constexpr size_t kWords = 4096, kFirst = 1024;  // what kernels see begins at kFirst: the rest is red zone
  int64_t n = 1000;

  Planted() {
    for (size_t i = 0; i < kWords; ++i) in[i] = static_cast<float>(i % 17) - 8.0f;
    ranges = {range(in.data()), range(out.data()), {counter.data(), 4}};
    std::sort(ranges.begin(), ranges.end(), [](const Range& a, const Range& b) { return a.begin < b.begin; });
  }
  float* first(std::vector<float>& v) const {  // 16-byte aligned
    const uintptr_t at = reinterpret_cast<uintptr_t>(v.data() + kFirst);
    return reinterpret_cast<float*>((at + 15) & ~uintptr_t{15});
  }
  Range range(float* data) { return {first(data == in.data() ? in : out), static_cast<size_t>(n) * 4}; }

  Report run(const char* name, const cuda::Launch& launch, uint64_t seed, bool count = false) {
    void* module = ::dlopen(module_file, RTLD_NOW | RTLD_LOCAL);  // the loader keeps it
    if (module == nullptr) throw std::runtime_error(::dlerror());
    reinterpret_cast<void (*)(void*)>(::dlsym(module, "flashinfer_emu_bind"))(hooks());
    auto* kernel = reinterpret_cast<void (*)(const void*)>(::dlsym(module, name));
    if (kernel == nullptr) throw std::runtime_error(std::string("no kernel ") + name);
    const PlantedParams p{first(in), first(out), counter.data(), n};
    options.seed = seed, options.count = count, options.memory = ranges;
    return emu::run(kernel, &p, sizeof(p), launch, options);
  }
  /// Nothing has written `out` yet.
  void forget_output() {
    std::fill_n(reinterpret_cast<uint8_t*>(first(out)), n * 4, uint8_t{0xff});
    written.assign(static_cast<size_t>(n) / 2 + 1, 0);
    for (Range& r : ranges)
      if (r.begin == first(out)) r.written = written.data();
  }
  Options options;
  std::vector<uint8_t> written;
  const char* module_file = FI_TEST_LIBRARY("libemu_planted");
  std::vector<Range> ranges;
};

inline cuda::Launch launch(unsigned blocks, unsigned threads, unsigned shared_bytes, unsigned cluster = 1,
                           bool cooperative = false) {
  return {{blocks, 1, 1}, {threads, 1, 1}, {cluster, 1, 1}, shared_bytes, cooperative, false};
}

/// A launch that may start before the kernel in front has ended.
inline cuda::Launch behind(cuda::Launch l) {
  l.pdl = true;
  return l;
}

/// The kernel bug_NAME, and right_NAME without the bug.
struct Bug {
  const char* name;
  cuda::Launch launch;
  const char* says;  // a part of the report
};
inline constexpr uint64_t kSeeds[] = {0, 1, 2, 3};

/// Not found where clang compiles the kernels: an array of constants that is only read becomes constant memory, and two
/// barriers at the ends of two branches become one.
#if defined(__clang__)
inline constexpr std::string_view kMissed[] = {"walking_by_number", "wide_load_of_local", "through_pointer",
                                               "diverged_barrier"};
#else
inline constexpr std::array<std::string_view, 0> kMissed{};
#endif

/// Every bug is found under every schedule, with a line of `file`.
template <class P>
void expect_found(std::span<const Bug> bugs, const char* file) {
  for (const Bug& b : bugs) {
    if (std::ranges::find(kMissed, b.name) != std::end(kMissed)) continue;
    for (const uint64_t seed : kSeeds) {
      const Report r = P().run((std::string("bug_") + b.name).c_str(), b.launch, seed);
      EXPECT_NE(r.error.find(b.says), std::string::npos)
          << b.name << ", seed " << seed << ": " << (r.error.empty() ? "nothing found" : r.error);
      EXPECT_NE(r.error.find(file), std::string::npos) << b.name << " names no line: " << r.error;
    }
  }
}

}  // namespace flashinfer::emu
