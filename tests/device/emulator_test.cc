// SPDX-License-Identifier: Apache-2.0
// `emu` as a device: memory, launches, what the emulator finds as errors of a call, recordings that move to it and
// back.
#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <cstring>

#include "flashinfer/core/emu_memory.h"
#include "flashinfer/core/env.h"
#include "flashinfer/core/fs.h"
#include "flashinfer/core/transfer.h"
#include "flashinfer/jit/cache.h"
#include "flashinfer/jit/cuda.h"
#include "flashinfer/jit/emulator.h"
#include "flashinfer/jit/engine.h"
#include "flashinfer/jit/toolchain.h"
#include "flashinfer/kernels/emu/emu.h"
#include "flashinfer/ops/norm/op.h"
#include "flashinfer/record/record.h"
#include "flashinfer/replay/replay.h"
#include "test_paths.h"

namespace flashinfer {
namespace probe {
struct Config {
  int bug;  // 0: none, 1: one element too far, 2: a missing barrier, 3: past a local array
  int threads;
  static constexpr const char* kName = "probe::Config";
  template <class V>
  constexpr void visit(V&& v) const {
    v("bug", bug), v("threads", threads);
  }
  friend constexpr bool operator==(const Config&, const Config&) = default;
};
struct Params {
  const float* x;
  float* y;
  int64_t n;
};
}  // namespace probe
namespace {

constexpr Device kEmu{DeviceType::kEmu, 0};

constexpr const char* kHeader = R"(#pragma once
#include "flashinfer/kernels/cuda/cu.h"
namespace probe {
struct Config { int bug; int threads; };
struct Params { const float* x; float* y; int64_t n; };
/// y[i] = x[n - 1 - i], through shared memory: what one thread stores another loads.
template <Config C> FI_GLOBAL_FN void reverse(const Params& p) {
  using namespace flashinfer;
  float* s = reinterpret_cast<float*>(cu::shared());
  const int64_t i = cu::thread_x();
  if (i < p.n) s[i] = p.x[i];
  if constexpr (C.bug != 2) cu::sync_threads();
  if (i < p.n + (C.bug == 1)) p.y[i] = s[i < p.n ? p.n - 1 - i : 0];
  if (C.bug == 3 && i == 0) {
    float four[4] = {p.x[0], p.x[1], p.x[2], p.x[3]}, *at = four;
    for (int64_t k = 56; k < p.n; ++k) p.y[0] += *at++;
  }
}
}
)";
inline constexpr jit::Kernel kReverse{"probe/reverse.cuh", "probe::reverse", "probe::Params"};

class Emulator : public testing::Test {
 protected:
  void SetUp() override {
    root_ = fs::canonical(fs::make_temp_dir("/tmp", "flashinfer-emulator-test-"));
    fs::make_dirs(root_ + "/include/probe");
    fs::write_plain(root_ + "/include/probe/reverse.cuh", kHeader);
    ASSERT_EQ(::symlink(FI_TEST_SOURCE_ROOT "/flashinfer", (root_ + "/include/flashinfer").c_str()), 0);
    ::setenv("FLASHINFER_JIT_INCLUDE", (root_ + "/include").c_str(), 1);
    env::reload();
    jit::reset();
  }
  void TearDown() override {
    ::unsetenv("FLASHINFER_JIT_INCLUDE");
    env::reload();
    jit::reset();
    fs::remove_tree(root_);
  }
  /// Runs the probe with this bug; the message of what it throws.
  std::string reverse(int bug) try {
    const Tensor x = to_device(x_.view(), kEmu);
    y_ = Tensor::empty({kN}, DType::kF32, kEmu);
    const jit::CudaLoaded& k = jit::cuda_kernel<kReverse>(probe::Config{bug, 64}, kEmu);
    EXPECT_EQ(k.why_not, "");
    cuda::Launch l;
    l.block[0] = 64, l.shared_bytes = 256;
    jit::launch(k, probe::Params{x.data_as<float>(), y_.data_as<float>(), kN}, l);
    return {};
  } catch (const std::exception& e) {
    return e.what();
  }

  static constexpr int64_t kN = 61;
  std::string root_;
  Tensor x_ =
             [] {
               Tensor t = Tensor::empty({kN}, DType::kF32);
               for (float& v : t.span<float>()) v = static_cast<float>(&v - t.data_as<float>());
               return t;
             }(),
         y_;
};

TEST(EmulatorMemory, IsBetweenRedZonesAndStartsAsNaN) {
  const size_t before = emu_memory::ranges().size();
  {
    const Tensor t = Tensor::empty({3, 5}, DType::kF32, kEmu);
    EXPECT_EQ(reinterpret_cast<uintptr_t>(t.data()) % 256, 0u);
    for (const float v : t.span<float>()) EXPECT_TRUE(std::isnan(v));
    const auto ranges = emu_memory::ranges();
    ASSERT_EQ(ranges.size(), before + 1);
    EXPECT_TRUE(std::ranges::any_of(ranges, [&](const auto& r) { return r.begin == t.data() && r.bytes == 60; }));
    const Tensor z = Tensor::zeros({2}, DType::kF32, kEmu);
    EXPECT_EQ(z.span<float>()[1], 0.0f);
    EXPECT_EQ(Tensor::clone(z.view()).device(), kEmu);
  }
  EXPECT_EQ(emu_memory::ranges().size(), before);
}

TEST(EmulatorMemory, GoesThroughDlpackAsItself) {
  const Tensor t = Tensor::zeros({2, 3}, DType::kF16, kEmu);
  const Tensor back = Tensor::from_dlpack(t.to_dlpack());
  EXPECT_EQ(back.device(), kEmu);
  EXPECT_EQ(back.data(), t.data());
}

TEST_F(Emulator, RunsAKernel) {
  EXPECT_EQ(reverse(0), "");
  for (int64_t i = 0; i < kN; ++i) EXPECT_EQ(y_.data_as<float>()[i], static_cast<float>(kN - 1 - i)) << i;
  const auto modules = jit::modules();
  ASSERT_EQ(modules.size(), 1u);
  EXPECT_EQ(modules[0].target, "emu");
  EXPECT_EQ(modules[0].text, "probe.reverse{bug=0,threads=64}");
  const std::string folder = modules[0].path.substr(0, modules[0].path.rfind('/'));
  EXPECT_TRUE(fs::is_file(jit::guarded_path(folder)));
  const std::string commands = fs::read_file(folder + "/compile_command.txt").value_or("");
  EXPECT_EQ(std::ranges::count(commands, '\n'), 2) << commands;
}

TEST_F(Emulator, WhatItFindsIsAnErrorOfTheCallWithTheLine) {
  const std::string far = reverse(1);
  EXPECT_NE(far.find("RuntimeError: emulator: probe.reverse{bug=1,threads=64} (seed 0):"), std::string::npos) << far;
  EXPECT_NE(far.find("reverse.cuh:13"), std::string::npos) << far;
  const std::string race = reverse(2);
  EXPECT_NE(race.find("reverse.cuh:11"), std::string::npos) << race;
  EXPECT_NE(race.find("reverse.cuh:13"), std::string::npos) << race;
  const std::string local = reverse(3);
  EXPECT_NE(local.find("4 bytes past the end of 'four' (16 bytes) (probe/reverse.cuh:16"), std::string::npos) << local;
}

/// Without its guarded form an artifact would find less, and say nothing.
TEST_F(Emulator, ADamagedGuardedFormIsBuiltAnew) {
  EXPECT_EQ(reverse(0), "");
  const std::string path = jit::modules().at(0).path, folder = path.substr(0, path.rfind('/')),
                    guarded = jit::guarded_path(folder), whole = fs::read_file(guarded).value_or("");
  ASSERT_TRUE(jit::read_artifact(folder));
  for (const std::string& damaged : {whole.substr(0, whole.size() / 2), std::string()}) {
    fs::write_atomic(guarded, damaged, 0700);  // a new file: the old one is mapped
    EXPECT_FALSE(jit::read_artifact(folder));
    jit::reset();
    EXPECT_EQ(reverse(0), "");
    EXPECT_TRUE(jit::read_artifact(folder));
    EXPECT_EQ(fs::read_file(guarded).value_or("").size(), whole.size());
  }
  ASSERT_EQ(::unlink(guarded.c_str()), 0);
  EXPECT_FALSE(jit::read_artifact(folder));
}

TEST_F(Emulator, ACompilerWithoutTheGuardedFormIsSaidOnce) {
  const std::string real = jit::host_toolchain().compiler,
                    compiler = root_ + real.substr(real.rfind('/'));  // flags go by the name
  fs::write_atomic(compiler, "#!/bin/sh\ncase \"$*\" in *kernel-address*) exit 1 ;; esac\nexec " + real + " \"$@\"\n",
                   0700);
  ::setenv("FLASHINFER_CXX", compiler.c_str(), 1);
  env::reload();
  jit::reset();
  testing::internal::CaptureStderr();
  EXPECT_EQ(reverse(0), "");
  EXPECT_EQ(reverse(3), "");  // leaves a local array
  EXPECT_NE(reverse(1), "");
  const std::string text = testing::internal::GetCapturedStderr();
  ::unsetenv("FLASHINFER_CXX");
  const std::string_view sentence = "emulator: accesses that leave a local variable are not looked for: ";
  const size_t first = text.find(sentence);
  ASSERT_NE(first, std::string::npos) << text;
  EXPECT_NE(text.find("kernel.guarded.so", first), std::string::npos) << text;
  EXPECT_EQ(text.find(sentence, first + 1), std::string::npos) << text;
}

TEST_F(Emulator, MemoryThatWasFreedIsNoNewTensors) {
  reverse(0);  // compiled
  const jit::CudaLoaded& k = jit::cuda_kernel<kReverse>(probe::Config{0, 64}, kEmu);
  const float* freed = nullptr;
  {
    const Tensor x = to_device(x_.view(), kEmu);
    freed = x.data_as<float>();
  }
  const Tensor newer = to_device(x_.view(), kEmu);
  EXPECT_NE(newer.data(), freed);
  cuda::Launch l;
  l.block[0] = 64, l.shared_bytes = 256;
  try {
    jit::launch(k, probe::Params{freed, y_.data_as<float>(), kN}, l);
    ADD_FAILURE() << "the kernel read what was freed";
  } catch (const RuntimeError& e) {
    EXPECT_NE(std::string(e.what()).find("of an allocation of 244 bytes that was freed"), std::string::npos)
        << e.what();
  }
}

TEST_F(Emulator, LaunchesAreListedAndCounted) {
  reverse(0);  // compiled outside
  const jit::Emulation emulation(7, /*count=*/true);
  EXPECT_EQ(reverse(0), "");
  ASSERT_EQ(emulation.launches().size(), 1u);
  const jit::EmulatedLaunch& l = emulation.launches()[0];
  EXPECT_EQ(l.kernel, "probe.reverse{bug=0,threads=64}");
  EXPECT_EQ(l.launch.block[0], 64u);
  ASSERT_NE(l.counts, nullptr);
  EXPECT_EQ(l.counts->global_load_bytes, 4u * kN);
  EXPECT_EQ(l.counts->global_store_bytes, 4u * kN);
}

TEST_F(Emulator, ImpossibleLaunchesAreErrors) {
  reverse(0);
  const jit::CudaLoaded& k = jit::cuda_kernel<kReverse>(probe::Config{0, 64}, kEmu);
  cuda::Launch l;
  l.grid[1] = 65536;
  EXPECT_THROW(jit::launch(k, probe::Params{}, l), ValueError);
}

/// A recording of the CPU's replays on the emulator, and the reverse.
TEST(EmulatorReplay, MovesBetweenDevices) {
  const std::string root = fs::make_temp_dir("/tmp", "flashinfer-emulator-replay-");
  const record::Settings before = record::settings();
  Tensor x = Tensor::empty({5, 64}, DType::kF32), w = Tensor::empty({64}, DType::kF32);
  for (int64_t i = 0; i < x.numel(); ++i) x.data_as<float>()[i] = static_cast<float>(i % 17) - 8;
  for (float& v : w.span<float>()) v = 1.5f;
  const Tensor xe = to_device(x.view(), kEmu), we = to_device(w.view(), kEmu);
  for (const bool emulated : {false, true}) {
    record::Settings s = before;
    s.level = 10, s.destination = root + "/log.txt", s.dump_dir = root + (emulated ? "/emu" : "/cpu");
    record::configure(s);
    if (emulated)
      rmsnorm({.input = xe, .weight = we});
    else
      rmsnorm({.input = x, .weight = w});
    record::configure(before);
    for (const Device device : {kCpu, kEmu}) {
      const auto report = replay::replay(s.dump_dir, {.device = device});
      EXPECT_EQ(report.passed(), 1) << to_string(device);
      EXPECT_EQ(report.failed(), 0);
    }
  }
  EXPECT_NE(fs::read_file(root + "/log.txt")->find("device=emu:0"), std::string::npos);
  fs::remove_tree(root);
}

}  // namespace
}  // namespace flashinfer
