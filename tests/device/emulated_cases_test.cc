// SPDX-License-Identifier: Apache-2.0
// Every row of every op that has a CUDA kernel, on the emulator under several schedules; and each kernel that the rows need, compiled
// for two GPUs, or for those of FLASHINFER_CUDA_ARCH_LIST. No GPU and no driver take part.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <iostream>
#include <map>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "flashinfer/cases/run.h"
#include "flashinfer/cases/warmup.h"
#include "flashinfer/core/env.h"
#include "flashinfer/core/fs.h"
#include "flashinfer/jit/aot.h"
#include "flashinfer/jit/cuda.h"
#include "flashinfer/jit/targets.h"
#include "flashinfer/op/registry.h"
#include "flashinfer/ops/attention/cuda/launch.h"
#include "test_paths.h"
#include "tests/device/sanitized.h"

namespace flashinfer {
namespace {

constexpr Device kEmu{DeviceType::kEmu, 0};
/// Under a sanitizer, whose business is the host's code, one other schedule, one GPU and every third row are enough.
const int kSeeds = sanitized() ? 1 : 2;

struct Tally {
  int rows = 0, ran = 0, supported = 0;
};
std::map<const op::Op*, Tally> tally;

class CaseTest : public testing::Test {
 public:
  CaseTest(const op::Op& op, const op::Case& c) : op_(op), case_(c) {}
  void TestBody() override {
    const cases::CaseResult r = cases::run_case(op_, case_, {.device = kEmu, .seeds = kSeeds});
    EXPECT_TRUE(r.passed) << r.failure << "\n  " << r.repro;
    ++tally[&op_].ran;
    tally[&op_].supported += r.unsupported.empty();
    if (!r.unsupported.empty()) RecordProperty("unsupported", r.unsupported);
  }

 private:
  const op::Op& op_;
  const op::Case& case_;
};

const bool registered = [] {
  for (const op::Op* op : op::all_ops())
    for (const op::Case& c : op->cases()) {
      if (c.tags == op::kBench || !cases::supports(*op, kEmu)) continue;
      if (sanitized() && (&c - op->cases().data()) % 3) continue;
      ++tally[op].rows;
      std::string suite = op->name;
      for (char& letter : suite)
        if (letter == '.') letter = '_';
      testing::RegisterTest(suite.c_str(), c.name, nullptr, nullptr, __FILE__, __LINE__,
                            [op, &c]() -> testing::Test* { return new CaseTest(*op, c); });
    }
  return true;
}();

/// A candidate that supports no row would pass every test above. Checked when all rows of an op were run.
class MostRowsAreServed : public testing::Environment {
 public:
  void TearDown() override {
    if (sanitized()) return;  // not all rows
    for (const auto& [op, n] : tally) {
      const std::string_view name = op->name;
      // Buffers of rows are in host memory, which graphs on a device do not read: docs/cuda.md.
      if (name.starts_with("CUDAGraph") || name.ends_with(".plan_on_device") || n.ran != n.rows) continue;
      EXPECT_GT(n.supported, 0) << name << ": its CUDA candidate supports no row";
    }
  }
};
const auto* const environment = testing::AddGlobalTestEnvironment(new MostRowsAreServed);

class Gpus : public testing::Test {
 protected:
  void SetUp() override {
    const std::string python = FI_TEST_PYTHON;
    ::setenv("VIRTUAL_ENV", python.substr(0, python.rfind("/bin/")).c_str(), 1);
    env::reload();
    jit::reset();
    ops_ = op::all_ops();
  }
  std::vector<const op::Op*> ops_;
};

/// Functions of the samplers are calls (cuda_row.cuh): registers saved around one are reported as spills. All others
/// spill nothing.
bool makes_calls(const jit::Request& r) {
  const std::string text = r.text();
  for (const char* name : {"sampling.sample{", "sampling.filter{", "sampling.chain{"})
    if (text.starts_with(name)) return true;
  return false;
}

/// FLASHINFER_CUDA_ARCH_LIST="7.5 8.9" make test: those. Else a data center's and a workstation's; CI and `make
/// nvrtc-versions` compile for others too.
std::vector<jit::Target> targets() {
  std::vector<jit::Target> list = jit::arch_list();
  if (list.empty()) list = jit::parse_arch_list("9.0a 12.0a");
  return list;
}

TEST_F(Gpus, EveryKernelCompilesWithoutSpills) {
  // Under a sanitizer TwoRunsAheadGiveTheSameBytes goes the same way with fewer kernels.
  if (sanitized()) GTEST_SKIP() << "NVRTC has no sanitizer, and the plain build compiles the same kernels";
  const std::string out = fs::make_temp_dir("/tmp", "flashinfer-aot-");
  for (const jit::Target t : targets()) {
    const jit::Target target[] = {t};
    const char* const name = jit::name(t);
    double seconds = 0;
    uint64_t bytes = 0;
    std::vector<jit::Request> all = cases::cuda_kernels(ops_, op::kAot, jit::arch_of(target[0]).number);
    for (jit::Request& r : cases::cuda_kernels_beside_cases(jit::arch_of(target[0]).number)) all.push_back(std::move(r));
    const auto first_call = std::stable_partition(all.begin(), all.end(), [](const jit::Request& r) { return !makes_calls(r); });
    const std::span<const jit::Request> plain(all.begin(), first_call), calling(first_call, all.end());
    ASSERT_FALSE(plain.empty());
    ASSERT_FALSE(calling.empty());
    for (const auto& [requests, flags] : {std::pair(plain, "--ptxas-options=--warn-on-spills --ptxas-options=--warning-as-error"), std::pair(calling, "")}) {
      ::setenv("FLASHINFER_EXTRA_CUDAFLAGS", flags, 1);
      env::reload();
      const jit::AotResult r = jit::aot(out, target, requests);
      EXPECT_EQ(r.compiled + static_cast<int64_t>(r.errors.size()), static_cast<int64_t>(requests.size())) << name;
      for (const std::string& e : r.errors) ADD_FAILURE() << e;
      seconds += r.seconds, bytes += r.bytes;
    }
    std::cout << name << ": " << all.size() << " kernels, " << bytes / 1000 << " KB, " << seconds << " s\n";
  }
  ::unsetenv("FLASHINFER_EXTRA_CUDAFLAGS");
  env::reload();
  fs::remove_tree(out);
}

/// Persistent launches of attention at the head dims that models have, of few rows alone and with many; the case tables
/// need few of these kernels.
TEST_F(Gpus, PersistentAttentionCompilesWithoutSpills) {
  if (sanitized()) GTEST_SKIP() << "NVRTC has no sanitizer, and the plain build compiles the same kernels";
  static constexpr jit::Kernel kPair{"flashinfer/ops/attention/kernels/cuda/pair.cuh", "flashinfer::cu::attention_pair",
                                     "flashinfer::AttentionPairParams"};
  const std::string out = fs::make_temp_dir("/tmp", "flashinfer-aot-");
  ::setenv("FLASHINFER_EXTRA_CUDAFLAGS", "--ptxas-options=--warn-on-spills --ptxas-options=--warning-as-error", 1);
  env::reload();
  for (const jit::Target t : targets()) {
    const jit::Arch& arch = jit::arch_of(t);
    if (!arch.async_copy) continue;
    std::vector<jit::Request> requests;
    const auto add = [&](DType kv, int dim) {
      const AttentionConfig c{.q = DType::kBF16, .kv = kv, .o = DType::kBF16, .rope = false};
      AttentionParams p{};
      p.head_dim_qk = p.head_dim_vo = dim;
      const cuda::AttentionLimits limits{.shared_bytes = arch.shared_bytes,
                                         .wide = cuda::attention_pair_wide(kv, dim, dim, arch.number),
                                         .e4m3 = 0,
                                         .pair = true};
      for (const bool few : {true, false}) {
        const AttentionCudaConfig k = cuda::attention_config(c, p, few, 1000, limits);
        EXPECT_TRUE(few || cuda::attention_pair_fits(k, arch.number));
        requests.push_back(jit::detail::make_request(kPair, AttentionCudaConfig::kName, jit::detail::members(k)));
      }
    };
    for (const int d : {64, 128, 256}) add(DType::kBF16, d);
    add(DType::kF8E4M3, 128), add(DType::kF4E2M1x2, 128);
    const jit::Target target[] = {t};
    const jit::AotResult r = jit::aot(out, target, requests);
    EXPECT_EQ(r.compiled, static_cast<int64_t>(requests.size())) << jit::name(t);
    for (const std::string& e : r.errors) ADD_FAILURE() << e;
    std::cout << jit::name(t) << ": " << requests.size() << " kernels, " << r.seconds << " s\n";
  }
  ::unsetenv("FLASHINFER_EXTRA_CUDAFLAGS");
  env::reload();
  fs::remove_tree(out);
}

/// sm_75 has neither cp.async nor m16n8k16: there attention is the kernel without tensor cores', which needs neither.
TEST_F(Gpus, BeforeSm80AttentionIsWithoutTensorCores) {
  const op::Op* const one[] = {op::find_op("single_prefill_with_kv_cache"), op::find_op("BatchDecodeWithPagedKVCacheWrapper.run")};
  const auto with = [&](int arch, const char* kernel) {
    const std::vector<jit::Request> all = cases::cuda_kernels(one, op::kAot, arch);
    return std::count_if(all.begin(), all.end(), [&](const jit::Request& r) { return r.text().starts_with(kernel); });
  };
  EXPECT_EQ(with(75, "attention.attention{"), 0);
  EXPECT_GE(with(75, "attention.attention_cores{q=bfloat16,kv=bfloat16,"), 1);
  EXPECT_GE(with(80, "attention.attention{"), 2);
}

/// Every file of every artifact under `folder`, by path from there.
std::map<std::string, std::string> files_of(const std::string& folder) {
  std::map<std::string, std::string> files;
  for (const std::string& target : fs::list_dir(folder))
    for (const std::string& entry : fs::list_dir(folder + "/" + target))
      for (const std::string& f : fs::list_dir(folder + "/" + target + "/" + entry))
        files[target + "/" + entry + "/" + f] = fs::read_file(folder + "/" + target + "/" + entry + "/" + f).value();
  return files;
}
TEST_F(Gpus, TwoRunsAheadGiveTheSameBytes) {
  const jit::Target targets[] = {jit::parse_target("sm_80"), jit::parse_target("sm_90a")};
  const op::Op* const two[] = {op::find_op("rmsnorm"), op::find_op("append_paged_kv_cache")};
  const auto requests = cases::cuda_kernels(two, op::kAot, 90);
  std::map<std::string, std::string> made[2];
  for (auto& files : made) {
    jit::reset();
    const std::string out = fs::make_temp_dir("/tmp", "flashinfer-aot-");
    const jit::AotResult r = jit::aot(out, targets, requests, 1);
    EXPECT_EQ(r.compiled, static_cast<int64_t>(2 * requests.size()));
    EXPECT_GT(r.bytes_of.at(targets[0]), 0u);
    files = files_of(out);
    fs::remove_tree(out);
  }
  EXPECT_GE(made[0].size(), 2 * requests.size() * 3);
  EXPECT_EQ(made[0], made[1]);
}

}  // namespace
}  // namespace flashinfer
