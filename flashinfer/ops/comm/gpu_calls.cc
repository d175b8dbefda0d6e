// SPDX-License-Identifier: Apache-2.0
#include "flashinfer/ops/comm/gpu_calls.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "flashinfer/comm/window_state.h"
#include "flashinfer/core/check.h"
#include "flashinfer/core/cuda/waits.h"
#include "flashinfer/core/emu_memory.h"
#include "flashinfer/core/fork_mutex.h"
#include "flashinfer/ops/comm/peers.h"

namespace flashinfer::ops::comm {
namespace {
using flashinfer::comm::GroupError;

/// Of the workspaces on CUDA GPUs of this process.
constinit ForkMutex g_mutex(ForkLayer::kOps);
std::vector<GpuCalls*> g_all;

uint32_t number_of(const flashinfer::comm::Signature& call) {
  const uint64_t h = flashinfer::comm::hash_of(call);
  return static_cast<uint32_t>(h >> 32) | 1;  // not 0
}
}  // namespace

/// What a rank calls. Only it writes this.
struct GpuCalls::Board {
  struct Text {
    std::atomic<uint32_t> call;  // 0: none yet; set behind the signature
    Signature signature;
  };
  struct Made {
    std::atomic<uint64_t> number_and_call;  // the call's number + 1, and what it is
  };
  Text texts[kKeptTexts];
  Made made[kKeptCalls];
};

/// After a wait of the library for cuda:`index`.
void check_waits(int index) {
  const std::lock_guard lock(g_mutex);
  for (GpuCalls* c : g_all)
    if (c->device_.index == index && !c->told_.load() && c->failed()) c->raise();
}

GpuCalls::GpuCalls(std::shared_ptr<flashinfer::comm::Group> group, Device device, bool meets)
    : group_(std::move(group)), device_(device) {
  if (group_->size() == 1) return;
  if (group_->one_machine()) boards_ = group_->window(sizeof(Board), "shm");
  if (!meets) return;
  void* at = nullptr;
  if (device.type == DeviceType::kEmu) {
    at = emu_memory::allocate(sizeof(MeetReport));
    emu_memory::wrote(at, sizeof(MeetReport));
  } else {
    at = pinned_.emplace(sizeof(MeetReport), device.index).data();
  }
  std::memset(at, 0, sizeof(MeetReport));
  report_ = static_cast<MeetReport*>(at);
  watch_.emplace(group_);
  if (device.type != DeviceType::kCUDA) return;
  {
    const std::lock_guard lock(g_mutex);
    g_all.push_back(this);
  }
  cuda::on_wait(check_waits);
  watch_->start([this] { look(); });
}

GpuCalls::~GpuCalls() {
  if (watch_) watch_->stop();
  {
    const std::lock_guard lock(g_mutex);
    std::erase(g_all, this);
  }
  if (watch_) watch_->left();
  if (report_ && !pinned_) emu_memory::release(report_);
}

GpuCalls::Board& GpuCalls::board_of(int rank) const { return *reinterpret_cast<Board*>(boards_->of(rank)); }

uint32_t GpuCalls::note(const Signature& call) {
  const uint32_t number = number_of(call);
  if (!boards_) return number;
  Board& own = board_of(group_->rank());
  for (const Board::Text& t : own.texts)
    if (t.call.load(std::memory_order_relaxed) == number) return number;
  Board::Text& t = own.texts[noted_++ % kKeptTexts];
  t.call.store(0, std::memory_order_relaxed);
  std::atomic_thread_fence(std::memory_order_release);
  t.signature = call;
  t.call.store(number, std::memory_order_release);
  return number;
}

std::string GpuCalls::text_of(int rank, uint32_t call) const {
  for (const Board::Text& t : board_of(rank).texts) {
    if (t.call.load(std::memory_order_acquire) != call) continue;
    const Signature signature = t.signature;
    std::atomic_thread_fence(std::memory_order_acquire);
    if (t.call.load(std::memory_order_relaxed) == call && number_of(signature) == call) return describe_call(signature);
  }
  return str("call ", call);
}

std::string GpuCalls::difference(int64_t number, const Signature& call) {
  if (!boards_) return {};
  const uint64_t place = static_cast<uint64_t>(number) + 1;
  const uint32_t mine = note(call);
  const auto made = [&](int rank) -> std::atomic<uint64_t>& {
    return board_of(rank).made[static_cast<size_t>(number) % kKeptCalls].number_and_call;
  };
  made(group_->rank()).store(place << 32 | mine, std::memory_order_seq_cst);
  for (int r = 0; r < group_->size(); ++r) {
    const uint64_t said = made(r).load(std::memory_order_seq_cst);
    const auto theirs = static_cast<uint32_t>(said);
    if (static_cast<uint32_t>(said >> 32) == static_cast<uint32_t>(place) && theirs != mine)
      return str("rank ", r, " calls ", text_of(r, theirs), ", but rank ", group_->rank(), " calls ",
                 describe_call(call));
  }
  return {};
}

/// A sentence without the group's name.
std::string GpuCalls::text_of(const MeetReport& report) const {
  const int other = static_cast<int>(report.rank);
  const std::string own = text_of(group_->rank(), report.call);
  const auto gone = watch_->gone();
  switch (MeetFailure{report.kind}) {
    case MeetFailure::kOther:
      return str("rank ", other, " calls ", text_of(other, report.other), ", but rank ", group_->rank(), " calls ",
                 own);
    case MeetFailure::kLate:
      return str(own, ": rank ", other, " did not arrive within ", flashinfer::comm::timeout_seconds(),
                 " s (FLASHINFER_COMM_TIMEOUT_S)", gone ? str("; ", gone->why) : "");
    default: return str(own, ": ", gone ? gone->why : str("rank ", other, " has failed in an earlier call"));
  }
}

void GpuCalls::fail(const std::string& what) {
  if (has_failed_.load(std::memory_order_relaxed)) return;
  failed_ = what;
  if (watch_) watch_->failed("failed: " + what);
  has_failed_.store(true, std::memory_order_release);
}

bool GpuCalls::failed() {
  if (has_failed_.load(std::memory_order_acquire)) return true;
  if (!report_) return false;
  if (std::atomic_ref<uint32_t>(report_->kind).load(std::memory_order_acquire) == 0) return false;
  const std::lock_guard lock(mutex_);
  fail(text_of(*report_));
  return true;
}

/// Ends what waits on the GPU for a rank that is gone, and tells the others of what has ended here.
void GpuCalls::look() {
  if (failed()) return;
  if (const auto lost = watch_->lost()) {
    std::atomic_ref<uint32_t>(report_->stop).store(1, std::memory_order_release);
    const std::lock_guard lock(mutex_);
    fail(lost->why);
  }
}

void GpuCalls::raise() {
  told_.store(true);
  const std::lock_guard lock(mutex_);
  throw GroupError(str("group '", group_->name(), "', rank ", group_->rank(), ": ", failed_));
}
void GpuCalls::check() {
  if (failed()) raise();
}

void GpuCalls::abandon(const std::string& reason) {
  if (!watch_) return;
  if (report_) std::atomic_ref<uint32_t>(report_->stop).store(1, std::memory_order_release);
  const std::lock_guard lock(mutex_);
  if (has_failed_.load(std::memory_order_relaxed)) return;
  watch_->failed("raised " + reason);
  failed_ = "this rank raised " + reason;
  has_failed_.store(true, std::memory_order_release);
}

}  // namespace flashinfer::ops::comm
