// SPDX-License-Identifier: Apache-2.0
#include "flashinfer/jit/emulator.h"

#include <dlfcn.h>

#include <algorithm>
#include <chrono>
#include <limits>
#include <utility>

#include "flashinfer/comm/group.h"
#include "flashinfer/core/check.h"
#include "flashinfer/core/emu_memory.h"
#include "flashinfer/core/env.h"
#include "flashinfer/jit/cuda.h"
#include "flashinfer/jit/cuda_load.h"
#include "flashinfer/jit/targets.h"
#include "flashinfer/kernels/emu/emu.h"

namespace flashinfer::jit {
namespace {
thread_local Emulation* t_emulation = nullptr;
}

Emulation::Emulation(uint64_t seed, bool count)
    : seed_(seed), count_(count), previous_(std::exchange(t_emulation, this)) {}
Emulation::~Emulation() { t_emulation = previous_; }

void (*load_emulated(const std::string& path, std::string& error))(const void*) {
  void* handle = ::dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
  void* entry = handle != nullptr ? ::dlsym(handle, "flashinfer_emu_kernel") : nullptr;
  void* bind = handle != nullptr ? ::dlsym(handle, "flashinfer_emu_bind") : nullptr;
  if (entry == nullptr || bind == nullptr) {
    const char* text = ::dlerror();
    error = text != nullptr ? text : "no flashinfer_emu_kernel in it";
    return nullptr;
  }
  reinterpret_cast<void (*)(const void*)>(bind)(emu::hooks());
  return reinterpret_cast<void (*)(const void*)>(entry);
}

namespace {
/// What the emulated GPU has, and all memory of emu.
struct Emulated {
  std::vector<emu::Range> memory;
  emu::Options options;
  Emulated(Device device, uint64_t seed, bool count) {
    for (const emu_memory::Range& r : emu_memory::ranges()) memory.push_back({r.begin, r.bytes, r.written});
    options.seed = seed, options.count = count, options.memory = memory;
    options.freed = [] {
      std::vector<emu::Range> list;
      for (const emu_memory::Range& r : emu_memory::freed()) list.push_back({r.begin, r.bytes});
      return list;
    };
    const Arch& arch = arch_of_number(arch_number(device));
    options.shared_limit = static_cast<unsigned>(arch.shared_bytes);
    options.clusters = arch.clusters, options.async_copy = arch.async_copy;
  }
};
std::string findings_of(const std::string& kernel, uint64_t seed, const std::string& error) {
  return str("emulator: ", kernel, " (seed ", seed, "):\n", error);
}
}  // namespace

void run_emulated(const CudaKernel& kernel, const void* params, size_t bytes, const cuda::Launch& l) {
  const Emulated e(kernel.device,
                   t_emulation ? t_emulation->seed_ : static_cast<uint64_t>(env::integer("FLASHINFER_EMU_SEED")),
                   t_emulation && t_emulation->count_);
  emu::Report report = emu::run(kernel.emulated, params, bytes, l, e.options);
  if (!report.error.empty()) throw RuntimeError(findings_of(kernel.name, e.options.seed, report.error));
  if (t_emulation)
    t_emulation->launches_.push_back(
        {kernel.name, l, e.options.count ? std::make_shared<emu::Counts>(std::move(report.counts)) : nullptr});
}

/// The GPU of a rank that has not launched: none of those that run.
static constexpr int kNoLaunch = std::numeric_limits<int>::max();
struct EmulatedRanks::Outcome {
  bool ended = false;
  std::string error;
  std::shared_ptr<const emu::Counts> counts;
};
struct EmulatedRanks::Made {
  const CudaKernel* kernel = nullptr;  // null: `reason`
  std::vector<char> params;
  cuda::Launch launch;
  uint64_t seed = 0, among = ~uint64_t{0};
  bool count = false;
  std::string reason;
  std::shared_ptr<Outcome> outcome = std::make_shared<Outcome>();
};

EmulatedRanks::EmulatedRanks(int ranks) : made_(static_cast<size_t>(ranks)) {}
EmulatedRanks::~EmulatedRanks() = default;

void EmulatedRanks::add_memory(int rank, const void* begin) {
  const std::lock_guard lock(mutex_);
  memory_.emplace_back(begin, rank);
}

std::vector<int> EmulatedRanks::missing(uint64_t among) const {
  std::vector<int> ranks;
  for (size_t r = 0; r < made_.size(); ++r)
    if ((among >> r & 1) && made_[r].empty()) ranks.push_back(static_cast<int>(r));
  return ranks;
}

std::string EmulatedRanks::run(size_t launches, uint64_t among, std::shared_ptr<const emu::Counts>& counts) {
  std::vector<std::vector<emu::Work>> gpus;          // of the ranks that have made a launch
  std::vector<int> gpu_of(made_.size(), kNoLaunch);  // by rank
  const Made* head = nullptr;
  for (size_t r = 0; r < made_.size(); ++r) {
    const auto& made = made_[r];
    if (!(among >> r & 1) || made.empty()) continue;
    if (!head) head = &made.front();
    gpu_of[r] = static_cast<int>(gpus.size());
    gpus.emplace_back();
    for (size_t i = 0; i < std::min(launches, made.size()); ++i)
      gpus.back().push_back({made[i].kernel->emulated, made[i].params.data(), made[i].params.size(), made[i].launch});
  }
  const Made& first = *head;
  Emulated e(first.kernel->device, first.seed, first.count);
  for (emu::Range& range : e.memory)
    for (const auto& [begin, rank] : memory_)
      if (range.begin == begin) range.gpu = gpu_of[static_cast<size_t>(rank)];
  emu::Report report = emu::run_together(gpus, e.options);
  if (!report.error.empty()) return findings_of(first.kernel->name, first.seed, report.error);
  if (first.count) counts = std::make_shared<emu::Counts>(std::move(report.counts));
  return {};
}

/// Every rank of `among` has made its first launch, or has abandoned it.
void EmulatedRanks::run_first(uint64_t among) {
  Outcome all;
  for (size_t r = 0; r < made_.size(); ++r)
    if ((among >> r & 1) && made_[r].front().kernel == nullptr && all.error.empty())
      all.error = made_[r].front().reason;
  if (all.error.empty()) all.error = run(1, among, all.counts);
  for (size_t r = 0; r < made_.size(); ++r) {
    if (!(among >> r & 1)) continue;
    *made_[r].front().outcome = {true, all.error, all.counts};
    made_[r].pop_front();
  }
  ended_.notify_all();
}

void EmulatedRanks::launch(int rank, const CudaLoaded& loaded, const void* params, size_t bytes,
                           const cuda::Launch& launch, uint64_t among, double seconds) {
  const char* const first = static_cast<const char*>(params);
  Made made{loaded.kernel, {first, first + bytes}, launch};
  made.seed = t_emulation ? t_emulation->seed_ : static_cast<uint64_t>(env::integer("FLASHINFER_EMU_SEED"));
  made.count = t_emulation && t_emulation->count_;
  made.among = among;
  const auto outcome = made.outcome;
  std::unique_lock lock(mutex_);
  made_[static_cast<size_t>(rank)].push_back(std::move(made));
  if (held_) return;
  if (missing(among).empty()) run_first(among);
  const bool in_time = ended_.wait_for(lock, std::chrono::duration<double>(seconds), [&] { return outcome->ended; });
  const auto late = [&] {
    std::string list;
    for (const int r : missing(among)) list += str(list.empty() ? "" : ", ", r);
    return list;
  };
  FI_CHECK(in_time, comm::GroupError, "rank ", late(), " has not launched ", loaded.kernel->name, " within ", seconds,
           " s (FLASHINFER_COMM_TIMEOUT_S)");
  if (!outcome->error.empty()) throw comm::GroupError(outcome->error);
  if (t_emulation) t_emulation->launches_.push_back({loaded.kernel->name, launch, outcome->counts});
}

void EmulatedRanks::abandon(int rank, const std::string& reason) {
  const std::lock_guard lock(mutex_);
  Made made;
  made.reason = str("rank ", rank, " raised ", reason);
  made_[static_cast<size_t>(rank)].push_back(std::move(made));
  uint64_t among = ~uint64_t{0};
  for (const auto& others : made_)
    if (!others.empty() && others.front().kernel && (others.front().among >> rank & 1)) among = others.front().among;
  if (missing(among).empty()) run_first(among);
}

HeldLaunches::HeldLaunches(EmulatedRanks& ranks) : ranks_(ranks) {
  const std::lock_guard lock(ranks_.mutex_);
  ranks_.held_ = true;
}
HeldLaunches::~HeldLaunches() {
  const std::lock_guard lock(ranks_.mutex_);
  ranks_.held_ = false;
  for (auto& made : ranks_.made_) made.clear();
}
void HeldLaunches::run() {
  const std::lock_guard lock(ranks_.mutex_);
  size_t most = 0;
  for (const auto& made : ranks_.made_) most = std::max(most, made.size());
  FI_CHECK(most > 0, ValueError, "no rank has made a launch");
  std::shared_ptr<const emu::Counts> counts;
  const std::string error = ranks_.run(most, ~uint64_t{0}, counts);
  for (auto& made : ranks_.made_) made.clear();
  if (!error.empty()) throw RuntimeError(error);
}

}  // namespace flashinfer::jit
